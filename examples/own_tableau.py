"""A Runge-Kutta method of your own: verified when it is made, stepped, and checked on a field."""

import jax.numpy as jnp

import sgpd

# Two implicit midpoint steps of half the length, written as one method: Qin and Zhang's diagonally implicit one.
A = [[1 / 4, 0], [1 / 2, 1 / 4]]
B = [1 / 2, 1 / 2]


def main():
    """Make a method, step a pendulum with it, measure what it keeps; then state an order that it does not have."""
    method = sgpd.integrators.RungeKutta(sgpd.Tableau("two-midpoints", A, B, order=2))
    print(f"{method.name}: order {method.order}, implicit {method.implicit}, symplectic {method.symplectic}")

    pendulum = sgpd.SplitField(
        dp=lambda q: -6 * jnp.sin(q),
        dq=lambda p: p,
        energy=lambda x: 6 * (1 - jnp.cos(x[1])) + x[0] ** 2 / 2,
    )
    x1, info = method.step(pendulum, [2.0, 2.0], 0.1)
    print(f"one step: {x1}, converged {info.converged}, residual {info.residual:.0e}")
    print(sgpd.checks.check_field(pendulum, method, [2.0, 2.0], h=0.1, steps=400))

    try:
        sgpd.Tableau("two-midpoints", A, B, order=3)
    except ValueError as refusal:
        print(f"refused: {refusal}")


if __name__ == "__main__":
    main()
