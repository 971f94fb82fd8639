"""The reference names every option; the examples run."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from sgpd.cli.app import app

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
COMMANDS = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_reference(command):
    text = (ROOT / "docs" / "cli.md").read_text()
    assert command in text
    options = [name for param in COMMANDS[command].params for name in param.opts if name.startswith("--")]
    assert [name for name in options if name not in text and name != "--help"] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_has_something_to_say(path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 4
    assert "nan" not in done.stdout.lower().split()
