"""(d) Other ways to learn the pendulum from the same noisy recording: time and error together.

PySINDy twice: as it comes (quadratic polynomials, finite differences), and told more than sgpd is, namely that the
field is made of linear terms, sines and cosines, with smoothed differences for the noise and a threshold that was
chosen knowing the answer. The Hamiltonian neural network is the paper's baseline, in JAX, from numpy's gradient of the
recording. Errors are those of the rollout over 40 s.
"""

import time
import warnings
from collections.abc import Callable

import numpy as np
import pysindy
from peers_fits import fit_pendulum, pendulum_error, pendulum_recording
from peers_table import Row, Sizes
from timing import Timing

import sgpd
from sgpd.paper.experiments import NETWORK_STEPS
from sgpd.paper.hnn import DIFFERENCES, roll, train_networks
from sgpd.paper.measuring import l2_error
from sgpd.paper.published import L2_ERRORS
from sgpd.paper.truths import solve

THRESHOLD = 0.7


def learners(sizes: Sizes) -> list[Row]:
    """One turn a seed, after a first fit of each for compilation."""
    jobs: dict[str, tuple[Callable, Callable]] = {
        "default fit": (fit_pendulum, pendulum_error),
        "PySINDy as it comes": (fit_sindy, sindy_error),
        "PySINDy told of sines": (fit_sindy_with_sines, sindy_error),
        "Hamiltonian neural network": (fit_network, network_error),
    }
    seconds, errors = {name: [] for name in jobs}, {name: [] for name in jobs}
    for fit, _ in jobs.values():
        fit(sizes.recordings)
    for seed in range(sizes.recordings):
        for name, (fit, error) in jobs.items():
            began = time.perf_counter()
            model = fit(seed)
            seconds[name].append(time.perf_counter() - began)
            errors[name].append(error(model, seed))
    ours = Timing.of(seconds.pop("default fit"))
    own = _said(errors["default fit"])
    printed = L2_ERRORS["pendulum", "hnn"].mean
    return [
        Row(
            f"pendulum, {sizes.recordings} recording(s): default fit; {name}",
            ours,
            Timing.of(taken),
            remark=f"L2 error {own} against {_said(errors[name])}"
            + (f" (printed {printed})" if "network" in name else ""),
        )
        for name, taken in seconds.items()
    ]


def _said(errors: list[float]) -> str:
    return ", ".join(f"{error:.2g}" if np.isfinite(error) else "ran away" for error in errors)


def fit_sindy(seed: int) -> pysindy.SINDy:
    """Sparse regression of the derivatives of the recording, with PySINDy's defaults."""
    return _fitted(pysindy.SINDy(), seed)


def fit_sindy_with_sines(seed: int) -> pysindy.SINDy:
    """With linear terms, sines and cosines, smoothed differences, and a threshold that leaves p and sin q."""
    model = pysindy.SINDy(
        optimizer=pysindy.STLSQ(threshold=THRESHOLD),
        feature_library=pysindy.PolynomialLibrary(degree=1) + pysindy.FourierLibrary(n_frequencies=1),
        differentiation_method=pysindy.SmoothedFiniteDifference(),
    )
    return _fitted(model, seed)


def _fitted(model: pysindy.SINDy, seed: int) -> pysindy.SINDy:
    run = pendulum_recording(seed).runs[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(run.states, t=run.times)
    return model


def sindy_error(model: pysindy.SINDy, seed: int) -> float:
    """The error of its rollout, infinite where that runs away."""
    times, truth = solve(sgpd.systems.get("pendulum"), "exact")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            how = {"method": "LSODA", "rtol": 1e-8, "atol": 1e-8, "events": _escaped}
            states = np.asarray(model.simulate(truth[0], times, integrator_kws=how))
        except (ValueError, RuntimeError, FloatingPointError):
            return np.inf
    return (l2_error(states, truth) or np.inf) if states.shape == truth.shape else np.inf


def _escaped(_, x: np.ndarray) -> float:
    """Falls through zero where a rollout leaves for good, and ends it there."""
    return 1e3 - float(np.abs(x).max())


_escaped.terminal = True  # pyright: ignore[reportFunctionMemberAccess]


def fit_network(seed: int):
    """The authors' 2000 steps of Adam on all rows."""
    run = pendulum_recording(seed).runs[0]
    states, derivatives = DIFFERENCES["gradient"](run.times, run.states)
    return train_networks(states[None], derivatives[None], NETWORK_STEPS, [seed])[0]


def network_error(network, seed: int) -> float:
    """The error of its adaptive rollout, infinite where that runs away."""
    times, truth = solve(sgpd.systems.get("pendulum"), "exact")
    states, ok = roll(network, truth[0], times)
    return (l2_error(states, truth) or np.inf) if ok else np.inf
