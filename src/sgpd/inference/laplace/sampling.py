"""Draws of the posterior where a Gaussian does not describe it.

The Gaussian is exact where the rollout is linear in its unknowns. Where it is not, a draw costs more or less than the
linear model says, and weighs exp(-half of that) in the posterior. While enough draws weigh something, those that do are
kept. Where hardly any does, every draw is a fit of its own: to data and prior with fresh noise added, from the optimum
(randomise-then-optimise). For a linear model these are exact draws of the posterior; for others an approximation
(Bardsley et al. 2014, without its reweighting).
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import Scalar, on_device
from sgpd.inference.laplace.constants import (
    PIECES,
    RANDOMISED_AT_ONCE,
    ROLLED_AT_ONCE,
    SEARCH_CONVERGED,
    SEARCH_ITERATIONS,
)
from sgpd.inference.laplace.linear_model import LinearModel, Regression, ShootingState
from sgpd.inference.laplace.recording import Layout, Rollouts, room_for
from sgpd.inference.posterior.field import Features
from sgpd.inference.posterior.joint import Drawn, Unknowns
from sgpd.xla.batches import in_batches


class Pieces(NamedTuple):
    """The starts of pieces, for rollouts that begin where pieces do, with room for more of them."""

    of: Int[Array, "b k"]  # to which piece an entry belongs
    here: Float[Array, "room d"]  # at the optimum
    centre: Float[Array, "room d"]  # of their prior
    free: Bool[Array, " room"]  # which are not known
    equations: Regression  # around the optimum, piece by piece

    @classmethod
    def at(cls, model: LinearModel, at: ShootingState, layout: Layout, equations: Regression) -> "Pieces":
        """Those of a recording."""
        numbers = np.broadcast_to(np.arange(len(layout.place))[:, None], layout.place.shape)
        first = lambda entries: on_device(padded(layout.in_pieces(entries)[:, 0]))
        of, by_piece = on_device(layout.in_blocks(numbers)), equations.of_pieces(at.rollouts.of_pieces(layout))
        starts = jax.tree.map(lambda leaf: on_device(padded(np.asarray(leaf))), by_piece.starts)
        free = first(at.free(model.recording))
        return cls(of, first(at.starts), first(model.recording.centre), free, by_piece._replace(starts=starts))


def padded(starts: np.ndarray, axis: int = 0) -> np.ndarray:
    """Zeros behind what is given for each piece, so that recordings of many numbers of pieces have one shape."""
    count = starts.shape[axis]
    return np.pad(starts, [(0, room_for(count, PIECES) - count if k == axis else 0) for k in range(starts.ndim)])


def extra_costs(
    model: LinearModel, at: ShootingState, layout: Layout, equations: Regression, drawn: Drawn
) -> Float[np.ndarray, " draws"]:
    """By how much more draws cost than the linear model around the optimum says: 0 where that model is right."""
    (u, starts), (frequencies, weights) = drawn
    pieces = Pieces.at(model, at, layout, equations)
    program = partial(_extra_costs, model, at.rollouts, pieces, frequencies)
    return in_batches(program, (Unknowns(u, on_device(padded(np.asarray(starts), 1))), weights), ROLLED_AT_ONCE)


@eqx.filter_jit
def _extra_costs(model: LinearModel, rollouts: Rollouts, pieces: Pieces, frequencies, draws):
    def one(unknowns: Unknowns, weights):
        u, starts = unknowns
        misfit = model.misfit(model.field(u, Features(frequencies, weights)), starts, pieces.of, rollouts)
        away = (starts - pieces.centre) / model.recording.start_std[None, :]
        cost = misfit + u @ u + jnp.sum(jnp.where(pieces.free[:, None], away, 0.0) ** 2)
        return cost - pieces.equations.cost(u, (starts - pieces.here) / model.noise[None, :])

    return jax.vmap(one)(*draws)


def weights_of(extra: Float[np.ndarray, " draws"]) -> Float[np.ndarray, " draws"]:
    """What draws of the Gaussian weigh in the posterior, 1 in all; one whose cost is not finite, nothing.

    Those above √n times the mean are cut to that before they are scaled (Ionides 2008).
    """
    finite = np.isfinite(extra)
    if not finite.any():
        return np.zeros(extra.shape)
    weights = np.exp(-(np.where(finite, extra, np.inf) - extra[finite].min()) / 2)
    weights = np.minimum(weights, np.sqrt(len(weights)) * weights.mean())
    return weights / weights.sum()


def importance_sample_size(weights: Float[np.ndarray, " draws"]) -> float:
    """1 / Σ w²: how many draws of equal weight are as good."""
    return float(1 / (weights**2).sum()) if weights.any() else 0.0


def resampled(rng: np.random.Generator, weights: Float[np.ndarray, " draws"], count: int) -> Int[np.ndarray, " kept"]:
    """Which draws to keep, so many in all, each as often as its weight says, to within one (systematic resampling)."""
    marks = (np.arange(count) + rng.uniform()) / count * weights.sum()
    return np.searchsorted(np.cumsum(weights), marks).clip(max=len(weights) - 1)


class Randomisation(NamedTuple):
    """Standard normals by which each draw changes its data and its prior."""

    values: Float[Array, "draws p"]
    states: Float[Array, "draws b k d"]
    starts: Float[Array, "draws b k d"]  # where pieces begin

    @classmethod
    def of(cls, rng: np.random.Generator, draws: int, unknowns: int, layout: Layout, d: int) -> "Randomisation":
        """So many."""
        shapes = ((unknowns,), (*layout.place.shape, d), (len(layout.place), d))
        streams = zip(rng.spawn(len(shapes)), shapes, strict=True)
        values, states, first = (stream.normal(size=(draws, *shape)) for stream, shape in streams)
        starts = np.zeros(states.shape)
        starts[:, :, 0] = first
        return cls(*map(on_device, (values, layout.in_blocks(states, 1), layout.in_blocks(starts, 1))))


class _Search(NamedTuple):
    """Levenberg-Marquardt on its way: where to look next, and the best place so far."""

    candidate: ShootingState
    place: ShootingState
    equations: Regression
    cost: Scalar
    damping: Scalar
    fall: Scalar  # of the cost, by the last step that was taken
    count: Int[Array, ""]


def randomise_then_optimise(
    model: LinearModel, at: ShootingState, layout: Layout, features: Features, randomisation: Randomisation
) -> tuple[Unknowns, Bool[np.ndarray, " draws"]]:
    """A draw of the posterior for each set of features, and which are usable: the cost is finite, the search has ended.

    Features are functions between the inducing points that the data say little about; the inducing values adapt to
    them. Every piece starts once. Where most of the first few are not usable, there are no others.
    """
    program = partial(_searched, model, at, features.frequencies)
    promising = lambda first: bool(np.mean(first[1]) >= 0.5)
    (u, starts), usable = in_batches(program, (features.weights, randomisation), RANDOMISED_AT_ONCE, go_on=promising)
    first = starts.reshape(len(starts), -1, starts.shape[-1])[:, layout.place[:, 0]]
    return Unknowns(on_device(u), on_device(first)), usable


@eqx.filter_jit
def _searched(model: LinearModel, at: ShootingState, frequencies, draws):
    recording = model.recording

    def one(draw):
        weights, (for_values, for_states, for_starts) = draw
        own = Features(frequencies, weights)
        states = recording.states + model.noise[None, None, :] * for_states
        centre = recording.centre + recording.start_std[None, None, :] * for_starts
        randomised = eqx.tree_at(lambda m: (m.recording.states, m.recording.centre), model, (states, centre))

        def improve(search: _Search) -> _Search:
            equations, price = _linearised(randomised, search.candidate, own, for_values)
            better = price < search.cost
            choose = lambda new, old: jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)
            place, equations = choose((search.candidate, equations), (search.place, search.equations))
            damping = jnp.where(better, search.damping / 5, search.damping * 10)
            candidate = randomised.improved(place, equations, damping)
            fall = jnp.where(better, search.cost - price, search.fall)
            lowest = jnp.where(better, price, search.cost)
            return _Search(candidate, place, equations, lowest, damping, fall, search.count + 1)

        equations, _ = jax.eval_shape(lambda: _linearised(randomised, at, own, for_values))
        nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), equations)
        infinite = jnp.array(jnp.inf)
        start = _Search(at, at, nothing, infinite, jnp.array(5e-2), infinite, jnp.array(0))
        unfinished = lambda search: (search.count < SEARCH_ITERATIONS) & ~(search.fall < SEARCH_CONVERGED)
        end = jax.lax.while_loop(unfinished, improve, start)
        usable = jnp.isfinite(end.cost) & (end.fall < SEARCH_CONVERGED)
        return Unknowns(end.place.u, end.place.starts), usable

    return jax.vmap(one)(draws)


def _linearised(model: LinearModel, at: ShootingState, features: Features, prior_mean: Float[Array, " p"]):
    along = model.tangent(at, features)
    equations, _ = model.regression(at, along)
    equations = equations._replace(
        square=equations.square + prior_mean @ prior_mean, right=equations.right + prior_mean
    )
    return equations, model.cost(at, along, prior_mean)
