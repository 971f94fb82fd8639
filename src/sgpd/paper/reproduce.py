"""The whole paper into one folder. What is finished there is not computed again."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import sgpd
from sgpd.errors import BadInput, unknown_name
from sgpd.paper.experiments import Experiment, experiments, wanted
from sgpd.paper.features import feature_sentences
from sgpd.paper.output.page import write_page, write_tables
from sgpd.paper.output.tables import About
from sgpd.paper.results import MOST_RECORDINGS, TASKS, Result, Trial, load_result, save_result, trials
from sgpd.paper.settings import JITTERS, READINGS, Reading
from sgpd.paper.truths import TRUTHS
from sgpd.paper.workers import Listener, in_turn, side_by_side

METHODS = ("sgpd", "default", "euler", "hnn")
DEFAULT_READING = Reading()


@dataclass(frozen=True)
class Ask:
    """Which of the paper's experiments, and how they are done; no tasks or no methods: all of them."""

    tasks: Sequence[str] = ()
    methods: Sequence[str] = ()
    truth: str = "exact"
    reading: Reading = DEFAULT_READING
    recordings: int = 5
    trainings: int = 2  # on each recording
    quick: bool = False

    def experiments(self) -> list[Experiment]:
        """All that they need."""
        return experiments(self.tasks or list(TASKS), self.methods or METHODS, self.truth, self.quick, self.reading)

    def wants(self, row: dict) -> bool:
        """Whether a row is among what was asked for."""
        return wanted(row, self.tasks or list(TASKS), self.methods or METHODS)


def reproduce(out: Path, listener: Listener, ask: Ask, jobs: int = 1) -> tuple[list[Result], About]:
    """Run what is missing of what is asked for of the paper's experiments, and write tables, figures and page.

    With several `jobs`, so many run at a time, each in a process of its own.
    """
    _require_sound(ask, jobs)
    began = time.monotonic()
    chosen = ask.experiments()
    if not chosen:
        raise BadInput("No experiment has this task and method", "the paper has no HNN for rigid-body and heun")
    folder = out / "runs"
    folder.mkdir(parents=True, exist_ok=True)  # before the work, so that a wrong folder is told at once
    wanted_trials = trials(ask.recordings, ask.trainings)
    about = _about(chosen, ask)
    missing = {e: [t for t in wanted_trials if not _finished(folder, e, t, ask)] for e in chosen}
    work = [(experiment, missing[experiment]) for experiment in chosen if missing[experiment]]
    jobs = min(jobs, len(work))
    # Closed even when saving is interrupted: processes that were started end at once.
    with closing(side_by_side(work, listener, jobs) if jobs > 1 else in_turn(work, listener)) as ended:
        for experiment, results, seconds in ended:
            for result in results:
                save_result(result, _file(folder, experiment, result.row))
            listener.end(experiment, seconds)
            about["seconds"] = time.monotonic() - began
            write_tables(out, _stored(folder, ask), about)
    results = _stored(folder, ask)
    write_page(out, results, about)
    return results, about


def _stored(folder: Path, ask: Ask) -> list[Result]:
    """All finished results of this kind in a folder, of every task and method, whichever run they come from."""
    current = {e.settings for e in replace(ask, tasks=(), methods=()).experiments()}
    results = [_loaded(path) for path in sorted(folder.glob("*.npz"))]
    return [result for result in results if result is not None and result.row["settings"] in current]


def _finished(folder: Path, experiment: Experiment, trial: Trial, ask: Ask) -> bool:
    """Whether every row that this experiment gives for a trial, as far as it was asked for, is there."""
    rows = [row for row in experiment.rows if ask.wants(row)]
    found = [_loaded(_file(folder, experiment, row | trial._asdict())) for row in rows]
    return all(result is not None and result.row["settings"] == experiment.settings for result in found)


def _loaded(path: Path) -> Result | None:
    """A kept result; a damaged one is as good as none, since it can be computed again."""
    try:
        return load_result(path)
    except (FileNotFoundError, ValueError):
        return None


def _file(folder: Path, experiment: Experiment, row: dict) -> Path:
    how = [row["system"], row["solver"], row["step"]] if row["task"] == "heun" else []
    read = (
        [f"{experiment.reading.settings}-settings", f"{experiment.reading.jitter}-jitter"] if experiment.reading else []
    )
    kind = "quick" if experiment.quick else "full"
    trial = [f"recording{row['recording']}", f"training{row['training']}"]
    parts = [row["task"], row["method"], *how, *read, experiment.truth, kind, *trial]
    return folder / ("_".join(str(part) for part in parts if part is not None) + ".npz")


def _about(chosen: list[Experiment], ask: Ask) -> About:
    read = [f"--settings {ask.reading.settings}", f"--jitter {ask.reading.jitter}"]
    counts = [f"--recordings {ask.recordings}", f"--trainings {ask.trainings}"]
    options = [*ask.tasks, *(f"--method {method}" for method in ask.methods), f"--truth {ask.truth}", *read, *counts]
    settings = [e.key for e in chosen if e.reading is not None]
    return About(
        command=" ".join(["sgpd paper", *options, *(["--quick"] if ask.quick else [])]),
        version=str(sgpd.__version__),
        recordings=ask.recordings,
        trainings=ask.trainings,
        truth=ask.truth,
        quick=ask.quick,
        settings=list(dict.fromkeys(settings)),
        reading=ask.reading,
        features=feature_sentences(settings),
        seconds=0.0,
        notes=files("sgpd.paper").joinpath("NOTES.md").read_text(encoding="utf-8"),
    )


def _require_sound(ask: Ask, jobs: int):
    _require("task", ask.tasks, TASKS)
    _require("method", ask.methods, METHODS)
    _require("truth", [ask.truth], TRUTHS)
    _require("settings", [ask.reading.settings], READINGS)
    _require("jitter", [ask.reading.jitter], JITTERS)
    for name, count in {"recordings": ask.recordings, "trainings": ask.trainings, "jobs": jobs}.items():
        if count < 1:
            raise BadInput(f"--{name} must be at least 1, got {count}", "leave it out for the default")
    if ask.recordings > MOST_RECORDINGS:
        raise BadInput(f"--recordings must be at most {MOST_RECORDINGS}, got {ask.recordings}", "take fewer")


def _require(what: str, given: Sequence[str], known):
    for name in given:
        if name not in known:
            raise unknown_name(what, name, known)
