"""A field as the continuous system that it is: steps as long as an error estimate allows."""

import diffrax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sgpd.arrays import State
from sgpd.fields import Field

TOLERANCE = 1e-8
MAX_STEPS = 100_000


def adaptive_rollout(field: Field, x0: State, times: Float[Array, " n"]) -> tuple[Float[Array, "n d"], Bool[Array, ""]]:
    """States at `times` from x0 at times[0] by Dopri8, and whether it reached the end with finite numbers."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, x, args: field(x)),
        diffrax.Dopri8(),
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=x0,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
        max_steps=MAX_STEPS,
        throw=False,
    )
    states = jnp.asarray(solution.ys)
    return states, (solution.result == diffrax.RESULTS.successful) & jnp.isfinite(states).all()
