"""`sgpd check`: every claim as a table, then what does not hold and what to try."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from sgpd.cli.ending import DONE, FAILED
from sgpd.cli.talk import STYLES, Talk
from sgpd.xla.tuning import tune_unless_told_not_to

if TYPE_CHECKING:
    from sgpd.judging import Assessment
    from sgpd.models import Model

CLAIM = 46  # columns for the claim
TOLD = ("FAIL", "ATTENTION", "NOT MEASURED")  # in this order, after the table


def run_check(path: Path, strict: bool, talk: Talk, allow: Sequence[str] = ()) -> int:
    """The exit code: 1 where a check fails, with `strict` also where one deserves attention.

    Claims are measured anew; the forecasts of held-out rows are judged as they were when the fit ended.
    """
    tune_unless_told_not_to()
    from sgpd.data.describing import amount
    from sgpd.judging import assess
    from sgpd.judging.assessment import long_enough
    from sgpd.runs.layout import RunFolder

    folder = RunFolder.open(path, allow)
    config, stored, model = folder.config(), folder.assessment(), folder.model()
    fitted, _ = folder.recording()
    duration = long_enough(fitted.duration, model.step)
    talk.say("check", f"every claim, on drawn fields, to {amount(duration, fitted.time_unit)}")
    with talk.heeding():
        found = assess(model, stored.scores, duration, seed=config["seed"], time_unit=fitted.time_unit)
    talk.data(folder.checks() | found.to_dict())
    _tell(path, model, found, talk)
    verdicts = {check.verdict for check in found.checks}
    return FAILED if "FAIL" in verdicts or (strict and "ATTENTION" in verdicts) else DONE


def _tell(path: Path, model: "Model", found: "Assessment", talk: Talk):
    talk.result(f"{path}: {model.posterior.structure.name} + {model.integrator.name}")
    talk.result(_row("claim", "measured", "limit", "verdict"), style="bold")
    for check in found.checks:
        first, *more = wrap(check.title, CLAIM - 1)
        style = "" if check.verdict == "PASS" else STYLES.get(check.verdict, "")
        talk.result(_row(first, _number(check.value), _number(check.limit), check.verdict), style=style)
        for line in more:
            talk.result(f"  {line}")
    for verdict in TOLD:
        for check in found.checks:
            if check.verdict == verdict:
                talk.verdict(verdict, check.words, indent="", width=len(verdict) + 2)
    talk.result("Verdict: ", found.sentence)


def _row(claim: str, measured: str, limit: str, verdict: str) -> str:
    return f"  {claim:<{CLAIM}}{measured:<11}{limit:<9}{verdict}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"
