"""Kernel parameters and noise by the evidence of the linear model, again and again from where the fit then stands.

Around the best rollout the model is linear and Gaussian (`linear_model.py`), and its evidence is a closed formula of
the kernels and the noise: the mode moves with them, exactly, and only the derivative of the rollout is held fixed.
Maximise it within a trust region, fit again with the new kernels, linearise there, until nothing moves.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import block_diag, solve_triangular
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, on_device
from sgpd.gp import prior_root
from sgpd.inference.laplace.constants import CONVERGED, ROUNDS, SMALLEST_RADIUS, TIGHT, TRUST_RADIUS, WIDTH
from sgpd.inference.laplace.linear_model import (
    Recording,
    ShootingState,
    Solution,
    log_evidence,
    moved,
    regression,
    response,
    solve,
)
from sgpd.inference.laplace.shooting import Linearised, descend
from sgpd.inference.posterior.field import FieldPosterior, LatentGroup
from sgpd.integrators import Integrator
from sgpd.xla.batches import each


class Hyper(NamedTuple):
    """What the evidence decides: the logarithms of the noise, and of the factors by which the kernels have changed.

    Latents of one group share their factors: their scales may differ, but the data seldom tell more than one apart.
    """

    lengthscales: tuple[Float[Array, " k"], ...]
    variances: tuple[Scalar, ...]
    trends: tuple[Float[Array, " 2"] | None, ...]  # None: a group that has none
    noise: Float[Array, " d"]

    @classmethod
    def unchanged(cls, posterior: FieldPosterior, noise: Float[Array, " d"]) -> "Hyper":
        """The kernels as they are."""
        lengthscales = tuple(jnp.zeros(g.scale.shape[-1]) for g in posterior.groups)
        variances = tuple(jnp.zeros(()) for _ in posterior.groups)
        trends = tuple(None if g.trend is None else jnp.zeros(2) for g in posterior.groups)
        return cls(lengthscales, variances, trends, jnp.log(noise))

    def kernels(self, original: FieldPosterior) -> FieldPosterior:
        """The original posterior with changed kernels; its whitened values are as they were."""
        where = lambda p: [leaf for g in p.groups for leaf in g.logarithms]
        of_groups = zip(self.lengthscales, self.variances, self.trends, strict=True)
        factors = [factor for of_group in of_groups for factor in of_group if factor is not None]
        return eqx.tree_at(
            where,
            original,
            [old + jnp.broadcast_to(f, old.shape) for old, f in zip(where(original), factors, strict=True)],
        )

    def width(self, posterior: FieldPosterior) -> "Hyper":
        """The standard deviation of each one's prior."""
        lengthscales = [WIDTH["lengthscale" if g.axes is None else "lengthscale along axes"] for g in posterior.groups]
        return Hyper(
            tuple(jnp.full_like(each, width) for each, width in zip(self.lengthscales, lengthscales, strict=True)),
            tuple(jnp.full_like(each, WIDTH["variance"]) for each in self.variances),
            tuple(None if each is None else jnp.full_like(each, WIDTH["variance"]) for each in self.trends),
            jnp.full_like(self.noise, WIDTH["noise"]),
        )


class Tuned(NamedTuple):
    """The best field under the best kernels and noise."""

    hyper: Hyper
    at: ShootingState
    found: Linearised
    values: tuple[float, ...]  # log evidence and log prior after each round
    converged: bool

    @property
    def noise(self) -> Float[Array, " d"]:
        """The standard deviation of the noise, by channel."""
        return jnp.exp(self.hyper.noise)


def tune(
    original: FieldPosterior,
    start: Hyper,
    hyper: Hyper,
    integrator: Integrator,
    recording: Recording,
    at: ShootingState,
    known_noise: bool = False,
) -> Tuned:
    """Alternate between the best field and the best kernels and noise; `start` is the centre of their prior."""
    at, found = descend(hyper.kernels(original), integrator, recording, jnp.exp(hyper.noise), at, TIGHT)
    values, radius = [_value(hyper, start, original, recording, at, found)], TRUST_RADIUS
    for _ in range(ROUNDS):
        proposal = _maximised(hyper, start, original, recording, at, found, radius, known_noise)
        there = _refitted(proposal, hyper, start, original, integrator, recording, at, found)
        value = _value(proposal, start, original, recording, *there)
        if not value > values[-1] - CONVERGED:  # worse, or not a number: the linear model was not to be trusted so far
            radius /= 4
            if radius < SMALLEST_RADIUS:
                return Tuned(hyper, at, found, tuple(values), converged=True)
            continue
        hyper, (at, found) = proposal, there
        values.append(value)
        if values[-1] - values[-2] < CONVERGED:
            return Tuned(hyper, at, found, tuple(values), converged=True)
    return Tuned(hyper, at, found, tuple(values), converged=False)


