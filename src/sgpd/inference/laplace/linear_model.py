"""The model seen from one rollout: linear in the field's values and in the starts, and Gaussian.

Along a rollout x* of a reference field f*, to first order in a change of the field and of the start,

    xₙ = x*ₙ + Jₙ u - Jₙ* u* + Sₙ (s - s*)        Jₙ = Aₙ Jₙ₋₁ + Bₙ,  Sₙ = Aₙ Sₙ₋₁

where Aₙ is the derivative of a step by the state and Bₙ by the whitened inducing values u. Bₙ is made of the step's
derivative by the field's values at the points where it looks (an integrator's `respond`), and of those values'
derivative by u; only the latter changes with the kernel, which may be another than the one that made f*. With
u ~ N(0, I), s ~ N(centre, start_std²) and white noise this is Bayesian linear regression: the best u and s, their
covariance and the evidence are all in closed form. The starts are eliminated one by one (a Schur complement), so that
only u is ever solved for together.

Programs go through a recording block by block (`recording.py`), as far as it goes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import Scalar, on_device
from sgpd.fields import Field
from sgpd.inference.laplace.constants import ENOUGH, ITERATIONS, WRITTEN_OUT
from sgpd.inference.laplace.recording import Recording, Rollouts
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.integrators import Integrator
from sgpd.xla.triangular import inverse_root, on_diagonal

Tree = TypeVar("Tree")


class ShootingState(eqx.Module):
    """A state of the fit: whitened values, and starts at the entries where rollouts begin (others are ignored)."""

    u: Float[Array, " p"]
    starts: Float[Array, "b k d"]
    rollouts: Rollouts

    def free(self, recording: Recording) -> Bool[Array, "b k"]:
        """Where rollouts begin at states that are not known."""
        return self.rollouts.begins & ~recording.pinned


class Tangent(NamedTuple):
    """A rollout and how later rows move with earlier ones and with the field at the points where the steps look."""

    rows: Float[Array, "*b k d"]
    by_row: Float[Array, "*b k d d"]  # A; 0 where a rollout begins
    points: Float[Array, "*b k s d"]
    by_field: Float[Array, "*b k s d d"]  # C, by the field's value at each point; 0 where a rollout begins
    by_start: Float[Array, "*b k d d"]  # S; 0 where the start is exact
    linear_part: Float[Array, "*b k d"]  # J* u*: what the linear model takes the field to have contributed
    converged: Bool[Array, "*b k"]  # the stage equations of an implicit step
    residual: Float[Array, "*b k"]  # of the worst of them


class About(NamedTuple):
    """What the data say about starts v, in units of the noise, and about them together with u."""

    matrix: Float[Array, "*starts d d"]
    right: Float[Array, "*starts d"]
    coupling: Float[Array, "*starts p d"]


class Regression(NamedTuple):
    """Normal equations of the linear model, for u and for each start."""

    square: Scalar
    matrix: Float[Array, "p p"]
    right: Float[Array, " p"]
    starts: About  # by block and slot; where no rollout ends, what the prior says

    def of_pieces(self, slots: Int[np.ndarray, " r"]) -> "Regression":
        """The same, piece by piece, if there is one rollout in each."""
        take = lambda leaf: on_device(np.asarray(leaf).reshape(-1, *leaf.shape[2:])[slots])
        return self._replace(starts=About(*map(take, self.starts)))

    def cost(self, u: Float[Array, " p"], v: Float[Array, "r d"]) -> Scalar:
        """Squares of residuals and prior, piece by piece."""
        of_u = u @ self.matrix @ u - 2 * self.right @ u
        of_v = jnp.einsum("rij,ri,rj->", self.starts.matrix, v, v) - 2 * jnp.sum(self.starts.right * v)
        return self.square + of_u + of_v + 2 * jnp.einsum("rpi,p,ri->", self.starts.coupling, u, v)


class Sums(NamedTuple):
    """Normal equations for u alone: what is known of the starts has been put in."""

    square: Scalar
    matrix: Float[Array, "p p"]
    right: Float[Array, " p"]
    log_determinant: Scalar  # of the precision of the starts, against the prior's

    def solved(self) -> "Solution":
        """The best u."""
        root = jnp.linalg.cholesky(self.matrix)
        best = jax.scipy.linalg.cho_solve((root, True), self.right)
        log_determinant = self.log_determinant + 2 * jnp.sum(jnp.log(jnp.diagonal(root)))
        return Solution(best, self.matrix, self.square - self.right @ best, log_determinant)


class Solution(NamedTuple):
    """The best u, and what is left over."""

    u: Float[Array, " p"]
    precision: Float[Array, "p p"]  # of u, with the starts integrated out
    cost: Scalar  # squares of residuals and prior
    log_determinant: Scalar  # of the precision of u and all starts, against the prior's


class Linearised(NamedTuple):
    """The model seen from one iterate."""

    along: Tangent
    equations: Regression
    cost: Scalar


class Changeable(NamedTuple):
    """All of a linear model that the evidence may change, with what is made of it once for all rows."""

    logarithms: list[Array]
    whitening: tuple[Array, ...]
    noise: Float[Array, " d"]


class LinearModel(eqx.Module):
    """A posterior's field, stepped along a recording that has such noise."""

    posterior: FieldPosterior
    integrator: Integrator
    recording: Recording
    noise: Float[Array, " d"]  # standard deviation, by channel

    @property
    def prior(self) -> Float[Array, " d"]:
        """The precision of a start beforehand, in units of the noise."""
        return _prior(self.noise, self.recording)

    def field(self, u: Float[Array, " p"], features: Features | None = None) -> Field:
        """That of whitened values, with random features if there are any."""
        return self.posterior.field(self.posterior.unravel(u), features)

    def misfit(self, field: Field, starts: Float[Array, "r d"], of: Int[Array, "b k"], rollouts: Rollouts) -> Scalar:
        """Squares of the residuals of a field's rollouts, in units of the noise; `of`: to which start an entry goes."""

        def one(x, entry):
            piece, begins, h, state, observed = entry
            x = jnp.where(begins, starts[piece], self.integrator.advance(field, x, h)[0])
            return x, jnp.sum(jnp.where(observed, (x - state) / self.noise, 0.0) ** 2)

        def add(entries, carry):
            x, total = carry
            x, squares = jax.lax.scan(one, x, entries)
            return x, total + squares.sum()

        recording, nowhere = self.recording, jnp.zeros_like(self.noise)
        entries = (of, rollouts.begins, recording.steps, recording.states, recording.observed)
        return self._through(add, entries, (nowhere, jnp.zeros(())))[1]

    @eqx.filter_jit
    def tangent(self, at: ShootingState, features: Features | None = None) -> Tangent:
        """The rollouts of u, with random features if there are any, and their derivatives."""
        posterior, d = self.posterior.ready(), self.noise.shape[0]
        field, linear = (posterior.field(posterior.unravel(at.u), some) for some in (features, None))

        def one(x, entry):
            start, begins, h = entry
            step = self.integrator.respond(field, x, h)
            x, idle = jnp.where(begins, start, step.x), begins | (h == 0)
            by_row, by_field = (jnp.where(begins, 0.0, each) for each in (step.by_state, step.by_field))
            went = (idle | step.info.converged, jnp.where(idle, 0.0, step.info.residual))
            return x, (x, by_row, step.points, by_field, *went)

        def block(entries, carry):
            (start, begins, free, h), (x, since) = entries, carry
            x, (rows, by_row, points, by_field, *went) = jax.lax.scan(one, x, (start, begins, h))
            added = jnp.einsum("kscd,ksd->kc", by_field, jax.vmap(jax.vmap(linear))(points))
            identity = free[:, None, None] * jnp.eye(d)[None]
            added = jnp.where(begins[:, None], 0.0, added)  # whatever became of the rollout before
            added = jnp.concatenate([identity, added[:, :, None]], axis=2)
            since, both = _accumulate(begins, by_row, added, since)
            return (x, since), Tangent(rows, by_row, points, by_field, both[:, :, :d], both[:, :, d], *went)

        entries = (at.starts, at.rollouts.begins, at.free(self.recording), self.recording.steps)
        return self._kept(block, entries, (jnp.zeros(d), jnp.zeros((d, d + 1))))[1]

    @eqx.filter_jit
    def regression(self, at: ShootingState, along: Tangent) -> tuple[Regression, Scalar]:
        """The normal equations, and the cost; kernels and noise may be others than those that made the rollout."""
        now, entries = self._changeable(), self._entries(at, along)
        p, d = at.u.shape[0], self.noise.shape[0]

        def add(block, carry):
            goes_on, sums = carry
            goes_on, added, starts = self._equations(now, block, goes_on)
            return (goes_on, jax.tree.map(jnp.add, sums, added)), starts

        zero = (_nothing(p, d), (jnp.zeros(()), jnp.zeros((p, p)), jnp.zeros(p)))
        (_, (square, matrix, right)), starts = self._kept(add, entries, zero, self._wide(at))
        return Regression(square, matrix + jnp.eye(p), right, starts), self.cost(at, along)

    def sums(self, at: ShootingState, along: Tangent) -> Sums:
        """The normal equations for u alone, with derivatives by kernels and noise."""
        start = (jnp.zeros(()), jnp.eye(at.u.shape[0]), jnp.zeros(at.u.shape), jnp.zeros(()))
        fixed = jax.tree.map(lambda leaf: jax.lax.stop_gradient(leaf) if eqx.is_inexact_array(leaf) else leaf, self)
        return jax.tree.map(jnp.add, Sums(*start), _summed(self._changeable(), fixed, at, along))

    def solve(self, equations: Regression, u: Float[Array, " p"], damping: float | Scalar = 0.0) -> Solution:
        """The best u; with damping, one close to the present u and, for the starts, to v = 0."""
        eye = jnp.eye(u.shape[0])
        reduced = Sums(equations.square, equations.matrix + damping * eye, equations.right + damping * u, jnp.zeros(()))
        add = lambda starts, sums: jax.tree.map(jnp.add, sums, _eliminated(starts, self.prior, damping))
        return self._through(add, equations.starts, reduced).solved()

    def log_evidence(self, solution: Solution) -> Scalar:
        """log p(x̂) of the linear model: the fit, less what the parameters were free to do."""
        count = self.recording.observed.sum(axis=(0, 1))
        fit = -(solution.cost + solution.log_determinant) / 2
        return fit - jnp.sum(count * (jnp.log(self.noise) + jnp.log(2 * jnp.pi) / 2))

    def moved(
        self, at: ShootingState, equations: Regression, u: Float[Array, " p"], damping: float | Scalar = 0.0
    ) -> ShootingState:
        """To these values, and to the starts that are best with them."""

        def best(starts: About, _):
            inverse, _ = _inverse(starts.matrix + damping * jnp.eye(len(self.noise))[None])
            return None, jnp.einsum("qij,qj->qi", inverse, starts.right - jnp.einsum("qpi,p->qi", starts.coupling, u))

        v = self._kept(best, equations.starts, None)[1].reshape(-1, len(self.noise))
        step = jnp.where(at.free(self.recording)[:, :, None], self.noise[None, None, :] * v[at.rollouts.ends], 0.0)
        return ShootingState(u, at.starts + step, at.rollouts)

    def linearise(self, at: ShootingState) -> Linearised:
        """The linear model around an iterate, and what the iterate costs."""
        along = self.tangent(at)
        return Linearised(along, *self.regression(at, along))

    def cost(self, at: ShootingState, along: Tangent, prior_mean: float | Float[Array, " p"] = 0.0) -> Scalar:
        """What is minimised: misfit of the rows, and how far u and the free starts are from their prior means."""
        recording = self.recording
        error = jnp.where(recording.observed, (along.rows - recording.states) / self.noise[None, None, :], 0.0)
        away = (at.starts - recording.centre) / recording.start_std[None, None, :]
        away = jnp.where(at.free(recording)[:, :, None], away, 0.0)
        return jnp.sum(error**2) + jnp.sum((at.u - prior_mean) ** 2) + jnp.sum(away**2)

    @eqx.filter_jit
    def improved(self, at: ShootingState, equations: Regression, damping: Scalar) -> ShootingState:
        """The next iterate."""
        return self.moved(at, equations, self.solve(equations, at.u, damping).u, damping)

    def descend(
        self, at: ShootingState, enough: float = ENOUGH, damping: float = 1e-2
    ) -> tuple[ShootingState, Linearised]:
        """Levenberg-Marquardt: a step that lowers the cost is taken and trusted more, another is shortened."""
        here = self.linearise(at)
        for _ in range(ITERATIONS):
            new = self.improved(at, here.equations, on_device(damping))
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

    def _changeable(self) -> Changeable:
        logarithms = [leaf for group in self.posterior.groups for leaf in group.logarithms]
        return Changeable(logarithms, tuple(group.whitening for group in self.posterior.groups), self.noise)

    def _under(self, now: Changeable) -> FieldPosterior:
        """The posterior with those kernels, whose matrices need no factors any more."""
        where = lambda p: [leaf for group in p.groups for leaf in group.logarithms]
        posterior = eqx.tree_at(where, self.posterior, now.logarithms)
        where = lambda p: [group.known_whitening for group in p.groups]
        return eqx.tree_at(where, posterior, list(now.whitening), is_leaf=lambda leaf: leaf is None)

    def _entries(self, at: ShootingState, along: Tangent) -> "_Entries":
        recording = self.recording
        free, rollouts = at.free(recording), at.rollouts
        return _Entries(along, recording.states, recording.observed, recording.centre - at.starts, free, rollouts)

    def _equations(self, now: Changeable, block: "_Entries", goes_on: "_GoesOn"):
        """What one block adds for u, and what is known of the starts of rollouts that end in it."""
        along, noise = block.along, now.noise
        k, s, d = along.points.shape
        prior = _prior(noise, self.recording)
        design = self._under(now).design(along.points.reshape(-1, d)).reshape(k, s, d, -1)
        begins = block.rollouts.begins
        by_values = jnp.einsum("kscd,ksdp->kcp", along.by_field, design)
        by_values = jnp.where(begins[:, None, None], 0.0, by_values)
        j_last, j = _accumulate(begins, along.by_row, by_values, goes_on.by_u)

        weight = jnp.where(block.observed, 1 / noise[None, :], 0.0)
        target = weight * (block.states - along.rows + along.linear_part)
        by_u, by_v = weight[:, :, None] * j, weight[:, :, None] * along.by_start * noise[None, None, :]
        # The prior of a start, seen from where it is: v ~ N((centre - s*)/σ, (start_std/σ)²).
        away = jnp.where(block.free[:, None], block.away / noise[None, :], 0.0)

        slots = jnp.arange(block.rollouts.complete.shape[0])
        of_slot = (block.rollouts.slot[None, :] == slots[:, None]) * 1.0  # (q, k)
        gather = lambda values: jnp.tensordot(of_slot, values, 1)
        first = lambda before, here: here.at[0].add(before)
        matrix = first(goes_on.about.matrix, gather(jnp.einsum("kci,kcj->kij", by_v, by_v)))
        right = first(goes_on.about.right, gather(jnp.einsum("kci,kc->ki", by_v, target)))
        coupling = first(goes_on.about.coupling, gather(jnp.einsum("kcp,kci->kpi", by_u, by_v)))
        away = first(goes_on.away, gather(away))

        last, complete = block.rollouts.slot[-1], block.rollouts.complete
        still = lambda values: jnp.where(complete[last], 0.0, values[last])
        rest = _GoesOn(j_last, About(still(matrix), still(right), still(coupling)), still(away))
        said = lambda values: jnp.where(complete.reshape(-1, *[1] * (values.ndim - 1)), values, 0.0)
        away = said(away)
        square = jnp.sum(target**2) + jnp.sum(prior[None, :] * away**2)
        about = About(said(matrix) + jnp.diag(prior)[None], said(right) + prior[None, :] * away, said(coupling))
        flat = by_u.reshape(k * d, -1)
        return rest, (square, flat.T @ flat, flat.T @ target.reshape(-1)), about

    def _wide(self, at: ShootingState) -> bool:
        """Whether products of matrices are better left to a library."""
        return at.u.shape[0] * len(self.noise) > WRITTEN_OUT

    def _through(self, add: Callable[[Any, Tree], Tree], blocks: Any, carry: Tree) -> Tree:
        """The carry after all blocks that are used."""
        return jax.lax.fori_loop(0, self.recording.used, lambda i, carry: add(_block(blocks, i), carry), carry)

    def _kept(self, step: Callable, blocks: Any, carry: Tree, wide: bool = False) -> tuple[Tree, Any]:
        """The carry after all blocks that are used, and what a step gives beside it; 0 for the others.

        `wide`: whether a step is mostly products of large matrices.
        """
        step = jax.jit(step)  # traced once, though it is asked twice
        given = jax.eval_shape(lambda: step(_block(blocks, 0), carry)[1])
        room = self.recording.steps.shape[0]
        kept = jax.tree.map(lambda leaf: jnp.zeros((room, *leaf.shape), leaf.dtype), given)

        def one(i, state):
            carry, kept = state
            i = _by_library(i) if wide else i
            carry, given = step(_block(blocks, i), carry)
            return carry, jax.tree.map(lambda of_all, of_one: of_all.at[i].set(of_one), kept, given)

        return jax.lax.fori_loop(0, self.recording.used, one, (carry, kept))


