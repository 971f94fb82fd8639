"""A field from elsewhere (here a small neural network for the energy), checked for what an integrator keeps of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

import sgpd


class NeuralEnergy(eqx.Module):
    """H(p, q) by a network that knows nothing of sgpd; the field is that of Hamilton's equations."""

    network: eqx.nn.MLP

    def energy(self, x):
        """H, which the checks follow along the steps."""
        return self.network(x) + 0.5 * x @ x

    def __call__(self, x):
        """(p', q') = (-dH/dq, dH/dp)."""
        dp, dq = jnp.split(jax.grad(self.energy)(x), 2)
        return jnp.concatenate([-dq, dp])


def main():
    """The same field under a symplectic method and under one that is not."""
    network = eqx.nn.MLP(2, "scalar", width_size=16, depth=2, activation=jnp.tanh, key=jr.key(0))
    field, starts = NeuralEnergy(network), [[1.0, 0.0], [0.0, 1.5]]
    for name in ("gauss-4", "rk4"):
        method = sgpd.integrators.get(name)
        h, x = 0.2, jnp.array(starts[0])
        defect = sgpd.checks.symplectic_defect(sgpd.checks.step_jacobian(method, field, x, jnp.asarray(h)))
        print(f"{name}: claims to be symplectic: {method.symplectic}; defect of one step {defect:.1e}")
        print(sgpd.checks.check_field(field, method, starts, h=h, steps=200))


if __name__ == "__main__":
    main()
