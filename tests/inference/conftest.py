"""One short fit of a pendulum, shared by the tests that need a model and not a good one."""

import pytest

import sgpd


@pytest.fixture(scope="session")
def pendulum():
    system = sgpd.systems.get("pendulum")
    times, states = system.record(seed=1)
    return sgpd.Trajectories.from_arrays(times, states, names=["p", "q"], units=["N s", "rad"])


@pytest.fixture(scope="session")
def model(pendulum):
    return sgpd.fit(pendulum, "separable", inference=sgpd.Variational(steps=40))