class _Entries(NamedTuple):
    """What the equations are made of."""

    along: Tangent
    states: Float[Array, "*b k d"]
    observed: Bool[Array, "*b k d"]
    away: Float[Array, "*b k d"]  # from a start to its prior mean
    free: Bool[Array, "*b k"]
    rollouts: Rollouts


class _GoesOn(NamedTuple):
    """A rollout that goes on from one block to the next: J, and what is known so far of its start."""

    by_u: Float[Array, "d p"]
    about: About
    away: Float[Array, " d"]


def _prior(noise: Float[Array, " d"], recording: Recording) -> Float[Array, " d"]:
    return (noise / recording.start_std) ** 2


def _nothing(p: int, d: int) -> _GoesOn:
    return _GoesOn(jnp.zeros((d, p)), About(jnp.zeros((d, d)), jnp.zeros(d), jnp.zeros((p, d))), jnp.zeros(d))


def _block(blocks: Tree, i: Int[Array, ""] | int) -> Tree:
    return jax.tree.map(lambda leaf: leaf[i], blocks)


def _by_library(i: Int[Array, ""]) -> Int[Array, ""]:
    """i = √i², by LAPACK.

    A loop that calls no library becomes one kernel (`xla/tuning.py`), in which XLA writes products of matrices out:
    for two bodies the equations then take 19 ms instead of 2.7.
    """
    return jnp.round(jnp.linalg.cholesky(jnp.reshape(1.0 * i**2, (1, 1)))[0, 0]).astype(i.dtype)


