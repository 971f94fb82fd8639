"""What is found out about a fitted model: what the fit says of itself, its claims measured, its held-out judgement."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sgpd.cli.talk import Talk

if TYPE_CHECKING:
    from sgpd.checks import Check, CheckReport
    from sgpd.data import Trajectories
    from sgpd.judging import HeldOut, Overall
    from sgpd.models import Model

TIMES_LONGER = 10  # claims are measured on rollouts so many times as long as the recording
MOST_STEPS = 4000
SCHEMA = "sgpd.check/1"


@dataclass(frozen=True, eq=False)
class Findings:
    """The judgement of a model, and the numbers that go with it."""

    model: "Model"
    claims: "CheckReport"
    held_out: "HeldOut | None"
    duration: float  # over which the claims were measured
    time_unit: str
    problems: tuple[str, ...] = ()  # warnings while it was judged

    @property
    def overall(self) -> "Overall":
        """Four questions and a sentence."""
        from sgpd.judging import verdict

        return verdict(self.model, self.claims, self.held_out)

    @property
    def learned(self) -> str:
        """The equilibrium and its period, where there is one."""
        from sgpd.judging.learned import learned

        found = learned(self.model)
        return "" if found is None else str(found)

    @property
    def error(self) -> dict[str, float]:
        """Of the best estimate on what was held out, by coordinate, in standard deviations of the recording."""
        if self.held_out is None:
            return {}
        return {name: float(share) for name, share in zip(self.model.names, self.held_out.error, strict=True)}

    @property
    def checked_to(self) -> float:
        """How far ahead forecasts were compared with a recording; 0 where none was."""
        from sgpd.judging.overall import checked_to

        return checked_to(self.held_out)

    def to_dict(self) -> dict:
        """For machines; fields are only ever added."""
        overall = self.overall
        groups = {
            "recording": self.model.diagnosis,
            "claims": self.claims.checks,
            "held out": () if self.held_out is None else self.held_out.checks,
        }
        return {
            "schema": SCHEMA,
            "verdict": overall.verdict,
            "sentence": overall.sentence,
            "checks": [as_dict(check, group) for group, checks in groups.items() for check in checks],
            "duration": self.duration,
            "time_unit": self.time_unit,
            "learned": self.learned,
            "noise": dict(zip(self.model.names, map(float, self.model.noise_std), strict=True)),
            "held_out_error": self.error,
            "checked_to": self.checked_to,
        }


def as_dict(check: "Check", group: str) -> dict:
    """One check, and what it is about."""
    return {**asdict(check), "group": group}


def examine(model: "Model", fitted: "Trajectories", held_out: "Trajectories | None", seed: int, talk: Talk) -> Findings:
    """Measure everything."""
    from sgpd.judging import judge_held_out

    talk.say("check", "every claim, on drawn fields" + ("" if held_out is None else "; bands, on held-out rows"))
    duration, problems = long_enough(model, fitted), []
    with talk.heeding(problems.append):
        claims = model.check(duration, seed=seed)
        judged = None if held_out is None else judge_held_out(model, held_out, seed=seed)
    return Findings(model, claims, judged, duration, fitted.time_unit, tuple(problems))


def long_enough(model: "Model", fitted: "Trajectories") -> float:
    """How long the rollouts are on which claims are measured."""
    return min(TIMES_LONGER * fitted.duration, MOST_STEPS * model.step)
