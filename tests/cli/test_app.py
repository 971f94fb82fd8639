"""The command line: what it prints, where, and with which exit code."""

import subprocess
import sys

import pytest

from sgpd import integrators
from sgpd.cli.app import main


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "sgpd", *arguments], capture_output=True, text=True, check=False)


def run_here(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["sgpd", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return exit_.value.code


def test_every_integrator_is_listed_with_its_order(monkeypatch, capsys):
    assert run_here(monkeypatch, "integrators") == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()[1:] if line.strip()}
    assert list(rows) == integrators.names()
    assert rows["gauss-6"][1:4] == ["6", "implicit", "yes"]


def test_structures_and_systems_are_listed(monkeypatch, capsys):
    assert run_here(monkeypatch, "structures") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("separable", "hamiltonian", "quadratic-invariant", "free", "gauss-6"))
    assert run_here(monkeypatch, "systems") == 0
    assert "two-body" in capsys.readouterr().out


def test_an_unknown_command_is_a_usage_error_with_a_suggestion():
    result = run("demoo")
    assert result.returncode == 2
    assert "Did you mean 'demo'" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_folder_that_cannot_be_written_is_an_error_of_one_sentence(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    assert run_here(monkeypatch, "demo", "--out", str(tmp_path / "file" / "sub")) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_an_unknown_task_of_the_paper_is_refused_with_a_suggestion_before_anything_is_written(
    monkeypatch, capsys, tmp_path
):
    assert run_here(monkeypatch, "paper", "pendulun", "--out", str(tmp_path / "out")) == 2
    assert "Did you mean 'pendulum'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
