"""Array types, and JAX in double precision: all that importing sgpd sets for a process (see also `xla/tuning.py`)."""

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

# Structure is kept to rounding; in single precision there would be nothing to keep.
jax.config.update("jax_enable_x64", True)

# What `rollout` keeps of a step for the backward pass; the rest is computed again there.
KEPT = "kept for the backward pass"

Numbers = Array | np.ndarray  # where NumPy's serve as well
State = Float[Array, " d"]  # x; for Hamiltonian systems x = (p, q), momenta first
Scalar = Float[Array, ""]
Key = PRNGKeyArray


def on_device(values) -> Array:
    """NumPy's numbers as an array of JAX. `jnp.asarray` compiles a program for every new shape, 10 ms each."""
    return jax.device_put(np.asarray(values), may_alias=False)
