"""Keys are fixed by the test's name, silent broadcasting is an error, compiled programs are kept between tests."""

import os
import zlib
from pathlib import Path

import jax
import jax.random as jr
import pytest

import sgpd.arrays
from tests.guesses import Case, recorded

sgpd.xla.tune()
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_disable_most_optimizations", True)  # tests compile much and compute little
# One place for the tests, the command line inside of them and the processes that they start.
CACHE = Path(__file__).parent.parent / ".jax_cache"
os.environ["XDG_CACHE_HOME"] = str(CACHE)
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE / "sgpd")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
jax.config.update("jax_compilation_cache_dir", str(CACHE / "sgpd"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


@pytest.fixture
def getkey(request):
    """A function that gives a new key at each call; the same keys in every run of the same test."""
    state = [jr.key(zlib.crc32(request.node.nodeid.encode()))]

    def next_key():
        state[0], key = jr.split(state[0])
        return key

    return next_key


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs():
    """Thousands of live programs exhaust the process's memory maps; the cache on disk brings back what is needed."""
    yield
    jax.clear_caches()


@pytest.fixture(scope="session")
def pendulum():
    system = sgpd.systems.get("pendulum")
    times, states = system.record(seed=1)
    return sgpd.Trajectories.from_arrays(times, states, names=["p", "q"], units=["N s", "rad"])


@pytest.fixture(scope="session")
def model(pendulum):
    return sgpd.fit(pendulum, "separable", inference=sgpd.Variational(steps=40))


@pytest.fixture(scope="session")
def judged() -> Case:
    """The default fit of a short recording, with its last rows held out."""
    data, held, _ = sgpd.data.hold_out(recorded("pendulum", 125), 0.2)
    fitted = sgpd.fit(data, "separable")
    return Case(fitted, data, sgpd.judging.judge_held_out(fitted, held, paths=16))
