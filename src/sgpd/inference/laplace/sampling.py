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
from sgpd.inference.laplace.constants import RANDOMISED_AT_ONCE, ROLLED_AT_ONCE, SEARCH_CONVERGED, SEARCH_ITERATIONS
from sgpd.inference.laplace.linear_model import LinearModel, Recording, Regression, ShootingState
from sgpd.inference.posterior.field import Features
from sgpd.inference.posterior.joint import Drawn, Unknowns
from sgpd.xla.batches import in_batches


def extra_costs(
    model: LinearModel, at: ShootingState, equations: Regression, drawn: Drawn
) -> Float[np.ndarray, " draws"]:
    """By how much more draws cost than the linear model around the optimum says: 0 where that model is right."""
    frequencies, weights = drawn.features
    program = partial(_extra_costs, model, at, equations, frequencies)
    return in_batches(program, (drawn.unknowns, weights), ROLLED_AT_ONCE)


@eqx.filter_jit
def _extra_costs(model: LinearModel, at: ShootingState, equations: Regression, frequencies, draws):
    def one(unknowns: Unknowns, weights):
        place = ShootingState(unknowns.u, at.starts.at[:, 0].set(unknowns.starts), at.restart)
        field = model.field(place, Features(frequencies, weights))
        expected = equations.cost(place.u, (unknowns.starts - at.starts[:, 0]) / model.noise[None, :])
        return model.cost(place, model.roll(field, place)) - expected

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
    states: Float[Array, "draws r n d"]
    starts: Float[Array, "draws r d"]

    @classmethod
    def of(cls, rng: np.random.Generator, draws: int, recording: Recording, at: ShootingState) -> "Randomisation":
        """So many."""
        shapes = (at.u.shape, recording.states.shape, recording.centre.shape)
        streams = zip(rng.spawn(len(shapes)), shapes, strict=True)
        return cls(*(on_device(stream.normal(size=(draws, *shape))) for stream, shape in streams))


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
    model: LinearModel, at: ShootingState, features: Features, randomisation: Randomisation
) -> tuple[Unknowns, Bool[Array, " draws"]]:
    """A draw of the posterior for each set of features, and which are usable: the cost is finite, the search has ended.

    Features are functions between the inducing points that the data say little about; the inducing values adapt to
    them. Every piece starts once. Where most of the first few are not usable, there are no others.
    """
    program = partial(_searched, model, at, features.frequencies)
    promising = lambda first: bool(np.mean(first[1]) >= 0.5)
    return jax.tree.map(
        on_device, in_batches(program, (features.weights, randomisation), RANDOMISED_AT_ONCE, go_on=promising)
    )


@eqx.filter_jit
def _searched(model: LinearModel, at: ShootingState, frequencies, draws):
    recording, noise = model.recording, model.noise

    def one(draw):
        weights, (for_values, for_states, for_starts) = draw
        own = Features(frequencies, weights)
        states = recording.states + noise[None, None, :] * for_states
        centre = recording.centre + recording.start_std[None, :] * for_starts
        randomised = eqx.tree_at(lambda m: (m.recording.states, m.recording.centre), model, (states, centre))

        def improve(search: _Search) -> _Search:
            equations, price = _linearised(randomised, search.candidate, own, for_values)
            better = price < search.cost
            choose = lambda new, old: jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)
            place, equations = choose((search.candidate, equations), (search.place, search.equations))
            damping = jnp.where(better, search.damping / 5, search.damping * 10)
            candidate = randomised.moved(place, randomised.solve(equations, place.u, damping))
            fall = jnp.where(better, search.cost - price, search.fall)
            lowest = jnp.where(better, price, search.cost)
            return _Search(candidate, place, equations, lowest, damping, fall, search.count + 1)

        pieces, d = centre.shape
        nothing = Regression.empty(pieces, d, at.u.size)
        infinite = jnp.array(jnp.inf)
        start = _Search(at, at, nothing, infinite, jnp.array(5e-2), infinite, jnp.array(0))
        unfinished = lambda search: (search.count < SEARCH_ITERATIONS) & ~(search.fall < SEARCH_CONVERGED)
        end = jax.lax.while_loop(unfinished, improve, start)
        usable = jnp.isfinite(end.cost) & (end.fall < SEARCH_CONVERGED)
        return Unknowns(end.place.u, end.place.starts[:, 0]), usable

    return jax.vmap(one)(draws)


def _linearised(model: LinearModel, at: ShootingState, features: Features, prior_mean: Float[Array, " p"]):
    along, j = model.tangent(at, features)
    equations = model.regression(at, along, j, starts=1)
    equations = equations._replace(
        square=equations.square + prior_mean @ prior_mean, right=equations.right + prior_mean
    )
    return equations, model.cost(at, along.rows, prior_mean)
