"""Gaussian processes the slow way: textbook formulas in numpy, stencils instead of derivatives, scores of draws."""

import numpy as np

from sgpd.gp import JITTER, Matern32, Matern52, SquaredExponential

KERNELS = [SquaredExponential, Matern52, Matern32]


def kernel_matrix(kind, lengthscale, variance, xs, ys):
    """The covariance of all pairs, from the distance r as in any textbook."""
    r = np.linalg.norm((xs[:, None, :] - ys[None, :, :]) / lengthscale, axis=2)
    if kind is SquaredExponential:
        return variance * np.exp(-(r**2) / 2)
    if kind is Matern32:
        return variance * (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)
    return variance * (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


def sparse_posterior(covariance, xs, inducing, mean, root):
    """Mean and covariance of f at xs when its values at the inducing points are L u with u ~ N(mean, R Rᵀ)."""
    prior_root = np.linalg.cholesky(covariance(inducing, inducing))
    k = covariance(xs, inducing)
    weights = np.linalg.solve(covariance(inducing, inducing), k.T).T  # k(x, ξ) k(ξ, ξ)⁻¹
    z_mean, z_covariance = prior_root @ mean, prior_root @ root @ root.T @ prior_root.T
    return weights @ z_mean, covariance(xs, xs) - weights @ k.T + weights @ z_covariance @ weights.T


def gaussian_kl(mean, covariance):
    """KL(N(mean, covariance) ‖ N(0, I)) by the formula for two multivariate normals."""
    return (np.trace(covariance) + mean @ mean - len(mean) - np.linalg.slogdet(covariance)[1]) / 2


def scores(samples, expected):
    """How many standard errors the average of samples (n, ...) is from what it should be."""
    error = np.mean(samples, axis=0) - expected
    return error / (np.std(samples, axis=0, ddof=1) / np.sqrt(len(samples)))


def moment_scores(draws, mean, covariance):
    """Scores of the first two moments of draws (n, p) about their exact mean."""
    rest = draws - mean
    return scores(draws, mean), scores(rest[:, :, None] * rest[:, None, :], covariance)


def path_value(kind, lengthscale, variance, inducing, whitened, frequencies, weights, x):
    """One draw by Matheron's rule, with the frequencies for lengthscale 1."""
    features = lambda xs: (
        np.sqrt(variance / len(frequencies))
        * (
            np.cos(xs / lengthscale @ frequencies.T) @ weights[0]
            + np.sin(xs / lengthscale @ frequencies.T) @ weights[1]
        )
    )
    k = kernel_matrix(kind, lengthscale, variance, inducing, inducing) + JITTER * variance * np.eye(len(inducing))
    update = np.linalg.solve(k, np.linalg.cholesky(k) @ whitened - features(inducing))
    return features(x[None])[0] + kernel_matrix(kind, lengthscale, variance, x[None], inducing)[0] @ update


def derivative(f, x, step=2e-3):
    """The derivative of f at the vector x by the four-point stencil: errors step⁴ f⁗'/30 and 1e-16 f/step."""
    rows = []
    for e in step * np.eye(len(x)):
        rows.append((f(x - 2 * e) - 8 * f(x - e) + 8 * f(x + e) - f(x + 2 * e)) / (12 * step))
    return np.stack(rows, axis=-1)
