"""Where a fit starts, from the data alone: scales, inducing points, noise, and a first guess of the field.

The guess is gradient matching: a smoothing spline through each channel gives states and derivatives, and since every
structure is linear in its latents, the inducing values that explain the derivatives are a ridge regression away.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sgpd.data import Run, Trajectories
from sgpd.gp import Kernel, SquaredExponential, WhitenedGaussian
from sgpd.inference.posterior import FieldPosterior, LatentGroup
from sgpd.structures import LatentSpec, Structure

LENGTHSCALE = 3.0  # in standard deviations of what a latent sees
AMPLITUDE = 2.0  # of the prior field, in root mean squares of the data's derivatives
MARGIN = 0.15  # of the data's range, by which inducing points reach beyond it on either side
POINTS = {1: 12, 2: 25}  # inducing points by input dimension; more dimensions, see `_count`
ROWS = 1000  # at most so many rows for the regression


class Smoothed(NamedTuple):
    """States and derivatives of all runs, one below the other, as splines see them."""

    states: np.ndarray  # (n, d)
    derivatives: np.ndarray


def smooth_run(run: Run) -> Smoothed:
    """A smoothing spline through each channel, its stiffness by generalised cross-validation."""
    from scipy.interpolate import make_smoothing_spline  # slow to import

    states, derivatives = np.empty_like(run.states), np.empty_like(run.states)
    for k in range(run.states.shape[1]):
        seen = run.observed[:, k]
        t, x = run.times[seen], run.states[seen, k]
        if len(t) < 5:  # too few for a spline: straight lines
            states[:, k] = np.interp(run.times, t, x) if len(t) else 0.0
            derivatives[:, k] = np.gradient(states[:, k], run.times)
            continue
        spline = make_smoothing_spline((t - t[0]) / (t[-1] - t[0]), x)
        at = (run.times - t[0]) / (t[-1] - t[0])
        states[:, k], derivatives[:, k] = spline(at), spline.derivative()(at) / (t[-1] - t[0])
    return Smoothed(states, derivatives)


def smooth(data: Trajectories) -> Smoothed:
    """All runs smoothed, thinned to at most `ROWS` rows."""
    parts = [smooth_run(run) for run in data.runs]
    stacked = Smoothed(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    keep = np.unique(np.linspace(0, len(stacked.states) - 1, ROWS).astype(int))
    return Smoothed(stacked.states[keep], stacked.derivatives[keep])


def noise_std(data: Trajectories) -> np.ndarray:
    """The noise of each channel: the third difference of white noise has variance 20 σ², that of motion is small."""
    floor = 1e-6 * np.where(data.spread > 0, data.spread, 1.0)
    thirds = [np.diff(run.states, n=3, axis=0) for run in data.runs if len(run) > 3]
    differences = np.concatenate(thirds) if thirds else np.empty((0, data.dimension))
    enough = (~np.isnan(differences)).sum(axis=0) > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        rms = np.sqrt(np.nansum(differences**2, axis=0) / (~np.isnan(differences)).sum(axis=0) / 20)
    return np.maximum(np.where(enough, rms, 0.01 * data.spread), floor)


def initial_posterior(
    structure: Structure,
    data: Trajectories,
    kernel: type[Kernel] = SquaredExponential,
    points: int | None = None,
    diagonal: bool = False,
) -> FieldPosterior:
    """Kernels, inducing points and q(u) from the data: no random number, no setting to tune."""
    smoothed = smooth(data)
    groups = tuple(_group(spec, smoothed.states, kernel, points) for spec in structure.groups(data.dimension))
    values = tuple(WhitenedGaussian.isotropic(jnp.zeros(g.scaled_locations.shape[:2]), 1.0, diagonal) for g in groups)
    posterior = FieldPosterior(structure, data.dimension, groups, values)
    return _matched(posterior, smoothed, diagonal)


def _group(spec: LatentSpec, states: np.ndarray, kernel: type[Kernel], points: int | None) -> LatentGroup:
    if spec.differentiated and kernel.smoothness < 2:
        raise ValueError(
            f"The latent {spec.name!r} is differentiated, and so is the field that it makes, but functions of "
            f"{kernel.__name__} can be differentiated only once; use SquaredExponential or Matern52."
        )
    inputs = np.asarray(spec.inputs(jnp.asarray(states)))  # (count, n, k)
    spread = inputs.std(axis=1)
    lengthscale = LENGTHSCALE * np.where(spread > 0, spread, 1.0)
    locations = np.stack([inducing_points(x, points) for x in inputs])
    scale = jnp.asarray(lengthscale)[:, None, :]
    return LatentGroup(jax.vmap(kernel)(jnp.asarray(lengthscale)), jnp.asarray(locations) / scale, scale)


def inducing_points(inputs: np.ndarray, points: int | None = None) -> np.ndarray:
    """Inducing points (m, k) for inputs (n, k): a grid in one and two dimensions, else spread among the data."""
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    reach = np.where(high > low, high - low, 1.0) * MARGIN
    low, high, k = low - reach, high + reach, inputs.shape[1]
    count = points if points is not None else POINTS.get(k) or min(8 * k, 48)
    if k <= 2:
        side = round(count ** (1 / k))
        axes = [np.linspace(a, b, side) for a, b in zip(low, high, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, k)
    rng = np.random.default_rng(0)  # only jitters copies of the data, to reach a little beyond it
    jittered = inputs + 0.5 * inputs.std(axis=0) * rng.normal(size=inputs.shape)
    return _farthest(np.concatenate([inputs, np.clip(jittered, low, high)]), count)


def _farthest(candidates: np.ndarray, count: int) -> np.ndarray:
    """Farthest-point sampling: each next point is the one farthest from those chosen."""
    scaled = candidates / np.where(candidates.std(axis=0) > 0, candidates.std(axis=0), 1.0)
    chosen = [int(((scaled - scaled.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    distance = np.full(len(scaled), np.inf)
    for _ in range(count - 1):
        distance = np.minimum(distance, ((scaled - scaled[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return candidates[chosen]


def _design(posterior: FieldPosterior, states: np.ndarray) -> list[np.ndarray]:
    """∂f(xₙ)/∂u for each group, (n, d, count, m): the field is linear in its whitened inducing values."""

    @jax.jit
    def jacobian(posterior, values):
        return jax.jacfwd(lambda u: jax.vmap(posterior.field(u))(jnp.asarray(states)))(values)

    return [np.asarray(block) for block in jacobian(posterior, tuple(jnp.zeros_like(q.mean) for q in posterior.values))]


def _matched(posterior: FieldPosterior, smoothed: Smoothed, diagonal: bool) -> FieldPosterior:
    """Set the kernels' variances and q(u) so that the field explains the derivatives."""
    design = _design(posterior, smoothed.states)
    amplitudes = [_amplitude(block, smoothed.derivatives) for block in design]
    scaled = [block * a[None, None, :, None] for block, a in zip(design, amplitudes, strict=True)]
    mean, covariance = _ridge(np.concatenate([b.reshape(*b.shape[:2], -1) for b in scaled], axis=2), smoothed)

    groups, values, start = [], [], 0
    for group, amplitude in zip(posterior.groups, amplitudes, strict=True):
        count, m = group.scaled_locations.shape[:2]
        kernel = eqx.tree_at(lambda k: k.log_variance, group.kernel, jnp.asarray(2 * np.log(amplitude)))
        groups.append(eqx.tree_at(lambda g: g.kernel, group, kernel))
        parts = [slice(start + c * m, start + (c + 1) * m) for c in range(count)]
        values.append(_gaussian([mean[p] for p in parts], [covariance[p, p] for p in parts], diagonal))
        start += count * m
    return FieldPosterior(posterior.structure, posterior.dimension, tuple(groups), tuple(values))


