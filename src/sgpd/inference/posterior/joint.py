"""The posterior of all unknowns together: whitened inducing values of every latent, and the states where pieces start.

    u ~ N(mean, R Rᵀ)        s | u = start + G (u - mean) + T ε

Field and first state are strongly correlated: a slower field from a higher start fits the same recording. So a forecast
that goes on from a recording draws both together, and one from a start that is known exactly first learns from it.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import Numbers, State, on_device
from sgpd.errors import NumericalFailure, Outcome
from sgpd.gp.features import Sampling
from sgpd.inference.laplace.linear_model import Regression, Solution
from sgpd.inference.posterior.field import Features, FieldPosterior, sample_features


class Stream(IntEnum):
    """What random numbers of one seed are for."""

    VALUES = 1
    STARTS = 2
    FEATURES = 3
    MEASURED = 11  # starts that were measured
    RANDOMISED = 12  # fits to randomised data
    CHOSEN = 13  # which draws are kept

    def of(self, seed: int) -> np.random.Generator:
        """The random numbers of this seed for this."""
        return np.random.default_rng([seed, self])


class Unknowns(NamedTuple):
    """Whitened values and starts: one set, or a stack of draws."""

    u: Float[Numbers, "*draws p"]
    starts: Float[Numbers, "*draws w d"] | Float[Numbers, "*draws d"]  # of all pieces, or of one

    def at(self, piece: int) -> "Unknowns":
        """With the start of one piece only."""
        return Unknowns(self.u, on_device(np.asarray(self.starts)[..., piece, :]))


class Stored(eqx.Module):
    """Draws of a posterior that is not Gaussian, each with random features of its own, which `seed` brings back."""

    unknowns: Unknowns
    place: Int[Array, " draws"]  # whose features are whose, among those of the seed
    seed: Int[Array, ""]

    def __len__(self) -> int:
        return len(self.place)

    @property
    def different(self) -> int:
        """How many are not repeated: of draws that were chosen by weight, heavy ones stand more than once."""
        return len(np.unique(np.asarray(self.place)))

    @classmethod
    def of(cls, draws: Unknowns, place: Int[np.ndarray, " kept"], seed: int) -> "Stored":
        """Some of the draws of a seed."""
        return cls(_taken(draws, place), on_device(place), on_device(seed))


def _root_of_inverse(precision: Float[np.ndarray, "*batch n n"]) -> Float[np.ndarray, "*batch n n"]:
    """R with R Rᵀ = Λ⁻¹, lower triangular.

    Λ = U Uᵀ with U upper triangular is the Cholesky factorisation of Λ from its last row to its first; R = U⁻ᵀ. The
    inverse itself is never made: at small noise it is symmetric and positive only to rounding.
    """
    try:
        root = np.linalg.cholesky(precision[..., ::-1, ::-1])[..., ::-1, ::-1]
    except np.linalg.LinAlgError:
        raise NumericalFailure(Outcome.NOT_POSITIVE_DEFINITE) from None
    return np.tril(np.linalg.inv(np.swapaxes(root, -1, -2)))


def _taken(tree, index: np.ndarray):
    """Some of a stack."""
    return jax.tree.map(lambda leaf: on_device(np.asarray(leaf)[index]), tree)


class Drawn(NamedTuple):
    """Draws of everything that is random about a field and the starts."""

    unknowns: Unknowns
    features: Features

    def after(self, best: Unknowns) -> "Drawn":
        """The best estimate first: a draw to which random features add nothing."""
        stack = lambda first, rest: on_device(np.concatenate([np.asarray(first)[None], np.asarray(rest)]))
        frequencies, weights = self.features
        weights = tuple(stack(np.zeros(each.shape[1:]), each) for each in weights)
        return Drawn(jax.tree.map(stack, best, self.unknowns), Features(frequencies, weights))


class Joint(eqx.Module):
    """A Gaussian over u and all starts; where it does not describe the posterior, draws of the posterior stand in."""

    mean: Float[Array, " p"]
    root: Float[Array, "p p"]  # R, lower triangular
    starts: Float[Array, "w d"]
    gain: Float[Array, "w d p"]  # G
    start_root: Float[Array, "w d d"]  # T; 0 where a start is exact
    stored: Stored | None = None

    @classmethod
    def independent(cls, posterior: FieldPosterior, starts: Float[Array, "w d"], std: Float[Array, "w d"]) -> "Joint":
        """q(u) q(s) with independent latents and starts: what the variational engine gives."""
        blocks = [root for q in posterior.whitened for root in q.plain().root]
        mean = posterior.flat_mean
        gain = jnp.zeros((*starts.shape, mean.size))
        return cls(mean, jsl.block_diag(*blocks), starts, gain, jnp.einsum("wi,ij->wij", std, jnp.eye(std.shape[1])))

    @classmethod
    def laplace(
        cls,
        best: Unknowns,
        equations: Regression,
        solution: Solution,
        pinned: Bool[np.ndarray, " w"],
        noise: np.ndarray,
    ) -> "Joint":
        """The Gaussian around the optimum of a fit in which every piece starts once, of equations piece by piece."""
        root = _root_of_inverse(np.asarray(solution.precision))
        free = ~np.asarray(pinned)[:, None, None]
        matrix, _, coupling = map(np.asarray, equations.starts)
        gain = -np.linalg.solve(matrix, np.swapaxes(coupling, 1, 2)) * noise[:, None]
        start_root = noise[:, None] * _root_of_inverse(matrix)
        gain, start_root = (on_device(np.where(free, each, 0.0)) for each in (gain, start_root))
        return cls(on_device(best.u), on_device(root), on_device(best.starts), gain, start_root)

    @property
    def best(self) -> Unknowns:
        """The most probable values."""
        return Unknowns(self.mean, self.starts)

    def draw(
        self, seed: int, paths: int, posterior: FieldPosterior, features: Sequence[int], sampling: Sampling
    ) -> Drawn:
        """So many draws, with random features. Of stored ones, different ones as long as there are any.

        More paths with the same seed begin with the same ones.
        """
        if self.stored is None:
            rng = Stream.FEATURES.of(seed)
            return Drawn(self.gaussian(seed, paths), sample_features(rng, posterior, features, sampling, paths))
        index = np.random.default_rng(seed).permutation(len(self.stored))[np.arange(paths) % len(self.stored)]
        place = np.asarray(self.stored.place)
        rng = Stream.FEATURES.of(int(self.stored.seed))
        own = sample_features(rng, posterior, features, sampling, int(place.max()) + 1)
        return Drawn(_taken(self.stored.unknowns, index), Features(own.frequencies, _taken(own.weights, place[index])))

    def gaussian(self, seed: int, paths: int) -> Unknowns:
        """Draws of the Gaussian."""
        normal = lambda stream, *shape: stream.of(seed).normal(size=(paths, *shape))
        mean, root, starts, gain, start_root = map(
            np.asarray, (self.mean, self.root, self.starts, self.gain, self.start_root)
        )
        away = normal(Stream.VALUES, mean.size) @ root.T
        own = np.einsum("wij,swj->swi", start_root, normal(Stream.STARTS, *starts.shape))
        return Unknowns(on_device(mean + away), on_device(starts + np.einsum("wip,sp->swi", gain, away) + own))

    def with_expected_starts(self, drawn: Unknowns) -> Unknowns:
        """Draws with the starts that the Gaussian expects with their values."""
        away = np.asarray(drawn.u) - np.asarray(self.mean)
        return Unknowns(drawn.u, np.asarray(self.starts) + np.einsum("wip,sp->swi", np.asarray(self.gain), away))

    def start_covariance(self, piece: int) -> np.ndarray:
        """Of the start of one piece."""
        through, own = np.asarray(self.gain)[piece] @ np.asarray(self.root), np.asarray(self.start_root)[piece]
        return through @ through.T + own @ own.T

    def expects(self, piece: int, x0: State, level: float = 0.999) -> bool:
        """Whether x0 may be the true start of a piece whose start is uncertain: inside the ellipsoid of this level."""
        from scipy.stats import chi2

        covariance = self.start_covariance(piece)
        if not covariance.any():
            return False
        away = np.asarray(x0) - np.asarray(self.starts)[piece]
        return bool(away @ np.linalg.solve(covariance, away) < chi2.ppf(level, len(away)))

    def given(self, piece: int, x0: State, unknowns: Unknowns) -> Unknowns:
        """Best values or draws, moved to what they are once the start of a piece is known (Matheron's rule)."""
        root = np.asarray(self.root)
        onto = np.asarray(self.gain)[piece] @ root @ root.T  # covariance of the start with u
        weights = np.linalg.solve(self.start_covariance(piece), onto)
        away = np.asarray(x0) - np.asarray(unknowns.starts)[..., piece, :]
        return Unknowns(on_device(np.asarray(unknowns.u) + away @ weights), unknowns.starts)
