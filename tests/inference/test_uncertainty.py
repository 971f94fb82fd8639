"""The posterior of kernels and noise, and what it does to the field's values, against brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from sgpd.gp import prior_root
from sgpd.inference.evidence import Hyper, Tuned, objective
from sgpd.inference.joint import Joint
from sgpd.inference.shooting import linearise
from sgpd.inference.uncertainty import drawn_priors, uncertainty
from tests.inference.dense import NOISE, problem


@pytest.fixture(scope="module")
def tuned():
    posterior, integrator, recording, at = problem("stormer-verlet")
    found, start = linearise(posterior, integrator, recording, at, NOISE), Hyper.unchanged(posterior, NOISE)
    return posterior, recording, start, Tuned(start, at, found, (0.0,), settled=True)


def values_of(posterior, start, hyper, recording, tuned):
    """The inducing values at the best u under some kernels, without whitening."""
    judged = objective(ravel_pytree(hyper)[0], start, posterior, recording, tuned.at, tuned.found)
    u = posterior.unravel(judged.solution.u)
    groups = hyper.kernels(posterior).groups
    roots = [jax.vmap(lambda k, x, j=g.jitter: prior_root(k, x, j))(g.kernel, g.inducing) for g in groups]
    return jnp.concatenate(
        [jnp.einsum("cij,cj->ci", root, part).reshape(-1) for root, part in zip(roots, u, strict=True)]
    )


def test_the_covariance_is_the_inverse_hessian_where_the_evidence_has_a_peak(tuned):
    posterior, recording, start, at = tuned
    flat, _ = ravel_pytree(start)
    minus = lambda x: objective(x, start, posterior, recording, at.at, at.found).minus
    hessian = np.asarray(jax.hessian(minus)(flat))
    width = np.asarray(ravel_pytree(start.width)[0])
    values, vectors = np.linalg.eigh(width[:, None] * hessian * width)
    expected = width[:, None] * (vectors / np.maximum(values, 1.0)) @ vectors.T * width  # no wider than the prior
    found = uncertainty(posterior, start, recording, at)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    known = uncertainty(posterior, start, recording, at, known_noise=True)
    assert known.covariance.shape == (flat.size - 2, flat.size - 2)


def test_moves_are_those_of_the_inducing_values(tuned):
    posterior, recording, start, at = tuned
    flat, unravel = ravel_pytree(start)
    by_hyper = np.asarray(jax.jacfwd(lambda x: values_of(posterior, start, unravel(x), recording, at))(flat))
    roots = [
        np.asarray(prior_root(jax.tree.map(lambda a, c=c: a[c], g.kernel), g.inducing[c], g.jitter))
        for g in posterior.groups
        for c in range(g.inducing.shape[0])
    ]
    moves, rows = uncertainty(posterior, start, recording, at).moves, 0
    for root in roots:
        block = slice(rows, rows + len(root))
        np.testing.assert_allclose(root @ moves[block], by_hyper[block], rtol=1e-3, atol=1e-4 * np.abs(by_hyper).max())
        rows += len(root)


def test_drawn_priors_have_the_covariance_that_was_asked_for_and_leave_known_noise_alone(tuned):
    posterior, _, start, _ = tuned
    flat, _ = ravel_pytree(start)
    free = flat.size - 2
    covariance = 1e-4 * np.eye(free)
    priors = drawn_priors(np.random.default_rng(0), posterior, start, covariance, 64)
    np.testing.assert_allclose(priors.noise, np.broadcast_to(NOISE, (64, 2)), rtol=1e-12)
    p = priors.basis.shape[1]
    assert 0 < np.abs(np.asarray(priors.basis) - np.eye(p)).max() < 1
    noisy = drawn_priors(np.random.default_rng(1), posterior, start, 0.04 * np.eye(flat.size), 1024)
    logs = np.log(np.asarray(noisy.noise)) - np.log(np.asarray(NOISE))
    np.testing.assert_allclose(logs.std(axis=0), 0.2, rtol=4 / np.sqrt(2 * 1024))
    # A variance alone: B is a number, the ratio of amplitudes.
    variance = np.zeros((free, free))
    variance[-1, -1] = 0.25  # of the last group
    scaled = np.asarray(drawn_priors(np.random.default_rng(2), posterior, start, variance, 8).basis)
    m = posterior.groups[-1].inducing[0].shape[0]
    for basis in scaled:
        np.testing.assert_allclose(basis[-m:, -m:], basis[-1, -1] * np.eye(m), atol=1e-6)
        np.testing.assert_allclose(basis[0, 0], 1.0, atol=1e-12)


def test_a_widened_joint_has_the_sum_of_both_covariances(tuned):
    rng = np.random.default_rng(3)
    root, moves, spread = np.tril(rng.normal(size=(5, 5))) + 3 * np.eye(5), rng.normal(size=(5, 2)), np.diag([0.5, 2.0])
    joint = Joint(jnp.zeros(5), jnp.asarray(root), jnp.zeros((1, 2)), jnp.zeros((1, 2, 5)), jnp.zeros((1, 2, 2)))
    wide = np.asarray(joint.widened(jnp.asarray(moves), jnp.asarray(spread)).root)
    np.testing.assert_allclose(wide @ wide.T, root @ root.T + moves @ spread @ moves.T, rtol=1e-12)
