"""`sgpd fit`: what it says, what it leaves, and how it treats what is there already."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

import sgpd
from sgpd.cli.app import main
from sgpd.runs.layout import RunFolder
from sgpd.runs.packing import sha256
from tests.cli.conftest import ROWS, write_recording

FAST = sgpd.Variational(epochs=2, inducing=4, features=8, paths=1)


@pytest.fixture
def quick(monkeypatch):
    """A fit that takes no time, through the same command."""
    from sgpd.models.fit import ENGINES

    monkeypatch.setitem(ENGINES, "variational", lambda: FAST)
    return ("-s", "separable", "--inference", "variational")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_recording(tmp_path / "air.csv")
    return tmp_path


def test_a_run_holds_all_that_is_needed_to_repeat_it(fitted):
    data, run = fitted
    folder = RunFolder.open(run)
    config = folder.config()
    assert config["files"] == [{"given": str(data), "path": str(data.resolve()), "sha256": sha256(data)}]
    assert config["settings"]["structure"] == "separable"
    assert config["settings"]["holdout"] == 0.2
    assert config["settings"]["units"] == {"x": "mm", "t": "s"}
    assert config["command"].startswith("sgpd fit ")
    assert {"sgpd", "jax", "numpy", "python"} <= set(config["versions"])
    assert not folder.checkpoint.exists()


def test_the_state_is_momenta_then_positions_whatever_the_order_of_the_columns(fitted):
    folder = RunFolder.open(fitted[1])
    assert folder.model().names == ("v", "x")
    fitted_rows, held_out = folder.recording()
    assert held_out is not None
    assert (fitted_rows.rows, held_out.rows) == (ROWS * 8 // 10, ROWS * 2 // 10)
    recorded = np.loadtxt(fitted[0], delimiter=",", skiprows=1)
    np.testing.assert_array_equal(fitted_rows.runs[0].states[:, 0], recorded[: fitted_rows.rows, 2])


def test_the_checks_are_those_of_the_model(fitted):
    folder = RunFolder.open(fitted[1])
    checks = folder.checks()
    assert checks["schema"] == "sgpd.check/1"
    assert {check["group"] for check in checks["checks"]} == {"recording", "claims", "held out"}
    diagnosis = [check["id"] for check in checks["checks"] if check["group"] == "recording"]
    assert diagnosis == [check.id for check in folder.model().diagnosis]
    assert checks["checked_to"] == pytest.approx(0.2 * ROWS * 0.2)


def test_talk_begins_with_a_word_of_nine_columns_and_stays_within_eighty(here, sgpd_here, quick):
    ended = sgpd_here("fit", "air.csv", *quick, "--out", "air")
    assert ended.code == 0, ended.err
    lines = ended.err.splitlines()
    words = [line[:9] for line in lines]
    assert {"read     ", "guessed  ", "data     ", "model    ", "fit      ", "check    "} <= set(words)
    assert all(len(line) <= 80 for line in [*lines, *ended.out.splitlines()])
    assert "momentum = v, position = x" in ended.err
    assert ended.out.startswith("Fitted in ")
    assert "Verdict: " in ended.out
    assert "sgpd report air" in ended.out


def test_quiet_and_json_leave_only_json(here, sgpd_here, quick):
    ended = sgpd_here("fit", "air.csv", *quick, "--out", "air", "--quiet", "--json")
    assert ended.err == ""
    assert json.loads(ended.out)["run"] == "air"


def test_a_dry_run_says_what_was_guessed_and_writes_nothing(here, sgpd_here):
    before = os.listdir(here)
    ended = sgpd_here("fit", "air.csv", "--dry-run", "--out", "air")
    assert ended.code == 0
    assert "guessed  momentum = v" in ended.err
    assert "Nothing was written." in ended.out
    assert os.listdir(here) == before


def test_an_existing_run_is_replaced_only_by_force(here, sgpd_here, quick):
    assert sgpd_here("fit", "air.csv", *quick, "--out", "air").code == 0
    model = (here / "air" / "model.safetensors").read_bytes()
    again = sgpd_here("fit", "air.csv", *quick, "--seed", "1", "--out", "air")
    assert again.code == 2
    assert "--force" in again.err
    assert (here / "air" / "model.safetensors").read_bytes() == model
    assert sgpd_here("fit", "air.csv", *quick, "--seed", "1", "--out", "air", "--force").code == 0
    assert RunFolder.open("air").config()["seed"] == 1
    assert sorted(os.listdir(here)) == ["air", "air.csv"]


def test_a_finished_run_is_resumed_by_saying_so(here, sgpd_here, quick):
    assert sgpd_here("fit", "air.csv", *quick, "--out", "air", "--resume").code == 0  # on an absent folder it starts
    again = sgpd_here("fit", "air.csv", "--out", "air", "--resume")
    assert again.code == 0
    assert "finished" in again.err


def stop_at_first_progress(monkeypatch):
    """Ctrl-C while the fit runs."""
    from contextlib import contextmanager

    @contextmanager
    def progress(self, word, noun):
        def stop(done, total):
            raise KeyboardInterrupt

        yield stop

    monkeypatch.setattr("sgpd.cli.talk.Talk.progress", progress)


def test_a_stopped_run_says_how_to_go_on_and_does(here, sgpd_here, quick, monkeypatch):
    with monkeypatch.context() as patched:
        stop_at_first_progress(patched)
        ended = sgpd_here("fit", "air.csv", *quick, "--out", "air")
    assert ended.code == 130
    assert "Stopped; " in ended.err
    assert "  sgpd fit air.csv --out air --resume\n" in ended.err
    assert "Traceback" not in ended.err
    assert RunFolder(here / "air").state == "unfinished"
    refused = sgpd_here("fit", "air.csv", *quick, "--out", "air")
    assert refused.code == 2
    assert "--resume" in refused.err
    other = sgpd_here("fit", "air.csv", "--structure", "hamiltonian", "--out", "air", "--resume")
    assert other.code == 2
    assert "--structure" in other.err
    assert sgpd_here("check", "air").code == 2
    assert sgpd_here("fit", "air.csv", "--out", "air", "--resume").code == 0
    assert sgpd_here("fit", "air.csv", *quick, "--out", "undisturbed").code == 0
    same = [(here / run / "model.safetensors").read_bytes() for run in ("air", "undisturbed")]
    assert same[0] == same[1]


def test_data_that_changed_are_not_gone_on_with(here, sgpd_here, quick, monkeypatch):
    with monkeypatch.context() as patched:
        stop_at_first_progress(patched)
        sgpd_here("fit", "air.csv", *quick, "--out", "air")
    with (here / "air.csv").open("a") as file:
        file.write("99,1,1\n")
    ended = sgpd_here("fit", "air.csv", "--out", "air", "--resume")
    assert ended.code == 2
    assert "not those with which" in ended.err


def test_options_of_the_structure_reach_it(here, sgpd_here, quick):
    assert sgpd_here("fit", "air.csv", *quick, "--option", "form=components", "--out", "air").code == 0
    assert RunFolder.open("air").model().posterior.structure.form == "components"


def test_inducing_points_are_as_many_as_asked_for(here, sgpd_here, quick):
    assert sgpd_here("fit", "air.csv", *quick, "--inducing", "7", "--out", "air").code == 0
    model = sgpd.load("air/model.safetensors")
    assert all(group.inducing.shape[1] == 7 for group in model.posterior.groups)


def test_two_files_are_two_runs(here, sgpd_here, quick):
    shutil.copy(here / "air.csv", here / "second.csv")
    assert sgpd_here("fit", "air.csv", "second.csv", *quick, "--x0-known", "--out", "both").code == 0
    fitted_rows, held_out = RunFolder.open("both").recording()
    assert (len(fitted_rows), held_out) == (2, None)
    assert len(RunFolder.open("both").config()["files"]) == 2


def test_no_bar_is_drawn_off_a_terminal_and_stages_are_told(here, monkeypatch, capfd, quick):
    monkeypatch.setattr(sys, "argv", ["sgpd", "fit", "air.csv", *quick, "--out", "air"])
    with pytest.raises(SystemExit):
        main()
    said = capfd.readouterr().err
    assert "fit      epoch 2 of 2\n" in said
    assert "\x1b" not in said
    assert "━" not in said


@pytest.mark.parametrize(
    ("tested", "suggested"), [(1.9, "1.9"), (1.9684, "1.9"), (154.7, "150"), (0.01996, "0.019"), (10.0, "10")]
)
def test_the_suggested_forecast_is_written_plainly_and_not_beyond_what_was_tested(tested, suggested):
    from sgpd.cli.commands.fitting import two_digits

    assert f"{two_digits(tested):g}" == suggested
