"""What a fit gives: a posterior over fields, the integrator it was trained with, and what one does with them."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from sgpd.arrays import State, on_device
from sgpd.checks import Check, CheckReport, Claim, judge, measure, preserved, require_compatible
from sgpd.data import Trajectories
from sgpd.errors import BadInput, SgpdWarning, unknown_name
from sgpd.fields import Field, taken
from sgpd.gp.features import Sampling
from sgpd.inference.facts import History
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.inference.posterior.joint import Drawn, Joint, Stream, Unknowns
from sgpd.inference.posterior.kernels import Kernels
from sgpd.integrators import Integrator
from sgpd.integrators import get as get_integrator
from sgpd.models.facts import Facts
from sgpd.models.forecast import STEP_SLACK, Forecast, Paths, Schedule, require_usable, roll_paths
from sgpd.models.pieces import Pieces
from sgpd.renamed import renamed_attribute
from sgpd.xla.tuning import tune_unless_told_not_to

if TYPE_CHECKING:
    from sgpd.judging.assessment import Assessment

CHECK_PATHS = 8
STARTS = ("end", "first")
TOLD = ("ATTENTION", "FAIL")  # verdicts of a diagnosis that a fit warns of


@dataclass(frozen=True, eq=False)
class Model:
    """A learned system. `predict`, `draw` and `check` are functions of it and a seed: same seed, same result."""

    posterior: FieldPosterior
    integrator: Integrator
    step: float  # the step it was trained with; a learned field absorbs its integrator's error
    noise_std: np.ndarray  # of the observations, by channel
    names: tuple[str, ...]
    units: tuple[str, ...]
    joint: Joint  # over all inducing values and the starts of all pieces
    pieces: Pieces
    objective: str  # what was maximised: "evidence", "lower bound" or "composite likelihood"
    features: tuple[int, ...]  # random ones of a draw, for each group of latents
    facts: Facts = field(repr=False)  # numbers about the recording and the fit
    history: History = field(default=(), repr=False)
    sampling: Sampling = "quasi"  # of the features' frequencies
    run_names: tuple[str, ...] = ("0",)
    remarks: tuple[str, ...] = ()  # what the fit says besides its diagnosis
    diagnosis: tuple[Check, ...] = ()  # whether the structure and the fit suit the recording

    noise = renamed_attribute("Model", "noise", "noise_std")
    spread = renamed_attribute("Model", "spread", "sampling")

    @property
    def notes(self) -> tuple[str, ...]:
        """All in words: the remarks of the fit, and of its diagnosis what to look at."""
        return (*self.remarks, *(check.words for check in self.diagnosis if check.verdict in TOLD))

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.posterior.dimension

    @property
    def preserves(self) -> frozenset[Claim]:
        """What this structure and this integrator keep together."""
        return preserved(self.posterior.structure.traits(self.dimension), self.integrator)

    def mean(self) -> Field:
        """The best estimate of the field."""
        return Kernels.of(self.posterior).field(np.asarray(self.joint.mean))

    def draw(self, seed: int = 0) -> Field:
        """One field from the posterior: a function to call, the same one however often."""
        return taken(self.draws(1, seed), 0)

    def draws(self, paths: int, seed: int = 0) -> Field:
        """Several fields, stacked along a leading axis: those behind the paths of `predict` with the same arguments.

        Call them under `equinox.filter_vmap`. A forecast from a start that the fit had to guess conditions them on it.
        """
        return taken(self.estimates(paths, seed), slice(1, None))

    def estimates(self, paths: int, seed: int = 0) -> Field:
        """The best estimate of the field, and after it so many draws: one stack, as that of `draws`."""
        drawn = self._drawn(seed, paths).after(self.joint.best)
        return _fields(self.posterior, drawn.unknowns.u, drawn.features)

    def predict(
        self,
        x0: ArrayLike | None = None,
        *,
        duration: float | None = None,
        times: ArrayLike | None = None,
        step: float | None = None,
        integrator: str | Integrator | None = None,
        paths: int = 64,
        seed: int = 0,
        run: str | int | None = None,
        start: str = "end",
        x0_std: ArrayLike | None = None,
    ) -> Forecast:
        """Forecast from x0.

        **Arguments:**

        - `x0`: an exact state, which holds at the first of the times. None starts at a state of a recorded run, which
            is uncertain together with the field.
        - `run`, `start`: which run, by name or number (the last one by default), and whether to go on from its "end"
            or to start at its "first" row. In the latter case an x0 is the true first state of that run, and the field
            learns from it; otherwise it is any state, wherever it lies.
        - `duration` or `times`: a duration gives 0, h, 2h, ... at the trained step (counted on from the end of the
            recording where x0 is None); times are taken as they are.
        - `step`: the longest step to take, the trained one by default.
        - `integrator`: another method, or "adaptive" for step-size control; the trained one by default.
        - `paths`, `seed`: how many fields to draw, and which.
        - `x0_std`: standard deviations of a measured x0 (`model.noise_std` for one like those recorded); 0 by default.
        """
        drawn, features = self._drawn(seed, paths)
        if x0_std is not None and (x0 is None or start == "first"):
            raise BadInput("x0_std is the uncertainty of a given x0", "give x0, and no `start`, or leave x0_std out")
        piece = self._piece(run, start)
        best, drawn = self._from(x0, piece if start == "first" else None, self.joint.best, drawn)
        if x0_std is not None:
            drawn = _blurred(drawn, self._state(x0_std, "x0_std"), seed)
        lead, origin = np.zeros(0), 0.0
        if x0 is None and start == "end":
            lead, origin = self.pieces.lead(piece), self.pieces.times[piece, -1]
        elif x0 is None:
            origin = self.pieces.times[piece, 0]
        at = _times(duration, times, self.step if step is None else step, origin)
        schedule = Schedule.through(at, self.step if step is None else step)
        ahead = self._ahead(integrator, schedule)
        if self.joint.stored is not None and paths > len(self.joint.stored):
            _warn_repeated(paths, self.joint.stored.different)
        both = Drawn(drawn.at(piece), features).after(best.at(piece))
        rolled = roll_paths(self.posterior, both, self.integrator, ahead, lead, schedule)
        return self._forecast(at, rolled, None if x0 is not None else int(self.pieces.run[piece]))

    def smooth(self, *, run: str | int | None = None, paths: int = 64, seed: int = 0) -> Forecast:
        """The recording as the model sees it: the states of one run, with bands, consistent with the structure."""
        drawn, features = self._drawn(seed, paths)
        index = self.run_index(run)
        times, parts = [], []
        for piece in map(int, self.pieces.of_run(index)):
            at = self.pieces.times[piece, : self.pieces.length(piece)]
            counts = (self.pieces.steps[piece, : len(at) - 1] > 0).sum(axis=1)
            schedule = Schedule(self.pieces.lead(piece), np.append(0, np.cumsum(counts)), at)
            both = Drawn(drawn.at(piece), features).after(self.joint.best.at(piece))
            times.append(at)
            parts.append(roll_paths(self.posterior, both, self.integrator, self.integrator, np.zeros(0), schedule))
        return self._forecast(np.concatenate(times), Paths.joined(parts), index)

    def _forecast(self, times: np.ndarray, rolled: Paths, run: int | None) -> Forecast:
        """The first rollout is that of the best estimate."""
        best, states, ok, residual = rolled.states[0], rolled.states[1:], rolled.ok[1:], rolled.residual[1:]
        require_usable(ok, residual)
        name = None if run is None or len(self.run_names) == 1 else self.run_names[run]
        return Forecast(times, states, best, ok, residual, self.names, self.units, name)

    def check(
        self,
        duration: float | None = None,
        *,
        held_out: Trajectories | None = None,
        paths: int = CHECK_PATHS,
        seed: int = 0,
    ) -> "Assessment":
        """Everything that can be said of this fit, as `sgpd fit`, `sgpd check` and the report say it.

        That is: what the fit says of itself (`diagnosis`), every claim of structure and integrator measured on drawn
        fields, how forecasts of rows did that the fit did not see, what was learned, and the word for all.

        **Arguments:**

        - `duration`: of the rollouts on which claims are measured; ten times that of the longest fitted run by default,
            and 4000 steps at most.
        - `held_out`: rows that the fit did not see. Without any, the word for all is NOT MEASURED.
        - `paths`, `seed`: how many fields to draw for the claims, and which.
        """
        from sgpd.judging.assessment import assess  # judging knows models, not the other way round

        return assess(self, held_out, duration, paths, seed)

    def check_claims(self, duration: float, *, paths: int = CHECK_PATHS, seed: int = 0) -> CheckReport:
        """Measure every claim of this structure and integrator on drawn fields, from the starts of the recorded runs:
        whether the structure is kept, not whether it is that of the recording.
        """
        steps = max(round(duration / self.step), 1)
        drawn, features = self._drawn(seed, paths)
        first = np.array([self.pieces.of_run(run)[0] for run in self.fitted_runs])
        starts = on_device(np.asarray(drawn.starts)[np.arange(paths), first[np.arange(paths) % len(first)]])
        chosen = Drawn(Unknowns(drawn.u, starts), features)
        found = _measured(self.posterior, self.integrator, self.step, steps, chosen)
        return judge(found, self.preserves, self.integrator.implicit)

    def save(self, path: str | Path):
        """Write the model to one safetensors file, atomically; `sgpd.load` reads it."""
        from sgpd.models.saving import save_model  # saving knows models, not the other way round

        save_model(self, path)

    def __repr__(self) -> str:
        pair = f"{self.posterior.structure.name} + {self.integrator.name}"
        return f"Model({pair}, state ({', '.join(self.names)}), step {self.step:g})"

    def _drawn(self, seed: int, paths: int) -> Drawn:
        """Everything random about a number of drawn fields and their starts."""
        tune_unless_told_not_to()  # a model may come from another process
        return self.joint.draw(seed, paths, self.posterior, self.features, self.sampling)

    @property
    def fitted_runs(self) -> list[int]:
        """Which runs of the recording the fit has pieces of; overlapping windows may leave one out."""
        return [int(run) for run in np.unique(self.pieces.run)]

    def end_of(self, run: str | int | None = None) -> float:
        """When the last fitted row of a run was recorded: where `predict` goes on from."""
        return float(self.pieces.times[self._piece(run, "end"), -1])

    def run_index(self, run: str | int | None) -> int:
        """The number of a run among `run_names`; the last one that was fitted where none is asked for."""
        fitted, names = self.fitted_runs, self.run_names
        known = "the model knows " + ", ".join(repr(names[index]) for index in fitted)
        if run is None:
            return fitted[-1]
        if isinstance(run, str) and run not in names:
            raise unknown_name("fitted run", run, [names[index] for index in fitted])
        if not isinstance(run, str) and not -len(names) <= run < len(names):
            raise BadInput(f"there is no run {run}: there are {len(names)}, from 0 to {len(names) - 1}", known)
        index = names.index(run) if isinstance(run, str) else range(len(names))[run]
        if index not in fitted:
            raise BadInput(f"no window lies in run {names[index]!r}, so that nothing of it was fitted", known)
        return index

    def _piece(self, run: str | int | None, start: str) -> int:
        """The piece in which a forecast starts."""
        if start not in STARTS:
            raise unknown_name("start of a forecast", start, STARTS)
        index = self.run_index(run)
        piece = int(self.pieces.of_run(index)[-1 if start == "end" else 0])
        if start == "first" and self.pieces.row[piece] > 0:
            hint = "take another run, or `start='end'`"
            raise BadInput(f"the first row of run {self.run_names[index]!r} was not fitted", hint)
        return piece

    def _from(
        self, x0: ArrayLike | None, first_of: int | None, best: Unknowns, drawn: Unknowns
    ) -> tuple[Unknowns, Unknowns]:
        """Best values and draws for a forecast, with its starts; given the first state of a piece, if x0 is that."""
        if x0 is None:
            return best, drawn
        state = self._state(x0, "x0")
        if first_of is not None and self.joint.start_covariance(first_of).any():
            if not self.joint.expects(first_of, state):
                hint = "leave `start` out: then it is any state, of which the field learns nothing"
                raise BadInput("x0 lies outside what the recording allows for the first state of the run", hint)
            best, drawn = (self.joint.given(first_of, state, each) for each in (best, drawn))
        pin = lambda each: Unknowns(each.u, on_device(np.broadcast_to(state, each.starts.shape)))
        return pin(best), pin(drawn)

    def _state(self, given: ArrayLike, name: str) -> State:
        state = np.asarray(given, float)
        if state.shape != (self.dimension,) or not np.isfinite(state).all():
            raise BadInput(
                f"{name} must be {self.dimension} finite numbers ({', '.join(self.names)}), got {given!r}",
                "leave it out to go on from the end of the recording",
            )
        return on_device(state)

    def _ahead(self, integrator: str | Integrator | None, schedule: Schedule) -> Integrator | None:
        """The method of the forecast (None: adaptive), with a warning where the field was trained with another."""
        if integrator == "adaptive":
            _warn_untrained(f"adaptive steps instead of {self.integrator.name}")
            return None
        chosen = self.integrator
        if integrator is not None:
            chosen = get_integrator(integrator) if isinstance(integrator, str) else integrator
            structure = self.posterior.structure
            require_compatible(structure.traits(self.dimension), chosen, structure.name)
        taken = schedule.steps[schedule.steps > 0]
        if chosen.name != self.integrator.name:
            _warn_untrained(f"{chosen.name} instead of {self.integrator.name}")
        elif np.abs(taken / self.step - 1).max() > STEP_SLACK:
            _warn_untrained(f"steps of {taken.min():g} to {taken.max():g} instead of {self.step:g}")
        return chosen


def _blurred(drawn: Unknowns, std: State, seed: int) -> Unknowns:
    """A start of its own for every draw."""
    normals = Stream.MEASURED.of(seed).normal(size=(len(drawn.u), 1, len(std)))
    return drawn._replace(starts=drawn.starts + on_device(normals) * std[None, None, :])


def _warn_untrained(difference: str):
    warnings.warn(
        f"This forecast takes {difference}; a learned field absorbs the error of the integrator and step it was "
        "trained with, so compare the two, or train with a method of higher order.",
        SgpdWarning,
        stacklevel=4,
    )


def _times(duration, times, step: float, origin: float) -> np.ndarray:
    if (duration is None) == (times is None):
        raise BadInput("Say either how long or at which times to forecast", "give `duration=40.0` or `times=[...]`")
    if not (np.isfinite(step) and step > 0):
        raise BadInput(f"The step must be a positive number, got {step!r}", "leave it out to step as fitted")
    if times is None:
        if not (np.isfinite(duration) and duration >= step):
            raise BadInput(f"The duration must be at least one step of {step:g}, got {duration!r}", "give a longer one")
        return origin + step * np.arange(int(duration / step + 1e-6) + 1)
    at = np.asarray(times, float)
    if at.ndim != 1 or len(at) < 2 or not np.isfinite(at).all() or not (np.diff(at) > 0).all():
        raise BadInput("Times to forecast must be at least two finite numbers that increase", "sort them")
    return at


def _warn_repeated(paths: int, stored: int):
    warnings.warn(
        f"The posterior is not Gaussian and is kept as {stored} draws, so {paths} paths repeat some of "
        "them; fit with Laplace(stored=...) for more.",
        SgpdWarning,
        stacklevel=3,
    )


@eqx.filter_jit
def _fields(posterior: FieldPosterior, u, features: Features) -> Field:
    one = lambda u, weights: posterior.field(posterior.unravel(u), Features(features.frequencies, weights))
    return eqx.filter_vmap(one)(u, features.weights)


@eqx.filter_jit
def _measured(posterior: FieldPosterior, integrator: Integrator, h: float, steps: int, drawn: Drawn):
    invariant = posterior.structure.traits(posterior.dimension).invariant

    unknowns, (frequencies, weights) = drawn

    def one(draw):
        (u, x0), own = draw
        field = posterior.field(posterior.unravel(u), Features(frequencies, own))
        return measure(
            field, integrator, x0, jnp.asarray(h), steps, None if invariant is None else jnp.asarray(invariant)
        )

    return jax.lax.map(one, (unknowns, weights), batch_size=CHECK_PATHS)
