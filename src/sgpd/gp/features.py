"""Standard normals from which the frequencies of random features are made: independent, orthogonal or evenly spread.

What matters is how well a few hundred features reproduce the kernel. For the squared exponential and points within two
lengthscales of one another, 64 `quasi` ones (a Sobol sequence with a random shift, so that the covariance is right on
average over shifts) in one dimension, or 256 in two, do it as well as 10,000 independent ones; beyond that they gain
less, and for the Matern kernels much less.
"""

from functools import cache
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Key
from sgpd.errors import unknown_name

Sampling = Literal["quasi", "orthogonal", "independent"]


def feature_normals(key: Key, count: int, dimension: int, sampling: Sampling = "quasi") -> Float[Array, "s k"]:
    """`count` standard normal vectors, sampled as asked."""
    match sampling:
        case "quasi":
            return _quasi(key, count, dimension)
        case "orthogonal":
            return _orthogonal(key, count, dimension)
        case "independent":
            return jr.normal(key, (count, dimension))
    raise unknown_name("sampling of features", sampling, get_args(Sampling))


def host_normals(rng: np.random.Generator, count: int, dimension: int, sampling: Sampling = "quasi") -> np.ndarray:
    """The same by NumPy, for a draw or two outside of compiled code, where compiling would take longer than drawing."""
    match sampling:
        case "quasi":
            from scipy.special import ndtri

            shift = rng.integers(2**32, size=(1, dimension), dtype=np.uint32)
            return ndtri(((_sobol(count, dimension) ^ shift) + 0.5) / 2.0**32)
        case "independent":
            return rng.normal(size=(count, dimension))
    return np.asarray(feature_normals(jr.key(rng.integers(2**32)), count, dimension, sampling))


def _quasi(key: Key, count: int, dimension: int) -> Float[Array, "s k"]:
    """Sobol points, shifted at random digit by digit (an exclusive or), through the normal quantile."""
    shift = jr.bits(key, (dimension,), jnp.uint32)
    shifted = jnp.asarray(_sobol(count, dimension)) ^ shift[None, :]
    return jax.scipy.special.ndtri((shifted + 0.5) / 2.0**32)


@cache
def _sobol(count: int, dimension: int) -> np.ndarray:
    """The first points of a scrambled Sobol sequence in 32-bit integers, the same ones every time."""
    from scipy.stats import qmc  # slow to import

    sequence = qmc.Sobol(dimension, scramble=True, bits=32, rng=np.random.default_rng(0))
    points = sequence.random_base2(max(count - 1, 0).bit_length())[:count]
    return (points * 2.0**32).astype(np.uint32)


def _orthogonal(key: Key, count: int, dimension: int) -> Float[Array, "s k"]:
    """Blocks of orthogonal directions with the lengths of normal vectors (Yu et al. 2016)."""
    k_direction, k_length = jr.split(key)
    blocks = -(-count // dimension)
    gaussian = jr.normal(k_direction, (blocks, dimension, dimension))
    q, r = jnp.linalg.qr(gaussian)
    directions = q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None, :]  # uniform among all rotations
    lengths = jnp.linalg.norm(jr.normal(k_length, (blocks * dimension, dimension)), axis=1)
    return (directions.reshape(-1, dimension) * lengths[:, None])[:count]
