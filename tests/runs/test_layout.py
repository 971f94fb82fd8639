"""Run folders: whole or not there, never overwritten unasked, held by one process, read with suspicion."""

import json
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest

import sgpd
from sgpd.errors import BadInput
from sgpd.inference.facts import Round
from sgpd.runs.layout import RunFolder
from sgpd.runs.lock import is_locked, locked
from sgpd.runs.packing import pack_history, pack_json, sha256
from sgpd.runs.places import to_work_in, working_in

CHECKS = {"schema": "sgpd.check/1", "checks": []}


def recording(rows=12, runs=2):
    rng = np.random.default_rng(0)
    times = [0.1 * np.arange(rows + k) for k in range(runs)]
    states = [np.stack([np.cos(t), np.sin(t)], axis=1) + 0.01 * rng.normal(size=(len(t), 2)) for t in times]
    return sgpd.Trajectories.from_arrays(times, states, names=["p", "q"], units=["", "rad"])


@pytest.fixture(scope="module")
def model():
    settings = sgpd.Variational(epochs=1, inducing=4, features=8)
    return sgpd.fit(recording(), "separable", inference=settings)


@pytest.fixture
def data_file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("t,p,q\n0,1,2\n")
    return path


def config(data_file):
    file = {"given": data_file.name, "path": str(data_file), "sha256": sha256(data_file)}
    settings = {"structure": "separable"}
    return {"command": "sgpd fit", "files": [file], "settings": settings, "said": [], "versions": {}, "seed": 0}


def begun(path, data_file, held_out=None):
    folder = RunFolder(path)
    path.mkdir()
    folder.begin(config(data_file), recording(), held_out)
    return folder


def finished(path, data_file, model):
    folder = begun(path, data_file)
    folder.finish(model, CHECKS)
    return folder


def test_a_recording_comes_back_to_the_last_bit(tmp_path, data_file):
    states = recording().runs[0].states.copy()
    states[3, 1] = np.nan
    held = sgpd.Trajectories((sgpd.data.Run(np.arange(12) / 3, states),), ("p", "q"), ("", "rad"), ("b",), "zeit", "s")
    fitted, held_back = begun(tmp_path / "run", data_file, held).recording()
    assert [run.states.tobytes() for run in fitted.runs] == [run.states.tobytes() for run in recording().runs]
    assert fitted.units == ("", "rad")
    assert held_back is not None
    assert held_back.runs[0].states.tobytes() == states.tobytes()
    assert (held_back.run_names, held_back.time_name, held_back.time_unit) == (("b",), "zeit", "s")


def test_the_states_of_a_folder(tmp_path, data_file, model):
    assert RunFolder(tmp_path / "none").state == "absent"
    (tmp_path / "empty").mkdir()
    assert RunFolder(tmp_path / "empty").state == "absent"
    (tmp_path / "killed").mkdir()
    for name in ("lock", "recording.npz", ".data.sha256.123"):
        (tmp_path / "killed" / name).write_text("")
    assert RunFolder(tmp_path / "killed").state == "absent"
    assert begun(tmp_path / "begun", data_file).state == "unfinished"
    assert finished(tmp_path / "finished", data_file, model).state == "finished"
    assert RunFolder(data_file).state == "foreign"
    assert RunFolder(tmp_path).state == "foreign"


def test_a_finished_folder_holds_the_model_and_no_left_overs(tmp_path, data_file, model):
    folder = begun(tmp_path / "run", data_file)
    folder.checkpoint.write_text("where it stands")
    (folder.path / ".model.safetensors.99").write_text("half a file")
    folder.finish(model, CHECKS)
    names = {"config.json", "recording.npz", "data.sha256", "model.safetensors", "history.csv", "checks.json"}
    assert set(os.listdir(folder.path)) == names
    np.testing.assert_array_equal(folder.model().joint.mean, model.joint.mean)
    assert folder.checks() == CHECKS
    assert folder.config()["settings"] == {"structure": "separable"}


def test_the_hashes_are_in_the_form_of_sha256sum(tmp_path, data_file):
    folder = begun(tmp_path / "run", data_file)
    known = subprocess.run(["sha256sum", data_file], capture_output=True, text=True, check=True).stdout
    assert (folder.path / "data.sha256").read_text() == known


def test_the_history_has_every_column_that_any_line_has():
    rounds = (Round(20, 0, -1.5), Round(20, 1, 0.5, 1.0, 0.0))
    lines = "restart,round,objective,steps_converged,worst_residual\n20,0,-1.5,,\n20,1,0.5,1.0,0.0\n"
    assert pack_history(rounds) == lines.encode()


