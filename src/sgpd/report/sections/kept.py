"""What a structure keeps, followed along drawn paths and along the recording itself."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, State
from sgpd.fields import Field
from sgpd.inference.course import Course, along_recording
from sgpd.inference.laplace.engine import tuned_on
from sgpd.report.material import Material


class Kept(NamedTuple):
    """A quantity that paths should keep."""

    name: str
    of: Callable[[Field, State], Scalar]


ENERGY = Kept("H", lambda field, x: field.energy(x))


def kept_by(material: Material) -> Kept | None:
    """The invariant where there is one, else the energy."""
    invariant = material.model.posterior.structure.traits(material.model.dimension).invariant
    if invariant is not None:
        matrix = jnp.asarray(invariant)
        return Kept("xᵀQx", lambda field, x: x @ matrix @ x)
    if material.has_energy:
        return ENERGY
    return None


def changes(kept: Kept, fields: Field, paths: np.ndarray) -> np.ndarray:
    """Change of a kept quantity since the start of each path, (paths, n), relative to what is exchanged."""

    def one(field: Field, states: Float[Array, "n d"]) -> Float[Array, " n"]:
        values, gradients = jax.vmap(jax.value_and_grad(lambda x: kept.of(field, x)))(states)
        centred = states - states.mean(axis=0, keepdims=True)
        if kept.name == ENERGY.name:  # as `sgpd.checks` does it: the level of H means nothing
            scale = jnp.sqrt(jnp.mean(jnp.sum(gradients * centred, axis=1) ** 2))
        else:
            scale = (states**2).sum(axis=1).max()
        return (values - values[0]) / (scale + jnp.finfo(states.dtype).tiny)

    return np.asarray(eqx.filter_jit(eqx.filter_vmap(one))(fields, jnp.asarray(paths)))


def recorded_courses(material: Material, kept: Kept) -> list[tuple[str, Course]]:
    """A kept quantity along the fitted rows of each run that the page shows, as the diagnosis follows them: (name,
    course).
    """
    field, rows = material.mean, tuned_on(material.data)
    quantity = lambda x: kept.of(field, x)
    rest = float(quantity(jnp.asarray(material.data.center)))  # about where it would be at rest
    names = [view.name for view in material.views if view.fitted is not None] or [material.data.run_names[0]]
    courses = []
    for name in names:
        run = rows.runs[rows.run_names.index(name)]
        values = along_recording(quantity, run)
        values = values - min(values.min(), rest) if kept.name == ENERGY.name else values
        courses.append((name, Course.of(run.times, values)))
    return courses
