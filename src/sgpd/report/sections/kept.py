"""What a structure keeps, followed along drawn paths and along the recording itself."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, State
from sgpd.data import Run
from sgpd.data.smoothing import smooth_run
from sgpd.fields import Field
from sgpd.report.material import Material
from sgpd.wording import share

BLOCKS = 12  # of a recording, over which what it keeps is averaged
LONG = 3000  # rows


class Kept(NamedTuple):
    """A quantity that paths should keep."""

    name: str
    of: Callable[[Field, State], Scalar]


def kept_by(material: Material) -> Kept | None:
    """The invariant where there is one, else the energy."""
    invariant = material.model.posterior.structure.traits(material.model.dimension).invariant
    if invariant is not None:
        matrix = jnp.asarray(invariant)
        return Kept("xᵀQx", lambda field, x: x @ matrix @ x)
    if material.has_energy:
        return Kept("H", lambda field, x: field.energy(x))
    return None


def changes(kept: Kept, fields: Field, paths: np.ndarray) -> np.ndarray:
    """Change of a kept quantity since the start of each path, (paths, n), relative to what is exchanged."""

    def one(field: Field, states: Float[Array, "n d"]) -> Float[Array, " n"]:
        values, gradients = jax.vmap(jax.value_and_grad(lambda x: kept.of(field, x)))(states)
        centred = states - states.mean(axis=0, keepdims=True)
        if kept.name == "H":  # as `sgpd.checks` does it: the level of H means nothing
            scale = jnp.sqrt(jnp.mean(jnp.sum(gradients * centred, axis=1) ** 2))
        else:
            scale = (states**2).sum(axis=1).max()
        return (values - values[0]) / (scale + jnp.finfo(states.dtype).tiny)

    return np.asarray(eqx.filter_jit(eqx.filter_vmap(one))(fields, jnp.asarray(paths)))


class Course(NamedTuple):
    """A kept quantity along a recorded run, its averages over blocks, and their straight trend."""

    times: np.ndarray
    values: np.ndarray
    middle: np.ndarray
    mean: np.ndarray
    line: np.ndarray  # the trend at the first and at the last time

    @classmethod
    def of(cls, times: np.ndarray, values: np.ndarray) -> "Course":
        """Averages over twelfths, or over at least three rows."""
        blocks = np.array_split(np.arange(len(times)), min(BLOCKS, max(len(times) // 3, 1)))
        middle = np.array([times[block].mean() for block in blocks])
        mean = np.array([values[block].mean() for block in blocks])
        slope, level = np.polyfit(middle - times[0], mean, 1) if len(blocks) > 1 else (0.0, mean[0])
        return cls(times, values, middle, mean, level + slope * (times[[0, -1]] - times[0]))

    @property
    def change(self) -> float:
        """By which share of its first value the trend falls or rises."""
        return float((self.line[1] - self.line[0]) / (abs(self.line[0]) + np.finfo(float).tiny))

    def sentence(self, quantity: str, lasting: str) -> str:
        """The same in words."""
        word = "falls" if self.change < 0 else "rises"
        return f"{quantity} {word} by {share(abs(self.change))} of its first value in {lasting}, by the straight trend."


def recorded_courses(material: Material) -> list[tuple[str, Course]]:
    """What the model keeps, along each run that the page shows: (name, course). A spline smooths the recorded values:
    the model's own smoothed states keep it by construction, whatever the recording does.
    """
    kept = kept_by(material)
    if kept is None:
        return []
    evaluate = jax.jit(jax.vmap(lambda x: kept.of(material.mean, x)))
    rest = float(evaluate(jnp.asarray(material.data.center)[None])[0])  # about where it would be at rest
    runs = [(view.name, view.fitted.run) for view in material.views if view.fitted is not None]
    courses = []
    for name, run in runs or [(material.data.run_names[0], material.data.runs[0])]:
        parts = excerpts(run)
        values = np.asarray(evaluate(jnp.asarray(np.concatenate([smooth_run(part).states for part in parts]))))
        values = values - min(values.min(), rest) if kept.name == "H" else values
        courses.append((name, Course.of(np.concatenate([part.times for part in parts]), values)))
    return courses


def excerpts(run: Run) -> list[Run]:
    """A run, or of a long one, whose splines would take minutes, as many parts as there are averages."""
    if len(run) <= LONG:
        return [run]
    size = LONG // BLOCKS
    starts = np.linspace(0, len(run) - size, BLOCKS).astype(int)
    return [Run(run.times[a : a + size], run.states[a : a + size]) for a in starts]
