"""Files and flags that cannot be right are refused: one sentence that names file, line and column, and one hint."""

import io

import numpy as np
import pandas as pd
import pytest

from sgpd.data import Trajectories, read_recording
from sgpd.errors import BadInput

T = np.arange(50) / 10
X = np.random.default_rng(0).normal(size=(50, 2))
OK = "t,p,q\n0,1,2\n1,2,1\n2,1,0\n3,0,1\n"

# (file, content, flags, part of "message; hint", line, column)
TEXT = [
    # times
    ("a.csv", "t,p\n0,1\n1,2\n1,3\n", {}, "line 4: time 1.0 does not come after 1.0", 4, None),
    ("a.csv", "run,t,p\na,0,1\n\nb,0,1\na,1,2\na,.5,3\nb,1,3\n", {}, "time 0.5 does not come after 1.0", 6, None),
    ("a.csv", "t,p\n0,1\n2,2\n1,3\n", {}, "if a new run starts here, tell the runs apart (`--run`", 4, None),
    ("a.csv", "t,p\n0,1\n,2\n", {}, "line 3: the time is nan", 3, None),
    ("a.csv", "t,p\n0,1\ninf,2\n", {}, "line 3: the time is inf", 3, None),
    ("a.csv", "t,p\n-1e308,1\n1e308,2\n", {}, "too far apart to compute with", 2, None),
    ("a.csv", "t,p\nnoon,1\n1,2\n", {}, "line 2, column 't': 'noon' is not a number; correct it", 2, "t"),
    ("a.csv", "t,p\n10:01,1\n10:02,2\n", {}, "save 't' as numbers (a time as seconds since the start)", 2, "t"),
    ("a.csv", "a,b\n1,1\n0,2\n5,1\n", {}, "no column is called t or time, and none increases", None, None),
    # values
    ("a.csv", "t,p\n0,1\n1,-inf\n", {}, "line 3: 'p' is -inf", 3, "p"),
    ("a.csv", "t,p\n0,1\n1,1e999\n", {}, "line 3: 'p' is inf", 3, "p"),
    ("a.csv", "t,p\n0,1\n1,1_000\n", {}, "line 3, column 'p': '1_000' is not a number", 3, "p"),
    ("a.csv", "t,p\n0,1\n1,0x1A\n", {}, "'0x1A' is not a number", 3, "p"),
    ("a.csv", "t,p\n0,1\n\n1,12 V\n2,13 V\n", {}, "line 4, column 'p': '12 V' is not a number (and 1 more)", 4, "p"),
    ("a.csv", "t,p\n0,1\n1," + "x" * 99 + "\n", {}, "xxx...' is not a number", 3, "p"),
    ("a.csv", "t,p,q\n0,,1\n1,,2\n", {}, "every value of 'p' is missing", None, "p"),
    ("a.csv", "t,p,m\n0,1,5\n1,2,5\n", {}, "every value of 'm' is 5", None, "m"),
    ("a.csv", "t,p\n0,-1e308\n1,1e308\n", {}, "too far for its differences to be squared", None, "p"),
    ("a.csv", "t,on\n0,True\n1,False\n", {}, "no column of numbers besides the time 't'", None, None),
    (
        "a.csv",
        "t,p,note\n0,1,a\n1,2,b\n",
        {"state": ["note"]},
        "column 'note': 'a' is not a number (and 1 mo",
        2,
        "note",
    ),
    # decimal commas
    ("a.csv", "t;p\n0;1\n1;1,42\n", {}, "'1,42' is not a number; this looks like decimal commas; add `--de", 3, "p"),
    (
        "a.csv",
        "s;p\n0,5;1,5\n0,7;1,6\n",
        {},
        "column 's': '0,5' is not a number (and 1 more); this looks like de",
        2,
        "s",
    ),
    ("a.csv", "t;p;q\n0;1;1,5\n1;2;1,6\n", {}, "column 'q': '1,5' is not a number (and 1 more); this looks", 2, "q"),
    ("a.txt", "t p\n0,5 1,5\n0,6 1,6\n", {}, "'0,5' is not a number (and 1 more); this looks like decimal c", 2, "t"),
    ("a.csv", "t,p\n0,5,1,5\n0,6,1,6\n", {}, "separate the cells by semicolons and add `--decimal ,`", 2, None),
    ("a.csv", "t;p\n0,5;1.5\n1,5;2,5\n", {"decimal": ","}, "line 2, column 'p': '1.5' is not a number", 2, "p"),
    ("a.csv", OK, {"decimal": "'"}, "is neither a point nor a comma", None, None),
    # rows
    ("a.csv", "t,p\n0,1\n1,2,3\n", {}, "line 3: there are 3 cells, but line 1 names 2 columns", 3, None),
    ("a.csv", "t,p\n0,1,2\n1,2,3\n", {}, "or name all columns with `--columns`", 2, None),
    ("a.csv", "t,p,q\n0,1,2\n1,2\n", {}, "line 3: there are 2 cells, but line 1 names 3 columns; give every", 3, None),
    ("a.txt", "# t p q\n0 1 2\n1\n2 1 1\n", {}, "line 3: there is 1 cell, but line 1 names 3", 3, None),
    ("a.csv", 't,n,p\n0,"a,b",1\n1,"a,b"\n', {}, "line 3: there are 2 cells", 3, None),
    ("a.csv", 't,p\n0,1\n1,"2\n2,3\n', {}, "line 3: a quote is not closed on this line", 3, None),
    ("a.csv", "t,p\n0,1\n", {}, "a run needs at least two rows, this one has 1", None, None),
    ("a.csv", "run,t,p\na,0,1\na,1,2\nb,0,3\n", {}, "run 'b': a run needs at least two rows", None, None),
    ("a.csv", "run,t,p\n", {}, "there are columns but no rows", None, None),
    ("a.txt", "# t p\n", {}, "there are comments but no rows", None, None),
    ("a.csv", "", {}, "the file is empty", None, None),
    ("a.csv", "\n \n,,\n", {}, "the file is empty", None, None),
    ("a.csv", "run,t,p\n1,0,1\n,1,2\n", {}, "line 3, column 'run': the run has no name", 3, "run"),
    # names
    ("a.csv", "t,p,p\n0,1,1\n1,2,2\n", {}, "line 1: the name 'p' occurs 2 times; give every column", 1, "p"),
    ("a.txt", "# lab\n# t p p\n0 1 1\n1 2 2\n", {}, "line 2: the name 'p' occurs 2 times", 2, "p"),
    ("a.csv", "0,1\n1,2\n2,3\n", {}, "line 1: there are no column names; name the columns with `--columns", 1, None),
    ("a.txt", "# recorded in May\n0 1\n1 2\n", {}, "line 2: there are no column names", 2, None),
    ("a.txt", "# 2024\n0 1\n1 2\n", {}, "there are no column names", 2, None),
    ("a.csv", "# 1,5;2,5\n0,5;1\n1,5;2\n", {"decimal": ","}, "there are no column names", 2, None),
    ("a.csv", "t,path\n0,1\n1,2\n", {}, "a channel of the state is called 'path'", None, "path"),
    ("a.csv", "t,Energy\n0,1\n1,2\n", {}, "called 'Energy', as a column of every forecast", None, "Energy"),
    ("a.csv", "t,time\n0,1\n1,2\n", {}, "a channel of the state is called 'time'", None, "time"),
    ("a.csv", "t,lead\n0,1\n1,2\n", {}, "a channel of the state is called 'lead'", None, "lead"),
    ("a.csv", "x,t,run\n1,0,1\n2,1,2\n", {"run": "x"}, "needs at least two rows", None, None),
    # flags
    ("a.csv", "t,omega\n0,1\n1,2\n", {"state": ["omgea"]}, "no column 'omgea'; did you mean 'omega'?", None, "omgea"),
    ("a.csv", OK, {"time": "zeit"}, "there is no column 'zeit'; the columns are: t, p, q", None, "zeit"),
    ("a.csv", OK, {"run": "trial"}, "there is no column 'trial'", None, "trial"),
    ("a.csv", OK, {"momentum": ["v"]}, "there is no column 'v'", None, "v"),
    ("a.csv", OK, {"units": {"qq": "m"}}, "there is no column 'qq'; did you mean 'q'?", None, "qq"),
    ("a.csv", OK, {"state": ["t", "p"]}, "the name 't' occurs 2 times; give the time", None, "t"),
    ("a.csv", OK, {"state": ["p", "p"]}, "the name 'p' occurs 2 times; give the time", None, "p"),
    ("a.csv", OK, {"state": ["p"], "momentum": ["p"]}, "give the state in one way", None, None),
    ("a.csv", OK, {"momentum": ["p", "q"], "position": ["q"]}, "2 momenta (p, q) but 1 position (q)", None, None),
    ("a.csv", OK, {"columns": ["t", "p"]}, "there are 3 cells, but `--columns` names 2 columns", 2, None),
    ("a.csv", OK, {"columns": ["t", "p", "p"]}, "--columns: the name 'p' occurs 2 times", None, "p"),
    ("a.csv", "t,x1,x2\n0,1,2\n1,2,3\n", {"roles": "pq"}, "there is no momentum or velocity, only x1, x2", None, None),
    ("a.csv", "t,x,v,w\n0,1,2,1\n1,2,3,1\n", {"roles": "pq"}, "2 momenta (v, w) but 1 position (x)", None, None),
    # bytes
    ("a.csv", b"t,p\n0,1\n1,\x002\n", {}, "line 3: there is a NUL byte", 3, None),
    ("a.csv", "t,p\n0,1\n1,2\n".encode("utf-16"), {}, "this is UTF-16 text; save it as text in UTF-8", None, None),
    ("a.csv", "t,p\n0,1\n1,2\n".encode("utf-16-le"), {}, "there is a NUL byte", 1, None),
    ("a.csv", "t,Höhe\n0,1\n1,2\n".encode("latin-1"), {}, "line 1: byte 0xf6 is not UTF-8", 1, None),
    ("a.csv", "t,p,n\n0,1,kühl\n1,2,warm\n".encode("latin-1"), {}, "line 2: byte 0xfc is not UTF-8", 2, None),
    # other formats
    (
        "a.xlsx",
        "",
        {},
        "files ending in '.xlsx' cannot be read; save as one of .csv, .tsv, .txt, .dat, .npz",
        None,
        None,
    ),
    ("a.npz", b"", {}, "this is not an NPZ file of plain arrays", None, None),
    ("a.npz", "t,p\n0,1\n", {}, "this is not an NPZ file of plain arrays", None, None),
    ("a.npz", b"PK\x03\x04broken", {}, "this is not an NPZ file of plain arrays", None, None),
    ("a.parquet", "t,p\n0,1\n", {}, "this is not a Parquet file, or it is damaged", None, None),
    ("a.feather", b"ARROW1 broken", {}, "this is not a Feather file, or it is damaged", None, None),
]


