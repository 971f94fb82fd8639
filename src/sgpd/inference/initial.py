"""Where a fit starts, from the data alone: scales, inducing points, and a first guess of the field.

The guess is gradient matching: a smoothing spline through each channel gives states and derivatives, and the values and
trends that explain the derivatives are a ridge regression away where a structure is linear in its latents, and a few
where it is not (Gauss-Newton).
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import on_device
from sgpd.data import Trajectories
from sgpd.data.smoothing import Smoothed, smooth
from sgpd.errors import BadInput, NumericalFailure, Outcome
from sgpd.gp import Kernel, SquaredExponential, Trend, WhitenedGaussian
from sgpd.inference.constants import (
    ACROSS,
    AMPLITUDE,
    CONFINED,
    CONSTANT,
    GAUSS_NEWTON,
    GRID,
    LENGTHSCALES,
    LONGEST_STEP,
    MARGIN,
    PER_DIMENSION,
    POINTS,
    REGARD,
)
from sgpd.inference.posterior.field import FieldPosterior, LatentGroup
from sgpd.inference.posterior.kernels import Kernels
from sgpd.structures import LatentSpec, Structure, key_of
from sgpd.xla.batches import in_rows


def initial_posterior(
    structure: Structure,
    data: Trajectories,
    kernel: type[Kernel] = SquaredExponential,
    points: int | Sequence[int] | None = None,
    diagonal: bool = False,
    sized: Callable[[FieldPosterior], None] = lambda posterior: None,
) -> FieldPosterior:
    """Kernels, inducing points and q(u) from the data: no random number, no setting to tune.

    `sized` is told of a posterior of the same sizes as soon as these are known.

    The lengthscales of each group are those among `LENGTHSCALES` under which the regression has the highest evidence;
    across a subspace that the recording hardly leaves, they may be `ACROSS` times as long. `points` are for each
    latent, or for those of each group.
    """
    smoothed = smooth(data)
    specs = structure.groups(data.dimension)
    counts = points if isinstance(points, Sequence) else [points] * len(specs)
    seen = [_seen(spec, smoothed.states, kernel, count) for spec, count in zip(specs, counts, strict=True)]
    groups = [one.group(kernel, LENGTHSCALES[-1]) for one in seen]
    sized(FieldPosterior(structure, data.dimension, tuple(groups), ()))
    matching = _Matching.of(structure, smoothed, groups)
    for index, one in enumerate(seen):
        choices = [one.group(kernel, along, factor) for along in LENGTHSCALES for factor in one.factors]
        trials = [[*groups[:index], choice, *groups[index + 1 :]] for choice in choices]
        evidences = [matching.explained(trial).evidence for trial in trials]
        groups = trials[int(np.argmax(evidences))]
    amplitudes, mean, covariance, _ = matching.explained(groups)
    groups = tuple(_of_size(g, a) for g, a in zip(groups, amplitudes, strict=True))
    return FieldPosterior(
        structure, data.dimension, groups, gaussians([g.unknowns for g in groups], mean, covariance, diagonal)
    )


class _Matched(NamedTuple):
    """Latents of some lengthscales that explain the derivatives."""

    amplitudes: list[np.ndarray]
    mean: np.ndarray  # of u
    covariance: np.ndarray
    evidence: float  # for these lengthscales


class _Matching(NamedTuple):
    """Gauss-Newton on the derivatives of a recording: f(x, r) = f* + R (r - r*), and r = Ψ u."""

    structure: Structure
    smoothed: Smoothed
    at_zero: "_Made"  # where no reading is anything but 0
    linear: bool  # whether R is the same for all readings

    @classmethod
    def of(cls, structure: Structure, smoothed: Smoothed, groups: list[LatentGroup]) -> "_Matching":
        """Tried at readings of any size."""
        unit = FieldPosterior(structure, smoothed.states.shape[1], tuple(groups), ())
        _require_readings_at_the_state(unit, smoothed.states[:3])
        tried = [_Made.of(unit, smoothed.states, r) for r in _some_readings(len(smoothed.states), unit.rho)]
        same = [np.allclose(one.by_readings, tried[0].by_readings, rtol=1e-12, atol=0.0) for one in tried[1:]]
        return cls(structure, smoothed, tried[0], all(same))

    def explained(self, groups: list[LatentGroup]) -> _Matched:
        """With latents of these kernels, for variance 1."""
        states, derivatives = self.smoothed
        unit = FieldPosterior(self.structure, states.shape[1], tuple(groups), ())
        basis = Kernels.of(unit).by_unknowns(states)
        if not all(np.isfinite(each).all() for each in basis):
            raise NumericalFailure(Outcome.NOT_POSITIVE_DEFINITE)
        made, specs = self.at_zero, self.structure.groups(states.shape[1])
        design = [_by_unknowns(*each) for each in zip(unit.by_latents(made.by_readings), basis, strict=True)]
        amplitudes = [_sizes(*each, derivatives) for each in zip(design, groups, specs, strict=True)]
        basis = [each * a[None, :, None, :] for each, a in zip(basis, amplitudes, strict=True)]
        u = np.zeros(sum(math.prod(g.unknowns) for g in groups))
        if self.linear:
            return _Matched(amplitudes, *_ridge(made.design(unit, basis), derivatives - made.field))
        for step in range(GAUSS_NEWTON):
            design = made.design(unit, basis)
            if not design.any():  # a product of latents, all of which are 0
                u = np.random.default_rng(0).normal(size=u.shape)
            else:
                target = derivatives - made.field + design @ u
                mean, covariance, evidence = _ridge(design, target)
                u = u + np.clip(mean - u, -LONGEST_STEP, LONGEST_STEP) if step else mean
            made = _Made.of(unit, states, _readings(basis, u))
        return _Matched(amplitudes, u, covariance, evidence)


def _require_readings_at_the_state(unit: FieldPosterior, states: np.ndarray):
    """Refuse a structure of somebody's own that reads its latents elsewhere: all derivatives would be wrong."""
    if ":" not in key_of(unit.structure):
        return
    kernels = Kernels.of(unit)
    u = np.random.default_rng(0).normal(size=kernels.size)
    field = np.stack([np.asarray(kernels.field(u)(on_device(x))) for x in states])
    made = _Made.of(unit, states, _readings(kernels.by_unknowns(states), u)).field
    if not np.allclose(made, field, rtol=1e-6, atol=1e-6 * np.abs(field).max()):
        hint = "give the latent a map of the state (`depends_on` of its `LatentSpec`), or a group of several"
        raise BadInput(f"The structure {unit.structure.name!r} reads its latents elsewhere than at the state", hint)


