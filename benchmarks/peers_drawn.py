"""Drawn fields of the non-separable system, in sgpd and, with the same numbers, in PyTorch."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import torch
from jaxtyping import Array, Float
from torch import Tensor

import sgpd
from sgpd.fields import Field
from sgpd.gp import WhitenedGaussian
from sgpd.inference import FieldPosterior
from sgpd.inference.constants import DRAWS_AT_ONCE as DRAWS_AT_ONCE  # paths that a forecast rolls out side by side
from sgpd.inference.initial import initial_posterior
from sgpd.inference.posterior.field import Features, sample_frequencies, sample_normals
from sgpd.integrators import Integrator, rollout
from sgpd.paper.truths import record
from sgpd.paper.truths import solve as solve_exactly
from sgpd.structures import Hamiltonian, Separable, Structure
from sgpd.xla.batches import in_batches

torch.set_default_dtype(torch.float64)
FEATURES = 256
BATCH = 32  # windows behind a gradient
H = 0.1


class Weights(NamedTuple):
    """What differs from one drawn H to the next, one row a path."""

    cosine: Float[Array, "*paths 1 s"]
    sine: Float[Array, "*paths 1 s"]
    update: Float[Array, "*paths 1 m"]


class Drawn(NamedTuple):
    """Fields (-H_q, H_p) with frequencies, kernel and inducing inputs in common, where to start each, and its steps."""

    base: Field
    weights: Weights
    starts: Float[Array, "paths d"]
    steps: Float[Array, " n"]

    def field(self, weights: Weights) -> Field:
        """One of the fields."""
        return eqx.tree_at(_weights_of, self.base, tuple(weights))

    def first(self, count: int) -> "Drawn":
        """Some of the fields."""
        return self._replace(weights=jax.tree.map(lambda leaf: leaf[:count], self.weights), starts=self.starts[:count])


def _weights_of(field) -> tuple:
    paths = field.hamiltonian.paths
    return paths.cosine_weights, paths.sine_weights, paths.update


def drawn_fields(count: int, steps: int) -> Drawn:
    """Fields from sgpd's first guess of the non-separable system, each with its own start near the recorded one."""
    posterior, x0 = _guess("non-separable", Hamiltonian())
    posterior = _processes_alone(posterior)  # what PyTorch is given, too
    fields = _draws(posterior, count)
    base = jax.tree.map(lambda leaf: leaf[0], fields)
    starts = x0 + 0.02 * np.random.default_rng(0).normal(size=(count, len(x0)))
    return Drawn(base, Weights(*_weights_of(fields)), jnp.asarray(starts), jnp.full(steps, H))


class Pendulums(NamedTuple):
    """Draws of separable fields (-V'(q), T'(p)) of the pendulum, which every method can step: posterior and noise."""

    posterior: FieldPosterior
    frequencies: tuple[Array, ...]
    normals: tuple[Array, ...]
    weights: tuple[Array, ...]
    x0: Float[Array, " d"]
    steps: Float[Array, " n"]

    @classmethod
    def draw(cls, count: int, steps: int) -> "Pendulums":
        """So many."""
        posterior, x0 = _guess("pendulum", Separable())
        frequencies = sample_frequencies(jr.key(0), posterior, FEATURES, "quasi")
        random = sample_normals(jr.key(1), posterior, FEATURES, (count,))
        return cls(posterior, frequencies, *random, jnp.asarray(x0), jnp.full(steps, H))

    def states(self, method: Integrator, normals, weights) -> Float[Array, "n d"]:
        """Draw one field and roll it out."""
        field = self.posterior.draw(normals, Features(self.frequencies, weights))
        return rollout(method, field, self.x0, self.steps).states


def _processes_alone(posterior: FieldPosterior) -> FieldPosterior:
    """Without trends, whose cost is nothing beside that of features."""
    groups = tuple(replace(g, trend=None) for g in posterior.groups)
    kept = [(q.plain(), g.points) for q, g in zip(posterior.whitened, groups, strict=True)]
    return replace(
        posterior,
        groups=groups,
        values=tuple(WhitenedGaussian(q.mean[:, :m], q.raw_root[:, :m, :m]) for q, m in kept),
    )


@cache
def _guess(name: str, structure: Structure) -> tuple[FieldPosterior, np.ndarray]:
    system = sgpd.systems.get(name)
    _, truth = solve_exactly(system, "exact")
    return initial_posterior(structure, record(system, truth, seed=0)), system.x0


