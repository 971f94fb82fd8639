"""Everything that is said of a fit, found out once: command line, report, run folder and Python show this."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from sgpd.checks import Check, CheckId, CheckReport
from sgpd.checks.verdicts import Verdict
from sgpd.data import Trajectories
from sgpd.errors import SgpdWarning
from sgpd.judging.held_out import HeldOut, Scores, judge_held_out
from sgpd.judging.learned import Learned, learned
from sgpd.judging.overall import Overall, Row, verdict
from sgpd.models.model import CHECK_PATHS, Model

SCHEMA = "sgpd.check/1"
TIMES_LONGER = 10  # claims are measured on rollouts so many times as long as the recording
MOST_STEPS = 4000
RECORDING, CLAIMS, HELD_OUT = "recording", "claims", "held out"  # what a check is about


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a fit says of itself, its claims measured, its forecasts of rows that were held out, and the word for all.

    `verdict` is the word for all: no better than any check, and NOT MEASURED where nothing was held out. Whether the
    structure is kept is a question of its own: `claims.verdict`, `claims.passed`.
    """

    diagnosis: tuple[Check, ...]
    claims: CheckReport
    scores: Scores | None  # None where nothing was held out
    overall: Overall
    learned: Learned | None  # None where no equilibrium was found
    noise: dict[str, float]  # standard deviation, by channel
    duration: float  # over which the claims were measured
    time_unit: str = ""
    problems: tuple[str, ...] = ()  # warnings while it was judged
    held_out: HeldOut | None = field(default=None, repr=False)  # the forecasts behind the scores: they are not saved

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check, each with an id of its own: of the recording, of the claims, of the rows held out."""
        return tuple(check for checks in self._groups.values() for check in checks)

    @property
    def _groups(self) -> dict[str, tuple[Check, ...]]:
        held_out = () if self.scores is None else self.scores.checks
        return {RECORDING: self.diagnosis, CLAIMS: self.claims.checks, HELD_OUT: held_out}

    @property
    def verdict(self) -> Verdict:
        """The word for all four questions: the worst."""
        return self.overall.verdict

    @property
    def passed(self) -> bool:
        """Whether all was measured and nothing fails (ATTENTION does not fail); never without rows held out."""
        return self.verdict in ("PASS", "ATTENTION")

    @property
    def rows(self) -> tuple[Row, ...]:
        """The four questions, each with a word and a sentence."""
        return self.overall.rows

    @property
    def sentence(self) -> str:
        """What to make of the model."""
        return self.overall.sentence

    @property
    def error(self) -> dict[str, float]:
        """Of the best estimate on what was held out, by channel, in standard deviations of the recording."""
        return {} if self.scores is None else self.scores.error

    @property
    def checked_to(self) -> float:
        """How far ahead forecasts were compared with a recording; 0 where none was."""
        return 0.0 if self.scores is None else self.scores.checked_to

    @property
    def complete(self) -> bool:
        """Whether all is known; what version 0.3.1 and those before saved has the checks, but not the questions."""
        return bool(self.overall.rows)

    def __getitem__(self, check_id: str) -> Check:
        return {check.id: check for check in self.checks}[check_id]

    def sentences(self, *check_ids: CheckId) -> list[str]:
        """Those of some checks, as far as they were made."""
        return [check.sentence for check in self.checks if check.id in check_ids]

    def __str__(self) -> str:
        return f"{CheckReport(self.checks)}\n{'Verdict:':<13} {self.sentence}"

    def to_dict(self) -> dict:
        """For machines; fields are only ever added."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "checks": [{**asdict(check), "group": group} for group, each in self._groups.items() for check in each],
            "duration": self.duration,
            "time_unit": self.time_unit,
            "learned": "" if self.learned is None else str(self.learned),
            "noise": self.noise,
            "held_out_error": self.error,
            "checked_to": self.checked_to,
            "questions": [asdict(row) for row in self.rows],
            "equilibrium": None if self.learned is None else self.learned.to_dict(),
            "problems": list(self.problems),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Assessment":
        """From what `to_dict` gave, here or in a version before, which said less (`complete`)."""
        checks = {group: tuple(_check(each) for each in found["checks"] if each["group"] == group) for group in GROUPS}
        rows = tuple(Row(**row) for row in found.get("questions", ()))
        place, unit = found.get("equilibrium"), found["time_unit"]
        held_out = checks[HELD_OUT]
        return cls(
            diagnosis=checks[RECORDING],
            claims=CheckReport(checks[CLAIMS]),
            scores=Scores(held_out, found["held_out_error"], found["checked_to"], unit) if held_out else None,
            overall=Overall(rows, found["sentence"], found["verdict"]),
            learned=None if place is None else Learned.from_dict(place),
            noise=found["noise"],
            duration=found["duration"],
            time_unit=unit,
            problems=tuple(found.get("problems", ())),
        )


GROUPS = (RECORDING, CLAIMS, HELD_OUT)


def _check(found: Mapping[str, Any]) -> Check:
    return Check(**{name: value for name, value in found.items() if name != "group"})


def assess(
    model: Model,
    held_out: Trajectories | Scores | None = None,
    duration: float | None = None,
    paths: int = CHECK_PATHS,
    seed: int = 0,
    time_unit: str = "",
) -> Assessment:
    """Find out everything about a fitted model: `Model.check` calls this.

    **Arguments:**

    - `held_out`: rows that the fit did not see, to forecast and compare with; or the scores of such forecasts.
    - `duration`: of the rollouts on which claims are measured; ten times that of the longest fitted run by default, and
        4000 steps at most.
    - `paths`, `seed`: how many fields to draw for the claims, and which.
    - `time_unit`: of the recording, where none was held out that knows it.

    What it warns of stands in `problems`, too.
    """
    duration = long_enough(_fitted_duration(model), model.step) if duration is None else duration
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        claims = model.check_claims(duration, paths=paths, seed=seed)
        judged = judge_held_out(model, held_out, seed=seed) if isinstance(held_out, Trajectories) else held_out
    for each in caught:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    problems = tuple(str(each.message) for each in caught if issubclass(each.category, SgpdWarning))
    return replace(judge(model, claims, judged, duration, time_unit), problems=problems)


def judge(
    model: Model,
    claims: CheckReport,
    held_out: HeldOut | Scores | None = None,
    duration: float = 0.0,
    time_unit: str = "",
) -> Assessment:
    """The assessment of a model whose claims and forecasts were measured already."""
    scores = held_out.scores if isinstance(held_out, HeldOut) else held_out
    return Assessment(
        diagnosis=model.diagnosis,
        claims=claims,
        scores=scores,
        overall=verdict(model, claims, scores),
        learned=learned(model),
        noise=dict(zip(model.names, map(float, model.noise_std), strict=True)),
        duration=duration,
        time_unit=time_unit if scores is None else scores.time_unit,
        held_out=held_out if isinstance(held_out, HeldOut) else None,
    )


def long_enough(recorded: float, step: float) -> float:
    """How long the rollouts are on which claims are measured, for a recording of some length."""
    return min(TIMES_LONGER * recorded, MOST_STEPS * step)


def _fitted_duration(model: Model) -> float:
    """Of the longest run, from its first to its last fitted row."""
    times, first = model.pieces.times, [model.pieces.of_run(run)[0] for run in model.fitted_runs]
    spans = [model.end_of(run) - times[piece, 0] for run, piece in zip(model.fitted_runs, first, strict=True)]
    return float(np.max(spans))
