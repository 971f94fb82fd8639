"""How XLA is set up, before it computes anything."""

import os
import subprocess
import sys

import pytest

SHOW = "import sgpd.arrays, os; print(os.environ['XLA_FLAGS'])"


def flags(given: str) -> list[str]:
    environment = os.environ | {"XLA_FLAGS": given}
    done = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("given", ["", "--xla_cpu_multi_thread_eigen=true", "--xla_backend_extra_options=a=b"])
def test_what_the_user_has_chosen_stays_and_the_rest_is_ours(given):
    found = flags(given)
    names = [flag.split("=")[0] for flag in found]
    assert "--xla_cpu_multi_thread_eigen" in names
    assert len(names) == len(set(names))
    assert given == "" or given in found
