"""Kernel parameters and noise by the evidence of the linear model, again and again from where the fit then stands.

Around the best rollout the model is linear and Gaussian (`linear_model.py`), and its evidence is a closed formula of
the kernels and the noise: the mode moves with them, exactly, and only the derivative of the rollout is held fixed.
Maximise it within a trust region, fit again with the new kernels, linearise there, until nothing moves.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from sgpd.inference.laplace.constants import (
    CONVERGED,
    EVALUATIONS,
    LARGEST_RADIUS,
    LEFT,
    ROUNDS,
    SMALLEST_RADIUS,
    TIGHT,
    TRUST_RADIUS,
    WIDTH,
)
from sgpd.inference.laplace.descent import Descent, Until, descend
from sgpd.inference.laplace.linear_model import Along, Evidence, Linearised, LinearModel, ShootingState
from sgpd.inference.laplace.maximise import Evaluate, Memory, Point, maximise
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.posterior.field import FieldPosterior
from sgpd.inference.posterior.kernels import Kernels
from sgpd.integrators import Integrator


class Hyper(NamedTuple):
    """What the evidence decides: the logarithms of the noise, and of the factors by which the kernels have changed.

    Latents of one group share their factors: their scales may differ, but the data seldom tell more than one apart.
    """

    lengthscales: tuple[Float[np.ndarray, " k"], ...]
    variances: tuple[Float[np.ndarray, ""], ...]
    trends: tuple[Float[np.ndarray, " 2"] | None, ...]  # None: a group that has none
    noise: Float[np.ndarray, " d"]

    @classmethod
    def unchanged(cls, posterior: FieldPosterior, noise: Float[np.ndarray, " d"]) -> "Hyper":
        """The kernels as they are."""
        lengthscales = tuple(np.zeros(g.scale.shape[-1]) for g in posterior.groups)
        variances = tuple(np.zeros(()) for _ in posterior.groups)
        trends = tuple(None if g.trend is None else np.zeros(2) for g in posterior.groups)
        return cls(lengthscales, variances, trends, np.log(noise))

    @property
    def flat(self) -> Float[np.ndarray, " h"]:
        """All logarithms, those of the noise last."""
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(self)])

    def of_flat(self, flat: Float[np.ndarray, " h"]) -> "Hyper":
        """Those by name."""
        leaves, form = jax.tree.flatten(self)
        parts = np.split(flat, np.cumsum([leaf.size for leaf in leaves])[:-1])
        return jax.tree.unflatten(form, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])

    def kernels(self, original: FieldPosterior) -> FieldPosterior:
        """The original posterior with changed kernels; its whitened values are as they were."""
        return original.with_logarithms(self.moved(original.logarithms))

    def moved(self, logarithms: list) -> list[np.ndarray]:
        """The logarithms of a posterior, moved by these."""
        return [np.asarray(old) + factor for old, factor in zip(logarithms, self._of_kernels, strict=True)]

    def gradient(self, by_logarithms: list[np.ndarray], by_noise: np.ndarray) -> Float[np.ndarray, " h"]:
        """By these logarithms, of that by the logarithms of a posterior: latents of a group share theirs."""
        form = jax.tree.structure(self._by_group)
        parts = jax.tree.unflatten(form, [one.sum(axis=0) for one in by_logarithms])
        lengthscales, variances, trends = zip(*parts, strict=True)
        return Hyper(lengthscales, variances, trends, by_noise).flat

    def width(self, posterior: FieldPosterior) -> "Hyper":
        """The standard deviation of each one's prior."""
        lengthscales = [WIDTH["lengthscale" if g.axes is None else "lengthscale along axes"] for g in posterior.groups]
        return Hyper(
            tuple(np.full_like(each, width) for each, width in zip(self.lengthscales, lengthscales, strict=True)),
            tuple(np.full_like(each, WIDTH["variance"]) for each in self.variances),
            tuple(None if each is None else np.full_like(each, WIDTH["variance"]) for each in self.trends),
            np.full_like(self.noise, WIDTH["noise"]),
        )

    @property
    def _by_group(self) -> list[tuple]:
        return list(zip(self.lengthscales, self.variances, self.trends, strict=True))

    @property
    def _of_kernels(self) -> list[np.ndarray]:
        """In the order of a posterior's logarithms."""
        return jax.tree.leaves(self._by_group)


class Tuned(NamedTuple):
    """The best field under the best kernels and noise."""

    hyper: Hyper
    at: ShootingState
    found: Linearised
    values: tuple[float, ...]  # log evidence and log prior after each round
    converged: bool

    @property
    def noise(self) -> Float[np.ndarray, " d"]:
        """The standard deviation of the noise, by channel."""
        return np.exp(self.hyper.noise)


class Objective(NamedTuple):
    """How good some kernels and noise are."""

    value: float  # log evidence and log prior; -inf where there is none
    gradient: Float[np.ndarray, " h"]  # by the logarithms
    evidence: Evidence | None


