"""What a fit that fails leaves behind: nothing after a numerical failure, all that was saved after a full disk."""

import errno
import os

import pandas as pd
import pytest

import sgpd
from sgpd import NumericalFailure, Outcome, writing
from sgpd.runs.layout import RunFolder
from tests.cli.conftest import write_recording

FAST = sgpd.Variational(epochs=2, inducing=4, features=8, paths=1)
FIT = ("fit", "air.csv", "-s", "separable", "--inference", "variational")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A recording, and a fit that takes no time and saves where it stands after every epoch."""
    from sgpd.models.fit import ENGINES

    monkeypatch.setitem(ENGINES, "variational", lambda: FAST)
    monkeypatch.setattr("sgpd.inference.variational.engine.BETWEEN_SAVES", 0.0)
    monkeypatch.chdir(tmp_path)
    write_recording(tmp_path / "air.csv")
    return tmp_path


@pytest.fixture
def diverging(monkeypatch):
    """A switch: from then on fits save where they stand, do what else they are told, and fail."""

    def fail(*_, checkpoint, also=lambda folder: None, **__):
        checkpoint.write_bytes(b"where it stands")
        also(checkpoint.parent)
        raise NumericalFailure(Outcome.DIVERGED, "In epoch 3.")

    return lambda **more: monkeypatch.setattr(sgpd, "fit", lambda *a, **k: fail(*a, **k, **more))


def test_a_fit_that_fails_numerically_leaves_nothing(here, sgpd_here, diverging):
    diverging()
    for out in ("air", "deep/er/air"):
        ended = sgpd_here(*FIT, "--out", out)
        assert ended.code == 3
        error, hint = ended.err[ended.err.index("error: ") :].strip().split("\n\n")
        assert error.endswith("In epoch 3.")
        assert hint.startswith(f"hint: {Outcome.DIVERGED.remedy}")
        assert hint.endswith("Nothing of this fit was kept.")
    assert os.listdir(here) == ["air.csv"]


def test_what_else_is_in_the_folder_stays(here, sgpd_here, diverging):
    (here / "empty").mkdir()
    diverging(also=lambda folder: (folder / "notes.txt").write_text("mine"))
    for out in ("new", "empty"):
        assert sgpd_here(*FIT, "--out", out).code == 3
        assert os.listdir(here / out) == ["notes.txt"]


def test_a_replacement_that_fails_numerically_leaves_the_old_run(here, sgpd_here, diverging):
    assert sgpd_here(*FIT, "--out", "air").code == 0
    before = {path.name: path.read_bytes() for path in (here / "air").iterdir()}
    diverging()
    assert sgpd_here(*FIT, "--seed", "1", "--out", "air", "--force").code == 3
    assert {path.name: path.read_bytes() for path in (here / "air").iterdir()} == before
    assert sorted(os.listdir(here)) == ["air", "air.csv"]


def stop(*_, **__):
    raise KeyboardInterrupt


def test_a_resumed_run_that_fails_numerically_stays_and_says_how_to_start_anew(here, sgpd_here, monkeypatch, diverging):
    monkeypatch.setattr(sgpd, "fit", stop)
    assert sgpd_here(*FIT, "--out", "air").code == 130
    diverging()
    failed = sgpd_here("fit", "air.csv", "--out", "air", "--resume")
    assert failed.code == 3
    assert failed.err.strip().endswith("air is as it was; start anew with other settings and `--force`.")
    assert RunFolder(here / "air").state == "unfinished"
    again = sgpd_here(*FIT, "--out", "air")
    assert again.code == 2
    assert "error: air: there is an unfinished fit in this folder" in again.err
    assert "`sgpd fit --out air --resume`, or start anew with `--force`" in again.err


def test_stopped_before_anything_was_written_it_leaves_nothing(here, sgpd_here, monkeypatch):
    monkeypatch.setattr(RunFolder, "begin", stop)
    ended = sgpd_here(*FIT, "--out", "air")
    assert ended.code == 130
    assert "Stopped; nothing was written." in ended.err
    assert os.listdir(here) == ["air.csv"]


def fill_disk(monkeypatch, moment):
    """From its n-th file on the disk is full; half of that one was written. Gives the files that were begun."""
    whole, begun = writing._onto_disk, []

    def onto_disk(path, content):
        begun.append(path)
        if len(begun) < moment:
            return whole(path, content)
        whole(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing, "_onto_disk", onto_disk)
    return begun


def require_full(ended, path):
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    error, hint = ended.err[ended.err.index("error: ") :].strip().split("\n\n")
    assert error == f"error: {path}: there is no space left on the disk"
    assert hint.startswith("hint: make room there")
    return hint


@pytest.mark.parametrize(("moment", "file"), [(1, "recording.npz"), (2, "data.sha256"), (3, "config.json")])
def test_a_disk_that_is_full_from_the_start_is_left_as_it_was(here, sgpd_here, monkeypatch, moment, file):
    fill_disk(monkeypatch, moment)
    hint = require_full(sgpd_here(*FIT, "--out", "air"), f"air/{file}")
    assert hint.endswith("Nothing of this fit was kept.")
    assert os.listdir(here) == ["air.csv"]


def test_a_fit_whose_disk_fills_again_and_again_goes_on_to_the_same_model(here, sgpd_here, monkeypatch):
    assert sgpd_here(*FIT, "--out", "undisturbed").code == 0
    # The fifth file of a new run is its second checkpoint; a resumed one writes what is left.
    for moment, file in ((5, "checkpoint"), (2, "model.safetensors"), (3, "checks.json")):
        with monkeypatch.context() as patched:
            fill_disk(patched, moment)
            ended = sgpd_here(*FIT, "--out", "air", "--resume")
        hint = require_full(ended, f"air/{file}")
        assert "go on with `sgpd fit air.csv --out air --resume`" in hint
        assert not [name for name in os.listdir(here / "air") if name.startswith(".")]
        assert RunFolder(here / "air").state == "unfinished"
    assert sgpd_here("fit", "air.csv", "--out", "air", "--resume").code == 0
    for name in ("model.safetensors", "history.csv", "recording.npz"):
        assert (here / "air" / name).read_bytes() == (here / "undisturbed" / name).read_bytes()


@pytest.mark.parametrize(("moment", "file"), [(1, "f.csv"), (2, "f.csv.json"), (3, "paths.csv")])
def test_a_forecast_that_does_not_fit_on_the_disk_leaves_the_one_before(
    tmp_path, fitted, sgpd_here, monkeypatch, moment, file
):
    monkeypatch.chdir(tmp_path)
    ask = ("predict", fitted[1], "--out", "f.csv", "--paths-out", "paths.csv", "--paths", "8")
    assert sgpd_here(*ask, "--duration", "2").code == 0
    with monkeypatch.context() as patched:
        fill_disk(patched, moment)
        require_full(sgpd_here(*ask, "--duration", "3"), file)
    assert sorted(os.listdir(tmp_path)) == ["f.csv", "f.csv.json", "paths.csv", "paths.csv.json"]
    assert pd.read_csv(file if file.endswith(".csv") else "f.csv")["t"].iloc[-1] == pytest.approx(21.8)


def test_a_full_disk_behind_standard_output_is_told():
    import subprocess
    import sys

    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sgpd", "systems"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output: there is no space left on the disk\n\nhint: ")