def test_json_has_no_numbers_that_json_does_not_know():
    content = {"value": np.float64("nan"), "count": np.int64(3), "list": (np.inf, np.array([1.5]))}
    assert json.loads(pack_json(content)) == {"value": None, "count": 3, "list": [None, [1.5]]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("config.json", b'{"schema": "sgpd.run/1"}'),
        ("config.json", b'{"schema": "other/1"}'),
        ("config.json", b"\xff\xfe"),
        ("checks.json", b"nothing"),
        ("recording.npz", b"PK no archive"),
        ("recording.npz", b""),
        ("model.safetensors", b"\x80\x04cposix\nsystem\n"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, data_file, model, name, content):
    folder = finished(tmp_path / "run", data_file, model)
    (folder.path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        _ = folder.config(), folder.checks(), folder.recording(), folder.model()


def test_an_object_array_in_the_recording_is_not_unpickled(tmp_path, data_file, model):
    folder = finished(tmp_path / "run", data_file, model)
    np.savez(folder.path / "recording.npz", **{"fitted.times": np.array([{"a": 1}], object)})
    with pytest.raises(BadInput, match=r"recording\.npz"):
        folder.recording()


def test_changed_data_are_refused(tmp_path, data_file):
    folder = begun(tmp_path / "run", data_file)
    folder.require_same_files([])
    folder.require_same_files([data_file])
    data_file.write_text("t,p,q\n0,1,3\n")
    for given in ([], [data_file]):
        with pytest.raises(BadInput, match="not those"):
            folder.require_same_files(given)
    data_file.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        folder.require_same_files([])


def test_where_a_fit_works(tmp_path, data_file, model):
    unfinished, done = begun(tmp_path / "begun", data_file), finished(tmp_path / "done", data_file, model)
    go = lambda path, **how: to_work_in(path, **({"resume": False, "force": False} | how))
    assert go(tmp_path / "deep" / "new") == (RunFolder(tmp_path / "deep" / "new"), "absent")
    assert go(tmp_path / "new", resume=True) == (RunFolder(tmp_path / "new"), "absent")
    assert go(unfinished.path, resume=True) == (unfinished, "unfinished")
    assert go(done.path, resume=True) == (done, "finished")
    assert go(done.path, force=True) == (done.replacement(), "absent")
    assert not (tmp_path / "deep").exists()
    for refused, how in ((unfinished, {}), (done, {}), (done, {"resume": True, "force": True})):
        with pytest.raises(BadInput):
            go(refused.path, **how)
    for place in (data_file, data_file / "sub", tmp_path):
        with pytest.raises(BadInput):
            go(place, force=True)


def _begin_and_fail(folder, settings):
    folder.begin(settings, recording(), None)
    raise RuntimeError("killed")


def test_a_replacement_takes_its_place_only_when_it_is_whole(tmp_path, data_file, model):
    done = finished(tmp_path / "run", data_file, model)
    before = done.config_file.read_bytes()
    new, state = to_work_in(done.path, resume=False, force=True)
    with pytest.raises(RuntimeError, match="killed"), working_in(new, done.path, state):
        _begin_and_fail(new, config(data_file) | {"seed": 7})
    assert done.config_file.read_bytes() == before
    new, state = to_work_in(done.path, resume=True, force=False)
    assert (new, state) == (done.replacement(), "unfinished")
    with working_in(new, done.path, state):
        new.finish(model, CHECKS)
    assert done.config()["seed"] == 7
    assert os.listdir(tmp_path).count("run") == 1
    assert not new.path.exists()


def test_a_replacement_that_was_killed_between_its_moves_is_moved(tmp_path, data_file, model):
    out = tmp_path / "run"
    finished(RunFolder(out).replacement().path, data_file, model)
    folder, state = to_work_in(out, resume=True, force=False)
    assert state == "finished"
    with working_in(folder, out, state):
        pass
    assert RunFolder.open(out).state == "finished"


def test_a_fit_that_is_refused_leaves_nothing(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(BadInput), working_in(RunFolder(out), out, "absent"):
        raise BadInput("no", "no")
    assert not out.exists()


def _hold(path, ready, done):
    with locked(path):
        ready.set()
        done.wait(60)


def test_one_process_a_folder_and_a_killed_one_does_not_block(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(out / "lock", ready, done))
    holder.start()
    try:
        assert ready.wait(120)
        assert is_locked(out / "lock")
        with pytest.raises(BadInput, match="another process"):
            to_work_in(out, resume=True, force=False)
        with pytest.raises(BadInput, match="another process"), working_in(RunFolder(out), out, "absent"):
            pass
    finally:
        holder.kill()
        holder.join()
    assert not is_locked(out / "lock")
    with working_in(RunFolder(out), out, "absent"):
        assert is_locked(out / "lock")
    assert not is_locked(out / "lock")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="permission"):
        to_work_in(tmp_path / "run", resume=False, force=False)
