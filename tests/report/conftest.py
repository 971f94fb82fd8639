"""Models of every structure, guessed and not fitted: there to be drawn. One default fit, with rows held out."""

import dataclasses
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import sgpd
from sgpd.checks import Check, CheckReport
from sgpd.data import Trajectories, windows
from sgpd.inference import HeldOut, Joint, Model, judge_held_out
from sgpd.inference.fit import _about
from sgpd.inference.initial import initial_posterior
from sgpd.inference.joint import Stored
from sgpd.inference.model import Pieces
from sgpd.inference.smoothing import noise_std, smooth_run
from sgpd.report import About, material, write_report
from sgpd.structures import QuadraticInvariant, Separable, Structure

ABOUT = About("a <b>pendulum</b>", "sgpd fit 'a&b.csv'", (("a&b.csv", "0" * 64),), (("read", "a&b.csv: 70 rows"),))


LIMITS = {"determinant": 1e-10, "symplectic": 1e-10, "energy_wander": 0.05, "energy_trend": 0.01, "invariant": 1e-8}
CHECKS = CheckReport(
    tuple(Check(name, name, limit / 10, limit, "PASS", f"Checked: {name}.") for name, limit in LIMITS.items())
)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    model: Model
    data: Trajectories
    held_out: HeldOut | None = None


@pytest.fixture(autouse=True, scope="session")
def _small_reports():
    """As the real ones, but with few paths over a short time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(material, "PATHS", 8)
        patch.setattr(material, "MOST_STEPS", 60)
        yield


def recorded(system: str, rows: int) -> Trajectories:
    system = sgpd.systems.get(system)
    times, rng = system.step * np.arange(rows), np.random.default_rng(1)
    noise = np.sqrt(system.noise_variance) * rng.normal(size=(rows, len(system.names)))
    return Trajectories.from_arrays(times, system.simulate(system.x0, times) + noise, names=system.names)


def oscillators(d: int, rows: int = 40) -> Trajectories:
    """d/2 springs of different stiffness, or for odd d the first coordinates of them."""
    times, rng = 0.1 * np.arange(rows), np.random.default_rng(0)
    pace = 1 + 0.3 * np.arange((d + 1) // 2)
    p, q = -np.sin(times[:, None] * pace), np.cos(times[:, None] * pace)
    states = np.concatenate([p, q], axis=1)[:, :d] + 0.02 * rng.normal(size=(rows, d))
    return Trajectories.from_arrays(times, states)


def holes() -> Trajectories:
    """Two runs: one with missing values, one with a gap."""
    run = recorded("pendulum", 60).runs[0]
    first = run.states[:30].copy()
    first[5:9, 0] = np.nan
    later = np.delete(np.arange(60), slice(20, 40))
    return Trajectories.from_arrays([run.times[:30], run.times[later]], [first, run.states[later]], names=["p", "q"])


def guessed(data: Trajectories, structure: str | Structure) -> Model:
    """What a fit starts from: a field that explains the slopes of splines, each run in one piece."""
    structure = sgpd.structures.get(structure) if isinstance(structure, str) else structure
    posterior = initial_posterior(structure, data, points=8).plain()
    method = {"separable": "stormer-verlet", "free": "rk4"}.get(structure.name, "implicit-midpoint")
    cut, noise = windows(data, 500), noise_std(data)
    first = [smooth_run(data.runs[run]).states[row] for run, row in zip(cut.run, cut.row, strict=True)]
    starts = jnp.asarray(np.array(first))
    return Model(
        posterior=posterior,
        integrator=sgpd.integrators.get(method),
        step=data.step,
        noise=noise,
        names=data.names,
        units=data.units,
        joint=Joint.independent(posterior, starts, jnp.broadcast_to(jnp.asarray(noise), starts.shape)),
        pieces=Pieces.of(cut),
        objective="lower bound",
        features=(16,) * len(posterior.groups),
        history=[{"objective": -9.0}, {"objective": -3.0}],
        run_names=data.run_names,
        facts=_about(data),
    )


def alternating() -> Trajectories:
    """Two channels that were never recorded at the same time."""
    run = recorded("pendulum", 60).runs[0]
    states = run.states.copy()
    states[::2, 0] = states[1::2, 1] = np.nan
    return Trajectories.from_arrays(run.times, states, names=["p", "q"])


CASES = {
    "separable, 8": lambda: (oscillators(8), "separable"),
    "components, 4": lambda: (oscillators(4), Separable(form="components")),
    "hamiltonian, 2": lambda: (recorded("non-separable", 40), "hamiltonian"),
    "free, 1": lambda: (oscillators(1), "free"),
    "lie-poisson, 3": lambda: (recorded("rigid-body", 40), QuadraticInvariant(form="lie-poisson")),
    "alternating channels": lambda: (alternating(), "separable"),
    "runs, gaps, missing values": lambda: (holes(), "separable"),
}


SLOW = ("separable, 8", "components, 4", "lie-poisson, 3", "alternating channels")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES])
def case(request) -> Case:
    data, structure = CASES[request.param]()
    return Case(guessed(data, structure), data)


@pytest.fixture(scope="session")
def pendulum() -> Case:
    """The default fit of a short recording, with its last rows held out."""
    whole = recorded("pendulum", 125)
    data, held, _ = sgpd.data.hold_out(whole, 0.2)
    model = sgpd.fit(data, "separable")
    return Case(model, data, judge_held_out(model, held, paths=16))


@pytest.fixture(scope="session")
def written(pendulum, tmp_path_factory) -> Path:
    """Its report."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(path, pendulum.model, pendulum.data, CHECKS, ABOUT, pendulum.held_out)


def with_stored_draws(model: Model, count: int, kind: str = "randomised") -> Model:
    """The same model, its posterior kept as draws, of which the first is not usable."""
    stored = Stored.of(model.joint.gaussian(0, count), np.arange(1, count), 3)
    facts = model.facts | {"draws": kind, "stored_draws": count - 1}
    return dataclasses.replace(model, joint=dataclasses.replace(model.joint, stored=stored), facts=facts)
