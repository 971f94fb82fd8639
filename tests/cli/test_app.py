"""The command line: what it prints, where, and with which exit code."""

import os
import subprocess
import sys

import pytest

from sgpd import integrators
from sgpd.errors import BadInput, unknown_name

COMMANDS = ["demo", "simulate", "fit", "predict", "check", "report", "paper", "integrators", "structures", "systems"]
HEAVY = {"jax", "jaxlib", "pandas", "scipy", "matplotlib", "plotly", "equinox"}


def run(*arguments, **more):
    command = [sys.executable, "-m", "sgpd", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_every_integrator_is_listed_with_its_order(sgpd_here):
    ended = sgpd_here("integrators")
    assert ended.code == 0
    rows = {line.split()[0]: line.split() for line in ended.out.splitlines()[1:] if line.strip()}
    assert list(rows) == integrators.names()
    assert rows["gauss-6"][1:4] == ["6", "implicit", "yes"]


def test_structures_and_systems_are_listed(sgpd_here):
    ended = sgpd_here("structures")
    assert ended.code == 0
    assert all(name in ended.out for name in ("separable", "hamiltonian", "quadratic-invariant", "free", "gauss-6"))
    assert "two-body" in sgpd_here("systems").out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(sgpd_here, command):
    ended = sgpd_here(command, "--help")
    assert ended.code == 0
    assert ended.err == ""


@pytest.mark.parametrize("command", ["simulate", "fit", "predict", "check", "report"])
def test_help_has_two_examples_before_the_flags(sgpd_here, command):
    text = sgpd_here(command, "--help").out
    before = text.partition("─ ")[0].replace(f"Usage: sgpd {command}", "")
    assert before.count(f"sgpd {command} ") == 2


def test_the_flags_of_fit_are_in_three_panels(sgpd_here):
    text = sgpd_here("fit", "--help").out
    file, model, run_ = (text.index(f"─ {panel} ─") for panel in ("Your file", "The model", "The run folder"))
    assert file < text.index("--decimal") < model < text.index("--integrator") < run_ < text.rindex("--holdout")


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["fit", "--structur", "free"], ["fitt"]])
def test_help_and_slips_of_the_pen_load_nothing_heavy(arguments):
    ask = (
        "import atexit, sys; sys.argv = ['sgpd', *%r]; "
        "atexit.register(lambda: print('LOADED', *{n.partition('.')[0] for n in sys.modules}, file=sys.stderr)); "
        "from sgpd.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", ask % arguments], capture_output=True, text=True, check=False)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "typer" in loaded
    assert loaded & HEAVY == set()


def test_an_unknown_command_is_a_usage_error_with_a_suggestion():
    result = run("demoo")
    assert result.returncode == 2
    assert "Did you mean 'demo'" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_folder_that_cannot_be_written_is_an_error_of_one_sentence(sgpd_here, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    ended = sgpd_here("demo", "--out", tmp_path / "file" / "sub")
    assert ended.code == 2
    assert ended.err.startswith("error: ")


def test_an_unknown_task_of_the_paper_is_refused_with_a_suggestion_before_anything_is_written(sgpd_here, tmp_path):
    ended = sgpd_here("paper", "pendulun", "--out", tmp_path / "out")
    assert ended.code == 2
    assert "did you mean 'pendulum'" in ended.err.lower()
    assert not (tmp_path / "out").exists()


def test_a_reader_who_leaves_is_no_failure():
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [sys.executable, "-m", "sgpd", "integrators"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert said == ""


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (KeyboardInterrupt(), 130),
        (EOFError(), 2),
        (BrokenPipeError(), 0),
        (PermissionError(13, "Permission denied", "file"), 2),
        (OSError(28, "No space left on device", "file"), 2),
        (RuntimeError("surprise"), 70),
        (ValueError("it is wrong; mend it"), 2),
    ],
)
def test_every_way_to_end_has_its_exit_code(sgpd_here, monkeypatch, tmp_path, problem, code):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail():
        raise problem

    monkeypatch.setattr("sgpd.cli.listings.list_systems", fail)
    ended = sgpd_here("systems")
    assert ended.code == code
    assert "Traceback" not in ended.err
    saved = list(tmp_path.glob("sgpd-*.txt"))
    assert len(saved) == (1 if code == 70 else 0)
    if code == 70:
        assert str(saved[0]) in ended.err
        assert "surprise" in saved[0].read_text()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BadInput("a; b is wrong", "mend it"), "error: a; b is wrong\n\nhint: mend it\n"),
        (unknown_name("name", "c", ["d"]), "error: There is no name called 'c'\n\nhint: known: d.\n"),
        (ValueError("a; b."), "error: a; b.\n\nhint: `sgpd --help` and `sgpd COMMAND --help` show what can be given\n"),
    ],
)
def test_an_error_is_told_with_its_hint_and_no_sentence_is_taken_apart(sgpd_here, monkeypatch, error, told):
    def fail():
        raise error

    monkeypatch.setattr("sgpd.cli.listings.list_systems", fail)
    assert sgpd_here("systems").err == told


def test_a_numerical_failure_has_its_own_code_and_a_remedy(sgpd_here, monkeypatch):
    from sgpd import NumericalFailure, Outcome

    def fail():
        raise NumericalFailure(Outcome.DIVERGED, "In epoch 3.")

    monkeypatch.setattr("sgpd.cli.listings.list_systems", fail)
    ended = sgpd_here("systems")
    assert ended.code == 3
    error, hint = ended.err.strip().split("\n\n")
    assert error.endswith("In epoch 3.")
    assert hint == f"hint: {Outcome.DIVERGED.remedy}"
