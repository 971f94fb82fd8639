"""Good files of every format are read exactly, and what was guessed or left out on the way is said."""

import numpy as np
import pandas as pd
import pytest

from sgpd.data import Trajectories, read_recording

RNG = np.random.default_rng(0)
T = np.cumsum(RNG.uniform(0.05, 0.15, 50))
X = RNG.normal(size=(50, 2))
NAN = np.nan


@pytest.fixture
def file(tmp_path):
    def write(text, name="lab.csv", encoding="utf-8"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode(encoding))
        return path

    return write


@pytest.fixture
def npz(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "lab.npz", **arrays)
        return tmp_path / "lab.npz"

    return write


def said(reading, word):
    return [sentence for found, sentence in reading.said if found == word]


def lines_of(separator, decimal=".", numbers=np.column_stack([T, X])):
    return "\n".join(separator.join(repr(x).replace(".", decimal) for x in row) for row in numbers.tolist())


TEXTS = {
    "comma": ("lab.csv", "t,p,q\n" + lines_of(","), {}),
    "comma, CRLF, blanks, BOM": ("lab.csv", "\ufefft, p, q\n".replace("\n", "\r\n") + lines_of(" , "), {}),
    "old Macintosh lines": ("lab.csv", ("t,p,q\n" + lines_of(",")).replace("\n", "\r"), {}),
    "semicolon": ("lab.csv", "t;p;q\n" + lines_of(";"), {}),
    "tab in .csv": ("lab.csv", "t\tp\tq\n" + lines_of("\t"), {}),
    "tab": ("lab.tsv", "t\tp\tq\n" + lines_of("\t"), {}),
    "names of two words": ("lab.tsv", "t\tp\tq\n".replace("p", "the momentum") + lines_of("\t"), {}),
    "blanks": ("lab.txt", "t p  q\n" + lines_of("   "), {}),
    "blanks before and behind": ("lab.dat", "  t p q \n" + lines_of("  ").replace("\n", "  \n  "), {}),
    "blanks and tabs mixed": ("lab.dat", "t p\tq\n" + lines_of(" \t "), {}),
    "no suffix": ("lab", "t p q\n" + lines_of(" "), {}),
    "hash": ("lab.txt", "# t p q\n" + lines_of(" "), {}),
    "hash over commas": ("lab.txt", "#t,p,q\n" + lines_of(","), {}),
    "names by blanks over commas": ("lab.txt", "# t p q\n" + lines_of(","), {}),
    "per cent without a blank": ("lab.dat", "%t p q\r\n" + lines_of(" "), {}),
    "several comments": ("lab.txt", "# pendulum, lab 3\n# t p q\n" + lines_of(" "), {}),
    "comment over names": ("lab.csv", "# pendulum; lab 3\nt,p,q\n" + lines_of(","), {}),
    "decimal commas": ("lab.csv", "t;p;q\n" + lines_of(";", ","), {"decimal": ","}),
    "decimal commas, tabs": ("lab.tsv", "t\tp\tq\n" + lines_of("\t", ","), {"decimal": ","}),
    "decimal commas, blanks": ("lab.txt", "t p q\n" + lines_of(" ", ","), {"decimal": ","}),
    "named by the user": ("lab.csv", lines_of(","), {"columns": ["t", "p", "q"]}),
    "renamed by the user": ("lab.csv", "a,b,c\n" + lines_of(","), {"columns": ["t", "p", "q"]}),
    "quotes": ("lab.csv", '"t","p","q"\n' + lines_of('","').replace("\n", '"\n"').join('""'), {}),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_gives_back_every_digit(file, kind):
    name, text, options = TEXTS[kind]
    data = Trajectories.read(file(text, name), **options)
    np.testing.assert_array_equal(data.runs[0].times, T)
    np.testing.assert_array_equal(data.runs[0].states, X)
    assert data.names == (("the momentum", "q") if "words" in kind else ("p", "q"))


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_arrow_files_give_back_every_bit(tmp_path, suffix):
    path = tmp_path / f"lab.{suffix}"
    frame = pd.DataFrame({"t": T, "p": X[:, 0], "q": X[:, 1], "run": ["a"] * 20 + ["b"] * 30, "note": "x"})
    frame.loc[3, "p"] = None
    getattr(frame, f"to_{suffix}")(path)
    reading = read_recording(path)
    assert (reading.data.run_names, reading.data.names, reading.data.missing) == (("a", "b"), ("p", "q"), 1)
    np.testing.assert_array_equal(reading.data.runs[1].states, X[20:])
    assert said(reading, "skipped") == ["column note (text)"]


def test_types_of_parquet_become_numbers_or_are_named(tmp_path):
    path = tmp_path / "lab.parquet"
    frame = pd.DataFrame(
        {
            "p": pd.array([1, 2, None], "Int32"),
            "q": np.float32([1.5, 2.5, 3.5]),
            "day": pd.to_datetime(["2024-01-01"] * 3),
            "on": [True, False, True],
            "kind": pd.Categorical(["a", "b", "a"]),
            "list": [[1], [2], [3]],
        },
        index=pd.Index([0.0, 1.0, 2.0], name="t"),
    )
    frame.to_parquet(path)
    reading = read_recording(path)
    np.testing.assert_array_equal(reading.data.runs[0].states, [[1, 1.5], [2, 2.5], [NAN, 3.5]])
    assert all(word in said(reading, "skipped")[0] for word in ("day", "on", "kind", "list"))
    frame.reset_index().set_index(pd.Index([5, 7, 6])).to_parquet(path)  # an index without a name is no channel
    assert read_recording(path).data.names == ("p", "q")
    assert "column __index_level_0__ (an index)" in said(read_recording(path), "skipped")[0]


def test_npz_gives_back_every_bit(npz):
    data = Trajectories.read(npz(t=T, p=X[:, 0], q=X[:, 1:]))
    np.testing.assert_array_equal(data.runs[0].times, T)
    np.testing.assert_array_equal(data.runs[0].states, X)
    assert data.names == ("p", "q")


def test_a_matrix_in_npz_is_numbered_columns_and_what_is_no_channel_is_named(npz):
    path = npz(time=T, x=X, u=T, rate=10.0, frames=np.zeros((2, 2, 2)))
    assert Trajectories.read(path).names == ("x1", "x2", "u")
    assert Trajectories.read(path, state=["u", "x"]).names == ("u", "x1", "x2")
    assert Trajectories.read(path, state=["x2"]).names == ("x2",)
    reading = read_recording(path, state=["x"])
    assert said(reading, "skipped") == ["column u, entry rate (a single value), entry frames (shape (2, 2, 2))"]
    assert said(reading, "read")[0].endswith("3 items left out")


def test_columns_are_taken_in_the_order_asked_for(file):
    path = file("q,time,p\n1,0,2\n3,1,4\n")
    assert Trajectories.read(path).names == ("q", "p")
    data = Trajectories.read(path, time="time", state=["p", "q"], units={"q": "rad"})
    assert (data.names, data.units) == (("p", "q"), ("", "rad"))
    np.testing.assert_array_equal(data.runs[0].states, [[2, 1], [4, 3]])
    assert Trajectories.read(path, state="p").names == ("p",)


def test_the_first_column_that_increases_is_the_time_where_none_is_called_so(file):
    reading = read_recording(file("p,clock,q\n5,0,1\n6,2,0\n5,3,0\n"))
    np.testing.assert_array_equal(reading.data.runs[0].times, [0, 2, 3])
    assert (reading.data.time_name, reading.data.names) == ("clock", ("p", "q"))
    assert said(reading, "guessed") == ["time = clock (the first column that increases); change with --time"]


def test_columns_of_text_and_columns_without_a_name_are_no_state_and_said(file):
    reading = read_recording(file(",t,p,note\n0,0.0,1,a\n1,0.1,2,b_1\n2,0.2,3,\n"))
    assert reading.data.names == ("p",)
    assert said(reading, "skipped") == ["column note (text), column 1 (no name)"]


def test_empty_cells_are_missing_and_empty_lines_are_no_rows(file):
    reading = read_recording(file("\ufefft, p, q\n0, 1, 2\n\n1,,NA\n2,nan,5\n3,4,\n , ,\n4,5,6\n\n"))
    np.testing.assert_array_equal(reading.data.runs[0].states, [[1, 2], [NAN, NAN], [NAN, 5], [4, NAN], [5, 6]])
    assert reading.data.missing == 4
    assert said(reading, "skipped") == ["2 empty lines"]
    assert said(reading, "data") == ["1 between rows, no gaps, 4 missing values, 40% (p 2, q 2)"]


def test_comments_between_rows_are_counted(file):
    reading = read_recording(file("# t p\n0 1\n# bump\n1 2\n2 4\n", "lab.txt"))
    assert reading.data.rows == 3
    assert said(reading, "skipped") == ["1 comment line"]


def test_runs_may_be_interleaved_and_keep_their_names(file):
    data = Trajectories.read(file("set,t,p\n02,0,1\n01,5,2\n02,1,3\n01,6,4\n"), run="set")
    assert data.run_names == ("02", "01")
    np.testing.assert_array_equal(data.runs[0].states, [[1], [3]])
    np.testing.assert_array_equal(data.runs[1].times, [5, 6])


def test_a_column_called_run_tells_the_runs_apart_unasked(file, npz):
    reading = read_recording(file("run,t,p\n1,0,1\n1,1,2\n2,0,3\n2,1,4\n"))
    assert reading.data.run_names == ("1", "2")
    assert said(reading, "guessed")[0] == "run = run (by name); change with --run"
    data = Trajectories.read(npz(t=[0.0, 1, 0, 1], p=[1, 2, 3, 4], run=np.array(["a", "a", "b", "b"])))
    assert (data.run_names, data.names) == (("a", "b"), ("p",))
    assert Trajectories.read(npz(t=[0.0, 1, 0, 1], p=[1, 2, 3, 4], run=[1.0, 1, 2, 2])).run_names == ("1", "2")


PARTIAL = "% x v\r\n" + "".join(f" {k // 4:.3e} {0.5 * (k % 4):.3e} {k * k} {2 * k}\r\n" for k in range(8))


def test_a_header_that_names_only_some_columns_is_completed_by_guesses_that_are_said(file):
    reading = read_recording(file(PARTIAL, "lab.txt"))
    assert (reading.data.names, reading.data.time_name, reading.data.run_names) == (("x", "v"), "t", ("0", "1"))
    np.testing.assert_array_equal(reading.data.runs[1].times, [0, 0.5, 1, 1.5])
    assert said(reading, "guessed") == [
        "line 1 names only 2 of 4 columns (x, v), taken as the last 2; change with --columns",
        "run = column 1 (constant in blocks, no name); change with --run or --columns",
        "time = column 2 (increasing, no name); change with --time or --columns",
    ]
    one = read_recording(file("%o v\n0 5 1 2\n0 6 2 3\n0 7 4 1\n", "one.txt"))
    assert (one.data.names, one.data.run_names) == (("o", "v"), ("0",))
    assert "run = column 1 (constant, no name)" in said(one, "guessed")[1]


def test_columns_of_such_a_file_can_be_named(file):
    reading = read_recording(file(PARTIAL, "lab.txt"), columns=["trial", "t", "x", "v"], units={"t": "s", "x": "mm"})
    assert (reading.data.names, reading.data.units, reading.data.time_unit) == (("x", "v"), ("mm", ""), "s")
    assert said(reading, "guessed") == [
        "run = trial (by name); change with --run",
        "time = t (by name); change with --time",
    ]
    assert "1.5 s" in said(reading, "read")[0]


def test_units_may_stand_in_the_names_of_columns(file):
    path = file("t [s],q (rad),x [1],f(x)\n0,1,2,3\n1,2,3,5\n")
    data = Trajectories.read(path, units={"f(x)": "N"})
    assert (data.names, data.units, data.time_unit) == (("q", "x [1]", "f(x)"), ("rad", "", "N"), "s")
    assert Trajectories.read(path, time="t [s]", state=["q (rad)"], units={"q (rad)": "deg"}).units == ("deg",)
    two = Trajectories.read(file("t,x [m],x [rad]\n0,1,2\n1,2,3\n"))
    assert two.names == ("x [m]", "x [rad]")  # they would be called alike without their units


def test_several_files_are_several_runs_named_after_their_files(file):
    a, b = file("t,p\n0,1\n1,2\n", "a.csv"), file("p;t\n1;5\n2;6\n4;7\n", "b.txt")
    reading = read_recording([a, b])
    assert (reading.data.run_names, reading.files) == (("a", "b"), (str(a), str(b)))
    np.testing.assert_array_equal(reading.data.runs[1].times, [5, 6, 7])
    assert said(reading, "read") == ["a.csv and 1 more file: 5 rows, 2 runs, 2 time units, nothing left out"]
    both = file("run,t,p\n1,0,1\n1,1,2\n2,0,3\n2,1,5\n", "c.csv"), file("run,t,p\n7,0,1\n7,1,2\n", "d.csv")
    assert Trajectories.read(both).run_names == ("c/1", "c/2", "d")


def test_files_of_the_same_name_are_told_apart_by_their_folders(file):
    paths = [file("t,p\n0,1\n1,2\n", f"{folder}/lab.csv") for folder in "ab"]
    assert Trajectories.read(paths).run_names == tuple(str(path.with_suffix("")) for path in paths)


def test_a_recording_can_be_saved_and_read_back(tmp_path):
    data = Trajectories.from_arrays([T, T[:9]], [X, X[:9]], names=["p", "q"])
    frame = data.to_dataframe()
    assert list(frame.columns) == ["run", "t", "p", "q"]
    frame.to_csv(tmp_path / "lab.csv", index=False)
    again = Trajectories.read(tmp_path / "lab.csv")
    assert again.run_names == data.run_names
    for one, other in zip(data.runs, again.runs, strict=True):
        np.testing.assert_array_equal(one.times, other.times)
        np.testing.assert_array_equal(one.states, other.states)


def test_words_are_short_and_the_first_and_the_last_are_read_and_data(file):
    reading = read_recording(file(PARTIAL, "lab.txt"), roles="pq")
    words = [word for word, _ in reading.said]
    assert (words[0], words[-1]) == ("read", "data")
    assert all(word.isalpha() and word.islower() and len(word) <= 8 for word in words)
    assert all("\n" not in sentence and not sentence.endswith(".") for _, sentence in reading.said)


def test_a_wrapped_angle_comes_with_a_note(file):
    rows = "".join(f"{k},{0.3 * k % (2 * np.pi)},{0.3 + 0.01 * (k % 3)}\n" for k in range(100))
    reading = read_recording(file("t,theta,omega\n" + rows))
    assert said(reading, "note") == ["theta jumps by a full turn; unwrap it"]


def test_a_large_file_is_read_to_its_last_row(file):
    rows = 200_000
    text = "t,p,q\n" + "\n".join(f"{k},{k % 7}.5,{k % 11}" for k in range(rows))
    data = Trajectories.read(file(text))
    assert data.rows == rows
    np.testing.assert_array_equal(data.runs[0].states[-1], [(rows - 1) % 7 + 0.5, (rows - 1) % 11])
