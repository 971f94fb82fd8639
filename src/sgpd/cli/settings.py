"""What decides a fit: the options of the command line as plain values that a run folder keeps and compares."""

import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from sgpd.data.reading.options import LISTS, ReadingOptions
from sgpd.errors import BadInput, unknown_name

if TYPE_CHECKING:
    from sgpd.structures import Structure

DEFAULTS: dict[str, Any] = {
    **{name: option.default for name, option in ReadingOptions.__dataclass_fields__.items() if name != "roles"},
    "units": {},
    "structure": None,
    "options": {},
    "depends_on": {},
    "integrator": "auto",
    "inference": "laplace",
    "inducing": None,
    "rows": None,
    "x0": "latent",
    "holdout": None,
    "seed": 0,
}
_FLAGS = {"units": "--unit", "options": "--option", "depends_on": "--depends-on", "x0": "--x0-known"}
_MATRICES = ("depends_on", "sees", "q")  # options of structures that are not words
MOST_HELD_OUT = 0.9
LEAST_ROWS = 500  # one stretch


def given_settings(**texts) -> dict[str, Any]:
    """The settings that were given, as values; what was not given is left out."""
    given = {name: text for name, text in texts.items() if text is not None and text != []}
    for name in LISTS:
        if name in given:
            given[name] = names_in(given[name], flag(name))
    if "units" in given:
        given["units"] = dict(_pair(text, "--unit", "q=rad") for text in given["units"])
    if "options" in given:
        pairs = (_pair(text, "--option", "form=lie-poisson") for text in given["options"])
        given["options"] = {name: _value(text) for name, text in pairs}
    if "depends_on" in given:
        given["depends_on"] = dict(_pair(text, "--depends-on", "V='q1 - q2'") for text in given["depends_on"])
    if "holdout" in given:
        given["holdout"] = _share(given["holdout"])
    if given.get("decimal", ".") not in (".", ","):
        raise BadInput(f"--decimal {given['decimal']}: this is no decimal mark", "give `--decimal ,`, or leave it out")
    if given.get("seed", 0) < 0:
        raise BadInput(f"--seed {given['seed']}: a seed is not negative", "give 0, 1, 2, ...")
    if given.get("inducing", 1) < 1:
        raise BadInput(f"--inducing {given['inducing']}: a latent needs a point", "give a number such as 100")
    if given.get("rows", LEAST_ROWS) < LEAST_ROWS:
        raise BadInput(
            f"--rows {given['rows']}: too few to fit", f"give at least {LEAST_ROWS}, or leave it out for all"
        )
    if "rows" in given and given.get("inference", DEFAULTS["inference"]) != DEFAULTS["inference"]:
        raise BadInput("--rows: only the default engine takes all rows of a recording", "leave it out")
    return given


def flag(name: str) -> str:
    """The option of a setting."""
    return _FLAGS.get(name, f"--{name}")


def require_same(given: dict[str, Any], kept: dict[str, Any], folder: object):
    """Refuse to go on with a fit under other settings than its own."""
    for name, value in given.items():
        if kept.get(name) != value:
            raise BadInput(
                f"{flag(name)} differs from the settings with which {folder} was begun",
                f"leave {flag(name)} out (settings come from the folder), or start anew with `--force`",
            )


def make_structure(settings: dict[str, Any]) -> "Structure":
    """The structure with its options."""
    from sgpd import structures

    name, options = settings["structure"], settings["options"]
    depends_on = settings.get("depends_on") or {}  # run folders of earlier versions have none
    if name is None:
        known = ", ".join(structures.names())
        raise BadInput(
            "no structure was named", f"add `--structure S`, one of {known}; `sgpd structures` says what each promises"
        )
    if ":" in name:
        sys.path.insert(0, os.getcwd())  # a module of the user's own, as `python -m` finds it
    kind = type(structures.get(name))
    known = [field.name for field in dataclasses.fields(kind) if field.name != "sees"]
    forms = get_args(get_type_hints(kind).get("form"))
    for option, value in options.items():
        if option not in known:
            hint = f"it has {', '.join(known)}"
            raise BadInput(f"--option {option}: the structure {name!r} has no such option", hint)
        if (option in _MATRICES) == isinstance(value, str):
            shape = {"q": "[[1, 0], [0, 2]]", "depends_on": '{"V": [[1, -1]]}'}.get(option, "a word")
            raise BadInput(f"--option {option}={value}: this cannot be taken", f"give {shape}")
        if option == "form" and value not in forms:
            raise unknown_name(f"form of {name!r}", value, forms)
    return structures.get(name, **(options | {"depends_on": depends_on} if depends_on else options))


def names_in(text: str, where: str) -> list[str]:
    """Names between commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadInput(f"{where} {text!r}: a name is empty", "write names between commas, as `p1,p2`")
    return names


def numbers_in(text: str, where: str) -> dict[str, float]:
    """Numbers by name, as in p=2,q=2."""
    pairs = [_pair(part, where, "p=2,q=2") for part in text.split(",")]
    try:
        return {name: float(value) for name, value in pairs}
    except ValueError:
        raise BadInput(f"{where} {text}: a value is not a number", f"write `{where} p=2,q=2`") from None


def _pair(text: str, where: str, example: str) -> tuple[str, str]:
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign and value):
        raise BadInput(f"{where} {text}: this is not of the form name=value", f"write `{where} {example}`")
    return name, value


def _value(text: str):
    """A word, or JSON where it is a list or an object."""
    if text[:1] not in "[{":
        return text
    try:
        return json.loads(text)
    except ValueError as problem:
        raise BadInput(f"--option {text}: this is not JSON ({problem})", "write as q=[[1,0],[0,2]]") from None


def _share(text: str) -> float:
    hint = "write `--holdout 20%`"
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise BadInput(f"--holdout {text}: this is not a share of the recording", hint) from None
    if not 0 < share <= MOST_HELD_OUT:
        raise BadInput(f"--holdout {text}: the share lies between 0 and {MOST_HELD_OUT:.0%}", hint)
    return share
