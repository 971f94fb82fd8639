"""What a fit leaves behind: a folder with all that is needed to repeat it, go on with it, forecast from it, report it.

A folder that is being made, or was interrupted, has `config.json`, `recording.npz` and perhaps a `checkpoint`; a
finished one has `checks.json`, which is written last. Every file is there whole or not at all.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sgpd.data import Trajectories
from sgpd.errors import BadInput
from sgpd.judging import Assessment
from sgpd.models import Model, load
from sgpd.runs.packing import AGAIN, pack_history, pack_json, pack_recording, sha256, unpack_json, unpack_recording
from sgpd.writing import write_whole

SCHEMA = "sgpd.run/1"
_CONFIG = {"command": str, "files": list, "settings": dict, "said": list, "versions": dict, "seed": int}
_FIRST_FILES = {"lock", "recording.npz", "data.sha256", "config.json"}
_FILES = _FIRST_FILES | {"checkpoint", "model.safetensors", "history.csv", "checks.json", "report.html"}

State = Literal["absent", "unfinished", "finished", "foreign"]


@dataclass(frozen=True)
class RunFolder:
    """The folder of one fit."""

    path: Path
    allow: tuple[str, ...] = ()  # structures that are not part of sgpd, which its model may import

    @classmethod
    def open(cls, path: str | Path, allow: Sequence[str] = ()) -> "RunFolder":
        """A finished one, to read from."""
        folder = cls(Path(path), tuple(allow))
        if folder.state == "absent":
            hint = f"make one with `sgpd fit DATA --structure ... --out {path}`"
            raise BadInput(f"{path}: there is no run folder of that name", hint, str(path))
        if folder.state == "foreign":
            raise not_a_run(folder.path)
        if folder.state == "unfinished":
            hint = f"go on with `sgpd fit --out {path} --resume`"
            raise BadInput(f"{path}: this fit is not finished", hint, str(path))
        return folder

    @property
    def state(self) -> State:
        """How far it is. A folder that is empty, or of a fit that was killed before it began, counts as absent."""
        if not self.path.exists():
            return "absent"
        if not self.path.is_dir():
            return "foreign"
        if self.config_file.exists():
            return "finished" if self.checks_file.exists() else "unfinished"
        return "absent" if all(_meant(name) in _FIRST_FILES for name in os.listdir(self.path)) else "foreign"

    @property
    def config_file(self) -> Path:
        """Everything needed to repeat the fit."""
        return self.path / "config.json"

    @property
    def checks_file(self) -> Path:
        """Every check with its verdict, and what the fit said of itself."""
        return self.path / "checks.json"

    @property
    def model_file(self) -> Path:
        """The model."""
        return self.path / "model.safetensors"

    @property
    def checkpoint(self) -> Path:
        """Where an unfinished fit stands."""
        return self.path / "checkpoint"

    @property
    def lock(self) -> Path:
        """Held by the process that works in this folder."""
        return self.path / "lock"

    def begin(self, config: dict, fitted: Trajectories, held_out: Trajectories | None):
        """Write down what is going to be fitted; the config last."""
        write_whole(self.path / "recording.npz", pack_recording(fitted, held_out))
        hashes = "".join(f"{file['sha256']}  {file['path']}\n" for file in config["files"])
        write_whole(self.path / "data.sha256", hashes.encode())  # in the form that `sha256sum --check` reads
        write_whole(self.config_file, pack_json({"schema": SCHEMA, **config}))

    def finish(self, model: Model, checks: dict):
        """Write down what was found; the checks last. Then the checkpoint has done its work."""
        model.save(self.model_file)
        write_whole(self.path / "history.csv", pack_history(model.history))
        write_whole(self.checks_file, pack_json(checks))
        self.checkpoint.unlink(missing_ok=True)
        for left_over in self.path.glob(".*"):  # by a process that was killed while it wrote
            left_over.unlink()

    def clear(self):
        """Remove the files of a fit, all but the lock; whatever else is in the folder stays."""
        for path in self.path.iterdir():
            if _meant(path.name) in _FILES and path != self.lock:
                path.unlink()

    def config(self) -> dict:
        """What was asked for."""
        config = unpack_json(self.config_file)
        wrong = [name for name, kind in _CONFIG.items() if not isinstance(config.get(name), kind)]
        if config.get("schema") != SCHEMA:
            wrong = [f"schema {SCHEMA}"]
        if wrong:
            raise BadInput(f"{self.config_file}: the file lacks {', '.join(wrong)}", AGAIN, str(self.config_file))
        return config

    def checks(self) -> dict:
        """What the fit found when it ended."""
        return unpack_json(self.checks_file)

    def assessment(self) -> Assessment:
        """The same, read back; the forecasts of held-out rows are not there."""
        try:
            return Assessment.from_dict(self.checks())
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            what = f"{self.checks_file}: the file is damaged ({problem!r})"
            raise BadInput(what, AGAIN, str(self.checks_file)) from None

    def model(self) -> Model:
        """The model; a damaged or hostile file is refused."""
        if self.allow:
            sys.path.insert(0, os.getcwd())
        return load(self.model_file, self.allow)

    def recording(self) -> tuple[Trajectories, Trajectories | None]:
        """What was fitted, and what was held out if anything was."""
        return unpack_recording(self.path / "recording.npz")

    def require_same_files(self, given: Sequence[str | Path]):
        """Refuse data that changed since the fit began; without files given, those of the config are looked at."""
        recorded = self.config()["files"]
        paths = [str(path) for path in given] or [file["path"] for file in recorded]
        if [sha256(path) for path in paths] != [file["sha256"] for file in recorded]:
            raise BadInput(
                f"{', '.join(paths)}: the data are not those with which {self.path} was begun",
                "fit them into another folder, or start anew with `--force`",
                paths[0],
            )

    def replacement(self) -> "RunFolder":
        """Where a run folder is made that shall replace this one."""
        path = self.path.resolve()
        return RunFolder(path.with_name(f".{path.name}.new"))


def not_a_run(path: Path) -> BadInput:
    """The refusal of anything else."""
    return BadInput(f"{path}: this is not a run folder of sgpd", "name a folder that `sgpd fit --out` made", str(path))


def _meant(name: str) -> str:
    """The file that was being written under a hidden name: .config.json.123 is config.json."""
    return name[1:].rpartition(".")[0] if name.startswith(".") else name
