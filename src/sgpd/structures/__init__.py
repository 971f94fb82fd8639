"""Structures: how scalar latents become a vector field, and what is then true of it by construction."""

from sgpd.structures.contract import Axes as Axes
from sgpd.structures.contract import Latents as Latents
from sgpd.structures.contract import LatentSpec as LatentSpec
from sgpd.structures.contract import Structure as Structure
from sgpd.structures.free import Free as Free
from sgpd.structures.hamiltonian import Hamiltonian as Hamiltonian
from sgpd.structures.quadratic import QuadraticInvariant as QuadraticInvariant
from sgpd.structures.registry import get as get
from sgpd.structures.registry import key_of as key_of
from sgpd.structures.registry import names as names
from sgpd.structures.separable import Separable as Separable