def _draws(posterior: FieldPosterior, count: int) -> Field:
    frequencies = sample_frequencies(jr.key(0), posterior, FEATURES, "quasi")
    normals, weights = sample_normals(jr.key(1), posterior, FEATURES, (count,))
    return jax.vmap(lambda n, w: posterior.draw(n, Features(frequencies, w)))(normals, weights)


# Jobs take other starts, too: `assert_same_numbers` asks what becomes of a small difference.
def our_rollouts(drawn: Drawn, method: Integrator) -> Callable[..., np.ndarray]:
    """sgpd's rollouts."""
    return rollouts(drawn, lambda field, x0: rollout(method, field, x0, drawn.steps).states)


def rollouts(drawn: Drawn, solve: Callable[[Field, Array], Array]) -> Callable[..., np.ndarray]:
    """All fields solved, as a forecast does it: compiled, some paths at once, batches on all cores."""
    run = jax.jit(lambda stack: jax.vmap(lambda weights, x0: solve(drawn.field(weights), x0))(*stack))
    return lambda starts=drawn.starts: in_batches(run, (drawn.weights, starts), DRAWS_AT_ONCE)


def our_gradient(drawn: Drawn, method: Integrator) -> Callable[..., Weights]:
    """The gradient of Σ|x|² over all rollouts with respect to the weights, all windows at once as in training."""
    return gradient(drawn, lambda field, x0: rollout(method, field, x0, drawn.steps).states)


def gradient(drawn: Drawn, solve: Callable[[Field, Array], Array]) -> Callable[..., Weights]:
    """The same, however the fields are solved."""

    @jax.jit
    def run(weights: Weights, starts):
        one = lambda weights, x0: solve(drawn.field(weights), x0)
        return jax.grad(lambda weights: jnp.sum(jax.vmap(one)(weights, starts) ** 2))(weights)

    return lambda starts=drawn.starts: run(drawn.weights, starts)


def assert_same_numbers(drawn: Drawn, ours: Callable, theirs: Callable, tolerance: float, rounding: float):
    """Both jobs give the same, to a tolerance and to what our own make of starts that are moved by as much as rounding.

    Of 64 paths, one passes so close by a saddle that it magnifies a difference 100,000 times.
    """
    found = [jax.tree.leaves(each) for each in (ours(), ours(drawn.starts + rounding), theirs())]
    for one, moved, other in zip(*found, strict=True):
        one, moved, other = (np.asarray(array).reshape(len(drawn.starts), -1) for array in (one, moved, other))
        magnified = np.abs(moved - one).max(axis=1, keepdims=True)  # of each path
        allowed = tolerance * np.abs(one).max() + magnified
        assert (np.abs(one - other) <= allowed).all(), f"off by {(np.abs(one - other) / allowed).max():.3g} allowances"


class TorchField(torch.nn.Module):
    """The same fields in PyTorch, all paths in one tensor: dx/dt (P, 2) at states (P, 2)."""

    def __init__(self, drawn: Drawn):
        super().__init__()
        tensor = lambda array: torch.from_numpy(np.array(array))
        paths = drawn.base.hamiltonian.paths  # pyright: ignore[reportFunctionMemberAccess]
        inverse = tensor(1 / paths.kernel.lengthscale[0])
        self.inverse, self.variance = inverse, tensor(paths.kernel.variance[0])
        self.inducing = tensor(paths.inducing[0]) * inverse
        self.frequencies = (tensor(paths.frequencies[0]) * inverse).T.contiguous()  # (2, s)
        self.cosine, self.sine, self.update = (torch.nn.Parameter(tensor(w[:, 0])) for w in drawn.weights)
        self.steps = len(drawn.steps)
        self.turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])  # (H_p, H_q) @ turn = (-H_q, H_p)

    def forward(self, t: Tensor | None, x: Tensor) -> Tensor:
        """The closed form of the gradient, from one sine and one cosine a feature."""
        z = x @ self.frequencies
        waves = self.sine * torch.cos(z) - self.cosine * torch.sin(z)
        prior = torch.sqrt(self.variance) * waves @ self.frequencies.T
        apart = self.inducing - (x * self.inverse)[:, None]
        kernel = self.variance * torch.exp(-(apart**2).sum(dim=2) / 2) * self.update
        return (prior + (kernel[:, :, None] * apart).sum(dim=1) * self.inverse) @ self.turn

    def weights(self) -> list[Tensor]:
        """In the order of `Weights`."""
        return [self.cosine, self.sine, self.update]
