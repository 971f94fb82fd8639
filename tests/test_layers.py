"""Each layer imports only what lies to its left, and neither `import sgpd` nor `--help` waits for JAX.

The rule is read from the imports themselves, wherever they stand: at the top, inside a function or for a type
checker only. An import that is hidden in a function is still a dependency.
"""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "sgpd"
LAYERS = """
    arrays errors fields importing renamed wording writing | xla | systems data gp integrators plots | structures
    | checks | inference | models | judging | runs | report | cli
"""
LEVEL = {unit: level for level, units in enumerate(LAYERS.split("|")) for unit in units.split()}
OUTSIDE = {"paper"}
ROOT = "sgpd"  # the lazy public names: whoever imports them may get any layer
ENTRY = {"cli", "__main__"}
HEAVY = {"jax", "jaxlib", "jinja2", "matplotlib", "pandas", "scipy"}

# What a user calls on an object, though it stands to the right of it: (file, where in the file, module, name).
LAZY = {
    ("models/model.py", "Model.check", "sgpd.judging.assessment", "assess"),
    ("models/model.py", "if TYPE_CHECKING", "sgpd.judging.assessment", "Assessment"),  # what it returns
}

MODULES = sorted(SOURCE.rglob("*.py"))


def unit_of(path: Path) -> str:
    """The layer's name for a file: `gp` for gp/kernels.py, `fields` for fields.py, `sgpd` for the package itself."""
    first = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return ROOT if first == "__init__" else first


UNITS = {unit_of(path) for path in MODULES} | set(LEVEL) | OUTSIDE


def imports_of(source: str, package: tuple[str, ...]) -> Iterator[tuple[str, str, int, str]]:
    """(module, name, line, place) of every import of sgpd in a source that lies in a package; relative ones resolved.

    The place is the classes and functions around it, "Model.check", or the condition, "if TYPE_CHECKING".
    """
    for node, place in _placed(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            found = [(module, alias.name) for alias in node.names]
        else:
            continue
        yield from ((module, name, node.lineno, place) for module, name in found if module.split(".")[0] == ROOT)


def _placed(node: ast.AST, place: str = "") -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef() | ast.FunctionDef():
                inside = f"{place}.{child.name}".lstrip(".")
            case ast.If(test=ast.Name(id=condition)) if not place:
                inside = f"if {condition}"
            case _:
                inside = place
        yield child, inside
        yield from _placed(child, inside)


def imported_unit(module: str, name: str) -> str:
    """`from sgpd import gp` means the layer gp; `from sgpd import fit` is a public name and means the package."""
    parts = [*module.split("."), name]
    return parts[1] if parts[1] in UNITS else ROOT


def may_import(importer: str, imported: str) -> bool:
    if importer == imported or importer in ENTRY | {ROOT}:
        return True
    if importer in OUTSIDE:
        return imported not in ENTRY  # which of their names is another matter: `is_public`
    if imported not in LEVEL:
        return False
    # The ground modules are one small package together; side by side above them, packages do not see one another.
    return LEVEL[imported] < LEVEL[importer] or LEVEL[imported] == LEVEL[importer] == 0


def is_public(module: str, name: str) -> bool:
    """Names of sgpd or of a layer's own face (`sgpd.integrators`), not of the modules behind it."""
    private = any(part.startswith("_") and part != "__version__" for part in [*module.split("."), name])
    return module.count(".") <= 1 and not private


def leaks(source: str, path: Path) -> list[str]:
    """A sentence for each import that the rule forbids in a source that stands at a path."""
    importer, here = unit_of(path), path.relative_to(SOURCE.parent)
    sentences = []
    for module, name, line, place in imports_of(source, here.parent.parts):
        if (str(path.relative_to(SOURCE)), place, module, name) in LAZY:
            continue
        imported = imported_unit(module, name)
        what = f"{here}:{line} imports {name + ' from ' if name else ''}{module}"
        if not may_import(importer, imported):
            sentences.append(f"{what}: {importer} may not see {imported}; move the shared part to the left.")
        elif importer in OUTSIDE and imported != importer and not is_public(module, name):
            sentences.append(f"{what}: {importer} uses public names only; import it from its package, or export it.")
    return sentences


def test_every_module_has_a_place_in_the_layers():
    homeless = {unit_of(path) for path in MODULES} - set(LEVEL) - OUTSIDE - ENTRY - {ROOT}
    assert not homeless, f"{sorted(homeless)} stand in no layer; add them to LAYERS where the design puts them."


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_imports_from_its_right(path):
    assert leaks(path.read_text(encoding="utf-8"), path) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("fields.py", "from sgpd.gp import kernels"),
        ("gp/paths.py", "from sgpd.data import Trajectories"),
        ("gp/paths.py", "import sgpd.integrators.tableau"),
        ("gp/paths.py", "from ..data import windows"),
        ("gp/__init__.py", "from .. import integrators"),
        ("integrators/methods.py", "from sgpd import gp"),
        ("integrators/methods.py", "def step():\n    from sgpd.gp.paths import Path"),
        ("data/window.py", "from sgpd import fit"),
        ("systems.py", "import sgpd"),
        ("systems.py", "from sgpd.integrators import get"),
        ("structures/free.py", "from sgpd.checks import measure"),
        ("checks/energy.py", "from sgpd.models.fit import fit"),
        ("xla/sums.py", "from sgpd.gp import Kernel"),
        ("plots/marks.py", "from sgpd.models import Model"),
        ("inference/initial.py", "from sgpd.models.model import Model"),
        ("models/model.py", "from sgpd.judging import verdict"),
        ("models/model.py", "from sgpd.judging.assessment import assess"),
        ("models/model.py", "class Model:\n    def save(self):\n        from sgpd.judging.assessment import assess"),
        ("models/fit.py", "class Model:\n    def check(self):\n        from sgpd.judging.assessment import assess"),
        ("models/model.py", "class Model:\n    def check(self):\n        from sgpd.report import write_report"),
        ("runs/layout.py", "from sgpd.report.page import write_report"),
        ("report/page.py", "from sgpd.cli import app"),
        ("report/page.py", "from sgpd.paper import settings"),
        ("paper/baselines.py", "from sgpd.integrators.implicit import Newton"),
        ("paper/baselines.py", "from sgpd.inference import _bound"),
        ("paper/baselines.py", "from sgpd.cli import app"),
    ],
)
def test_a_forbidden_import_is_found_however_it_is_written(path, line):
    assert len(leaks(line, SOURCE / path)) == 1