def _accumulate(begins: Bool[Array, " k"], by_row: Float[Array, "k d d"], added: Float[Array, "k d n"], before):
    """Yₙ = Aₙ Yₙ₋₁ + addedₙ, or addedₙ where a rollout begins: the last one, and all."""

    def one(y, entry):
        anew, a, b = entry
        y = jnp.where(anew, b, a @ y + b)
        return y, y

    return jax.lax.scan(one, before, (begins, by_row, added))


def _inverse(matrix: Float[Array, "q d d"]) -> tuple[Float[Array, "q d d"], Scalar]:
    """Of each, and the sum of the logarithms of their determinants."""
    root = jax.vmap(inverse_root)(matrix)
    return jnp.einsum("qki,qkj->qij", root, root), -2 * jnp.sum(jnp.log(on_diagonal(root)))


def _eliminated(starts: About, prior: Float[Array, " d"], damping: float | Scalar = 0.0) -> Sums:
    """What the equations for u gain by putting in the best starts."""
    inverse, log_determinant = _inverse(starts.matrix + damping * jnp.eye(prior.shape[0])[None])
    weighed = jnp.einsum("qpi,qij->pqj", starts.coupling, inverse)
    square = jnp.einsum("qi,qij,qj->", starts.right, inverse, starts.right)
    matrix = jnp.einsum("pqj,rqj->pr", weighed, jnp.swapaxes(starts.coupling, 0, 1))
    right = jnp.einsum("pqj,qj->p", weighed, starts.right)
    log_determinant -= starts.right.shape[0] * jnp.sum(jnp.log(prior))
    return Sums(-square, -matrix, -right, log_determinant)


