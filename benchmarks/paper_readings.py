"""What hangs on how the paper's settings are read, one difference at a time: the figures of NOTES.md.

    python benchmarks/paper_readings.py [NAME ...] [--recordings 6] [--trainings 3] [--first 100]

Choices are made on development recordings (100, 101, ...), never on those of `sgpd paper`; `--first 0` takes the
latter, to find out what their errors come from. All readings of a task share recordings and random numbers. Prints one
line for each reading: L2 errors of five fresh draws, of the five that won the selection, of the mean field (of a
network: its error), as mean (median) over trials, and the spreads over recordings and trainings.
"""

import argparse
import dataclasses
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

import sgpd
from sgpd.fields import Field, SplitField
from sgpd.inference.posterior import field as posterior
from sgpd.inference.variational import engine as variational
from sgpd.inference.variational import problem
from sgpd.integrators import rollout
from sgpd.paper.hnn import DIFFERENCES, roll, train_networks
from sgpd.paper.measuring import l2_error, measure_model
from sgpd.paper.output.summaries import ABSENT, Summary, number, summary
from sgpd.paper.results import Trial
from sgpd.paper.settings import Reading, setting_of
from sgpd.paper.training import train_models
from sgpd.paper.truths import record, solve
from sgpd.systems import System
from sgpd.xla.cache import keep_compiled_programs

FIRST_RECORDING = 100
QUIET = {"noisy": False}
PRINTED, PROGRAM = Reading("printed"), Reading()
NON_SEPARABLE, RIGID = ((0, 1e-3), (3, 1e-4), (6, 1e-5)), ((0, 1e-2), (3, 1e-3), (5, 1e-4), (7, 1e-5))

# task, method: what is different, its reading, and changes of the setting
SETTINGS = {
    ("non-separable", "sgpd"): [
        ("printed", PRINTED, {}),
        ("printed, with the program's rates", PRINTED, {"rates": NON_SEPARABLE}),
        ("printed, with the program's rates an epoch early", PRINTED, {"rates": ((0, 1e-3), (2, 1e-4), (5, 1e-5))}),
        ("program", PROGRAM, {}),
    ],
    ("rigid-body", "sgpd"): [
        ("printed", PRINTED, {}),
        ("printed, with the program's rates", PRINTED, {"rates": RIGID}),
        ("program", PROGRAM, {}),
        ("program, 20 rows", PROGRAM, {"rows": 20}),
        ("program, KL with factor 1", PROGRAM, {"kl_factor": 1.0}),
        ("program, KL with factor 1, density of all windows", PROGRAM, {"kl_factor": 1.0, "estimated": True}),
        ("program, 2048 features", PROGRAM, {"features": 2048}),
    ],
    ("pendulum", "sgpd"): [
        ("printed", PRINTED, {}),
        ("printed, q first", PRINTED, {"integrator": "symplectic-euler-q"}),
        ("program", PROGRAM, {}),
        ("program, p first", PROGRAM, {"integrator": "symplectic-euler"}),
    ],
    ("two-body", "sgpd"): [
        ("printed", PRINTED, {}),
        ("program", PROGRAM, {}),
        ("program, p first", PROGRAM, {"integrator": "symplectic-euler"}),
        ("program, 600 epochs", PROGRAM, {"epochs": 600, "rates": ((0, 1e-2), (400, 1e-3))}),
        ("program, 2048 features", PROGRAM, {"features": 2048}),
    ],
    ("two-body", "euler"): [("program", PROGRAM, {})],
    ("non-separable", "euler"): [("printed", PRINTED, {}), ("program", PROGRAM, {})],
}
JITTERS = (1e-1, 1e-2, 1e-3, 1e-4)

# task: what is different, and the finite differences, steps and weight decay of its network
NETWORKS = {
    task: [
        *((kind, {"kind": kind}) for kind in DIFFERENCES),
        ("500 steps", {"steps": 500}),
        ("10000 steps", {"steps": 10_000}),
        ("no decay", {"decay": 0.0}),
        *((f"{kind}, no noise", {"kind": kind} | QUIET) for kind in DIFFERENCES),
    ]
    for task in ("non-separable", "two-body")
}
Errors = dict[str, Summary]


def recording_of(system: System, truth: np.ndarray, number: int, noisy: bool) -> sgpd.Trajectories:
    """A recording; without noise they are all the same."""
    recording = record(system, truth, number)
    if noisy:
        return recording
    times = recording.runs[0].times
    return sgpd.Trajectories.from_arrays(times, truth[: len(times)], names=system.names)


