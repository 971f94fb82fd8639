"""Array types, and the one place where JAX is set up: double precision, and one thread a program."""

import os

import jax
from jaxtyping import Array, Float, PRNGKeyArray

# Structure is kept to rounding; in single precision there would be nothing to keep.
jax.config.update("jax_enable_x64", True)

# A batched solve of triangular systems waits, on a thread of XLA's pool, for other threads of that pool. As many such
# solves side by side as the pool has threads wait for one another for ever: seen with jaxlib 0.10.2 on two cores, with
# two solves. The pool therefore gets more threads than a program has solves; XLA reads their number from NPROC, and
# like the flag it counts only before the first computation. Choices that the user has made stay.
os.environ.setdefault("NPROC", str(max(8, os.cpu_count() or 1)))

# Programs as small as ours are no faster on several threads.
_POOL = "--xla_cpu_multi_thread_eigen"
if _POOL not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_POOL}=false".strip()

State = Float[Array, " d"]  # x; for Hamiltonian systems x = (p, q), momenta first
Scalar = Float[Array, ""]
Key = PRNGKeyArray
