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
        text = f"{module}.{name} is {places[name]} now; the old name goes with the next version."
        warnings.warn(text, SgpdWarning, stacklevel=2)
        return getattr(importlib.import_module(home), present)

    return look_up
