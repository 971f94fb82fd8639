"""The default engine: the best field by staged shooting, kernels and noise by the evidence, then a joint Gaussian.

1. Restart every 20 rows, where there are hardly any local optima: fit, tune kernels and noise, until converged.
2. Fit with restarts half as often, again and again, then tune once more with every piece in one rollout. Where that is
   too long a leap for an unstable rollout, there are stages between; where they do not help, pieces are cut. Where the
   recording determines most of the values at inducing points, these are doubled (`stages.py`, `growing.py`).
3. Where residuals are not white, fit once more with inflated noise: τ rows count as one, their autocorrelation time.
4. The Gaussian around that optimum, over inducing values and starts together. Where its draws do not cost what it
   expects, those are stored that fit, or draws by randomise-then-optimise.
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from typing import NamedTuple

import equinox as eqx
import numpy as np

from sgpd.data import Trajectories, Windows, excerpts, windows
from sgpd.errors import NumericalFailure, Outcome
from sgpd.gp import Kernel, SquaredExponential
from sgpd.gp.features import Sampling
from sgpd.inference.checkpoint import Checkpoint
from sgpd.inference.diagnosis import Diagnosis, diagnose
from sgpd.inference.facts import FitFacts, History, history_of, plain
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
from sgpd.inference.laplace.evidence import Tuned, Tuning
from sgpd.inference.laplace.growing import determined
from sgpd.inference.laplace.linear_model import LinearModel, Solution
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.laplace.sampling import (
    extra_costs,
    importance_sample_size,
    randomise_then_optimise,
    resampled,
    weights_of,
)
from sgpd.inference.laplace.stages import Problem, first, last, longer, stage_lengths
from sgpd.inference.laplace.starts import found_starts
from sgpd.inference.options import FitOptions
from sgpd.inference.posterior.field import FieldPosterior, feature_counts, sample_features
from sgpd.inference.posterior.joint import Drawn, Joint, Stored, Stream, Unknowns
from sgpd.inference.residuals import autocorrelation_times
from sgpd.inference.starts import observed_rows, pinned_starts
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


def fit_laplace(data: Trajectories, guess: FieldPosterior, options: FitOptions, seed: int) -> PosteriorResult:
    """Fit one recording (or several runs of one system), in pieces of at most `LONGEST` rows.

    Where rollouts over such pieces are so unstable that no field can be found for them, the pieces are cut. Kernels and
    noise of a long recording are tuned on excerpts; the posterior is that of all rows.
    """
    settings, listens, whole = options.settings, options.report, data
    data = tuned_on(whole)
    problem = Problem.of(data, guess.plain(), options, LONGEST)
    tuning, lengths = problem.tuning, stage_lengths(problem.length)
    identity = tuning.original, vars(tuning.recording), [vars(run) for run in whole.runs]
    kept = Checkpoint(
        options.checkpoint, (*identity, repr((settings, options.integrator, options.x0, options.own_points, seed)))
    )
    stage, lines = kept.load(problem.begin())
    history: list = list(history_of(lines))
    work = np.cumsum([TUNING, *[1] * (len(lengths) - 2), *[TUNING] * (len(lengths) > 1), DRAWING]).tolist()
    options.compiling.wait_for_stages()
    problem = problem.anew(stage.points)
    for index, length in list(enumerate(lengths[:-1]))[stage.done :]:
        if index == 0:
            problem, stage = first(problem, stage, length, history)
            options.compile_draws(problem.tuning.original)
        else:
            problem, stage = longer(problem, stage, length)
        stage = stage._replace(done=index + 1)
        kept.save(stage, plain(tuple(history)))  # what comes after the last stage starts from all of it
        listens(work[index], work[-1])
    problem, tuned, growth = last(problem, stage, history)
    listens(work[-2], work[-1])
    optimum, pieces, pinned = _Optimum(problem.tuning, tuned, settings), problem.pieces, problem.pinned
    if whole is not data:
        pieces = windows(whole, problem.length)
        pinned = pinned_starts(pieces, options.x0)
        optimum = optimum.over(Recording.of(whole, pieces, pinned), observed_rows(pieces, whole.center))
    how = optimum.steps()
    history[-1] = replace(history[-1], **how)
    rows = optimum.tuning.recording.in_pieces(optimum.tuned.found.along.rows)
    fitted = pieces.with_exact_starts(pinned)
    times = autocorrelation_times(fitted, rows)
    options.compiling.wait_for_draws()
    posterior, joint, facts = _posterior(optimum, times, how, seed)
    before = tuple(g.points for g in guess.groups)
    growth = growth or ("enough" if facts.inducing != before else "")
    facts = replace(facts, inducing_first=before, growth=growth)
    listens(work[-1], work[-1])
    diagnosis = diagnose(data, fitted, posterior, rows, tuned.noise, facts)
    return PosteriorResult(posterior, tuned.noise, joint, pieces, tuple(history), facts, diagnosis)


def tuned_on(data: Trajectories) -> Trajectories:
    """The rows on which kernels and noise are tuned: all, or excerpts of a long recording."""
    return excerpts(data, TUNED_ON, LONGEST)


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

    def over(self, recording: Recording, observed: np.ndarray) -> "_Optimum":
        """The best field of another recording, given about where it goes, under the same kernels and noise."""
        tuning = replace(self.tuning, recording=recording, keeps=False)
        model, rows = tuning.model(self.tuned.hyper), recording.place.shape[1]
        lengths = [length for length in (SHORT, LONGER * SHORT) if length < rows] + [rows]
        at = found_starts(model, self.tuned.at.u, recording.in_line(observed), lengths)
        at, found, ended = descend(model, at, _tight(recording))
        if not np.isfinite(found.cost):
            raise NumericalFailure(Outcome.UNSTABLE)
        converged = self.tuned.converged and ended
        return self._replace(tuning=tuning, tuned=self.tuned._replace(at=at, found=found, converged=converged))

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
        at, found, _ = descend(self.tuning.model(hyper), self.tuned.at, _tight(self.tuning.recording))
        return self._replace(tuned=self.tuned._replace(hyper=hyper, at=at, found=found))


def _tight(recording: Recording) -> Until:
    """However long a recording is, the last step has lowered the cost by no more than that of some thousand rows."""
    return Until(TIGHT * min(1.0, TUNED_ON / len(recording)))


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
        if draws.kind not in ("failed", "unsearched"):
            break
    joint = replace(joint, stored=draws.stored)
    root = np.asarray(joint.root)
    values = gaussians([g.unknowns for g in posterior.groups], np.asarray(joint.mean), root @ root.T)
    facts = FitFacts(
        log_evidence=optimum.model.log_evidence(solution, len(optimum.tuned.at.starts)),
        parameters=joint.mean.size,
        effective_parameters=float(joint.mean.size - np.trace(np.linalg.inv(solution.precision))),
        converged=tuned.converged,
        steps_converged=how["steps_converged"],
        worst_residual=how["worst_residual"],
        autocorrelation_times=tuple(times.tolist()),
        draws=draws.kind,
        drawn=draws.drawn,
        importance_sample_size=draws.effective,
        stored_draws=0 if draws.stored is None else draws.stored.different,
        failed_draws=draws.failed,
        features=tuple(features),
        features_dropped=features != asked,
        inducing=tuple(g.points for g in posterior.groups),
        determined=determined(posterior, solution.precision),
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
