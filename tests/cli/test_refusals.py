"""Bad files and bad flags: exit code 2, one error sentence, one hint, no traceback, and nothing is written."""

import os

import numpy as np
import pytest

GOOD = [f"{0.1 * k:.1f},{np.cos(0.1 * k):.5f},{-np.sin(0.1 * k):.5f}" for k in range(40)]


def table(header="t,q,p", rows=GOOD, **changed):
    """A good file with some rows changed: row_3='...' is line 5."""
    rows = list(rows)
    for name, text in changed.items():
        rows[int(name.removeprefix("row_"))] = text
    return "\n".join([header, *rows]) + "\n"


def column(name, k, values):
    """A file in which one column has other values."""
    cells = [row.split(",") for row in GOOD]
    for cell, value in zip(cells, values, strict=True):
        cell[k] = value
    return table(rows=[",".join(cell) for cell in cells])


FILES = {
    "empty file": b"",
    "header only": b"t,q,p\n",
    "one row": table(rows=GOOD[:1]),
    "text in a number column": table(row_7="0.7,abc,1"),
    "decimal commas": table(header="t;q;p", rows=[row.replace(",", ";").replace(".", ",") for row in GOOD]),
    "ragged row": table(row_9="0.9,1"),
    "a row too long": table(row_9="0.9,1,2,3"),
    "duplicate column names": table(header="t,q,q"),
    "duplicate time": table(row_5="0.4,1,1"),
    "unsorted times": table(row_5="0.05,1,1"),
    "missing time": table(row_5=",1,1"),
    "infinite value": table(row_5="0.5,inf,1"),
    "infinite time": table(row_39="inf,1,1"),
    "NUL bytes": table().encode().replace(b"0.5", b"0.\0"),
    "UTF-16": table().encode("utf-16"),
    "Latin-1": table(header="t,größe,p").encode("latin-1"),
    "all values missing": column("q", 1, [""] * 40),
    "all values equal": column("q", 1, ["1.5"] * 40),
    "overflowing differences": column("q", 1, ["1e308", "-1e308"] * 20),
    "positions only": "\n".join(["t,x", *(row.rpartition(",")[0] for row in GOOD)]) + "\n",
    "no numbers": "t,p,q\n" + "a,b,c\n" * 5,
    "binary rubbish": bytes(range(256)) * 20,
    "reserved name": table(header="t,energy,path"),
}
FIT = ("--structure", "separable", "--out", "run")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(table())
    (tmp_path / "file").write_text("not a folder")
    return tmp_path


def everything(folder):
    return {os.path.join(base, name): os.stat(os.path.join(base, name)).st_mtime_ns for base, dirs, files in
            os.walk(folder) for name in dirs + files}  # fmt: skip


