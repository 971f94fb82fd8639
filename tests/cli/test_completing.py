"""What a shell is offered at the tab key: through typer's own completion, without anything heavy, without errors."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from sgpd import integrators, structures, systems
from sgpd.cli import completing
from sgpd.data.reading.peeking import peek_names
from sgpd.models.fit import ENGINES
from tests.cli.test_app import HEAVY

TABLE = pd.DataFrame({"t": np.arange(3.0), "x1": [1.0, 2, 3], "v1 [m/s]": [0.0, 1, 2]})
ASK = (
    "import atexit, sys; "
    "atexit.register(lambda: print('LOADED', *{n.partition('.')[0] for n in sys.modules}, file=sys.stderr)); "
    "from sgpd.cli import main; main()"
)


def offered(*words):
    """What bash is offered for the last of the words, and which packages were loaded for it."""
    line = {"COMP_WORDS": "\n".join(["sgpd", *words]), "COMP_CWORD": str(len(words)), "_SGPD_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env={**os.environ, **line}, capture_output=True, text=True, check=False
    )
    *errors, loaded = done.stderr.splitlines()
    assert errors == []
    return done.stdout.split(), set(loaded.split())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("air.csv", index=False)
    return tmp_path


def test_the_lists_are_those_of_the_library():
    assert list(completing.STRUCTURES) == structures.names()
    assert list(completing.SYSTEMS) == systems.names()
    assert list(completing.INTEGRATORS) == integrators.names()
    assert list(completing.ENGINES) == list(ENGINES)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("fit", "air.csv", "--time", ""), ["t", "x1", "v1"]),
        (("fit", "air.csv", "--momentum", "v"), ["v1"]),
        (("fit", "air.csv", "--time", "t", "--state", "v1,"), ["v1,t", "v1,x1"]),
        (("fit", "air.csv", "--run=x"), ["x1"]),
        (("fit", "air.csv", "--columns", "zeit,ort,tempo", "--position", "o"), ["ort"]),
        (("fit", "none.csv", "--time", ""), []),
        (("fit", "--time", ""), []),
        (("fit", "air.csv", "--structure", "s"), ["separable"]),
        (("fit", "air.csv", "--integrator", "gauss"), ["gauss-4", "gauss-6"]),
        (("simulate", "two"), ["two-body"]),
    ],
)
def test_names_are_offered_quickly_and_silently(here, words, expected):
    names, loaded = offered(*words)
    assert names == expected
    assert "typer" in loaded
    assert loaded & HEAVY == set()


def test_the_runs_of_a_run_folder_are_offered(here):
    (here / "days").mkdir()
    np.savez(here / "days" / "recording.npz", **{"fitted.run_names": np.array(["monday", "tuesday"])})
    assert offered("predict", "days", "--from-run", "t")[0] == ["tuesday"]
    assert offered("predict", "air.csv", "--from-run", "")[0] == []


def write(path):
    names = dict(zip(TABLE.columns, TABLE.to_numpy().T, strict=True))
    match path.suffix:
        case ".npz":
            np.savez(path, **names, image=np.zeros((2, 2, 2)), count=3)
        case ".parquet":
            TABLE.to_parquet(path)
        case ".feather":
            TABLE.to_feather(path)
        case ".tsv":
            path.write_text("\ufeff# made by hand\n" + TABLE.to_csv(sep="\t", index=False))
        case ".txt":  # longer than what is looked at
            path.write_text("% x1 v1\n" + "0 1.5 2.25 3.125\n" * 9000)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".feather", ".tsv", ".txt"])
def test_every_format_shows_its_names(tmp_path, suffix):
    expected = ["column1", "column2", "x1", "v1"] if suffix == ".txt" else ["t", "x1", "v1"]
    assert peek_names(write(tmp_path / f"air{suffix}")) == expected


def test_names_are_those_that_reading_gives(tmp_path):
    from sgpd.data.reading.files import read_table

    for suffix in (".npz", ".parquet", ".tsv", ".txt"):
        path = write(tmp_path / f"air{suffix}")
        assert peek_names(path) == list(read_table(path).columns)
