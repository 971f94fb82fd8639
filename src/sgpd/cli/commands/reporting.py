"""`sgpd report`: one page from a run folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sgpd.cli.commands.fitting import judged
from sgpd.cli.talk import Talk
from sgpd.errors import SgpdWarning
from sgpd.xla.tuning import tune_unless_told_not_to

if TYPE_CHECKING:
    from sgpd.judging import Assessment
    from sgpd.models import Model
    from sgpd.runs.layout import RunFolder


def run_report(path: Path, talk: Talk, assessment: "Assessment | None" = None, allow: Sequence[str] = ()) -> Path:
    """Write RUN/report.html and say where it is. What is known of the fit is not measured again."""
    tune_unless_told_not_to()
    from sgpd.report import write_report
    from sgpd.runs.layout import RunFolder

    folder = RunFolder.open(path, allow)
    config, model = folder.config(), folder.model()
    fitted, _ = folder.recording()
    if assessment is None:
        assessment = _known(folder, model, talk)
    talk.say("report", "drawing")
    about = about_run(path, config, folder.checks().get("seconds"))
    with talk.heeding():
        page = write_report(folder.path / "report.html", model, fitted, assessment, about)
    talk.data({"schema": "sgpd.report/1", "report": str(page)})
    talk.result("Report:  ", str(page))
    return page


def _known(folder: "RunFolder", model: "Model", talk: Talk) -> "Assessment":
    """What the fit found when it ended, with the forecasts that figures need. Version 0.3.1 saved less: found anew."""
    from sgpd.judging import judge_held_out

    stored = folder.assessment()
    if not stored.complete:
        return judged(folder, model, talk)
    _, held_out = folder.recording()
    if held_out is None:
        return stored
    with talk.heeding(told_later=SgpdWarning):  # they stand among the problems already
        return replace(stored, held_out=judge_held_out(model, held_out, seed=folder.config()["seed"]))


def about_run(path: Path, config: dict, seconds: float | None):
    """What the page says besides numbers."""
    from sgpd.report import About

    return About(
        title=path.resolve().name,
        command=config["command"],
        files=tuple((file["given"], file["sha256"]) for file in config["files"]),
        said=tuple((word, sentence) for word, sentence in config["said"]),
        versions=config["versions"],
        seed=config["seed"],
        seconds=seconds,
    )
