"""The paper's objective: a Monte-Carlo lower bound on the evidence, from rollouts of drawn fields."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import Scalar, State
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.integrators import Integrator, rollout


class Starts(eqx.Module):
    """The state at the start of each window: pinned at `anchor`, or q(x₀) = N(anchor + scale·offset, (scale·std)²)."""

    anchor: Float[Array, "w d"]
    scale: Float[Array, " d"]
    free: Bool[Array, " w"]
    prior_mean: Float[Array, " d"]
    prior_std: Float[Array, " d"]
    offset: Float[Array, "w d"]
    log_std: Float[Array, "w d"]

    @property
    def mean(self) -> Float[Array, "w d"]:
        """The mean of q(x₀)."""
        return self.anchor + self.free[:, None] * self.scale[None, :] * self.offset

    @property
    def std(self) -> Float[Array, "w d"]:
        """The standard deviation of q(x₀); 0 where the start is pinned."""
        return self.free[:, None] * self.scale[None, :] * jnp.exp(self.log_std)

    def kl(self) -> Scalar:
        """KL(q(x₀) ‖ N(prior_mean, prior_std²)) of all windows that are free."""
        log_ratio = jnp.log(self.scale / self.prior_std)[None, :] + self.log_std
        square = self.std**2 + (self.mean - self.prior_mean[None, :]) ** 2
        kl = square / self.prior_std[None, :] ** 2 / 2 - 1 / 2 - log_ratio
        return jnp.sum(self.free[:, None] * kl)


class Parameters(eqx.Module):
    """All that a fit adapts."""

    field: FieldPosterior
    starts: Starts
    log_noise: Float[Array, " d"]


class Observations(eqx.Module):
    """Windows on the device; `observed` leaves out what a pinned start makes certain."""

    states: Float[Array, "w n d"]
    observed: Bool[Array, "w n d"]
    steps: Float[Array, "w n_minus_1_times_m"]
    steps_per_interval: int = eqx.field(static=True)

    def take(self, index: Int[Array, " b"]) -> "Observations":
        """Some of the windows."""
        return Observations(self.states[index], self.observed[index], self.steps[index], self.steps_per_interval)


class Noise(NamedTuple):
    """The standard normals behind one evaluation of the bound, for b windows and s paths each."""

    frequencies: tuple[Float[Array, "f k"], ...]  # shared by all paths
    weights: tuple[Float[Array, "b s count 2 f"], ...]
    values: tuple[Float[Array, "b s count m"], ...]
    starts: Float[Array, "b s d"]


class Bound(NamedTuple):
    """A Monte-Carlo lower bound on log p(x̂), in halves. Larger is better."""

    expected_log_density: Scalar
    kl: Scalar  # KL(q ‖ p) of field and starts, never negative
    worst_residual: Scalar  # of any implicit stage on any path: 0 for explicit methods
    converged: Scalar  # share of the steps whose stages converged

    def weighted(self, a: float = 1.0, b: float = 1.0) -> Float[Array, "*seeds"]:
        """a · expected log density - b · KL; a bound when a = b = 1."""
        return a * self.expected_log_density - b * self.kl


def bound(
    parameters: Parameters,
    observations: Observations,
    index: Int[Array, " b"],
    noise: Noise,
    integrator: Integrator,
) -> Bound:
    """The bound, estimated on the windows `index`: one drawn field for every window and path."""
    batch, posterior = observations.take(index), parameters.field.ready()
    # A product, because the gradient of an indexed row would be a scatter, which keeps XLA from making one kernel of a
    # training's steps.
    chosen = jax.nn.one_hot(index, observations.states.shape[0], dtype=float)
    mean, std = chosen @ parameters.starts.mean, chosen @ parameters.starts.std

    def one_path(window: Observations, mean, std, weights, values, start):
        field = posterior.draw(values, Features(noise.frequencies, weights))
        path = rollout(integrator, field, mean + std * start, window.steps, window.steps_per_interval)
        density = log_density(window.states, window.observed, path.states, parameters.log_noise)
        return density, path.residual, path.converged

    paths = jax.vmap(one_path, in_axes=(None, None, None, 0, 0, 0))  # of one window
    windows = jax.vmap(paths)
    density, residual, converged = windows(batch, mean, std, noise.weights, noise.values, noise.starts)
    scale = observations.states.shape[0] / index.shape[0]
    return Bound(
        expected_log_density=scale * density.mean(axis=1).sum(),
        kl=posterior.kl() + parameters.starts.kl(),
        worst_residual=residual.max(),
        converged=converged.mean(),
    )


def log_density(
    states: Float[Array, "n d"],
    observed: Bool[Array, "n d"],
    predicted: Float[Array, "n d"],
    log_noise: State,
) -> Scalar:
    """log N(states | predicted, noise²), over what was observed."""
    z = (states - predicted) / jnp.exp(log_noise)[None, :]
    each = -(z**2) / 2 - log_noise[None, :] - jnp.log(2 * jnp.pi) / 2
    return jnp.sum(jnp.where(observed, each, 0.0))
