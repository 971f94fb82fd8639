"""`sgpd fit`: read, split, fit into a run folder that survives being killed, judge, tell."""

import math
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from sgpd.cli.commands.preparing import Prepared, files_with_hashes, prepare
from sgpd.cli.ending import INTERRUPTED
from sgpd.cli.settings import DEFAULTS, make_structure, require_same
from sgpd.cli.talk import Talk
from sgpd.errors import BadInput, CheckWarning, NumericalFailure
from sgpd.xla.tuning import tune_unless_told_not_to

if TYPE_CHECKING:
    from sgpd.judging import Assessment
    from sgpd.models import Model
    from sgpd.runs.layout import RunFolder, State

ASSUMED = "separable"  # to look at a recording by
_PACKAGES = ("sgpd", "jax", "jaxlib", "numpy", "equinox", "optax", "diffrax")


@dataclass(frozen=True)
class Where:
    """The run folder, and what to do if there is one."""

    out: Path | None
    resume: bool = False
    force: bool = False
    dry_run: bool = False


class Fitted(NamedTuple):
    """A fit that has ended."""

    model: "Model"
    assessment: "Assessment"


def run_fit(files: Sequence[str], given: dict[str, Any], where: Where, talk: Talk) -> Fitted | None:
    """Start a fit, go on with one, or only look at the data. None where there was nothing to fit."""
    tune_unless_told_not_to()
    if where.dry_run:
        _look(files, given, talk)
        return None
    if where.out is None:
        raise BadInput("no run folder was named", "add `--out NAME`, or `--dry-run` to look at the data only")
    from sgpd.runs.places import to_work_in

    folder, state = to_work_in(where.out, resume=where.resume, force=where.force)
    if state != "absent":
        folder.require_same_files(files)
        require_same(given, folder.config()["settings"], where.out)
    try:
        return _work(folder, state, files, given, where.out, talk)
    except KeyboardInterrupt:
        _stopped(folder, files, where.out)
        raise typer.Exit(INTERRUPTED) from None
    except (NumericalFailure, OSError) as problem:
        problem.add_note(_left(folder, files, where.out, problem))
        raise


def _look(files: Sequence[str], given: dict[str, Any], talk: Talk):
    """Read, guess, print. Without a structure, momenta and positions are looked for."""
    prepared = prepare(files, DEFAULTS | {"structure": ASSUMED} | given, talk)
    if "structure" not in given:
        talk.say("note", f"no structure was named: read as for {ASSUMED!r}; change with --structure")
    talk.result("Nothing was written.", "")
    talk.data({"schema": "sgpd.dry-run/1", "said": [list(pair) for pair in prepared.said]})


def _work(folder: "RunFolder", state: "State", files: Sequence[str], given: dict[str, Any], out: Path, talk: Talk):
    from sgpd.runs.places import working_in

    began = time.monotonic()
    prepared = prepare(files, DEFAULTS | given, talk) if state == "absent" else None
    with working_in(folder, out, state):
        if state == "finished":
            talk.say("done", f"{out} is finished; nothing is left to do")
            return None
        if prepared is not None:
            folder.begin(_config(prepared, DEFAULTS | given), prepared.fitted, prepared.held_out)
        else:
            talk.say("resume", f"{out}: {_saved(folder)}")
        fitted = _fit(folder, talk)
        seconds = time.monotonic() - began
        folder.finish(fitted.model, fitted.assessment.to_dict() | {"seconds": seconds})
    _tell(fitted.assessment, out, seconds, talk)
    return fitted


def _fit(folder: "RunFolder", talk: Talk) -> Fitted:
    """Everything comes from the folder, so that a fit that goes on is the fit that was begun."""
    settings = folder.config()["settings"]
    fitted, _ = folder.recording()
    model = _model(folder, settings, fitted, talk)
    return Fitted(model, judged(folder, model, talk))


def judged(folder: "RunFolder", model: "Model", talk: Talk) -> "Assessment":
    """The assessment of the model of a run folder, with the forecasts of what was held out."""
    from sgpd.judging import assess
    from sgpd.judging.assessment import long_enough

    fitted, held_out = folder.recording()
    talk.say("check", "every claim, on drawn fields" + ("" if held_out is None else "; bands, on held-out rows"))
    duration, seed = long_enough(fitted.duration, model.step), folder.config()["seed"]
    with talk.heeding():
        return assess(model, held_out, duration, seed=seed, time_unit=fitted.time_unit)