class _Made(NamedTuple):
    """The field that is made of some readings, and its derivative by them."""

    field: np.ndarray  # (n, d)
    by_readings: np.ndarray  # (n, d, rho)

    @classmethod
    def of(cls, unit: FieldPosterior, states: np.ndarray, r: np.ndarray) -> "_Made":
        """At each of the states."""
        return cls(*in_rows(unit.made, states, r))

    def design(self, unit: FieldPosterior, basis: list[np.ndarray]) -> np.ndarray:
        """(n, d, p): its derivative by u."""
        parts = zip(unit.by_latents(self.by_readings), basis, strict=True)
        return np.concatenate([_flat(_by_unknowns(*each)) for each in parts], axis=2)


def _by_unknowns(by_readings, basis: np.ndarray) -> np.ndarray:
    """(n, d, count, m): by the unknowns of each latent of a group."""
    return np.einsum("ndcq,ncqm->ndcm", np.asarray(by_readings), basis, optimize=True)


def _flat(block: np.ndarray) -> np.ndarray:
    return block.reshape(*block.shape[:2], -1)


def _readings(basis: list[np.ndarray], u: np.ndarray) -> np.ndarray:
    """(n, rho): Ψ u."""
    shapes = [(each.shape[1], each.shape[3]) for each in basis]
    parts = np.split(u, np.cumsum([count * m for count, m in shapes])[:-1])
    own = [np.einsum("ncqm,cm->ncq", b, part.reshape(s)) for b, part, s in zip(basis, parts, shapes, strict=True)]
    return np.concatenate([each.reshape(len(each), -1) for each in own], axis=1)