@dataclass(frozen=True, eq=False)
class Tuning:
    """What is tuned: the kernels of a posterior, and the noise of its model of a recording, under a prior."""

    original: FieldPosterior
    start: Hyper  # the centre of the prior
    integrator: Integrator
    recording: Recording
    known_noise: bool = False
    keeps: bool = True  # what its model needs for the evidence

    @cached_property
    def _start(self) -> Kernels:
        return Kernels.of(self.original)

    @cached_property
    def _width(self) -> Float[np.ndarray, " h"]:
        return self.start.width(self.original).flat

    def model(self, hyper: Hyper) -> LinearModel:
        """Under these kernels and this noise."""
        kernels = Kernels.of(self._start.original, hyper.moved(self._start.logarithms))
        return LinearModel(kernels, self.integrator, self.recording, np.exp(hyper.noise), keeps=self.keeps)

    def objective(self, hyper: Hyper, at: ShootingState, along: Along) -> Objective:
        """How good these are, around the best rollout."""
        away = (hyper.flat - self.start.flat) / self._width
        try:
            evidence = self.model(hyper).evidence(at, along)
        except np.linalg.LinAlgError:
            return Objective(-np.inf, np.zeros(away.shape), None)
        if not evidence.solution.cost >= 0:  # squares: of rollouts so unstable nothing is left but rounding
            return Objective(-np.inf, np.zeros(away.shape), None)
        gradient = hyper.gradient(evidence.by_logarithms, evidence.by_noise)
        gradient -= away / self._width
        return Objective(evidence.log_evidence - float(away @ away) / 2, gradient, evidence)

    def around(self, at: ShootingState, along: Along) -> Evaluate:
        """Log evidence and log prior by the logarithms, with their gradient, as the linear model there has them."""
        return lambda x: self.objective(self.start.of_flat(x), at, along)[:2]

    def curvature(self) -> Float[np.ndarray, "h h"]:
        """Minus the second derivatives, to begin with: exact for the prior, and a guess for the evidence."""
        of_evidence = np.ones(len(self._width))  # a kernel's logarithm is known to about 1
        # log p = -n log σ - Σ r²/2σ² has -2n as its second derivative by log σ, at its best.
        of_evidence[-len(self.start.noise) :] = 2 * self.recording.observed.sum(axis=0)
        return np.diag(1 / self._width**2 + of_evidence)

    def movable(self) -> Float[np.ndarray, " h"]:
        """1 for every logarithm that is to be found, 0 for others."""
        movable = np.ones(len(self._width))
        if self.known_noise:
            movable[-len(self.start.noise) :] = 0.0
        return movable


def tune(tuning: Tuning, hyper: Hyper, best: Descent) -> Tuned:
    """Alternate between the best field, which is known under the first kernels, and the best kernels and noise.

    A round that gained what it promised is followed by one that may go farther; it ends where little is promised.
    """
    here = Point.of(tuning.around(best.at, best.found.along), hyper.flat)
    tuned, radius = Tuned(hyper, best.at, best.found, (here.value,), converged=False), TRUST_RADIUS
    memory = Memory(tuning.curvature(), radius)
    for _ in range(ROUNDS):
        evaluate = tuning.around(tuned.at, tuned.found.along)
        promised = maximise(evaluate, here, radius * tuning.movable(), memory, LEFT, EVALUATIONS)
        memory = promised.memory
        if promised.point is here:
            return tuned._replace(converged=promised.left < CONVERGED)
        proposal = hyper.of_flat(promised.point.x)
        there = _refitted(tuning, tuned, proposal)
        now = Point.of(tuning.around(there.at, there.found.along), promised.point.x)
        radius, gain = _trusted(radius, here, promised.point, now), now.value - here.value
        if gain > -CONVERGED:
            converged = gain < CONVERGED and promised.left < CONVERGED
            here, tuned = now, Tuned(proposal, there.at, there.found, (*tuned.values, now.value), converged)
        elif radius < SMALLEST_RADIUS:
            tuned = tuned._replace(converged=True)
        if tuned.converged:
            break
    return tuned


def _trusted(radius: float, here: Point, promised: Point, there: Point) -> float:
    """How far the next round may go, after one whose end is worth what it promised, or is not."""
    gain = there.value - here.value
    if not gain > -CONVERGED:  # worse, or not a number: the linear model was not to be trusted so far
        return min(radius, float(np.abs(there.x - here.x).max())) / 4
    return min(2 * radius, LARGEST_RADIUS) if gain > (promised.value - here.value) / 2 else radius


def _refitted(tuning: Tuning, tuned: Tuned, proposal: Hyper) -> Descent:
    """The best field under new kernels, from the linear model's guess, or from the same values if that leads astray."""
    model, at = tuning.model(proposal), tuned.at
    by_model = model.improved(at, model.regression(at, tuned.found.along))
    refitted = descend(model, by_model, Until(TIGHT), 1e-3)
    if refitted.found.cost < 2 * tuned.found.cost:
        return refitted
    values = tuning.model(tuned.hyper).kernels.values(at.u)
    return descend(model, at._replace(u=model.kernels.unknowns(values)), Until(TIGHT))
