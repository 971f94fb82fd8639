"""How the command line speaks: talk to standard error, results to standard output, at most 80 columns wide.

A line of talk begins with one word in a column of nine characters, so that `grep ^guessed` finds it.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from sgpd.writing import json_text

WIDTH = 80
COLUMN = 9
STYLES = {"PASS": "green", "ATTENTION": "yellow", "FAIL": "bold red", "NOT MEASURED": "cyan"}
TENTHS = 10

Progress = Callable[[int, int], None]


class Talk:
    """What a command says while it works, and what it has found. `quiet`: results only; `as_json`: results as JSON."""

    def __init__(self, quiet: bool = False, as_json: bool = False):
        self.quiet, self.as_json = quiet, as_json
        self.err = Console(stderr=True, highlight=False)
        self.out = Console(highlight=False)

    def say(self, word: str, sentence: str):
        """One line of talk, or several with the word before the first."""
        if not self.quiet:
            _print(self.err, f"{word:<{COLUMN - 1}} ", sentence)

    def say_all(self, pairs: Sequence[tuple[str, str]]):
        """Several lines."""
        for word, sentence in pairs:
            self.say(word, sentence)

    def attention(self, sentence: str):
        """Something that deserves a look, while a command works."""
        self.remark("ATTENTION", sentence)

    def remark(self, verdict: str, sentence: str):
        """A verdict and its sentence, while a command works."""
        if not self.quiet:
            _print(self.err, f"{verdict}  ", sentence, STYLES[verdict])

    def result(self, lead: str, text: str = "", style: str = ""):
        """A line of the result: some words in front, and text that is wrapped beside them."""
        if not self.as_json:
            _print(self.out, lead, text, style)

    def verdict(self, verdict: str, sentence: str, indent: str = "  ", width: int = 14):
        """A verdict and its sentence."""
        self.result(f"{indent}{verdict:<{width}}", sentence, STYLES.get(verdict, ""))

    def data(self, content: dict):
        """The result for machines."""
        if self.as_json:
            sys.stdout.write(f"{json_text(content)}\n")

    @contextmanager
    def heeding(self, told_later: type[Warning] | None = None) -> Iterator[None]:
        """Warnings of sgpd become lines of talk, but not those that are told later; others stay what they are."""
        from sgpd.errors import SgpdWarning

        with warnings.catch_warnings():
            usual = warnings.showwarning

            def show(message, category, *place, **more):
                if told_later is not None and issubclass(category, told_later):
                    return
                if issubclass(category, SgpdWarning):
                    self.attention(str(message))
                else:
                    usual(message, category, *place, **more)

            warnings.filterwarnings("always", category=SgpdWarning)
            warnings.showwarning = show
            yield

    @contextmanager
    def progress(self, word: str, noun: str = "") -> Iterator[Progress]:
        """A bar with the time that remains on a terminal; elsewhere at most ten lines. Without a noun, shares only."""
        if self.quiet:
            yield lambda done, total: None
        elif self.err.is_terminal:
            with _bar(self.err, word) as update:
                text = lambda done, total: f"{noun} {min(done + 1, total)} of {total}" if noun else ""
                yield lambda done, total: update(text(done, total), done, total)
        else:
            yield lambda done, total: self._line(word, noun, done, total)

    def _line(self, word: str, noun: str, done: int, total: int):
        if not noun:
            self.say(word, f"{done / total:.0%} done")
        elif total <= TENTHS or done * TENTHS // total > (done - 1) * TENTHS // total:
            self.say(word, f"{noun} {done} of {total}")


def _print(console: Console, lead: str, text: str, style: str = ""):
    """Text beside its first words, wrapped at 80 columns under itself. Long names are not broken."""
    room = max(WIDTH - len(lead), 20)
    first, *more = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    line = Text.assemble((lead, style), first) if first else Text(lead.rstrip(), style)
    console.print(line, soft_wrap=True)
    for each in more:
        console.print(Text(" " * len(lead) + each), soft_wrap=True)


def clock_time(seconds: float) -> str:
    """0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def _bar(console: Console, word: str) -> Iterator[Callable[[str, int, int], None]]:
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn

    class Clock(ProgressColumn):
        """The time that remains; before that is known, the time that has passed."""

        def render(self, task) -> Text:
            if task.time_remaining is None:
                return Text(f"{clock_time(task.elapsed or 0)} so far")
            return Text(f"{clock_time(task.time_remaining)} left")

    columns = (
        TextColumn(f"{word:<{COLUMN - 2}} {{task.description}}"),
        BarColumn(24),
        TextColumn("{task.percentage:3.0f}%"),
        Clock(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compiling", total=None)
        yield lambda text, done, total: bar.update(task, description=text, completed=done, total=total)
