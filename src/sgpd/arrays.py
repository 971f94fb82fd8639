"""Array types, and the one place where JAX is set up: double precision, and how XLA compiles."""

import os

import jax
import numpy as np
from jaxlib.version import __version_info__ as jaxlib_version_info
from jaxtyping import Array, Float, PRNGKeyArray

# Structure is kept to rounding; in single precision there would be nothing to keep.
jax.config.update("jax_enable_x64", True)

# A batched solve of triangular systems waits, on a thread of XLA's pool, for other threads of that pool. As many such
# solves side by side as the pool has threads wait for one another for ever: seen with jaxlib 0.10.2 on two cores, with
# two solves. The pool therefore gets more threads than a program has solves; XLA reads their number from NPROC, and
# like the flag it counts only before the first computation. Choices that the user has made stay.
os.environ.setdefault("NPROC", str(max(8, os.cpu_count() or 1)))

# Programs as small as ours are no faster on several threads, and a loop of small operations is several times faster as
# one compiled kernel than when XLA's executor hands its operations to threads one by one. It becomes one where it is
# small enough (by the second flag any is) and calls no library: not YNNPACK (the third), which jaxlib 0.10 takes for
# sums and products. A flag that a jaxlib does not know ends the process.
_FLAGS = {"--xla_cpu_multi_thread_eigen": "false"}
if jaxlib_version_info[:2] == (0, 10):
    _FLAGS["--xla_backend_extra_options"] = "xla_cpu_small_while_loop_byte_threshold=1000000000"
    _FLAGS["--xla_cpu_experimental_ynn_fusion_type"] = ""
for _name, _value in _FLAGS.items():
    if _name not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_name}={_value}".strip()

# What `rollout` keeps of a step for the backward pass; the rest is computed again there.
KEPT = "kept for the backward pass"

State = Float[Array, " d"]  # x; for Hamiltonian systems x = (p, q), momenta first
Scalar = Float[Array, ""]
Key = PRNGKeyArray


def on_device(values) -> Array:
    """NumPy's numbers as an array of JAX. `jnp.asarray` compiles a program for every new shape, 10 ms each."""
    return jax.device_put(np.asarray(values), may_alias=False)
