"""Fields that keep a quadratic form xᵀQx: those with xᵀ Q f(x) = 0."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, State
from sgpd.errors import BadInput, unknown_name
from sgpd.fields import Field, Traits
from sgpd.structures.contract import Latents, LatentSpec, Structure

Form = Literal["tangent", "lie-poisson", "solved"]
Matrix = Float[Array, "d d"]


class TangentField(eqx.Module):
    """f = S(x) Q x with S skew: tangent to every level set of xᵀQx, and no direction is left out."""

    entries: Latents  # of S below its diagonal
    q: Matrix

    def __call__(self, x: State) -> State:
        lower = jnp.zeros_like(self.q).at[jnp.tril_indices(x.shape[0], -1)].set(self.entries.values(x))
        return (lower - lower.T) @ (self.q @ x)


class LiePoissonField(eqx.Module):
    """f = Qx × ∇H in three dimensions: keeps xᵀQx and, in continuous time, H."""

    hamiltonian: Latents
    q: Matrix

    def energy(self, x: State) -> Scalar:
        """H(x)."""
        return self.hamiltonian.values(x)[0]

    def __call__(self, x: State) -> State:
        return jnp.cross(self.q @ x, self.hamiltonian.gradients(x)[0])


class SolvedField(eqx.Module):
    """All components but the last are latents; the last is solved for. Singular where (Qx)_d = 0."""

    components: Latents
    q: Matrix

    def __call__(self, x: State) -> State:
        normal, free = self.q @ x, self.components.values(x)
        return jnp.append(free, -(normal[:-1] @ free) / normal[-1])


_FIELDS = {"tangent": TangentField, "lie-poisson": LiePoissonField, "solved": SolvedField}
_LATENT_NAMES = {"tangent": "S", "lie-poisson": "H", "solved": "f"}


@dataclass(frozen=True, eq=False)
class QuadraticInvariant(Structure):
    """Motion on a level set of xᵀQx (a sphere where Q is the identity, the default).

    `tangent`: one latent (S) for each entry of a skew matrix, no singularity. `lie-poisson`, in three dimensions: one
    scalar latent H. `solved`: the paper's form, latents f for all components but the last; singular where (Qx)_d = 0,
    and draws that come near run away.
    """

    form: Form = "tangent"
    q: np.ndarray | None = None

    name: ClassVar[str] = "quadratic-invariant"
    promise: ClassVar[str] = "xᵀQx is constant along every solution (|x|² by default)."
    words: ClassVar[str] = "a vector field that keeps a quadratic invariant, with Gaussian-process priors"
    integrators: ClassVar[tuple[str, str]] = ("implicit-midpoint", "gauss-4")

    def __post_init__(self):
        if self.form not in get_args(Form):
            raise unknown_name("form of 'quadratic-invariant'", self.form, get_args(Form))
        self.check_names(_LATENT_NAMES[self.form])
        if self.q is not None:
            object.__setattr__(self, "q", _symmetric(self.q))

    def groups(self, dimension: int) -> tuple[LatentSpec, ...]:
        """Entries of S, or H, or the free components."""
        if dimension < 2 or (self.form == "lie-poisson" and dimension != 3):
            raise BadInput(
                f"The form {self.form!r} needs a state of {'3' if self.form == 'lie-poisson' else 'at least 2'} "
                f"coordinates, got {dimension}",
                "use form='tangent' or another structure",
            )
        count = {"tangent": dimension * (dimension - 1) // 2, "lie-poisson": 1, "solved": dimension - 1}[self.form]
        name = _LATENT_NAMES[self.form]
        return (self.spec(name, count, np.eye(dimension), differentiated=self.form == "lie-poisson"),)

    def assemble(self, *latents: Latents) -> Field:
        """The field of the chosen form."""
        return _FIELDS[self.form](latents[0], jnp.asarray(self._matrix(latents[0].depends_on.shape[2])))

    def traits(self, dimension: int) -> Traits:
        """The invariant."""
        return Traits(invariant=self._matrix(dimension))

    def _matrix(self, dimension: int) -> np.ndarray:
        if self.q is None:
            return np.eye(dimension)
        if len(self.q) != dimension:
            raise BadInput(
                f"Q is {len(self.q)} x {len(self.q)}, but the state has {dimension} coordinates", "give another Q"
            )
        return self.q


def _symmetric(q) -> np.ndarray:
    q = np.asarray(q, float)
    if q.ndim != 2 or q.shape[0] != q.shape[1] or not np.allclose(q, q.T) or not np.isfinite(q).all():
        raise BadInput(f"Q must be a symmetric matrix of finite numbers, got shape {q.shape}", "give (Q + Qᵀ)/2")
    return (q + q.T) / 2  # xᵀ Q f = 0 to rounding needs Q = Qᵀ to rounding
