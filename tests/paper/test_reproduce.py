"""A run goes on where it stopped, computes nothing twice, and refuses what it does not know."""

import json

import pytest

from sgpd.paper import reproduce as module
from sgpd.paper import workers
from sgpd.paper.experiments import Experiment, experiments
from sgpd.paper.reproduce import reproduce
from sgpd.paper.results import Result
from tests.paper.made_up import result

KEYS = {"task", "method", "seed", "truth", "l2", "l2_published", "energy_error", "energy_std", "det_error"}
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

    def run(experiment, seeds, progress):
        if "stop" in asked:
            raise KeyboardInterrupt
        asked.append((experiment.system_name, experiment.method, tuple(seeds)))
        made = [(row, result(row["task"], row["method"], s, **_place(row))) for s in seeds for row in experiment.rows]
        return [Result(r.row | row | {"settings": experiment.settings}, r.curves) for row, r in made]

    monkeypatch.setattr(workers, "run", run)
    monkeypatch.setattr(module, "write_page", lambda out, results, about: module.write_tables(out, results, about))
    monkeypatch.setattr(module, "feature_sentences", lambda keys: [])
    return asked


def _place(row):
    return {key: row[key] for key in ("system", "step", "solver") if key in row}


def test_all_experiments_of_the_paper_are_there(calls, tmp_path):
    results, about = reproduce(tmp_path, Silence(), seeds=2)
    rows = json.loads((tmp_path / "results.json").read_text())
    assert len(rows) == len(results) == 2 * (15 + 16)
    assert all(set(row) >= KEYS for row in rows)
    heun = [row for row in rows if row["task"] == "heun"]
    assert {(row["system"], row["method"], row["step"]) for row in heun} == {
        (system, method, step)
        for system in ("pendulum", "non-separable")
        for method in ("sgpd", "euler")
        for step in (0.1, 0.05, 0.005, None)
    }
    assert {row["solver"] for row in heun} == {"euler", "heun", "adaptive"}
    assert about["command"] == "sgpd paper --truth exact --seeds 2"


def test_finished_rows_are_not_computed_again_and_more_seeds_only_add(calls, tmp_path):
    reproduce(tmp_path, Silence(), tasks=["pendulum"], seeds=1)
    first = list(calls)
    reproduce(tmp_path, Silence(), tasks=["pendulum"], seeds=1)
    assert calls == first
    results, _ = reproduce(tmp_path, Silence(), tasks=["pendulum"], seeds=3)
    assert calls[len(first) :] == [(system, method, (1, 2)) for system, method, _ in first]
    assert len({(r.row["task"], r.row["method"], r.row["seed"]) for r in results if r.row["task"] == "pendulum"}) == 12


def test_an_interrupted_run_goes_on_where_it_stopped(calls, tmp_path):
    reproduce(tmp_path, Silence(), tasks=["two-body"], methods=["sgpd"], seeds=2)
    calls.append("stop")
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, Silence(), tasks=["two-body"], seeds=2)
    assert len(json.loads((tmp_path / "results.json").read_text())) == 2
    calls.clear()
    reproduce(tmp_path, Silence(), tasks=["two-body"], seeds=2)
    assert calls == [("two-body", method, (0, 1)) for method in ("default", "euler", "hnn")]


def test_damaged_results_and_those_of_other_settings_are_computed_again(calls, tmp_path, monkeypatch):
    reproduce(tmp_path, Silence(), tasks=["rigid-body"], methods=["sgpd"], seeds=2)
    kept = sorted((tmp_path / "runs").glob("*.npz"))
    kept[1].write_bytes(kept[1].read_bytes()[:100])
    calls.clear()
    reproduce(tmp_path, Silence(), tasks=["rigid-body"], methods=["sgpd"], seeds=2)
    assert calls == [("rigid-body", "sgpd", (1,))]
    calls.clear()
    monkeypatch.setattr(Experiment, "settings", property(lambda self: "others"))
    reproduce(tmp_path, Silence(), tasks=["rigid-body"], methods=["sgpd"], seeds=2)
    assert calls == [("rigid-body", "sgpd", (0, 1))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": ["pendulun"]}, "Did you mean 'pendulum'"),
        ({"methods": ["node"]}, "hnn"),
        ({"truth": "true"}, "exact"),
        ({"seeds": 0}, "at least 1"),
        ({"tasks": ["rigid-body"], "methods": ["hnn"]}, "no HNN"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_is_written(calls, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path / "out", Silence(), **arguments)
    assert not (tmp_path / "out").exists()


def test_a_quick_run_is_shorter_has_its_own_digest_and_its_own_files(calls, tmp_path):
    full, quick = (experiments(["pendulum"], ["sgpd"], "exact", quick)[0] for quick in (False, True))
    assert full.settings != quick.settings
    reproduce(tmp_path, Silence(), tasks=["pendulum"], methods=["sgpd"], seeds=1, quick=True)
    results, _ = reproduce(tmp_path, Silence(), tasks=["pendulum"], methods=["sgpd"], seeds=1)
    assert len(calls) == 2
    assert len(results) == 1