def trained(key: tuple[str, str], reading: Reading, changes: dict, noisy: bool, trials: list[Trial]) -> Errors:
    """Of models."""
    system = sgpd.systems.get(key[0])
    _, truth = solve(system, "exact")
    recordings = [recording_of(system, truth, trial.recording, noisy) for trial in trials]
    setting = dataclasses.replace(setting_of(key, reading), **changes)
    models = train_models(system, setting, recordings, [trial.seed for trial in trials])
    found = [measure_model(m, system, truth, system.x0, t.seed, 16)[0] for m, t in zip(models, trials, strict=True)]
    of = [trial.recording for trial in trials]
    kinds = {"fresh": "l2", "selected": "l2_selected", "mean field": "l2_best"}
    return {kind: summary((row.get(name) for row in found), of) for kind, name in kinds.items()}


def exact_starts(usual: Callable, truth: np.ndarray) -> Callable:
    """Windows start at the true states; what they are compared with has its noise as before."""

    def starts(data, cut, *others):
        return eqx.tree_at(lambda s: s.anchor, usual(data, cut, *others), jnp.asarray(truth[cut.row]))

    return starts


def one_draw(usual: Callable, _: np.ndarray) -> Callable:
    """All windows of a batch share one drawn field."""
    alike = lambda normals: jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), normals)

    def noise(*of):
        drawn = usual(*of)
        return drawn._replace(weights=alike(drawn.weights), values=alike(drawn.values))

    return noise


def squares(usual: Callable, _: np.ndarray) -> Callable:
    """log l² and the logarithm of q's variance are stepped: log l and that of the standard deviation half as far."""
    halved = lambda p: [g.kernel.log_lengthscale for g in p.field.groups] + [q.log_std for q in p.field.values]
    return lambda *of: eqx.tree_at(halved, usual(*of), replace_fn=lambda _: 0.5)


def fixed_features(usual: Callable, _: np.ndarray) -> Callable:
    """l and σ have no gradient through the features: frequencies / l and weights · σ are numbers."""

    def draw(kernel, inducing, whitened, frequencies, weights, whiten=None):
        fixed = jax.lax.stop_gradient((kernel.lengthscale, kernel.variance))
        frequencies = frequencies * (kernel.lengthscale / fixed[0])
        weights = weights * jnp.sqrt(fixed[1] / kernel.variance)
        return usual(kernel, inducing, whitened, frequencies, weights, whiten)

    return draw


# what the engine does otherwise: where, by what
ENGINE = {
    "exact starts": (problem, "_starts", exact_starts),
    "one draw for all windows of a batch": (variational, "_noise", one_draw),
    "log l² and log variance": (variational, "_rates", squares),
    "no gradient through features": (posterior, "draw_path", fixed_features),
}


def trained_otherwise(key: tuple[str, str], names: tuple[str, ...], changes: dict, trials: list[Trial]) -> Errors:
    """Of models that an engine changed in so many ways trains."""
    _, truth = solve(sgpd.systems.get(key[0]), "exact")
    with ExitStack() as stack:
        for module, function, change in map(ENGINE.get, names):
            stack.enter_context(mock.patch.object(module, function, change(getattr(module, function), truth)))
        return trained(key, PROGRAM, changes, True, trials)


def power_law(a: np.ndarray) -> SplitField:
    """Two bodies of which only three numbers are unknown: a velocity of a₀ p, and a pull of a₁ / distance^a₂."""

    def pull(q):
        apart = q[:2] - q[2:]
        toward = -a[1] * apart / jnp.linalg.norm(apart) ** (a[2] + 1)
        return jnp.concatenate([toward, -toward])

    return SplitField(dp=pull, dq=lambda p: a[0] * p)


def three_moments(a: np.ndarray) -> Field:
    """A rigid body of which the three numbers are unknown: x₁' = a₀ x₂ x₃ and so on."""
    return lambda x: jnp.asarray(a) * jnp.stack([x[1] * x[2], x[0] * x[2], x[0] * x[1]])


# task: the formula with its numbers open, where to look for them first, and how it is stepped
FORMULAS = {
    "two-body": (power_law, [1.0, 1.0, 2.0], "stormer-verlet"),
    "rigid-body": (three_moments, [0.0, 0.0, 0.0], "implicit-midpoint"),
}


