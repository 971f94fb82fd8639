"""The reference names every option; commands in the documentation can be typed; tutorial and examples run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from sgpd.cli.app import app
from sgpd.data.reading.files import BINARY, TEXT

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = ROOT / "docs" / "first-ten-minutes.md"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
COMMANDS = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_reference(command):
    text = (ROOT / "docs" / "cli.md").read_text()
    assert command in text
    shown = [param for param in COMMANDS[command].params if not getattr(param, "hidden", False)]  # not old names
    options = [name for param in shown for name in param.opts if name.startswith("--")]
    assert [name for name in options if name not in text and name != "--help"] == []


# Commands as they are typed: in a block of code, perhaps after a prompt. Those with placeholders are left alone.
PLACEHOLDER = re.compile(r"^[A-Z]+\b|\[|\||\.\.\.")
TYPED = re.compile(r"^    (?:\$ )?sgpd (?P<words>[^\n#]+)", re.MULTILINE)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def typed(page):
    found = [shlex.split(match["words"]) for match in TYPED.finditer(page.read_text())]
    return [words for words in found if not any(PLACEHOLDER.search(word) for word in words)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_in_the_documentation_can_be_typed(page):
    for words in typed(page):
        command = COMMANDS[words[0]]
        with command.make_context(words[0], words[1:]):
            pass


# Files of the project as a page names them: `data/gaps.py`, `tests/test_layers.py`, `shooting.py`.
FILE = re.compile(r"`([\w./-]+\.(?:py|j2|css|js|md|toml|lock))`")
FILES = [path.relative_to(ROOT).as_posix() for part in ("src", "tests", "docs") for path in (ROOT / part).rglob("*.*")]


def test_every_file_that_the_architecture_names_is_there():
    named = FILE.findall((ROOT / "docs" / "architecture.md").read_text())
    assert len(named) > 20
    assert [name for name in named if "NAME" not in name and not _is_there(name)] == []
    assert not _is_there("report/elements.py")


def _is_there(name: str) -> bool:
    return (ROOT / name).exists() or any(f"/{path}".endswith(f"/{name}") for path in FILES)


def test_every_format_that_is_read_is_in_the_documentation():
    text = (ROOT / "docs" / "your-own-file.md").read_text()
    assert [suffix for suffix in (*TEXT, *BINARY) if suffix and f"`{suffix}`" not in text] == []


def test_commands_are_found_where_there_are_some():
    assert {"simulate", "fit", "report", "predict", "check"} == {words[0] for words in typed(TUTORIAL)}
    assert [words[0] for words in typed(ROOT / "README.md")][:4] == ["fit", "fit", "report", "predict"]


def test_the_tutorial_is_what_happens(tmp_path, monkeypatch, sgpd_here):
    """Every command ends well and says the lines shown under it; the Python part runs on what they have left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sgpd.report.write_report", lambda path, *_: path)  # the page has tests of its own
    monkeypatch.setattr("sgpd.judging.judge_held_out", lambda *_, **__: None)
    text = TUTORIAL.read_text()
    parts = re.split(r"^    \$ sgpd ", text, flags=re.MULTILINE)[1:]
    for part in parts:
        command, *lines = part.splitlines()
        ended = sgpd_here(*shlex.split(command))
        assert ended.code == 0, ended.err
        said = (ended.err + ended.out).splitlines()
        assert [line for line in lines if line.startswith("    ") and line[4:] not in said] == []
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(program, str(TUTORIAL), "exec"), {})
    assert (tmp_path / "elsewhere.csv").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_has_something_to_say(path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 4
    assert "nan" not in done.stdout.lower().split()
