"""The linear model with everything written out: one full Jacobian, no elimination, no recursion."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sgpd import integrators, structures, systems
from sgpd.data import Trajectories, windows
from sgpd.fields import SplitField
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Layout, Recording, Rollouts
from sgpd.inference.starts import smoothed_rows

NOISE = jnp.array([0.05, 0.08])
METHODS = {  # a structure, its inducing points and a method of each kind: split, implicit, explicit
    "stormer-verlet": (structures.Separable(), 5),
    "implicit-midpoint": (structures.Hamiltonian(), 9),
    "rk4": (structures.Free(), 9),
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
def first_guess(method, pinned, rows, every):
    structure, points = METHODS[method]
    data, pieces = two_runs(rows=rows)
    layout = Layout.of(pieces, [every])
    layout = replace(layout, capacity=layout.blocks + 1)  # derivatives by all starts are written out
    known = np.array(pinned)
    states = jnp.asarray(layout.in_blocks(smoothed_rows(data, pieces, known)))
    return initial_posterior(structure, data, points=points), layout, Recording.of(data, pieces, known, layout), states


class Problem(NamedTuple):
    """The model of a first guess, and where the fit stands."""

    model: LinearModel
    at: ShootingState
    layout: Layout


def problem(method, every=100, pinned=(True, False), rows=(17, 11)):
    """With rollouts that begin anew every so many rows."""
    posterior, layout, recording, states = first_guess(method, pinned, rows, every)
    model = LinearModel(posterior, integrators.get(method), recording, NOISE)
    return Problem(model, ShootingState(posterior.flat_mean, states, Rollouts.every(every, layout)), layout)


def roll(model, field, at, place):
    """The rows of all pieces, step by step."""
    line = lambda blocks: blocks.reshape(-1, *blocks.shape[2:])

    def one(x, entry):
        start, begins, h = entry
        x = jnp.where(begins, start, model.integrator.advance(field, x, h)[0])
        return x, x

    entries = tuple(map(line, (at.starts, at.rollouts.begins, model.recording.steps)))
    return jax.lax.scan(one, jnp.zeros(len(model.noise)), entries)[1][place]


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


@eqx.filter_jit
def jacobians(model, changed, at, place, features=None):
    """The rows, and their derivatives by u, by values that are added under another posterior's kernels, by starts."""

    def rows(u, extra, starts):
        there = ShootingState(u, starts, at.rollouts)
        return roll(model, _sum(model.field(u, features), changed.field(changed.unravel(extra))), there, place)

    arguments = at.u, jnp.zeros_like(at.u), at.starts
    return rows(*arguments), *jax.jacfwd(rows, argnums=(0, 1, 2))(*arguments)


def _sum(one, other):
    if isinstance(one, SplitField):
        return SplitField(lambda q: one.dp(q) + other.dp(q), lambda p: one.dq(p) + other.dq(p))
    return lambda x: one(x) + other(x)


def dense(given, noise=NOISE, changed=None):
    """The model around `at`; with the kernels of another posterior if one is `changed`, the rollout as it was."""
    model, at, layout = given
    recording = model.recording
    rows, by_u, by_extra, by_starts = jacobians(model, changed or model.posterior, at, layout.place)
    free, seen = np.asarray(at.free(recording)), layout.in_pieces(recording.observed) & layout.real[:, :, None]
    by_starts = np.asarray(by_starts)[:, :, :, free].reshape(*seen.shape, -1)
    starts = np.asarray(at.starts)[free].reshape(-1)
    tiled = lambda values: np.tile(values, free.sum())
    return Dense(
        data=layout.in_pieces(recording.states)[seen],
        offset=np.asarray(rows - by_u @ at.u - by_starts @ starts)[seen],
        design=np.concatenate([by_extra, by_starts], axis=-1)[seen],
        noise=np.broadcast_to(noise, seen.shape)[seen],
        prior_mean=np.concatenate([np.zeros(at.u.size), np.asarray(recording.centre)[free].reshape(-1)]),
        prior_std=np.concatenate([np.ones(at.u.size), tiled(recording.start_std)]),
        here=np.concatenate([at.u, starts]),
        unit=np.concatenate([np.ones(at.u.size), tiled(noise)]),
    )
