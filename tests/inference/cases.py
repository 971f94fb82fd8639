"""Small problems whose answers are known."""

import jax.numpy as jnp
import numpy as np

from sgpd.gp import SquaredExponential, WhitenedGaussian, prior_root
from sgpd.inference.posterior.field import FieldPosterior, LatentGroup
from sgpd.inference.variational.bound import Observations, Parameters, Starts
from sgpd.structures import Free

STEP, NOISE = 0.5, 0.3


def starts_at(anchor, free, prior_std=2.0):
    """Starts of one coordinate, pinned or free, with the prior N(0, prior_std²)."""
    w = len(anchor)
    return Starts(
        anchor=jnp.asarray(anchor)[:, None],
        scale=jnp.ones(1),
        free=jnp.full(w, free),
        prior_mean=jnp.zeros(1),
        prior_std=jnp.full(1, prior_std),
        offset=jnp.zeros((w, 1)),
        log_std=jnp.full((w, 1), jnp.log(0.2)),
    )


def one_step_problem(variance=1.5):
    """x₁ = x₀ + h f(x₀) + noise at four known x₀, where the inducing points are: everything is linear and Gaussian."""
    x0 = np.array([-1.0, -0.2, 0.7, 1.6])
    x1 = x0 + STEP * np.array([0.8, 0.1, -0.9, 0.4])
    kernel = SquaredExponential(jnp.array([[0.8]]), jnp.array([variance]))
    locations = jnp.asarray(x0)[None, :, None]
    group = LatentGroup(kernel, locations, jnp.ones((1, 1, 1)))
    q = WhitenedGaussian.isotropic(jnp.zeros((1, 4)), 1.0)
    posterior = FieldPosterior(Free(), 1, (group,), (q,))
    observations = Observations(
        states=jnp.asarray(np.stack([x0, x1], axis=1))[:, :, None],
        observed=jnp.asarray(np.tile([[False], [True]], (4, 1, 1))),
        steps=jnp.full((4, 1), STEP),
        steps_per_interval=1,
    )
    parameters = Parameters(posterior, starts_at(x0, free=False), jnp.log(jnp.array([NOISE])))
    root = np.asarray(prior_root(SquaredExponential(jnp.array([0.8]), jnp.array(variance)), locations[0]))
    return observations, parameters, root, (x1 - x0)
