"""The paper's method written out plainly in PyTorch, in double precision.

One window at a time, a Python loop over its steps, independent Fourier features cos(ω·x/l + b), Adam. What a careful
author would write without a compiler: tensor operations over features and inducing points, no loop over those, the
gradient of a drawn H in closed form, one drawn field a window.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import root
from torch import Tensor

torch.set_default_dtype(torch.float64)


class Normals(NamedTuple):
    """What is random about one drawn latent."""

    frequencies: Tensor  # (s, k)
    phases: Tensor  # (s,), uniform in [0, 2π]
    weights: Tensor  # (s,)
    values: Tensor  # (m,)

    @classmethod
    def draw(cls, features: int, m: int, k: int) -> "Normals":
        """Randomisation ones."""
        phases = 2 * torch.pi * torch.rand(features)
        return cls(torch.randn(features, k), phases, torch.randn(features), torch.randn(m))


class DrawnLatent(NamedTuple):
    """f(x) = a Σᵢ wᵢ cos(ωᵢ·x/l + bᵢ) + Σⱼ vⱼ k(x, ξⱼ), with a = √(2σ²/S)."""

    scaled_frequencies: Tensor  # ω/l, (s, k)
    phases: Tensor
    weights: Tensor  # a w
    inducing: Tensor  # (m, k)
    inverse_lengthscale: Tensor  # (k,)
    variance: Tensor
    update: Tensor  # v, (m,)

    def prior(self, x: Tensor) -> Tensor:
        """The first sum, at points (n, k)."""
        return torch.cos(x @ self.scaled_frequencies.T + self.phases) @ self.weights

    def value(self, x: Tensor) -> Tensor:
        """f at one point (k,)."""
        prior = torch.dot(self.weights, torch.cos(self.scaled_frequencies @ x + self.phases))
        return prior + self._kernel(x) @ self.update

    def gradient(self, x: Tensor) -> Tensor:
        """∇f at one point (k,)."""
        prior = -(self.weights * torch.sin(self.scaled_frequencies @ x + self.phases)) @ self.scaled_frequencies
        return prior + (self._kernel(x) * self.update) @ ((self.inducing - x) * self.inverse_lengthscale**2)

    def _kernel(self, x: Tensor) -> Tensor:
        return self.variance * torch.exp(-(((x - self.inducing) * self.inverse_lengthscale) ** 2).sum(dim=1) / 2)


class Latent(torch.nn.Module):
    """One latent function: squared exponential kernel, inducing inputs ξ, q(z) = N(mean, diag(std²))."""

    def __init__(self, log_lengthscale, log_variance, inducing, mean, log_std, jitter: float):
        super().__init__()
        parameter = lambda array: torch.nn.Parameter(torch.as_tensor(np.array(array)))
        self.log_lengthscale, self.log_variance = parameter(log_lengthscale), parameter(log_variance)
        self.inducing, self.mean, self.log_std = parameter(inducing), parameter(mean), parameter(log_std)
        self.jitter = jitter

    def root(self) -> Tensor:
        """L with L Lᵀ = k(ξ, ξ) + jitter σ² I."""
        scaled = self.inducing / self.log_lengthscale.exp()
        squares = ((scaled[:, None] - scaled[None]) ** 2).sum(dim=2)
        unit = torch.exp(-squares / 2) + self.jitter * torch.eye(len(scaled))
        return torch.linalg.cholesky(self.log_variance.exp() * unit)

    def draw(self, root: Tensor, normals: Normals) -> DrawnLatent:
        """Matheron's rule: a draw of the prior, pulled through drawn values z."""
        inverse, variance = torch.exp(-self.log_lengthscale), self.log_variance.exp()
        weights = torch.sqrt(2 * variance / len(normals.weights)) * normals.weights
        scaled = normals.frequencies * inverse
        prior = DrawnLatent(scaled, normals.phases, weights, self.inducing, inverse, variance, self.mean)
        z = self.mean + self.log_std.exp() * normals.values
        update = torch.cholesky_solve((z - prior.prior(self.inducing))[:, None], root)[:, 0]
        return prior._replace(update=update)

    def kl(self, root: Tensor) -> Tensor:
        """KL(q ‖ p) = ½ (‖L⁻¹R‖² + ‖L⁻¹ mean‖² - m) + log det L - log det R."""
        right = torch.cat([self.mean[:, None], torch.diag(self.log_std.exp())], dim=1)
        square = (torch.linalg.solve_triangular(root, right, upper=False) ** 2).sum()
        return (square - len(self.mean)) / 2 + torch.log(torch.diagonal(root)).sum() - self.log_std.sum()


