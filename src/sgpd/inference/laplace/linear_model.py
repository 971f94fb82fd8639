"""The model seen from one rollout: linear in the field's unknowns and in the starts, and Gaussian.

Along a rollout x* of a reference field, to first order in a change of the field and of the start,

    xₙ = x*ₙ + Jₙ u - Jₙ* u* + Sₙ (s - s*)

with the derivatives of `programs.py`; J may be that of other kernels than those of the rollout. With u ~ N(0, I),
s ~ N(center, start_std²) and white noise σ this is Bayesian linear regression: with v = (s - s*) / σ and every row in
units of its noise,

    t = X z + ε      z = (u, v)      P = Xᵀ X + prior precision      z ~ N(P⁻¹ (Xᵀ t + ...), P⁻¹)

and the best z, its covariance, the evidence and its gradient are all in closed form. Starts are eliminated one by one
(a Schur complement), so that only u is ever solved for together. This is NumPy: matrices are small, and nothing has to
be compiled for it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sgpd.inference.chunks import Rollouts, chunks
from sgpd.inference.laplace import programs
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.inference.posterior.kernels import Kernels
from sgpd.integrators import Integrator

LOG_TWO_PI = float(np.log(2 * np.pi))


class ShootingState(NamedTuple):
    """A state of the fit: whitened values, and where each rollout starts."""

    u: Float[np.ndarray, " p"]
    starts: Float[np.ndarray, "s d"]
    rollouts: Rollouts


class Along(NamedTuple):
    """Rollouts of a whole recording, and what their derivatives are made of, chunk by chunk."""

    rows: Float[np.ndarray, "n d"]
    by_start: Float[np.ndarray, "n d d"]
    explained: Float[np.ndarray, "n d"]  # J* u*
    converged: Bool[np.ndarray, " n"]
    residuals: Float[np.ndarray, " n"]  # of stage equations
    tangents: list[tuple[slice, programs.Tangent]]


class Starts(NamedTuple):
    """What the data and the prior say about starts v, and about them together with u."""

    matrix: Float[np.ndarray, "s d d"]
    right: Float[np.ndarray, "s d"]
    coupling: Float[np.ndarray, "s p d"]

    def damped(self, damping: float) -> "Starts":
        """Pulled towards v = 0."""
        return self._replace(matrix=self.matrix + damping * np.eye(self.matrix.shape[1])) if damping else self


class Regression(NamedTuple):
    """Normal equations of the linear model, for u and for each start."""

    square: float
    matrix: Float[np.ndarray, "p p"]
    right: Float[np.ndarray, " p"]
    starts: Starts

    def cost(self, u: Float[np.ndarray, "draws p"], v: Float[np.ndarray, "draws s d"]) -> Float[np.ndarray, " draws"]:
        """Squares of residuals and prior, of several z."""
        of_u = ((u @ self.matrix) * u).sum(axis=1) - 2 * u @ self.right
        by_start = np.einsum("sij,nsj->nsi", self.starts.matrix, v) - 2 * self.starts.right
        by_start += 2 * np.einsum("spi,np->nsi", self.starts.coupling, u)
        return self.square + of_u + (by_start * v).sum(axis=(1, 2))

    def solve(self, u: Float[np.ndarray, " p"], damping: float = 0.0) -> "Solution":
        """The best u; with damping, one close to the present u and, for the starts, to v = 0."""
        starts = self.starts.damped(damping)
        root = np.linalg.cholesky(starts.matrix)
        half = np.linalg.solve(root, np.swapaxes(starts.coupling, 1, 2)).reshape(-1, len(u))
        right = np.linalg.solve(root, starts.right[:, :, None]).reshape(-1)
        precision = _at_least(1 + damping, self.matrix + damping * np.eye(len(u)) - half.T @ half)
        reduced = self.right + damping * u - right @ half
        best, log_determinant = _solve(precision, reduced)
        log_determinant += 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum()
        return Solution(best, precision, float(self.square - right @ right - reduced @ best), float(log_determinant))

    def starts_given(self, u: Float[np.ndarray, " p"], damping: float = 0.0) -> Float[np.ndarray, "s d"]:
        """The best v with these values."""
        matrix, right, coupling = self.starts.damped(damping)
        return np.linalg.solve(matrix, (right - np.einsum("spi,p->si", coupling, u))[:, :, None])[:, :, 0]


class Solution(NamedTuple):
    """The best u, and what is left over."""

    u: Float[np.ndarray, " p"]
    precision: Float[np.ndarray, "p p"]  # of u, with the starts integrated out
    cost: float  # squares of residuals and prior
    log_determinant: float  # of the precision of u and all starts


class Evidence(NamedTuple):
    """How well a linear model explains the recording."""

    log_evidence: float
    by_logarithms: list[np.ndarray]  # its gradient, by those of the posterior
    by_noise: Float[np.ndarray, " d"]  # and by the logarithms of the noise
    solution: Solution


class Linearised(NamedTuple):
    """The model seen from one iterate."""

    along: Along
    equations: Regression
    cost: float


class _Weighed(NamedTuple):
    """Rows of a chunk in units of the noise: X = (by_u, by_v), a line for each value, and t."""

    rows: slice
    by_bumps: Float[np.ndarray, "k d p"]  # J before it is whitened
    by_u: Float[np.ndarray, "k d p"]
    by_v: Float[np.ndarray, "k d d"]
    target: Float[np.ndarray, "k d"]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A posterior's field, stepped along a recording that has such noise."""

    kernels: Kernels
    integrator: Integrator
    recording: Recording
    noise: Float[np.ndarray, " d"]  # standard deviation, by channel
    prior_mean: Float[np.ndarray, " p"] | float = 0.0
    features: Features | None = None  # random ones of the field
    keeps: bool = True  # derivatives, from which the evidence under other kernels is made

    @classmethod
    def of(cls, posterior: FieldPosterior, integrator: Integrator, recording: Recording, noise) -> "LinearModel":
        """Under a posterior's own kernels."""
        return cls(Kernels.of(posterior), integrator, recording, noise)

    @property
    def prior(self) -> Float[np.ndarray, " d"]:
        """The precision of a start beforehand, in units of the noise."""
        return (self.noise / self.recording.start_std) ** 2

    @cached_property
    def size(self) -> int:
        """p."""
        return self.kernels.size

    def linearise(self, at: ShootingState) -> Linearised:
        """The linear model around an iterate, and what the iterate costs.

        A model that does not keep derivatives makes chunks, adds them up and forgets them.
        """
        d, n = len(self.noise), len(self.recording)
        along = Along(np.empty((n, d)), np.empty((n, d, d)), np.empty((n, d)), np.empty(n, bool), np.empty(n), [])
        equations = self._regression(at, self._weighed(along, self._rolled(at, along)))
        return Linearised(along, equations, self.cost(at, along))

    def _rolled(self, at: ShootingState, along: Along) -> Iterator[tuple[slice, Float[np.ndarray, "k d p"]]]:
        """The rollouts of an iterate and J by the heights of bumps, chunk by chunk; what is found is noted."""
        d, heights = len(self.noise), self.kernels.heights(at.u)
        before, j_before = (np.zeros(d), np.zeros((d, d))), np.zeros((d, self.size))
        for rows, chunk in chunks(self.recording.steps, at.rollouts, at.starts):
            before, tangent = programs.tangent(self.kernels, self.integrator, at.u, self.features, before, chunk)
            j_before, by_bumps = programs.by_bumps(self.kernels, j_before, tangent, chunk.used)
            used = rows.stop - rows.start
            by_bumps = np.asarray(by_bumps)[:used]
            x, _, _, _, by_start, *went = (np.asarray(leaf)[:used] for leaf in tangent)
            along.rows[rows], along.by_start[rows], along.explained[rows] = x, by_start, by_bumps @ heights
            along.converged[rows], along.residuals[rows] = went
            if self.keeps:
                along.tangents.append((rows, tangent))
            yield rows, by_bumps

    def rows(self, at: ShootingState) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d d"]]:
        """The rollouts of an iterate and their derivatives by the starts alone."""
        d, n = len(self.noise), len(self.recording)
        rows, by_start, before = np.empty((n, d)), np.empty((n, d, d)), (np.zeros(d), np.zeros((d, d)))
        for some, chunk in chunks(self.recording.steps, at.rollouts, at.starts):
            before, tangent = programs.tangent(self.kernels, self.integrator, at.u, self.features, before, chunk)
            used = some.stop - some.start
            rows[some], by_start[some] = np.asarray(tangent.rows)[:used], np.asarray(tangent.by_start)[:used]
        return rows, by_start

    def derivatives(self, along: Along) -> Iterator[tuple[slice, Float[np.ndarray, "k d p"]]]:
        """J by the heights of bumps under these kernels, chunk by chunk, of rollouts whose derivatives were kept."""
        if not along.tangents:
            raise ValueError("There are no derivatives of these rollouts: their model did not keep them.")
        before = np.zeros((len(self.noise), self.size))
        for rows, tangent in along.tangents:
            used = rows.stop - rows.start
            before, j = programs.by_bumps(self.kernels, before, tangent, np.asarray(used))
            yield rows, np.asarray(j)[:used]

    def regression(self, at: ShootingState, along: Along) -> Regression:
        """The normal equations; kernels and noise may be others than those that made the rollout."""
        return self._regression(at, self._weighed(along, self.derivatives(along)))

    def cost(self, at: ShootingState, along: Along) -> float:
        """What is minimised: misfit of the rows, and how far u and the free starts are from their prior means."""
        recording = self.recording
        error = np.where(recording.observed, (along.rows - recording.states) / self.noise, 0.0)
        away = (at.starts - recording.center)[at.rollouts.free] / recording.start_std
        return float((error**2).sum() + ((at.u - self.prior_mean) ** 2).sum() + (away**2).sum())

    def evidence(self, at: ShootingState, along: Along) -> Evidence:
        """That of the linear model, and its gradient."""
        weighed = list(self._weighed(along, self.derivatives(along)))
        equations = self._regression(at, weighed)
        solution = equations.solve(at.u)
        by_logarithms, by_noise = self._gradient(at, along, weighed, equations, solution)
        return Evidence(self.log_evidence(solution, len(at.starts)), by_logarithms, by_noise, solution)

    def log_evidence(self, solution: Solution, starts: int) -> float:
        """log p(x̂) of the linear model with so many starts: the fit, less what the parameters were free to do."""
        count = self.recording.observed.sum(axis=0)
        free_to_do = solution.log_determinant - starts * np.log(self.prior).sum()
        return float(-(solution.cost + free_to_do) / 2 - count @ (np.log(self.noise) + LOG_TWO_PI / 2))

    def moved(self, at: ShootingState, equations: Regression, u: np.ndarray, damping: float = 0.0) -> ShootingState:
        """To these values, and to the starts that are best with them."""
        step = np.where(at.rollouts.free[:, None], self.noise * equations.starts_given(u, damping), 0.0)
        return ShootingState(u, at.starts + step, at.rollouts)

    def improved(self, at: ShootingState, equations: Regression, damping: float = 0.0) -> ShootingState:
        """The next iterate."""
        return self.moved(at, equations, equations.solve(at.u, damping).u, damping)

    def _weighed(self, along: Along, derivatives) -> Iterator[_Weighed]:
        recording = self.recording
        for rows, by_bumps in derivatives:
            seen = recording.observed[rows]  # elsewhere a rollout may be anything
            by_bumps = np.where(seen[:, :, None], by_bumps, 0.0)
            target = (recording.states[rows] - along.rows[rows] + along.explained[rows]) / self.noise
            by_u = self.kernels.whitened(by_bumps) / self.noise[:, None]
            by_v = np.where(seen[:, :, None], along.by_start[rows] * self.noise / self.noise[:, None], 0.0)
            yield _Weighed(rows, by_bumps, by_u, by_v, np.where(seen, target, 0.0))

    def _away(self, at: ShootingState) -> Float[np.ndarray, "s d"]:
        """The prior mean of v."""
        return np.where(at.rollouts.free[:, None], (self.recording.center - at.starts) / self.noise, 0.0)

    def _regression(self, at: ShootingState, weighed: Iterable[_Weighed]) -> Regression:
        p, (s, d), away = self.size, at.starts.shape, self._away(at)
        square = float((self.prior * away**2).sum() + np.sum(np.square(self.prior_mean)))
        matrix, right = np.eye(p), np.broadcast_to(self.prior_mean, p).copy()
        starts = Starts(np.zeros((s, d, d)) + np.diag(self.prior), self.prior * away, np.zeros((s, p, d)))
        for rows, _, by_u, by_v, target in weighed:
            flat = by_u.reshape(-1, p)
            matrix += flat.T @ flat
            right += target.reshape(-1) @ flat
            square += float((target**2).sum())
            for k, own in at.rollouts.segments(rows.start, rows.stop):
                u, v, t = by_u[own].reshape(-1, p), by_v[own].reshape(-1, d), target[own].reshape(-1)
                starts.matrix[k] += v.T @ v
                starts.right[k] += t @ v
                starts.coupling[k] += u.T @ v
        return Regression(square, matrix, right, starts)

    def _gradient(self, at: ShootingState, along: Along, weighed: list[_Weighed], equations, solution):
        """By the logarithms of kernels and noise.

        With e = X z - t at the best z, ∂(log evidence)/∂X = -(e zᵀ + X P⁻¹), and z itself counts as fixed. For a row of
        the rollout from start s, the columns of X P⁻¹ are, with K = M⁻¹ Cᵀ of that start and Λ the precision of u,

            by u:  D = (Xᵤ - Xᵥ K) Λ⁻¹        by v:  Xᵥ M⁻¹ - D Kᵀ
        """
        u, v = solution.u, equations.starts_given(solution.u)
        covariance = _inverse(solution.precision)
        local = np.linalg.inv(equations.starts.matrix)
        gains = local @ np.swapaxes(equations.starts.coupling, 1, 2)
        of_starts = local + gains @ covariance @ np.swapaxes(gains, 1, 2)
        noise, p, d = self.noise, self.size, len(self.noise)
        by_noise, after = np.zeros(d), np.zeros((d, p))
        by_logarithms = [np.zeros(np.shape(leaf)) for leaf in self.kernels.logarithms]
        for (rows, by_bumps, by_u, by_v, target), (_, tangent) in zip(
            reversed(weighed), reversed(along.tangents), strict=True
        ):
            error, reduced, segments = by_u @ u - target, by_u.copy(), at.rollouts.segments(rows.start, rows.stop)
            for k, own in segments:
                error[own] += by_v[own] @ v[k]
                reduced[own] -= by_v[own] @ gains[k]
            spread = (reduced.reshape(-1, p) @ covariance).reshape(by_u.shape)
            to_u, to_v = error[:, :, None] * u + spread, np.empty_like(by_v)
            for k, own in segments:
                to_v[own] = error[own][:, :, None] * v[k] + by_v[own] @ local[k] - spread[own] @ gains[k].T
            # A row, and t with it, is divided by the noise of its channel; a column of v is multiplied by that of its.
            by_noise += (to_u * by_u).sum(axis=(0, 2)) + (to_v * by_v).sum(axis=(0, 2)) - (error * target).sum(axis=0)
            by_noise -= (to_v * by_v).sum(axis=(0, 1))
            by_j = -to_u * (self.recording.observed[rows] / noise)[:, :, None]
            after, pulled = self._pulled_back(after, by_j, by_bumps, tangent)
            by_logarithms = [total + np.asarray(one) for total, one in zip(by_logarithms, pulled, strict=True)]
        # log N(v | away, 1/prior): its precision grows with σ², and away shrinks with 1/σ.
        from_prior = v - self._away(at)
        spread_of_v = np.diagonal(of_starts, axis1=1, axis2=2)
        of_prior = 1 - self.prior * (from_prior**2 + from_prior * self._away(at) + spread_of_v)
        return by_logarithms, by_noise + of_prior.sum(axis=0) - self.recording.observed.sum(axis=0)

    def _pulled_back(self, after, by_j, by_bumps, tangent):
        """Through the whitening and through the recurrence of J."""
        by_heights = np.zeros((len(tangent.rows), *by_j.shape[1:]))
        by_heights[: len(by_j)] = by_j
        by_whitenings = [np.zeros(w.shape) for w in self.kernels.whitenings]
        for columns, whitening, (group, latent) in self.kernels.columns():
            own, j = (each[:, :, columns].reshape(-1, len(whitening)) for each in (by_j, by_bumps))
            by_whitenings[group][latent] = own.T @ j
            by_heights[: len(by_j), :, columns] = (own @ whitening).reshape(*by_j.shape[:2], -1)
        by = programs.ByJ(by_heights, tuple(by_whitenings))
        return programs.pulled_back(self.kernels, after, by, tangent, np.asarray(len(by_j)))


def _at_least(least: float, precision: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """The same, if it is positive definite; else with no eigenvalue below what the prior alone gives.

    Where the noise is so small that squares of X beyond 1e16 were added up, rounding alone is larger than that; then
    none is below rounding.
    """
    if not np.isfinite(precision).all():  # of which LAPACK may make a factor all the same
        raise np.linalg.LinAlgError("not a number")
    try:
        np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(precision)
        lowest = max(least, 4 * len(values) * np.finfo(float).eps * values[-1])
        return (vectors * np.maximum(values, lowest)) @ vectors.T
    return precision


def _solve(matrix: Float[np.ndarray, "p p"], right: Float[np.ndarray, " p"]) -> tuple[np.ndarray, float]:
    """matrix⁻¹ right, and log det matrix."""
    root = np.linalg.cholesky(matrix)
    best = np.linalg.solve(root.T, np.linalg.solve(root, right))
    return best, float(2 * np.log(np.diag(root)).sum())


def _inverse(matrix: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """Of a positive definite matrix, symmetric to the last digit."""
    half = np.linalg.inv(np.linalg.cholesky(matrix))
    return half.T @ half