def test_every_exception_is_still_needed():
    """An exception for a line that is gone would let another slip in."""
    found = set()
    for path in MODULES:
        package = path.relative_to(SOURCE.parent).parent.parts
        lines = imports_of(path.read_text(encoding="utf-8"), package)
        found |= {(str(path.relative_to(SOURCE)), place, module, name) for module, name, _, place in lines}
    assert found >= LAZY


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("fields.py", "from sgpd.arrays import State"),
        ("gp/paths.py", "from sgpd.gp.kernels import Kernel"),
        ("gp/paths.py", "from .kernels import Kernel"),
        ("gp/__init__.py", "from . import kernels"),
        ("systems.py", "from sgpd import arrays, errors, fields"),
        ("structures/free.py", "from sgpd.gp import paths"),
        ("inference/variational/bound.py", "from sgpd.integrators.rollouts import rollout"),
        ("paper/baselines.py", "from sgpd import fit, integrators"),
        ("paper/baselines.py", "from sgpd.paper._tables import row"),
        ("cli/commands/paper.py", "from sgpd.paper.experiments import run"),
        ("models/model.py", "class Model:\n    def check(self):\n        from sgpd.judging.assessment import assess"),
        ("models/model.py", "if TYPE_CHECKING:\n    from sgpd.judging.assessment import Assessment"),
        ("gp/paths.py", "import sgpdx\nimport numpy as np\nfrom jax import numpy"),
    ],
)
def test_an_allowed_import_is_left_alone(path, line):
    assert leaks(line, SOURCE / path) == []


