"""The experiments: which model is trained once, and which rows of the paper's tables come out of it."""

import dataclasses
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import sgpd
from sgpd import Model, Trajectories
from sgpd.paper.hnn import DIFFERENCES, roll, train_networks
from sgpd.paper.measuring import PATHS as BAND_PATHS
from sgpd.paper.measuring import l2_error, measure_model, measure_paths
from sgpd.paper.published import L2_ERRORS
from sgpd.paper.results import Result, Trial
from sgpd.paper.settings import PATHS, Reading, Setting, setting_of
from sgpd.paper.training import Progress, train_models
from sgpd.paper.truths import noisy_start, record, solve, truth_of
from sgpd.structures import Hamiltonian, QuadraticInvariant, Separable
from sgpd.systems import System

# The Heun experiment: other steps than the trained one, and an adaptive solver (None).
HEUN_SYSTEMS = ("pendulum", "non-separable")
HEUN_STEPS = (0.1, 0.05, 0.005, None)

NETWORK_STEPS = 2000  # the HNN's authors' for one degree of freedom; for two bodies see NOTES.md

# What a user would choose for each system and nothing else: the default fit, told that the first state is exact.
DEFAULTS = {
    "pendulum": Separable(),
    "two-body": Separable(),
    "non-separable": Hamiltonian(),
    "rigid-body": QuadraticInvariant(form="lie-poisson"),
}

QUICK = 16  # a quick run shortens trainings to a sixteenth, where they take at least ...
LONG = 10  # ... so many epochs
QUICK_FEATURES = 256  # at most, in a quick run
QUICK_PATHS = 16  # behind its bands
EMPTY = dict.fromkeys(
    (
        "l2",
        "l2_selected",
        "energy_error",
        "energy_std",
        "det_error",
        "symplectic_defect",
        "invariant_error",
        "coverage95",
    )
)


@dataclass(frozen=True)
class Experiment:
    """One training of `method` on `system` for some trials at once; `heun` is the SGPD of the Heun experiment."""

    system_name: str
    method: str  # sgpd, default, euler, hnn or heun
    truth: str
    quick: bool
    reading: Reading | None  # of the settings; the paper has none for the default fit, and few for the network

    @property
    def name(self) -> str:
        """For progress bars."""
        return f"{self.system_name} {self.method}"

    @property
    def key(self) -> tuple[str, str]:
        """Of its setting."""
        return ("heun", self.system_name) if self.method == "heun" else (self.system_name, self.method)

    @cached_property
    def system(self) -> System:
        """The true system."""
        return sgpd.systems.get(self.system_name)

    @property
    def rows(self) -> list[dict]:
        """What identifies each row that comes out for a trial: task, method and, for other steps, the solver."""
        own = [] if self.method == "heun" else [{"task": self.system_name, "method": self.method}]
        if self.system_name not in HEUN_SYSTEMS or self.method not in ("heun", "euler"):
            return own
        method = "sgpd" if self.method == "heun" else "euler"
        return own + [
            {
                "task": "heun",
                "method": method,
                "system": self.system_name,
                "step": step,
                "solver": "adaptive" if step is None else self.method,
            }
            for step in HEUN_STEPS
        ]

    @property
    def engine(self) -> sgpd.Laplace:
        """Of the default fit."""
        return sgpd.Laplace(stored=QUICK_PATHS) if self.quick else sgpd.Laplace()

    @property
    def network_steps(self) -> int:
        """Of the training of a network."""
        return NETWORK_STEPS // (QUICK if self.quick else 1)

    @property
    def band_paths(self) -> int:
        """Behind the bands."""
        return QUICK_PATHS if self.quick else BAND_PATHS

    @property
    def settings(self) -> str:
        """A digest of all that the numbers depend on, besides the trial: results of other settings are not reused."""
        own = {"hnn": self.network_steps, "default": (DEFAULTS[self.system_name], self.engine)}
        setting = own.get(self.method) or shortened(self)
        facts = (sgpd.__version__, self, setting, PATHS, self.band_paths)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def experiments(
    tasks: Sequence[str], methods: Sequence[str], truth: str, quick: bool, reading: Reading
) -> list[Experiment]:
    """All trainings that the rows of these tasks and methods need."""
    pairs = [(name, method) for name in sgpd.systems.names() for method in ("sgpd", "default", "euler", "hnn")]
    pairs = [pair for pair in pairs if pair != ("rigid-body", "hnn")]  # a network needs pairs of p and q
    pairs += [(name, "heun") for name in HEUN_SYSTEMS]
    read = lambda method: None if method in ("default", "hnn") else reading
    every = [Experiment(system, method, truth, quick, read(method)) for system, method in pairs]
    return [e for e in every if any(wanted(row, tasks, methods) for row in e.rows)]


def wanted(row: dict, tasks: Sequence[str], methods: Sequence[str]) -> bool:
    """Whether a row belongs to what was asked for."""
    return row["task"] in tasks and row["method"] in methods


def run(experiment: Experiment, trials: Sequence[Trial], progress: Progress | None = None) -> list[Result]:
    """Every row of an experiment, for every trial."""
    began = time.monotonic()
    _, truth = solve(experiment.system, experiment.truth)
    made = {number: record(experiment.system, truth, number) for number in {trial.recording for trial in trials}}
    recordings = [made[trial.recording] for trial in trials]
    seeds = [trial.seed for trial in trials]
    if experiment.method == "hnn":
        measured = _networks(experiment, recordings, truth, seeds, progress)
    else:
        models = _models(experiment, recordings, seeds, progress)
        measured = [_measured(experiment, *each, truth) for each in zip(models, trials, strict=True)]
    seconds = (time.monotonic() - began) / len(trials)
    results = []
    for trial, recording, per_row in zip(trials, recordings, measured, strict=True):
        always = _known_curves(experiment.system, truth, recording)
        for identity, (numbers, curves) in zip(experiment.rows, per_row, strict=True):
            results.append(Result(_row(experiment, identity, trial, seconds, numbers), always | curves))
    return results


