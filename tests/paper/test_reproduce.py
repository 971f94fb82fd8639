"""A run goes on where it stopped, computes nothing twice, and refuses what it does not know."""

import json

import pytest

from sgpd.paper import reproduce as module
from sgpd.paper import workers
from sgpd.paper.experiments import Experiment, experiments
from sgpd.paper.reproduce import Ask, reproduce
from sgpd.paper.results import Result, trial_of, trials
from sgpd.paper.settings import Reading
from tests.paper.made_up import result

TWO, ONE = {"recordings": 2, "trainings": 1}, {"recordings": 1, "trainings": 1}
FIRST = tuple(trials(2, 1))
KEYS = {"task", "method", "recording", "training", "seed", "truth", "l2", "l2_selected", "l2_published"}
KEYS |= {"energy_error", "energy_std", "det_error"}
KEYS |= {"symplectic_defect", "invariant_error", "coverage95", "seconds"}


class Silence:
    def begin(self, *_):
        return lambda done, total: None

    def end(self, *_):
        pass


@pytest.fixture
def calls(monkeypatch):
    """`run` with made-up numbers, and the list of what it was asked for; "stop" in the list interrupts the next one."""
    asked = []

    def run(experiment, trials, progress):
        if "stop" in asked:
            raise KeyboardInterrupt
        asked.append((experiment.system_name, experiment.method, tuple(trials)))
        made = [
            (row, t, result(row["task"], row["method"], t.seed, **_place(row)))
            for t in trials
            for row in experiment.rows
        ]
        return [Result(r.row | t._asdict() | row | {"settings": experiment.settings}, r.curves) for row, t, r in made]

    monkeypatch.setattr(workers, "run", run)
    monkeypatch.setattr(module, "write_page", lambda out, results, about: module.write_tables(out, results, about))
    monkeypatch.setattr(module, "feature_sentences", lambda keys: [])
    return asked


def _made(experiment, row, trial):
    made = result(row["task"], row["method"], trial.seed, **_place(row))
    return Result(made.row | trial._asdict() | row | {"settings": experiment.settings}, made.curves)


def _place(row):
    return {key: row[key] for key in ("system", "step", "solver") if key in row}


def test_all_experiments_of_the_paper_are_there(calls, tmp_path):
    results, about = reproduce(tmp_path, Silence(), Ask(recordings=2))
    rows = json.loads((tmp_path / "results.json").read_text())
    assert len(rows) == len(results) == 2 * 2 * (15 + 16)
    assert all(set(row) >= KEYS for row in rows)
    heun = [row for row in rows if row["task"] == "heun"]
    assert {(row["system"], row["method"], row["step"]) for row in heun} == {
        (system, method, step)
        for system in ("pendulum", "non-separable")
        for method in ("sgpd", "euler")
        for step in (0.1, 0.05, 0.005, None)
    }
    assert {row["solver"] for row in heun} == {"euler", "heun", "adaptive"}
    assert about["command"] == "sgpd paper --truth exact --settings program --jitter ours --recordings 2 --trainings 2"


def test_finished_rows_are_not_computed_again_and_more_seeds_only_add(calls, tmp_path):
    reproduce(tmp_path, Silence(), Ask(tasks=["pendulum"], recordings=1))
    first = list(calls)
    reproduce(tmp_path, Silence(), Ask(tasks=["pendulum"], recordings=1))
    assert calls == first
    results, _ = reproduce(tmp_path, Silence(), Ask(tasks=["pendulum"], recordings=3))
    assert calls[len(first) :] == [(system, method, of(trials(3, 2), recording=(1, 2))) for system, method, _ in first]
    assert len({(r.row["method"], trial_of(r.row)) for r in results if r.row["task"] == "pendulum"}) == 4 * 6
    before = len(calls)
    reproduce(tmp_path, Silence(), Ask(tasks=["pendulum"], recordings=3, trainings=3))
    assert calls[before:] == [(system, method, of(trials(3, 3), training=(2,))) for system, method, _ in first]


