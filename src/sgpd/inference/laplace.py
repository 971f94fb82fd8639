"""The default engine: the best field by staged shooting, kernels and noise by the evidence, then a joint Gaussian.

1. Restart every 20 rows, where there are hardly any local optima: fit, tune kernels and noise, until settled.
2. Fit with restarts half as often, again and again, then tune once more with every piece in one rollout.
3. The Gaussian around that optimum, over inducing values and starts together, widened by the uncertainty of kernels and
   noise. Where draws of it do not cost what draws of the posterior cost, draws by randomise-then-optimise are stored.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from sgpd.arrays import on_device
from sgpd.data import Trajectories, Windows, windows
from sgpd.gp import Kernel, SquaredExponential
from sgpd.gp.features import Spread
from sgpd.inference.checkpoint import Checkpoint
from sgpd.inference.diagnosis import Diagnosis, diagnose
from sgpd.inference.evidence import Hyper, Tuned, objective, tune
from sgpd.inference.initial import gaussians, noise_std
from sgpd.inference.joint import Joint, Stored, Stream
from sgpd.inference.linear import Recording, Shooting
from sgpd.inference.posterior import FieldPosterior, sample_features
from sgpd.inference.problem import pinned_starts, smoothed_rows
from sgpd.inference.sampling import Fresh, randomise_then_optimise, relative_rise
from sgpd.inference.shooting import descend
from sgpd.inference.uncertainty import drawn_priors, uncertainty
from sgpd.integrators import Integrator
from sgpd.outcome import NumericalFailure, Outcome

SHORT = 20  # rows between restarts in the first stage
LONGEST = 500  # rows of one rollout; a longer recording is cut
TESTED = 64  # draws by which the Gaussian is judged
SLACK = 1.3  # how much more than a chi-squared draw a Gaussian draw may cost at the 90 % point

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Laplace:
    """Settings of the default engine. There is nothing that must be tuned."""

    kernel: type[Kernel] = SquaredExponential
    inducing: int | None = None  # points for each latent; None: by dimension
    noise: Sequence[float] | np.ndarray | None = None  # standard deviations known beforehand; None: found
    features: int = 256
    spread: Spread = "quasi"
    stored: int = 128  # draws that are kept where a Gaussian does not describe the posterior

    def __post_init__(self):
        if self.noise is not None:  # settings are part of what is compiled, so they must be hashable
            object.__setattr__(self, "noise", tuple(map(float, self.noise)))


class Found(NamedTuple):
    """What the engine gives."""

    posterior: FieldPosterior
    noise: np.ndarray
    joint: Joint
    pieces: Windows
    history: list[dict]
    facts: dict
    diagnosis: Diagnosis


class _Stage(NamedTuple):
    """Where the fit stands between two stages."""

    done: int
    u: Float[Array, " p"]
    rows: Float[Array, "r n d"]  # of the best rollout
    hyper: Hyper


def fit_laplace(
    data: Trajectories,
    guess: FieldPosterior,
    integrator: Integrator,
    settings: Laplace,
    x0: str,
    seed: int,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Found:
    """Fit one recording (or several runs of one system)."""
    report = progress or (lambda done, total: None)
    pieces = windows(data, min(max(map(len, data.runs)), LONGEST))
    pinned = pinned_starts(pieces, x0)
    recording = Recording.of(data, pieces, pinned)
    noise = on_device(noise_std(data) if settings.noise is None else np.asarray(settings.noise, float))
    guess = guess.plain()
    start = Hyper.unchanged(guess, noise)
    kept = Checkpoint(checkpoint, (guess, recording, repr((settings, integrator, x0, seed))))
    begin = _Stage(0, guess.flat_mean, on_device(smoothed_rows(data, pieces, pinned)), start)
    (done, u, rows, hyper), history = kept.load(begin)
    lengths = _lengths(rows.shape[1])
    for index, length in list(enumerate(lengths))[done:]:
        restart = on_device(np.broadcast_to(np.arange(rows.shape[1]) % length == 0, rows.shape[:2]))
        at = Shooting(u, rows, restart)
        if 0 < index < len(lengths) - 1:
            at, found = descend(hyper.kernels(guess), integrator, recording, jnp.exp(hyper.noise), at)
        else:
            tuned = tune(guess, start, hyper, integrator, recording, at, settings.noise is not None)
            at, found, hyper = tuned.at, tuned.found, tuned.hyper
            history += [{"restart": length, "round": k, "objective": value} for k, value in enumerate(tuned.values)]
        u, rows = at.u, found.along.rows
        if index + 1 < len(lengths):  # what comes after the last stage starts from all of it
            kept.save(_Stage(index + 1, u, rows, hyper), history)
        report(index + 1, len(lengths) + 1)
    if not np.isfinite(history[-1]["objective"]):
        raise NumericalFailure(Outcome.DIVERGED)
    posterior, joint, facts = _found(guess, start, integrator, recording, tuned, settings, seed)
    report(len(lengths) + 1, len(lengths) + 1)
    noise = np.asarray(tuned.noise)
    diagnosis = diagnose(data, recording, posterior, np.asarray(rows), noise, facts)
    return Found(posterior, noise, joint, pieces, history, facts, diagnosis)


def _lengths(rows: int) -> list[int]:
    """Rows between restarts, stage by stage: doubled until the whole is one rollout, so that no stage leaps too far."""
    lengths = [SHORT]
    while 2 * lengths[-1] < rows:
        lengths.append(2 * lengths[-1])
    return [length for length in lengths if length < rows] + [rows]


def _found(
    guess: FieldPosterior, start: Hyper, integrator, recording: Recording, tuned: Tuned, settings: Laplace, seed: int
):
    """The posterior around the optimum, and facts about it."""
    posterior, noise = tuned.hyper.kernels(guess), tuned.noise
    judged = objective(ravel_pytree(tuned.hyper)[0], start, guess, recording, tuned.at, tuned.found)
    joint = Joint.laplace(recording, tuned.at, tuned.found.equations, judged.solution, noise)
    drawn = joint.draw(seed, TESTED, posterior, settings.features, settings.spread)
    lowest = tuned.found.cost
    rise = np.asarray(relative_rise(posterior, integrator, recording, tuned.at, noise, joint, drawn, lowest))
    from scipy.stats import chi2  # slow to import

    unknowns = joint.mean.size + int((~np.asarray(recording.pinned)).sum()) * noise.size
    expected = chi2.ppf(0.9, unknowns) / unknowns
    gaussian, failed = bool(np.quantile(rise, 0.9) < SLACK * expected), 0
    unsure = uncertainty(guess, start, recording, tuned, settings.noise is not None)
    joint = joint.widened(on_device(unsure.moves), on_device(unsure.covariance))
    if not gaussian:
        rng, count = Stream.RANDOMISED.of(seed), settings.stored
        draws, ok = randomise_then_optimise(
            posterior,
            integrator,
            recording,
            tuned.at,
            drawn_priors(rng, guess, tuned.hyper, unsure.covariance, count),
            sample_features(Stream.FEATURES.of(seed), posterior, settings.features, settings.spread, count),
            Fresh.of(rng, count, recording, tuned.at),
        )
        failed = int((~np.asarray(ok)).sum())
        if failed < settings.stored / 2:
            joint = dataclasses.replace(joint, stored=Stored(draws, ok, on_device(seed)))
    root = np.asarray(joint.root)
    values = gaussians(posterior.whitened, np.asarray(joint.mean), root @ root.T)
    facts = {
        "log_evidence": float(judged.log_evidence),
        "parameters": joint.mean.size,
        "effective_parameters": float(joint.mean.size - np.trace(np.linalg.inv(np.asarray(judged.solution.precision)))),
        "settled": tuned.settled,
        "gaussian": gaussian,
        "cost_of_draws": float(np.quantile(rise, 0.9) / expected),
        "stored_draws": 0 if joint.stored is None else settings.stored - failed,
        "failed_draws": failed,
    }
    return eqx.tree_at(lambda p: p.values, posterior, values), joint, facts
