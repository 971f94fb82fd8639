"""The default engine: the best field by staged shooting, kernels and noise by the evidence, then a joint Gaussian.

1. Restart every 20 rows, where there are hardly any local optima: fit, tune kernels and noise, until converged.
2. Fit with restarts half as often, again and again, then tune once more with every piece in one rollout. If that is
   so unstable that the evidence is not finite, begin again with pieces half as long.
3. Where residuals are not white, fit once more with inflated noise: τ rows count as one, their autocorrelation time.
4. The Gaussian around that optimum, over inducing values and starts together. Where its draws do not cost what it
   expects, those are stored that fit, or draws by randomise-then-optimise.
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from sgpd.data import Trajectories, Windows, excerpts, windows
from sgpd.data.smoothing import noise_std
from sgpd.errors import NumericalFailure, Outcome
from sgpd.gp import Kernel, SquaredExponential
from sgpd.gp.features import Sampling
from sgpd.inference.checkpoint import Checkpoint
from sgpd.inference.diagnosis import Diagnosis, diagnose
from sgpd.inference.facts import FitFacts, History, Round, history_of, plain
from sgpd.inference.initial import gaussians
from sgpd.inference.laplace.constants import (
    DRAWING,
    LINEAR,
    LONGER,
    LONGEST,
    MANY,
    MOST,
    POOL,
    SEARCHED,
    SHORT,
    TIGHT,
    TUNED_ON,
    TUNING,
)
from sgpd.inference.laplace.descent import Until, descend
from sgpd.inference.laplace.evidence import Hyper, Tuned, Tuning, tune
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState, Solution
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.laplace.sampling import (
    extra_costs,
    importance_sample_size,
    randomise_then_optimise,
    resampled,
    weights_of,
)
from sgpd.inference.laplace.starts import found_starts
from sgpd.inference.options import FitOptions
from sgpd.inference.posterior.field import FieldPosterior, feature_counts, sample_features
from sgpd.inference.posterior.joint import Drawn, Joint, Stored, Stream, Unknowns
from sgpd.inference.residuals import autocorrelation_times
from sgpd.inference.starts import pinned_starts, smoothed_rows
from sgpd.renamed import take_renamed


@dataclass(frozen=True)
class Laplace:
    """Settings of the default engine. There is nothing that must be tuned."""

    kernel: type[Kernel] = SquaredExponential
    inducing: int | None = None  # points for each latent; None: by dimension
    noise_std: Sequence[float] | np.ndarray | None = None  # known beforehand; None: found
    features: int | None = None  # random ones for each latent; None: by dimension
    sampling: Sampling = "quasi"  # of the features' frequencies
    rows: int | None = None  # at most, spread evenly in stretches; None: all
    stored: int = 128  # draws that are kept where a Gaussian does not describe the posterior
    noise: InitVar[Sequence[float] | np.ndarray | None] = None  # old name of noise_std
    spread: InitVar[Sampling | None] = None  # old name of sampling

    def __post_init__(self, noise, spread):
        take_renamed(self, "noise", noise, "noise_std")
        take_renamed(self, "spread", spread, "sampling")
        if self.noise_std is not None:  # settings are part of what is compiled, so they must be hashable
            object.__setattr__(self, "noise_std", tuple(map(float, self.noise_std)))


class PosteriorResult(NamedTuple):
    """What the engine gives."""

    posterior: FieldPosterior
    noise: np.ndarray
    joint: Joint
    pieces: Windows
    history: History
    facts: FitFacts
    diagnosis: Diagnosis


class _Stage(NamedTuple):
    """Where the fit stands between two stages."""

    done: int
    u: Float[np.ndarray, " p"]
    rows: Float[np.ndarray, "n d"]  # of the best rollout
    hyper: Hyper


def fit_laplace(
    data: Trajectories, guess: FieldPosterior, options: FitOptions, seed: int, longest: int | None = None
) -> PosteriorResult:
    """Fit one recording (or several runs of one system), in pieces of at most so many rows.

    Where rollouts over such pieces are so unstable that nothing is left of the evidence but rounding, they are halved.
    Kernels and noise of a long recording are tuned on excerpts; the posterior is that of all rows.
    """
    settings, integrator, whole = options.settings, options.integrator, data
    data = tuned_on(whole)
    pieces = windows(data, min(max(map(len, data.runs)), longest or LONGEST))
    pinned = pinned_starts(pieces, options.x0)
    lengths = _lengths(pieces.states.shape[1])
    recording = Recording.of(data, pieces, pinned)
    noise = noise_std(data) if settings.noise_std is None else np.asarray(settings.noise_std, float)
    guess = guess.plain()
    start = Hyper.unchanged(guess, noise)
    tuning = Tuning(guess, start, integrator, recording, known_noise=settings.noise_std is not None)
    identity = guess, vars(recording), [vars(run) for run in whole.runs]
    kept = Checkpoint(options.checkpoint, (*identity, repr((settings, integrator, options.x0, seed))))
    begin = _Stage(0, np.asarray(guess.flat_mean), recording.in_line(smoothed_rows(data, pieces, pinned)), start)
    (done, u, rows, hyper), lines = kept.load(begin)
    history: list = list(history_of(lines))
    tuned_at = {0, len(lengths) - 1}
    work = np.cumsum([TUNING if index in tuned_at else 1 for index in range(len(lengths))] + [DRAWING]).tolist()
    options.compiling.wait_for_stages()
    for index, length in list(enumerate(lengths))[done:]:
        rollouts = recording.rollouts(length)
        at = ShootingState(u, rows[rollouts.first], rollouts)
        if index not in tuned_at:
            at, found, _ = descend(tuning.model(hyper), at)
        else:
            tuned = tune(tuning, hyper, at)
            at, found, hyper = tuned.at, tuned.found, tuned.hyper
            history += [Round(length, k, value) for k, value in enumerate(tuned.values)]
        u, rows = at.u, found.along.rows
        if index + 1 < len(lengths):  # what comes after the last stage starts from all of it
            kept.save(_Stage(index + 1, u, rows, hyper), plain(tuple(history)))
        options.report(work[index], work[-1])
    if not np.isfinite(history[-1].objective):
        half = -(-lengths[-1] // 2)
        if half < SHORT or not np.isfinite(history[0].objective):
            raise NumericalFailure(Outcome.DIVERGED)
        # The checkpoint is that of the longer pieces, whose fit goes on to here again.
        return fit_laplace(whole, guess, replace(options, checkpoint=None), seed, longest=half)
    optimum = _Optimum(tuning, tuned, settings)
    if whole is not data:
        pieces = windows(whole, lengths[-1])
        pinned = pinned_starts(pieces, options.x0)
        optimum = optimum.over(Recording.of(whole, pieces, pinned), smoothed_rows(whole, pieces, pinned))
    how = optimum.steps()
    history[-1] = replace(history[-1], **how)
    fitted = pieces.with_exact_starts(pinned)
    rows = optimum.tuning.recording.in_pieces(optimum.tuned.found.along.rows)
    times = autocorrelation_times(fitted, rows)
    options.compiling.wait_for_draws()
    posterior, joint, facts = _posterior(optimum, times, how, seed)
    options.report(work[-1], work[-1])
    diagnosis = diagnose(whole, fitted, posterior, rows, tuned.noise, facts)
    return PosteriorResult(posterior, tuned.noise, joint, pieces, tuple(history), facts, diagnosis)


def tuned_on(data: Trajectories) -> Trajectories:
    """The rows on which kernels and noise are tuned: all, or excerpts of a long recording."""
    return excerpts(data, TUNED_ON, LONGEST)


def _lengths(rows: int) -> list[int]:
    """Rows between restarts, stage by stage: doubled until the whole is one rollout, so that no stage leaps too far."""
    lengths = [SHORT]
    while 2 * lengths[-1] < rows:
        lengths.append(2 * lengths[-1])
    return [length for length in lengths if length < rows] + [rows]


class _Optimum(NamedTuple):
    """What the posterior is built around."""

    tuning: Tuning
    tuned: Tuned
    settings: Laplace

    @property
    def model(self) -> LinearModel:
        """Under the kernels and the noise that were found."""
        return self.tuning.model(self.tuned.hyper)

    @property
    def posterior(self) -> FieldPosterior:
        """Those kernels."""
        return self.tuned.hyper.kernels(self.tuning.original)

    def solution(self) -> Solution:
        """Of the linear model there."""
        return self.tuned.found.equations.solve(self.tuned.at.u)

    def over(self, recording: Recording, smoothed: np.ndarray) -> "_Optimum":
        """The best field of another recording, given where splines see it, under the same kernels and noise."""
        tuning = replace(self.tuning, recording=recording)
        model, rows = tuning.model(self.tuned.hyper), recording.place.shape[1]
        lengths = [length for length in (SHORT, LONGER * SHORT) if length < rows] + [rows]
        at = found_starts(model, self.tuned.at.u, recording.in_line(smoothed), lengths)
        at, found, _ = descend(model, at, Until(TIGHT))
        return self._replace(tuning=tuning, tuned=self.tuned._replace(at=at, found=found))

    def joint(self) -> Joint:
        """The Gaussian around it."""
        at, equations = self.tuned.at, self.tuned.found.equations
        best, pinned = Unknowns(at.u, at.starts), self.tuning.recording.pinned
        return Joint.laplace(best, equations, self.solution(), pinned, self.tuned.noise)

    def steps(self) -> dict[str, float]:
        """How the stage equations of its steps were solved."""
        along, count = self.tuned.found.along, np.count_nonzero(self.tuning.recording.steps)
        failed = np.count_nonzero(~along.converged)
        return {"steps_converged": 1 - failed / max(count, 1), "worst_residual": float(along.residuals.max())}

    def with_inflated_noise(self, times: np.ndarray) -> "_Optimum":
        """Under the same kernels, with σ² of each channel so many times larger: that many rows count as one."""
        hyper = self.tuned.hyper._replace(noise=self.tuned.hyper.noise + np.log(times) / 2)
        at, found, _ = descend(self.tuning.model(hyper), self.tuned.at, Until(TIGHT))
        return self._replace(tuned=self.tuned._replace(hyper=hyper, at=at, found=found))


def _posterior(
    optimum: _Optimum, times: np.ndarray, how: dict[str, float], seed: int
) -> tuple[FieldPosterior, Joint, FitFacts]:
    """The posterior around the optimum, given the autocorrelation times of residuals, and facts about it."""
    solution, settings = optimum.solution(), optimum.settings
    asked = feature_counts(optimum.posterior, settings.features, settings.sampling)
    counted = optimum.with_inflated_noise(times) if (times > 1).any() else optimum
    tuned, posterior, joint = counted.tuned, counted.posterior, counted.joint()
    for features in dict.fromkeys((asked, feature_counts(optimum.posterior, 0))):
        draws = _draws(counted, joint, features, seed)
        if draws.kind != "failed":
            break
    joint = replace(joint, stored=draws.stored)
    root = np.asarray(joint.root)
    values = gaussians([g.unknowns for g in posterior.groups], np.asarray(joint.mean), root @ root.T)
    facts = FitFacts(
        log_evidence=optimum.model.log_evidence(solution, len(optimum.tuned.at.starts)),
        parameters=joint.mean.size,
        effective_parameters=float(joint.mean.size - np.trace(np.linalg.inv(solution.precision))),
        converged=tuned.converged,
        **how,
        autocorrelation_times=tuple(times.tolist()),
        draws=draws.kind,
        drawn=draws.drawn,
        importance_sample_size=draws.effective,
        stored_draws=0 if draws.stored is None else draws.stored.different,
        failed_draws=draws.failed,
        features=tuple(features),
        features_dropped=features != asked,
    )
    return eqx.tree_at(lambda p: p.values, posterior, values), joint, facts


class _Draws(NamedTuple):
    """How the posterior is drawn from: gaussian, weighed, randomised, or failed (which leaves the Gaussian).

    Unsearched: the Gaussian does not describe it, and the recording is too long for anything better.
    """

    kind: str
    drawn: int  # from the Gaussian
    effective: float  # importance sample size of those
    stored: Stored | None = None
    failed: int = 0


def _draws(optimum: _Optimum, joint: Joint, features: tuple[int, ...], seed: int) -> _Draws:
    """Draws with so many random features for each group."""
    model, settings, at = optimum.model, optimum.settings, optimum.tuned.at
    drawn, weights = _weighed(optimum, joint, POOL, features, seed)
    if (
        settings.stored * POOL / MOST <= importance_sample_size(weights) < settings.stored
    ):  # more of them will be enough
        drawn, weights = _weighed(optimum, joint, MOST, features, seed)
    pool, effective = len(weights), importance_sample_size(weights)
    if effective >= LINEAR * pool:
        return _Draws("gaussian", pool, effective)
    if effective >= settings.stored:
        kept = resampled(Stream.CHOSEN.of(seed), weights, settings.stored)
        return _Draws("weighed", pool, effective, Stored.of(drawn.unknowns, kept, seed))
    if len(model.recording) > SEARCHED:
        return _Draws("unsearched", pool, effective)
    rng, count = Stream.RANDOMISED.of(seed), settings.stored
    random = sample_features(Stream.FEATURES.of(seed), optimum.posterior, features, settings.sampling, count)
    found, ok = randomise_then_optimise(model, at, random, rng)
    kept = np.flatnonzero(ok)
    failed = len(ok) - len(kept)
    if len(ok) < count or failed > count / 2:
        return _Draws("failed", pool, effective, failed=failed)
    return _Draws("randomised", pool, effective, Stored.of(found, kept, seed), failed)


def _weighed(
    optimum: _Optimum, joint: Joint, pool: int, features: tuple[int, ...], seed: int
) -> tuple[Drawn, np.ndarray]:
    """So many draws of the Gaussian for each that would be stored, and what they weigh in the posterior.

    Weights in many dimensions are useless, however little each of them adds. So in a long recording of many pieces a
    draw's values are weighed alone, with the starts that are expected with them.
    """
    model, settings, tuned = optimum.model, optimum.settings, optimum.tuned
    drawn = joint.draw(seed, pool * settings.stored, optimum.posterior, features, settings.sampling)
    weighed = drawn
    if len(model.recording) > TUNED_ON and len(tuned.at.starts) > MANY:
        weighed = drawn._replace(unknowns=joint.with_expected_starts(drawn.unknowns))
    return drawn, weights_of(extra_costs(model, tuned.at, tuned.found.equations, weighed))
