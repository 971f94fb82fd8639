"""The programs of a fit, compiled side by side: the compiler works on one core, and a first fit waits for it.

Each program is called once where the fit begins, with a chunk of no entries: a millisecond where it is compiled
already.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sgpd.inference.laplace import programs
from sgpd.inference.laplace.constants import CHUNK, ROLLED_AT_ONCE
from sgpd.inference.laplace.linear_model import LinearModel
from sgpd.inference.laplace.recording import Chunk
from sgpd.inference.posterior.field import Features
from sgpd.xla.tuning import programs_at_once


def compile_programs(model: LinearModel, features: tuple[int, ...]):
    """Those of stages and evidence, and that by which draws with so many random features are weighed."""
    if programs_at_once() < 2:  # threads of XLA could wait for one another
        return
    d, p, nothing = len(model.noise), model.size, np.asarray(0)
    none, line = np.zeros(CHUNK, bool), np.zeros((CHUNK, d))
    chunk = Chunk(line, none, none, np.zeros(CHUNK), nothing)
    with ThreadPoolExecutor(max_workers=1) as other:
        weighing = other.submit(_weigh, model, features, chunk)
        before = (np.zeros(d), np.zeros((d, d)))
        _, tangent = programs.tangent(model.kernels, model.integrator, np.zeros(p), None, before, chunk)
        by = programs.ByJ(np.zeros((CHUNK, d, p)), tuple(np.zeros(w.shape) for w in model.kernels.whitenings))
        programs.pulled_back(model.kernels, np.zeros((d, p)), by, tangent, nothing)
        programs.by_bumps(model.kernels, np.zeros((d, p)), tangent, nothing)
        weighing.result()


def _weigh(model: LinearModel, features: tuple[int, ...], chunk: Chunk):
    """One batch of draws of nothing."""
    count, d = ROLLED_AT_ONCE, len(model.noise)
    shapes = [(*g.scale[:, 0].shape, size) for g, size in zip(model.kernels.original.groups, features, strict=True)]
    frequencies = tuple(np.zeros((size, k)) for _, k, size in shapes)
    weights = tuple(np.zeros((count, latents, 2, size)) for latents, _, size in shapes)
    u, x, starts = np.zeros((count, model.size)), np.zeros((count, d)), np.zeros((count, CHUNK, d))
    programs.roll(model.kernels, model.integrator, u, Features(frequencies, weights), x, chunk._replace(starts=starts))
