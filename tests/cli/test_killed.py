"""Killed without warning in the middle of writing a file, again and again: the resumed run ends with the same model.

Every file is written by one function, so a process can be killed at each of its moments: half of the n-th file is on
the disk, under the name that it has before it is whole.
"""

import os
import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import write_recording

# Settings are small; the command line is the real one.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from sgpd.models.fit import ENGINES
from sgpd.inference import Laplace, Variational

import sgpd.inference.variational.engine
sgpd.inference.variational.engine.BETWEEN_SAVES = 0.0
ENGINES["variational"] = lambda: Variational(epochs=12, inducing=6, features=16, paths=1)
ENGINES["laplace"] = lambda: Laplace(inducing=6, features=16, stored=8)
import sgpd.writing
moment, whole, written = int(os.environ["KILL_AT"]), sgpd.writing._onto_disk, []

def onto_disk(path, content):
    written.append(path)
    if len(written) == moment:
        whole(path, content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(path, content)

sgpd.writing._onto_disk = onto_disk
from sgpd.cli.app import main
main()
"""
NEVER = 0
# In the config, in the first checkpoint, then in the second checkpoint that a resumed process writes.
MOMENTS = (3, 4, 2)


def fit(folder, engine, out, kill_at, *more):
    environment = {**os.environ, "KILL_AT": str(kill_at)}
    arguments = ["fit", "air.csv", "-s", "separable", "--inference", engine, "--out", out, *more]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("engine", [pytest.param("laplace", marks=pytest.mark.slow), "variational"])
def test_a_run_that_is_killed_and_resumed_ends_with_the_same_model_to_the_last_bit(tmp_path, engine):
    write_recording(tmp_path / "air.csv")
    undisturbed = fit(tmp_path, engine, "undisturbed", NEVER)
    assert undisturbed.returncode == 0, undisturbed.stderr
    for moment in MOMENTS:
        killed = fit(tmp_path, engine, "killed", moment, "--resume")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert not (tmp_path / "killed" / "checks.json").exists()
    resumed = fit(tmp_path, engine, "killed", NEVER, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "resume" in resumed.stderr
    names = ("model.safetensors", "history.csv", "recording.npz", "data.sha256")
    for name in names:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name
    assert sorted(os.listdir(tmp_path / "killed")) == sorted(os.listdir(tmp_path / "undisturbed"))
