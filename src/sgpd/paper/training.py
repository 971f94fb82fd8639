"""Models at the paper's settings: every seed has its own noise and its own start, and all are trained side by side."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
import optax

from sgpd import Model, Trajectories, Variational, fit
from sgpd.gp import SquaredExponential, ValueGaussian
from sgpd.inference import FieldPosterior, LatentGroup
from sgpd.paper.settings import PATHS, Latent, Setting
from sgpd.systems import System

Progress = Callable[[int, int], None]
MEAN_STD = 0.05  # of the first inducing values: μ ~ N(0, 0.05²) in all tables


def train_models(
    system: System,
    setting: Setting,
    recordings: Sequence[Trajectories],
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> list[Model]:
    """One model a seed."""
    return fit(
        recordings,
        setting.structure,
        setting.integrator,
        x0="observed",
        inference=inference_of(system, setting, len(recordings[0].runs[0])),
        initial=[initial_posterior(setting, len(system.names), seed) for seed in seeds],
        seed=seeds,
        progress=progress,
    )


def inference_of(system: System, setting: Setting, rows: int) -> Variational:
    """The engine's settings for recordings of so many rows."""
    windows = rows - setting.rows + 1
    # The engine multiplies the log density of a batch by windows / batch, so that it stands for that of all windows.
    alone = 1.0 if setting.estimated else setting.batch / windows
    return Variational(
        shooting=False,
        window=setting.rows,
        stride=1,
        batch=setting.batch,
        paths=PATHS,
        epochs=setting.epochs,
        learning_rate=_schedule(setting, -(-windows // setting.batch)),
        prior_rate=1.0,
        likelihood_factor=setting.likelihood_factor * alone,
        kl_factor=setting.kl_factor,
        features=setting.features,
        noise_std=tuple(np.sqrt(system.noise_variance)),
        select_last=setting.select_last,
    )


def _schedule(setting: Setting, per_epoch: int) -> optax.Schedule:
    starts, rates = zip(*setting.rates, strict=True)
    constants = [optax.constant_schedule(rate) for rate in rates]
    return optax.join_schedules(constants, [start * per_epoch for start in starts[1:]])


def initial_posterior(setting: Setting, dimension: int, seed: int) -> FieldPosterior:
    """Kernels, inducing inputs and q(z) as the tables say, with the seed's random numbers where they are random."""
    rng = np.random.default_rng([seed, 0])
    specs = setting.structure.groups(dimension)
    groups = [_group(setting, setting.latents[spec.name], spec.count, rng) for spec in specs]
    values = [_values(group.inducing.shape[:2], setting.values_variance, rng) for group in groups]
    return FieldPosterior(setting.structure, dimension, tuple(groups), tuple(values))


def _group(setting: Setting, latent: Latent, count: int, rng: np.random.Generator) -> LatentGroup:
    inducing = latent.inducing.points(rng, count)
    log_variance = np.log(setting.signal_variance)
    squared = np.broadcast_to(latent.squared_lengthscales, (count, inducing.shape[2]))
    kernel = SquaredExponential.from_logs(jnp.asarray(np.log(squared) / 2), jnp.full(count, log_variance))
    return LatentGroup(kernel, jnp.asarray(inducing), jnp.ones((count, 1, inducing.shape[2])), setting.jitter)


def _values(shape: tuple[int, ...], variance: float, rng: np.random.Generator) -> ValueGaussian:
    return ValueGaussian(jnp.asarray(MEAN_STD * rng.normal(size=shape)), jnp.full(shape, np.log(variance) / 2))
