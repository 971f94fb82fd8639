"""The paper's engine: stochastic gradient ascent on the bound, window by window."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from sgpd.arrays import Key
from sgpd.errors import NumericalFailure, Outcome
from sgpd.fields import Field
from sgpd.gp import FramedGaussian
from sgpd.gp.features import Sampling
from sgpd.inference.checkpoint import Checkpoint
from sgpd.inference.facts import Epoch, History, history_of, plain
from sgpd.inference.posterior.field import Features, FieldPosterior, sample_frequencies, sample_normals
from sgpd.inference.variational.bound import Bound, Noise, Parameters, bound
from sgpd.inference.variational.constants import BETWEEN_SAVES, DRAWN_AHEAD, MAX_SKIPPED, SELECTION_PATHS
from sgpd.inference.variational.problem import Problem, Variational
from sgpd.integrators import rollout


class TrainingState(NamedTuple):
    """Where a training stands. Every array has a leading axis of seeds."""

    parameters: Parameters
    optimiser: Any  # optax.ApplyIfFiniteState
    keys: Array
    epoch: int
    best: "Selected"
    history: History


class Selected(NamedTuple):
    """The parameters that a training ends with: those of the smallest rollout error among the epochs that count."""

    parameters: Parameters
    error: Float[Array, " seeds"]
    epoch: Int[Array, " seeds"]
    keys: Array  # of the draws whose error it is


def _rates(parameters: Parameters, settings: Variational) -> Parameters:
    """How fast each leaf moves, relative to the learning rate; 0 for constants: units, anchors, noise that is known."""
    rates = jax.tree.map(lambda _: 1.0, parameters)
    rates = eqx.tree_at(
        lambda p: p.field.groups, rates, replace_fn=lambda groups: jax.tree.map(lambda _: settings.prior_rate, groups)
    )
    constants = lambda p: (
        [g.scale for g in p.field.groups]
        + [g.axes for g in p.field.groups if g.axes is not None]
        + [g.trend.centre for g in p.field.groups if g.trend is not None]
        + [leaf for q in p.field.values if isinstance(q, FramedGaussian) for leaf in (q.center, q.frame)]
        + [p.starts.anchor, p.starts.scale, p.starts.free, p.starts.prior_mean, p.starts.prior_std]
        + ([] if settings.noise_std is None else [p.log_noise])
    )
    return eqx.tree_at(constants, rates, replace_fn=lambda _: 0.0)


def _optimiser(problem: Problem) -> optax.GradientTransformation:
    rate = problem.settings.learning_rate
    if not callable(rate):
        rate = optax.cosine_decay_schedule(rate, problem.epochs * problem.steps_per_epoch, alpha=0.01)
    # A drawn field that runs away gives a gradient that is not finite: that step is skipped and counted.
    return optax.apply_if_finite(optax.adam(rate), MAX_SKIPPED)


def initial_state(problem: Problem, parameters: Parameters, seeds: Sequence[int]) -> TrainingState:
    """The state before the first epoch, of problems and parameters that stand `side_by_side`, one for each seed."""
    moving = jax.tree.map(bool, _rates(parameters, problem.settings))
    optimiser = jax.vmap(_optimiser(problem).init)(eqx.filter(parameters, moving))
    keys = jnp.stack([jr.key(seed) for seed in seeds])
    none = Selected(parameters, jnp.full(len(seeds), jnp.inf), jnp.zeros(len(seeds), int), keys)
    return TrainingState(parameters, optimiser, keys, 0, none, ())


def train(
    problem: Problem,
    state: TrainingState,
    epochs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> TrainingState:
    """Go on for so many epochs, to the end by default. Stopping between two epochs changes no number."""
    if checkpoint is not None:
        arrays, lines = checkpoint.load(state._replace(history=()))
        state = arrays._replace(history=history_of(lines))
    last, saved = problem.epochs if epochs is None else min(problem.epochs, state.epoch + epochs), time.monotonic()
    while state.epoch < last:
        state = _epoch(problem, state)
        if checkpoint is not None and time.monotonic() - saved > BETWEEN_SAVES:
            checkpoint.save(state._replace(history=()), plain(state.history))
            saved = time.monotonic()
        if progress is not None:
            progress(state.epoch, problem.epochs)
    return state


def _epoch(problem: Problem, state: TrainingState) -> TrainingState:
    keys, parameters, optimiser, estimates = _pass(problem, state.parameters, state.optimiser, state.keys)
    if np.any(np.asarray(optimiser.notfinite_count) >= MAX_SKIPPED):
        raise NumericalFailure(Outcome.DIVERGED, f"This was in epoch {state.epoch + 1} of {problem.epochs}.")
    best = _better(problem, state, parameters, keys[:, 2])
    history = (*state.history, _record(state.epoch, estimates, problem.settings))
    return TrainingState(parameters, optimiser, keys[:, 0], state.epoch + 1, best, history)


def _better(problem: Problem, state: TrainingState, parameters: Parameters, keys: Array) -> Selected:
    """The best parameters so far, seed by seed, among the epochs that count; the newest where none is selected."""
    if state.epoch < problem.epochs - problem.settings.select_last:
        return state.best._replace(parameters=parameters)
    error = _rollout_error(problem, parameters.field, keys)
    new = Selected(parameters, error, jnp.full(error.shape, state.epoch + 1), keys)
    better = error < state.best.error
    choose = lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    return jax.tree.map(choose, new, state.best)


def _record(epoch: int, estimates: Bound, settings: Variational) -> Epoch:
    """One line of the history: means over the epoch's steps, one number a seed."""
    mean = lambda values: np.asarray(values).mean(axis=1)
    return Epoch(
        epoch=epoch + 1,
        objective=mean(estimates.weighted(settings.likelihood_factor, settings.kl_factor)),
        expected_log_density=mean(estimates.expected_log_density),
        kl=mean(estimates.kl),
        worst_residual=np.asarray(estimates.worst_residual).max(axis=1),
        steps_converged=mean(estimates.converged),
    )