def shortened(experiment: Experiment) -> Setting:
    """The setting of an experiment, with a shorter training in a quick run."""
    assert experiment.reading is not None
    setting = setting_of(experiment.key, experiment.reading)
    if experiment.quick:
        setting = dataclasses.replace(setting, features=min(setting.features, QUICK_FEATURES))
    if not experiment.quick or setting.epochs < LONG:
        return setting
    shorter = lambda epochs: -(-epochs // QUICK)
    rates = tuple((shorter(start), rate) for start, rate in setting.rates)
    return dataclasses.replace(
        setting, epochs=shorter(setting.epochs), select_last=shorter(setting.select_last), rates=rates
    )


def _models(
    experiment: Experiment, recordings: Sequence[Trajectories], seeds: Sequence[int], progress: Progress | None
) -> list[Model]:
    if experiment.method == "default":
        structure, models = DEFAULTS[experiment.system_name], []
        for index, (recording, seed) in enumerate(zip(recordings, seeds, strict=True)):
            models.append(sgpd.fit(recording, structure, x0="known", inference=experiment.engine, seed=seed))
            if progress is not None:
                progress(index + 1, len(seeds))
        return models
    return train_models(experiment.system, shortened(experiment), recordings, seeds, progress)


def _measured(experiment: Experiment, model: Model, trial: Trial, truth: np.ndarray) -> list[tuple[dict, dict]]:
    """Numbers and curves for each row of one trial."""
    noisy = noisy_start(experiment.system, trial.recording)
    how = [_how(row, model) for row in experiment.rows]
    counts = ", ".join(map(str, dict.fromkeys(model.features)))
    features = f"{counts} {'Sobol' if model.sampling == 'quasi' else model.sampling}"
    paths = experiment.band_paths
    found = [measure_model(model, experiment.system, truth, noisy, trial.seed, paths, **each) for each in how]
    return [(numbers | {"features": features}, curves) for numbers, curves in found]


def _how(row: dict, model: Model) -> dict:
    """What `predict` is told for a row: nothing at the trained step."""
    if row["task"] != "heun":
        return {}
    if row["step"] is None:
        return {"integrator": "adaptive"}
    return {} if np.isclose(row["step"], model.step) else {"step": row["step"]}


def _networks(
    experiment: Experiment,
    recordings: Sequence[Trajectories],
    truth: np.ndarray,
    seeds: Sequence[int],
    progress: Progress | None,
) -> list[list[tuple[dict, dict]]]:
    """Networks for each kind of finite differences; the row is that of numpy's gradient."""
    system = experiment.system
    times = system.step * np.arange(len(truth))
    paths = {}
    for index, (kind, difference) in enumerate(DIFFERENCES.items()):
        pairs = [difference(r.runs[0].times, r.runs[0].states) for r in recordings]
        states, derivatives = (np.stack(part) for part in zip(*pairs, strict=True))
        report = _part_of(progress, index, len(DIFFERENCES))
        networks = train_networks(states, derivatives, experiment.network_steps, seeds, progress=report)
        paths[kind] = [roll(network, system.x0, times) for network in networks]
    return [[_network_row(system, truth, {k: p[i] for k, p in paths.items()})] for i in range(len(seeds))]


def _part_of(progress: Progress | None, index: int, count: int) -> Progress | None:
    """Progress of one training among several of equal length."""
    return None if progress is None else lambda done, total: progress(index * total + done, count * total)


def _network_row(system: System, truth: np.ndarray, paths: dict[str, tuple[np.ndarray, bool]]) -> tuple[dict, dict]:
    errors = {kind: l2_error(states, truth) if ok else None for kind, (states, ok) in paths.items()}
    states, ok = paths["gradient"]
    if not ok:
        return {"l2_by_differences": errors, "failure": "The adaptive solver did not reach the end."}, {}
    numbers, curves = measure_paths(states[None], system, truth)
    return numbers | {"l2_by_differences": errors}, curves


def _row(experiment: Experiment, identity: dict, trial: Trial, seconds: float, numbers: dict) -> dict:
    """What identifies the row, how it came about, and what was measured."""
    published = L2_ERRORS.get((identity["task"], identity["method"]))
    row = identity | EMPTY | {"failure": None}
    row |= {
        **trial._asdict(),
        "seed": trial.seed,
        "truth": truth_of(experiment.system, experiment.truth),
        "seconds": seconds,
    }
    row |= {"l2_published": published.mean if published else None}
    reading = dict.fromkeys(Reading._fields) if experiment.reading is None else experiment.reading._asdict()
    row |= {f"read_{name}": value for name, value in reading.items()}
    return row | {"quick": experiment.quick, "settings": experiment.settings} | numbers


def _known_curves(system: System, truth: np.ndarray, recording: Trajectories) -> dict[str, np.ndarray]:
    """What every figure shows beside a method's own curves, whether or not the method came to an end."""
    run = recording.runs[0]
    return {
        "times": system.step * np.arange(len(truth)),
        "truth": truth,
        "recorded_times": run.times,
        "recorded": run.states,
    }
