"""How the work of a fit or a forecast shares the processor's cores."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from sgpd.xla.tuning import programs_at_once

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

ROWS_AT_ONCE = 128  # of `in_rows`

_limits: dict[int, Any] = {}  # by thread, what restores the numbers of threads from before any limit
_entering = threading.Lock()


@contextmanager
def one_lapack_thread() -> Iterator[None]:
    """LAPACK stays on one thread.

    Its matrices are small here, and threads that wait for the next one, spinning, take a core from everything else: a
    fit of two bodies takes half as long without them. May be nested, and used in several threads at once.
    """
    me = threading.get_ident()
    if me in _limits:
        yield
        return
    with _entering:
        limit = _libraries().limit(limits=1, user_api="blas")
        _limits[me] = next(iter(_limits.values()), limit)
    try:
        yield
    finally:
        with _entering:
            _limits.pop(me).restore_original_limits()


@cache
def _libraries() -> "ThreadpoolController":
    import scipy.linalg  # noqa: F401  (it brings the library that JAX calls; only what is loaded can be limited)
    from threadpoolctl import ThreadpoolController  # sets an environment variable when it is imported

    return ThreadpoolController()


def in_batches(program: Callable[[Any], Any], stack: Any, sizes: tuple[int, ...]) -> Any:
    """`program(batch)` for batches along the leading axis, joined, as NumPy arrays.

    Batches are of the smallest of these sizes that holds all, or of the largest; the last one is filled up with the
    first entries, so that few programs serve any number. The first batch is alone, because it may have to compile; a
    compiled program runs on one core, so the others run side by side, as many as XLA's pool has threads for.
    """
    stack = jax.tree.map(np.asarray, stack)
    count = len(jax.tree.leaves(stack)[0])
    size = next((size for size in sizes if size >= count), sizes[-1])
    index = np.arange(-(-count // size) * size).reshape(-1, size) % count
    one = lambda rows: jax.tree.map(np.asarray, program(jax.tree.map(lambda leaf: leaf[rows], stack)))
    with one_lapack_thread(), ThreadPoolExecutor(max_workers=programs_at_once()) as pool:
        parts = [one(index[0]), *pool.map(one, index[1:])]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)


def in_rows(program: Callable[..., Any], *rows: np.ndarray) -> Any:
    """`program(*rows)`, row by row along the leading axis, for so many at once that one program serves any number."""
    count = len(rows[0])
    padded = np.minimum(np.arange(-(-count // ROWS_AT_ONCE) * ROWS_AT_ONCE), count - 1)
    starts = range(0, len(padded), ROWS_AT_ONCE)
    parts = [program(*(each[padded[first : first + ROWS_AT_ONCE]] for each in rows)) for first in starts]
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *parts)
