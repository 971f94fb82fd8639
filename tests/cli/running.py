"""Commands in this process, and what they printed."""

import sys
from typing import NamedTuple

import pytest

from sgpd.cli.app import main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def sgpd_here(monkeypatch, capsys):
    """A function that runs a command line and gives exit code, standard output and standard error."""

    def run(*arguments) -> Ended:
        monkeypatch.setattr(sys, "argv", ["sgpd", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        code = exit_.value.code
        assert isinstance(code, int)
        return Ended(code, *capsys.readouterr())

    return run
