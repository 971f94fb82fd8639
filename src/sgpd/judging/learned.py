"""The answer in a physicist's words: where the learned system rests, and how fast it swings about that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import on_device
from sgpd.fields import Field, linearise
from sgpd.models.model import Model
from sgpd.wording import plus_minus

NEWTON_STEPS = 30
RESTS = 1e-8  # speed at an equilibrium, as a share of the size of the motion's speeds
SWINGS = 0.5  # |Re λ| / |Im λ| of what still swings
PATHS = 64  # as many as a report draws, so that they are made by one compiled program
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

    def to_dict(self) -> dict:
        """As plain data; a period that is not a number is None."""
        plain = lambda value: None if np.isnan(value) else value
        return {
            "names": list(self.names),
            "units": list(self.units),
            "values": self.equilibrium.tolist(),
            "values_std": self.equilibrium_std.tolist(),
            "period": plain(self.period),
            "period_std": plain(self.period_std),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Learned":
        """From plain data."""
        period, period_std = (float("nan") if found[name] is None else found[name] for name in ("period", "period_std"))
        value, std = (np.array(found[name], float) for name in ("values", "values_std"))
        return cls(tuple(found["names"]), tuple(found["units"]), value, std, period, period_std)

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
    place = model.facts.recording
    x, found, period = _rests(model.estimates(PATHS, seed), *map(np.asarray, (place.center, place.low, place.high)))
    if not found[0] or found[1:].mean() < AGREE:
        return None
    periods = period[1:][found[1:]]
    swings = np.isfinite(period[0]) and np.isfinite(periods).mean() >= AGREE
    return Learned(
        model.names,
        model.units,
        x[0],
        x[1:][found[1:]].std(axis=0, ddof=1),
        float(period[0]) if swings else float("nan"),
        float(np.nanstd(periods, ddof=1)) if swings else float("nan"),
    )


def _rests(fields: Field, centre: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of each field of a stack: where it rests by Newton's method from the centre, whether it does, its period."""
    at = lambda x: tuple(map(np.asarray, _linearised(fields, on_device(x))))
    x = np.tile(centre, (PATHS + 1, 1))
    for _ in range(NEWTON_STEPS):
        value, jacobian = map(np.nan_to_num, at(x))  # what runs away is not found
        x = x - np.einsum("fij,fj->fi", np.linalg.pinv(jacobian), value)
    size = np.hypot(*(np.linalg.norm(at(np.broadcast_to(end, x.shape))[0], axis=1) for end in (low, high)))
    value, jacobian = at(x)
    found = (np.linalg.norm(value, axis=1) <= RESTS * size) & ((x >= low) & (x <= high)).all(axis=1)
    return x, found, np.array([_longest_period(each) for each in np.nan_to_num(jacobian)])


@eqx.filter_jit
def _linearised(fields: Field, x: Float[Array, "fields d"]) -> tuple[Array, Array]:
    return eqx.filter_vmap(linearise)(fields, x)


def _longest_period(jacobian: Float[np.ndarray, "d d"]) -> float:
    """2π / Im λ of the slowest eigenvalue that swings more than it grows or decays."""
    values = np.linalg.eigvals(jacobian)
    swings = values.imag[(values.imag > 0) & (np.abs(values.real) < SWINGS * values.imag)]
    return 2 * np.pi / swings.min() if len(swings) else np.nan