def _model(folder: "RunFolder", settings: dict[str, Any], fitted, talk: Talk) -> "Model":
    import sgpd

    noun = (
        "" if settings["inference"] == "laplace" else "epoch"
    )  # its stages differ in length, so it tells the share of the work
    with talk.heeding(told_later=CheckWarning), talk.progress("fit", noun) as progress:
        return sgpd.fit(
            fitted,
            make_structure(settings),
            settings["integrator"],
            x0=settings["x0"],
            inference=_engine(settings),
            seed=settings["seed"],
            progress=progress,
            checkpoint=folder.checkpoint,
        )


def _engine(settings: dict[str, Any]):
    from sgpd.models.fit import ENGINES

    engine = ENGINES[settings["inference"]]()
    given = {name: settings.get(name) for name in ("inducing", "rows")}  # a run folder of before may not have them
    return replace(engine, **{name: value for name, value in given.items() if value is not None})


def _config(prepared: Prepared, settings: dict[str, Any]) -> dict:
    from importlib.metadata import version

    return {
        "command": shlex.join(["sgpd", *sys.argv[1:]]),
        "files": files_with_hashes(prepared.files),
        "settings": settings,
        "integrator": prepared.method.name,
        "said": [list(pair) for pair in prepared.said],
        "seed": settings["seed"],
        "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
    }


def _saved(folder: "RunFolder") -> str:
    if not folder.checkpoint.exists():
        return "nothing saved yet but the settings"
    return f"saved up to {time.time() - folder.checkpoint.stat().st_mtime:.0f} s ago"


def _stopped(folder: "RunFolder", files: Sequence[str], out: Path):
    if folder.state == "absent":
        print("\nStopped; nothing was written.", file=sys.stderr)
        return
    print(
        f"\nStopped; {_saved(folder)}. Go on with (settings come from the folder):\n  {_resuming(files, out)}",
        file=sys.stderr,
    )


def _left(folder: "RunFolder", files: Sequence[str], out: Path, problem: Exception) -> str:
    """What a fit that failed has left behind, and how to go on."""
    if folder.state == "absent":
        return "Nothing of this fit was kept."
    if isinstance(problem, NumericalFailure):
        return f"{out} is as it was; start anew with other settings and `--force`."
    return f"What was saved is kept; go on with `{_resuming(files, out)}`."


def _resuming(files: Sequence[str], out: Path) -> str:
    return shlex.join(["sgpd", "fit", *files, "--out", str(out), "--resume"])


def _tell(assessment: "Assessment", out: Path, seconds: float, talk: Talk):
    from sgpd.data.describing import amount

    talk.data(assessment.to_dict() | {"run": str(out), "seconds": seconds})
    talk.result(f"Fitted in {seconds:.0f} s; run folder: {out}")
    if assessment.learned is not None:
        talk.result("  learned         ", str(assessment.learned))
    noise = ", ".join(f"{name} {value:.2g}" for name, value in assessment.noise.items())
    talk.result("  noise           ", f"{noise} (standard deviation, learned)")
    if assessment.error:
        shares = ", ".join(f"{share:.0%} ({name})" for name, share in assessment.error.items())
        tested_to = amount(assessment.checked_to, assessment.time_unit, digits=3)
        talk.result("  held out        ", f"rollout error {shares} of the data's standard deviation over {tested_to}")
    for check in assessment.checks:
        talk.verdict(check.verdict, check.words)
    talk.result("Verdict: ", assessment.sentence)


def tell_next(assessment: "Assessment", out: Path, talk: Talk):
    """What to do with a run folder: forecast as far as that was tested, or as the recording is long."""
    from sgpd.judging.assessment import TIMES_LONGER

    ahead = two_digits(assessment.checked_to or assessment.duration / TIMES_LONGER)
    talk.result("Next:    ", f"sgpd report {out}")
    talk.result("         ", f"sgpd predict {out} --duration {ahead:g} --out forecast.csv")


def two_digits(value: float) -> float:
    """A positive number rounded down to two digits, so that it is not beyond what was tested."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / unit + 1e-9) * unit
