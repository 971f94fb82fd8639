"""Who sets XLA's flags and threads, and when: never an import, and nobody where JAX has computed already."""

import os
import subprocess
import sys
import warnings

import pytest

import sgpd
from sgpd.errors import SgpdWarning
from sgpd.xla import tuning

MODULES = "arrays checks data gp inference integrators judging models models.fit paper plots report runs systems xla"
SHOW = "import os; print(os.environ.get('NPROC'), os.environ.get('XLA_FLAGS'))"
USE_JAX = "import jax; jax.numpy.zeros(1).block_until_ready()"
SIMULATE = "import sgpd; sgpd.systems.get('pendulum').simulate([1.0, 1.0], [0.0, 0.1])"
COUNT = "import warnings; seen = warnings.catch_warnings(record=True).__enter__(); warnings.simplefilter('always')"
TOLD = "print(sum('sgpd.xla.tune()' in str(w.message) for w in seen))"


def said_by(*statements: str, **environment: str) -> list[str]:
    """What a fresh process prints, in which XLA is as it comes."""
    kept = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "NPROC", "KMP_DUPLICATE_LIB_OK")}
    command = [sys.executable, "-c", "\n".join(statements)]
    done = subprocess.run(
        command, env=kept | environment, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_import_sets_double_precision_and_nothing_else():
    settings = "dict(jax.config.values)"
    said = said_by(
        f"import importlib, os, jax; before, was = dict(os.environ), {settings}",
        f"[importlib.import_module('sgpd.' + name) for name in '{MODULES}'.split()]",
        "print(dict(os.environ) == before)",
        f"print(*(name for name, value in {settings}.items() if name not in was or value is not was[name]))",
        "from sgpd.xla.tuning import jax_runs; print(jax_runs())",
    )
    assert said == ["True", "jax_enable_x64", "False"]


@pytest.mark.parametrize("first", [SIMULATE, "import sgpd; sgpd.xla.tune()"])
def test_what_comes_first_in_a_process_tunes_it_and_again_is_silent(first):
    threads, flags = said_by(COUNT, first, SIMULATE, SHOW, TOLD)[0].split(maxsplit=1)
    assert int(threads) >= 8
    assert "--xla_cpu_multi_thread_eigen=false" in flags


@pytest.mark.parametrize(
    ("before", "environment", "told"),
    [("", {"SGPD_TUNE": "0"}, "0"), (USE_JAX, {}, "1"), (USE_JAX, {"SGPD_TUNE": "0"}, "0")],
)
def test_where_jax_runs_or_tuning_is_switched_off_all_stays_and_the_first_is_said_once(before, environment, told):
    assert said_by(before, COUNT, SIMULATE, SIMULATE, SHOW, TOLD, **environment) == ["None None", told]


CACHE = "import jax; print(jax.config.jax_compilation_cache_dir)"


@pytest.mark.parametrize(
    ("before", "environment", "expected"),
    [
        ("", {}, "{home}/sgpd"),
        ("", {"SGPD_CACHE": "0"}, "None"),
        ("", {"JAX_COMPILATION_CACHE_DIR": "/mine"}, "/mine"),
        (USE_JAX, {"SGPD_TUNE": "0"}, "None"),
    ],
)
def test_compiled_programs_are_kept_where_the_user_has_chosen_nothing_else(before, environment, expected, tmp_path):
    environment = {"JAX_COMPILATION_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path)} | environment
    told = said_by(
        "import os; os.environ['JAX_COMPILATION_CACHE_DIR'] or os.environ.pop('JAX_COMPILATION_CACHE_DIR')",
        before,
        SIMULATE,
        CACHE,
        **environment,
    )
    assert told == [expected.format(home=tmp_path)]


def test_a_tuning_that_comes_too_late_says_so():
    assert said_by(USE_JAX, COUNT, "import sgpd; sgpd.xla.tune()", SHOW, TOLD) == ["None None", "1"]


def test_its_warning_says_of_which_system_the_times_are():
    of_what, _, more = tuning.TOO_LATE.partition(" 1.6 times ")
    assert of_what.endswith("a fit of a pendulum takes")
    assert "with more dimensions it is more" in more


@pytest.mark.parametrize("given", ["--xla_cpu_multi_thread_eigen=true", "--xla_backend_extra_options=a=b"])
def test_what_the_user_has_chosen_stays_and_the_rest_is_ours(given):
    ((threads, *flags),) = map(str.split, said_by("import sgpd; sgpd.xla.tune()", SHOW, XLA_FLAGS=given, NPROC="3"))
    names = [flag.split("=")[0] for flag in flags]
    assert threads == "3"
    assert given in flags
    assert "--xla_cpu_multi_thread_eigen" in names
    assert len(names) == len(set(names))


def test_the_command_line_tunes(tmp_path):
    run = f"from typer.testing import CliRunner; from sgpd.cli.app import app; out = {str(tmp_path / 'a.csv')!r}"
    call = "assert CliRunner().invoke(app, ['simulate', 'pendulum', '--out', out]).exit_code == 0"
    assert "multi_thread_eigen" in said_by(run, call, SHOW)[-1]


def test_a_process_of_the_paper_is_tuned():
    prepare = "from sgpd.paper import workers; workers._prepare(multiprocessing.SimpleQueue(), {})"
    assert "multi_thread_eigen" in said_by("import multiprocessing", prepare, SHOW)[-1]


def test_a_program_of_many_solves_ends_in_a_process_that_is_not_tuned():
    """Batches side by side, each of them two batched solves at every step of a loop, hang on two threads."""
    program = """
import jax, jax.numpy as jnp, numpy as np
import sgpd.arrays
from sgpd.xla.batches import in_batches
from sgpd.xla.triangular import inverse_root
def program(matrices):
    solved = lambda x: jax.vmap(inverse_root)(matrices * (2 + x)).sum()
    return jax.lax.fori_loop(0, 50, lambda i, x: 1e-9 * (solved(x) + solved(x + 1)), 0.0) + matrices[:, 0, 0]
print(in_batches(jax.jit(program), np.stack([np.eye(30)] * 640), (64,)).shape)
"""
    assert said_by(USE_JAX, program, NPROC="2") == ["(640,)"]


@pytest.mark.parametrize(("threads", "at_once"), [(1, 1), (2, 1), (7, 1), (8, 2), (64, 4)])
def test_no_more_programs_run_side_by_side_than_the_pool_has_threads_for(monkeypatch, threads, at_once):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setenv("NPROC", str(threads))
    assert tuning.programs_at_once() == at_once
    assert tuning.pool_is_narrow() == (threads < 8)


def test_a_tuned_pool_has_room_for_one_program_a_core(monkeypatch):
    monkeypatch.delenv("NPROC")
    for cores in (1, 2, 8, 64):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        monkeypatch.setenv("NPROC", str(tuning._threads()))
        assert tuning.programs_at_once() == cores


def test_the_tests_themselves_are_tuned():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SgpdWarning)
        sgpd.xla.tune()
