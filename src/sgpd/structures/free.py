"""No structure: one latent a coordinate."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import numpy as np

from sgpd.arrays import State
from sgpd.fields import Traits
from sgpd.structures.contract import Latents, LatentSpec, Structure


class FreeField(eqx.Module):
    """fᵢ(x), independent from coordinate to coordinate."""

    components: Latents

    def __call__(self, x: State) -> State:
        return self.components.values(x)


@dataclass(frozen=True, eq=False)
class Free(Structure):
    """Any vector field. With explicit Euler it is the paper's baseline. Latent: f, one for each coordinate."""

    name: ClassVar[str] = "free"
    promise: ClassVar[str] = "Any autonomous system; nothing is preserved by construction."
    words: ClassVar[str] = "an unconstrained vector field with a Gaussian-process prior on each component"
    most_general: ClassVar[bool] = True

    def __post_init__(self):
        self.check_names("f")

    def groups(self, dimension: int) -> tuple[LatentSpec, ...]:
        """One latent a coordinate."""
        return (self.spec("f", dimension, np.eye(dimension), differentiated=False),)

    def assemble(self, *latents: Latents) -> FreeField:
        """f."""
        return FreeField(*latents)

    def traits(self, dimension: int) -> Traits:
        """None."""
        return Traits()
