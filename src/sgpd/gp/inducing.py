"""q(z): a Gaussian over the values z of a latent function at its inducing points, in whitened coordinates.

z = L u with L Lᵀ = k(ξ, ξ), so that the prior of u is N(0, I) whatever the kernel, and KL(q ‖ p) needs no kernel.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgpd.arrays import Scalar
from sgpd.gp.kernels import Kernel
from sgpd.xla.triangular import inverse_root, on_diagonal

# Relative to the kernel's variance.
JITTER = 1e-8


def prior_root(kernel: Kernel, inducing: Float[Array, "m k"], jitter: float = JITTER) -> Float[Array, "m m"]:
    """L with L Lᵀ = k(ξ, ξ) + jitter σ² I; nan where that is not positive definite."""
    return jnp.linalg.cholesky(_covariance(kernel, inducing, jitter))


def whitening(kernel: Kernel, inducing: Float[Array, "m k"], jitter: float = JITTER) -> Float[Array, "m m"]:
    """L⁻¹, which makes u of z."""
    return inverse_root(_covariance(kernel, inducing, jitter))


def _covariance(kernel: Kernel, inducing: Float[Array, "m k"], jitter: float) -> Float[Array, "m m"]:
    return kernel.matrix(inducing, inducing) + jitter * kernel.variance * jnp.eye(inducing.shape[0])


class WhitenedGaussian(eqx.Module):
    """q(u) = N(mean, R Rᵀ), independent from latent to latent; R lower triangular, or diagonal."""

    mean: Float[Array, "*latents m"]
    raw_root: Float[Array, "..."]  # R with the logarithm of its diagonal; only that logarithm when diagonal

    @classmethod
    def isotropic(cls, mean: Float[Array, "*latents m"], std: float, diagonal: bool = False) -> "WhitenedGaussian":
        """The same standard deviation in every direction."""
        raw = jnp.full(mean.shape, jnp.log(std))
        return cls(mean, raw if diagonal else _diagonal_matrix(raw))

    @classmethod
    def from_covariance(cls, mean, covariance, diagonal: bool = False) -> "WhitenedGaussian":
        """N(mean, covariance), or its closest with independent values: the one with the same conditional variances."""
        if diagonal:
            precision = on_diagonal(jnp.linalg.inv(covariance))
            return cls(mean, -jnp.log(precision) / 2)
        return cls.from_root(mean, jnp.linalg.cholesky(covariance))

    @classmethod
    def from_root(cls, mean, root, diagonal: bool = False) -> "WhitenedGaussian":
        """N(mean, R Rᵀ)."""
        log_diagonal = jnp.log(on_diagonal(root))
        if diagonal:
            return cls(mean, log_diagonal)
        return cls(mean, jnp.tril(root, -1) + jnp.einsum("...i,ij->...ij", log_diagonal, jnp.eye(root.shape[-1])))

    @property
    def diagonal(self) -> bool:
        """Whether R is diagonal."""
        return self.raw_root.ndim == self.mean.ndim

    @property
    def root(self) -> Float[Array, "*latents m m"]:
        """R."""
        if self.diagonal:
            return _diagonal_matrix(jnp.exp(self.raw_root))
        log_diagonal = on_diagonal(self.raw_root)
        return jnp.tril(self.raw_root, -1) + _diagonal_matrix(jnp.exp(log_diagonal))

    def value(self, normals: Float[Array, "*latents m"]) -> Float[Array, "*latents m"]:
        """The draw u = mean + R ε that belongs to standard normals ε."""
        if self.diagonal:
            return self.mean + jnp.exp(self.raw_root) * normals
        return self.mean + jnp.einsum("...ij,...j->...i", self.root, normals)

    def kl(self) -> Scalar:
        """KL(q ‖ p) = ½ (‖R‖² + ‖mean‖² - m) - log det R, summed over the latents."""
        log_diagonal = self.raw_root if self.diagonal else on_diagonal(self.raw_root)
        square = jnp.sum(self.root**2) + jnp.sum(self.mean**2)
        return (square - self.mean.size) / 2 - jnp.sum(log_diagonal)

    def plain(self) -> "WhitenedGaussian":
        """Itself: there is no frame to leave."""
        return self


def _diagonal_matrix(diagonal: Float[Array, "*latents m"]) -> Float[Array, "*latents m m"]:
    return jnp.einsum("...i,ij->...ij", diagonal, jnp.eye(diagonal.shape[-1]))


class FramedGaussian(eqx.Module):
    """q(u) seen from a first guess N(center, F Fᵀ): u = center + F v with v ~ `relative`.

    The same family as `WhitenedGaussian`, in coordinates where one step length suits the directions that the data
    determine sharply and those they hardly touch.
    """

    center: Float[Array, "*latents m"]
    frame: Float[Array, "*latents m m"]  # lower triangular
    relative: WhitenedGaussian

    @classmethod
    def around(cls, guess: WhitenedGaussian) -> "FramedGaussian":
        """q(u) = guess, in the guess's own frame."""
        relative = WhitenedGaussian.isotropic(jnp.zeros_like(guess.mean), 1.0, guess.diagonal)
        return cls(guess.mean, guess.root, relative)

    @property
    def mean(self) -> Float[Array, "*latents m"]:
        """The mean of u."""
        return self.center + jnp.einsum("...ij,...j->...i", self.frame, self.relative.mean)

    @property
    def root(self) -> Float[Array, "*latents m m"]:
        """R = F R_v."""
        return self.frame @ self.relative.root

    def value(self, normals: Float[Array, "*latents m"]) -> Float[Array, "*latents m"]:
        """The draw u that belongs to standard normals."""
        return self.center + jnp.einsum("...ij,...j->...i", self.frame, self.relative.value(normals))

    def kl(self) -> Scalar:
        """KL(q ‖ p), summed over the latents."""
        return self.plain().kl()

    def plain(self) -> WhitenedGaussian:
        """The same q(u) without a frame."""
        return WhitenedGaussian.from_root(self.mean, self.root, self.relative.diagonal)


class ValueGaussian(eqx.Module):
    """q(z) = N(mean, diag(std²)) over the values themselves: the paper's coordinates, offered for its settings.

    Steps of an optimiser mean something else here than in whitened coordinates; draws and KL(q ‖ p) go through those.
    """

    mean: Float[Array, "*latents m"]
    log_std: Float[Array, "*latents m"]

    def whitened(self, whiten: Float[Array, "m m"]) -> WhitenedGaussian:
        """The same q in whitened coordinates, of one latent: mean L⁻¹ μ and R = L⁻¹ diag(std), where L⁻¹ is given."""
        return WhitenedGaussian.from_root(whiten @ self.mean, whiten * jnp.exp(self.log_std)[None, :])
