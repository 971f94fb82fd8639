"""The whole paper into one folder. What is finished there is not computed again."""

import time
from collections.abc import Sequence
from contextlib import closing
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


def reproduce(
    out: Path,
    listener: Listener,
    *,
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
    truth: str = "exact",
    reading: Reading = DEFAULT_READING,
    recordings: int = 5,
    trainings: int = 2,
    quick: bool = False,
    jobs: int = 1,
) -> tuple[list[Result], About]:
    """Run what is missing of the paper's experiments (all of them by default), and write tables, figures and page.

    With several `jobs`, so many run at a time, each in a process of its own.
    """
    _require("task", tasks, TASKS)
    _require("method", methods, METHODS)
    _require("truth", [truth], TRUTHS)
    _require("settings", [reading.settings], READINGS)
    _require("jitter", [reading.jitter], JITTERS)
    for name, count in {"recordings": recordings, "trainings": trainings, "jobs": jobs}.items():
        if count < 1:
            raise BadInput(f"--{name} must be at least 1, got {count}", "leave it out for the default")
    if recordings > MOST_RECORDINGS:
        raise BadInput(f"--recordings must be at most {MOST_RECORDINGS}, got {recordings}", "take fewer")
    began = time.monotonic()
    chosen = experiments(tasks or list(TASKS), methods or METHODS, truth, quick, reading)
    if not chosen:
        raise BadInput("No experiment has this task and method", "the paper has no HNN for rigid-body and heun")
    folder = out / "runs"
    folder.mkdir(parents=True, exist_ok=True)  # before the work, so that a wrong folder is told at once
    wanted_trials = trials(recordings, trainings)
    about = _about(chosen, tasks, methods, truth, reading, recordings, trainings, quick)
    missing = {e: [t for t in wanted_trials if not _finished(folder, e, t, tasks, methods)] for e in chosen}
    work = [(experiment, missing[experiment]) for experiment in chosen if missing[experiment]]
    jobs = min(jobs, len(work))
    # Closed even when saving is interrupted: processes that were started end at once.
    with closing(side_by_side(work, listener, jobs) if jobs > 1 else in_turn(work, listener)) as ended:
        for experiment, results, seconds in ended:
            for result in results:
                save_result(result, _file(folder, experiment, result.row))
            listener.end(experiment, seconds)
            about["seconds"] = time.monotonic() - began
            write_tables(out, stored(folder, truth, quick, reading), about)
    results = stored(folder, truth, quick, reading)
    write_page(out, results, about)
    return results, about


def stored(folder: Path, truth: str, quick: bool, reading: Reading) -> list[Result]:
    """All finished results of this kind in a folder, whichever run they come from."""
    current = {e.settings for e in experiments(list(TASKS), METHODS, truth, quick, reading)}
    results = [_loaded(path) for path in sorted(folder.glob("*.npz"))]
    return [result for result in results if result is not None and result.row["settings"] in current]


def _finished(folder: Path, experiment: Experiment, trial: Trial, tasks: Sequence[str], methods: Sequence[str]) -> bool:
    """Whether every row that this experiment gives for a trial, as far as it was asked for, is there."""
    rows = [row for row in experiment.rows if wanted(row, tasks or list(TASKS), methods or METHODS)]
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


def _about(
    chosen: list[Experiment],
    tasks: Sequence[str],
    methods: Sequence[str],
    truth: str,
    reading: Reading,
    recordings: int,
    trainings: int,
    quick: bool,
) -> About:
    read = [f"--settings {reading.settings}", f"--jitter {reading.jitter}"]
    counts = [f"--recordings {recordings}", f"--trainings {trainings}"]
    options = [*tasks, *(f"--method {method}" for method in methods), f"--truth {truth}", *read, *counts]
    settings = [e.key for e in chosen if e.reading is not None]
    return About(
        command=" ".join(["sgpd paper", *options, *(["--quick"] if quick else [])]),
        version=str(sgpd.__version__),
        recordings=recordings,
        trainings=trainings,
        truth=truth,
        quick=quick,
        settings=list(dict.fromkeys(settings)),
        reading=reading,
        features=feature_sentences(settings),
        seconds=0.0,
        notes=files("sgpd.paper").joinpath("NOTES.md").read_text(encoding="utf-8"),
    )


def _require(what: str, given: Sequence[str], known):
    for name in given:
        if name not in known:
            raise unknown_name(what, name, known)
