"""What a fit says about itself, in words: numbers a physicist would ask for, and what does not look right."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.data import Trajectories, Windows
from sgpd.inference.initial import noise_std, smooth_run
from sgpd.inference.linear import Recording
from sgpd.inference.posterior import FieldPosterior

WHITE = 4.0  # standard errors of a correlation between neighbouring residuals
ROUGH = 1.5  # noise found, against what the recording's own roughness shows
TREND = 5.0  # standard errors of a slope of the energy
SPARSE = 1e-3  # share of the prior's variance that the inducing points leave open where the recording goes
BLOCKS = 12


class Diagnosis(NamedTuple):
    """Sentences: what was found, and what deserves a look."""

    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def diagnose(
    data: Trajectories,
    pieces: Windows,
    recording: Recording,
    posterior: FieldPosterior,
    rows: np.ndarray,
    noise: np.ndarray,
    facts: dict,
) -> Diagnosis:
    """Judge a fit by its residuals, its noise, the energy of the recording and the places of the inducing points."""
    numbers = ", ".join(f"{name} {value:.3g}" for name, value in zip(data.names, noise, strict=True))
    notes = [
        f"Noise found (standard deviation): {numbers}.",
        f"Lengthscales: {_lengthscales(posterior, data.dimension)}.",
        f"Log evidence {facts['log_evidence']:.1f}; {facts['effective_parameters']:.1f} effective parameters of "
        f"{facts['parameters']}.",
        _draws(facts),
    ]
    used = int(sum(pieces.lengths))
    if used < sum(map(len, data.runs)):
        notes.append(f"The fit used {used} of {sum(map(len, data.runs))} rows, in {len(pieces)} pieces spread evenly.")
    problems = [
        *_unsettled(facts),
        *_coloured(data.names, recording, rows),
        *_noisier(data, noise),
        *_losing_energy(data, posterior),
        *_sparse(posterior, rows),
    ]
    return Diagnosis(tuple(notes), tuple(problems))


def _lengthscales(posterior: FieldPosterior, dimension: int) -> str:
    specs = posterior.structure.groups(dimension)
    scales = [np.asarray(group.kernel.lengthscale)[0] for group in posterior.groups]
    return "; ".join(f"{s.name} {', '.join(f'{v:.3g}' for v in scale)}" for s, scale in zip(specs, scales, strict=True))


def _draws(facts: dict) -> str:
    if facts["gaussian"]:
        return "Draws of the Gaussian posterior fit the recording as they should."
    excess = f"Draws of the Gaussian posterior fit the recording badly ({facts['cost_of_draws']:.1f} times the cost)"
    if facts["stored_draws"]:
        return f"{excess}, so {facts['stored_draws']} draws by randomise-then-optimise are kept instead."
    return f"{excess}, and most fits to randomised data failed: take the bands with care."


def _unsettled(facts: dict) -> list[str]:
    if facts["settled"]:
        return []
    return ["Kernels and noise were still changing when the fit stopped; compare with another seed or kernel."]


def _coloured(names: tuple[str, ...], recording: Recording, rows: np.ndarray) -> list[str]:
    """Neighbouring residuals that resemble one another: the rollout misses something that the recording does."""
    seen = np.asarray(recording.observed)
    left = np.where(seen, np.asarray(recording.states) - rows, 0.0)
    both = seen[:, 1:] & seen[:, :-1]
    found = []
    for k, name in enumerate(names):
        count, square = both[:, :, k].sum(), (left[:, :, k] ** 2).sum() / max(seen[:, :, k].sum(), 1)
        if count < 10 or square == 0:
            continue
        correlation = (left[:, 1:, k] * left[:, :-1, k] * both[:, :, k]).sum() / count / square
        if correlation > WHITE / np.sqrt(count):
            found.append(
                f"Residuals of {name} are not white (neighbours correlate by {correlation:.2f}): the structure or the "
                "step may not fit this recording; try another structure, or more inducing points."
            )
    return found


def _noisier(data: Trajectories, noise: np.ndarray) -> list[str]:
    rough = noise_std(data)
    worse = [f"{n} {a / b:.1f} times" for n, a, b in zip(data.names, noise, rough, strict=True) if a > ROUGH * b]
    if not worse:
        return []
    return [
        f"The noise found is larger than the roughness of the recording shows ({', '.join(worse)}): the structure does "
        "not fit the data, or the recording has slow disturbances; try the structure 'free' and compare."
    ]


def _losing_energy(data: Trajectories, posterior: FieldPosterior) -> list[str]:
    """The learned energy along the recording as splines see it, in blocks: friction shows as a slope."""
    energy = getattr(posterior.mean(), "energy", None)
    if energy is None:
        return []
    slopes, errors = [], []
    for run in data.runs:
        if len(run) < 3 * BLOCKS:
            continue
        states = jnp.asarray(smooth_run(run).states)
        along = np.asarray(jax.jit(jax.vmap(energy))(states))
        size = len(along) // BLOCKS
        means = along[: size * BLOCKS].reshape(BLOCKS, size).mean(axis=1)
        slope, error = _slope(means)
        slopes.append(slope)
        errors.append(error)
    if not slopes:
        return []
    slope, error = np.mean(slopes), np.sqrt(np.sum(np.square(errors))) / len(errors)
    if abs(slope) < TREND * error:
        return []
    word = "falls" if slope < 0 else "rises"
    return [
        f"The learned energy of the recorded states {word} steadily ({slope / error:+.0f} standard errors): a "
        "Hamiltonian structure has no friction or drive; use the structure 'free' if the system has."
    ]


def _slope(values: np.ndarray) -> tuple[float, float]:
    """Slope of a straight line through equally spaced values, and its standard error."""
    t = np.arange(len(values)) - (len(values) - 1) / 2
    slope = t @ values / (t @ t)
    left = values - values.mean() - slope * t
    return float(slope), float(np.sqrt(left @ left / (len(values) - 2) / (t @ t)))


def _sparse(posterior: FieldPosterior, rows: np.ndarray) -> list[str]:
    specs = posterior.structure.groups(posterior.dimension)
    states = jnp.asarray(rows.reshape(-1, rows.shape[-1]))
    pairs = zip(posterior.groups, specs, strict=True)
    shares = [float(jnp.max(_left_open(group, spec.inputs(states)))) for group, spec in pairs]
    poor = [f"{s.name} {share:.1%}" for s, share in zip(specs, shares, strict=True) if share > SPARSE]
    if not poor:
        return []
    return [
        f"The inducing points leave part of the prior open where the recording goes ({', '.join(poor)} of its "
        "variance); more of them (Laplace(inducing=...)) may help."
    ]


@jax.jit
def _left_open(group, inputs: Float[Array, "count n k"]) -> Float[Array, "count n"]:
    """1 - k(x, ξ) k(ξ, ξ)⁻¹ k(ξ, x) / σ²."""

    def one(kernel, inducing, x):
        nugget = group.jitter * kernel.variance * jnp.eye(inducing.shape[0])
        across = kernel.matrix(inducing, x)
        solved = jnp.linalg.solve(kernel.matrix(inducing, inducing) + nugget, across)
        return 1 - (across * solved).sum(axis=0) / kernel.variance

    return jax.vmap(one)(group.kernel, group.inducing, inputs)
