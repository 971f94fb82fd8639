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
from sgpd.inference.laplace.linear_model import Linearised, LinearModel, ShootingState, Solution, Tangent
from sgpd.inference.laplace.recording import Recording
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


class Evidence(NamedTuple):
    """The linear model under some kernels and noise."""

    minus: Scalar  # minus the log evidence and the log prior
    gradient: Float[Array, " h"]  # by the logarithms
    log_evidence: Scalar
    solution: Solution  # its best unknowns


class Tuning(eqx.Module):
    """What is tuned: the kernels of a posterior, and the noise of its model of a recording, under a prior."""

    original: FieldPosterior
    start: Hyper  # the centre of the prior
    integrator: Integrator
    recording: Recording
    known_noise: bool = eqx.field(static=True, default=False)

    def model(self, hyper: Hyper) -> LinearModel:
        """Under these kernels and this noise."""
        posterior, noise = _under(hyper, self.original)
        return LinearModel(posterior, self.integrator, self.recording, noise)

    @eqx.filter_jit
    def objective(self, flat: Float[Array, " h"], at: ShootingState, along: Tangent) -> Evidence:
        """How good these logarithms are, around the best rollout."""
        centre, unravel = ravel_pytree(self.start)
        width, _ = ravel_pytree(self.start.width(self.original))

        def minus(flat):
            model = self.model(unravel(flat))
            solved = model.sums(at, along).solved()
            evidence = model.log_evidence(solved)
            return jnp.sum(((flat - centre) / width) ** 2) / 2 - evidence, (evidence, solved)

        (value, rest), gradient = jax.value_and_grad(minus, has_aux=True)(flat)
        return Evidence(value, gradient, *rest)

    def evidence(self, hyper: Hyper, at: ShootingState, along: Tangent) -> Evidence:
        """The same of logarithms by name."""
        return self.objective(ravel_pytree(hyper)[0], at, along)


@eqx.filter_jit
def _under(hyper: Hyper, original: FieldPosterior) -> tuple[FieldPosterior, Float[Array, " d"]]:
    return hyper.kernels(original), jnp.exp(hyper.noise)


def tune(tuning: Tuning, hyper: Hyper, at: ShootingState) -> Tuned:
    """Alternate between the best field and the best kernels and noise."""
    at, found = tuning.model(hyper).descend(at, TIGHT)
    tuned, radius = Tuned(hyper, at, found, (_value(tuning, hyper, at, found),), converged=False), TRUST_RADIUS
    for _ in range(ROUNDS):
        proposal = _maximised(tuning, tuned, radius)
        there = _refitted(tuning, tuned, proposal)
        before, value = tuned.values[-1], _value(tuning, proposal, *there)
        if not value > before - CONVERGED:  # worse, or not a number: the linear model was not to be trusted so far
            radius /= 4
            if radius < SMALLEST_RADIUS:
                return tuned._replace(converged=True)
            continue
        tuned = Tuned(proposal, *there, (*tuned.values, value), converged=value - before < CONVERGED)
        if tuned.converged:
            break
    return tuned


@eqx.filter_jit
def rewhitening(hyper: Hyper, seen_by: Hyper, original: FieldPosterior) -> Float[Array, "p p"]:
    """B: u of some kernels is B u of others, for the same inducing values and coefficients."""
    of_groups = zip(hyper.kernels(original).groups, seen_by.kernels(original).groups, strict=True)
    return block_diag(*(block for old, new in of_groups for block in _rewhitened(old, new)))


def _rewhitened(old: LatentGroup, new: LatentGroup) -> Float[Array, "count unknowns unknowns"]:
    roots = lambda g: each(lambda k, x: prior_root(k, x, g.jitter), g.kernel, g.inducing)
    values = each(lambda a, b: solve_triangular(b, a, lower=True), roots(old), roots(new))
    return jax.vmap(block_diag)(values, jax.vmap(jnp.diag)(old.stds / new.stds))


def _value(tuning: Tuning, hyper: Hyper, at: ShootingState, found: Linearised) -> float:
    return -float(tuning.evidence(hyper, at, found.along).minus)


def _maximised(tuning: Tuning, tuned: Tuned, radius: float) -> Hyper:
    """The best logarithms within a box around those found so far, by the linear model there."""
    from scipy.optimize import minimize  # slow to import

    flat, unravel = ravel_pytree(tuned.hyper)
    flat = np.asarray(flat)
    moves = np.full(flat.shape, radius)
    if tuning.known_noise:
        moves[-tuned.noise.shape[0] :] = 0.0

    def evaluate(x):
        evidence = tuning.objective(on_device(x), tuned.at, tuned.found.along)
        value = float(evidence.minus)
        return (value, np.asarray(evidence.gradient)) if np.isfinite(value) else (1e10, np.zeros_like(x))

    bounds = list(zip(flat - moves, flat + moves, strict=True))
    best = minimize(evaluate, flat, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 15})
    return unravel(on_device(best.x))


def _refitted(tuning: Tuning, tuned: Tuned, proposal: Hyper) -> tuple[ShootingState, Linearised]:
    """The best field under new kernels, from the linear model's guess, or from the same values if that leads astray."""
    model, at = tuning.model(proposal), tuned.at
    equations, _ = model.regression(at, tuned.found.along)
    by_model = model.improved(at, equations, on_device(0.0))
    same = eqx.tree_at(lambda s: s.u, at, rewhitening(tuned.hyper, proposal, tuning.original) @ at.u)
    refitted = model.descend(by_model, TIGHT, 1e-3)
    if refitted[1].cost < 2 * tuned.found.cost:
        return refitted
    return model.descend(same, TIGHT)
