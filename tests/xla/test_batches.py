"""Batches of a stack: the same as all at once, for any number of entries."""

import threading

import jax
import numpy as np
import pytest

from sgpd.xla.batches import _libraries, in_batches, one_lapack_thread


@pytest.mark.parametrize("count", [1, 5, 8, 9, 40])
@pytest.mark.parametrize("sizes", [(8,), (3, 8)])
def test_batches_give_what_all_at_once_gives(count, sizes):
    stack = {"x": np.arange(2.0 * count).reshape(count, 2), "n": np.arange(count)}
    run = jax.jit(lambda batch: (batch["x"] ** 2, batch["n"] + 1))
    squares, after = in_batches(run, stack, sizes)
    np.testing.assert_array_equal(squares, stack["x"] ** 2)
    np.testing.assert_array_equal(after, stack["n"] + 1)


@pytest.mark.parametrize(("count", "expected"), [(1, [3]), (3, [3]), (4, [8]), (17, [8, 8, 8])])
def test_all_batches_are_of_one_of_the_sizes(count, expected):
    sizes = []
    in_batches(lambda x: sizes.append(len(x)) or x, np.zeros((count, 3)), (3, 8))
    assert sizes == expected


def test_the_first_batch_is_done_before_the_others_begin():
    """It compiles what the others use."""
    first, order = threading.main_thread(), []
    in_batches(lambda x: order.append(threading.current_thread() is first) or x, np.zeros(30), (8,))
    assert order[0]
    assert not any(order[1:])


def test_what_goes_wrong_in_a_batch_is_told():
    def fails_later(x):
        if x[0] > 0:
            raise FloatingPointError("not here")
        return x

    with pytest.raises(FloatingPointError, match="not here"):
        in_batches(fails_later, np.arange(30.0), (8,))


def lapack_threads():
    return [library["num_threads"] for library in _libraries().info() if library["user_api"] == "blas"]


def test_lapack_is_on_one_thread_inside_and_as_before_outside():
    with _libraries().limit(limits=2, user_api="blas"):
        before = lapack_threads()
        with one_lapack_thread():
            with one_lapack_thread():
                pass
            assert set(lapack_threads()) == {1}
        assert lapack_threads() == before


def test_overlapping_limits_of_two_threads_leave_nothing_behind():
    before, inside, go_on = lapack_threads(), threading.Event(), threading.Event()

    def other():
        with one_lapack_thread():
            inside.set()
            go_on.wait(10)

    thread = threading.Thread(target=other)
    with one_lapack_thread():
        thread.start()
        assert inside.wait(10)
    go_on.set()
    thread.join()
    assert lapack_threads() == before
