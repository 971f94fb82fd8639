"""Rollouts of drawn fields, and what they say together."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sgpd.arrays import State, on_device
from sgpd.errors import BadInput, NumericalFailure, Outcome, SgpdWarning
from sgpd.fields import Field
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.inference.posterior.joint import Drawn, Unknowns
from sgpd.integrators import Integrator, adaptive_rollout, rollout
from sgpd.models.intervals import interval_of
from sgpd.models.tables import to_dataframe, to_html, to_xarray
from sgpd.xla.batches import in_batches

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

AT_ONCE, LANES = 72, 8  # paths that are rolled out side by side, at most, and what they are rounded to
LENGTHS = 64, 1024  # blocks of steps, the least and the most to which a forecast is rounded up
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
    """How the integrator goes from row to row: in blocks of so many steps, the last of a row padded with steps of 0."""

    steps: np.ndarray
    block: int
    ends: np.ndarray  # which of the states after 0, 1, ... blocks are rows
    times: np.ndarray  # of the rows: all that adaptive steps need

    @classmethod
    def through(cls, times: np.ndarray, step: float) -> "Schedule":
        """Equal steps within each interval, as near to `step` as can be, longer by at most `STEP_SLACK`: clocks jitter.

        The block is chosen so that there are few steps and few states to keep, also where one interval is much longer
        than the others.
        """
        intervals = np.diff(times)
        fewest = np.ceil(intervals / step / (1 + STEP_SLACK) - 1e-6)
        counts = np.maximum(np.maximum(np.round(intervals / step), fewest), 1).astype(int)
        block = min(np.unique(counts).tolist(), key=lambda size: (size + 1) * int(np.sum(-(-counts // size))))
        blocks = -(-counts // block)
        first = np.repeat(np.cumsum(blocks) - blocks, blocks)  # of the row to which a block belongs
        done = (np.arange(blocks.sum()) - first)[:, None] * block + np.arange(block)
        taken = done < np.repeat(counts, blocks)[:, None]
        steps = np.where(taken, np.repeat(intervals / counts, blocks)[:, None], 0.0)
        return cls(steps.reshape(-1), block, np.append(0, np.cumsum(blocks)), times)

    def after(self, lead: np.ndarray) -> "Schedule":
        """The same after further steps, which end where the first row is."""
        waiting = -len(lead) % self.block
        steps = np.concatenate([np.zeros(waiting), lead, self.steps])
        return self._replace(steps=steps, ends=self.ends + (waiting + len(lead)) // self.block)

    def rounded(self) -> "Schedule":
        """With steps of 0 at the end, up to one of a few lengths: one compiled program serves many forecasts."""
        blocks = len(self.steps) // self.block
        longer = max(LENGTHS[0], 1 << max(blocks - 1, 0).bit_length())
        if longer > LENGTHS[1]:
            return self
        return self._replace(steps=np.pad(self.steps, (0, (longer - blocks) * self.block)))


class Rolled(NamedTuple):
    """A stack of rollouts: states, whether they are usable, the worst stage residual."""

    states: np.ndarray  # (paths, n, d)
    ok: np.ndarray  # (paths,)
    residual: np.ndarray

    @classmethod
    def joined(cls, parts: "list[Rolled]") -> "Rolled":
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
) -> Rolled:
    """A rollout for each draw (whitened values, features and a start); `ahead=None`: adaptive steps.

    From the start there are `lead` steps to the row at which the forecast begins, stepped as the field was trained.
    """
    if ahead is trained:
        return _roll(posterior, drawn, trained, schedule.after(lead))
    if len(lead) == 0:
        return _roll_ahead(posterior, drawn, ahead, schedule)
    led = _roll(posterior, drawn, trained, Schedule(np.zeros(0), 1, np.zeros(1, int), schedule.times[:1]).after(lead))
    onwards = Drawn(Unknowns(drawn.unknowns.u, on_device(led.states[:, -1])), drawn.features)
    rolled = _roll_ahead(posterior, onwards, ahead, schedule)
    return Rolled(rolled.states, led.ok & rolled.ok, np.maximum(led.residual, rolled.residual))


def _roll_ahead(posterior, drawn: Drawn, ahead: Integrator | None, schedule: Schedule) -> Rolled:
    if ahead is not None:
        return _roll(posterior, drawn, ahead, schedule)
    times = schedule.times
    return _each(drawn, partial(_rolled_adaptively, posterior, times=on_device(times)), np.arange(len(times)))


def _roll(posterior: FieldPosterior, drawn: Drawn, integrator: Integrator, schedule: Schedule) -> Rolled:
    program = partial(
        _rolled, posterior, integrator=integrator, steps=on_device(schedule.rounded().steps), block=schedule.block
    )
    return _each(drawn, program, schedule.ends)


def _each(drawn: Drawn, program: Callable, rows: np.ndarray) -> Rolled:
    """Those rows of the rollouts of all draws."""
    frequencies, weights = drawn.features

    def batch(stack):
        states, ok, residual = program(Drawn(stack[0], Features(frequencies, stack[1])))
        return np.asarray(states)[:, rows], ok, residual

    return Rolled(*in_batches(batch, (drawn.unknowns, weights), AT_ONCE, multiple=LANES))


@eqx.filter_jit
def _rolled(posterior, drawn: Drawn, integrator: Integrator, steps: Float[Array, " n"], block: int):
    def roll(field: Field, x0: State):
        path = rollout(integrator, field, x0, steps, block)
        ok = path.converged.all() & jnp.isfinite(path.states).all()
        return path.states, ok, path.residual.max(initial=0.0)

    return _side_by_side(posterior, drawn, roll)


@eqx.filter_jit
def _rolled_adaptively(posterior, drawn: Drawn, times: Float[Array, " n"]):
    return _side_by_side(posterior, drawn, lambda field, x0: (*adaptive_rollout(field, x0, times), jnp.array(0.0)))


def _side_by_side(posterior: FieldPosterior, drawn: Drawn, roll):
    def one(unknowns: Unknowns, weights):
        field = posterior.field(posterior.unravel(unknowns.u), Features(drawn.features.frequencies, weights))
        return roll(field, unknowns.starts)

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