def require_refusal(read, file, part, line, column):
    with pytest.raises(BadInput) as refusal:
        read()
    error = refusal.value
    assert part in str(error)
    assert (error.line, error.column) == (line, column)
    assert "\n" not in str(error)
    assert not error.message.endswith(".")
    assert error.hint
    if error.file is not None:  # what is wrong with a flag alone needs no file
        assert (error.file, error.message.startswith(file) or file.startswith("--")) == (file, True)
    if line is not None:
        assert f"{file}, line {line}" in error.message


FLAGS_ALONE = ("is neither a point nor a comma", "--columns: the name")


@pytest.mark.parametrize("case", TEXT, ids=lambda case: case[3][:50])
def test_a_bad_file_or_flag_is_refused_with_its_place(tmp_path, case):
    name, content, flags, part, line, column = case
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    file = "--columns" if part.startswith("--columns") else str(path)
    require_refusal(lambda: read_recording(path, **flags), file, part, line, column)
    if not part.startswith(FLAGS_ALONE):
        with pytest.raises(BadInput) as refusal:
            Trajectories.read(path, **flags)
        assert refusal.value.file == str(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


NPZ = [
    ({"t": T, "p": np.array([None] * 50)}, "it holds pickled objects); save it by numpy.savez, without object", None),
    ({"t": T, "q": X[:49, 0]}, "'q' has 49 rows, but the time 't' has 50", "q"),
    ({"t": T, "q": X[:, 0], "run": [1, 2]}, "'run' has 2 rows, but the time 't' has 50", "run"),
    ({"t": -T, "q": X[:, 0]}, "a.npz, row 1: time", None),
    ({"t": T, "x": X, "x1": T}, "the name 'x1' occurs 2 times", "x1"),
    ({"t": T, "label": np.array(["a"] * 50)}, "no column of numbers besides the time 't'", None),
    ({"t": T, "z": X[:, 0] * 1j}, "no column of numbers besides the time 't'", None),
    ({"t": T, "q": np.where(T == 1, np.inf, T)}, "a.npz, row 10: 'q' is inf", "q"),
    ({"t": T[:0], "q": T[:0]}, "there are columns but no rows", None),
]


@pytest.mark.parametrize(("arrays", "part", "column"), NPZ, ids=lambda value: str(value)[:30])
def test_an_npz_that_cannot_be_right_is_refused(tmp_path, arrays, part, column):
    np.savez(tmp_path / "a.npz", **arrays)
    require_refusal(lambda: read_recording(tmp_path / "a.npz"), str(tmp_path / "a.npz"), part, None, column)


def test_a_single_array_and_a_damaged_archive_are_no_npz(tmp_path):
    path, buffer = tmp_path / "a.npz", io.BytesIO()
    with path.open("wb") as file:
        np.save(file, X)
    require_refusal(lambda: read_recording(path), str(path), "it is a single array", None, None)
    np.savez_compressed(buffer, t=T, p=X)
    damaged = bytearray(buffer.getvalue())
    damaged[120:160] = b"\xff" * 40
    path.write_bytes(damaged)
    require_refusal(lambda: read_recording(path), str(path), "not an NPZ file of plain arrays", None, None)


def test_columns_of_binary_files_cannot_be_renamed(tmp_path):
    pd.DataFrame({"t": T, "p": X[:, 0]}).to_parquet(tmp_path / "a.parquet")
    read = lambda: read_recording(tmp_path / "a.parquet", columns=["t", "q"])
    require_refusal(read, str(tmp_path / "a.parquet"), "`--columns` names the columns of text files", None, None)


def test_a_date_in_parquet_is_no_time(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"t": pd.date_range("2024-01-01", periods=50), "p": X[:, 0]}).to_parquet(path)
    require_refusal(lambda: read_recording(path), str(path), "a time as seconds since the start", None, "t")


