"""Array types, and the one place where JAX is set up: double precision, and one thread a program."""

import os

import jax
from jaxtyping import Array, Float, PRNGKeyArray

# Structure is kept to rounding; in single precision there would be nothing to keep.
jax.config.update("jax_enable_x64", True)

# XLA's thread pool on a CPU can wait for itself for ever in batched programs with small matrix solves, such as ours:
# seen with jaxlib 0.10.2 on two cores. `sgpd demo` takes as long without it. A choice that the user has made stays.
_POOL = "--xla_cpu_multi_thread_eigen"
if _POOL not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_POOL}=false".strip()

State = Float[Array, " d"]  # x; for Hamiltonian systems x = (p, q), momenta first
Scalar = Float[Array, ""]
Key = PRNGKeyArray
