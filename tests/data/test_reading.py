"""Files are read exactly or refused with file, line and column."""

import numpy as np
import pytest

from sgpd.data import Trajectories


@pytest.fixture
def csv(tmp_path):
    def write(text, name="lab.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def npz(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "lab.npz", **arrays)
        return tmp_path / "lab.npz"

    return write


RNG = np.random.default_rng(0)
T = np.cumsum(RNG.uniform(0.05, 0.15, 50))
X = RNG.normal(size=(50, 2))


def test_csv_gives_back_every_digit(csv):
    rows = "\n".join(f"{t!r},{p!r},{q!r}" for t, (p, q) in zip(T.tolist(), X.tolist(), strict=True))
    data = Trajectories.read(csv(f"t,p,q\n{rows}\n"))
    np.testing.assert_array_equal(data.runs[0].times, T)
    np.testing.assert_array_equal(data.runs[0].states, X)
    assert data.names == ("p", "q")


def test_npz_gives_back_every_bit(npz):
    data = Trajectories.read(npz(t=T, p=X[:, 0], q=X[:, 1:]))
    np.testing.assert_array_equal(data.runs[0].times, T)
    np.testing.assert_array_equal(data.runs[0].states, X)
    assert data.names == ("p", "q")


def test_a_matrix_in_npz_is_numbered_columns(npz):
    path = npz(time=T, x=X, u=T, rate=10.0)
    assert Trajectories.read(path).names == ("x1", "x2", "u")
    assert Trajectories.read(path, state=["u", "x"]).names == ("u", "x1", "x2")
    assert Trajectories.read(path, state=["x2"]).names == ("x2",)


def test_columns_are_taken_in_the_order_asked_for(csv):
    path = csv("q,time,p\n1,0,2\n3,1,4\n")
    assert Trajectories.read(path).names == ("q", "p")
    data = Trajectories.read(path, time="time", state=["p", "q"], units={"q": "rad"})
    assert (data.names, data.units) == (("p", "q"), ("", "rad"))
    np.testing.assert_array_equal(data.runs[0].states, [[2, 1], [4, 3]])
    assert Trajectories.read(path, state="p").names == ("p",)


def test_the_first_column_is_the_time_where_none_is_called_so(csv):
    np.testing.assert_array_equal(Trajectories.read(csv("sec,p\n0,5\n2,6\n")).runs[0].times, [0, 2])


def test_columns_of_text_and_columns_without_a_name_are_no_state(csv):
    assert Trajectories.read(csv(",t,p,note\n0,0.0,1,a\n1,0.1,2,b_1\n2,0.2,3,\n")).names == ("p",)


def test_empty_cells_are_missing_and_empty_lines_are_no_rows(csv):
    data = Trajectories.read(csv("\ufefft, p, q\n0, 1, 2\n\n1,,NA\n2,nan,5\n3,4\n , ,\n\n"))
    nan = np.nan
    np.testing.assert_array_equal(data.runs[0].states, [[1, 2], [nan, nan], [nan, 5], [4, nan]])
    assert data.missing == 4


def test_runs_may_be_interleaved_and_keep_their_names(csv):
    data = Trajectories.read(csv("trial,t,p\n02,0,1\n01,5,2\n02,1,3\n01,6,4\n"), run="trial")
    assert data.run_names == ("02", "01")
    np.testing.assert_array_equal(data.runs[0].states, [[1], [3]])
    np.testing.assert_array_equal(data.runs[1].times, [5, 6])


def test_a_column_called_run_tells_the_runs_apart_unasked(csv, npz):
    assert Trajectories.read(csv("run,t,p\n1,0,1\n1,1,2\n2,0,3\n2,1,4\n")).run_names == ("1", "2")
    data = Trajectories.read(npz(t=[0.0, 1, 0, 1], p=[1, 2, 3, 4], run=np.array(["a", "a", "b", "b"])))
    assert (data.run_names, data.names) == (("a", "b"), ("p",))


CSV_REFUSED = {
    "lab.csv, line 4: time 1.0 does not come after 1.0": ("t,p\n0,1\n1,2\n1,3\n", {}),
    "lab.csv, line 6: time 0.5 does not come after 1.0": ("run,t,p\na,0,1\n\nb,0,1\na,1,2\na,.5,3\nb,1,3\n", {}),
    "lab.csv, line 3: the time is nan": ("t,p\n0,1\n,2\n", {}),
    "lab.csv, line 3: the time is inf": ("t,p\n0,1\ninf,2\n", {}),
    "lab.csv, line 3: 'p' is -inf": ("t,p\n0,1\n1,-inf\n", {}),
    "lab.csv: a run needs at least two rows, this one has 1": ("t,p\n0,1\n", {}),
    "lab.csv, run 'b': a run needs at least two rows": ("run,t,p\na,0,1\na,1,2\nb,0,3\n", {}),
    "lab.csv: there are columns but no rows": ("run,t,p\n", {}),
    "lab.csv: every value of 'p' is missing": ("t,p,q\n0,,1\n1,,2\n", {}),
    "lab.csv, line 3, column 'p': '1,42' is not a number (and 1 more); correct it": (
        't,p\n0,1\n1,"1,42"\n2,"1,43"\n',
        {},
    ),
    "lab.csv, line 2, column 'note': 'a' is not a number (and 1 more)": (
        "t,p,note\n0,1,a\n1,2,b\n",
        {"state": ["note"]},
    ),
    "lab.csv, line 2, column 't': 'noon' is not a number": ("t,p\nnoon,1\n1,2\n", {}),
    "lab.csv, line 3, column 'run': the run has no name": ("run,t,p\n1,0,1\n,1,2\n", {}),
    "no column in {} called 'omgea'. Did you mean 'omega'? Known: t, omega.": (
        "t,omega\n0,1\n1,2\n",
        {"state": ["omgea"]},
    ),
    "no column in {} called 'zeit'. Known: t, p.": ("t,p\n0,1\n1,2\n", {"time": "zeit"}),
    "no column in {} called 'trial'. Known: t, p.": ("t,p\n0,1\n1,2\n", {"run": "trial"}),
    "lab.csv, line 1: the name 'p' occurs 2 times; give every column its own name": ("t,p,p\n0,1,1\n1,2,2\n", {}),
    "lab.csv: the name 't' occurs 2 times; give the time": ("t,p\n0,1\n1,2\n", {"state": ["t", "p"]}),
    "lab.csv: the name 'p' occurs 2 times; give the time": ("t,p\n0,1\n1,2\n", {"state": ["p", "p"]}),
    "lab.csv, line 1: there are no column names; add a first line": ("0,1\n1,2\n2,3\n", {}),
    "lab.csv, line 1: there are no column names;": ("", {}),
    "lab.csv: there is no column of numbers besides the time 't;p'": ("t;p\n0;1\n1;2\n", {}),
    "(Expected 2 fields in line 3, saw 3); give every row": ("t,p\n0,1\n1,2,3\n", {}),
    "lab.csv: rows and column names do not match": ("t,p\n0,1,2\n1,2,3\n", {}),
}


@pytest.mark.parametrize("message", CSV_REFUSED)
def test_a_csv_that_cannot_be_right_is_refused_with_its_line(csv, message):
    text, options = CSV_REFUSED[message]
    path = csv(text)
    with pytest.raises(ValueError) as refusal:
        Trajectories.read(path, **options)
    assert message.replace("{}", str(path)) in str(refusal.value)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    for text in ("t,Höhe\n0,1\n1,2\n", "t,p,note\n0,1,kühl\n1,2,warm\n"):
        (tmp_path / "lab.csv").write_bytes(text.encode("latin-1"))
        with pytest.raises(ValueError, match="save it as CSV in UTF-8"):
            Trajectories.read(tmp_path / "lab.csv")


NPZ_REFUSED = {
    "without object arrays": {"t": T, "p": np.array([None] * 50)},
    "'q' has 49 rows, but the time 't' has 50": {"t": T, "q": X[:49, 0]},
    "'run' has 2 rows, but the time 't' has 50": {"t": T, "q": X[:, 0], "run": [1, 2]},
    "lab.npz, row 1: time": {"t": -T, "q": X[:, 0]},
    "the name 'x1' occurs 2 times": {"t": T, "x": X, "x1": T},
    "no column of numbers besides the time 't'": {"t": T, "label": np.array(["a"] * 50)},
}


@pytest.mark.parametrize("message", NPZ_REFUSED)
def test_an_npz_that_cannot_be_right_is_refused(npz, message):
    path = npz(**NPZ_REFUSED[message])
    with pytest.raises(ValueError) as refusal:
        Trajectories.read(path)
    assert message in str(refusal.value)


def test_what_only_calls_itself_npz_is_refused(tmp_path):
    path = tmp_path / "lab.npz"
    with path.open("wb") as file:
        np.save(file, X)
    with pytest.raises(ValueError, match="not an NPZ file of plain arrays"):
        Trajectories.read(path)
    for content in (b"", b"t,p\n0,1\n", b"PK\x03\x04broken"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not an NPZ file of plain arrays"):
            Trajectories.read(path)


def test_an_unknown_kind_of_file_is_refused_with_the_kinds_there_are(csv):
    with pytest.raises(ValueError, match=r"files ending in '.xlsx' cannot be read; save as .csv or .npz"):
        Trajectories.read(csv("", "lab.xlsx"))


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    for name in ("lab.csv", "lab.npz"):
        with pytest.raises(FileNotFoundError):
            Trajectories.read(str(tmp_path / name))
