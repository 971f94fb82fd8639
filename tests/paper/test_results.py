"""A result comes back from its file as it went in, and a damaged file is refused by name."""

import json

import numpy as np
import pytest

from sgpd.paper.results import Result, chosen, load_result, save_result
from tests.paper.made_up import failed, result, row


@pytest.mark.parametrize("make", [result, failed])
def test_a_result_comes_back_as_it_was_saved(make, tmp_path):
    saved = make("rigid-body", "sgpd", 3)
    save_result(saved, tmp_path / "one.npz")
    loaded = load_result(tmp_path / "one.npz")
    assert loaded.row == saved.row
    assert loaded.curves.keys() == saved.curves.keys()
    for name, curve in saved.curves.items():
        np.testing.assert_array_equal(loaded.curves[name], curve)
    assert loaded.finished == (make is result)


def test_saving_leaves_one_file_and_replaces_the_one_before(tmp_path):
    for seed in (0, 1):
        save_result(result("pendulum", "hnn", seed), tmp_path / "one.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]
    assert load_result(tmp_path / "one.npz").row["seed"] == 1


def test_a_row_that_is_no_strict_json_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        save_result(Result(row("pendulum", "sgpd", 0, l2=float("nan")), {}), tmp_path / "one.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [0, 1, 100, 2000, -1])
def test_a_truncated_file_is_refused_with_its_name(length, tmp_path):
    path = tmp_path / "cut.npz"
    save_result(result("pendulum", "sgpd", 0), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"cut\.npz.*delete it"):
        load_result(path)


def test_arrays_without_a_row_and_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "rowless.npz", times=np.zeros(2))
    np.savez(tmp_path / "pickled.npz", row=np.array(json.dumps({})), curve=np.array([object()], dtype=object))
    for name in ("rowless", "pickled"):
        with pytest.raises(ValueError, match=name):
            load_result(tmp_path / f"{name}.npz")


def test_a_missing_file_is_missing_not_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_result(tmp_path / "none.npz")


def test_results_are_chosen_by_their_rows_in_the_order_of_trials():
    found = chosen([result("pendulum", "sgpd", 1), failed("pendulum", "sgpd", 0)], task="pendulum", method="sgpd")
    assert [r.row["seed"] for r in found] == [0, 1]
    assert chosen(found, method="hnn") == []
