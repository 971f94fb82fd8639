"""More inducing points, where a recording determines most of the values at those there are.

A value at an inducing point is determined by as much as its variance has shrunk, 1 - (Λ⁻¹)ᵢᵢ for a whitened one. Where
most of them are determined, the noise lets one see more of the field than so few points can describe: kernels are then
drawn out until the points suffice, the field is too smooth and the bands are too narrow, and no residual variance of
the prior tells. Where few are, more points have nothing to say. So a latent's points are doubled while the recording
determines more than half of the values, or while prior variance stays unexplained where the recording goes.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sgpd.arrays import on_device
from sgpd.data import Trajectories
from sgpd.data.smoothing import smooth
from sgpd.gp import WhitenedGaussian
from sgpd.inference.initial import inducing_points
from sgpd.inference.laplace.constants import FULL, MOST_POINTS, MOST_WORK
from sgpd.inference.laplace.evidence import Tuned, Tuning
from sgpd.inference.posterior.field import FieldPosterior, LatentGroup
from sgpd.inference.posterior.kernels import Kernels
from sgpd.inference.unexplained import SPARSE, unexplained


def determined(posterior: FieldPosterior, precision: Float[np.ndarray, "p p"]) -> tuple[float, ...]:
    """The share of the inducing values of each group that a recording determines, of the precision of all unknowns."""
    left, at, shares = np.diag(np.linalg.inv(precision)), 0, []
    for group in posterior.groups:
        count, unknowns = group.unknowns
        own = left[at : at + count * unknowns].reshape(count, unknowns)[:, : group.points]
        shares.append(float(1 - own.mean()))
        at += count * unknowns
    return tuple(shares)


def asking(tuning: Tuning, tuned: Tuned) -> list[bool]:
    """Which groups have too few points."""
    posterior, recording = tuned.hyper.kernels(tuning.original), tuning.recording
    shares = determined(posterior, tuned.found.equations.solve(tuned.at.u).precision)
    open_ones = unexplained(posterior, tuned.found.along.rows[recording.place[recording.real]])
    full = [one > FULL or left > SPARSE for one, left in zip(shares, open_ones, strict=True)]
    return [group.may_grow and one for group, one in zip(posterior.groups, full, strict=True)]


def doubled(tuning: Tuning, asked: Sequence[bool]) -> tuple[tuple[int, ...], str]:
    """So many points for each group, twice as many where they are asked for; and why not, if there are too many."""
    groups = tuning.original.groups
    points = tuple(g.points * (1 + asks) for g, asks in zip(groups, asked, strict=True))
    unknowns = sum(g.scale.shape[0] * (count + g.coefficients) for g, count in zip(groups, points, strict=True))
    if any(asks and count > MOST_POINTS for asks, count in zip(asked, points, strict=True)):
        return points, "most"
    return points, "work" if unknowns**2 * tuning.recording.observed.sum() > MOST_WORK else ""


def with_points(posterior: FieldPosterior, data: Trajectories, points: Sequence[int]) -> FieldPosterior:
    """The same kernels with so many inducing points for each group, placed as the first ones were; nothing is known."""
    if tuple(points) == tuple(g.points for g in posterior.groups):
        return posterior
    states, groups = smooth(data).states, []
    specs = posterior.structure.groups(posterior.dimension)
    for group, spec, count in zip(posterior.groups, specs, points, strict=True):
        if count != group.points:
            placed = group.along_axes(np.stack([inducing_points(x, count) for x in spec.inputs(states)]))
            group = replace(group, scaled_locations=on_device(placed) / group.scale)
        groups.append(group)
    values = tuple(
        WhitenedGaussian.isotropic(jnp.zeros(g.unknowns), 1.0, q.plain().diagonal)
        for g, q in zip(groups, posterior.whitened, strict=True)
    )
    return replace(posterior, groups=tuple(groups), values=values)


def carried(old: Kernels, new: Kernels, u: Float[np.ndarray, " p"]) -> Float[np.ndarray, " more"]:
    """The unknowns of new points at which the field has the values that it had; trends as they are."""
    heights, parts = old.heights(u), []
    across = [np.asarray(_across(a, b)) for a, b in zip(old.posterior.groups, new.posterior.groups, strict=True)]
    for (columns, _, (group, latent)), (_, whitening, _) in zip(old.columns(), new.columns(), strict=True):
        parts.append(whitening @ (across[group][latent] @ heights[columns]))
        parts.append(u[columns.stop : columns.stop + old.trend_stds[group].shape[1]])
    return np.concatenate(parts)


@jax.jit
def _across(old: LatentGroup, new: LatentGroup) -> Float[jax.Array, "count more m"]:
    """k(ξ', ξ) of each latent."""
    return jax.vmap(lambda kernel, a, b: kernel.matrix(a, b))(old.kernel, new.inducing, old.inducing)
