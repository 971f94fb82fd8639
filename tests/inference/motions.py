"""Noisy recordings of a planet in space and of a double pendulum."""

import numpy as np
from scipy.integrate import solve_ivp

import sgpd

NOISE = 0.01  # of each channel's standard deviation


def kepler(rows: int = 150, seed: int = 0) -> sgpd.Trajectories:
    """One body around a fixed centre, p' = -q/|q|³ and q' = p, on an inclined ellipse, by ten steps a time unit."""
    c, s = np.cos(0.5), np.sin(0.5)
    turn = np.array([[np.cos(0.7), -np.sin(0.7), 0], [np.sin(0.7), np.cos(0.7), 0], [0, 0, 1]])
    turn = turn @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    p, q = turn @ [0, np.sqrt(1.3 / 0.7), 0], turn @ [0.7, 0, 0]
    field = lambda t, x: np.concatenate([-x[3:] / np.linalg.norm(x[3:]) ** 3, x[:3]])
    return _recorded(field, np.concatenate([p, q]), 0.1 * np.arange(rows), seed)


def double_pendulum(rows: int = 200, seed: int = 0) -> sgpd.Trajectories:
    """Masses, lengths and gravity 1, momenta that belong to the angles, from rest at 1 and 1.2 radians."""

    def field(t, x):
        apart = x[2] - x[3]
        v = np.linalg.solve([[2.0, np.cos(apart)], [np.cos(apart), 1.0]], x[:2])
        pull = v[0] * v[1] * np.sin(apart)
        return np.array([-pull - 2 * np.sin(x[2]), pull - np.sin(x[3]), *v])

    return _recorded(field, np.array([0.0, 0.0, 1.0, 1.2]), 0.1 * np.arange(rows), seed)


def _recorded(field, x0, times, seed):
    rng = np.random.default_rng([seed, 77])
    x0 = x0 * (1 + 0.05 * rng.normal(size=len(x0)) * (seed > 0))
    exact = solve_ivp(field, (0, times[-1]), x0, t_eval=times, rtol=1e-11, atol=1e-12).y.T
    return sgpd.Trajectories.from_arrays(times, exact + NOISE * exact.std(axis=0) * rng.normal(size=exact.shape))
