"""Are Gaussian draws right, and if not, draws of the posterior by randomise-then-optimise.

A draw of a Gaussian posterior costs more than the optimum by a chi-squared variable with as many degrees of freedom as
there are unknowns. Where the model is far from linear, Gaussian draws cost much more: they fit the recording badly.
Then every draw is a fit of its own: to data and prior with fresh noise added, from the optimum. For a linear model
these are exact draws of the posterior; for others an approximation (Bardsley et al. 2014, without its reweighting).
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import Scalar, on_device
from sgpd.inference.batches import in_batches
from sgpd.inference.joint import Drawn, Joint, Unknowns
from sgpd.inference.linear import Recording, Regression, Shooting, cost, moved, regression, roll, solve, tangent
from sgpd.inference.posterior import Features, FieldPosterior
from sgpd.integrators import Integrator

AT_ONCE = 16
SETTLED = 0.5  # a search has ended when its last step lowered the cost by less; a draw's own cost varies by much more
ITERATIONS = 12


@eqx.filter_jit
def relative_rise(
    posterior: FieldPosterior,
    integrator: Integrator,
    recording: Recording,
    at: Shooting,
    noise: Float[Array, " d"],
    joint: Joint,
    drawn: Drawn,
    lowest: Scalar,
) -> Float[Array, " draws"]:
    """By how much more draws cost than the optimum, in the number of unknowns: about 1 if they are right."""

    def price(draw):
        unknowns, weights = draw
        features = Features(drawn.features.frequencies, weights)
        place = Shooting(unknowns.u, at.starts.at[:, 0].set(unknowns.starts), at.restart)
        rows = roll(integrator, posterior.field(posterior.unravel(place.u), features), recording, place)
        return cost(recording, place, rows, noise)

    costs = jax.lax.map(price, (drawn.unknowns, drawn.features.weights), batch_size=AT_ONCE)
    unknowns = joint.mean.size + jnp.sum(~recording.pinned) * noise.size
    return (costs - lowest) / unknowns


class Priors(NamedTuple):
    """What each draw believes: u = B w with w ~ N(0, I), and the noise. B comes from kernels of its own."""

    basis: Float[Array, "draws p p"]
    noise: Float[Array, "draws d"]


class Fresh(NamedTuple):
    """Standard normals by which each draw changes its data and its prior."""

    values: Float[Array, "draws p"]
    states: Float[Array, "draws r n d"]
    starts: Float[Array, "draws r d"]

    @classmethod
    def of(cls, rng: np.random.Generator, draws: int, recording: Recording, at: Shooting) -> "Fresh":
        """So many."""
        shapes = (at.u.shape, recording.states.shape, recording.centre.shape)
        streams = zip(rng.spawn(len(shapes)), shapes, strict=True)
        return cls(*(on_device(stream.normal(size=(draws, *shape))) for stream, shape in streams))


class _Search(NamedTuple):
    """Levenberg-Marquardt on its way: where to look next, and the best place so far."""

    candidate: Shooting
    place: Shooting
    equations: Regression
    cost: Scalar
    damping: Scalar
    fall: Scalar  # of the cost, by the last step that was taken
    count: Int[Array, ""]


def randomise_then_optimise(
    posterior: FieldPosterior,
    integrator: Integrator,
    recording: Recording,
    at: Shooting,
    priors: Priors,
    features: Features,
    fresh: Fresh,
) -> tuple[Unknowns, Bool[Array, " draws"]]:
    """A draw of the posterior for each set of features, and which are usable: the cost is finite, the search has ended.

    Features are functions between the inducing points that the data say little about; the inducing values adapt to
    them. Every piece starts once.
    """
    run = partial(_searched, posterior, integrator, recording, at, features.frequencies)
    return jax.tree.map(on_device, in_batches(run, (features.weights, priors, fresh), AT_ONCE))


@eqx.filter_jit
def _searched(posterior, integrator: Integrator, recording: Recording, at: Shooting, frequencies, draws):
    def one(draw):
        weights, (basis, noise), (for_values, for_states, for_starts) = draw
        own, prior = Features(frequencies, weights), (noise / recording.reach) ** 2
        here = eqx.tree_at(lambda a: a.u, at, jnp.linalg.solve(basis, at.u))  # in w from here on
        states = recording.states + noise[None, None, :] * for_states
        centre = recording.centre + recording.reach[None, :] * for_starts
        randomised = eqx.tree_at(lambda r: (r.states, r.centre), recording, (states, centre))

        def improve(search: _Search) -> _Search:
            equations, price = _linearised(
                posterior, integrator, randomised, search.candidate, noise, own, for_values, basis
            )
            better = price < search.cost
            choose = lambda new, old: jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)
            place, equations = choose((search.candidate, equations), (search.place, search.equations))
            damping = jnp.where(better, search.damping / 5, search.damping * 10)
            candidate = moved(randomised, place, solve(equations, prior, place.u, damping), noise)
            fall = jnp.where(better, search.cost - price, search.fall)
            lowest = jnp.where(better, price, search.cost)
            return _Search(candidate, place, equations, lowest, damping, fall, search.count + 1)

        pieces, d = centre.shape
        nothing = Regression.empty(pieces, d, at.u.size)
        infinite = jnp.array(jnp.inf)
        start = _Search(here, here, nothing, infinite, jnp.array(5e-2), infinite, jnp.array(0))
        unfinished = lambda search: (search.count < ITERATIONS) & ~(search.fall < SETTLED)
        end = jax.lax.while_loop(unfinished, improve, start)
        usable = jnp.isfinite(end.cost) & (end.fall < SETTLED)
        return Unknowns(basis @ end.place.u, end.place.starts[:, 0]), usable

    return jax.vmap(one)(draws)


def _linearised(posterior, integrator, recording: Recording, at: Shooting, noise, features: Features, pull, basis):
    along, j = tangent(posterior, integrator, recording, eqx.tree_at(lambda a: a.u, at, basis @ at.u), features)
    equations = regression(recording, at, along, j @ basis, noise, starts=1)
    equations = equations._replace(square=equations.square + pull @ pull, right=equations.right + pull)
    return equations, cost(recording, at, along.rows, noise, pull)
