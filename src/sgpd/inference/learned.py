"""The answer in a physicist's words: where the learned system rests, and how fast it swings about that."""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import State
from sgpd.fields import Field
from sgpd.inference.model import Model

NEWTON_STEPS = 30
RESTS = 1e-8  # speed at an equilibrium, as a share of the size of the motion's speeds
SWINGS = 0.5  # |Re λ| / |Im λ| of what still swings
PATHS = 32
AGREE = 0.9  # share of drawn fields that must have the equilibrium too


@dataclass(frozen=True, eq=False)
class Learned:
    """An equilibrium inside the recorded range, and the longest period of small swings about it."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    equilibrium: np.ndarray  # (d,), of the best estimate
    equilibrium_std: np.ndarray  # over drawn fields
    period: float  # NaN where it does not swing
    period_std: float

    def __str__(self) -> str:
        parts = zip(self.names, self.equilibrium, self.equilibrium_std, self.units, strict=True)
        places = ", ".join(
            f"{name} = {plus_minus(value, std)}{unit and ' ' + unit}" for name, value, std, unit in parts
        )
        which = "small-swing period" if len(self.names) == 2 else "longest small-swing period"
        swing = "" if np.isnan(self.period) else f", {which} {plus_minus(self.period, self.period_std)}"
        return f"equilibrium {places}{swing}"


def learned(model: Model, seed: int = 0) -> Learned | None:
    """None where no equilibrium lies inside the recorded range, or drawn fields do not agree that one does.

    A field that keeps a quadratic form rests at 0 whatever was learned, so there is nothing to say.
    """
    if model.posterior.structure.traits(model.dimension).invariant is not None:
        return None
    centre, low, high = (jnp.asarray(model.facts[name]) for name in ("center", "low", "high"))
    best = _rest(model.mean(), centre, low, high)
    drawn = _rests(model.draws(PATHS, seed), centre, low, high)
    found = np.asarray(drawn.found)
    if not bool(best.found) or found.mean() < AGREE:
        return None
    periods = np.asarray(drawn.period)[found]
    swings = np.isfinite(float(best.period)) and np.isfinite(periods).mean() >= AGREE
    return Learned(
        model.names,
        model.units,
        np.asarray(best.x),
        np.asarray(drawn.x)[found].std(axis=0, ddof=1),
        float(best.period) if swings else float("nan"),
        float(np.nanstd(periods, ddof=1)) if swings else float("nan"),
    )


class _Rest(eqx.Module):
    x: State
    found: Array
    period: Array


@eqx.filter_jit
def _rest(field: Field, centre: State, low: State, high: State) -> _Rest:
    """Newton's method for f(x) = 0 from the middle of the recording."""
    newton = lambda _, x: x - jnp.linalg.solve(jax.jacfwd(field)(x), field(x))
    x = jax.lax.fori_loop(0, NEWTON_STEPS, newton, centre)
    size = jnp.sqrt(jnp.sum(field(high) ** 2) + jnp.sum(field(low) ** 2))
    found = (jnp.linalg.norm(field(x)) <= RESTS * size) & jnp.all((x >= low) & (x <= high))
    return _Rest(x, found, _longest_period(jax.jacfwd(field)(x)))


@eqx.filter_jit
def _rests(fields: Field, centre: State, low: State, high: State) -> _Rest:
    return eqx.filter_vmap(_rest, in_axes=(eqx.if_array(0), None, None, None))(fields, centre, low, high)


def _longest_period(jacobian: Float[Array, "d d"]) -> Array:
    """2π / Im λ of the slowest eigenvalue that swings more than it grows or decays."""
    values = jnp.linalg.eigvals(jnp.where(jnp.isfinite(jacobian), jacobian, 0.0))
    swings = (values.imag > 0) & (jnp.abs(values.real) < SWINGS * values.imag)
    slowest = jnp.min(jnp.where(swings, values.imag, jnp.inf))
    return jnp.where(jnp.isfinite(slowest), 2 * jnp.pi / slowest, jnp.nan)


def plus_minus(value: float, std: float) -> str:
    """A value with its standard deviation, which has two digits and decides how many the value has."""
    if not (math.isfinite(std) and std > 0):
        return f"{value:.4g}"
    if not 1e-4 <= std < 1e6:
        return f"{value:.3g} ± {std:.1e}"
    decimals = 1 - math.floor(math.log10(std))
    value, std = round(value, decimals), round(std, decimals)
    return f"{value:.{max(decimals, 0)}f} ± {std:.{max(decimals, 0)}f}"
