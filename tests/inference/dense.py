"""The linear model with everything written out: one full Jacobian, no elimination, no recursion."""

from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sgpd import integrators, structures, systems
from sgpd.data import Trajectories, windows
from sgpd.gp import Path
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.starts import smoothed_rows
from tests.inference.structures import Damped, Product

NOISE = np.array([0.05, 0.08])
METHODS = {  # a structure, its inducing points and a method of each kind: split, implicit, explicit
    "stormer-verlet": (structures.Separable(), 5, "stormer-verlet"),
    "implicit-midpoint": (structures.Hamiltonian(), 9, "implicit-midpoint"),
    "rk4": (structures.Free(), 9, "rk4"),
    # and fields that are not linear in their latents
    "exponential": (Damped(), 5, "implicit-midpoint"),
    "product": (Product(), 5, "heun"),
}


def two_runs(pinned=(True, False), rows=(17, 11), seed=0):
    """Short runs of a pendulum: the second is padded, the first has an interval of two steps and a missing value."""
    system, rng = systems.get("pendulum"), np.random.default_rng(seed)
    times = [np.delete(0.1 * np.arange(rows[0] + 1), 8), 0.1 * np.arange(rows[1])]
    starts = [system.x0, np.array([-1.0, 0.7])]
    states = [system.simulate(x, t) for x, t in zip(starts, times, strict=True)]
    states = [x + rng.normal(size=x.shape) * np.asarray(NOISE) for x in states]
    states[0][3, 1] = np.nan
    data = Trajectories.from_arrays(times, states)
    return data, windows(data, rows[0])


@cache
def first_guess(method, pinned, rows):
    structure, points, _ = METHODS[method]
    data, pieces = two_runs(rows=rows)
    known = np.array(pinned)
    recording = Recording.of(data, pieces, known)
    states = recording.in_line(smoothed_rows(data, pieces, known))
    return initial_posterior(structure, data, points=points), recording, states


class Problem(NamedTuple):
    """The model of a first guess, and where the fit stands."""

    model: LinearModel
    at: ShootingState


def problem(method, every=100, pinned=(True, False), rows=(17, 11)):
    """With rollouts that begin anew every so many rows."""
    posterior, recording, states = first_guess(method, pinned, rows)
    model = LinearModel.of(posterior, integrators.get(METHODS[method][2]), recording, NOISE)
    rollouts = recording.rollouts(every)
    return Problem(model, ShootingState(np.asarray(posterior.flat_mean), states[rollouts.first], rollouts))


def roll(integrator, field, steps, starts, begins):
    """All entries, step by step; `begins`: which rollout begins at an entry, or -1."""

    def one(x, entry):
        number, h = entry
        x = jnp.where(number >= 0, starts[number], integrator.advance(field, x, h)[0])
        return x, x

    return jax.lax.scan(one, jnp.zeros(starts.shape[1]), (begins, steps))[1]


def beginnings(at, length):
    """Which rollout begins at an entry, or -1."""
    numbers = np.full(length, -1)
    numbers[at.rollouts.first] = np.arange(len(at.starts))
    return numbers


class Dense(NamedTuple):
    """x̂ = offset + D (u, s) + noise with u ~ N(0, 1), s ~ N(centre, start_std²); one line for each observed value."""

    data: np.ndarray
    offset: np.ndarray
    design: np.ndarray  # D
    noise: np.ndarray
    prior_mean: np.ndarray
    prior_std: np.ndarray
    here: np.ndarray  # u* and s*, around which the model is linear
    unit: np.ndarray  # 1 for u and the noise for s: the fit's unit of length

    def solution(self, damping=0.0):
        """Mean and covariance of all unknowns; damping is a weak pull towards where they are."""
        # |A x - b|² by QR of A, in units of `unit`: normal equations would lose twice as many digits
        weight = np.sqrt(damping) / self.unit
        a = np.concatenate([self.design / self.noise[:, None], np.diag(1 / self.prior_std), np.diag(weight)])
        b = np.concatenate(
            [(self.data - self.offset) / self.noise, self.prior_mean / self.prior_std, weight * self.here]
        )
        q, r = np.linalg.qr(a * self.unit)
        root = self.unit[:, None] * np.linalg.inv(r)
        return root @ (q.T @ b), root @ root.T

    def marginal(self):
        """Mean and covariance of the data."""
        spread = self.design * self.prior_std
        return self.offset + self.design @ self.prior_mean, spread @ spread.T + np.diag(self.noise**2)


def jacobians(model, changed, at, features=None):
    """The entries, and their derivatives by u, by values added under another posterior's kernels, and by starts."""
    recording = model.recording
    return _jacobians(
        *(model.kernels.posterior, changed, model.integrator, features),
        *map(jnp.asarray, (at.u, at.starts, recording.steps, beginnings(at, len(recording)))),
    )


@eqx.filter_jit
def _jacobians(posterior, changed, integrator, features, u, starts, steps, begins):
    def rows(u, extra, starts):
        paths = posterior.paths(posterior.unravel(u), features), changed.paths(changed.unravel(extra))
        field = posterior.assembled([Both(*pair) for pair in zip(*paths, strict=True)])
        return roll(integrator, field, steps, starts, begins)

    arguments = u, jnp.zeros_like(u), starts
    return rows(*arguments), *jax.jacfwd(rows, argnums=(0, 1, 2))(*arguments)


class Both(eqx.Module):
    """The sum of two functions."""

    one: Path
    other: Path

    def __call__(self, x):
        return self.one(x) + self.other(x)

    def gradient(self, x):
        return self.one.gradient(x) + self.other.gradient(x)


def dense(given, noise=NOISE, changed=None):
    """The model around `at`; with the kernels of another posterior if one is `changed`, the rollout as it was."""
    model, at = given
    recording = model.recording
    rows, by_u, by_extra, by_starts = map(np.asarray, jacobians(model, changed or model.kernels.posterior, at))
    free, seen = at.rollouts.free, recording.observed
    by_starts = by_starts[:, :, free].reshape(*seen.shape, -1)
    starts = at.starts[free].reshape(-1)
    tiled = lambda values: np.tile(values, free.sum())
    return Dense(
        data=recording.states[seen],
        offset=(rows - by_u @ at.u - by_starts @ starts)[seen],
        design=np.concatenate([by_extra, by_starts], axis=-1)[seen],
        noise=np.broadcast_to(noise, seen.shape)[seen],
        prior_mean=np.concatenate([np.zeros(at.u.size), tiled(recording.center)]),
        prior_std=np.concatenate([np.ones(at.u.size), tiled(recording.start_std)]),
        here=np.concatenate([at.u, starts]),
        unit=np.concatenate([np.ones(at.u.size), tiled(noise)]),
    )
