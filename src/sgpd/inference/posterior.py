"""The posterior over vector fields: a structure, its latents' kernels and inducing points, and q over their values."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Key, Scalar, State, on_device
from sgpd.fields import Field
from sgpd.gp import (
    JITTER,
    FramedGaussian,
    Kernel,
    Path,
    ValueGaussian,
    WhitenedGaussian,
    bump_path,
    draw_path,
    host_normals,
    mean_path,
    spread_normals,
    whitening,
)
from sgpd.gp.features import Spread
from sgpd.structures import Axes, Structure

# One array a group of latents.
Whitened = tuple[Float[Array, "count m"], ...]


class LatentGroup(eqx.Module):
    """Kernels and inducing points of one group of latents, stacked along a leading axis.

    Locations are kept in units of `scale` (the lengthscales at the start), so that one learning rate suits every unit
    of measurement.
    """

    kernel: Kernel
    scaled_locations: Float[Array, "count m k"]
    scale: Float[Array, "count 1 k"]
    jitter: float = eqx.field(static=True, default=JITTER)  # relative to the kernel's variance
    known_whitening: Float[Array, "count m m"] | None = None
    axes: Axes | None = None  # along which there are lengthscales; None: the inputs as they are

    def along_axes(self, inputs: Float[Array, "count n k"]) -> Float[Array, "count n k"]:
        """What the latents see, as their kernels see it."""
        return inputs if self.axes is None else jnp.einsum("cij,cnj->cni", self.axes, inputs)

    @property
    def whitening(self) -> Float[Array, "count m m"]:
        """L⁻¹ of each latent."""
        if self.known_whitening is not None:
            return self.known_whitening
        return jax.vmap(partial(whitening, jitter=self.jitter))(self.kernel, self.inducing)

    @property
    def inducing(self) -> Float[Array, "count m k"]:
        """ξ."""
        return self.scaled_locations * self.scale


class Features(NamedTuple):
    """Random features of one draw: frequencies, which draws may share, and weights, which they may not."""

    frequencies: tuple[Float[Array, "s k"], ...]
    weights: tuple[Float[Array, "count 2 s"], ...]


class FieldPosterior(eqx.Module):
    """q(f): independent Gaussians over the whitened inducing values of every latent."""

    structure: Structure = eqx.field(static=True)
    dimension: int = eqx.field(static=True)
    groups: tuple[LatentGroup, ...]
    values: tuple[WhitenedGaussian | FramedGaussian | ValueGaussian, ...]

    @property
    def whitened(self) -> tuple[WhitenedGaussian | FramedGaussian, ...]:
        """q(u), whatever the coordinates in which it is kept."""
        return tuple(
            jax.vmap(ValueGaussian.whitened)(q, g.whitening) if isinstance(q, ValueGaussian) else q
            for q, g in zip(self.values, self.groups, strict=True)
        )

    def plain(self) -> "FieldPosterior":
        """The same posterior with q(u) in whitened coordinates and no frame: what a model keeps."""
        return eqx.tree_at(lambda p: p.values, self, tuple(q.plain() for q in self.whitened))

    def ready(self) -> "FieldPosterior":
        """The same posterior, with what all draws and the KL share computed once."""
        groups = tuple(replace(g, known_whitening=g.whitening) for g in self.groups)
        return replace(self, groups=groups).plain()

    def kl(self) -> Scalar:
        """KL(q ‖ p) over all latents."""
        return sum((q.kl() for q in self.whitened), start=jnp.array(0.0))

    def draw(self, normals: tuple[Float[Array, "count m"], ...], features: Features) -> Field:
        """The field that belongs to standard normals for the inducing values and to random features."""
        whitened = tuple(q.value(e) for q, e in zip(self.whitened, normals, strict=True))
        return self.field(whitened, features)

    @eqx.filter_jit
    def mean(self) -> Field:
        """The field with every inducing value at its mean: the best estimate."""
        return self.field(tuple(q.mean for q in self.whitened))

    def field(self, whitened: Whitened, features: Features | None = None) -> Field:
        """The field through given whitened inducing values; without features, the mean of all such fields."""
        return self._assembled(self.paths(whitened, features))

    def _assembled(self, paths: list[Path]) -> Field:
        return self.structure.field(paths, self.dimension, [g.axes for g in self.groups])

    def paths(self, whitened: Whitened, features: Features | None = None) -> list[Path]:
        """The latents through given whitened inducing values, one stack a group."""
        if features is None:
            return [
                jax.vmap(mean_path)(g.kernel, g.inducing, u, g.whitening)
                for g, u in zip(self.groups, whitened, strict=True)
            ]
        parts = zip(self.groups, whitened, features.frequencies, features.weights, strict=True)
        return [
            jax.vmap(draw_path, in_axes=(0, 0, 0, None, 0, 0))(g.kernel, g.inducing, u, w, b, g.whitening)
            for g, u, w, b in parts
        ]

    @eqx.filter_jit
    def design(self, states: Float[Array, "n d"]) -> Float[Array, "n d p"]:
        """∂f(xₙ)/∂u: the field is linear in its whitened inducing values."""
        blocks = [self._by_bumps(index, states) for index in range(len(self.groups))]
        # v = L⁻ᵀ u, once for all states: a derivative by u itself would carry L⁻¹ through each of them
        by_u = [jnp.einsum("nmdc,cim->ndci", b, g.whitening) for b, g in zip(blocks, self.groups, strict=True)]
        return jnp.concatenate([block.reshape(*block.shape[:2], -1) for block in by_u], axis=2)

    def _by_bumps(self, index: int, states: Float[Array, "n d"]) -> Float[Array, "n m d count"]:
        """∂f(xₙ)/∂v of one group: what the field is where one latent is one bump k(x, ξⱼ), and all others are zero."""

        def at(x: State, bump: Float[Array, "count k"]) -> Float[Array, "d count"]:
            def field(heights: Float[Array, " count"]) -> State:
                zero = lambda g: (g.kernel, g.inducing[:, :0], jnp.zeros((g.scale.shape[0], 0)))
                paths = [jax.vmap(bump_path)(*zero(g)) for g in self.groups]
                paths[index] = jax.vmap(bump_path)(self.groups[index].kernel, bump[:, None], heights[:, None])
                return self._assembled(paths)(x)

            return jax.jacfwd(field)(jnp.zeros(bump.shape[0]))

        at_all_bumps = jax.vmap(at, in_axes=(None, 1))
        return jax.vmap(at_all_bumps, in_axes=(0, None))(states, self.groups[index].inducing)

    def unravel(self, flat: Float[Array, " p"]) -> Whitened:
        """All whitened values in one vector, taken apart by group."""
        shapes = [g.scaled_locations.shape[:2] for g in self.groups]
        ends = np.cumsum([count * m for count, m in shapes])
        return tuple(part.reshape(shape) for part, shape in zip(jnp.split(flat, ends[:-1]), shapes, strict=True))

    @property
    def flat_mean(self) -> Float[Array, " p"]:
        """The means of all whitened values, in one vector."""
        return jnp.concatenate([q.mean.reshape(-1) for q in self.whitened])


def sample_frequencies(key: Key, posterior: FieldPosterior, count: int, spread: Spread) -> tuple[Array, ...]:
    """Frequencies of `count` random features for each group."""
    keys = jr.split(key, len(posterior.groups))
    return tuple(
        g.kernel.frequencies(spread_normals(k, count, g.scale.shape[-1] + g.kernel.tail_normals, spread))
        for k, g in zip(keys, posterior.groups, strict=True)
    )


def sample_normals(key: Key, posterior: FieldPosterior, count: int, batch: tuple[int, ...] = ()) -> tuple[tuple, tuple]:
    """Standard normals of draws: one set for the inducing values, one for the weights of `count` features."""
    k_values, k_weights = jr.split(key)
    shapes = [q.mean.shape for q in posterior.values]
    values = tuple(
        jr.normal(k, (*batch, *shape)) for k, shape in zip(jr.split(k_values, len(shapes)), shapes, strict=True)
    )
    weights = tuple(
        jr.normal(k, (*batch, shape[0], 2, count))
        for k, shape in zip(jr.split(k_weights, len(shapes)), shapes, strict=True)
    )
    return values, weights


def sample_features(
    rng: np.random.Generator, posterior: FieldPosterior, count: int, spread: Spread, paths: int
) -> Features:
    """Random features of so many draws: frequencies that they share, and weights of their own.

    Further paths come after the first ones, which stay as they are.
    """
    frequencies, weights = [], []
    for own, g in zip(rng.spawn(len(posterior.groups)), posterior.groups, strict=True):
        normals = host_normals(own, count, g.scale.shape[-1] + g.kernel.tail_normals, spread)
        frequencies.append(g.kernel.frequencies(on_device(normals)))
        weights.append(on_device(own.normal(size=(paths, g.scale.shape[0], 2, count))))
    return Features(tuple(frequencies), tuple(weights))
