"""Rollouts of drawn fields, and what they say together."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sgpd.arrays import on_device
from sgpd.errors import BadInput, NumericalFailure, Outcome, SgpdWarning
from sgpd.inference.chunks import Rollouts
from sgpd.inference.constants import DRAWS_AT_ONCE
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.inference.posterior.joint import Drawn, Unknowns
from sgpd.inference.posterior.kernels import Kernels
from sgpd.inference.rolling import rolled
from sgpd.integrators import Integrator, adaptive_rollout
from sgpd.models.intervals import interval_of
from sgpd.models.tables import to_dataframe, to_html, to_xarray
from sgpd.xla.batches import in_batches

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SHORTER = (1.0, 0.3, 0.1, 0.03)  # shares of a horizon, tried in turn where no path reaches its end
STEP_SLACK = 0.1  # a step may differ from the trained one by this share before it is worth a word

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Forecast:
    """Paths of drawn fields at `times`. Row 0 is the start, which holds at times[0].

    `mean`, `std` and `interval` are those of the paths that stayed finite and converged (`ok`); `best` is the rollout
    of the best estimate of the field. `run` names the recorded run that this goes on from (or smooths), where there are
    several.
    """

    times: np.ndarray  # (n,)
    paths: np.ndarray  # (paths, n, d)
    best: np.ndarray  # (n, d)
    ok: np.ndarray  # (paths,)
    residual: np.ndarray  # (paths,), the worst stage residual
    names: tuple[str, ...]
    units: tuple[str, ...]
    run: str | None = None

    @property
    def mean(self) -> np.ndarray:
        """The mean of the paths, (n, d)."""
        return self.paths[self.ok].mean(axis=0)

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of the paths, (n, d)."""
        return self.paths[self.ok].std(axis=0, ddof=1 if self.ok.sum() > 1 else 0)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(low, high): a further path would lie between them with probability `level`."""
        if not 0 < level < 1:
            raise BadInput(f"An interval's level lies between 0 and 1, got {level}", "for 95 % give 0.95")
        return interval_of(self.paths[self.ok], level)

    def to_dataframe(
        self,
        levels: Sequence[float] = (0.95,),
        layout: str = "wide",
        noise: ArrayLike | None = None,
        time: str = "t",
    ) -> "pd.DataFrame":
        """A table with columns such as t, lead, p_mean, p_std, p_lo95, p_hi95, ..., paths_ok; before them `run` if any.

        **Arguments:**

        - `levels`: one pair of columns (lo, hi) for each.
        - `layout`: "wide", one row a time; or "long", one row a time and coordinate.
        - `noise`: standard deviations of the observations (`model.noise_std`) for bands that hold new observations
            (p_obs_lo95, p_obs_hi95) beside those of the state.
        - `time`: the name of the column of times.

        `lead` is the time since the start; `paths_ok` counts the paths that still stand at that row.
        """
        return to_dataframe(self, levels, layout, noise, time)

    def to_xarray(self, arviz: bool = False) -> "xr.Dataset":
        """All paths: one variable a coordinate of the state, over (path, time), and `converged` by path.

        There is no dimension for the state, because its coordinates have units of their own. `time` is the time
        forecast for, `lead` that since the start; `run` is a coordinate where this belongs to one of several runs.

        **Arguments:**

        - `arviz`: dimensions (chain, draw, time) as ArviZ has them, in one chain, of the paths that are `ok` only; a
            draw keeps its path's number. Such a Dataset is what ArviZ calls the group `predictions`.
        """
        return to_xarray(self, arviz)

    def _repr_html_(self) -> str:
        return to_html(self)

    def __repr__(self) -> str:
        span = f"t {self.times[0]:g}..{self.times[-1]:g}"
        return f"Forecast({len(self.ok)} paths, {span}, {' '.join(self.names)}, {np.sum(~self.ok)} failed)"


class Schedule(NamedTuple):
    """How the integrator goes from row to row."""

    steps: np.ndarray
    ends: np.ndarray  # after how many steps there is a row
    times: np.ndarray  # of the rows: all that adaptive steps need

    @classmethod
    def through(cls, times: np.ndarray, step: float) -> "Schedule":
        """Equal steps in each interval, as near to `step` as can be, longer by at most `STEP_SLACK`: clocks jitter."""
        intervals = np.diff(times)
        fewest = np.ceil(intervals / step / (1 + STEP_SLACK) - 1e-6)
        counts = np.maximum(np.maximum(np.round(intervals / step), fewest), 1).astype(int)
        return cls(np.repeat(intervals / counts, counts), np.append(0, np.cumsum(counts)), times)

    def after(self, lead: np.ndarray) -> "Schedule":
        """The same after further steps, which end where the first row is."""
        return self._replace(steps=np.concatenate([lead, self.steps]), ends=self.ends + len(lead))


class Paths(NamedTuple):
    """A stack of rollouts: states, whether they are usable, the worst stage residual."""

    states: np.ndarray  # (paths, n, d)
    ok: np.ndarray  # (paths,)
    residual: np.ndarray

    @classmethod
    def joined(cls, parts: "list[Paths]") -> "Paths":
        """One after the other in time."""
        states, ok, residual = zip(*parts, strict=True)
        return cls(np.concatenate(states, axis=1), np.all(ok, axis=0), np.max(residual, axis=0))


def roll_paths(
    posterior: FieldPosterior,
    drawn: Drawn,
    trained: Integrator,
    ahead: Integrator | None,
    lead: np.ndarray,
    schedule: Schedule,
) -> Paths:
    """A rollout for each draw (whitened values, features and a start); `ahead=None`: adaptive steps.

    From the start there are `lead` steps to the row at which the forecast begins, stepped as the field was trained.
    """
    if ahead is trained:
        return _roll(posterior, drawn, trained, schedule.after(lead))
    if len(lead) == 0:
        return _roll_ahead(posterior, drawn, ahead, schedule)
    led = _roll(posterior, drawn, trained, Schedule(np.zeros(0), np.zeros(1, int), schedule.times[:1]).after(lead))
    onwards = Drawn(Unknowns(drawn.unknowns.u, on_device(led.states[:, -1])), drawn.features)
    rolled = _roll_ahead(posterior, onwards, ahead, schedule)
    return Paths(rolled.states, led.ok & rolled.ok, np.maximum(led.residual, rolled.residual))


def _roll_ahead(posterior, drawn: Drawn, ahead: Integrator | None, schedule: Schedule) -> Paths:
    if ahead is not None:
        return _roll(posterior, drawn, ahead, schedule)
    times = on_device(schedule.times)
    return _each(drawn, lambda drawn: _rolled_adaptively(posterior, drawn, times))


def _roll(posterior: FieldPosterior, drawn: Drawn, integrator: Integrator, schedule: Schedule) -> Paths:
    kernels, steps = Kernels.of(posterior), np.concatenate([[0.0], schedule.steps])
    from_start = Rollouts(np.zeros(1, int), np.ones(1, bool))

    def batch(drawn: Drawn):
        (u, x0), features = drawn
        starts = Drawn(Unknowns(u, np.asarray(x0)[:, None]), features)
        states, ok, residual = [], np.ones(len(u), bool), np.zeros(len(u))
        for entries, found in rolled(kernels, integrator, starts, steps, from_start):
            first, last = np.searchsorted(schedule.ends, [entries.start, entries.stop])
            states.append(found.rows[:, schedule.ends[first:last] - entries.start])
            ok &= found.converged & np.isfinite(found.rows).all(axis=(1, 2))
            residual = np.maximum(residual, found.residual)
        return np.concatenate(states, axis=1), ok, residual

    return _each(drawn, batch)


def _each(drawn: Drawn, program: Callable) -> Paths:
    """The rollouts of all draws, batch by batch."""
    frequencies, weights = drawn.features
    batch = lambda stack: program(Drawn(stack[0], Features(frequencies, stack[1])))
    return Paths(*in_batches(batch, (drawn.unknowns, weights), DRAWS_AT_ONCE))


@eqx.filter_jit
def _rolled_adaptively(posterior: FieldPosterior, drawn: Drawn, times: Float[Array, " n"]):
    def one(unknowns: Unknowns, weights):
        field = posterior.field(posterior.unravel(unknowns.u), Features(drawn.features.frequencies, weights))
        return *adaptive_rollout(field, jnp.asarray(unknowns.starts), times), jnp.array(0.0)

    return jax.vmap(one)(drawn.unknowns, drawn.features.weights)


def as_far_as_possible(attempt: Callable[[float], Result]) -> Result:
    """What comes of the largest share of a horizon that some path gets through."""
    for share in SHORTER[:-1]:
        with suppress(NumericalFailure):
            return attempt(share)
    return attempt(SHORTER[-1])


def require_usable(ok: np.ndarray, residual: np.ndarray):
    """Raise where no path is usable, warn where some are not."""
    failed = int((~ok).sum())
    if failed == 0:
        return
    outcome = Outcome.NOT_CONVERGED if np.nanmax(residual) > 1e-6 else Outcome.NOT_FINITE
    if failed == len(ok):
        raise NumericalFailure(outcome, f"This happened on all {failed} paths.")
    warnings.warn(
        f"{failed} of {len(ok)} paths failed and are left out of mean and bands: {outcome.sentence} {outcome.remedy}",
        SgpdWarning,
        stacklevel=3,
    )
