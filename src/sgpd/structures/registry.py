"""Which structures there are: ours by name, anyone's by its place, "module:Class"."""

from sgpd.errors import unknown_name
from sgpd.importing import import_class, place_of
from sgpd.structures.contract import Structure
from sgpd.structures.free import Free
from sgpd.structures.hamiltonian import Hamiltonian
from sgpd.structures.quadratic import QuadraticInvariant
from sgpd.structures.separable import Separable

_ALL: tuple[type[Structure], ...] = (
    Free,
    Separable,
    Hamiltonian,
    QuadraticInvariant,
)
_STRUCTURES = {structure.name: structure for structure in _ALL}


def names() -> list[str]:
    """The names of all structures."""
    return list(_STRUCTURES)


def get(name: str, **options) -> Structure:
    """The structure of that name, or in that place ("mymodule:MyStructure"), with options such as form='components'."""
    if ":" in name:
        return import_class(name, Structure)(**options)
    if name not in _STRUCTURES:
        raise unknown_name("structure", name, _STRUCTURES)
    return _STRUCTURES[name](**options)


def key_of(structure: Structure) -> str:
    """What `get` takes for the class of a structure."""
    return structure.name if _STRUCTURES.get(structure.name) is type(structure) else place_of(type(structure))