def require_refused(ended, folder, before):
    assert ended.code == 2, ended
    assert "Traceback" not in ended.out + ended.err
    assert ended.out == ""
    said = ended.err.split("\n")
    errors = [line for line in said if line.startswith("error: ")]
    hints = [line for line in said if line.startswith("hint: ")]
    assert len(errors) == len(hints) == 1, ended.err
    assert len(errors[0]) > len("error: ") + 10
    assert len(hints[0]) > len("hint: ") + 3
    assert everything(folder) == before


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_refused(here, sgpd_here, name):
    content = FILES[name]
    (here / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    before = everything(here)
    ended = sgpd_here("fit", "bad.csv", *FIT)
    require_refused(ended, here, before)
    assert "bad.csv" in ended.err


ARRAYS = {
    "object array": {"t": np.arange(5.0), "q": np.array([{}] * 5, object), "p": np.arange(5.0)},
    "arrays of unequal length": {"t": np.arange(50.0), "q": np.arange(50.0) ** 2, "p": np.arange(49.0)},
    "complex numbers": {"t": np.arange(50.0), "q": np.arange(50) * 1j, "p": np.arange(50.0)},
    "no times": {"image": np.zeros((4, 4, 4))},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_bad_archive_is_refused(here, sgpd_here, name):
    np.savez(here / "bad.npz", **ARRAYS[name])
    before = everything(here)
    require_refused(sgpd_here("fit", "bad.npz", *FIT), here, before)


@pytest.mark.parametrize("suffix", ["npz", "parquet", "feather"])
def test_a_file_that_is_not_what_its_name_says_is_refused(here, sgpd_here, suffix):
    (here / f"bad.{suffix}").write_text(table())
    before = everything(here)
    require_refused(sgpd_here("fit", f"bad.{suffix}", *FIT), here, before)


FLAGS = {
    "no file": ("fit", *FIT),
    "no such file": ("fit", "none.csv", *FIT),
    "a folder for a file": ("fit", ".", *FIT),
    "unknown suffix": ("fit", "file", "--out", "run"),
    "no structure": ("fit", "good.csv", "--out", "run"),
    "no run folder": ("fit", "good.csv", "--structure", "free"),
    "unknown structure": ("fit", "good.csv", "--structure", "separabel", "--out", "run"),
    "unknown integrator": ("fit", "good.csv", *FIT, "--integrator", "gaus-4"),
    "unknown engine": ("fit", "good.csv", *FIT, "--inference", "laplase"),
    "unknown column": ("fit", "good.csv", *FIT, "--time", "tt"),
    "unknown momentum": ("fit", "good.csv", *FIT, "--momentum", "v", "--position", "q"),
    "roles swapped": ("fit", "good.csv", *FIT, "--momentum", "q", "--position", "p"),
    "an odd state": ("fit", "good.csv", *FIT, "--state", "q"),
    "unknown unit's column": ("fit", "good.csv", *FIT, "--unit", "z=m"),
    "a unit without sign": ("fit", "good.csv", *FIT, "--unit", "rad"),
    "too few names": ("fit", "good.csv", *FIT, "--columns", "t,q"),
    "an empty name": ("fit", "good.csv", *FIT, "--columns", "t,,q"),
    "an odd decimal mark": ("fit", "good.csv", *FIT, "--decimal", ";"),
    "the same file twice": ("fit", "good.csv", "good.csv", *FIT),
    "unknown run column": ("fit", "good.csv", *FIT, "--run", "trial"),
    "unknown option": ("fit", "good.csv", *FIT, "--option", "shape=round"),
    "unknown form": ("fit", "good.csv", *FIT, "--option", "form=componets"),
    "an option without value": ("fit", "good.csv", *FIT, "--option", "form"),
    "an option that is no matrix": ("fit", "good.csv", "-s", "quadratic-invariant", "--option", "q=2", "--out", "run"),
    "an option that is no JSON": ("fit", "good.csv", "-s", "quadratic-invariant", "--option", "q=[[1", "--out", "run"),
    "a form that wants another dimension": (
        *("fit", "good.csv", "-s", "quadratic-invariant", "--option", "form=lie-poisson", "--out", "run"),
    ),
    "a pair that does not go together": ("fit", "good.csv", "-s", "free", "--integrator", "yoshida-4", "--out", "run"),
    "holdout of everything": ("fit", "good.csv", *FIT, "--holdout", "100%"),
    "holdout of nothing": ("fit", "good.csv", *FIT, "--holdout", "0"),
    "holdout in words": ("fit", "good.csv", *FIT, "--holdout", "some"),
    "a negative seed": ("fit", "good.csv", *FIT, "--seed", "-1"),
    "no inducing points": ("fit", "good.csv", *FIT, "--inducing", "0"),
    "hardly any rows": ("fit", "good.csv", *FIT, "--rows", "3"),
    "rows for the other engine": ("fit", "good.csv", *FIT, "--rows", "600", "--inference", "variational"),
    "a seed that is no number": ("fit", "good.csv", *FIT, "--seed", "one"),
    "out is a file": ("fit", "good.csv", "-s", "separable", "--out", "file"),
    "out is below a file": ("fit", "good.csv", "-s", "separable", "--out", "file/run"),
    "out is a folder of other things": ("fit", "good.csv", "-s", "separable", "--out", ".", "--force"),
    "resume and force": ("fit", "good.csv", *FIT, "--resume", "--force"),
    "unknown flag": ("fit", "good.csv", *FIT, "--structur", "free"),
    "unknown command": ("fitt", "good.csv"),
    "predict from nothing": ("predict", "none", "--duration", "1", "--out", "f.csv"),
    "predict from a folder that is no run": ("predict", ".", "--duration", "1", "--out", "f.csv"),
    "predict to an unknown format": ("predict", "none", "--duration", "1", "--out", "f.xlsx"),
    "check nothing": ("check", "none"),
    "report a file": ("report", "file"),
    "simulate the unknown": ("simulate", "pendulun", "--out", "f.csv"),
    "simulate to an unknown format": ("simulate", "pendulum", "--out", "f.doc"),
    "simulate backwards": ("simulate", "pendulum", "--out", "f.csv", "--duration", "-1"),
    "simulate without steps": ("simulate", "pendulum", "--out", "f.csv", "--step", "0"),
    "simulate negative noise": ("simulate", "pendulum", "--out", "f.csv", "--noise-var", "-1"),
    "simulate truth over itself": ("simulate", "pendulum", "--out", "f.csv", "--truth", "f.csv"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_bad_command_line_is_refused(here, sgpd_here, name):
    before = everything(here)
    require_refused(sgpd_here(*FLAGS[name]), here, before)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("unknown structure", "separable"),
        ("unknown integrator", "gauss-4"),
        ("unknown engine", "laplace"),
        ("unknown form", "components"),
        ("simulate the unknown", "pendulum"),
        ("unknown flag", "--structure"),
        ("unknown command", "fit"),
    ],
)
def test_a_slip_of_the_pen_is_met_with_a_suggestion(here, sgpd_here, name, meant):
    said = sgpd_here(*FLAGS[name]).err.lower()
    assert "did you mean" in said
    assert meant in said.partition("did you mean")[2].split("?")[0]


PREDICT = {
    "no such coordinate": ("--x0", "x=1,w=2"),
    "a coordinate missing": ("--x0", "x=1"),
    "a start in words": ("--x0", "x=one,v=2"),
    "a start without names": ("--x0", "1,2"),
    "an infinite start": ("--x0", "x=inf,v=2"),
    "no duration": ("--duration", "0"),
    "a duration below one step": ("--duration", "0.001"),
    "an endless duration": ("--duration", "1e12"),
    "a negative step": ("--step", "-1"),
    "one path": ("--paths", "1"),
    "a level of 100": ("--level", "100"),
    "a level in words": ("--level", "most"),
    "a negative seed": ("--seed", "-3"),
    "paths over the table": ("--paths-out", "f.csv"),
    "paths to an unknown format": ("--paths-out", "f.txt"),
}


@pytest.mark.parametrize("name", PREDICT)
def test_a_bad_forecast_is_refused(here, fitted, sgpd_here, name):
    before = everything(here)
    arguments = ("predict", fitted[1], "--duration", "2", "--out", "f.csv", "--quiet", *PREDICT[name])
    require_refused(sgpd_here(*arguments), here, before)


def test_a_forecast_never_replaces_the_recording_or_a_file_of_the_run(fitted, sgpd_here):
    data, run = fitted
    for target in (data, run / "recording.npz"):
        before = everything(data.parent)
        require_refused(sgpd_here("predict", run, "--duration", "2", "--out", target), data.parent, before)


def test_an_error_as_json_is_alone_on_standard_output(here, sgpd_here):
    import json

    (here / "bad.csv").write_text(FILES["text in a number column"])
    ended = sgpd_here("fit", "bad.csv", *FIT, "--json")
    error = json.loads(ended.out)["error"]
    assert (error["code"], error["file"], error["line"], error["column"]) == (2, "bad.csv", 9, "q")
    assert error["message"]
    assert error["hint"]
    assert ended.err == ""