def _amplitude(block: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
    """σ_f of each latent, such that the prior field is `AMPLITUDE` times the size of the derivatives it has to explain.

    A latent that moves several coordinates gets what the most demanding of them needs.
    """
    unit = (block**2).sum(axis=3).mean(axis=0)  # (d, count): variance of the prior field for σ_f = 1
    moved = unit > 1e-12 * unit.max(axis=0)
    wanted = (derivatives**2).mean(axis=0)[:, None] / np.where(moved, unit, np.inf)
    return AMPLITUDE * np.sqrt(np.maximum(wanted.max(axis=0), 1e-12))


def _ridge(design: np.ndarray, smoothed: Smoothed) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of u ~ N(0, I) given derivatives with an unknown error for each channel."""
    spread = np.sqrt((smoothed.derivatives**2).mean(axis=0))
    error = 0.1 * np.where(spread > 0, spread, 1.0)
    for _ in range(5):
        weighted = (design / error[None, :, None]).reshape(-1, design.shape[2])
        target = (smoothed.derivatives / error[None, :]).reshape(-1)
        covariance = np.linalg.inv(np.eye(design.shape[2]) + weighted.T @ weighted)
        mean = covariance @ (weighted.T @ target)
        misfit = smoothed.derivatives - design @ mean
        error = np.maximum(np.sqrt((misfit**2).mean(axis=0)), 1e-3 * error)
    return mean, covariance


def _gaussian(means: list[np.ndarray], covariances: list[np.ndarray], diagonal: bool) -> WhitenedGaussian:
    if diagonal:
        raw = np.stack([np.log(np.diagonal(c)) / 2 for c in covariances])
    else:
        roots = np.linalg.cholesky(np.stack(covariances))
        log_diagonal = np.log(np.diagonal(roots, axis1=1, axis2=2))
        raw = np.tril(roots, -1) + log_diagonal[:, :, None] * np.eye(roots.shape[1])
    return WhitenedGaussian(jnp.asarray(np.stack(means)), jnp.asarray(raw))
