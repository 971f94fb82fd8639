"""Draws of the posterior where a Gaussian does not describe it.

The Gaussian is exact where the rollout is linear in its unknowns. Where it is not, a draw costs more or less than the
linear model says, and weighs exp(-half of that) in the posterior. While enough draws weigh something, those that do are
kept. Where hardly any does, every draw is a fit of its own: to data and prior with fresh noise added, from the optimum
(randomise-then-optimise). For a linear model these are exact draws of the posterior; for others an approximation
(Bardsley et al. 2014, without its reweighting).
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from sgpd.arrays import on_device
from sgpd.inference.constants import DRAWS_AT_ONCE
from sgpd.inference.laplace.constants import (
    PROMISING,
    SEARCH_CONVERGED,
    SEARCH_DAMPING,
    SEARCH_ITERATIONS,
    TUNED_ON,
)
from sgpd.inference.laplace.descent import Until, descend
from sgpd.inference.laplace.linear_model import LinearModel, Regression, ShootingState
from sgpd.inference.posterior.field import Features
from sgpd.inference.posterior.joint import Drawn, Unknowns
from sgpd.inference.rolling import rolled
from sgpd.xla.batches import in_batches, one_lapack_thread
from sgpd.xla.tuning import programs_at_once


def extra_costs(
    model: LinearModel, at: ShootingState, equations: Regression, drawn: Drawn
) -> Float[np.ndarray, " draws"]:
    """By how much more draws cost than the linear model around the optimum says: 0 where that model is right.

    Of a long recording pieces that are spread evenly stand for all.
    """
    pieces = len(at.starts)
    few = -(-pieces // max(len(model.recording) // TUNED_ON, 1))
    if few == pieces:
        return _extra_costs(model, at, equations, drawn)
    chosen = np.linspace(0, pieces - 1, few).round().astype(int)
    part = replace(model, recording=model.recording.of_pieces(chosen))
    there = ShootingState(at.u, at.starts[chosen], part.recording.rollouts(part.recording.place.shape[1]))
    some = drawn._replace(unknowns=Unknowns(drawn.unknowns.u, np.asarray(drawn.unknowns.starts)[:, chosen]))
    return _extra_costs(part, there, part.linearise(there).equations, some) * len(model.recording) / len(part.recording)


def _extra_costs(model: LinearModel, at: ShootingState, equations: Regression, drawn: Drawn):
    recording, free = model.recording, at.rollouts.free
    frequencies, weights = drawn.features

    def batch(stack):
        (u, starts), weights = stack
        misfit = _misfits(model, at, Drawn(Unknowns(u, starts), Features(frequencies, weights)))
        away = ((starts - recording.center) / recording.start_std)[:, free]
        cost = misfit + (u**2).sum(axis=1) + (away**2).sum(axis=(1, 2))
        return cost - equations.cost(u, (starts - at.starts) / model.noise)

    return in_batches(batch, (drawn.unknowns, weights), DRAWS_AT_ONCE)


def _misfits(model: LinearModel, at: ShootingState, drawn: Drawn) -> Float[np.ndarray, " draws"]:
    """Squares of the residuals of rollouts, in units of the noise."""
    recording, total = model.recording, np.zeros(len(drawn.unknowns.u))
    for entries, found in rolled(model.kernels, model.integrator, drawn, recording.steps, at.rollouts):
        error = (found.rows - recording.states[entries]) / model.noise
        total += np.where(recording.observed[entries], error**2, 0.0).sum(axis=(1, 2))
    return total


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


def randomise_then_optimise(
    model: LinearModel, at: ShootingState, features: Features, rng: np.random.Generator
) -> tuple[Unknowns, Bool[np.ndarray, " draws"]]:
    """A draw of the posterior for each set of features, and which are usable: the cost is finite, the search has ended.

    Features are functions between the inducing points that the data say little about; the inducing values adapt to
    them. Every piece starts once. Where most of the first few are not usable, there are no others.
    """
    search = lambda one: _search(one, at)
    draws = _randomised(model, features, rng)
    with one_lapack_thread(), ThreadPoolExecutor(max_workers=programs_at_once()) as pool:
        first = [one for _, one in zip(range(PROMISING), draws, strict=False)]
        found = list(pool.map(search, first))
        if np.mean([usable for _, usable in found]) >= 0.5:
            found += pool.map(search, draws)
    us, starts = zip(*(ended for ended, _ in found), strict=True)
    return Unknowns(on_device(np.stack(us)), on_device(np.stack(starts))), np.array([usable for _, usable in found])


def _randomised(model: LinearModel, features: Features, rng: np.random.Generator) -> Iterator[LinearModel]:
    """The model with fresh noise added to its data and its prior, for each set of features."""
    recording, d = model.recording, len(model.noise)
    values, states, starts = rng.spawn(3)
    for index in range(len(features.weights[0])):
        for_states = recording.in_line(states.normal(size=(*recording.place.shape, d)))
        changed = recording.randomised(model.noise, for_states, starts.normal(size=(len(recording.place), d)))
        own = Features(features.frequencies, tuple(np.asarray(weights)[index] for weights in features.weights))
        yield replace(model, recording=changed, prior_mean=values.normal(size=model.size), features=own)


def _search(model: LinearModel, at: ShootingState) -> tuple[Unknowns, bool]:
    until = Until(share=0.0, less=SEARCH_CONVERGED, iterations=SEARCH_ITERATIONS)
    there, found, ended = descend(model, at, until, SEARCH_DAMPING)
    return Unknowns(there.u, there.starts), bool(ended and np.isfinite(found.cost))
