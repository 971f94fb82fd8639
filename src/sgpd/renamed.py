"""Public names of the version before that stand elsewhere now. They work for one version, with a warning."""

import importlib
import warnings
from collections.abc import Callable

from sgpd.errors import SgpdWarning


def renamed(module: str, **places: str) -> Callable[[str], object]:
    """The `__getattr__` of a module: old name, and where it is now ("sgpd.judging.HeldOut")."""

    def look_up(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, present = places[name].rpartition(".")
        warn_renamed(f"{module}.{name}", places[name])
        return getattr(importlib.import_module(home), present)

    return look_up


def renamed_attribute(owner: str, old: str, new: str) -> property:
    """The old name of an attribute."""

    def get(self):
        warn_renamed(f"{owner}.{old}", f"{owner}.{new}")
        return getattr(self, new)

    return property(get, doc=f"The old name of `{new}`.")


def take_renamed(options: object, old: str, value: object, new: str):
    """The value of an option that was given under its old name, into that of the new one."""
    if value is None:
        return
    warn_renamed(f"{type(options).__name__}({old}=)", f"{new}=")
    object.__setattr__(options, new, value)


def warn_renamed(old: str, new: str):
    """Say where something is now."""
    text = f"{old} is {new} now; the old name goes with the next version."
    warnings.warn(text, SgpdWarning, stacklevel=4)
