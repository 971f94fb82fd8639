"""A learned field and its energy along lines through the recording: best estimate and bands."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.fields import Field
from sgpd.models import interval_of
from sgpd.plots.marks import padded
from sgpd.report.material import Material

POINTS = 121
BEYOND = 0.3  # of the recorded range, shown on either side
NEAR = 0.12  # how far from a recorded state, in spans of the coordinates, a place counts as recorded


class Values(NamedTuple):
    """A function at some points: of the best estimate, and of each draw that is finite there."""

    best: np.ndarray  # (n, ...)
    draws: np.ndarray  # (draws, n, ...)


class Curve(NamedTuple):
    """A function along a cut, with its 95 and 50 % bands."""

    at: np.ndarray
    inside: np.ndarray  # whether that coordinate was recorded there
    best: np.ndarray
    bands: tuple[tuple[np.ndarray, np.ndarray], ...]


@eqx.filter_jit
def _rates(field: Field, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    return jax.vmap(field)(x)


@eqx.filter_jit
def _energies(field: Field, x: Float[Array, "n d"]) -> Float[Array, " n"]:
    return jax.vmap(field.energy)(x)  # pyright: ignore[reportFunctionMemberAccess]


def rates(material: Material, points: np.ndarray) -> Values:
    """The field, (n, d)."""
    return _evaluated(_rates, material, points)


def energies(material: Material, points: np.ndarray) -> Values:
    """H, (n,)."""
    return _evaluated(_energies, material, points)


def _evaluated(function, material: Material, points: np.ndarray) -> Values:
    x = jnp.asarray(points)
    best = np.asarray(function(material.mean, x))
    draws = np.asarray(eqx.filter_vmap(function, in_axes=(eqx.if_array(0), None))(material.drawn, x))
    return Values(best, draws[np.isfinite(draws).reshape(len(draws), -1).all(axis=1)])


def line(material: Material, k: int) -> np.ndarray:
    """States along coordinate k, from before to beyond the recorded range; every other one at its recorded mean."""
    points = np.tile(material.data.center, (POINTS, 1))
    points[:, k] = np.linspace(*padded(material.states[:, k], BEYOND), POINTS)
    return points


def curve(material: Material, k: int, values: Values) -> Curve:
    """Values along coordinate k with their bands."""
    at = line(material, k)[:, k]
    low, high = padded(material.states[:, k], 0.0)
    bands = tuple(interval_of(values.draws, level) for level in (0.95, 0.5))
    return Curve(at, (at >= low) & (at <= high), values.best, bands)


def levelled(values: Values, inside: np.ndarray) -> Values:
    """Energies, which are fixed up to a constant only: 0 where the best estimate is lowest inside the recording."""
    low = np.flatnonzero(inside)[np.argmin(values.best[inside])]
    return Values(values.best - values.best[low], values.draws - values.draws[:, [low]])


def integrated(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """∫ values, along the last axis, from the first point on."""
    steps = (values[..., 1:] + values[..., :-1]) / 2 * np.diff(at)
    return np.concatenate([np.zeros_like(values[..., :1]), np.cumsum(steps, axis=-1)], axis=-1)


def near_data(points: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Which points have a recorded state nearby."""
    from scipy.spatial import KDTree  # slow to import

    span = np.ptp(states, axis=0) + np.finfo(float).tiny
    return KDTree(states / span).query(points / span)[0] <= NEAR
