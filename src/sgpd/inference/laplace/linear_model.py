"""The model seen from one rollout: linear in the field's values and in the starts, and Gaussian.

Along a rollout x* of a reference field f*, to first order in a change of the field and of the start,

    xₙ = x*ₙ + Jₙ u - Jₙ* u* + Sₙ (s - s*)        Jₙ₊₁ = Aₙ Jₙ + Bₙ,  Sₙ₊₁ = Aₙ Sₙ

where Aₙ is the derivative of one interval's map by the state and Bₙ by the whitened inducing values u. Bₙ is made of
the map's derivative by the field's values at the points where the steps look (`respond`), and of those values'
derivative by u; only the latter changes with the kernel, which may be another than the one that made f*. With
u ~ N(0, I), s ~ N(centre, reach²) and white noise this is Bayesian linear regression: the best u and s, their
covariance and the evidence are all in closed form. The starts are eliminated one by one (a Schur complement), so that
only u is ever solved for together.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgpd.arrays import Scalar, State, on_device
from sgpd.data import Trajectories, Windows
from sgpd.fields import Field
from sgpd.inference.constants import START_STD
from sgpd.inference.laplace.constants import ENOUGH, ITERATIONS
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.integrators import Integrator, respond
from sgpd.xla.batches import each


class Recording(eqx.Module):
    """Uninterrupted pieces of runs as a rollout sees them, padded to one length: r pieces of n rows."""

    states: Float[Array, "r n d"]
    observed: Bool[Array, "r n d"]
    steps: Float[Array, "r n-1 m"]
    pinned: Bool[Array, " r"]  # pieces whose first state is exact
    centre: Float[Array, "r d"]  # prior of the starts
    start_std: Float[Array, " d"]

    @classmethod
    def of(cls, data: Trajectories, pieces: Windows, pinned: np.ndarray) -> "Recording":
        """From windows so long that each is a whole piece. A pinned state is no longer an observation."""
        observed = pieces.observed.copy()
        observed[pinned, 0] = False
        start_std = START_STD * np.where(data.std > 0, data.std, 1.0)
        centre = np.broadcast_to(data.center, pieces.states[:, 0].shape)
        arrays = (pieces.states, observed, pieces.steps, pinned, centre, start_std)
        return cls(*(on_device(a) for a in arrays))


class ShootingState(eqx.Module):
    """A state of the fit: whitened values, and starts at the rows where rollouts begin anew (others are ignored)."""

    u: Float[Array, " p"]
    starts: Float[Array, "r n d"]
    restart: Bool[Array, "r n"]

    def free(self, recording: Recording) -> Bool[Array, "r n"]:
        """Restarts at states that are not known."""
        first = (jnp.arange(self.restart.shape[1]) == 0)[None, :]
        return self.restart & ~(recording.pinned[:, None] & first)


class Tangent(NamedTuple):
    """A rollout and how later rows move with earlier ones and with the field at the points where the steps look."""

    rows: Float[Array, "r n d"]
    by_row: Float[Array, "r n-1 d d"]  # A; 0 before a restart
    points: Float[Array, "r n-1 s d"]
    by_field: Float[Array, "r n-1 s d d"]  # C, by the field's value at each point; 0 before a restart
    by_start: Float[Array, "r n d d"]  # S; 0 where the start is exact
    linear_part: Float[Array, "r n d"]  # J* u*: what the linear model takes the field to have contributed


class Regression(NamedTuple):
    """Normal equations of the linear model, for u and for each of m starts v in units of the noise."""

    square: Scalar
    matrix: Float[Array, "p p"]
    right: Float[Array, " p"]
    local_matrix: Float[Array, "r m d d"]
    local_right: Float[Array, "r m d"]
    coupling: Float[Array, "r m p d"]

    @classmethod
    def empty(cls, pieces: int, d: int, p: int) -> "Regression":
        """Of pieces that start once, before anything is known."""
        shapes = ((), (p, p), (p,), (pieces, 1, d, d), (pieces, 1, d), (pieces, 1, p, d))
        return cls(*map(jnp.zeros, shapes))

    def cost(self, u: Float[Array, " p"], v: Float[Array, "r d"]) -> Scalar:
        """Squares of residuals and prior, where every piece starts once."""
        of_u = u @ self.matrix @ u - 2 * self.right @ u
        of_v = jnp.einsum("rij,ri,rj->", self.local_matrix[:, 0], v, v) - 2 * jnp.sum(self.local_right[:, 0] * v)
        return self.square + of_u + of_v + 2 * jnp.einsum("rpi,p,ri->", self.coupling[:, 0], u, v)


class Solution(NamedTuple):
    """The best u and v of a `Regression`, and what is left over."""

    u: Float[Array, " p"]
    v: Float[Array, "r m d"]
    precision: Float[Array, "p p"]  # of u, with the starts integrated out
    cost: Scalar  # squares of residuals and prior
    log_determinant: Scalar  # of the precision of u and all v, against the prior's


class Linearised(NamedTuple):
    """The model seen from one iterate."""

    along: Tangent
    equations: Regression
    cost: Scalar


class Solved(NamedTuple):
    """How the stage equations of a rollout were solved."""

    steps_converged: Scalar  # share
    worst_residual: Scalar


class LinearModel(eqx.Module):
    """A posterior's field, stepped along a recording that has such noise."""

    posterior: FieldPosterior
    integrator: Integrator
    recording: Recording
    noise: Float[Array, " d"]  # standard deviation, by channel

    @property
    def prior(self) -> Float[Array, " d"]:
        """The precision of a start beforehand, in units of the noise."""
        return (self.noise / self.recording.start_std) ** 2

    def field(self, at: ShootingState, features: Features | None = None) -> Field:
        """That of an iterate, with random features if there are any."""
        return self.posterior.field(self.posterior.unravel(at.u), features)

    def roll(self, field: Field, at: ShootingState) -> Float[Array, "r n d"]:
        """The rows of all pieces: a step from row to row, or a fresh start where the mask says so."""

        def to_next(x, hs):
            for h in hs:
                x, _ = self.integrator.advance(field, x, h)
            return (x,)

        return _in_pieces(to_next, self.recording, at)[0]

    @eqx.filter_jit
    def solved(self, at: ShootingState) -> Solved:
        """How the steps of an iterate went; explicit ones have nothing to solve."""
        field = self.field(at)

        def to_next(x, hs):
            infos = []
            for h in hs:
                x, info = self.integrator.advance(field, x, h)
                infos.append((info.converged | (h == 0), jnp.where(h == 0, 0.0, info.residual)))
            return x, *map(jnp.stack, zip(*infos, strict=True))

        _, converged, residual = _in_pieces(to_next, self.recording, at)
        steps = jnp.maximum(jnp.count_nonzero(self.recording.steps), 1)
        return Solved(1 - jnp.count_nonzero(~converged) / steps, residual.max(initial=0.0))

    def tangent(self, at: ShootingState, features: Features | None = None) -> tuple[Tangent, Float[Array, "r n d p"]]:
        """The rollout of u, with random features if there are any, and its derivatives; also J, by u."""
        field = self.field(at, features)
        to_next = lambda x, hs: _interval(self.integrator, field, x, hs)
        rows, by_row, points, by_field = _in_pieces(to_next, self.recording, at)
        stays = ~at.restart[:, 1:]
        by_row, by_field = by_row * stays[:, :, None, None], by_field * stays[:, :, None, None, None]
        free = at.free(self.recording)[:, :, None, None] * jnp.eye(rows.shape[2])[None, None]
        along = Tangent(rows, by_row, points, by_field, _accumulate(by_row, free[:, 1:], free[:, 0]), rows)
        j = self.response(along)
        return along._replace(linear_part=j @ at.u), j

    def response(self, along: Tangent) -> Float[Array, "r n d p"]:
        """J = ∂x/∂u along a rollout, which other kernels may have made: B = C Φ with Φ = ∂f/∂u at the points."""
        r, n, s, d = along.points.shape
        design = self.posterior.design(along.points.reshape(-1, d)).reshape(r, n, s, d, -1)
        by_u = jnp.einsum("rnskl,rnslp->rnkp", along.by_field, design)
        return _accumulate(along.by_row, by_u, jnp.zeros((r, d, by_u.shape[-1])))

    def cost(
        self, at: ShootingState, rows: Float[Array, "r n d"], prior_mean: float | Float[Array, " p"] = 0.0
    ) -> Scalar:
        """What is minimised: misfit of the rows, and how far u and the free starts are from their prior means."""
        recording = self.recording
        error = jnp.where(recording.observed, (rows - recording.states) / self.noise[None, None, :], 0.0)
        away = (at.starts - recording.centre[:, None, :]) / recording.start_std[None, None, :]
        away = jnp.where(at.free(recording)[:, :, None], away, 0.0)
        return jnp.sum(error**2) + jnp.sum((at.u - prior_mean) ** 2) + jnp.sum(away**2)

    def regression(
        self, at: ShootingState, along: Tangent, j: Float[Array, "r n d p"], starts: int | None = None
    ) -> Regression:
        """The normal equations; `starts`: at most so many a piece, any by default."""
        recording, noise = self.recording, self.noise
        weight = jnp.where(recording.observed, 1 / noise[None, None, :], 0.0)
        target = weight * (recording.states - along.rows + along.linear_part)
        by_u = weight[:, :, :, None] * j
        by_v = weight[:, :, :, None] * along.by_start * noise[None, None, None, :]
        piece, most = jnp.cumsum(at.restart, axis=1) - 1, starts or at.restart.shape[1]

        def gather(values):
            """Sums over the rows of each piece between restarts."""
            return jax.vmap(lambda v, index: jax.ops.segment_sum(v, index, num_segments=most))(values, piece)

        # The prior of a start, seen from where it is: v ~ N((centre - s*)/σ, (start_std/σ)²).
        free, prior = at.free(recording)[:, :, None], self.prior
        away = gather(jnp.where(free, (recording.centre[:, None, :] - at.starts) / noise[None, None, :], 0.0))
        return Regression(
            square=jnp.sum(target**2) + jnp.sum(prior[None, None, :] * away**2),
            matrix=jnp.einsum("rnkp,rnkq->pq", by_u, by_u) + jnp.eye(j.shape[3]),
            right=jnp.einsum("rnkp,rnk->p", by_u, target),
            local_matrix=gather(jnp.einsum("rnki,rnkj->rnij", by_v, by_v)) + jnp.diag(prior)[None, None],
            local_right=gather(jnp.einsum("rnki,rnk->rni", by_v, target)) + prior[None, None, :] * away,
            coupling=gather(jnp.einsum("rnkp,rnki->rnpi", by_u, by_v)),
        )

    def solve(self, equations: Regression, u: Float[Array, " p"], damping: float | Scalar = 0.0) -> Solution:
        """The best u and v; with damping, those that stay close to the present u and to v = 0."""
        prior = self.prior
        d = prior.shape[0]
        local = equations.local_matrix + damping * jnp.eye(d)[None, None]
        inverse, log_determinants = _inverted(local)
        weighed = jnp.einsum("rnpi,rnij->rnpj", equations.coupling, inverse)
        precision = equations.matrix + damping * jnp.eye(u.shape[0])
        precision = precision - jnp.einsum("rnpj,rnqj->pq", weighed, equations.coupling)
        right = equations.right + damping * u - jnp.einsum("rnpj,rnj->p", weighed, equations.local_right)
        root = jax.scipy.linalg.cho_factor(precision, lower=True)
        best = jax.scipy.linalg.cho_solve(root, right)
        left = equations.local_right - jnp.einsum("rnpi,p->rni", equations.coupling, best)
        v = jnp.einsum("rnij,rnj->rni", inverse, left)
        cost = equations.square - equations.right @ best - jnp.sum(equations.local_right * v)
        log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(root[0])))
        log_determinant += jnp.sum(log_determinants - jnp.sum(jnp.log(prior)))
        return Solution(best, v, precision, cost, log_determinant)

    def log_evidence(self, solution: Solution) -> Scalar:
        """log p(x̂) of the linear model: the fit, less what the parameters were free to do."""
        count = self.recording.observed.sum(axis=(0, 1))
        fit = -(solution.cost + solution.log_determinant) / 2
        return fit - jnp.sum(count * (jnp.log(self.noise) + jnp.log(2 * jnp.pi) / 2))

    def moved(self, at: ShootingState, solution: Solution) -> ShootingState:
        """Where the solution says that u and the starts are best."""
        piece = jnp.cumsum(at.restart, axis=1) - 1
        v = jnp.take_along_axis(solution.v, piece[:, :, None], axis=1)
        starts = at.starts + jnp.where(at.free(self.recording)[:, :, None], self.noise[None, None, :] * v, 0.0)
        return ShootingState(solution.u, starts, at.restart)

    @eqx.filter_jit
    def linearise(self, at: ShootingState) -> Linearised:
        """The linear model around an iterate, and what the iterate costs."""
        along, j = self.tangent(at)
        return Linearised(along, self.regression(at, along, j), self.cost(at, along.rows))

    @eqx.filter_jit
    def improved(self, at: ShootingState, equations: Regression, damping: Scalar) -> tuple[ShootingState, Solution]:
        """The next iterate."""
        solution = self.solve(equations, at.u, damping)
        return self.moved(at, solution), solution

    def descend(
        self, at: ShootingState, enough: float = ENOUGH, damping: float = 1e-2
    ) -> tuple[ShootingState, Linearised]:
        """Levenberg-Marquardt: a step that lowers the cost is taken and trusted more, another is shortened."""
        here = self.linearise(at)
        for _ in range(ITERATIONS):
            new, _ = self.improved(at, here.equations, on_device(damping))
            there = self.linearise(new)
            if not float(there.cost) < float(here.cost):  # also where it is not a number
                damping *= 10
                if damping > 1e8:
                    break
                continue
            done = float(here.cost - there.cost) < enough * float(here.cost)
            here, at, damping = there, new, damping / 5
            if done:
                break
        return at, here


