"""Forecasts of rows that the fit did not see, against what was recorded there.

Errors along a rollout are correlated: 300 rows may be as good as five independent ones. So the coverage of the bands is
judged by the effective sample size, not by the number of rows.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sgpd.checks import Check, CheckId
from sgpd.data import Run, Trajectories
from sgpd.data.describing import count
from sgpd.errors import BadInput
from sgpd.inference.residuals import effective_sample_size
from sgpd.models.forecast import Forecast, as_far_as_possible
from sgpd.models.model import Model

LEVEL = 0.95
ENOUGH_SAMPLES = 20
UNSURE = 0.01  # probability by which bands that are right may be called wrong
POOR, USELESS = 0.5, 1.0  # error, in standard deviations of the recording: at 1 its mean forecasts as well


@dataclass(frozen=True)
class Scores:
    """How forecasts of rows that were held out did: what is left to say without the forecasts."""

    checks: tuple[Check, ...]
    error: dict[str, float]  # of the best estimate, by channel, in standard deviations of the recording
    checked_to: float  # the longest time past its start to which a forecast was compared with a recording
    time_unit: str = ""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One forecast for each run with rows that were held out, and how it did."""

    data: Trajectories  # the rows that the fit did not see, as far as any path gets
    forecasts: tuple[Forecast, ...]  # row 0 is where the forecast starts: the last fitted row, or a new run's first
    leads: tuple[np.ndarray, ...]  # (n,), time from there to each row of the run in `data`
    pit: tuple[np.ndarray, ...]  # (n, d), predictive probability below the recorded value; NaN where there is none
    effective_samples: float  # independent errors that these are worth
    error: np.ndarray  # (d,), rms error of the best estimate, in standard deviations of the recording
    beyond: int = 0  # rows that no path reaches

    @property
    def sample_size(self) -> int:
        """The effective sample size as a whole number, at least 1."""
        return max(int(self.effective_samples), 1)

    @property
    def sample_words(self) -> str:
        """The same in words."""
        return f"about {count(self.sample_size, 'effective sample')}"

    def coverage(self, level: float = LEVEL) -> float:
        """The share of recorded values inside the band of this level, observation noise included."""
        seen = np.concatenate([pit[~np.isnan(pit)] for pit in self.pit])
        return float((np.abs(seen - 0.5) <= level / 2).mean())

    @property
    def checked_to(self) -> float:
        """The longest lead."""
        return float(max(leads[-1] for leads in self.leads))

    @property
    def checks(self) -> tuple[Check, ...]:
        """The error and the coverage, judged; and the reach, where there are rows that no path reaches."""
        lost = (_judged_reach(self),) if self.beyond else ()
        return (*lost, _judged_error(self), _judged_coverage(self))

    @property
    def scores(self) -> Scores:
        """All that is said of these forecasts."""
        error = dict(zip(self.data.names, map(float, self.error), strict=True))
        return Scores(self.checks, error, self.checked_to, self.data.time_unit)


def judge_held_out(model: Model, held: Trajectories, paths: int = 64, seed: int = 0) -> HeldOut:
    """Forecast the rows that were held out and compare.

    The end of a fitted run is forecast from its fitted part. A run that the fit does not know is forecast from its
    first complete row, which is as uncertain as the noise. Where all paths fail on the way, fewer rows are forecast.
    """
    if held.names != model.names:
        raise BadInput(
            f"The channels are {', '.join(held.names)}, those of the model {', '.join(model.names)}",
            "give the model's channels in its order",
        )
    judged = [_reached(model, name, run, paths, seed) for name, run in zip(held.run_names, held.runs, strict=True)]
    runs, forecasts, leads, pit, z, away = zip(*judged, strict=True)
    error = np.sqrt(np.nanmean(np.concatenate(away) ** 2, axis=0)) / np.asarray(model.facts.recording.std)
    seen = dataclasses.replace(held, runs=runs)
    return HeldOut(seen, forecasts, leads, pit, float(sum(map(effective_sample_size, z))), error, held.rows - seen.rows)


