"""Structures: how scalar latents become a vector field, and what is then true of it by construction."""

from sgpd.outcome import unknown_name
from sgpd.structures.free import Free as Free
from sgpd.structures.hamiltonian import Hamiltonian as Hamiltonian
from sgpd.structures.latents import Axes as Axes
from sgpd.structures.latents import Latents as Latents
from sgpd.structures.latents import LatentSpec as LatentSpec
from sgpd.structures.latents import Structure as Structure
from sgpd.structures.quadratic import QuadraticInvariant as QuadraticInvariant
from sgpd.structures.separable import Separable as Separable

_STRUCTURES: dict[str, type[Structure]] = {s.name: s for s in (Free, Separable, Hamiltonian, QuadraticInvariant)}


def names() -> list[str]:
    """The names of all structures."""
    return list(_STRUCTURES)


def get(name: str, **options) -> Structure:
    """The structure of that name, with options such as form='components'."""
    if name not in _STRUCTURES:
        raise unknown_name("structure", name, _STRUCTURES)
    return _STRUCTURES[name](**options)
