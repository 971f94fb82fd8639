"""The posterior over vector fields: a structure, its latents' kernels and inducing points, and q over their values."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from sgpd.arrays import Key, Numbers, Scalar, State, on_device
from sgpd.fields import Field
from sgpd.gp import (
    JITTER,
    FramedGaussian,
    Kernel,
    Path,
    Trend,
    ValueGaussian,
    WhitenedGaussian,
    draw_path,
    feature_normals,
    host_normals,
    mean_path,
    stacked_basis,
    whitening,
)
from sgpd.gp.features import Sampling
from sgpd.inference.constants import GRID
from sgpd.structures import Axes, Latents, LatentSpec, Structure

# One array a group, a row a latent: values at inducing points, then coefficients of its trend. Groups differ in size.
Whitened = tuple[Float[Array, "_ _"], ...]


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
    trend: Trend | None = None  # of each latent, beside its process

    def along_axes(self, inputs: Float[np.ndarray, "count n k"]) -> Float[np.ndarray, "count n k"]:
        """What the latents see, as their kernels see it."""
        return inputs if self.axes is None else np.einsum("cij,cnj->cni", np.asarray(self.axes), inputs)

    @property
    def points(self) -> int:
        """How many inducing points a latent has; its other unknowns are coefficients of its trend."""
        return self.scaled_locations.shape[1]

    @property
    def may_grow(self) -> bool:
        """Whether points are among the data, and may be more: a grid in few dimensions is dense from the start."""
        return self.scale.shape[-1] > GRID

    @property
    def coefficients(self) -> int:
        """How many coefficients the trend of a latent has."""
        return 0 if self.trend is None else self.trend.size

    @property
    def stds(self) -> Float[Array, "count b"]:
        """The standard deviations of those coefficients."""
        if self.trend is None:
            return jnp.zeros((self.scale.shape[0], 0))
        return jax.vmap(Trend.stds)(self.trend, self.kernel)

    @property
    def unknowns(self) -> tuple[int, int]:
        """How many latents there are, and how many unknowns each has."""
        return self.scale.shape[0], self.points + self.coefficients

    @property
    def logarithms(self) -> list:
        """What the evidence may change: lengthscales, variance, variances of the trend."""
        own = [self.kernel.log_lengthscale, self.kernel.log_variance]
        return own if self.trend is None else [*own, self.trend.log_variances]

    def paths(self, whitened: Float[Array, "count unknowns"], features: tuple[Array, Array] | None = None) -> Path:
        """The latents through given whitened values, stacked; without frequencies and weights of features, means."""
        values, coefficients = whitened[:, : self.points], whitened[:, self.points :]
        if features is None:
            paths = jax.vmap(mean_path)(self.kernel, self.inducing, values, self.whitening)
        else:
            given = (self.kernel, self.inducing, values, *features, self.whitening)
            paths = jax.vmap(draw_path, in_axes=(0, 0, 0, None, 0, 0))(*given)
        return self.trended(paths, coefficients)

    def trended(self, paths: Path, coefficients: Float[Array, "count b"]) -> Path:
        """With whitened coefficients of the trend, if there is one."""
        if self.trend is None:
            return paths
        one = lambda path, trend, u: replace(path, trend=trend.parabola(path.kernel, u))
        return jax.vmap(one)(paths, self.trend, coefficients)

    @property
    def whitening(self) -> Float[Array, "count m m"]:
        """L⁻¹ of each latent."""
        if self.known_whitening is not None:
            return self.known_whitening
        return jax.vmap(partial(whitening, jitter=self.jitter))(self.kernel, self.inducing)

    @property
    def whitening_of_all(self) -> Float[Array, "count unknowns unknowns"]:
        """What makes u of values and coefficients: L⁻¹, and 1 over the coefficients' standard deviations."""
        return jax.vmap(block_diag)(self.whitening, jax.vmap(jnp.diag)(1 / self.stds))

    @property
    def inducing(self) -> Float[Array, "count m k"]:
        """ξ."""
        return self.scaled_locations * self.scale


