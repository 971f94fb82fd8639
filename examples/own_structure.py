"""A structure of your own: damped motion, p' = -V'(q) - c(p), q' = T'(p), where nothing else is known."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import sgpd
from sgpd.arrays import State
from sgpd.structures import Latents, LatentSpec, Structure


class DampedField(eqx.Module):
    """The field of one draw of V, T and c."""

    potential: Latents
    kinetic: Latents
    friction: Latents

    def __call__(self, x: State) -> State:
        """(p', q')."""
        n = x.shape[0] // 2
        force = -self.potential.gradients(x)[0, n:] - self.friction.values(x)
        return jnp.concatenate([force, self.kinetic.gradients(x)[0, :n]])


@dataclass(frozen=True, eq=False)
class Damped(Structure):
    """Which latents there are, what each sees of the state, how they make a field, and what then holds."""

    name: ClassVar[str] = "damped"
    promise: ClassVar[str] = "Forces from a potential, and friction that depends on momenta alone."

    def groups(self, dimension: int) -> tuple[LatentSpec, ...]:
        """V sees q, T sees p, each component of the friction sees p."""
        n = dimension // 2
        p, q = np.eye(dimension)[:n], np.eye(dimension)[n:]
        return (
            self.spec("V", 1, q, differentiated=True),
            self.spec("T", 1, p, differentiated=True),
            self.spec("c", n, p, differentiated=False),
        )

    def assemble(self, *latents: Latents) -> DampedField:
        """Put them together."""
        return DampedField(*latents)

    def traits(self, dimension: int) -> sgpd.Traits:
        """Nothing is preserved: the energy falls."""
        return sgpd.Traits()


def main():
    """Fit a damped oscillator, and see that the forecast goes on losing energy as the truth does."""
    t = 0.2 * np.arange(75)
    rng = np.random.default_rng(0)
    q = np.exp(-0.05 * t) * np.cos(t)
    p = -np.exp(-0.05 * t) * (np.sin(t) + 0.05 * np.cos(t))
    states = np.stack([p, q], axis=1) + 0.01 * rng.normal(size=(len(t), 2))
    data = sgpd.Trajectories.from_arrays(t, states, names=["p", "q"])

    model = sgpd.fit(data, Damped(), "rk4", seed=0)
    forecast = model.predict(duration=20.0, paths=16, seed=0)
    true = np.exp(-0.05 * forecast.times) * np.cos(forecast.times)
    print(model)
    for when in (0, 50, 100):
        print(
            f"t = {forecast.times[when]:4.1f}: q = {forecast.mean[when, 1]:+.3f} ± {forecast.std[when, 1]:.3f}, "
            f"true {true[when]:+.3f}"
        )
    friction = model.mean().friction.values(jnp.array([0.5, 0.0]))[0]
    print(f"friction at p = 0.5: {friction:.3f} (true {0.1 * 0.5:.3f})")


if __name__ == "__main__":
    main()
