"""Learn dynamical systems from noisy recordings with Gaussian processes inside structure-preserving integrators.

Names are imported when they are first used, so that `import sgpd` is quick.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sgpd import checks as checks
    from sgpd import data as data
    from sgpd import gp as gp
    from sgpd import inference as inference
    from sgpd import integrators as integrators
    from sgpd import judging as judging
    from sgpd import models as models
    from sgpd import plots as plots
    from sgpd import report as report
    from sgpd import runs as runs
    from sgpd import structures as structures
    from sgpd import systems as systems
    from sgpd import xla as xla
    from sgpd.data import Trajectories as Trajectories
    from sgpd.errors import NumericalFailure as NumericalFailure
    from sgpd.errors import Outcome as Outcome
    from sgpd.errors import SgpdWarning as SgpdWarning
    from sgpd.fields import SplitField as SplitField
    from sgpd.fields import Traits as Traits
    from sgpd.inference import Laplace as Laplace
    from sgpd.inference import Variational as Variational
    from sgpd.integrators import PartitionedTableau as PartitionedTableau
    from sgpd.integrators import Splitting as Splitting
    from sgpd.integrators import Tableau as Tableau
    from sgpd.models import Forecast as Forecast
    from sgpd.models import Model as Model
    from sgpd.models import load as load
    from sgpd.models.fit import fit as fit

_MODULES = (
    *("checks", "data", "gp", "inference", "integrators", "judging", "models", "plots", "report", "runs"),
    *("structures", "systems", "xla"),
)
_NAMES = {
    "Forecast": "models",
    "Laplace": "inference",
    "Model": "models",
    "NumericalFailure": "errors",
    "Outcome": "errors",
    "PartitionedTableau": "integrators",
    "SgpdWarning": "errors",
    "SplitField": "fields",
    "Splitting": "integrators",
    "Tableau": "integrators",
    "Traits": "fields",
    "Trajectories": "data",
    "Variational": "inference",
    "fit": "models.fit",
    "load": "models",
}


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f"sgpd.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"sgpd.{_NAMES[name]}"), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("sgpd")
    raise AttributeError(f"module 'sgpd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_MODULES, *_NAMES, "__version__"])
