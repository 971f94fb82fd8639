"""The programs of a fit, compiled in the background once their sizes are known: a first fit waits for the compiler.

Each program is called once with a chunk of no entries: a millisecond where it is compiled already.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from sgpd.arrays import on_device
from sgpd.inference.chunks import Chunk
from sgpd.inference.constants import CHUNK, DRAWS_AT_ONCE
from sgpd.inference.laplace import programs
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.inference.posterior.kernels import Kernels
from sgpd.inference.rolling import roll
from sgpd.integrators import Integrator
from sgpd.xla.tuning import programs_at_once


class Compiling:
    """What is being compiled for fits of one kind."""

    def __init__(self):
        self._stages: Future | None = None
        self._draws: Future | None = None

    def begin_stages(self, posterior: FieldPosterior, integrator: Integrator):
        """With kernels and inducing points of these sizes; whatever their numbers."""
        self._stages = _in_background(_stages, Kernels.of(posterior), integrator)

    def begin_draws(self, posterior: FieldPosterior, integrator: Integrator, features: tuple[int, ...]):
        """With so many random features for each group."""
        self._draws = _in_background(_draws, Kernels.of(posterior), integrator, features)

    # Asking for a program that is just being compiled would compile it twice.

    def wait_for_stages(self):
        """Until a fit can begin."""
        if self._stages is not None:
            self._stages.result()

    def wait_for_draws(self):
        """Until its posterior can be drawn from."""
        if self._draws is not None:
            self._draws.result()


def _in_background(work: Callable, *given) -> Future | None:
    if programs_at_once() < 2:  # threads of XLA could wait for one another
        return None
    pool = ThreadPoolExecutor(max_workers=1)
    begun = pool.submit(work, *given)
    pool.shutdown(wait=False)
    return begun


def _stages(kernels: Kernels, integrator: Integrator):
    """The rollout of a chunk, its derivatives, and their way back."""
    d, p, nothing = kernels.original.dimension, kernels.size, np.asarray(0)
    before = (np.zeros(d), np.zeros((d, d)))
    _, tangent = programs.tangent(kernels, integrator, np.zeros(p), None, before, _of_no_entries((), d))
    programs.by_bumps(kernels, np.zeros((d, p)), tangent, nothing)
    by = programs.ByJ(np.zeros((CHUNK, d, p)), tuple(np.zeros(w.shape) for w in kernels.whitenings))
    programs.pulled_back(kernels, np.zeros((d, p)), by, tangent, nothing)


def _draws(kernels: Kernels, integrator: Integrator, features: tuple[int, ...]):
    """A batch of draws with so many random features."""
    draws, groups, d = DRAWS_AT_ONCE[-1], kernels.original.groups, kernels.original.dimension
    nothing = lambda *shape: on_device(np.zeros(shape))
    frequencies = tuple(nothing(size, g.scale.shape[-1]) for g, size in zip(groups, features, strict=True))
    weights = tuple(nothing(draws, len(g.scale), 2, size) for g, size in zip(groups, features, strict=True))
    u, x = np.zeros((draws, kernels.size)), np.zeros((draws, d))
    roll(kernels, integrator, u, Features(frequencies, weights), x, _of_no_entries((draws,), d))


def _of_no_entries(draws: tuple[int, ...], d: int) -> Chunk:
    none = np.zeros(CHUNK, bool)
    return Chunk(np.zeros((*draws, CHUNK, d)), none, none, np.zeros(CHUNK), np.asarray(0))
