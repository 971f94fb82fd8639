"""`sgpd report`: one page from a run folder."""

from collections.abc import Sequence
from pathlib import Path

from sgpd.cli.commands.findings import Findings, examine
from sgpd.cli.talk import Talk
from sgpd.xla.cache import keep_compiled_programs
from sgpd.xla.tuning import tune_unless_told_not_to


def run_report(path: Path, talk: Talk, findings: Findings | None = None, allow: Sequence[str] = ()) -> Path:
    """Write RUN/report.html and say where it is. What was just found out about the fit is not measured again."""
    tune_unless_told_not_to()
    keep_compiled_programs()
    from sgpd.report import write_report
    from sgpd.runs.layout import RunFolder

    folder = RunFolder.open(path, allow)
    config, stored = folder.config(), folder.checks()
    fitted, held_out = folder.recording()
    if findings is None:
        findings = examine(folder.model(), fitted, held_out, config["seed"], talk)
    talk.say("report", "drawing")
    about = about_run(path, config, stored.get("seconds"), findings.problems)
    with talk.heeding():
        page = write_report(
            folder.path / "report.html", findings.model, fitted, findings.claims, about, findings.held_out
        )
    talk.data({"schema": "sgpd.report/1", "report": str(page)})
    talk.result("Report:  ", str(page))
    return page


def about_run(path: Path, config: dict, seconds: float | None, problems: Sequence[str]):
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
        problems=tuple(dict.fromkeys(problems)),
    )
