"""Numbers about a recording and its fit, which a model keeps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from sgpd.data import Trajectories
from sgpd.inference.facts import FitFacts, Selection
from sgpd.renamed import warn_renamed

_OLD = {
    "spread": "std",
    "settled": "converged",
    "worth": "importance_sample_size",
    "rows_a_look": "autocorrelation_times",
}
_UNSAID = {
    **dict.fromkeys(("steps_converged", "worst_residual", "importance_sample_size"), float("nan")),
    **{"autocorrelation_times": (), "features": (), "features_dropped": False},
    **dict.fromkeys(("drawn", "stored_draws", "failed_draws"), 0),
    **{"draws": "", "converged": True, "parameters": 0, "effective_parameters": float("nan")},
}


@dataclass(frozen=True)
class RecordingFacts:
    """Where the recording goes, by channel."""

    rows: int
    center: tuple[float, ...]
    std: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, data: Trajectories) -> "RecordingFacts":
        """Over what was observed."""
        rows = np.concatenate([run.states for run in data.runs])
        columns = (data.center, data.std, np.nanmin(rows, axis=0), np.nanmax(rows, axis=0))
        return cls(data.rows, *(tuple(map(float, column)) for column in columns))


@dataclass(frozen=True)
class Facts:
    """About the recording, and about the fit or the training."""

    recording: RecordingFacts
    fit: FitFacts | None = None  # of the default engine
    selection: Selection | None = None  # of the variational engine, where an epoch was selected

    def to_dict(self) -> dict:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping) -> "Facts":
        """From plain data, of this version or of one before, which had all numbers side by side."""
        if "recording" not in found:
            found = _sorted_out({_OLD.get(name, name): value for name, value in found.items()})
        fit, selection = found.get("fit"), found.get("selection")
        return cls(
            RecordingFacts(**_tuples(found["recording"])),
            None if fit is None else FitFacts(**_tuples(fit)),
            None if selection is None else Selection(**_tuples(selection)),
        )

    def __getitem__(self, name: str):
        """The facts of version 0.3.1, which was a dictionary."""
        new = _OLD.get(name, name)
        for part in ("recording", "fit"):
            if hasattr(getattr(self, part), new):
                warn_renamed(f"facts[{name!r}]", f"facts.{part}.{new}")
                return getattr(getattr(self, part), new)
        raise KeyError(name)


def _sorted_out(flat: dict) -> dict:
    """Numbers of earlier versions in their places; what they did not say is not a number, or nothing."""
    known = {name: flat[name] for name in FitFacts.__dataclass_fields__ if name in flat}
    return {
        "recording": {name: flat[name] for name in RecordingFacts.__dataclass_fields__},
        "fit": _UNSAID | known if "log_evidence" in known else None,
        "selection": flat.get("selection"),
    }


def _tuples(values: Mapping) -> dict:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