@eqx.filter_custom_vjp
def _summed(now: Changeable, model: LinearModel, at: ShootingState, along: Tangent) -> Sums:
    """The sums over all blocks, prior of u left out; going back through them takes the blocks in reverse."""
    return _forward(now, model, at, along)[0]


def _summed_block(now: Changeable, goes_on: _GoesOn, model: LinearModel, block: _Entries) -> tuple[_GoesOn, Sums]:
    goes_on, (square, matrix, right), starts = model._equations(now, block, goes_on)
    prior = _prior(now.noise, model.recording)
    own = Sums(square, matrix, right, jnp.zeros(()))
    return goes_on, jax.tree.map(jnp.add, own, _eliminated(starts, prior))


def _forward(now: Changeable, model: LinearModel, at: ShootingState, along: Tangent) -> tuple[Sums, _GoesOn]:
    """The sums, and what goes on into each block."""
    p, d = at.u.shape[0], now.noise.shape[0]

    def add(block, carry):
        before, sums = carry
        goes_on, added = _summed_block(now, before, model, block)
        return (goes_on, jax.tree.map(jnp.add, sums, added)), before

    zero = Sums(jnp.zeros(()), jnp.zeros((p, p)), jnp.zeros(p), jnp.zeros(()))
    entries = model._entries(at, along)
    (_, sums), before = model._kept(add, entries, (_nothing(p, d), zero), model._wide(at))
    return sums, before


@_summed.def_fwd
def _summed_forward(perturbed, now, model, at, along):
    del perturbed
    return _forward(now, model, at, along)


@_summed.def_bwd
def _summed_backward(before, by_sums, perturbed, now, *given):
    del perturbed
    model, at, along = given
    entries = model._entries(at, along)

    def back(index, carry):
        i = model.recording.used - 1 - index
        i = _by_library(i) if model._wide(at) else i
        by_goes_on, by_now = carry
        step = lambda now, goes_on: _summed_block(now, goes_on, model, _block(entries, i))
        _, pull = jax.vjp(step, now, _block(before, i))
        added, by_goes_on = pull((by_goes_on, by_sums))
        return by_goes_on, jax.tree.map(jnp.add, by_now, added)

    nothing = _nothing(at.u.shape[0], now.noise.shape[0])
    start = (nothing, jax.tree.map(jnp.zeros_like, now))
    return jax.lax.fori_loop(0, model.recording.used, back, start)[1]
