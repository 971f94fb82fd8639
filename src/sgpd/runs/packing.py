"""The files of a run folder as bytes: recordings, settings, histories."""

import csv
import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np

from sgpd.data import Run, Trajectories
from sgpd.errors import BadInput
from sgpd.inference.facts import History, plain
from sgpd.writing import json_text

CHUNK = 1 << 20
PARTS = ("fitted", "held_out")
AGAIN = "fit again with `--force`"


def pack_recording(fitted: Trajectories, held_out: Trajectories | None) -> bytes:
    """Recordings as plain arrays in an NPZ archive, to the last bit."""
    arrays = {}
    for part, data in zip(PARTS, (fitted, held_out), strict=True):
        if data is None:
            continue
        arrays |= {
            f"{part}.times": np.concatenate([run.times for run in data.runs]),
            f"{part}.states": np.concatenate([run.states for run in data.runs]),
            f"{part}.lengths": np.array([len(run) for run in data.runs]),
            f"{part}.names": np.array(data.names),
            f"{part}.units": np.array(data.units),
            f"{part}.run_names": np.array(data.run_names),
            f"{part}.time": np.array([data.time_name, data.time_unit]),
        }
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def unpack_recording(path: Path) -> tuple[Trajectories, Trajectories | None]:
    """What was fitted, and what was held out if anything was."""
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in archive}
        fitted, held_out = _trajectories(arrays, "fitted"), None
        if "held_out.times" in arrays:
            held_out = _trajectories(arrays, "held_out")
    except (OSError, ValueError, KeyError, EOFError, IndexError, TypeError, zipfile.BadZipFile) as problem:
        raise BadInput(f"{path}: cannot be read ({problem})", AGAIN, str(path)) from None
    return fitted, held_out


def _trajectories(arrays: dict[str, np.ndarray], part: str) -> Trajectories:
    ends = np.cumsum(arrays[f"{part}.lengths"])[:-1]
    times, states = (np.split(arrays[f"{part}.{name}"], ends) for name in ("times", "states"))
    names, units, run_names, time = (
        tuple(map(str, arrays[f"{part}.{name}"])) for name in ("names", "units", "run_names", "time")
    )
    runs = tuple(Run(t, x) for t, x in zip(times, states, strict=True))
    return Trajectories(runs, names, units, run_names, *time)


def pack_json(content: dict) -> bytes:
    """A file of JSON."""
    return f"{json_text(content)}\n".encode()


def unpack_json(path: Path) -> dict:
    """An object from a file of JSON."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise BadInput(f"{path}: cannot be read ({problem})", AGAIN, str(path)) from None
    if not isinstance(content, dict):
        raise BadInput(f"{path}: the file is damaged", AGAIN, str(path))
    return content


def pack_history(history: History) -> bytes:
    """One line for each round or epoch."""
    lines = plain(history)
    columns = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def sha256(path: str | Path) -> str:
    """The hash of a file, as `sha256sum` prints it."""
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    except OSError as problem:
        what = f"{path}: cannot be read ({problem.strerror})"
        raise BadInput(what, "check the name of the file", str(path)) from None
    return digest.hexdigest()
