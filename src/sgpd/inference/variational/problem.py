"""What a training works on: the settings, the data cut into windows, and the parameters to start from."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from sgpd.arrays import on_device
from sgpd.data import Trajectories, Windows, windows
from sgpd.data.smoothing import noise_std
from sgpd.errors import BadInput
from sgpd.gp import FramedGaussian, Kernel, SquaredExponential
from sgpd.gp.features import Sampling
from sgpd.inference.constants import START_STD
from sgpd.inference.laplace.linear_model import LinearModel
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.laplace.shooting import multiple_shooting
from sgpd.inference.posterior.field import FieldPosterior
from sgpd.inference.starts import pinned_starts, smoothed_rows
from sgpd.inference.variational.bound import Observations, Parameters, Starts
from sgpd.inference.variational.constants import BATCH, SHOOTING, WINDOW
from sgpd.integrators import Integrator
from sgpd.renamed import take_renamed


@dataclass(frozen=True)
class Variational:
    """Settings of the variational engine. The defaults give a true lower bound on the evidence.

    Windows side by side (`stride=None`) with latent starts make a bound; overlapping ones, or starts at the noisy
    observations, make a composite likelihood: the paper's way, offered and called so.
    """

    shooting: bool = True  # start from the best single field by multiple shooting, else from the data's derivatives
    window: int | None = None  # rows; None: 50, or the whole recording if that is shorter
    stride: int | None = None  # None: side by side; a number: overlapping, starting every so many rows
    batch: int | None = None  # windows a step; None: all, up to 32
    paths: int = 4  # Monte-Carlo paths a window and step
    steps: int = 400  # of the optimiser, rounded up to whole epochs; ignored where `epochs` is given
    epochs: int | None = None
    learning_rate: float | optax.Schedule = 0.01  # a number is lowered along a cosine to a hundredth
    prior_rate: float = 0.0  # of kernels and inducing points, relative to the learning rate; 0 keeps them as chosen
    likelihood_factor: float = 1.0  # the paper's a
    kl_factor: float = 1.0  # the paper's b
    kernel: type[Kernel] = SquaredExponential
    inducing: int | None = None  # points for each latent; None: by dimension
    diagonal: bool = False  # whether q(z) has a diagonal covariance, else a full one
    features: int = 256
    sampling: Sampling = "quasi"  # of the features' frequencies
    noise_std: Sequence[float] | np.ndarray | None = None  # known beforehand; None: learned
    select_last: int = 0  # keep the best of so many last epochs by the rollout error on the recording; 0: the last one
    noise: InitVar[Sequence[float] | np.ndarray | None] = None  # old name of noise_std
    spread: InitVar[Sampling | None] = None  # old name of sampling

    def __post_init__(self, noise, spread):
        take_renamed(self, "noise", noise, "noise_std")
        take_renamed(self, "spread", spread, "sampling")
        if self.noise_std is not None:  # settings are part of what is compiled, so they must be hashable
            object.__setattr__(self, "noise_std", tuple(map(float, self.noise_std)))


class Problem(eqx.Module):
    """What stays the same during a training. Arrays have a leading axis of seeds once they stand `side_by_side`."""

    observations: Observations
    whole: Observations  # the runs uncut, for model selection
    whole_starts: Float[Array, "runs d"]
    integrator: Integrator = eqx.field(static=True)
    settings: Variational = eqx.field(static=True)

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return self.observations.states.shape[-3]

    @property
    def batch(self) -> int:
        """Windows a step."""
        return min(self.settings.batch or BATCH, self.windows)

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in one pass over the windows."""
        return -(-self.windows // self.batch)

    @property
    def epochs(self) -> int:
        """Passes over the windows."""
        return self.settings.epochs or -(-self.settings.steps // self.steps_per_epoch)


def prepare(
    data: Trajectories, guess: FieldPosterior, integrator: Integrator, settings: Variational, x0: str
) -> tuple[Problem, Parameters, Windows]:
    """The data cut into windows, and the parameters to start from."""
    longest = max(map(len, data.runs))
    pieces = windows(data, longest)
    pinned = pinned_starts(pieces, x0)
    rows = smoothed_rows(data, pieces, pinned)
    noise = noise_std(data) if settings.noise_std is None else np.asarray(settings.noise_std, float)
    if settings.shooting:
        guess = guess.plain()
        lengths = [n for n in SHOOTING if n < longest] + [longest]
        model = LinearModel.of(guess, integrator, Recording.of(data, pieces, pinned), noise)
        best = multiple_shooting(guess, model, rows, lengths)
        framed = tuple(FramedGaussian.around(q.plain()) for q in best.posterior.whitened)
        guess, rows = eqx.tree_at(lambda q: q.values, guess, framed), best.rows
        noise = best.noise if settings.noise_std is None else noise

    cut = windows(data, min(settings.window or WINDOW, longest), settings.stride, start_observed=x0 == "observed")
    starts = _starts(data, cut, pinned_starts(cut, x0), pieces, rows, noise)
    problem = Problem(
        observations=_observations(cut, pinned_starts(cut, x0)),
        whole=_observations(pieces, pinned),
        whole_starts=on_device(rows[:, 0]),
        integrator=integrator,
        settings=settings,
    )
    return problem, Parameters(guess, starts, jnp.log(on_device(noise))), cut


def side_by_side(prepared: Sequence[tuple[Problem, Parameters]]) -> tuple[Problem, Parameters]:
    """Problems and parameters of several seeds, each with its own recording if need be, stacked for one training."""
    shapes = {problem.observations.states.shape for problem, _ in prepared}
    if len(shapes) > 1:
        raise BadInput(
            f"Recordings that are trained side by side must have rows and gaps alike, got windows of shapes {shapes}",
            "fit them one by one",
        )
    axes = {tuple(g.axes is None for g in parameters.field.groups) for _, parameters in prepared}
    if len(axes) > 1:
        raise BadInput("Some of these recordings stay in a subspace and others do not", "fit them one by one")
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *prepared)


def _observations(cut: Windows, pinned: np.ndarray) -> Observations:
    observed = on_device(cut.with_exact_starts(pinned).observed)
    return Observations(on_device(cut.states), observed, on_device(cut.flat_steps), cut.steps_per_interval)


def _starts(
    data: Trajectories, cut: Windows, pinned: np.ndarray, pieces: Windows, rows: np.ndarray, noise: np.ndarray
) -> Starts:
    """Starts anchored where the first guess goes through, or at the observation where that is exact."""
    anchor = np.where(pinned[:, None], cut.states[:, 0], 0.0)
    for index in np.flatnonzero(~pinned):
        piece = np.flatnonzero((pieces.run == cut.run[index]) & (pieces.row <= cut.row[index]))[-1]
        anchor[index] = rows[piece, cut.row[index] - pieces.row[piece]]
    std = np.where(data.std > 0, data.std, 1.0)
    return Starts(
        anchor=on_device(anchor),
        scale=on_device(noise),
        free=on_device(~pinned),
        prior_mean=on_device(data.center),
        prior_std=on_device(START_STD * std),
        offset=jnp.zeros(anchor.shape),
        log_std=jnp.full(anchor.shape, np.log(0.3)),
    )
