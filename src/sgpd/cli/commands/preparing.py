"""From the options of `sgpd fit` to what is fitted: read, guess, split, choose the method. Nothing is written."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sgpd.cli.settings import make_structure
from sgpd.cli.talk import Talk
from sgpd.errors import BadInput, unknown_name

if TYPE_CHECKING:
    from sgpd.data import Trajectories
    from sgpd.integrators import Integrator
    from sgpd.structures import Structure


class Prepared(NamedTuple):
    """All that a fit needs, and what was said on the way to it."""

    structure: "Structure"
    method: "Integrator"
    fitted: "Trajectories"
    held_out: "Trajectories | None"
    said: tuple[tuple[str, str], ...]
    files: tuple[str, ...]


def prepare(files: Sequence[str], settings: dict[str, Any], talk: Talk) -> Prepared:
    """Read the recording and refuse what cannot be fitted."""
    from sgpd.checks import require_compatible
    from sgpd.data import ReadingOptions, hold_out, read_recording
    from sgpd.models.fit import ENGINES, choose_integrator

    if not files:
        raise BadInput("no recording was named", "write `sgpd fit mine.csv --structure ... --out ...`")
    structure = make_structure(settings)
    if settings["inference"] not in ENGINES:
        raise unknown_name("inference engine", settings["inference"], ENGINES)
    asked = {name: settings[name] for name in ReadingOptions.__dataclass_fields__ if name in settings}
    asked |= {"units": settings["units"] or None, "roles": structure.roles}
    reading = read_recording(files, ReadingOptions(**asked))
    fitted, held_out, said = reading.data, None, reading.said
    if settings["holdout"] is not None:
        fitted, held_out, sentence = hold_out(reading.data, settings["holdout"])
        said = (*said, ("split", sentence))
    structure = structure.named(fitted.names)
    structure.groups(fitted.dimension)  # refuses a state that it cannot have
    method = choose_integrator(settings["integrator"], structure, fitted)
    require_compatible(structure.traits(fitted.dimension), method, structure.name)
    said = (*said, ("model", _model(structure, method, settings["integrator"])))
    talk.say_all(said)
    return Prepared(structure, method, fitted, held_out, said, reading.files)


def _model(structure, method, asked: str) -> str:
    """The pair in words."""
    kind = "implicit" if method.implicit else "explicit"
    symplectic = "symplectic, " if method.symplectic else ""
    auto = " (auto)" if asked == "auto" else ""
    return f"{structure.name} + {method.name}{auto}: {symplectic}order {method.order}, {kind}"


def files_with_hashes(files: Sequence[str]) -> list[dict[str, str]]:
    """Each file as it was given, where it is, and its hash."""
    from sgpd.runs.packing import sha256

    return [{"given": file, "path": str(Path(file).resolve()), "sha256": sha256(file)} for file in files]