def known_formula(task: str, exact_starts: bool, trials: list[Trial]) -> Errors:
    """Of least squares over the same windows for the numbers of a formula."""
    system, rows = sgpd.systems.get(task), setting_of((task, "sgpd"), PROGRAM).rows
    formula, guess, method = FORMULAS[task]
    _, truth = solve(system, "exact")
    path = lambda a, x0, count: (
        rollout(sgpd.integrators.get(method), formula(a), x0, jnp.full(count - 1, system.step)).states
    )

    @jax.jit
    def residuals(a, starts, windows):
        return (jax.vmap(lambda x0: path(a, x0, rows))(starts) - windows)[:, 1:].reshape(-1)

    by_numbers, errors = jax.jit(jax.jacfwd(residuals)), []
    for recording in dict.fromkeys(trial.recording for trial in trials):  # every training gives the same
        noisy = recording_of(system, truth, recording, noisy=True).runs[0].states
        windows = np.lib.stride_tricks.sliding_window_view(noisy, rows, axis=0).swapaxes(1, 2)
        starts = truth[: len(windows)] if exact_starts else windows[:, 0]
        found = least_squares(residuals, guess, jac=by_numbers, args=(starts, windows))
        errors.append(l2_error(np.asarray(path(found.x, system.x0, len(truth))), truth))
    return {"formula": summary(errors, dict.fromkeys(trial.recording for trial in trials))}


def networks(task: str, trials: list[Trial], kind="gradient", steps=2000, decay=1e-4, noisy=True) -> Errors:
    """Of Hamiltonian neural networks."""
    system = sgpd.systems.get(task)
    times, truth = solve(system, "exact")
    runs = [recording_of(system, truth, trial.recording, noisy).runs[0] for trial in trials]
    pairs = [DIFFERENCES[kind](run.times, run.states) for run in runs]
    stacked = map(np.stack, zip(*pairs, strict=True))
    found = train_networks(*stacked, steps, [trial.seed for trial in trials], weight_decay=decay)
    errors = [l2_error(roll(network, system.x0, times)[0], truth) for network in found]
    return {"network": summary(errors, [trial.recording for trial in trials])}


def readings(trials: list[Trial]) -> dict:
    """By name, what gives its errors."""
    found = {}
    for key, rows in SETTINGS.items():
        name = f"{key[0]} {key[1]}"
        for what, reading, changes in rows:
            found[f"{name}: {what}"] = partial(trained, key, reading, changes, True, trials)
        for jitter in sorted({*JITTERS} - {setting_of(key, PROGRAM).jitter}):
            found[f"{name}: program, jitter {jitter:g}"] = partial(
                trained, key, PROGRAM, {"jitter": jitter}, True, trials
            )
        for change in ENGINE:
            found[f"{name}: program, {change}"] = partial(trained_otherwise, key, (change,), {}, trials)
        found[f"{name}: program, all of these but the starts"] = partial(
            trained_otherwise, key, tuple(ENGINE)[1:], {}, trials
        )
        found[f"{name}: program, no noise"] = partial(trained, key, PROGRAM, {}, False, trials)
    for task in FORMULAS:
        found[f"{task} formula: windows start at observations"] = partial(known_formula, task, False, trials)
        found[f"{task} formula: exact starts"] = partial(known_formula, task, True, trials)
    for task, rows in NETWORKS.items():
        found |= {f"{task} network: {what}": partial(networks, task, trials, **how) for what, how in rows}
    return found


def said(errors: Summary) -> str:
    """`0.05 (0.04), recordings 0.02, trainings 0.01`."""
    if not errors.values:
        return ABSENT
    spreads = f"recordings {number(errors.recording_std, 2)}, trainings {number(errors.training_std, 2)}"
    failed = f", {errors.failed} failed" if errors.failed else ""
    return f"{number(errors.mean)} ({number(errors.quantile(0.5))}), {spreads}{failed}"


def main():
    """Run the readings asked for."""
    sgpd.xla.tune()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="regular expressions found in readings' names; all by default")
    parser.add_argument("--recordings", type=int, default=6)
    parser.add_argument("--trainings", type=int, default=3)
    parser.add_argument("--first", type=int, default=FIRST_RECORDING, help="recording")
    options = parser.parse_args()
    keep_compiled_programs()
    numbers = range(options.first, options.first + options.recordings)
    trials = [Trial(recording, training) for recording in numbers for training in range(options.trainings)]
    for name, measure in readings(trials).items():
        if options.name and not any(re.search(part, name) for part in options.name):
            continue
        began = time.monotonic()
        found = "; ".join(f"{kind} {said(errors)}" for kind, errors in measure().items())
        print(f"{name}: {found}; {time.monotonic() - began:.0f} s", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main()
