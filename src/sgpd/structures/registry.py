"""Which structures there are, by name."""

from sgpd.errors import unknown_name
from sgpd.structures.contract import Structure
from sgpd.structures.free import Free
from sgpd.structures.hamiltonian import Hamiltonian
from sgpd.structures.quadratic import QuadraticInvariant
from sgpd.structures.separable import Separable

_STRUCTURES: dict[str, type[Structure]] = {s.name: s for s in (Free, Separable, Hamiltonian, QuadraticInvariant)}


def names() -> list[str]:
    """The names of all structures."""
    return list(_STRUCTURES)


def get(name: str, **options) -> Structure:
    """The structure of that name, with options such as form='components'."""
    if name not in _STRUCTURES:
        raise unknown_name("structure", name, _STRUCTURES)
    return _STRUCTURES[name](**options)