def symplectic_euler(latents: list[DrawnLatent], x: Tensor, h: float) -> Tensor:
    """p + h (-V'(q)), then q + h T'(p), for drawn components V' and T' in one degree of freedom."""
    potential, kinetic = latents
    p = x[:1] - h * potential.value(x[1:])
    return torch.cat([p, x[1:] + h * kinetic.value(p)])


def implicit_midpoint(latents: list[DrawnLatent], x: Tensor, h: float) -> Tensor:
    """x + h g with g = f(x + h g/2), f = (-H_q, H_p), by SciPy's Levenberg-Marquardt with its default settings.

    The gradient is that of the implicit function theorem: one Newton correction g - M⁻¹ (g - f(x + h g/2)) with g and
    M = I - h/2 f' held constant, f' by automatic differentiation.
    """
    (hamiltonian,) = latents

    def field(y: Tensor) -> Tensor:
        dp, dq = hamiltonian.gradient(y)
        return torch.stack([-dq, dp])

    with torch.no_grad():
        start = x.numpy()
        residual = lambda g: g - field(torch.from_numpy(start + h / 2 * g)).numpy()
        found = torch.from_numpy(root(residual, field(x).numpy(), method="lm").x)
    jacobian = torch.autograd.functional.jacobian(field, (x + h / 2 * found).detach())
    matrix = torch.eye(len(x)) - h / 2 * torch.as_tensor(jacobian).detach()
    correction = torch.linalg.solve(matrix, found - field(x + h / 2 * found))
    return x + h * (found - correction)


class PlainTraining:
    """Stochastic ascent on a·(expected log density) - b·KL, as in the paper's supplement."""

    def __init__(self, latents: list[Latent], step: Callable, windows: np.ndarray, h: float, noise_std, a, b, rate):
        self.latents, self.step, self.h, self.a, self.b = torch.nn.ModuleList(latents), step, h, a, b
        self.windows = torch.as_tensor(np.array(windows))  # (w, n, d)
        self.noise_std = torch.as_tensor(np.array(noise_std))
        self.optimiser = torch.optim.Adam(self.latents.parameters(), lr=rate)

    def normals(self, features: int) -> list[Normals]:
        """Randomisation random numbers for one drawn field."""
        return [Normals.draw(features, *latent.inducing.shape) for latent in self._all()]

    def loss(self, window: Tensor, normals: list[Normals]) -> Tensor:
        """The negative bound, estimated from one window: a rollout from its first row."""
        roots = [latent.root() for latent in self._all()]
        drawn = [latent.draw(r, n) for latent, r, n in zip(self._all(), roots, normals, strict=True)]
        x, states = window[0], []
        for _ in range(len(window) - 1):
            x = self.step(drawn, x, self.h)
            states.append(x)
        density = torch.distributions.Normal(torch.stack(states), self.noise_std).log_prob(window[1:]).sum()
        kl = torch.stack([latent.kl(r) for latent, r in zip(self._all(), roots, strict=True)]).sum()
        return self.b * kl - self.a * len(self.windows) * density

    def train(self, windows: int, features: int) -> float:
        """Adam steps on so many windows in random order; the last loss."""
        last = torch.tensor(torch.nan)
        for index in torch.randperm(len(self.windows))[:windows]:
            self.optimiser.zero_grad()
            last = self.loss(self.windows[index], self.normals(features))
            last.backward()
            self.optimiser.step()
        return last.item()

    def _all(self) -> list[Latent]:
        return [latent for latent in self.latents if isinstance(latent, Latent)]