@eqx.filter_jit
def _pass(problem: Problem, parameters: Parameters, optimiser: Any, keys: Array):
    """One pass over the windows in random order, every seed on its own."""
    count, batch = problem.steps_per_epoch, problem.batch

    def one_seed(problem, parameters, optimiser, key):
        keys = jr.split(key, 3)
        # The last batch is filled up from the beginning of the order.
        places = jnp.arange(count * batch) % problem.windows
        batches = jr.permutation(keys[1], problem.windows)[places].reshape(count, batch)

        together = _together(problem, parameters.field)

        def step(state, drawn):
            *state, estimate = _step(problem, *state, *drawn)
            return tuple(state), estimate

        def several_steps(state, drawn):
            index, step_keys = drawn
            noise = jax.vmap(lambda key: _noise(problem, parameters.field, key))(step_keys)
            return jax.lax.scan(step, state, (index, noise))

        step_keys = jr.split(keys[2], count).reshape(-1, together)
        drawn = (batches.reshape(-1, together, batch), step_keys)
        state, estimates = jax.lax.scan(several_steps, (parameters, optimiser), drawn)
        return keys, *state, jax.tree.map(lambda each: each.reshape(count), estimates)

    return jax.vmap(one_seed)(problem, parameters, optimiser, keys)


def _together(problem: Problem, posterior: FieldPosterior) -> int:
    """The steps whose random numbers are drawn ahead: inside the loop of steps they would be most of what it does."""
    drawn = jax.eval_shape(lambda key: _noise(problem, posterior, key), jr.key(0))
    size, count = sum(leaf.size for leaf in jax.tree.leaves(drawn)), problem.steps_per_epoch
    return max(n for n in range(1, count + 1) if count % n == 0 and (n == 1 or n * size <= DRAWN_AHEAD))


def _noise(problem: Problem, posterior: FieldPosterior, key: Array) -> Noise:
    settings = problem.settings
    k_frequencies, k_paths, k_starts = jr.split(key, 3)
    batch = (problem.batch, settings.paths)
    values, weights = sample_normals(k_paths, posterior, settings.features, batch)
    frequencies = sample_frequencies(k_frequencies, posterior, settings.features, settings.sampling)
    return Noise(frequencies, weights, values, jr.normal(k_starts, (*batch, posterior.dimension)))


def _step(problem: Problem, parameters: Parameters, optimiser: Any, index: Int[Array, " b"], noise: Noise):
    settings = problem.settings
    rates = _rates(parameters, settings)
    moving = jax.tree.map(bool, rates)
    trainable, constant = eqx.partition(parameters, moving)

    def loss(trainable):
        estimate = bound(eqx.combine(trainable, constant), problem.observations, index, noise, problem.integrator)
        return -estimate.weighted(settings.likelihood_factor, settings.kl_factor), estimate

    gradient, estimate = jax.grad(loss, has_aux=True)(trainable)
    updates, optimiser = _optimiser(problem).update(gradient, optimiser, trainable)
    updates = jax.tree.map(lambda rate, update: rate * update, eqx.filter(rates, moving), updates)
    return eqx.combine(eqx.apply_updates(trainable, updates), constant), optimiser, estimate


@eqx.filter_jit
def _rollout_error(problem: Problem, posterior: FieldPosterior, keys: Array) -> Float[Array, " seeds"]:
    """The paper's criterion: squared distance of the mean of five rollouts, over whole runs, from the recording."""

    def one_seed(problem, posterior, key):
        settings, whole = problem.settings, problem.whole

        def one_path(field):
            roll = lambda x0, steps: rollout(problem.integrator, field, x0, steps, whole.steps_per_interval).states
            return jax.vmap(roll)(problem.whole_starts, whole.steps)

        fields = selection_draws(posterior, key, settings.features, settings.sampling)
        mean = eqx.filter_vmap(one_path)(fields).mean(axis=0)
        error = jnp.sum(jnp.where(whole.observed, mean - whole.states, 0.0) ** 2)
        return jnp.where(jnp.isfinite(error), error, jnp.inf)

    return jax.vmap(one_seed)(problem, posterior, keys)


def selection_draws(posterior: FieldPosterior, key: Key, features: int, sampling: Sampling) -> Field:
    """The five fields, stacked, by whose rollouts a model is judged for the selection."""
    k_frequencies, k_paths = jr.split(key)
    frequencies = sample_frequencies(k_frequencies, posterior, features, sampling)
    normals, weights = sample_normals(k_paths, posterior, features, (SELECTION_PATHS,))
    return eqx.filter_vmap(lambda normals, weights: posterior.draw(normals, Features(frequencies, weights)))(
        normals, weights
    )
