"""The programs of a fit, compiled side by side: the compiler works on one core, and a first fit waits for it.

Each program is called once where the fit begins, with a recording of no blocks: a few milliseconds where it is compiled
already.
"""

from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import numpy as np

from sgpd.arrays import on_device
from sgpd.inference.laplace.constants import POOL, ROLLED_AT_ONCE
from sgpd.inference.laplace.evidence import Hyper, Tuning
from sgpd.inference.laplace.linear_model import LinearModel, Regression, ShootingState
from sgpd.inference.laplace.recording import Layout
from sgpd.inference.laplace.sampling import extra_costs
from sgpd.inference.posterior.field import Features
from sgpd.inference.posterior.joint import Drawn, Unknowns
from sgpd.xla.batches import size_of_batches
from sgpd.xla.tuning import programs_at_once


def compile_programs(tuning: Tuning, hyper: Hyper, at: ShootingState, layout: Layout, draws: tuple[int, ...]):
    """Those of stages and evidence, and that by which draws are weighed: so many to store, with so many features."""
    if programs_at_once() < 2:  # threads of XLA could wait for one another
        return
    tuning = eqx.tree_at(lambda t: t.recording.used, tuning, on_device(0))
    model = tuning.model(hyper)
    along = model.tangent(at)
    with ThreadPoolExecutor(max_workers=1) as other:
        longest = other.submit(lambda: tuning.evidence(hyper, at, along))
        equations, _ = model.regression(at, along)
        _weigh(model, at, layout, equations, draws)
        model.improved(at, equations, on_device(0.0))
        longest.result()


def _weigh(model: LinearModel, at: ShootingState, layout: Layout, equations: Regression, draws: tuple[int, ...]):
    """One batch of draws of nothing."""
    stored, *features = draws
    count = size_of_batches(POOL * stored, ROLLED_AT_ONCE)
    shapes = [(*g.scale[:, 0].shape, size) for g, size in zip(model.posterior.groups, features, strict=True)]
    frequencies = tuple(on_device(np.zeros((size, k))) for _, k, size in shapes)
    weights = tuple(on_device(np.zeros((count, latents, 2, size))) for latents, _, size in shapes)
    u, starts = np.zeros((count, at.u.size)), np.zeros((count, len(layout.place), len(model.noise)))
    drawn = Drawn(Unknowns(on_device(u), on_device(starts)), Features(frequencies, weights))
    extra_costs(model, at, layout, equations, drawn)
