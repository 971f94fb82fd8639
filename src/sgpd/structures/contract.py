"""Which scalar functions a structure needs, on what they depend, and the contract of a structure."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import State
from sgpd.errors import unknown_name
from sgpd.fields import Field, Traits
from sgpd.gp import Path

Axes = Float[Array, "count k k"]  # of the inputs of each latent, one below the other


@dataclass(frozen=True, eq=False)
class LatentSpec:
    """A group of `count` independent scalar latents, each on its own linear image `sees[i] @ x` of the state."""

    name: str
    count: int
    sees: np.ndarray  # (count, k, d)
    differentiated: bool  # whether the field needs the latents' gradients

    def inputs(self, x: Float[Array, "n d"]) -> Float[Array, "count n k"]:
        """What each latent sees of a set of states."""
        return jnp.einsum("ckd,nd->cnk", jnp.asarray(self.sees), x)


class Latents(eqx.Module):
    """Drawn functions of one group, on the whole state."""

    paths: Path  # stacked
    sees: Float[Array, "count k d"]

    def on(self, coordinates: slice) -> "Latents":
        """The same functions, of those coordinates alone."""
        return Latents(self.paths, self.sees[:, :, coordinates])

    def values(self, x: State) -> Float[Array, " count"]:
        """fᵢ(Aᵢ x)."""
        return jax.vmap(lambda path, a: path(a @ x))(self.paths, self.sees)

    def gradients(self, x: State) -> Float[Array, "count d"]:
        """Aᵢᵀ ∇fᵢ(Aᵢ x)."""
        return jax.vmap(lambda path, a: path.gradient(a @ x) @ a)(self.paths, self.sees)


@dataclass(frozen=True, eq=False)
class Structure(ABC):
    """How scalar latents make a vector field, and what then holds of every such field.

    To write your own: name the latents (`groups`), put them together (`assemble`), and say what is true (`traits`).
    Every structure is linear in its latents.

    `sees` gives a latent a linear map of the coordinates instead of all of them, by the latent's name: a potential
    `{"V": [[1, 0, -1, 0], [0, 1, 0, -1]]}` sees q1 - q2 only, so translations change nothing, exactly.
    """

    sees: Mapping[str, Sequence | np.ndarray] = field(default_factory=dict, kw_only=True)

    name: ClassVar[str]
    promise: ClassVar[str]

    @abstractmethod
    def groups(self, dimension: int) -> tuple[LatentSpec, ...]:
        """The latents that a state of that dimension needs."""

    @abstractmethod
    def assemble(self, *latents: Latents) -> Field:
        """The field made of drawn latents, one `Latents` for each group."""

    @abstractmethod
    def traits(self, dimension: int) -> Traits:
        """What holds of every field of this structure."""

    # Two structures of the same kind and options are the same, so that compiled programs are shared between fits.
    def __eq__(self, other) -> bool:
        return type(self) is type(other) and self._options() == other._options()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._options()))

    def _options(self) -> tuple:
        return tuple(_hashable(getattr(self, option.name)) for option in fields(self))

    def field(self, paths: Sequence[Path], dimension: int, axes: Sequence[Axes | None] | None = None) -> Field:
        """The field made of one stack of paths for each group, which may see the group's inputs along axes."""
        groups = self.groups(dimension)
        parts = zip(paths, groups, axes or [None] * len(groups), strict=True)
        return self.assemble(*(Latents(p, jnp.asarray(g.sees) if a is None else a @ g.sees) for p, g, a in parts))

    def spec(self, name: str, count: int, whole: np.ndarray, *, differentiated: bool) -> LatentSpec:
        """A group whose latents see `whole` (k, d), or what the user's `sees` makes of it."""
        return LatentSpec(name, count, _composed(name, self.sees.get(name), count, whole), differentiated)

    def check_names(self, *known: str):
        """Refuse a `sees` for a latent that this structure does not have."""
        for name in self.sees:
            if name not in known:
                raise unknown_name("latent", name, known)


def _hashable(option):
    """An option as something that can be compared and hashed."""
    if isinstance(option, Mapping):
        return tuple(sorted((name, _hashable(value)) for name, value in option.items()))
    if option is None or isinstance(option, str):
        return option
    array = np.asarray(option, float)
    return array.shape, array.tobytes()


def _composed(name: str, given, count: int, whole: np.ndarray) -> np.ndarray:
    """The maps (count, k, d) from the state to what each latent sees."""
    if given is None:
        return np.broadcast_to(whole, (count, *whole.shape))
    maps = np.asarray(given, float)
    if maps.ndim == 2:
        maps = np.broadcast_to(maps, (count, *maps.shape))
    if maps.shape[:1] + maps.shape[2:] != (count, len(whole)) or not np.isfinite(maps).all():
        raise ValueError(
            f"The map for latent {name!r} must have {len(whole)} columns, one for each coordinate it may see"
            f" (or be a stack of {count} such maps), got shape {np.shape(given)}."
        )
    return maps @ whole


def momenta(dimension: int) -> np.ndarray:
    """The map x = (p, q) to p."""
    return np.eye(dimension)[: half(dimension)]


def positions(dimension: int) -> np.ndarray:
    """The map x = (p, q) to q."""
    return np.eye(dimension)[half(dimension) :]


def half(dimension: int) -> int:
    """The number of degrees of freedom."""
    if dimension % 2:
        raise ValueError(
            f"A Hamiltonian structure needs as many momenta as positions, but the state has {dimension} coordinates; "
            "give every position its momentum, or use the structure 'free'."
        )
    return dimension // 2
