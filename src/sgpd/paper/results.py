"""One result of the paper's experiments: its row, its curves, the words for both, and the file that keeps them."""

import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from sgpd.errors import BadInput
from sgpd.writing import write_whole


@dataclass(frozen=True)
class Task:
    """A system of the paper: its number there, its name in print and its coordinates."""

    label: str
    title: str
    states: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """A method's name in print, and its line in figures: colour and dash both differ."""

    title: str
    colour: str
    dash: str | tuple


TASKS = MappingProxyType(
    {
        "pendulum": Task("(i)", "pendulum", ("p", "q")),
        "two-body": Task("(ii)", "two-body problem", ("p1x", "p1y", "p2x", "p2y", "q1x", "q1y", "q2x", "q2y")),
        "non-separable": Task("(iii)", "non-separable system", ("p", "q")),
        "rigid-body": Task("(iv)", "rigid body", ("x1", "x2", "x3")),
        "heun": Task("(supplement)", "Heun experiment"),
    }
)

# Readable on white and on dark grey, and in print without colour.
METHODS = MappingProxyType(
    {
        "sgpd": Method("SGPD", "#0072B2", "-"),
        "default": Method("SGPD (default fit)", "#CC79A7", (0, (6, 1.5, 1, 1.5))),
        "euler": Method("Euler", "#D55E00", (0, (5, 2))),
        "hnn": Method("HNN", "#009E73", (0, (1, 1.4))),
    }
)


class Trial(NamedTuple):
    """One training on one recording. Recordings differ in their noise, trainings in all other random numbers."""

    recording: int
    training: int

    @property
    def seed(self) -> int:
        """Of the training: no two trials share one."""
        return self.recording + 1000 * self.training


MOST_RECORDINGS = 1000  # so that seeds differ


def trials(recordings: int, trainings: int) -> list[Trial]:
    """So many trainings on each of so many recordings."""
    return [Trial(recording, training) for training in range(trainings) for recording in range(recordings)]


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one task in one trial: a row of results.json, and the arrays that figures are drawn from."""

    row: dict
    curves: dict[str, np.ndarray]

    @property
    def finished(self) -> bool:
        """Whether at least one rollout stayed finite."""
        return "mean" in self.curves


def chosen(results: list[Result], **wanted) -> list[Result]:
    """The results whose rows have all these values, by trial."""
    found = [result for result in results if all(result.row.get(key) == value for key, value in wanted.items())]
    return sorted(found, key=lambda result: trial_of(result.row))


def trial_of(row: dict) -> Trial:
    """Which trial a row is of."""
    return Trial(row["recording"], row["training"])


def sorted_rows(results: list[Result]) -> list[dict]:
    """The rows by task, method, trial, system, solver and step, in the paper's order."""
    tasks, methods = list(TASKS), list(METHODS)

    def place(row: dict) -> tuple:
        step = math.inf if row.get("step") is None else row["step"]
        kind = (row.get("system") or "", row.get("solver") or "", step)
        return tasks.index(row["task"]), methods.index(row["method"]), *trial_of(row), *kind

    return sorted((result.row for result in results), key=place)


def save_result(result: Result, path: Path):
    """Keep a result in one .npz file, its row as JSON among the arrays."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, row=np.array(json.dumps(result.row, allow_nan=False)), **result.curves)  # pyright: ignore[reportArgumentType]
    write_whole(path, buffer.getvalue())


def load_result(path: Path) -> Result:
    """Read a result back; nothing in the file is executed."""
    content = path.read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return Result(json.loads(str(arrays.pop("row"))), arrays)
    except Exception as error:  # a damaged archive fails in a dozen ways; all mean the same to its reader
        raise BadInput(f"{path}: not a whole result ({error})", "delete it, and its row is computed again") from error
