"""Are Gaussian draws right, and if not, draws of the posterior by randomise-then-optimise.

A draw of a Gaussian posterior costs more than the optimum by a chi-squared variable with as many degrees of freedom as
there are unknowns. Where the model is far from linear, Gaussian draws cost much more: they fit the recording badly.
Then every draw is a fit of its own: to data and prior with fresh noise added, from the optimum. For a linear model
these are exact draws of the posterior; for others an approximation (Bardsley et al. 2014, without its reweighting).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import Key, Scalar
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
) -> Float[Array, " draws"]:
    """By how much more draws cost than the optimum, in the number of unknowns: about 1 if they are right."""

    def price(unknowns: Unknowns, features: Features | None):
        place = Shooting(unknowns.u, at.starts.at[:, 0].set(unknowns.starts), at.restart)
        rows = roll(integrator, posterior.field(posterior.unravel(place.u), features), recording, place)
        return cost(recording, place, rows, noise)

    each = lambda one: price(one[0], Features(drawn.features.frequencies, one[1]))
    costs = jax.lax.map(each, (drawn.unknowns, drawn.features.weights), batch_size=AT_ONCE)
    unknowns = joint.mean.size + jnp.sum(~recording.pinned) * noise.size
    return (costs - price(joint.best, None)) / unknowns


class Priors(NamedTuple):
    """What each draw believes: u = B w with w ~ N(0, I), and the noise. B comes from kernels of its own."""

    basis: Float[Array, "draws p p"]
    noise: Float[Array, "draws d"]


class _Search(NamedTuple):
    """Levenberg-Marquardt on its way: where to look next, and the best place so far."""

    candidate: Shooting
    place: Shooting
    equations: Regression
    cost: Scalar
    damping: Scalar
    fall: Scalar  # of the cost, by the last step that was taken
    count: Int[Array, ""]


@eqx.filter_jit
def randomise_then_optimise(
    posterior: FieldPosterior,
    integrator: Integrator,
    recording: Recording,
    at: Shooting,
    equations: Regression,
    priors: Priors,
    features: Features,
    key: Key,
) -> tuple[Unknowns, Bool[Array, " draws"]]:
    """A draw of the posterior for each set of features, and which are usable: the cost is finite, the search has ended.

    Features are functions between the inducing points that the data say little about; the inducing values adapt to
    them. `equations` are those at the optimum; only their shape matters.
    """

    def one(draw):
        key, weights, (basis, noise) = draw
        own, prior = Features(features.frequencies, weights), (noise / recording.reach) ** 2
        here = eqx.tree_at(lambda a: a.u, at, jnp.linalg.solve(basis, at.u))  # in w from here on
        k_data, k_values, k_starts = jr.split(key, 3)
        pull = jr.normal(k_values, at.u.shape)
        states = recording.states + noise[None, None, :] * jr.normal(k_data, recording.states.shape)
        centre = recording.centre + recording.reach[None, :] * jr.normal(k_starts, recording.centre.shape)
        randomised = eqx.tree_at(lambda r: (r.states, r.centre), recording, (states, centre))

        def improve(search: _Search) -> _Search:
            equations, price = _linearised(posterior, integrator, randomised, search.candidate, noise, own, pull, basis)
            better = price < search.cost
            choose = lambda new, old: jax.tree.map(lambda x, y: jnp.where(better, x, y), new, old)
            place, equations = choose((search.candidate, equations), (search.place, search.equations))
            damping = jnp.where(better, search.damping / 5, search.damping * 10)
            candidate = moved(randomised, place, solve(equations, prior, place.u, damping), noise)
            fall = jnp.where(better, search.cost - price, search.fall)
            lowest = jnp.where(better, price, search.cost)
            return _Search(candidate, place, equations, lowest, damping, fall, search.count + 1)

        nothing = jax.tree.map(jnp.zeros_like, equations)
        infinite = jnp.array(jnp.inf)
        start = _Search(here, here, nothing, infinite, jnp.array(5e-2), infinite, jnp.array(0))
        unfinished = lambda search: (search.count < ITERATIONS) & ~(search.fall < SETTLED)
        end = jax.lax.while_loop(unfinished, improve, start)
        usable = jnp.isfinite(end.cost) & (end.fall < SETTLED)
        return Unknowns(basis @ end.place.u, end.place.starts[:, 0]), usable

    keys = jr.split(key, features.weights[0].shape[0])
    return jax.lax.map(one, (keys, features.weights, priors), batch_size=AT_ONCE)


def _linearised(posterior, integrator, recording: Recording, at: Shooting, noise, features: Features, pull, basis):
    along, j = tangent(posterior, integrator, recording, eqx.tree_at(lambda a: a.u, at, basis @ at.u), features)
    equations = regression(recording, at, along, j @ basis, noise)
    equations = equations._replace(square=equations.square + pull @ pull, right=equations.right + pull)
    return equations, cost(recording, at, along.rows, noise, pull)
