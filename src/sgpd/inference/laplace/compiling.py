"""The programs of a fit, compiled side by side: the compiler works on one core, and a first fit waits for it.

Each program is called once where the fit begins, with a chunk of no entries: a millisecond where it is compiled
already.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sgpd.inference.chunks import Chunk
from sgpd.inference.constants import CHUNK, DRAWS_AT_ONCE
from sgpd.inference.laplace import programs
from sgpd.inference.laplace.linear_model import LinearModel
from sgpd.inference.posterior.field import Features
from sgpd.inference.posterior.kernels import Kernels
from sgpd.inference.rolling import roll
from sgpd.integrators import Integrator
from sgpd.xla.tuning import programs_at_once


def compile_programs(model: LinearModel, features: tuple[int, ...]):
    """Those of stages and evidence; while the fit goes on, that by which draws with such features are rolled, too."""
    if programs_at_once() < 2:  # threads of XLA could wait for one another
        return
    pool = ThreadPoolExecutor(max_workers=1)
    pool.submit(_roll, model.kernels, model.integrator, features, len(model.noise))
    pool.shutdown(wait=False)
    d, p, nothing = len(model.noise), model.size, np.asarray(0)
    before, chunk = (np.zeros(d), np.zeros((d, d))), _of_no_entries((), d)
    _, tangent = programs.tangent(model.kernels, model.integrator, np.zeros(p), None, before, chunk)
    by = programs.ByJ(np.zeros((CHUNK, d, p)), tuple(np.zeros(w.shape) for w in model.kernels.whitenings))
    programs.pulled_back(model.kernels, np.zeros((d, p)), by, tangent, nothing)


def _roll(kernels: Kernels, integrator: Integrator, features: tuple[int, ...], d: int):
    """A batch of draws of nothing."""
    draws, groups = DRAWS_AT_ONCE[-1], kernels.original.groups
    frequencies = tuple(np.zeros((size, g.scale.shape[-1])) for g, size in zip(groups, features, strict=True))
    weights = tuple(np.zeros((draws, len(g.scale), 2, size)) for g, size in zip(groups, features, strict=True))
    u, x = np.zeros((draws, sum(count * m for count, m in (g.unknowns for g in groups)))), np.zeros((draws, d))
    roll(kernels, integrator, u, Features(frequencies, weights), x, _of_no_entries((draws,), d))


def _of_no_entries(draws: tuple[int, ...], d: int) -> Chunk:
    none = np.zeros(CHUNK, bool)
    return Chunk(np.zeros((*draws, CHUNK, d)), none, none, np.zeros(CHUNK), np.asarray(0))
