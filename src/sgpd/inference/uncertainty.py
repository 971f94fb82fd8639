"""How uncertain kernels and noise are, and what that does to the field.

Their posterior is taken as Gaussian around the maximum of the evidence (Laplace's approximation, in logarithms). For a
Gaussian posterior of the values it widens the covariance: the best values move with the kernels, to first order. Draws
by randomise-then-optimise get kernels and noise of their own.
"""

from typing import NamedTuple

import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from sgpd.arrays import on_device
from sgpd.inference.evidence import Hyper, Tuned, objective, rewhitening
from sgpd.inference.linear import Recording
from sgpd.inference.posterior import FieldPosterior
from sgpd.inference.sampling import Priors

DIFFERENCE = 1e-3  # of a logarithm, for derivatives


class Uncertainty(NamedTuple):
    """How uncertain kernels and noise are, and how the best values move with them."""

    covariance: Float[np.ndarray, "h h"]  # of the logarithms: Laplace's approximation of their posterior
    moves: Float[np.ndarray, "p h"]  # of u, the field's values seen through the kernels at the optimum


def uncertainty(
    original: FieldPosterior, start: Hyper, recording: Recording, tuned: Tuned, known_noise: bool = False
) -> Uncertainty:
    """By central differences of the gradient and of the solution, in a program that is compiled already."""
    flat, unravel = ravel_pytree(tuned.hyper)
    free = np.arange(flat.size - (tuned.hyper.noise.size if known_noise else 0))
    rest = (original, recording, tuned.at, tuned.found)
    gradients, moved_values = [], []
    for index in free:
        near = [np.asarray(flat) + step * (np.arange(flat.size) == index) for step in (DIFFERENCE, -DIFFERENCE)]
        judged = [objective(on_device(x), start, *rest) for x in near]
        gradients.append([np.asarray(each.gradient)[free] for each in judged])
        # The best u under those kernels, whitened by the kernels at the optimum: the inducing values stay the same.
        bases = [np.asarray(rewhitening(unravel(on_device(x)), tuned.hyper, original)) for x in near]
        moved_values.append([basis @ np.asarray(each.solution.u) for basis, each in zip(bases, judged, strict=True)])
    slope = lambda pairs: np.array([(a - b) / (2 * DIFFERENCE) for a, b in pairs])
    hessian = slope(gradients)
    width = np.asarray(ravel_pytree(start.width)[0])[free]
    # In units of the prior's widths no precision lies below 1; where one does, the evidence has no peak there.
    values, vectors = np.linalg.eigh(width[:, None] * (hessian + hessian.T) / 2 * width)
    root = width[:, None] * vectors / np.sqrt(np.maximum(values, 1.0))
    return Uncertainty(root @ root.T, slope(moved_values).T)


def drawn_priors(
    rng: np.random.Generator, original: FieldPosterior, tuned: Hyper, covariance: Float[np.ndarray, "h h"], draws: int
) -> Priors:
    """Kernels and noise drawn from their posterior."""
    flat, unravel = ravel_pytree(tuned)
    away = rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=draws, method="eigh")
    away = np.pad(away, ((0, 0), (0, flat.size - len(covariance))))  # noise that is known stays
    hypers = [unravel(on_device(np.asarray(flat) + each)) for each in away]
    bases = np.stack([rewhitening(hyper, tuned, original) for hyper in hypers])
    return Priors(on_device(bases), on_device(np.exp([np.asarray(hyper.noise) for hyper in hypers])))
