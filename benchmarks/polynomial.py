"""How well the non-separable system can be known from its recording: a polynomial H by maximum likelihood.

    python benchmarks/polynomial.py [--seeds 2000-2019]

A polynomial of degree 4 in p and q contains the true H; nothing else is assumed but wide priors N(0, 1) of its 14
coefficients. The first state and the noise are known. What error is left comes from the noise of the recording alone,
so it is a yardstick for a fit that knows less: docs/default-fit.md shows both on the same seeds.
"""

import argparse

import numpy as np
from scipy.optimize import least_squares

import sgpd
from sgpd.paper.measuring import l2_error
from sgpd.paper.truths import record, solve

POWERS = np.array([(i, degree - i) for degree in (1, 2, 3, 4) for i in range(degree + 1)])


def main():
    """One line: mean error and its standard error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="2000-2019")
    first, last = map(int, parser.parse_args().seeds.split("-"))
    errors = np.array([error_of(seed) for seed in range(first, last + 1)])
    print("seeds:", " ".join(f"{error:.4f}" for error in errors))
    print(f"L2: {errors.mean():.4f} ± {errors.std(ddof=1) / np.sqrt(len(errors)):.4f}")


def error_of(seed: int) -> float:
    """The paper's L2 error of the most probable polynomial, over the paper's horizon."""
    system = sgpd.systems.get("non-separable")
    times, truth = solve(system, "exact")
    run = record(system, truth, seed).runs[0]
    noise = np.sqrt(np.array(system.noise_variance))

    def residuals(coefficients):
        misfit = (rolled(coefficients, system.x0, len(run), system.step) - run.states) / noise
        return np.concatenate([misfit.ravel(), coefficients])

    start = np.where((POWERS == (2, 0)).all(axis=1) | (POWERS == (0, 2)).all(axis=1), 0.5, 0.0)
    best = least_squares(residuals, start).x
    return l2_error(rolled(best, system.x0, len(times), system.step), truth)


def rolled(coefficients: np.ndarray, x0: np.ndarray, rows: int, h: float) -> np.ndarray:
    """Steps of the classical Runge-Kutta method."""
    x, states = np.array(x0, float), []
    for _ in range(rows):
        states.append(x)
        k1 = rate(coefficients, x)
        k2 = rate(coefficients, x + h / 2 * k1)
        k3 = rate(coefficients, x + h / 2 * k2)
        k4 = rate(coefficients, x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.array(states)


def rate(coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    """p' = -∂H/∂q, q' = ∂H/∂p with H = Σ c pⁱ qʲ."""
    (i, j), (p, q) = POWERS.T, x
    by_p = i * p ** np.maximum(i - 1, 0) * q**j
    by_q = j * p**i * q ** np.maximum(j - 1, 0)
    return np.array([-coefficients @ by_q, coefficients @ by_p])


if __name__ == "__main__":
    main()
