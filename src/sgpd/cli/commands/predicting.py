"""`sgpd predict`: a forecast as a table, and how far it can be trusted."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgpd.cli.files import require_table_file, write_table
from sgpd.cli.settings import numbers_in
from sgpd.cli.talk import Talk
from sgpd.errors import BadInput
from sgpd.xla.tuning import tune_unless_told_not_to

if TYPE_CHECKING:
    from sgpd.data import Trajectories
    from sgpd.judging import Assessment
    from sgpd.models import Forecast, Model
    from sgpd.runs.layout import RunFolder

MOST_VALUES = 500_000_000  # of all paths: 4 GB


@dataclass(frozen=True)
class Ask:
    """What to forecast, as it was typed."""

    duration: float
    x0: str | None = None
    from_run: str | None = None
    start: str = "end"
    step: float | None = None
    adaptive: bool = False
    paths: int = 64
    level: str = "95"
    seed: int = 0
    allow: tuple[str, ...] = ()


@dataclass(frozen=True)
class Targets:
    """The files to write: the table of the forecast, and every path if asked."""

    out: Path
    paths_out: Path | None = None


def run_predict(path: Path, ask: Ask, targets: Targets, talk: Talk):
    """Forecast from a run folder and write the table."""
    _require_sound(ask)
    levels = _levels(ask.level)
    require_table_file(targets.out)
    if targets.paths_out is not None:
        require_table_file(targets.paths_out, "--paths-out")
    tune_unless_told_not_to()
    from sgpd.runs.layout import RunFolder

    folder = RunFolder.open(path, ask.allow)
    config, stored = folder.config(), folder.assessment()
    _require_other_files(folder, config, targets)
    model, (fitted, _) = folder.model(), folder.recording()
    _require_room(model, ask)
    x0 = None if ask.x0 is None else _state(ask.x0, model.names)
    _tell_start(model, fitted, x0, ask, talk)
    _tell_method(model, ask, fitted.time_unit, talk)
    with talk.heeding():
        integrator = "adaptive" if ask.adaptive else None
        forecast = model.predict(
            x0,
            duration=ask.duration,
            step=ask.step,
            integrator=integrator,
            paths=ask.paths,
            seed=ask.seed,
            run=ask.from_run,
            start=ask.start,
        )
    _tell_reach(stored, forecast, fitted.time_unit, talk)
    about = _about(path, config, stored, model, ask, forecast)
    about["units"][fitted.time_name] = fitted.time_unit
    _write(forecast, fitted.time_name, levels, targets, about, talk)


def _require_sound(ask: Ask):
    if not (np.isfinite(ask.duration) and ask.duration > 0):
        raise BadInput(f"--duration {ask.duration:g}: the duration must be a positive number", "give it in time units")
    if ask.step is not None and not (np.isfinite(ask.step) and ask.step > 0):
        raise BadInput(f"--step {ask.step:g}: the step must be a positive number", "leave it out to step as fitted")
    if ask.x0 is not None and ask.from_run is not None and ask.start == "end":
        raise BadInput("--x0 is a start of its own, --from-run the end of a run", "give one of the two")
    if ask.paths < 2:
        raise BadInput(f"--paths {ask.paths}: a band needs at least two paths", "leave it out for 64")
    if ask.seed < 0:
        raise BadInput(f"--seed {ask.seed}: a seed is not negative", "give 0, 1, 2, ...")


def _levels(text: str) -> list[float]:
    hint = "give percents between commas, as `--level 50,95`"
    try:
        levels = [float(part.strip().removesuffix("%")) / 100 for part in text.split(",")]
    except ValueError:
        raise BadInput(f"--level {text}: this is not a list of percents", hint) from None
    if not all(0 < level < 1 for level in levels):
        raise BadInput(f"--level {text}: a level lies between 0 and 100", hint)
    return list(dict.fromkeys(levels))


def _require_other_files(folder: "RunFolder", config: dict, targets: Targets):
    """A forecast never replaces the recording that it comes from, nor a file of the run folder."""
    paths = [path.resolve() for path in (targets.out, targets.paths_out) if path is not None]
    taken = {Path(file["path"]) for file in config["files"]} | set(folder.path.resolve().glob("*"))
    for path in paths:
        if path in taken:
            raise BadInput(f"{path}: this file belongs to the run folder", "choose another name", str(path))
    if len(set(paths)) < len(paths):
        out = targets.out
        raise BadInput(f"{out}: --out and --paths-out are the same file", "choose another --paths-out", str(out))


def _require_room(model: "Model", ask: Ask):
    rows = ask.duration / (model.step if ask.step is None else ask.step)
    if rows * ask.paths * model.dimension > MOST_VALUES:
        what = f"{ask.paths} paths of {rows:.2g} rows do not fit into memory"
        raise BadInput(what, "shorten --duration, lengthen --step or ask for fewer --paths")


def _state(text: str, names: tuple[str, ...]) -> np.ndarray:
    given = numbers_in(text, "--x0")
    example = ",".join(f"{name}=1" for name in names)
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown or missing:
        what = f"there is no {unknown[0]!r} in the state" if unknown else f"{missing[0]!r} is missing"
        raise BadInput(f"--x0 {text}: {what}", f"give every coordinate, as `--x0 {example}`")
    state = np.array([given[name] for name in names])
    if not np.isfinite(state).all():
        raise BadInput(f"--x0 {text}: a state is made of finite numbers", f"write as `--x0 {example}`")
    return state


def _tell_start(model: "Model", fitted: "Trajectories", x0: np.ndarray | None, ask: Ask, talk: Talk):
    if x0 is None:
        run = model.run_index(ask.from_run)
        which, row = ("last", -1) if ask.start == "end" else ("first", 0)
        at = f"{fitted.time_name} = {fitted.runs[run].times[row]:g}"
        where, change = "", f"--x0 {','.join(f'{name}=..' for name in model.names)}"
        if len(fitted) > 1:
            where, change = f" of run {fitted.run_names[run]}", f"--from-run or {change}"
        talk.say("start", f"the {which} fitted state{where}, {at} (change with {change})")
        return
    states = np.concatenate([run.states for run in fitted.runs])
    low, high = np.nanmin(states, axis=0), np.nanmax(states, axis=0)
    outside = [name for name, inside in zip(model.names, (low <= x0) & (x0 <= high), strict=True) if not inside]
    numbers = ", ".join(f"{name} = {value:g}" for name, value in zip(model.names, x0, strict=True))
    place = "outside" if outside else "inside"
    learned = "; the field learns from it as the true first state" if ask.start == "first" else ""
    talk.say("start", f"{numbers}: {place} the recorded range{learned} (default: last fitted state)")
    if outside:
        ranges = (f"{n} {a:.3g} to {b:.3g}" for n, a, b in zip(model.names, low, high, strict=True) if n in outside)
        talk.attention(f"The start lies outside the recorded range ({', '.join(ranges)}); nothing was learned there.")


def _tell_method(model: "Model", ask: Ask, unit: str, talk: Talk):
    step = f"step {model.step:.3g} {unit} as fitted" if ask.step is None else f"step {ask.step:.3g} {unit}".rstrip()
    step = " ".join(step.split())
    method = "adaptive steps" if ask.adaptive else f"{model.integrator.name}, {step}"
    talk.say("method", f"{method}, {ask.paths} paths, seed {ask.seed}")


def _tell_reach(stored: "Assessment", forecast: "Forecast", unit: str, talk: Talk):
    """How far ahead the bands were compared with a recording."""
    from sgpd.checks import CheckId
    from sgpd.data.describing import amount

    ahead = float(forecast.times[-1] - forecast.times[0])
    tested_to = stored.checked_to
    if tested_to == 0:
        talk.attention("The bands were not checked on any held-out recording; fit with `--holdout 20%` to do so.")
    elif ahead > tested_to:
        rest = amount(ahead - tested_to, unit, digits=3)
        talk.attention(
            f"Forecasts were tested to {amount(tested_to, unit, digits=3)} ahead; the other {rest} are untested."
        )
    about_bands = [check for check in stored.diagnosis if check.id == CheckId.DRAWS]
    for check in (*about_bands, *(() if stored.scores is None else stored.scores.checks)):
        if check.verdict != "PASS":
            talk.remark(check.verdict, check.sentence)


def _about(path: Path, config: dict, stored: "Assessment", model: "Model", ask: Ask, forecast: "Forecast") -> dict:
    return {
        "schema": "sgpd.forecast/1",
        "run": str(path),
        "units": dict(zip(model.names, model.units, strict=True)),
        "structure": model.posterior.structure.name,
        "integrator": "adaptive" if ask.adaptive else model.integrator.name,
        "step": model.step if ask.step is None else ask.step,
        "x0": ask.x0 or f"{'last' if ask.start == 'end' else 'first'} fitted state",
        "start": ask.start,
        "from_run": forecast.run,
        "paths": ask.paths,
        "paths_ok": int(forecast.ok.sum()),
        "seed": ask.seed,
        "data": [file["sha256"] for file in config["files"]],
        "versions": config["versions"],
        "checked_to": stored.checked_to,
    }


def _write(forecast: "Forecast", time: str, levels: list[float], targets: Targets, about: dict, talk: Talk):
    from sgpd.models.tables import paths_dataframe, percent

    out, paths_out = targets.out, targets.paths_out
    write_table(out, forecast.to_dataframe(levels, time=time), about)
    bands = "".join(f", lo{percent(level)}, hi{percent(level)}" for level in levels)
    talk.say("wrote", f"{out}: {len(forecast.times):,} rows; {', '.join(forecast.names)} as mean, std{bands}")
    if paths_out is not None:
        frame = paths_dataframe(forecast, time)
        write_table(paths_out, frame, about)
        talk.say("wrote", f"{paths_out}: {len(frame):,} rows; every path (read it back with `--run path`)")
    talk.data(about | {"out": str(out), "paths_out": None if paths_out is None else str(paths_out)})
