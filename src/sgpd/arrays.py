"""Array types, and the one place where double precision is switched on."""

import jax
from jaxtyping import Array, Float, PRNGKeyArray

# Structure is kept to rounding; in single precision there would be nothing to keep.
jax.config.update("jax_enable_x64", True)

State = Float[Array, " d"]  # x; for Hamiltonian systems x = (p, q), momenta first
Scalar = Float[Array, ""]
Key = PRNGKeyArray
