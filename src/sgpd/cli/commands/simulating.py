"""`sgpd simulate`: a noisy recording of a system that is known."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sgpd.cli.files import require_table_file, write_table
from sgpd.cli.talk import Talk
from sgpd.errors import BadInput
from sgpd.xla.tuning import tune_unless_told_not_to

MOST_ROWS = 10_000_000


@dataclass(frozen=True)
class Ask:
    """What to record, as it was typed; None: as in the paper."""

    system: str
    seed: int = 0
    noise_var: float | None = None
    step: float | None = None
    duration: float | None = None


def run_simulate(ask: Ask, out: Path, truth: Path | None, talk: Talk, hint: bool = True):
    """Write a recording and, if asked, the exact solution."""
    tune_unless_told_not_to()
    from sgpd import systems

    system = systems.get(ask.system)
    require_table_file(out)
    if truth is not None:
        require_table_file(truth, "--truth")
        if truth.absolute() == out.absolute():
            raise BadInput(f"--truth {truth}: this is the recording's own file", "choose another --truth")
    if ask.seed < 0:
        raise BadInput(f"--seed {ask.seed}: a seed is not negative", "give 0, 1, 2, ...")
    variance = ask.noise_var
    if variance is not None and not (np.isfinite(variance) and variance >= 0):
        raise BadInput(f"--noise-var {variance:g}: a variance is a number that is not negative", "give 0 for none")
    system = dataclasses.replace(
        system,
        step=system.step if ask.step is None else ask.step,
        duration=system.duration if ask.duration is None else ask.duration,
        noise_variance=system.noise_variance if variance is None else (variance,) * len(system.names),
    )
    _require_rows(system)
    times, states = system.record(ask.seed)
    _write(out, system.names, times, states, talk)
    if truth is not None:
        ahead = np.arange(round(max(system.horizon, system.duration) / system.step) + 1) * system.step
        _write(truth, system.names, ahead, system.simulate(system.x0, ahead), talk)
    made = {"out": str(out), "rows": len(times), "system": ask.system, "seed": ask.seed}
    talk.data({"schema": "sgpd.simulate/1"} | made)
    if hint:
        talk.result(
            "Next:    ", f"sgpd fit {out} --structure {system.structure} --x0-known --out {out.with_suffix('')}"
        )


def _require_rows(system):
    if not (np.isfinite(system.step) and system.step > 0):
        raise BadInput(f"--step {system.step:g}: the step must be a positive number", "leave it out for the paper's")
    rows = system.duration / system.step
    if not 1.5 <= rows <= MOST_ROWS:
        what = f"--duration {system.duration:g} is not at least two steps of {system.step:g}, and at most {MOST_ROWS:,}"
        raise BadInput(what, "choose another --duration or --step")


def _write(path: Path, names, times: np.ndarray, states: np.ndarray, talk: Talk):
    import pandas as pd

    write_table(path, pd.DataFrame({"t": times} | dict(zip(names, states.T, strict=True))), {})
    talk.say("wrote", f"{path}: {len(times)} rows; t, {', '.join(names)}")