def _some_readings(n: int, rho: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [np.zeros((n, rho)), rng.normal(size=(n, rho)), 1e3 * rng.normal(size=(n, rho))]


class _Seen(NamedTuple):
    """What a group of latents sees of the recording: where inducing points belong, and along which axes it moves."""

    locations: np.ndarray  # (count, m, k), along the axes
    unit: np.ndarray  # (count, k), of lengthscales
    axes: np.ndarray | None
    across: np.ndarray  # (count, k), whether an axis leads out of the subspace of the recording
    centre: np.ndarray | None  # (count, k), along the axes, of a trend; None: no trend

    @property
    def factors(self) -> tuple[float, ...]:
        """How much longer lengthscales across the subspace may be than along it."""
        return ACROSS if self.across.any() else (1.0,)

    def group(self, kernel: type[Kernel], along: float, factor: float = 1.0) -> LatentGroup:
        """With lengthscales of so many units, and across the subspace so many times longer."""
        lengthscale = along * self.unit * np.where(self.across, factor, 1.0)
        scale = on_device(lengthscale)[:, None, :]
        axes = None if self.axes is None else on_device(self.axes)
        trend = None
        if self.centre is not None:
            trend = Trend(on_device(self.centre), on_device(np.zeros((len(self.centre), 2))))
        return LatentGroup(
            _kernels(kernel, on_device(lengthscale)), on_device(self.locations) / scale, scale, axes=axes, trend=trend
        )


@partial(jax.jit, static_argnums=0)
def _kernels(kernel: type[Kernel], lengthscales: Float[Array, "count k"]) -> Kernel:
    """A stack of them, of variance 1."""
    return jax.vmap(kernel)(lengthscales)


def _seen(spec: LatentSpec, states: np.ndarray, kernel: type[Kernel], points: int | None) -> _Seen:
    if spec.differentiated and kernel.smoothness < 2:
        raise BadInput(
            f"The latent {spec.name!r} is differentiated, and so is the field that it makes, but functions of "
            f"{kernel.__name__} can be differentiated only once",
            "use SquaredExponential or Matern52",
        )
    inputs = spec.inputs(states)  # (count, n, k)
    locations, unit = np.stack([inducing_points(x, points) for x in inputs]), inputs.std(axis=1)
    unit = np.where(_constant(inputs), 1.0, unit)
    nowhere = np.zeros(unit.shape, bool)
    # Fields given by components have no trend: draws that leave the data along straight lines run away. Nor have they
    # axes: a potential that does nothing across a subspace leaves the motion in it, but components seldom do nothing
    # (q' = p), and their draws were worse for axes.
    if not spec.differentiated:
        return _Seen(locations, unit, None, nowhere, None)
    centre, found = inputs.mean(axis=1), principal_axes(inputs)
    if found is None:
        return _Seen(locations, unit, None, nowhere, centre)
    axes, across = found
    locations, centre = np.einsum("cij,cmj->cmi", axes, locations), np.einsum("cij,cj->ci", axes, centre)
    return _Seen(locations, np.ones(across.shape), axes, across, centre)


def _constant(inputs: np.ndarray) -> np.ndarray:
    """Which coordinates (count, k) of inputs (count, n, k) do not move."""
    return inputs.std(axis=1) <= CONSTANT * np.abs(inputs).max(axis=1)


def principal_axes(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Axes (count, k, k) for inputs (count, n, k), in standard deviations, and which of them lead out of a subspace.

    Two equal bodies whose centre of mass rests at the origin have q1 + q2 = 0. What a function does across such a
    subspace is not seen, and it is simplest if it does nothing; only lengthscales along and across it can say so. Where
    there is none, or not the same number of directions for each latent, the axes are the coordinates, which somebody
    has chosen (None); so they are where one of them is constant, which has no standard deviation to be measured in.
    """
    if _constant(inputs).any():
        return None
    std = inputs.std(axis=1)
    scaled = (inputs - inputs.mean(axis=1, keepdims=True)) / std[:, None, :]
    squares, directions = np.linalg.eigh(np.einsum("cni,cnj->cij", scaled, scaled) / inputs.shape[1])
    across = leads_out(np.sqrt(np.maximum(squares, 0.0)))
    if not across.any() or (across != across[0]).any():
        return None
    return np.swapaxes(directions, 1, 2) / std[:, None, :], across


def leads_out(motion: np.ndarray) -> np.ndarray:
    """Along which directions (..., k) the motion is so small that they lead out of the subspace of the others."""
    return motion < CONFINED * motion.max(axis=-1, keepdims=True)


def inducing_points(inputs: np.ndarray, points: int | None = None) -> np.ndarray:
    """Inducing points (m, k) for inputs (n, k): a grid in one and two dimensions, else spread among the data."""
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    margin = np.where(high > low, high - low, 1.0) * MARGIN
    low, high, k = low - margin, high + margin, inputs.shape[1]
    count = points if points is not None else POINTS.get(k) or min(PER_DIMENSION * k, 64)
    if k <= GRID:
        side = round(count ** (1 / k))
        axes = [np.linspace(a, b, side) for a, b in zip(low, high, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, k)
    rng = np.random.default_rng(0)  # only jitters copies of the data, to reach a little beyond it
    jittered = np.clip(inputs + 0.5 * inputs.std(axis=0) * rng.normal(size=inputs.shape), low, high)
    visited = _most_uncertain(inputs, np.zeros((0, k)), -(-count // 2))
    return np.concatenate([visited, _most_uncertain(jittered, visited, count - len(visited))])


def _most_uncertain(candidates: np.ndarray, known: np.ndarray, count: int) -> np.ndarray:
    """Of the candidates, one after the other the one whose value is least certain given those before (and `known`).

    A pivoted Cholesky factorisation of a squared exponential with lengthscales of `REGARD` standard deviations.
    """
    scale = REGARD * np.where(candidates.std(axis=0) > 0, candidates.std(axis=0), 1.0)
    points = np.concatenate([known, candidates]) / scale
    left, factors, chosen = np.ones(len(points)), np.zeros((0, len(points))), []
    for index in range(len(known) + count):
        pivot = index if index < len(known) else len(known) + int(left[len(known) :].argmax())
        across = np.exp(-((points - points[pivot]) ** 2).sum(axis=1) / 2) - factors[:, pivot] @ factors
        factors = np.concatenate([factors, across[None] / np.sqrt(max(left[pivot], 1e-12))])
        left = np.maximum(left - factors[-1] ** 2, 0.0)
        if index >= len(known):
            chosen.append(pivot - len(known))
    return candidates[chosen]


def _sizes(block: np.ndarray, group: LatentGroup, spec: LatentSpec, derivatives: np.ndarray) -> np.ndarray:
    """(count, unknowns): σ_f for the values of each latent, and what makes its trend, if any, as large.

    A trend that starts smaller than the process may stay so: the evidence of two bodies then ended 15 nats lower.
    """
    if spec.std is not None:
        return np.full(group.unknowns, spec.std)
    parts = np.split(block, [group.points], axis=3)
    repeated = lambda part: np.repeat(_amplitude(part, derivatives)[:, None], part.shape[3], axis=1)
    return np.concatenate([repeated(part) for part in parts if part.size], axis=1)


def _of_size(group: LatentGroup, amplitudes: np.ndarray) -> LatentGroup:
    """With these amplitudes."""
    logarithms = 2 * np.log(amplitudes)
    group = eqx.tree_at(lambda g: g.kernel.log_variance, group, on_device(logarithms[:, 0]))
    if group.trend is None:
        return group
    return eqx.tree_at(lambda g: g.trend.log_variances, group, on_device(logarithms[:, [-1, -1]]))


def _amplitude(block: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
    """Of each latent, such that its prior field is `AMPLITUDE` times the size of the derivatives it has to explain.

    A latent that moves several coordinates gets what the most demanding of them needs.
    """
    unit = (block**2).sum(axis=3).mean(axis=0)  # (d, count): variance of the prior field for σ_f = 1
    moved = unit > 1e-12 * unit.max(axis=0)
    wanted = (derivatives**2).mean(axis=0)[:, None] / np.where(moved, unit, np.inf)
    return AMPLITUDE * np.sqrt(np.maximum(wanted.max(axis=0), 1e-12))


def _ridge(design: np.ndarray, derivatives: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, covariance and log evidence of u ~ N(0, I), given derivatives with an unknown error for each channel."""
    size = np.sqrt((derivatives**2).mean(axis=0))
    error = 0.1 * np.where(size > 0, size, 1.0)
    floor = 1e-3 * error
    for _ in range(5):
        weighted = (design / error[None, :, None]).reshape(-1, design.shape[2])
        target = (derivatives / error[None, :]).reshape(-1)
        precision = np.eye(design.shape[2]) + weighted.T @ weighted
        covariance = np.linalg.inv(precision)
        mean = covariance @ (weighted.T @ target)
        # log N(target | 0, W Wᵀ + I), less the logarithm of the units of the target
        misfit = target @ target - target @ (weighted @ mean)
        evidence = -(misfit + np.linalg.slogdet(precision)[1]) / 2 - len(derivatives) * np.log(error).sum()
        error = np.maximum(np.sqrt(((derivatives - design @ mean) ** 2).mean(axis=0)), floor)
    return mean, covariance, float(evidence)


def gaussians(
    shapes: Sequence[tuple[int, int]], mean: np.ndarray, covariance: np.ndarray, diagonal: bool = False
) -> tuple[WhitenedGaussian, ...]:
    """A joint Gaussian over all whitened values, taken apart into one for each latent; NumPy, so nothing compiles."""
    parts, at = [], 0
    for count, m in shapes:
        means, blocks = mean[at : at + count * m].reshape(count, m), []
        for k in range(at, at + count * m, m):
            blocks.append(covariance[k : k + m, k : k + m])
        at += count * m
        parts.append(WhitenedGaussian(on_device(means), on_device(_raw_roots(np.stack(blocks), diagonal))))
    return tuple(parts)


def _raw_roots(covariances: np.ndarray, diagonal: bool) -> np.ndarray:
    """As a `WhitenedGaussian` has them: factors with the logarithm of their diagonals, or only that."""
    if diagonal:  # the closest with independent values has the same conditional variances
        return -np.log(np.diagonal(np.linalg.inv(covariances), axis1=1, axis2=2)) / 2
    roots = np.linalg.cholesky(covariances)
    logarithms = np.log(np.diagonal(roots, axis1=1, axis2=2))
    return np.tril(roots, -1) + logarithms[:, :, None] * np.eye(roots.shape[1])
