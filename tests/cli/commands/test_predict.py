"""`sgpd predict`, `check`, `report`, `simulate`: files and words from a fitted run."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import sgpd
from sgpd.cli.commands.fitting import Where, run_fit
from sgpd.cli.talk import Talk
from sgpd.models.fit import ENGINES
from sgpd.runs.layout import RunFolder

COLUMNS = ["t", "lead", *(f"{n}_{w}" for n in "vx" for w in ("mean", "std", "lo95", "hi95")), "paths_ok"]
ASK = ("--duration", "3", "--paths", "8", "--seed", "1")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_format_holds_the_forecast_of_the_library(here, fitted, sgpd_here):
    expected = sgpd.load(fitted[1] / "model.safetensors").predict(duration=3.0, paths=8, seed=1).to_dataframe()
    for suffix in ("csv", "tsv", "parquet", "npz"):
        assert sgpd_here("predict", fitted[1], *ASK, "--out", f"deep/forecast.{suffix}").code == 0
    deep = here / "deep"
    with np.load(deep / "forecast.npz") as archive:
        arrays = {name: archive[name] for name in archive if name != "meta"}
        about = json.loads(str(archive["meta"]))
    frames = [
        pd.read_csv(deep / "forecast.csv"),
        pd.read_csv(deep / "forecast.tsv", sep="\t"),
        pd.read_parquet(deep / "forecast.parquet"),
        pd.DataFrame(arrays),
    ]
    for frame in frames:
        assert list(frame.columns) == COLUMNS
        np.testing.assert_allclose(frame, expected, rtol=1e-14)
    assert json.loads((deep / "forecast.csv.json").read_text()) == about
    assert about["units"] == {"v": "", "x": "mm", "t": "s"}
    assert about["data"] == [RunFolder.open(fitted[1]).config()["files"][0]["sha256"]]


def test_it_says_where_it_starts_how_it_steps_and_how_far_it_was_checked(here, fitted, sgpd_here):
    ended = sgpd_here("predict", fitted[1], *ASK, "--duration", "6", "--x0", "x=0.5,v=0", "--out", "f.csv")
    assert ended.code == 0
    assert ended.out == ""
    assert "start    v = 0, x = 0.5: inside the recorded range" in ended.err
    assert "method   stormer-verlet, step 0.2 s as fitted, 8 paths, seed 1" in ended.err
    assert "Forecasts were tested to 5 s ahead; the other 1 s are untested." in " ".join(ended.err.split())
    assert "wrote    f.csv: 31 rows; v, x as mean, std, lo95, hi95" in ended.err
    first = pd.read_csv("f.csv").iloc[0]
    assert (first["v_mean"], first["x_mean"], first["t"]) == (0, 0.5, 0)


def test_a_start_outside_the_recorded_range_deserves_attention(here, fitted, sgpd_here):
    ended = sgpd_here("predict", fitted[1], *ASK, "--x0", "x=1.5,v=0", "--level", "50,99.5", "--out", "f.csv")
    assert ended.code == 0
    assert "ATTENTION  The start lies outside the recorded range (x" in ended.err
    assert {"x_lo50", "x_hi99.5"} <= set(pd.read_csv("f.csv").columns)


def test_paths_can_be_read_back_as_runs(here, fitted, sgpd_here):
    assert sgpd_here("predict", fitted[1], *ASK, "--out", "f.csv", "--paths-out", "paths.csv").code == 0
    data = sgpd.Trajectories.read("paths.csv", run="path", state=["v", "x"])
    assert len(data) == 8
    np.testing.assert_allclose(
        np.mean([run.states[-1] for run in data.runs], axis=0)[1], pd.read_csv("f.csv")["x_mean"].iloc[-1]
    )


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """A run folder of a recording of two runs, which end at different times."""
    folder = tmp_path_factory.mktemp("two")
    lines = [
        f"{day},{0.2 * k:.1f},{np.cos(0.2 * k + shift):.5f},{-np.sin(0.2 * k + shift):.5f}"
        for day, rows, shift in (("monday", 30, 0), ("tuesday", 40, 1))
        for k in range(rows)
    ]
    (folder / "days.csv").write_text("\n".join(["run,t,x,v", *lines]) + "\n")
    settings = sgpd.Variational(epochs=2, inducing=4, features=8, paths=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(ENGINES, "variational", lambda: settings)
        given = {"structure": "separable", "inference": "variational"}
        run_fit([str(folder / "days.csv")], given, Where(folder / "days"), Talk(quiet=True, as_json=True))
    return folder / "days"


def test_a_forecast_from_one_of_several_runs_says_which(here, two_runs, sgpd_here):
    for name, end, more in (("tuesday", 7.8, ()), ("monday", 5.8, ("--from-run", "monday"))):
        for suffix in ("csv", "npz"):
            ended = sgpd_here("predict", two_runs, *ASK, *more, "--out", f"f.{suffix}")
            assert ended.code == 0, ended.err
            assert f"start    the last fitted state of run {name}, t = {end}" in ended.err
        frame = pd.read_csv("f.csv")
        assert list(frame.columns) == ["run", *COLUMNS]
        assert set(frame["run"]) == {name}
        assert frame["t"].iloc[0] == pytest.approx(end)
        assert json.loads((here / "f.csv.json").read_text())["from_run"] == name
        with np.load("f.npz") as archive:
            assert set(archive["run"]) == {name}
    ended = sgpd_here("predict", two_runs, *ASK, "--x0", "x=1,v=0", "--out", "f.csv")
    assert list(pd.read_csv("f.csv").columns) == COLUMNS


@pytest.mark.parametrize(
    ("more", "words"),
    [(("--from-run", "mondy"), "did you mean 'monday'?"), (("--from-run", "monday", "--x0", "x=1,v=0"), "one of the")],
)
def test_a_run_that_cannot_be_gone_on_from_is_refused(here, two_runs, sgpd_here, more, words):
    ended = sgpd_here("predict", two_runs, *ASK, *more, "--out", "f.csv")
    assert ended.code == 2
    assert words in ended.err
    assert not (here / "f.csv").exists()


def test_another_way_to_step_is_told(here, fitted, sgpd_here):
    ended = sgpd_here("predict", fitted[1], *ASK, "--adaptive", "--out", "f.csv", "--json")
    assert ended.code == 0
    assert "adaptive steps" in ended.err
    assert "ATTENTION" in ended.err
    assert json.loads(ended.out)["integrator"] == "adaptive"


def test_check_prints_every_claim_and_the_verdict(fitted, sgpd_here):
    ended = sgpd_here("check", fitted[1])
    stored = RunFolder.open(fitted[1]).checks()
    assert ended.code == (1 if any(check["verdict"] == "FAIL" for check in stored["checks"]) else 0)
    for check in stored["checks"]:
        assert check["title"].split()[0] in ended.out
    assert "symplectic defect" in ended.out
    assert "Verdict: " in ended.out
    assert all(len(line) <= 80 for line in ended.out.splitlines()[1:])


def with_verdict(fitted, folder, verdict):
    """The same run, whose held-out check says something else."""
    run = shutil.copytree(fitted[1], folder / verdict.replace(" ", "-"))
    checks = json.loads((run / "checks.json").read_text())
    held_out = [check for check in checks["checks"] if check["group"] == "held out"]
    for check in held_out:
        check["verdict"] = "PASS"
    held_out[-1]["verdict"] = verdict
    (run / "checks.json").write_text(json.dumps(checks))
    return run


@pytest.mark.parametrize(
    ("verdict", "strict", "code"),
    [("FAIL", False, 1), ("ATTENTION", True, 1), ("NOT MEASURED", False, 0)],
)
def test_the_exit_code_of_check(fitted, sgpd_here, tmp_path, verdict, strict, code):
    run = with_verdict(fitted, tmp_path, verdict)
    ended = sgpd_here("check", run, *(["--strict"] if strict else []), "--json", "--quiet")
    found = json.loads(ended.out)
    assert verdict in {check["verdict"] for check in found["checks"]}
    assert ended.code == code


def test_the_report_is_one_file_in_the_run_folder(fitted, sgpd_here, tmp_path):
    run = shutil.copytree(fitted[1], tmp_path / "run")
    (run / "recording.npz").touch()
    ended = sgpd_here("report", run)
    assert ended.code == 0
    page = run / "report.html"
    assert str(page) in ended.out.replace("\n", "").replace(" ", "")
    text = page.read_text()
    assert "sgpd fit" in text
    assert RunFolder.open(run).config()["files"][0]["sha256"][:12] in text


def test_a_run_of_version_0_4_0_is_read_and_what_it_did_not_save_is_found_anew(fitted, sgpd_here, tmp_path):
    run = shutil.copytree(fitted[1], tmp_path / "run")
    stored = json.loads((run / "checks.json").read_text())
    old = {name: value for name, value in stored.items() if name not in ("questions", "equilibrium", "problems")}
    (run / "checks.json").write_text(json.dumps(old))
    assert sgpd_here("predict", run, "--duration", "1", "--out", tmp_path / "f.csv").code == 0
    found = json.loads(sgpd_here("check", run, "--json", "--quiet").out)
    assert {name: found[name] for name in stored} == stored
    reported = sgpd_here("report", run)
    assert "check    every claim" in reported.err
    page = (run / "report.html").read_text(encoding="utf-8")
    assert all(row["question"] in page for row in stored["questions"])


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "recording.npz", "checks.json"])
@pytest.mark.parametrize("command", ["predict", "check", "report"])
def test_a_damaged_run_is_refused(fitted, sgpd_here, tmp_path, command, name):
    run = shutil.copytree(fitted[1], tmp_path / "run")
    (run / name).write_bytes(b'{"half": ')
    more = ("--duration", "1", "--out", tmp_path / "f.csv") if command == "predict" else ()
    ended = sgpd_here(command, run, *more)
    assert ended.code == 2
    assert name in ended.err
    assert "Traceback" not in ended.err


def test_a_simulation_is_the_system_with_noise(here, sgpd_here):
    asked = ("--step", "0.05", "--duration", "2", "--noise-var", "0.04", "--seed", "3")
    ended = sgpd_here("simulate", "pendulum", "--out", "p.csv", "--truth", "exact.csv", *asked)
    assert ended.code == 0
    noisy, exact = pd.read_csv("p.csv"), pd.read_csv("exact.csv")
    assert list(noisy.columns) == list(exact.columns) == ["t", "p", "q"]
    assert len(noisy) == 40
    system = sgpd.systems.get("pendulum")
    np.testing.assert_allclose(exact[["p", "q"]], system.simulate(system.x0, exact["t"]), atol=1e-9)
    assert exact["t"].iloc[-1] == pytest.approx(system.horizon)
    left = (noisy - exact.iloc[:40])[["p", "q"]].to_numpy()[1:].ravel()
    assert abs(np.mean(left**2) / 0.04 - 1) < 4 * np.sqrt(2 / left.size)
