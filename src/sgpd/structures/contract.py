"""Which scalar functions a structure needs, on what they depend, and the contract of a structure.

A field reads its latents at the state x, their values or slopes, and makes the derivative of x of them:

    f(x) = makes(x, r),    r = readings of the latents at x

Readings are linear in what is unknown; `makes` may be any smooth function. A fit needs no more than its derivatives.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import State
from sgpd.errors import BadInput, unknown_name
from sgpd.fields import Field, Traits
from sgpd.gp import Reads, readings
from sgpd.renamed import renamed_attribute, take_renamed
from sgpd.structures.linear_maps import linear_map, restricted

Axes = Float[Array, "count k k"]  # of the inputs of each latent, one below the other


@dataclass(frozen=True, eq=False)
class LatentSpec:
    """A group of `count` independent scalar latents, each on its own linear image `depends_on[i] @ x` of the state."""

    name: str
    count: int
    depends_on: np.ndarray  # (count, k, d)
    differentiated: bool  # whether the field needs the latents' gradients
    also_value: bool = False  # and their values beside them
    std: float | None = None  # prior standard deviation; None: as large as the recording's derivatives ask for

    sees = renamed_attribute("LatentSpec", "sees", "depends_on")

    def inputs(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "count n k"]:
        """What each latent depends on, at a set of states."""
        return np.einsum("ckd,nd->cnk", self.depends_on, x)

    @property
    def reads(self) -> Reads:
        """What the field reads of each latent."""
        if not self.differentiated:
            return ("value",)
        return ("value", "slope") if self.also_value else ("slope",)

    @property
    def readings(self) -> tuple[int, int]:
        """How many latents there are, and how many numbers the field reads of each."""
        return self.count, readings(self.reads, self.depends_on.shape[1])


class Known(eqx.Module):
    """Latents of which nothing is known but what has been read of them at one point; nan is what has not."""

    value: Float[Array, " count"]
    slope: Float[Array, "count k"]

    @classmethod
    def of(cls, spec: LatentSpec, r: Float[Array, "count q"]) -> "Known":
        """From readings, values before slopes."""
        nowhere = jnp.full((spec.count, spec.depends_on.shape[1]), jnp.nan)
        value = r[:, 0] if "value" in spec.reads else nowhere[:, 0]
        return cls(value, r[:, len(spec.reads) - 1 :] if "slope" in spec.reads else nowhere)

    def __call__(self, x: Float[Array, " k"]) -> Array:
        return self.value

    def gradient(self, x: Float[Array, " k"]) -> Array:
        """∇f(x)."""
        return self.slope


class Latents(eqx.Module):
    """Drawn functions of one group, on the whole state."""

    paths: eqx.Module  # stacked: a `Path`, or anything else that has values and gradients
    depends_on: Float[Array, "count k d"]

    sees = renamed_attribute("Latents", "sees", "depends_on")

    def on(self, coordinates: slice) -> "Latents":
        """The same functions, of those coordinates alone."""
        return Latents(self.paths, self.depends_on[:, :, coordinates])

    def values(self, x: State) -> Float[Array, " count"]:
        """fᵢ(Aᵢ x)."""
        return jax.vmap(lambda path, a: path(a @ x))(self.paths, self.depends_on)

    def gradients(self, x: State) -> Float[Array, "count d"]:
        """Aᵢᵀ ∇fᵢ(Aᵢ x)."""
        return jax.vmap(lambda path, a: path.gradient(a @ x) @ a)(self.paths, self.depends_on)


@dataclass(frozen=True, eq=False)
class Structure(ABC):
    """How scalar latents make a vector field, and what then holds of every such field.

    To write your own: name the latents (`groups`), put them together (`assemble`), and say what is true (`traits`);
    the class variables below tell the rest of the package what it needs to know, so that nothing asks for a name.
    A field may be any smooth function of the values and slopes of its latents at the state, not elsewhere.

    `depends_on` gives a latent a linear map of the coordinates instead of all of them, by the latent's name: with
    `{"V": "q1 - q2"}`, or the matrix `{"V": [[1, -1]]}`, V depends on the distance only, so that translations change
    nothing, exactly. Several expressions stand between commas; of a group of latents, a list has one text each.
    """

    depends_on: Mapping[str, str | Sequence | np.ndarray] = field(default_factory=dict, kw_only=True)
    sees: Mapping[str, Sequence | np.ndarray] | None = field(default=None, kw_only=True)  # old name of depends_on

    name: ClassVar[str]
    promise: ClassVar[str]
    words: ClassVar[str] = ""  # in a text on methods: "learned as ..."
    integrators: ClassVar[tuple[str, str]] = ("rk4", "rk4")  # that keep it: the usual one, and one for long steps
    roles: ClassVar[Literal["any", "pq"]] = "any"  # "pq": momenta first, then as many positions
    swaps_silently: ClassVar[bool] = False  # with momenta and positions swapped it fits as well, and learns -H
    most_general: ClassVar[bool] = False  # where it does not fit, no other structure on the same states does

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

    def field(self, paths: Sequence[eqx.Module], dimension: int, axes: Sequence[Axes | None] | None = None) -> Field:
        """The field made of one stack of paths for each group, which may see the group's inputs along axes."""
        return self.assemble(*self.latents(paths, dimension, axes))

    def latents(
        self, paths: Sequence[eqx.Module], dimension: int, axes: Sequence[Axes | None] | None = None
    ) -> list[Latents]:
        """One stack of functions for each group, on the whole state."""
        groups = self.groups(dimension)
        parts = zip(paths, groups, axes or [None] * len(groups), strict=True)
        return [Latents(p, jnp.asarray(g.depends_on) if a is None else a @ g.depends_on) for p, g, a in parts]

    def makes(self, x: State, r: Float[Array, " rho"], axes: Sequence[Axes | None] | None = None) -> State:
        """The field at x, of what it reads of its latents there: values before slopes, latent by latent."""
        groups = self.groups(x.shape[0])
        ends = np.cumsum([math.prod(g.readings) for g in groups])
        parts = [part.reshape(g.readings) for part, g in zip(jnp.split(r, ends[:-1]), groups, strict=True)]
        known = [Known.of(g, part) for g, part in zip(groups, parts, strict=True)]
        return self.assemble(*self.latents(known, x.shape[0], axes))(x)

    def spec(
        self, name: str, count: int, whole: np.ndarray, *, differentiated: bool, std: float | None = None
    ) -> LatentSpec:
        """A group whose latents depend on `whole` (k, d), or on what the user's `depends_on` makes of it."""
        return LatentSpec(name, count, _composed(name, self._maps.get(name), count, whole), differentiated, std=std)

    def named(self, names: Sequence[str]) -> "Structure":
        """The same, with the texts of `depends_on` as matrices, for a state whose coordinates have these names."""
        texts = {latent: given for latent, given in self._maps.items() if _is_text(given)}
        if not texts:
            return self
        plain = dataclasses.replace(self, depends_on={}, sees=None).groups(len(names))
        wholes = {spec.name: spec.depends_on[0] for spec in plain}

        def matrix(latent: str, text: str) -> np.ndarray:
            return restricted(linear_map(text, names), wholes[latent], latent, text, names)

        maps = {
            latent: matrix(latent, given) if isinstance(given, str) else np.stack([matrix(latent, t) for t in given])
            for latent, given in texts.items()
        }
        return dataclasses.replace(self, depends_on={**self._maps, **maps}, sees=None)

    def options(self) -> dict:
        """What makes this structure from its class, as plain data; what is left at its default is left out."""
        given = {option.name: getattr(self, option.name) for option in fields(self) if option.name != "sees"}
        return {name: _plain(value) for name, value in given.items() if value is not None and value != {}}

    def check_names(self, *known: str):
        """Refuse a `depends_on` for a latent that this structure does not have."""
        take_renamed(self, "sees", self.sees, "depends_on")
        object.__setattr__(self, "sees", None)
        for name in self.depends_on:
            if name not in known:
                raise unknown_name("latent", name, known)

    @property
    def _maps(self) -> Mapping:
        return {**self.depends_on, **(self.sees or {})}