def _in_pieces(to_next: Callable, recording: Recording, at: ShootingState) -> tuple[Array, ...]:
    """The rows of all pieces, from `to_next(row, steps)`, and whatever that gives beside the next row."""

    def piece(starts, restart, steps):
        def one(x, inputs):
            start, again, hs = inputs
            x, *beside = to_next(x, hs)
            x = jnp.where(again, start, x)
            return x, (x, *beside)

        _, (rows, *beside) = jax.lax.scan(one, starts[0], (starts[1:], restart[1:], steps))
        return jnp.concatenate([starts[:1], rows]), *beside

    return jax.vmap(piece)(at.starts, at.restart, recording.steps)


def _interval(integrator: Integrator, field: Field, x: State, hs: Float[Array, " m"]):
    """The next row, and A, points and C of the steps to it."""
    by_row, points, by_field = jnp.eye(x.shape[0]), [], []
    for h in hs:
        step = respond(integrator, field, x, h)
        x, by_row = step.x, step.by_state @ by_row
        by_field = [step.by_state @ earlier for earlier in by_field] + [step.by_field]
        points.append(step.points)
    return x, by_row, jnp.concatenate(points), jnp.concatenate(by_field)


def _accumulate(by_row, added, first):
    """Yₙ₊₁ = Aₙ Yₙ + addedₙ, in every piece."""

    def piece(by_row, added, first):
        def to_next(y, inputs):
            a, b = inputs
            y = a @ y + b
            return y, y

        return jnp.concatenate([first[None], jax.lax.scan(to_next, first, (by_row, added))[1]])

    return jax.vmap(piece)(by_row, added, first)


def _inverted(matrices: Float[Array, "r n d d"]) -> tuple[Float[Array, "r n d d"], Float[Array, "r n"]]:
    """Inverses, and logarithms of the determinants."""
    both = lambda matrix: (jnp.linalg.inv(matrix), jnp.linalg.slogdet(matrix)[1])
    return each(lambda row: each(both, row), matrices)
