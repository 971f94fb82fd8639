"""A posterior's latents under kernels that change, and what is made of those once for all points: L⁻¹, with z = L u."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from sgpd.inference.posterior.field import FieldPosterior


class Kernels(NamedTuple):
    """A posterior's latents under kernels of these logarithms; plain tuples, because these are made again and again."""

    original: FieldPosterior  # without q
    logarithms: list[Float[Array | np.ndarray, "..."]]
    whitenings: tuple[Float[Array | np.ndarray, "_ _ _"], ...]  # L⁻¹ of every latent, group by group
    trend_stds: tuple[Float[Array | np.ndarray, "_ _"], ...]  # of coefficients

    @classmethod
    def of(cls, posterior: FieldPosterior, logarithms: list | None = None) -> "Kernels":
        """Its own, or others."""
        if posterior.values:
            posterior = replace(posterior, values=()).with_whitenings((None,) * len(posterior.groups))
        logarithms = posterior.logarithms if logarithms is None else logarithms
        roots = jax.tree.map(np.asarray, _prior_roots(posterior, logarithms))
        return cls(posterior, logarithms, *roots)

    @property
    def posterior(self) -> FieldPosterior:
        """With all that."""
        return self.original.with_logarithms(self.logarithms).with_whitenings(self.whitenings)

    def columns(self) -> Iterator[tuple[slice, Float[np.ndarray, "m m"], tuple[int, int]]]:
        """Which unknowns are the inducing values of a latent, its L⁻¹, and its place among the latents."""
        at = 0
        for index, (whitenings, stds) in enumerate(zip(self.whitenings, self.trend_stds, strict=True)):
            for latent, whitening in enumerate(whitenings):
                yield slice(at, at + len(whitening)), whitening, (index, latent)
                at += len(whitening) + stds.shape[1]

    def heights(self, u: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """L⁻ᵀ u: the heights of bumps, and coefficients of trends in their standard deviations."""
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
def _prior_roots(posterior: FieldPosterior, logarithms: list):
    posterior = posterior.with_logarithms(logarithms)
    return tuple(g.whitening for g in posterior.groups), tuple(g.stds for g in posterior.groups)
