"""Multiple shooting, stage by stage: kernels and noise over short rollouts, then longer ones, then whole pieces.

A stage starts from the last one's field, and from where that one's rollouts go. Three things may happen on the way:

- A leap from one length of rollouts to the next is too far, because an instability that short rollouts do not show
  multiplies: then there are stages between.
- They do not help, or nothing but rounding is left of the evidence: then pieces are cut, and the fit goes on from where
  it stands.
- A recording determines most of the values at inducing points: then there are more of those (`growing.py`).

Each is bounded by a count, so that the same fit does the same on every machine.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from sgpd.data import Trajectories, Windows, windows
from sgpd.data.smoothing import noise_std
from sgpd.errors import NumericalFailure, Outcome
from sgpd.inference.facts import Round
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace.constants import LEAPS, LOST, NEAR, SHORT, TIGHT, WORSE
from sgpd.inference.laplace.descent import Descent, Until, descend
from sgpd.inference.laplace.evidence import Hyper, Tuned, Tuning, tune
from sgpd.inference.laplace.growing import asking, carried, doubled, with_points
from sgpd.inference.laplace.linear_model import ShootingState
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.options import FitOptions
from sgpd.inference.posterior.field import FieldPosterior
from sgpd.inference.starts import pinned_starts, smoothed_rows


def stage_lengths(rows: int) -> list[int]:
    """Rows between restarts, stage by stage: doubled until the whole is one rollout, so that no stage leaps too far."""
    lengths = [SHORT]
    while 2 * lengths[-1] < rows:
        lengths.append(2 * lengths[-1])
    return [length for length in lengths if length < rows] + [rows]


class Stage(NamedTuple):
    """Where the fit stands between two stages."""

    done: int
    u: Float[np.ndarray, " p"]
    rows: Float[np.ndarray, "n d"]  # of the best rollout
    hyper: Hyper
    points: tuple[int, ...]  # inducing ones of a latent, group by group
    length: int  # rows of a rollout, at most
    cost: Float[np.ndarray, ""]

    def descended(self, tuning: Tuning, length: int, until: Until) -> Descent:
        """The best field for rollouts of so many rows, from here."""
        rollouts = tuning.recording.rollouts(length)
        return descend(tuning.model(self.hyper), ShootingState(self.u, self.rows[rollouts.first], rollouts), until)

    def after(self, best: Descent, length: int) -> "Stage":
        """With the field that was found for those."""
        cost = np.asarray(best.found.cost)
        return self._replace(u=best.at.u, rows=best.found.along.rows, length=length, cost=cost)

    def lost(self, best: Descent) -> bool:
        """Whether that came too far from the recording to find back."""
        cost = best.found.cost
        return not np.isfinite(cost) or bool(not best.ended and cost > LOST * self.cost)


class Problem(NamedTuple):
    """What is fitted: a recording in pieces."""

    data: Trajectories
    options: FitOptions
    pieces: Windows
    pinned: Bool[np.ndarray, " r"]
    tuning: Tuning

    @classmethod
    def of(cls, data: Trajectories, guess: FieldPosterior, options: FitOptions, longest: int) -> "Problem":
        """In pieces of at most so many rows."""
        settings = options.settings
        pieces = windows(data, min(max(map(len, data.runs)), longest))
        pinned = pinned_starts(pieces, options.x0)
        noise = noise_std(data) if settings.noise_std is None else np.asarray(settings.noise_std, float)
        start, recording = Hyper.unchanged(guess, noise), Recording.of(data, pieces, pinned)
        tuning = Tuning(guess, start, options.integrator, recording, known_noise=settings.noise_std is not None)
        return cls(data, options, pieces, pinned, tuning)

    @property
    def length(self) -> int:
        """Rows of a piece."""
        return self.pieces.states.shape[1]

    @property
    def grows(self) -> bool:
        """Whether the number of inducing points is ours to choose."""
        return self.options.settings.inducing is None and not self.options.own_points

    def begin(self) -> Stage:
        """Where splines see the recording, with the first guess of the field."""
        guess, rows = self.tuning.original, smoothed_rows(self.data, self.pieces, self.pinned)
        u, line = np.asarray(guess.flat_mean), self.tuning.recording.in_line(rows)
        return Stage(0, u, line, self.tuning.start, tuple(g.points for g in guess.groups), 0, np.asarray(np.inf))

    def with_points(self, points: tuple[int, ...]) -> "Problem":
        """With so many inducing points for each group, and the same kernels."""
        original = with_points(self.tuning.original, self.data, points)
        if original is self.tuning.original:
            return self
        self.options.compile(original)
        self.options.compiling.wait_for_stages()
        return self._replace(tuning=replace(self.tuning, original=original))

    def anew(self, points: tuple[int, ...]) -> "Problem":
        """With so many from the beginning: kernels are guessed with them."""
        if points == tuple(g.points for g in self.tuning.original.groups):
            return self
        structure, kernel = self.tuning.original.structure, self.options.settings.kernel
        guess = initial_posterior(structure, self.data, kernel, points, sized=self.options.compile).plain()
        self.options.compiling.wait_for_stages()
        return Problem.of(self.data, guess, self.options, self.length)

    def cut(self, stage: Stage) -> tuple["Problem", Stage]:
        """In equal pieces of no more rows than a stage has come to, and shorter ones in any case; and that stage."""
        longest = -(-self.length // max(2, -(-self.length // max(stage.length, 1))))
        if longest < SHORT:
            raise NumericalFailure(Outcome.UNSTABLE)
        shorter = Problem.of(self.data, self.tuning.original, self.options, longest)
        rows = np.zeros((self.data.rows, stage.rows.shape[1]))
        rows[self._place()] = self.tuning.recording.in_pieces(stage.rows)
        there = rows[shorter._place()]
        there[shorter.pinned, 0] = shorter.pieces.states[shorter.pinned, 0]  # exact, whatever went through it
        return shorter, stage._replace(rows=shorter.tuning.recording.in_line(there))

    def _place(self) -> Int[np.ndarray, "r m"]:
        """Of the rows of pieces, among those of all runs; padding stands where the last row of its piece does."""
        before = np.cumsum([0, *map(len, self.data.runs)])
        within = np.minimum(np.arange(self.length), self.pieces.lengths[:, None] - 1)
        return (before[self.pieces.run] + self.pieces.row)[:, None] + within


class Ended(NamedTuple):
    """Where a stage that tunes has ended."""

    problem: Problem
    stage: Stage
    tuned: Tuned | None  # None: there is no field for such rollouts
    growth: str = ""  # why inducing points are no more than they are; nothing where there never were too few


def first(problem: Problem, stage: Stage, length: int, history: list[Round]) -> tuple[Problem, Stage]:
    """Kernels and noise for rollouts so short that there are hardly any local optima."""
    problem, stage, tuned, _ = _tuned(problem, stage, length, history)
    if tuned is None:
        raise NumericalFailure(Outcome.UNSTABLE)
    stage = stage._replace(hyper=tuned.hyper, points=tuple(g.points for g in problem.tuning.original.groups))
    return problem, stage.after(Descent(tuned.at, tuned.found, True), length)


def longer(problem: Problem, stage: Stage, length: int) -> tuple[Problem, Stage]:
    """The field for longer rollouts, or as far as it comes."""
    return problem, _leapt(problem.tuning, stage, length)[0]


def last(problem: Problem, stage: Stage, history: list[Round]) -> tuple[Problem, Tuned, str]:
    """Kernels and noise for rollouts over whole pieces; these are cut where there is no field for such rollouts."""
    while True:
        problem, stage, tuned, growth = _tuned(problem, stage, problem.length, history)
        if tuned is not None:
            return problem, tuned, growth
        problem, stage = problem.cut(stage)


def _tuned(problem: Problem, stage: Stage, length: int, history: list[Round]) -> Ended:
    """Kernels, noise and the number of inducing points for rollouts of that length."""
    with_more = _carried if stage.length else _anew
    ended = _at_first(problem, stage, length, history)
    while ended.tuned is not None and problem.grows and any(asked := asking(ended.problem.tuning, ended.tuned)):
        points, refused = doubled(ended.problem.tuning, asked)
        if refused:
            return ended._replace(growth=refused)
        more = with_more(ended, points, length, history)
        if more.tuned is None or not more.tuned.values[-1] > ended.tuned.values[-1] - WORSE:
            return ended._replace(growth="worse")
        ended = more._replace(growth="enough")
    return ended


def _at_first(problem: Problem, stage: Stage, length: int, history: list[Round]) -> Ended:
    """With the inducing points there are."""
    stage, best = _leapt(problem.tuning, stage, length, Until(TIGHT))
    if best is None:
        return Ended(problem, stage, None)
    tuned = _told(tune(problem.tuning, stage.hyper, best), length, history)
    return Ended(problem, stage, tuned if np.isfinite(tuned.values[-1]) else None)


def _anew(ended: Ended, points: tuple[int, ...], length: int, history: list[Round]) -> Ended:
    """With so many inducing points from a first guess: where kernels hardly fitted, they are a bad one."""
    problem = ended.problem.anew(points)
    return _at_first(problem, problem.begin(), length, history)


def _carried(ended: Ended, points: tuple[int, ...], length: int, history: list[Round]) -> Ended:
    """With so many inducing points from the same field and the same kernels: over long rollouts no guess is as good."""
    problem, stage, tuned, _ = ended
    if tuned is None:
        return ended
    more = problem.with_points(points)
    model, kernels = more.tuning.model(tuned.hyper), problem.tuning.model(tuned.hyper).kernels
    best = descend(model, tuned.at._replace(u=carried(kernels, model.kernels, tuned.at.u)), Until(TIGHT))
    if stage.lost(best):
        return Ended(problem, stage, None)
    there = _told(tune(more.tuning, tuned.hyper, best), length, history)
    return Ended(more, stage, there if np.isfinite(there.values[-1]) else None)


def _told(tuned: Tuned, length: int, history: list[Round]) -> Tuned:
    history += [Round(length, k, value) for k, value in enumerate(tuned.values)]
    return tuned


def _leapt(tuning: Tuning, stage: Stage, length: int, until: Until = Until()) -> tuple[Stage, Descent | None]:
    """The best field for rollouts of so many rows; where that is too far a leap, by way of some between.

    An instability that is not seen over short rollouts, such as one out of the plane of an orbit, is multiplied many
    times from one length to the next; seen over a little longer ones, it can be mended.
    """
    tried = length
    for _ in range(LEAPS):
        best = stage.descended(tuning, tried, until)
        if not stage.lost(best):
            stage = stage.after(best, tried)
            if tried == length:
                return stage, best
            tried = length
            continue
        tried = (stage.length + tried) // 2
        if tried <= stage.length + stage.length // NEAR:
            break
    return stage, None