PUBLIC = {
    "sgpd": "Forecast Laplace Model NumericalFailure Outcome PartitionedTableau SgpdWarning SplitField Splitting "
    "Tableau Traits Trajectories Variational checks data fit gp inference integrators load structures systems",
    "sgpd.checks": "Check CheckReport Claim Measurements check_field determinant_error energy_deviation "
    "invariant_drift judge measure preserved require_compatible step_jacobian symplectic_defect",
    "sgpd.data": "Reading Run Sign Trajectories Windows excerpts hold_out read_recording sign_test windows",
    "sgpd.gp": "FramedGaussian JITTER Kernel Matern32 Matern52 Path SquaredExponential Trend ValueGaussian "
    "WhitenedGaussian bump_path draw_path host_normals mean_path prior_root sincos spread_normals whitening",
    "sgpd.inference": "Bound FieldPosterior Forecast HeldOut Joint Laplace LatentGroup Learned Model Problem "
    "TrainingState Variational fit initial_state interval_of judge_held_out learned load observed_interval plus_minus "
    "prepare side_by_side train",
    "sgpd.integrators": "Integrator Newton PartitionedRungeKutta PartitionedTableau Response Rollout RungeKutta "
    "SplitStep Splitting StepInfo Tableau adaptive_rollout get names respond rollout",
    "sgpd.report": "About Overall Row forecast_figure save_figure verdict write_report",
    "sgpd.structures": "Axes Free Hamiltonian LatentSpec Latents QuadraticInvariant Separable Structure get names",
}


@pytest.mark.parametrize("module", PUBLIC)
@pytest.mark.filterwarnings("ignore::sgpd.SgpdWarning")
def test_every_public_name_of_the_version_before_is_still_there(module):
    names, found = PUBLIC[module].split(), importlib.import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []


def test_a_name_that_stands_elsewhere_now_says_where():
    import sgpd.inference

    with pytest.warns(sgpd.SgpdWarning, match=r"sgpd\.inference\.Model is sgpd\.Model now"):
        assert sgpd.inference.Model is sgpd.Model
    with pytest.raises(AttributeError, match="no attribute 'Modell'"):
        sgpd.inference.Modell  # noqa: B018


def test_nothing_asks_for_the_name_of_a_structure():
    """What others need to know of one, it says itself."""
    asks = re.compile(r"structure\.name (==|!=|in|not in)|get\(structure\.name")
    outside = [path for path in MODULES if unit_of(path) != "structures"]
    assert [str(path) for path in outside if asks.search(path.read_text(encoding="utf-8"))] == []


def test_no_module_is_hidden_by_a_function_of_its_own_name():
    """`import sgpd.models.fit as m` gives a module, whatever its package imports."""
    paths = [path.relative_to(SOURCE.parent).with_suffix("").parts for path in MODULES if path.stem != "__main__"]
    names = [".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in paths]
    for name in names:
        importlib.import_module(name)
    hidden = [name for name in names if "." in name and _as_attribute(name) is not sys.modules[name]]
    assert hidden == []


def _as_attribute(name: str):
    package, _, leaf = name.rpartition(".")
    return getattr(sys.modules[package], leaf)


# Asked at exit, so that a command that ends by SystemExit (as every command line does) still answers.
ANSWER_AT_EXIT = """
import atexit, sys
atexit.register(lambda: print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr))
"""
RUN_MODULE = "import runpy; sys.argv = ['sgpd', '--help']; runpy.run_module('sgpd', run_name='__main__')"
RUN_SCRIPT = "from sgpd.cli import main; sys.argv = ['sgpd', '--help']; sys.exit(main())"


def packages_loaded_by(statement: str) -> tuple[set[str], str]:
    """Top-level packages that a fresh interpreter holds after a statement, and what it printed."""
    command = [sys.executable, "-c", ANSWER_AT_EXIT + statement]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split()), done.stdout


@pytest.mark.parametrize("statement", ["import sgpd", "from sgpd.cli import app"])
def test_importing_the_package_or_its_command_line_loads_nothing_heavy(statement):
    loaded, _ = packages_loaded_by(statement)
    assert "sgpd" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize("statement", [RUN_MODULE, RUN_SCRIPT], ids=["python -m sgpd --help", "sgpd --help"])
def test_help_is_printed_without_loading_anything_heavy(statement):
    loaded, printed = packages_loaded_by(statement)
    assert "demo" in printed
    assert loaded & HEAVY == set()


def test_a_use_of_the_numerics_does_load_jax():
    """The probe can fail: without this, a probe that saw nothing would pass the tests above."""
    loaded, _ = packages_loaded_by("import sgpd.arrays")
    assert "jax" in loaded