class Features(NamedTuple):
    """Random features of one draw: frequencies, which draws may share, and weights, which they may not."""

    frequencies: tuple[Float[Array, "s k"], ...]
    weights: tuple[Float[Array, "count 2 s"], ...]


class FieldPosterior(eqx.Module):
    """q(f): independent Gaussians over the whitened values and coefficients of every latent."""

    structure: Structure = eqx.field(static=True)
    dimension: int = eqx.field(static=True)
    groups: tuple[LatentGroup, ...]
    values: tuple[WhitenedGaussian | FramedGaussian | ValueGaussian, ...]

    @property
    def whitened(self) -> tuple[WhitenedGaussian | FramedGaussian, ...]:
        """q(u), whatever the coordinates in which it is kept."""
        return tuple(
            jax.vmap(ValueGaussian.whitened)(q, g.whitening_of_all) if isinstance(q, ValueGaussian) else q
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

    def draw(self, normals: Whitened, features: Features) -> Field:
        """The field that belongs to standard normals for its unknowns and to random features."""
        whitened = tuple(q.value(e) for q, e in zip(self.whitened, normals, strict=True))
        return self.field(whitened, features)

    @eqx.filter_jit
    def mean(self) -> Field:
        """The field with every inducing value at its mean: the best estimate."""
        return self.field(tuple(q.mean for q in self.whitened))

    def field(self, whitened: Whitened, features: Features | None = None) -> Field:
        """The field through given whitened inducing values; without features, the mean of all such fields."""
        return self.assembled(self.paths(whitened, features))

    def assembled(self, paths: Sequence[eqx.Module]) -> Field:
        """The field made of the latents, one stack of paths a group."""
        return self.structure.field(paths, self.dimension, [g.axes for g in self.groups])

    def paths(self, whitened: Whitened, features: Features | None = None) -> list[Path]:
        """The latents through given whitened inducing values, one stack a group."""
        random = [None] * len(self.groups) if features is None else zip(*features, strict=True)
        return [g.paths(u, own) for g, u, own in zip(self.groups, whitened, random, strict=True)]

    def readings(self, paths: Sequence[eqx.Module], x: State) -> Float[Array, " rho"]:
        """r: what the field reads of its latents at x."""
        specs = self.structure.groups(self.dimension)
        latents = self.structure.latents(paths, self.dimension, [g.axes for g in self.groups])
        return jnp.concatenate([_read(spec, own, x) for spec, own in zip(specs, latents, strict=True)])

    def makes(self, x: State, r: Float[Array, " rho"]) -> State:
        """The field at x that is made of readings there."""
        return self.structure.makes(x, r, [g.axes for g in self.groups])

    def basis(self, states: Float[Array, "n d"]) -> list[Float[Array, "count n q m"]]:
        """What readings are made of, group by group: those of each bump and of each term of a trend."""
        found = []
        for g, spec in zip(self.groups, self.structure.groups(self.dimension), strict=True):
            seen = spec.depends_on if g.axes is None else g.axes @ spec.depends_on
            inputs = jnp.einsum("ckd,nd->cnk", seen, states)
            found.append(stacked_basis(g.kernel, g.inducing, g.trend, inputs, spec.reads))
        return found

    @jax.jit
    def made(
        self, states: Float[Array, "n d"], r: Float[Array, "n rho"]
    ) -> tuple[Float[Array, "n d"], Float[Array, "n d rho"]]:
        """The field made of readings, and its derivative by them."""
        by_readings = jax.vmap(jax.jacfwd(self.makes, argnums=1))(states, r)
        return jax.vmap(self.makes)(states, r), by_readings

    def by_latents(self, by_readings: Float[Numbers, "*n rho"]) -> list[Float[Numbers, "*n count q"]]:
        """The same, or anything else by readings, taken apart by group and latent."""
        shapes = [spec.readings for spec in self.structure.groups(self.dimension)]
        ends = np.cumsum([count * q for count, q in shapes])
        split = np.split if isinstance(by_readings, np.ndarray) else jnp.split
        parts = split(by_readings, ends[:-1], axis=-1)
        return [part.reshape(*part.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True)]

    @property
    def rho(self) -> int:
        """How many readings there are at a point."""
        return sum(math.prod(spec.readings) for spec in self.structure.groups(self.dimension))

    @property
    def logarithms(self) -> list:
        """What the evidence may change of all groups."""
        return [leaf for group in self.groups for leaf in group.logarithms]

    def with_logarithms(self, values: list) -> "FieldPosterior":
        """The same with those."""
        return eqx.tree_at(lambda p: p.logarithms, self, values)

    def with_whitenings(self, known: Sequence[Float[Numbers, "_ _ _"] | None]) -> "FieldPosterior":
        """The same, with these computed already; None: they are not."""
        arrays = [None if each is None else jnp.asarray(each) for each in known]
        return replace(
            self, groups=tuple(replace(g, known_whitening=w) for g, w in zip(self.groups, arrays, strict=True))
        )

    def unravel(self, flat: Float[Numbers, " p"]) -> Whitened:
        """All whitened values in one vector, taken apart by group."""
        shapes = [g.unknowns for g in self.groups]
        ends = np.cumsum([count * m for count, m in shapes])
        return tuple(part.reshape(shape) for part, shape in zip(jnp.split(flat, ends[:-1]), shapes, strict=True))

    @property
    def flat_mean(self) -> Float[Array, " p"]:
        """The means of all whitened values, in one vector."""
        return jnp.concatenate([q.mean.reshape(-1) for q in self.whitened])


def _read(spec: LatentSpec, latents: Latents, x: State) -> Float[Array, " readings"]:
    """Values and slopes of the latents of one group at x, latent by latent."""
    inputs = latents.depends_on @ x
    columns = {
        "value": lambda: jax.vmap(lambda path, y: path(y))(latents.paths, inputs)[:, None],
        "slope": lambda: jax.vmap(lambda path, y: path.gradient(y))(latents.paths, inputs),
    }
    return jnp.concatenate([columns[each]() for each in spec.reads], axis=1).reshape(-1)


def feature_counts(posterior: FieldPosterior, asked: int | None, sampling: Sampling = "quasi") -> tuple[int, ...]:
    """How many random features each group gets: as many as asked, or what its frequencies need (`gp/features.py`)."""
    if asked is not None:
        return (asked,) * len(posterior.groups)
    dimensions = [g.scale.shape[-1] + g.kernel.tail_normals for g in posterior.groups]
    return tuple(64 if dimension == 1 and sampling == "quasi" else 256 for dimension in dimensions)


def sample_frequencies(key: Key, posterior: FieldPosterior, count: int, sampling: Sampling) -> tuple[Array, ...]:
    """Frequencies of `count` random features for each group."""
    keys = jr.split(key, len(posterior.groups))
    return tuple(
        g.kernel.frequencies(feature_normals(k, count, g.scale.shape[-1] + g.kernel.tail_normals, sampling))
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


@jax.jit
def _frequencies(kernel: Kernel, normals: Float[Array, "s n"]) -> Float[Array, "s k"]:
    return kernel.frequencies(normals)


def sample_features(
    rng: np.random.Generator, posterior: FieldPosterior, counts: Sequence[int], sampling: Sampling, paths: int
) -> Features:
    """So many random features for each group, of so many draws: shared frequencies, and weights of their own.

    Further paths come after the first ones, which stay as they are.
    """
    frequencies, weights = [], []
    for own, g, count in zip(rng.spawn(len(posterior.groups)), posterior.groups, counts, strict=True):
        normals = host_normals(own, count, g.scale.shape[-1] + g.kernel.tail_normals, sampling)
        frequencies.append(_frequencies(g.kernel, on_device(normals)))
        weights.append(on_device(own.normal(size=(paths, g.scale.shape[0], 2, count))))
    return Features(tuple(frequencies), tuple(weights))