def _reached(model: Model, name: str, run: Run, paths: int, seed: int):
    """A run, or its beginning where no path gets further, with its judgement."""

    def attempt(share: float):
        rows = max(round(share * len(run)), 2)
        part = Run(run.times[:rows], run.states[:rows])
        return part, *_judged(model, name, part, paths, seed)

    return as_far_as_possible(attempt)


def _judged(model: Model, name: str, run: Run, paths: int, seed: int):
    from scipy.special import ndtr

    if name in model.run_names:
        begin, first = model.end_of(name), 0
        forecast = model.predict(times=np.r_[begin, run.times], run=name, paths=paths, seed=seed)
    else:
        first = 1 + _first_complete(run, name)
        begin, x0 = run.times[first - 1], run.states[first - 1]
        forecast = model.predict(x0, x0_std=model.noise_std, times=run.times[first - 1 :], paths=paths, seed=seed)
    seen, usable = run.states[first:], forecast.paths[forecast.ok][:, 1:]
    pit, z = (np.full(run.states.shape, np.nan) for _ in range(2))
    pit[first:] = ndtr((seen[None] - usable) / model.noise_std).mean(axis=0)
    z[first:] = (seen - forecast.mean[1:]) / np.sqrt(forecast.std[1:] ** 2 + model.noise_std**2)
    return forecast, run.times - begin, pit, z, seen - forecast.best[1:]


def _first_complete(run: Run, name: str) -> int:
    complete = np.flatnonzero(run.observed.all(axis=1))
    if complete.size == 0 or complete[0] == len(run) - 1:
        raise BadInput(f"run {name}: no row before the last is complete, so no forecast can start", "hold out another")
    return int(complete[0])


def _judged_reach(held: HeldOut) -> Check:
    rows = held.data.rows + held.beyond
    sentence = f"Forecasts fail before the end of the held-out rows: no path reaches {held.beyond:,} of {rows:,}."
    remedy = "Do not forecast further; use a structure that keeps rollouts bounded, or a shorter step."
    return Check(
        CheckId.HELD_OUT_REACH, "held-out rows that no path reaches", held.beyond / rows, 0.0, "FAIL", sentence, remedy
    )


def _judged_error(held: HeldOut) -> Check:
    worst = float(held.error.max())
    shares = ", ".join(f"{name} {share:.0%}" for name, share in zip(held.data.names, held.error, strict=True))
    verdict = "FAIL" if worst >= USELESS else "ATTENTION" if worst >= POOR else "PASS"
    sentence = (
        f"Error on held-out rows, up to {held.checked_to:.3g} ahead: {shares} of the recording's standard deviation."
    )
    remedy = "" if verdict == "PASS" else "Try another structure, record more often, or trust shorter forecasts only."
    return Check(CheckId.HELD_OUT_ERROR, "error on held-out rows", worst, POOR, verdict, sentence, remedy)


def _judged_coverage(held: HeldOut) -> Check:
    from scipy.stats import binom

    share, size = held.coverage(LEVEL), held.sample_size
    title = f"{LEVEL:.0%} band on held-out rows"
    if size < ENOUGH_SAMPLES:
        sentence = (
            f"The {LEVEL:.0%} band held {share:.0%} of the held-out values, but those are only "
            f"{held.sample_words}; {ENOUGH_SAMPLES} are needed to judge it."
        )
        return Check(
            CheckId.COVERAGE, title, share, None, "NOT MEASURED", sentence, "Hold out more, or record more runs."
        )
    low, high = binom.ppf([UNSURE / 2, 1 - UNSURE / 2], size, LEVEL) / size
    verdict: Literal["PASS", "ATTENTION", "FAIL"] = "FAIL" if share < low else "ATTENTION" if share > high else "PASS"
    sentence = (
        f"The {LEVEL:.0%} band held {share:.0%} of the held-out values "
        f"({held.sample_words}; {low:.0%} to {high:.0%} is right)."
    )
    remedies = {
        "PASS": "",
        "ATTENTION": "The bands are too wide; the noise may be smaller than found.",
        "FAIL": "The bands are too narrow; the structure may not be that of this recording.",
    }
    return Check(CheckId.COVERAGE, title, share, float(low), verdict, sentence, remedies[verdict])
