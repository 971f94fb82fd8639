"""What the sections draw from: a model, its recording, its forecasts."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sgpd.checks import CheckReport
from sgpd.data import Run, Trajectories
from sgpd.data.smoothing import smooth_run
from sgpd.errors import NumericalFailure, SgpdWarning
from sgpd.fields import Field
from sgpd.judging import Assessment, HeldOut, Learned
from sgpd.judging.assessment import judge
from sgpd.models import Forecast, Model
from sgpd.models.forecast import as_far_as_possible
from sgpd.plots.marks import labelled
from sgpd.report.about import About
from sgpd.wording import number, plus_minus, with_unit

PATHS = 64
FAR = 3.0  # durations of a run, which the forecast goes past its end
MOST_STEPS = 3000
MOST_PANELS = 8  # of forecasts, in all runs together


class Fitted(NamedTuple):
    """A run that was fitted: what was recorded, and how the model sees it."""

    run: Run
    smoothed: Forecast


@dataclass(frozen=True, eq=False)
class View:
    """One run as the page shows it: fitted, held out, or first the one and then the other."""

    name: str
    ahead: Forecast
    fitted: Fitted | None
    held: Run | None

    @property
    def end(self) -> float:
        """Where the forecast starts: at the end of what was fitted."""
        return float(self.ahead.times[0])

    def recorded(self, k: int) -> np.ndarray:
        """All recorded values of a coordinate."""
        runs = [*([self.fitted.run] if self.fitted else []), *([self.held] if self.held else [])]
        return np.concatenate([run.states[:, k] for run in runs])


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a report shows, computed once."""

    model: Model
    data: Trajectories
    assessment: Assessment
    about: About
    views: tuple[View, ...]
    lost: tuple[str, ...]  # runs of which no path stayed finite
    problems: tuple[str, ...]  # sentences

    @property
    def time(self) -> str:
        """The title of a time axis."""
        return labelled("time", self.data.time_unit)

    def lasting(self, duration: float) -> str:
        """A length of time, in words."""
        return with_unit(number(duration), self.data.time_unit)

    @property
    def noise_words(self) -> str:
        """The learned noise of each coordinate, with its unit."""
        parts = zip(self.model.names, self.model.noise_std, self.model.units, strict=True)
        return ", ".join(f"{name} {with_unit(number(std), unit)}" for name, std, unit in parts)

    @property
    def seed(self) -> int:
        return self.about.seed

    @cached_property
    def mean(self) -> Field:
        """The best estimate of the field."""
        return self.model.mean()

    @property
    def learned(self) -> Learned | None:
        """The equilibrium and its period."""
        return self.assessment.learned

    @property
    def held_out(self) -> HeldOut | None:
        """The forecasts of rows that the fit did not see."""
        return self.assessment.held_out

    def rest(self, *coordinates: int) -> list[str]:
        """Where the system rests, in some coordinates, in words; nothing where no equilibrium was found."""
        found = self.learned
        if found is None:
            return []
        value = lambda k: plus_minus(float(found.equilibrium[k]), float(found.equilibrium_std[k]))
        return [f"The equilibrium is {', '.join(f'{self.model.names[k]} = {value(k)}' for k in coordinates)}"]

    @cached_property
    def drawn(self) -> Field:
        """The fields behind the paths of the forecasts, stacked."""
        return self.model.draws(paths_of(self.model), self.seed)

    @property
    def has_energy(self) -> bool:
        """Whether the field has an energy."""
        return getattr(self.mean, "energy", None) is not None

    @cached_property
    def states(self) -> np.ndarray:
        """All fitted states without a missing value; as splines see them where channels never stand together."""
        rows = np.concatenate([run.states for run in self.data.runs])
        complete = rows[np.isfinite(rows).all(axis=1)]
        return complete if len(complete) > 2 else np.concatenate([smooth_run(run).states for run in self.data.runs])

    @cached_property
    def moving(self) -> list[int]:
        """Coordinates from the most to the least moving, in standard deviations of the noise."""
        return [int(k) for k in np.argsort(-self.data.std / self.model.noise_std, kind="stable")]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """(horizontal, vertical): position and momentum of each degree of freedom, else the most moving coordinates."""
        d = self.model.dimension
        traits = self.model.posterior.structure.traits(d)
        if traits.hamiltonian or traits.split:
            dofs = sorted(range(d // 2), key=lambda k: min(self.moving.index(k), self.moving.index(k + d // 2)))
            return [(k + d // 2, k) for k in dofs]
        first = sorted(self.moving[:4])
        return [(i, j) for n, i in enumerate(first) for j in first[n + 1 :]]

    @property
    def checked_to(self) -> float:
        """How far past their start forecasts were compared with a recording."""
        return self.assessment.checked_to


def paths_of(model: Model) -> int:
    """How many paths to draw: no more than there are where a posterior is kept as draws."""
    stored = model.joint.stored
    return PATHS if stored is None else min(PATHS, len(stored))


def gather(
    model: Model,
    data: Trajectories,
    checks: Assessment | CheckReport,
    about: About,
    held_out: HeldOut | None = None,
) -> Material:
    """Smooth and forecast the runs that the page shows: the longest, and those that were held out."""
    assessment = _assessment(model, data, checks, held_out)
    held_out = assessment.held_out
    shown = max(1, min(4, MOST_PANELS // model.dimension))
    longest = sorted(sorted(model.fitted_runs, key=lambda run: -len(data.runs[run]))[:shown])
    views, lost, problems = [], [], [*about.problems, *assessment.problems]
    for run in longest:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SgpdWarning)
            try:
                views.append(_fitted_view(model, data, held_out, run, about.seed))
            except NumericalFailure:
                lost.append(data.run_names[run])
        of_run = f"Run {data.run_names[run]}: " if len(data) > 1 else ""  # two runs may say the same words
        problems += [f"{of_run}{each.message}" for each in caught if issubclass(each.category, SgpdWarning)]
    views += _held_views(data, held_out)[: max(1, shown - 1)]
    problems += [f"Run {name}: no path stayed finite, so it is not shown." for name in lost]
    return Material(model, data, assessment, about, tuple(views), tuple(lost), tuple(problems))


def _assessment(
    model: Model, data: Trajectories, checks: Assessment | CheckReport, held_out: HeldOut | None
) -> Assessment:
    """As it was made; or made now, of claims alone, or where forecasts came later."""
    if isinstance(checks, CheckReport):
        return judge(model, checks, held_out, time_unit=data.time_unit)
    if held_out is None:
        return checks
    if checks.scores is None:
        return judge(model, checks.claims, held_out, checks.duration, data.time_unit)
    return replace(checks, held_out=held_out)


def _fitted_view(model: Model, data: Trajectories, held: HeldOut | None, run: int, seed: int) -> View:
    recorded, name, count = data.runs[run], data.run_names[run], paths_of(model)
    rest = None
    if held is not None and name in held.data.run_names:
        rest = held.data.runs[held.data.run_names.index(name)]
    smoothed = _in_order(model.smooth(run=run, paths=count, seed=seed))
    span = float(recorded.times[-1] - recorded.times[0])
    wanted = max(FAR * span, 0.0 if rest is None else 1.25 * float(rest.times[-1] - recorded.times[-1]))
    return View(name, _ahead(model, wanted, run, count, seed), Fitted(recorded, smoothed), rest)


def _ahead(model: Model, wanted: float, run: int, count: int, seed: int) -> Forecast:
    """As far as wanted, or as far as some path gets."""
    wanted = max(min(wanted, MOST_STEPS * model.step), model.step)
    return as_far_as_possible(
        lambda share: model.predict(duration=max(share * wanted, model.step), run=run, paths=count, seed=seed)
    )


def _held_views(data: Trajectories, held: HeldOut | None) -> list[View]:
    """Runs that were held out as a whole."""
    if held is None:
        return []
    runs = zip(held.data.run_names, held.data.runs, held.forecasts, strict=True)
    return [View(name, forecast, None, run) for name, run, forecast in runs if name not in data.run_names]


def _in_order(smoothed: Forecast) -> Forecast:
    """Without the rows at which overlapping pieces go back in time."""
    latest = np.maximum.accumulate(smoothed.times)
    keep = np.concatenate([[True], smoothed.times[1:] > latest[:-1]])
    rows = dict(times=smoothed.times[keep], paths=smoothed.paths[:, keep], best=smoothed.best[keep])
    return replace(smoothed, **rows)
