"""Classes of a user's own, named by their place: "module:Class"."""

import importlib
from collections.abc import Iterable

from sgpd.errors import BadInput


def place_of(kind: type) -> str:
    """Where a class is defined."""
    return f"{kind.__module__}:{kind.__qualname__}"


def import_class(place: str, base: type) -> type:
    """The class in a place, which must be one of a kind."""
    module, _, name = place.partition(":")
    example = "write `module:Class`, for a module that Python finds from here"
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError, TypeError) as problem:
        raise BadInput(f"{place}: this cannot be imported ({problem})", example) from None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise BadInput(f"{place}: this is no {base.__name__.lower()}", f"name a class derived from {place_of(base)}")
    return found


def allowed_class(place: str, base: type, allow: Iterable[str | type]) -> type:
    """The same, for a file that names the place: nothing is imported that was not allowed, as class or as place."""
    for each in allow:
        if isinstance(each, type) and place_of(each) == place:
            return each
        if each == place:
            return import_class(place, base)
    raise BadInput(f"the model needs {place}, which is not part of sgpd", f"if you trust it, allow it: {place!r}")