def test_a_file_that_is_not_there_is_refused_with_the_one_that_is(tmp_path):
    (tmp_path / "pendulum.csv").write_text(OK)
    wrong = str(tmp_path / "pendulm.csv")
    hint = f"there is no such file; did you mean '{tmp_path}/pendulum.csv'?"
    require_refusal(lambda: read_recording(wrong), wrong, hint, None, None)
    far = str(tmp_path / "other.npz")
    require_refusal(lambda: read_recording(far), far, "check the name and the folder", None, None)
    lost = str(tmp_path / "nowhere" / "a.csv")
    require_refusal(lambda: read_recording(lost), lost, f"there is no folder '{tmp_path}/nowhere'", None, None)


def test_a_folder_is_refused(tmp_path):
    require_refusal(lambda: read_recording(tmp_path), str(tmp_path), "this is a folder; name the files", None, None)


def test_several_files_must_have_the_same_columns_and_be_different(tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text(OK)
    b.write_text("t,p\n0,1\n1,2\n")
    part = f"{b}: there is no column 'q', which {a} has"
    require_refusal(lambda: read_recording([a, b]), str(b), part, None, "q")
    require_refusal(lambda: read_recording([b, a]), str(b), part, None, "q")
    require_refusal(lambda: read_recording([a, a]), str(a), "give every file once", None, str(a))
    b.write_text("t,p,q\n0,1,2\n1,x,1\n")
    require_refusal(lambda: read_recording([a, b]), str(b), "line 3, column 'p': 'x' is not", 3, "p")
    with pytest.raises(BadInput, match="no file is given"):
        read_recording([])