def of(found, **wanted):
    """The trials whose fields are among these."""
    return tuple(t for t in found if all(getattr(t, name) in values for name, values in wanted.items()))


def test_trainings_share_a_recording_and_no_two_trials_a_seed():
    assert len({trial.seed for trial in trials(7, 3)}) == 21
    assert [trial.recording for trial in trials(2, 2)] == [0, 1, 0, 1]


def test_readings_have_digests_and_files_of_their_own_and_methods_without_settings_are_kept(calls, tmp_path):
    ask = lambda *reading: reproduce(
        tmp_path, Silence(), Ask(tasks=["two-body"], recordings=1, trainings=1, reading=Reading(*reading))
    )
    ask()
    assert len(calls) == 4
    for index, reading in enumerate([("printed",), ("program", "program")]):
        results, _ = ask(*reading)
        assert [call[1] for call in calls[4 + 2 * index :]] == ["sgpd", "euler"]
        assert len(results) == 4
    ask()
    assert len(calls) == 8


def test_an_interrupted_run_goes_on_where_it_stopped(calls, tmp_path):
    reproduce(tmp_path, Silence(), Ask(tasks=["two-body"], methods=["sgpd"], **TWO))
    calls.append("stop")
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, Silence(), Ask(tasks=["two-body"], **TWO))
    assert len(json.loads((tmp_path / "results.json").read_text())) == 2
    calls.clear()
    reproduce(tmp_path, Silence(), Ask(tasks=["two-body"], **TWO))
    assert calls == [("two-body", method, FIRST) for method in ("default", "euler", "hnn")]


def test_damaged_results_and_those_of_other_settings_are_computed_again(calls, tmp_path, monkeypatch):
    reproduce(tmp_path, Silence(), Ask(tasks=["rigid-body"], methods=["sgpd"], **TWO))
    kept = sorted((tmp_path / "runs").glob("*.npz"))
    kept[1].write_bytes(kept[1].read_bytes()[:100])
    calls.clear()
    reproduce(tmp_path, Silence(), Ask(tasks=["rigid-body"], methods=["sgpd"], **TWO))
    assert calls == [("rigid-body", "sgpd", FIRST[1:])]
    calls.clear()
    monkeypatch.setattr(Experiment, "settings", property(lambda self: "others"))
    reproduce(tmp_path, Silence(), Ask(tasks=["rigid-body"], methods=["sgpd"], **TWO))
    assert calls == [("rigid-body", "sgpd", FIRST)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": ["pendulun"]}, "Did you mean 'pendulum'"),
        ({"methods": ["node"]}, "hnn"),
        ({"truth": "true"}, "exact"),
        ({"recordings": 0}, "--recordings must be at least 1"),
        ({"trainings": 0}, "--trainings must be at least 1"),
        ({"recordings": 1001}, "at most"),
        ({"reading": Reading("print")}, "Did you mean 'printed'"),
        ({"reading": Reading(jitter="none")}, "ours"),
        ({"tasks": ["rigid-body"], "methods": ["hnn"]}, "no HNN"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_is_written(calls, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path / "out", Silence(), Ask(**arguments))
    assert not (tmp_path / "out").exists()


def test_a_quick_run_is_shorter_has_its_own_digest_and_its_own_files(calls, tmp_path):
    full, quick = (experiments(["pendulum"], ["sgpd"], "exact", quick, Reading())[0] for quick in (False, True))
    assert full.settings != quick.settings
    reproduce(tmp_path, Silence(), Ask(tasks=["pendulum"], methods=["sgpd"], **ONE, quick=True))
    results, _ = reproduce(tmp_path, Silence(), Ask(tasks=["pendulum"], methods=["sgpd"], **ONE))
    assert len(calls) == 2
    assert len(results) == 1