class Evidence(NamedTuple):
    """The linear model under some kernels and noise."""

    minus: Scalar  # minus the log evidence and the log prior
    gradient: Float[Array, " h"]  # by the logarithms
    log_evidence: Scalar
    solution: Solution  # its best unknowns


@eqx.filter_jit
def objective(
    flat: Float[Array, " h"],
    start: Hyper,
    original: FieldPosterior,
    recording: Recording,
    at: ShootingState,
    found: Linearised,
) -> Evidence:
    """How good these logarithms are, around the best rollout."""
    centre, unravel = ravel_pytree(start)
    width, _ = ravel_pytree(start.width(original))

    def minus(flat):
        hyper = unravel(flat)
        noise, j = jnp.exp(hyper.noise), response(found.along, hyper.kernels(original))
        solved = solve(regression(recording, at, found.along, j, noise), (noise / recording.start_std) ** 2, at.u)
        evidence = log_evidence(recording, solved, noise)
        return jnp.sum(((flat - centre) / width) ** 2) / 2 - evidence, (evidence, solved)

    (value, rest), gradient = jax.value_and_grad(minus, has_aux=True)(flat)
    return Evidence(value, gradient, *rest)


def evidence_of(tuned: Tuned, start: Hyper, original: FieldPosterior, recording: Recording) -> Evidence:
    """How good what was found is."""
    return objective(ravel_pytree(tuned.hyper)[0], start, original, recording, tuned.at, tuned.found)


@eqx.filter_jit
def rewhitening(hyper: Hyper, seen_by: Hyper, original: FieldPosterior) -> Float[Array, "p p"]:
    """B: u of some kernels is B u of others, for the same inducing values and coefficients."""
    of_groups = zip(hyper.kernels(original).groups, seen_by.kernels(original).groups, strict=True)
    return block_diag(*(block for old, new in of_groups for block in _rewhitened(old, new)))


def _rewhitened(old: LatentGroup, new: LatentGroup) -> Float[Array, "count unknowns unknowns"]:
    roots = lambda g: each(lambda k, x: prior_root(k, x, g.jitter), g.kernel, g.inducing)
    values = each(lambda a, b: solve_triangular(b, a, lower=True), roots(old), roots(new))
    return jax.vmap(block_diag)(values, jax.vmap(jnp.diag)(old.stds / new.stds))


def _value(hyper: Hyper, start: Hyper, original, recording, at, found) -> float:
    return -float(objective(ravel_pytree(hyper)[0], start, original, recording, at, found).minus)


def _maximised(hyper: Hyper, start: Hyper, original, recording, at, found, radius: float, known_noise: bool) -> Hyper:
    from scipy.optimize import minimize  # slow to import

    flat, unravel = ravel_pytree(hyper)
    flat = np.asarray(flat)
    moves = np.full(flat.shape, radius)
    if known_noise:
        moves[-hyper.noise.shape[0] :] = 0.0

    def evaluate(x):
        evidence = objective(on_device(x), start, original, recording, at, found)
        value = float(evidence.minus)
        return (value, np.asarray(evidence.gradient)) if np.isfinite(value) else (1e10, np.zeros_like(x))

    bounds = list(zip(flat - moves, flat + moves, strict=True))
    best = minimize(evaluate, flat, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 15})
    return unravel(on_device(best.x))


def _refitted(
    proposal: Hyper, hyper: Hyper, start: Hyper, original, integrator, recording, at, found
) -> tuple[ShootingState, Linearised]:
    """The best field under new kernels, from the linear model's guess, or from the same values if that leads astray."""
    changed, noise = proposal.kernels(original), jnp.exp(proposal.noise)
    by_model, by_values = _guesses(proposal, hyper, start, original, recording, at, found)
    refitted = descend(changed, integrator, recording, noise, by_model, TIGHT, 1e-3)
    if refitted[1].cost < 2 * found.cost:
        return refitted
    return descend(changed, integrator, recording, noise, by_values, TIGHT)


_moved = eqx.filter_jit(moved)


def _guesses(
    proposal: Hyper, hyper: Hyper, start: Hyper, original, recording, at, found
) -> tuple[ShootingState, ShootingState]:
    solved = objective(ravel_pytree(proposal)[0], start, original, recording, at, found).solution
    same = rewhitening(hyper, proposal, original) @ at.u
    return _moved(recording, at, solved, jnp.exp(proposal.noise)), eqx.tree_at(lambda s: s.u, at, same)
