"""A posterior's latents under kernels that change, and what is made of those once for all points: L⁻¹, with z = L u."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Numbers, on_device
from sgpd.fields import Field
from sgpd.gp import Path
from sgpd.gp.trends import Parabola
from sgpd.inference.posterior.field import FieldPosterior, LatentGroup
from sgpd.xla.batches import in_rows


class Kernels(NamedTuple):
    """A posterior's latents under kernels of these logarithms; plain tuples, because these are made again and again."""

    original: FieldPosterior  # without q
    logarithms: list[Float[Numbers, "..."]]
    whitenings: tuple[Float[Numbers, "_ _ _"], ...]  # L⁻¹ of every latent, group by group
    trend_stds: tuple[Float[Numbers, "_ _"], ...]  # of coefficients

    @classmethod
    def of(cls, posterior: FieldPosterior, logarithms: list | None = None) -> "Kernels":
        """Its own, or others."""
        if posterior.values or posterior.groups[0].known_whitening is not None:
            posterior = replace(posterior, values=()).with_whitenings((None,) * len(posterior.groups))
        logarithms = posterior.logarithms if logarithms is None else logarithms
        roots = jax.tree.map(np.asarray, _prior_roots(posterior, logarithms))
        return cls(posterior, logarithms, *roots)

    @property
    def posterior(self) -> FieldPosterior:
        """With all that."""
        return self.original.with_logarithms(self.logarithms).with_whitenings(self.whitenings)

    @property
    def size(self) -> int:
        """p: how many unknowns there are."""
        return sum(count * m for count, m in (g.unknowns for g in self.original.groups))

    def by_unknowns(self, states: Float[np.ndarray, "n d"]) -> list[Float[np.ndarray, "n count q m"]]:
        """Ψ: the derivative of readings by whitened values and coefficients, group by group."""
        found = in_rows(lambda rows: _basis(self.original, self.logarithms, rows), states)
        for whole, whitenings in zip(found, self.whitenings, strict=True):
            m = whitenings.shape[1]
            whole[..., :m] = np.einsum("ncqm,cim->ncqi", whole[..., :m], whitenings, optimize=True)
        return found

    def design(
        self, states: Float[np.ndarray, "n d"], r: Float[np.ndarray, "n rho"] | None = None
    ) -> Float[np.ndarray, "n d p"]:
        """∂f(xₙ)/∂u where readings are r; where the field is linear in them, it does not matter what they are."""
        r = np.zeros((len(states), self.original.rho)) if r is None else r
        made = in_rows(self.original.made, states, r)[1]
        parts = zip(self.original.by_latents(made), self.by_unknowns(states), strict=True)
        blocks = [np.einsum("ndcq,ncqm->ndcm", np.asarray(by_r), by_u, optimize=True) for by_r, by_u in parts]
        return np.concatenate([block.reshape(*states.shape, -1) for block in blocks], axis=2)

    def field(self, u: Float[np.ndarray, " p"]) -> Field:
        """The field of whitened values and coefficients, without random features; nothing is compiled for it."""
        heights, coefficients = self.heights(u), u * self._stds
        paths, at = [], 0
        for group in self.posterior.groups:
            latents = []
            for index in range(len(group.scale)):
                bumps = heights[at : at + group.points]
                at += group.points
                latents.append(_path(group, index, bumps, coefficients[at : at + group.coefficients]))
                at += group.coefficients
            paths.append(jax.tree.map(lambda *leaves: on_device(np.stack(leaves)), *latents))
        return self.original.assembled(paths)

    def columns(self) -> Iterator[tuple[slice, Float[np.ndarray, "m m"], tuple[int, int]]]:
        """Which unknowns are the inducing values of a latent, its L⁻¹, and its place among the latents."""
        at = 0
        for index, (whitenings, stds) in enumerate(zip(self.whitenings, self.trend_stds, strict=True)):
            for latent, whitening in enumerate(whitenings):
                yield slice(at, at + len(whitening)), whitening, (index, latent)
                at += len(whitening) + stds.shape[1]

    def heights(self, u: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """L⁻ᵀ u: the heights of bumps, and the coefficients of trends in their standard deviations."""
        found = np.array(u)
        for columns, whitening, _ in self.columns():
            found[columns] = whitening.T @ u[columns]
        return found

    def whitened(self, by_bumps: Float[np.ndarray, "k d p"]) -> Float[np.ndarray, "k d p"]:
        """J of J by heights: latent by latent J L⁻ᵀ."""
        found = by_bumps.copy()
        for columns, whitening, _ in self.columns():
            found[:, :, columns] = by_bumps[:, :, columns] @ whitening.T
        return found

    def values(self, u: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """L u: inducing values, and coefficients of trends."""
        found = u * self._stds
        for columns, whitening, _ in self.columns():
            found[columns] = np.linalg.solve(whitening, u[columns])
        return found

    def unknowns(self, values: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """u of those."""
        found = values / self._stds
        for columns, whitening, _ in self.columns():
            found[columns] = whitening @ values[columns]
        return found

    @property
    def _stds(self) -> Float[np.ndarray, " p"]:
        """The standard deviations of trends' coefficients; 1 for inducing values."""
        pairs = zip(self.whitenings, self.trend_stds, strict=True)
        return np.concatenate([np.concatenate([np.ones(w.shape[:2]), stds], axis=1).ravel() for w, stds in pairs])


@jax.jit
def _basis(posterior: FieldPosterior, logarithms: list, states: Float[Array, "n d"]):
    return [jnp.swapaxes(each, 0, 1) for each in posterior.with_logarithms(logarithms).basis(states)]


def _path(group: LatentGroup, index: int, bumps: np.ndarray, coefficients: np.ndarray) -> Path:
    """One latent of a group: heights of its bumps, and coefficients of its trend as they are."""
    kernel, trend = jax.tree.map(lambda leaf: on_device(np.asarray(leaf)[index]), (group.kernel, group.trend))
    locations, k = np.asarray(group.scaled_locations)[index] * np.asarray(group.scale)[index], group.scale.shape[-1]
    parabola = None
    if trend is not None:
        lower = np.zeros((k, k))
        lower[np.tril_indices(k)] = coefficients[k:]
        parabola = Parabola(trend.centre, on_device(coefficients[:k]), on_device(lower + lower.T))
    none = on_device(np.zeros(0))
    return Path(kernel, on_device(locations), on_device(np.zeros((0, k))), none, none, on_device(bumps), parabola)


@jax.jit
def _prior_roots(posterior: FieldPosterior, logarithms: list):
    posterior = posterior.with_logarithms(logarithms)
    return tuple(g.whitening for g in posterior.groups), tuple(g.stds for g in posterior.groups)
