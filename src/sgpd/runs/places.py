"""Where a fit works: in a new folder, in one that it goes on with, or beside one that it shall replace."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sgpd.errors import BadInput, NumericalFailure
from sgpd.runs.layout import RunFolder, State, not_a_run
from sgpd.runs.lock import busy, is_locked, locked
from sgpd.writing import sync_folder


def to_work_in(out: Path, *, resume: bool, force: bool) -> tuple[RunFolder, State]:
    """The folder in which a fit into `out` is to work, and how far it is already. Nothing is written.

    With `force` an existing run folder stays as it is until its replacement is whole; an interrupted replacement is
    gone on with like any other.
    """
    if resume and force:
        raise BadInput("--resume goes on with a fit, --force replaces it", "give one of the two")
    _require_place(out)
    folder = RunFolder(out)
    if folder.state == "foreign":
        raise not_a_run(out)
    new = folder.replacement()
    if is_locked(folder.lock) or is_locked(new.lock):
        raise busy(out)
    if resume:
        return (folder, folder.state) if new.state in ("absent", "foreign") else (new, new.state)
    if folder.state == "absent":
        return folder, "absent"
    if force:
        return new, "absent"
    if folder.state == "unfinished":
        hint = f"go on with it by `sgpd fit --out {out} --resume`, or start anew with `--force`"
        raise BadInput(f"{out}: there is an unfinished fit in this folder", hint, str(out))
    hint = "choose another --out, or replace it with `--force`"
    raise BadInput(f"{out}: there is a finished fit in this folder", hint, str(out))


@contextmanager
def working_in(folder: RunFolder, out: Path, found: State) -> Iterator[None]:
    """Hold the folder for this process; in the end put it in the place of `out` if it was made to replace it.

    A fit that starts here and ends with nothing worth keeping takes away what it has made.
    """
    made = [path for path in (folder.path, *folder.path.parents) if not path.exists()]
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        for path in made:
            sync_folder(path.parent)
        with locked(folder.lock):
            if found == "absent":
                _clear(folder, out)
            try:
                yield
            except BaseException as problem:
                if found == "absent" and not _worth_keeping(folder, problem):
                    folder.clear()
                    folder.lock.unlink()
                raise
    finally:
        for path in made:  # the innermost first; what is not empty stays
            with suppress(OSError):
                path.rmdir()
    if folder.path != out:
        _put_in_place(folder, out)


def _worth_keeping(folder: RunFolder, problem: BaseException) -> bool:
    """A numerical failure would come again, from a checkpoint too; after any other the work that was saved goes on."""
    if isinstance(problem, NumericalFailure):
        return False
    if isinstance(problem, (ValueError, OSError)):
        return folder.checkpoint.exists()
    return folder.state != "absent"


def _clear(folder: RunFolder, out: Path):
    """Nothing of an earlier attempt may be left where a fit starts."""
    if folder.path != out:
        folder.clear()
        return
    if folder.state != "absent":  # another process was quicker, between the look and the lock
        raise busy(out)
    shutil.rmtree(folder.replacement().path, ignore_errors=True)


def _put_in_place(new: RunFolder, out: Path):
    """Killed between the two moves, `--resume` finds the new folder whole and moves it."""
    out = out.resolve()
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    new.path.rename(out)
    sync_folder(out.parent)
    shutil.rmtree(old, ignore_errors=True)


def _require_place(out: Path):
    """Refuse a folder that cannot be made or written to, before anything is done."""
    hint = "choose another --out"
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: there is a file of that name where a folder is to be written", hint, str(out))
    there = next(parent for parent in (out.absolute(), *out.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise BadInput(f"{out}: {there} is a file, not a folder", hint, str(out))
    if not os.access(there, os.W_OK | os.X_OK):
        raise BadInput(f"{out}: there is no permission to write in {there}", hint, str(out))
