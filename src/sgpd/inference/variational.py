"""The paper's engine: stochastic gradient ascent on the bound, window by window."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from sgpd.data import Trajectories, Windows, windows
from sgpd.gp import FramedGaussian, Kernel, SquaredExponential
from sgpd.gp.features import Spread
from sgpd.inference.bound import Bound, Noise, Observations, Parameters, Starts, bound
from sgpd.inference.initial import noise_std, smooth_run
from sgpd.inference.posterior import Features, FieldPosterior, sample_frequencies, sample_normals
from sgpd.inference.shooting import Recording, shoot
from sgpd.integrators import Integrator, rollout
from sgpd.outcome import NumericalFailure, Outcome

PRIOR_WIDTH = 3.0  # standard deviation of the prior of starts, in those of the data
BATCH = 32
WINDOW = 50
SHOOTING = (10, 30)  # rows between restarts, before the whole recording
SELECTION_PATHS = 5
MAX_SKIPPED = 50  # steps in a row whose gradient was not finite, before the training is given up


@dataclass(frozen=True)
class Variational:
    """Settings of the variational engine. The defaults give a true lower bound on the evidence.

    Windows side by side (`stride=None`) with latent starts make a bound; overlapping ones, or starts at the noisy
    observations, make a composite likelihood: the paper's way, offered and called so.
    """

    shooting: bool = True  # start from the best single field by multiple shooting, else from the data's derivatives
    window: int | None = None  # rows; None: 50, or the whole recording if that is shorter
    stride: int | None = None  # None: side by side; a number: overlapping, starting every so many rows
    batch: int | None = None  # windows a step; None: all, up to 32
    paths: int = 4  # Monte-Carlo paths a window and step
    steps: int = 400  # of the optimiser, rounded up to whole epochs; ignored where `epochs` is given
    epochs: int | None = None
    learning_rate: float | optax.Schedule = 0.01  # a number is lowered along a cosine to a hundredth
    prior_rate: float = 0.0  # of kernels and inducing points, relative to the learning rate; 0 keeps them as chosen
    likelihood_factor: float = 1.0  # the paper's a
    kl_factor: float = 1.0  # the paper's b
    kernel: type[Kernel] = SquaredExponential
    inducing: int | None = None  # points for each latent; None: by dimension
    diagonal: bool = False  # whether q(z) has a diagonal covariance, else a full one
    features: int = 256
    spread: Spread = "quasi"
    noise: Sequence[float] | None = None  # standard deviations known beforehand; None: learned
    select_last: int = 0  # keep the best of so many last epochs by the rollout error on the recording; 0: the last one


class Problem(eqx.Module):
    """What stays the same during a training."""

    observations: Observations
    whole: Observations  # the runs uncut, for model selection
    whole_starts: Float[Array, "runs d"]
    integrator: Integrator = eqx.field(static=True)
    settings: Variational = eqx.field(static=True)

    @property
    def batch(self) -> int:
        """Windows a step."""
        count = self.observations.states.shape[0]
        return min(self.settings.batch or BATCH, count)

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in one pass over the windows."""
        return -(-self.observations.states.shape[0] // self.batch)

    @property
    def epochs(self) -> int:
        """Passes over the windows."""
        return self.settings.epochs or -(-self.settings.steps // self.steps_per_epoch)


class TrainingState(NamedTuple):
    """Where a training stands. Every array has a leading axis of seeds."""

    parameters: Parameters
    optimiser: Any  # optax.ApplyIfFiniteState
    keys: Array
    epoch: int
    best: Parameters  # by rollout error, among the epochs that count
    best_error: Float[Array, " seeds"]
    history: list[dict]


def prepare(
    data: Trajectories, guess: FieldPosterior, integrator: Integrator, settings: Variational, x0: str
) -> tuple[Problem, Parameters, Windows]:
    """The data cut into windows, and the parameters to start from."""
    longest = max(map(len, data.runs))
    pieces = windows(data, longest)
    pinned = _pinned(pieces, x0)
    rows = _smoothed_rows(data, pieces, pinned)
    noise = noise_std(data) if settings.noise is None else np.asarray(settings.noise, float)
    if settings.shooting:
        lengths = [n for n in SHOOTING if n < longest] + [longest]
        shot = shoot(guess, integrator, Recording.of(pieces, pinned), rows, noise, lengths)
        framed = tuple(FramedGaussian.around(q.plain()) for q in shot.posterior.values)
        guess, rows = eqx.tree_at(lambda q: q.values, guess, framed), shot.rows
        noise = shot.noise if settings.noise is None else noise

    cut = windows(data, min(settings.window or WINDOW, longest), settings.stride, start_observed=x0 == "observed")
    starts = _starts(data, cut, _pinned(cut, x0), pieces, rows, noise)
    problem = Problem(
        observations=_observations(cut, _pinned(cut, x0)),
        whole=_observations(pieces, pinned),
        whole_starts=jnp.asarray(rows[:, 0]),
        integrator=integrator,
        settings=settings,
    )
    return problem, Parameters(guess, starts, jnp.log(jnp.asarray(noise))), cut


def _pinned(cut: Windows, x0: str) -> np.ndarray:
    """Which windows start at a state that is taken as exact."""
    pinned = np.full(len(cut), x0 == "observed") | ((cut.row == 0) & (x0 == "known"))
    if x0 == "known" and not cut.observed[pinned, 0].all():
        raise ValueError("x0='known' needs first rows without missing values; complete them, or use x0='latent'.")
    return pinned & cut.observed[:, 0].all(axis=1)


def _smoothed_rows(data: Trajectories, pieces: Windows, pinned: np.ndarray) -> np.ndarray:
    """The recording as splines see it, piece by piece, with exact starts where they are known."""
    rows = np.empty(pieces.states.shape)
    for run in range(len(data.runs)):
        smoothed = smooth_run(data.runs[run]).states
        for index in np.flatnonzero(pieces.run == run):
            rows[index] = smoothed[np.minimum(pieces.row[index] + np.arange(pieces.states.shape[1]), len(smoothed) - 1)]
    rows[pinned, 0] = pieces.states[pinned, 0]
    return rows


def _observations(cut: Windows, pinned: np.ndarray) -> Observations:
    observed = cut.observed.copy()
    observed[pinned, 0] = False
    return Observations(
        jnp.asarray(cut.states), jnp.asarray(observed), jnp.asarray(cut.flat_steps), cut.steps_per_interval
    )


def _starts(
    data: Trajectories, cut: Windows, pinned: np.ndarray, pieces: Windows, rows: np.ndarray, noise: np.ndarray
) -> Starts:
    """Starts anchored where the first guess goes through, or at the observation where that is exact."""
    anchor = np.where(pinned[:, None], cut.states[:, 0], 0.0)
    for index in np.flatnonzero(~pinned):
        piece = np.flatnonzero((pieces.run == cut.run[index]) & (pieces.row <= cut.row[index]))[-1]
        anchor[index] = rows[piece, cut.row[index] - pieces.row[piece]]
    spread = np.where(data.spread > 0, data.spread, 1.0)
    return Starts(
        anchor=jnp.asarray(anchor),
        scale=jnp.asarray(noise),
        free=jnp.asarray(~pinned),
        prior_mean=jnp.asarray(data.center),
        prior_std=jnp.asarray(PRIOR_WIDTH * spread),
        offset=jnp.zeros(anchor.shape),
        log_std=jnp.full(anchor.shape, np.log(0.3)),
    )


def _rates(parameters: Parameters, settings: Variational) -> Parameters:
    """How fast each leaf moves, relative to the learning rate; 0 for constants: units, anchors, noise that is known."""
    rates = jax.tree.map(lambda _: 1.0, parameters)
    rates = eqx.tree_at(
        lambda p: p.field.groups, rates, replace_fn=lambda groups: jax.tree.map(lambda _: settings.prior_rate, groups)
    )
    constants = lambda p: (
        [g.scale for g in p.field.groups]
        + [leaf for q in p.field.values if isinstance(q, FramedGaussian) for leaf in (q.center, q.frame)]
        + [p.starts.anchor, p.starts.scale, p.starts.free, p.starts.prior_mean, p.starts.prior_std]
        + ([] if settings.noise is None else [p.log_noise])
    )
    return eqx.tree_at(constants, rates, replace_fn=lambda _: 0.0)


def _optimiser(problem: Problem) -> optax.GradientTransformation:
    rate = problem.settings.learning_rate
    if not callable(rate):
        rate = optax.cosine_decay_schedule(rate, problem.epochs * problem.steps_per_epoch, alpha=0.01)
    # A drawn field that runs away gives a gradient that is not finite: that step is skipped and counted.
    return optax.apply_if_finite(optax.adam(rate), MAX_SKIPPED)


def initial_state(problem: Problem, parameters: Parameters, seeds: Sequence[int]) -> TrainingState:
    """The state before the first epoch."""
    stacked = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(seeds), *leaf.shape)), parameters)
    moving = jax.tree.map(bool, _rates(parameters, problem.settings))
    optimiser = jax.vmap(_optimiser(problem).init)(eqx.filter(stacked, moving))
    keys = jnp.stack([jr.key(seed) for seed in seeds])
    return TrainingState(stacked, optimiser, keys, 0, stacked, jnp.full(len(seeds), jnp.inf), [])


