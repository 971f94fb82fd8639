"""What a fit gives: a posterior over fields, the integrator it was trained with, and what one does with them."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from numpy.typing import ArrayLike

from sgpd.arrays import Key
from sgpd.checks import CheckReport, Claim, judge, measure, preserved, require_compatible
from sgpd.fields import Field
from sgpd.gp.features import Spread
from sgpd.inference.forecast import STEP_SLACK, Forecast, Schedule, Starts, require_usable, roll_paths
from sgpd.inference.posterior import Features, FieldPosterior, sample_frequencies, sample_normals
from sgpd.integrators import Integrator
from sgpd.integrators import get as get_integrator
from sgpd.outcome import SgpdWarning

CHECK_PATHS = 8


@dataclass(frozen=True, eq=False)
class RunEnds:
    """Where a recorded run starts and ends, as the fit sees it.

    The end is reached from the start of the run's last window by `lead` steps of the same drawn field, so that field
    and state stay jointly distributed.
    """

    first_mean: np.ndarray
    first_std: np.ndarray
    last_mean: np.ndarray
    last_std: np.ndarray
    lead: np.ndarray
    last_time: float


@dataclass(frozen=True, eq=False)
class Model:
    """A learned system. `predict`, `draw` and `check` are functions of it and a seed: same seed, same result."""

    posterior: FieldPosterior
    integrator: Integrator
    step: float  # the step it was trained with; a learned field absorbs its integrator's error
    noise: np.ndarray  # standard deviation of the observations, by channel
    names: tuple[str, ...]
    units: tuple[str, ...]
    runs: tuple[RunEnds, ...]
    objective: str  # what was maximised: "lower bound" or "composite likelihood"
    features: int = 256
    spread: Spread = "quasi"
    history: list[dict] = field(default_factory=list, repr=False)

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
        return self.posterior.mean()

    def draw(self, seed: int = 0) -> Field:
        """One field from the posterior: a function to call, the same one however often."""
        normals, features, _ = self._randomness(seed, 1)
        first = lambda tree: jax.tree.map(lambda leaf: leaf[0], tree)
        return _drawn(self.posterior, first(normals), Features(features.frequencies, first(features.weights)))

    def draws(self, paths: int, seed: int = 0) -> Field:
        """Several fields, stacked along a leading axis: those behind the paths of `predict` with the same arguments.

        Call them under `equinox.filter_vmap`.
        """
        normals, features, _ = self._randomness(seed, paths)
        return _drawn_stack(self.posterior, normals, features)

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
        run: int = -1,
    ) -> Forecast:
        """Forecast from x0.

        **Arguments:**

        - `x0`: an exact state, which holds at the first of the times. None goes on from the last state of a recorded
            run (`run`, the last one by default), which is uncertain together with the field.
        - `duration` or `times`: a duration gives 0, h, 2h, ... at the trained step (counted on from the end of the
            recording where x0 is None); times are taken as they are.
        - `step`: the longest step to take, the trained one by default.
        - `integrator`: another method, or "adaptive" for step-size control; the trained one by default.
        - `paths`, `seed`: how many fields to draw, and which.
        """
        starts, origin = self._starts(x0, run)
        at = _times(duration, times, self.step if step is None else step, origin)
        schedule = Schedule.through(at, self.step if step is None else step)
        ahead = self._ahead(integrator, schedule)
        normals, features, start_normals = self._randomness(seed, paths)
        best, drawn = roll_paths(
            self.posterior, starts, self.integrator, ahead, jnp.asarray(at), schedule, normals, features, start_normals
        )
        ok, residual = np.asarray(drawn.ok), np.asarray(drawn.residual)
        require_usable(ok, residual)
        return Forecast(at, np.asarray(drawn.states), np.asarray(best.states), ok, residual, self.names, self.units)

    def check(self, duration: float | None = None, *, paths: int = CHECK_PATHS, seed: int = 0) -> CheckReport:
        """Measure every claim of this structure and integrator on drawn fields, from the starts of the recorded runs.

        The duration is that of 400 steps unless given.
        """
        steps = 400 if duration is None else max(round(duration / self.step), 1)
        normals, features, start_normals = self._randomness(seed, paths)
        means = np.stack([run.first_mean for run in self.runs])[np.arange(paths) % len(self.runs)]
        stds = np.stack([run.first_std for run in self.runs])[np.arange(paths) % len(self.runs)]
        starts = jnp.asarray(means) + jnp.asarray(stds) * start_normals
        found = _measured(self.posterior, self.integrator, self.step, steps, normals, features, starts)
        return judge(found, self.preserves, self.integrator.implicit)

    def save(self, path: str | Path):
        """Write the model to one safetensors file, atomically; `sgpd.load` reads it."""
        from sgpd.inference.saving import save_model  # saving knows models, not the other way round

        save_model(self, path)

    def __repr__(self) -> str:
        pair = f"{self.posterior.structure.name} + {self.integrator.name}"
        return f"Model({pair}, state ({', '.join(self.names)}), step {self.step:g})"

    def _randomness(self, seed: int, paths: int):
        """Everything random about a number of drawn fields and their starts."""
        return _randomness(self.posterior, self.features, self.spread, paths, jr.key(seed))

    def _starts(self, x0: ArrayLike | None, run: int) -> tuple[Starts, float]:
        if x0 is None:
            ends = self.runs[run]
            return Starts(
                jnp.asarray(ends.last_mean), jnp.asarray(ends.last_std), jnp.asarray(ends.lead)
            ), ends.last_time
        state = np.asarray(x0, float)
        if state.shape != (self.dimension,) or not np.isfinite(state).all():
            raise ValueError(
                f"x0 must be {self.dimension} finite numbers ({', '.join(self.names)}), got {x0!r}; "
                "leave it out to go on from the end of the recording."
            )
        return Starts(jnp.asarray(state), jnp.zeros(self.dimension), jnp.zeros(0)), 0.0

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


def _warn_untrained(difference: str):
    warnings.warn(
        f"This forecast takes {difference}; a learned field absorbs the error of the integrator and step it was "
        "trained with, so compare the two, or train with a method of higher order.",
        SgpdWarning,
        stacklevel=4,
    )


def _times(duration, times, step: float, origin: float) -> np.ndarray:
    if (duration is None) == (times is None):
        raise ValueError("Say either how long (`duration=40.0`) or at which times (`times=[...]`) to forecast.")
    if not (np.isfinite(step) and step > 0):
        raise ValueError(f"The step must be a positive number, got {step!r}.")
    if times is None:
        if not (np.isfinite(duration) and duration >= step):
            raise ValueError(f"The duration must be at least one step of {step:g}, got {duration!r}.")
        return origin + step * np.arange(int(duration / step + 1e-6) + 1)
    at = np.asarray(times, float)
    if at.ndim != 1 or len(at) < 2 or not np.isfinite(at).all() or not (np.diff(at) > 0).all():
        raise ValueError("Times to forecast must be at least two finite numbers that increase; sort them.")
    return at


@eqx.filter_jit
def _randomness(posterior: FieldPosterior, count: int, spread: Spread, paths: int, key: Key):
    k_frequencies, k_paths, k_starts = jr.split(key, 3)
    frequencies = sample_frequencies(k_frequencies, posterior, count, spread)
    normals, weights = sample_normals(k_paths, posterior, count, (paths,))
    return normals, Features(frequencies, weights), jr.normal(k_starts, (paths, posterior.dimension))


@eqx.filter_jit
def _drawn(posterior: FieldPosterior, normals, features: Features) -> Field:
    return posterior.draw(normals, features)


@eqx.filter_jit
def _drawn_stack(posterior: FieldPosterior, normals, features: Features) -> Field:
    one = lambda values, weights: posterior.draw(values, Features(features.frequencies, weights))
    return eqx.filter_vmap(one)(normals, features.weights)


@eqx.filter_jit
def _measured(posterior: FieldPosterior, integrator: Integrator, h: float, steps: int, normals, features, starts):
    invariant = posterior.structure.traits(posterior.dimension).invariant

    def one(drawn):
        values, weights, x0 = drawn
        field = posterior.draw(values, Features(features.frequencies, weights))
        return measure(
            field, integrator, x0, jnp.asarray(h), steps, None if invariant is None else jnp.asarray(invariant)
        )

    return jax.lax.map(one, (normals, features.weights, starts), batch_size=CHECK_PATHS)
