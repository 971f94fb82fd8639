"""An interrupted fit goes on to the same numbers, to the last bit."""

import numpy as np
import pytest

import sgpd
from sgpd.errors import BadInput
from sgpd.inference.variational import engine as variational


class Stopped(Exception):
    pass


def interrupt(done, total):
    raise Stopped


@pytest.fixture(scope="module")
def recording():
    system = sgpd.systems.get("pendulum")
    times, states = system.record(seed=3)
    return sgpd.Trajectories.from_arrays(times, states, names=["p", "q"])


def fit(recording, inference, **kwargs):
    return sgpd.fit(recording, "separable", inference=inference, seed=5, **kwargs)


ENGINES = [sgpd.Laplace(), sgpd.Variational(epochs=6, batch=1, window=20)]


@pytest.mark.parametrize("inference", ENGINES, ids=lambda settings: type(settings).__name__)
def test_a_fit_that_was_stopped_ends_with_the_same_file(inference, recording, tmp_path, monkeypatch):
    monkeypatch.setattr(variational, "BETWEEN_SAVES", 0.0)
    whole, left, checkpoint = [], [], tmp_path / "checkpoint"
    fit(recording, inference, progress=lambda done, total: whole.append(done)).save(tmp_path / "whole")
    for _ in range(2):
        with pytest.raises(Stopped):
            fit(recording, inference, checkpoint=checkpoint, progress=interrupt)
    fit(recording, inference, checkpoint=checkpoint, progress=lambda done, total: left.append(done)).save(
        tmp_path / "resumed"
    )
    assert left == whole[2:]  # two were not done again
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_checkpoint_of_other_data_or_settings_or_a_damaged_one_is_refused(recording, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(Stopped):
        fit(recording, "laplace", checkpoint=checkpoint, progress=interrupt)
    others = sgpd.Trajectories.from_arrays(recording.runs[0].times, 1.01 * recording.runs[0].states)
    for data, inference in ((others, "laplace"), (recording, sgpd.Laplace(features=128))):
        with pytest.raises(BadInput, match="other data or with other settings; delete it"):
            fit(data, inference, checkpoint=checkpoint)
    checkpoint.write_bytes(checkpoint.read_bytes()[:-7])
    with pytest.raises(BadInput, match="cannot be read"):
        fit(recording, "laplace", checkpoint=checkpoint)
    with pytest.raises(ValueError, match="one seed"):
        sgpd.fit(recording, "separable", seed=[0, 1], checkpoint=checkpoint)


@pytest.mark.parametrize("given", [[0.1, 0.2], np.array([0.1, 0.2])])
@pytest.mark.parametrize("settings", [sgpd.Laplace, sgpd.Variational])
def test_known_noise_may_be_a_list_or_an_array(settings, given):
    assert settings(noise_std=given) == settings(noise_std=(0.1, 0.2))
    assert hash(settings(noise_std=given)) == hash(settings(noise_std=(0.1, 0.2)))