def train(
    problem: Problem,
    state: TrainingState,
    epochs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrainingState:
    """Go on for so many epochs, to the end by default. Stopping between two epochs changes no number."""
    last = problem.epochs if epochs is None else min(problem.epochs, state.epoch + epochs)
    while state.epoch < last:
        state = _epoch(problem, state)
        if progress is not None:
            progress(state.epoch, problem.epochs)
    return state


def _epoch(problem: Problem, state: TrainingState) -> TrainingState:
    parameters, optimiser = state.parameters, state.optimiser
    keys = jax.vmap(lambda key: jr.split(key, 3))(state.keys)
    shuffled = np.asarray(jax.vmap(lambda k: jr.permutation(k, problem.observations.states.shape[0]))(keys[:, 1]))
    estimates = []
    for step in range(problem.steps_per_epoch):
        places = np.arange(step * problem.batch, (step + 1) * problem.batch) % shuffled.shape[1]
        step_keys = jax.vmap(lambda k: jr.fold_in(k, step))(keys[:, 2])  # noqa: B023
        noise = _noise(problem, parameters.field, step_keys)
        parameters, optimiser, estimate = _step(problem, parameters, optimiser, jnp.asarray(shuffled[:, places]), noise)
        estimates.append(estimate)
    if np.any(np.asarray(optimiser.notfinite_count) >= MAX_SKIPPED):  # pyright: ignore[reportAttributeAccessIssue]
        raise NumericalFailure(Outcome.DIVERGED, f"This was in epoch {state.epoch + 1} of {problem.epochs}.")
    best, best_error = _selected(problem, state, parameters, keys[:, 2])
    history = [*state.history, _record(state.epoch, estimates, problem.settings)]
    return TrainingState(parameters, optimiser, keys[:, 0], state.epoch + 1, best, best_error, history)


def _selected(problem: Problem, state: TrainingState, parameters: Parameters, keys: Array) -> tuple[Parameters, Array]:
    """The best parameters so far, seed by seed, among the epochs that count; the newest where none is selected."""
    if state.epoch < problem.epochs - problem.settings.select_last:
        return parameters, state.best_error
    error = _rollout_error(problem, parameters.field, keys)
    better = error < state.best_error
    choose = lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    return jax.tree.map(choose, parameters, state.best), jnp.minimum(error, state.best_error)


def _record(epoch: int, estimates: list[Bound], settings: Variational) -> dict:
    """One line of the history: means over the epoch's steps, one number a seed."""
    mean = lambda values: np.mean([np.asarray(v) for v in values], axis=0)
    return {
        "epoch": epoch + 1,
        "objective": mean([e.weighted(settings.likelihood_factor, settings.kl_factor) for e in estimates]),
        "expected_log_density": mean([e.expected_log_density for e in estimates]),
        "kl": mean([e.kl for e in estimates]),
        "worst_residual": np.max([np.asarray(e.worst_residual) for e in estimates], axis=0),
        "converged": mean([e.converged for e in estimates]),
    }


@eqx.filter_jit
def _noise(problem: Problem, posterior: FieldPosterior, keys: Array) -> Noise:
    settings = problem.settings
    one_seed = jax.tree.map(lambda leaf: leaf[0], posterior)

    def one(key):
        k_frequencies, k_paths, k_starts = jr.split(key, 3)
        batch = (problem.batch, settings.paths)
        values, weights = sample_normals(k_paths, one_seed, settings.features, batch)
        frequencies = sample_frequencies(k_frequencies, one_seed, settings.features, settings.spread)
        return Noise(frequencies, weights, values, jr.normal(k_starts, (*batch, one_seed.dimension)))

    return jax.vmap(one)(keys)


@eqx.filter_jit
def _step(problem: Problem, parameters: Parameters, optimiser: Any, index: Int[Array, "seeds b"], noise: Noise):
    settings = problem.settings
    rates = _rates(parameters, settings)
    moving = jax.tree.map(bool, rates)

    def one(parameters, optimiser, index, noise):
        trainable, constant = eqx.partition(parameters, moving)

        def loss(trainable):
            estimate = bound(eqx.combine(trainable, constant), problem.observations, index, noise, problem.integrator)
            return -estimate.weighted(settings.likelihood_factor, settings.kl_factor), estimate

        gradient, estimate = jax.grad(loss, has_aux=True)(trainable)
        updates, optimiser = _optimiser(problem).update(gradient, optimiser, trainable)
        updates = jax.tree.map(lambda rate, update: rate * update, eqx.filter(rates, moving), updates)
        return eqx.combine(eqx.apply_updates(trainable, updates), constant), optimiser, estimate

    return jax.vmap(one)(parameters, optimiser, index, noise)


@eqx.filter_jit
def _rollout_error(problem: Problem, posterior: FieldPosterior, keys: Array) -> Float[Array, " seeds"]:
    """The paper's criterion: squared distance of the mean of five rollouts, over whole runs, from the recording."""
    settings, whole = problem.settings, problem.whole

    def one_seed(posterior, key):
        k_frequencies, k_paths = jr.split(key)
        frequencies = sample_frequencies(k_frequencies, posterior, settings.features, settings.spread)
        normals, weights = sample_normals(k_paths, posterior, settings.features, (SELECTION_PATHS,))

        def one_path(normals, weights):
            field = posterior.draw(normals, Features(frequencies, weights))
            roll = lambda x0, steps: rollout(problem.integrator, field, x0, steps, whole.steps_per_interval).states
            return jax.vmap(roll)(problem.whole_starts, whole.steps)

        mean = jax.vmap(one_path)(normals, weights).mean(axis=0)
        error = jnp.sum(jnp.where(whole.observed, mean - whole.states, 0.0) ** 2)
        return jnp.where(jnp.isfinite(error), error, jnp.inf)

    return jax.vmap(one_seed)(posterior, keys)
