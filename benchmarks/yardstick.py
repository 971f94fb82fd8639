"""How well the paper's systems can be known from their recordings: fits that know the formula, by maximum likelihood.

    python benchmarks/yardstick.py [--seeds 3000-3019] [--only pendulum ...]

What such a fit does not know are a few coefficients and, with a latent start, the first state; the noise is known. The
error that it leaves comes from the noise of the recording alone, so it is a yardstick for a fit that knows less:
docs/default-fit.md shows both on the same seeds. It starts at the truth, so local optima play no part. Coefficients
have wide Gaussian priors, which only matter where a formula has more of them than the recording tells. Five draws, for
the paper's metric, are those of the Gaussian around the best fit.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

import sgpd
from sgpd.paper.measuring import l2_error
from sgpd.paper.truths import noisy_start, record, solve

DRAWS = 5
SUBSTEPS = 4  # a row; one step would leave an error of 0.03 on the pendulum
POWERS = np.array([(i, degree - i) for degree in (1, 2, 3, 4) for i in range(degree + 1)])


class Formula(NamedTuple):
    """x' = rate(coefficients, x), the true coefficients, and the width of their priors."""

    rate: Callable[[np.ndarray, np.ndarray], np.ndarray]
    true: np.ndarray
    width: float


def pendulum(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """p' = -c₁ sin q, q' = c₂ p."""
    return np.array([-c[0] * np.sin(x[1]), c[1] * x[0]])


def two_body(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Attraction c₁ / r², velocities c₂ p."""
    p, apart = x[:4], x[4:6] - x[6:]
    force = -c[0] * apart / np.linalg.norm(apart) ** 3
    return np.concatenate([force, -force, c[1] * p])


def power_law(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Attraction c₁ rᵉ with e = c₃, velocities c₂ p."""
    p, apart = x[:4], x[4:6] - x[6:]
    force = -c[0] * apart * np.linalg.norm(apart) ** (c[2] - 1)
    return np.concatenate([force, -force, c[1] * p])


def polynomial(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """p' = -∂H/∂q, q' = ∂H/∂p with H = Σ c pⁱ qʲ up to degree 4, which contains the true H."""
    (i, j), (p, q) = POWERS.T, x
    by_p = i * p ** np.maximum(i - 1, 0) * q**j
    by_q = j * p**i * q ** np.maximum(j - 1, 0)
    return np.array([-c @ by_q, c @ by_p])


def product(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The same for the three terms of the true H alone: H = c₁ p² + c₂ q² + c₃ p² q²."""
    p, q = x
    return np.array([-2 * q * (c[1] + c[2] * p**2), 2 * p * (c[0] + c[2] * q**2)])


def rigid_body(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Euler's equations, with a coefficient each."""
    return c * x[[1, 2, 0]] * x[[2, 0, 1]]


FORMULAS = {
    "pendulum": Formula(pendulum, np.array([6.0, 1.0]), 100.0),
    "two-body": Formula(two_body, np.array([1.0, 1.0]), 100.0),
    "two-body, power law": Formula(power_law, np.array([1.0, 1.0, -2.0]), 100.0),
    "non-separable": Formula(product, np.full(3, 0.5), 100.0),
    "non-separable, degree 4": Formula(polynomial, np.where(np.isin(POWERS, (0, 2)).all(axis=1), 0.5, 0.0), 1.0),
    "rigid-body": Formula(rigid_body, np.array([0.5, -1.0, 0.5]), 100.0),
}


def main():
    """One line a system and way to start: mean error and its standard error over seeds."""
    sgpd.xla.tune()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="3000-3019")
    parser.add_argument("--only", nargs="*", default=list(FORMULAS), choices=list(FORMULAS))
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    print("| formula | x0 | coefficients | L2 best | L2 5 draws |\n|---|---|---|---|---|")
    for name in options.only:
        for x0 in ("known", "latent"):
            errors = np.array([errors_of(name, x0, seed) for seed in range(first, last + 1)])
            several = len(errors) > 1
            means, spreads = errors.mean(axis=0), errors.std(axis=0, ddof=int(several)) / np.sqrt(len(errors))
            cells = [f"{mean:.4f} ± {spread:.4f}" for mean, spread in zip(means, spreads, strict=True)]
            print("| " + " | ".join([name, x0, str(len(FORMULAS[name].true)), *cells]) + " |", flush=True)


def errors_of(name: str, x0: str, seed: int) -> tuple[float, float]:
    """The paper's L2 error over the paper's horizon, of the most probable coefficients and of the mean of 5 draws."""
    system, (rate, true, width) = sgpd.systems.get(name.split(",")[0]), FORMULAS[name]
    times, truth = solve(system, "exact")
    states, noise = record(system, truth, seed).runs[0].states.copy(), np.sqrt(np.array(system.noise_variance))
    if x0 == "latent":
        states[0] = noisy_start(system, seed)

    def rolled(unknowns, rows):
        coefficients, first = np.split(unknowns, [len(true)])
        return rollout(lambda x: rate(coefficients, x), first if x0 == "latent" else system.x0, rows, system.step)

    def residuals(unknowns):
        misfit = (rolled(unknowns, len(states)) - states) / noise
        return np.concatenate([misfit.ravel(), unknowns[: len(true)] / width])

    start = np.concatenate([true, system.x0 if x0 == "latent" else []])
    found = least_squares(residuals, start)
    draws = np.random.default_rng(seed).multivariate_normal(found.x, np.linalg.inv(found.jac.T @ found.jac), DRAWS)
    mean = np.mean([rolled(draw, len(times)) for draw in draws], axis=0)
    return l2_error(rolled(found.x, len(times)), truth), l2_error(mean, truth)


def rollout(rate: Callable[[np.ndarray], np.ndarray], x0: np.ndarray, rows: int, h: float) -> np.ndarray:
    """Steps of the classical Runge-Kutta method."""
    x, states = np.array(x0, float), [x0]
    for step in range(1, SUBSTEPS * (rows - 1) + 1):
        x = _stepped(rate, x, h / SUBSTEPS)
        if step % SUBSTEPS == 0:
            states.append(x)
    return np.array(states)


def _stepped(rate: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float) -> np.ndarray:
    k1 = rate(x)
    k2 = rate(x + h / 2 * k1)
    k3 = rate(x + h / 2 * k2)
    k4 = rate(x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


if __name__ == "__main__":
    main()