def _hashable(option):
    """An option as something that can be compared and hashed."""
    if isinstance(option, Mapping):
        return tuple(sorted((name, _hashable(value)) for name, value in option.items()))
    if option is None or isinstance(option, str):
        return option
    if _is_text(option):
        return tuple(option)
    array = np.asarray(option, float)
    return array.shape, array.tobytes()


def _plain(option):
    """An option as JSON has it."""
    if isinstance(option, Mapping):
        return {name: _plain(value) for name, value in option.items()}
    return option if isinstance(option, str | int | float | bool) else np.asarray(option).tolist()


def _composed(name: str, given, count: int, whole: np.ndarray) -> np.ndarray:
    """The maps (count, k, d) from the state to what each latent depends on."""
    if given is None:
        return np.broadcast_to(whole, (count, *whole.shape))
    if _is_text(given):
        hint = "`structure.named([...])` puts the names of the coordinates in, as `sgpd.fit` does"
        raise BadInput(f"depends_on={{{name!r}: {given!r}}} is still text", hint)
    maps = np.asarray(given, float)
    if maps.ndim == 2:
        maps = np.broadcast_to(maps, (count, *maps.shape))
    if maps.shape[:1] + maps.shape[2:] != (count, len(whole)) or not np.isfinite(maps).all():
        hint = f"give one for each coordinate that it may depend on, or a stack of {count} such maps"
        raise BadInput(f"The map for latent {name!r} must have {len(whole)} columns, got shape {np.shape(given)}", hint)
    return maps @ whole


def _is_text(given) -> bool:
    return isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(one, str) for one in given))


def momenta(dimension: int) -> np.ndarray:
    """The map x = (p, q) to p."""
    return np.eye(dimension)[: half(dimension)]


def positions(dimension: int) -> np.ndarray:
    """The map x = (p, q) to q."""
    return np.eye(dimension)[half(dimension) :]


def half(dimension: int) -> int:
    """The number of degrees of freedom."""
    if dimension % 2:
        raise BadInput(
            f"A Hamiltonian structure needs as many momenta as positions, but the state has {dimension} coordinates",
            "give every position its momentum, or use the structure 'free'",
        )
    return dimension // 2
