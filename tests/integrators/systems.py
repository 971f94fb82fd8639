"""Analytic non-linear fields to step, x = (p, q)."""

import jax.numpy as jnp
import jax.random as jr

from sgpd.fields import SplitField


def tao(x):
    """The field of the non-separable H = (q² + 1)(p² + 1)/2 (Tao 2016)."""
    p, q = x
    return jnp.stack([-q * (p**2 + 1), p * (q**2 + 1)])


# Separable, with a kinetic energy that is not quadratic: H = p²/2 - cos(p)/2 - cos(q) + 0.15 sin(2q).
asymmetric_pendulum = SplitField(
    dp=lambda q: -jnp.sin(q) - 0.3 * jnp.cos(2 * q),
    dq=lambda p: p + 0.5 * jnp.sin(p),
)


def rigid_body(x):
    """Euler's equations of a free body; |x|² and x₁² + x₂²/2 are constant."""
    return jnp.stack([x[1] * x[2] / 2, -x[0] * x[2], x[0] * x[1] / 2])


def wave_gradient(key, dimension, terms=6):
    """∇H of a random trigonometric polynomial H(x) = Σ aₖ cos(kᵀx + φₖ): smooth, bounded, with no symmetry."""
    k_wave, k_phase, k_height = jr.split(key, 3)
    waves = jr.normal(k_wave, (terms, dimension))
    phases = jr.uniform(k_phase, (terms,), maxval=2 * jnp.pi)
    heights = jr.normal(k_height, (terms,))
    heights = heights / (jnp.abs(heights) @ (waves**2).sum(axis=1))  # so that |∇²H| ≤ Σ |aₖ| |k|² = 1
    return lambda x: -(heights * jnp.sin(waves @ x + phases)) @ waves


def hamiltonian_waves(key, freedom):
    """f = (-∂H/∂q, ∂H/∂p) for a random non-separable H."""
    gradient = wave_gradient(key, 2 * freedom)

    def field(x):
        g = gradient(x)
        return jnp.concatenate([-g[freedom:], g[:freedom]])

    return field


def separable_waves(key, freedom):
    """The split field of random H = T(p) + V(q)."""
    k_kinetic, k_potential = jr.split(key)
    slope = wave_gradient(k_potential, freedom)
    return SplitField(dp=lambda q: -slope(q), dq=wave_gradient(k_kinetic, freedom))


def waves_for(method, key, freedom):
    """The most general random Hamiltonian field that the method accepts."""
    make = separable_waves if is_split(method) else hamiltonian_waves
    return make(key, freedom)


def is_split(method):
    return hasattr(method.tableau, "kicks")
