"""`sgpd paper` at the terminal: bars while it runs, tables when it is done."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sgpd.xla.tuning import tune_unless_told_not_to

if TYPE_CHECKING:
    from sgpd.paper.reproduce import Ask


class Talk:
    """One line for each experiment that ends, and a bar for each that runs where there is a terminal."""

    def __init__(self, console: Console):
        self.console = console
        columns = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.percentage:3.0f}%"))
        self.bars = Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)
        self.running = {}

    def begin(self, experiment, index: int, count: int, trials: list):
        """A new bar."""
        which = f"{index + 1}/{count}"
        line = f"{which:<8} {experiment.name:<20} {len(trials)} trials"
        bar = self.bars.add_task(line, total=None)
        self.running[experiment] = bar, line
        return lambda done, total: self.bars.update(bar, completed=done, total=total)

    def end(self, experiment, seconds: float):
        """A line that stays."""
        bar, line = self.running.pop(experiment)
        self.bars.remove_task(bar)
        self.console.print(f"{line}, {seconds:.0f} s", highlight=False)


def run_paper(out: Path, ask: "Ask", jobs: int):
    """Run what is missing of what is asked for (see `reproduce`), write everything, print the L2 table."""
    tune_unless_told_not_to()
    from sgpd.paper.output.tables import asked as trials_asked
    from sgpd.paper.output.tables import l2_table
    from sgpd.paper.reproduce import reproduce

    console = Console(stderr=True)
    began, talk = time.monotonic(), Talk(console)
    with talk.bars:
        results, about = reproduce(out, talk, ask, jobs)
    title, remark, header, rows = l2_table(results, trials_asked(about))
    table = Table(title=title, caption=remark, box=None)
    for heading in header:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    console.print(
        f"wrote    {out / 'paper.html'}, tables.md, results.json, figures/ ({time.monotonic() - began:.0f} s in all)",
        highlight=False,
        soft_wrap=True,
    )
