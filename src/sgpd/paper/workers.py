"""Experiments in turn, or several at a time: most of their work, tracing above all, keeps a single core busy."""

import dataclasses
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.queues import SimpleQueue
from typing import NamedTuple, Protocol, runtime_checkable

import jax

from sgpd.errors import BadInput
from sgpd.paper.experiments import Experiment, run
from sgpd.paper.results import Result, Trial
from sgpd.paper.training import Progress
from sgpd.xla import tune_unless_told_not_to

HEARD_EVERY = 0.2  # seconds between two looks at what the processes tell
SHARED = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")  # how compiled programs are kept

Work = Sequence[tuple[Experiment, list[Trial]]]


@runtime_checkable
class Listener(Protocol):
    """Hears how a run goes on. Several experiments may run at a time."""

    def begin(self, experiment: Experiment, index: int, count: int, trials: list[Trial]) -> Progress:
        """An experiment begins; what is returned hears (done, in all) of its training."""
        ...

    def end(self, experiment: Experiment, seconds: float):
        """It has ended, and its results are kept."""
        ...


class Done(NamedTuple):
    """An experiment that has been run."""

    experiment: Experiment
    results: list[Result]
    seconds: float


def in_turn(work: Work, listener: Listener) -> Generator[Done, None, None]:
    """One after the other, in this process."""
    for index, (experiment, trials) in enumerate(work):
        yield _timed(experiment, trials, listener.begin(experiment, index, len(work), trials))


def side_by_side(work: Work, listener: Listener, jobs: int) -> Generator[Done, None, None]:
    """So many at a time, each in a process of its own. They end with this one, however it ends."""
    context = multiprocessing.get_context("spawn")  # a copy of a process in which JAX has run hangs
    news, heard = context.SimpleQueue(), {}
    config = {name: getattr(jax.config, name) for name in SHARED}
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, _prepare, (news, config))
    try:
        # Copies, since what an experiment remembers of its system does not fit through a pipe.
        left = {pool.submit(_work, i, dataclasses.replace(e), trials) for i, (e, trials) in enumerate(work)}
        while left:
            ended, left = wait(left, HEARD_EVERY, FIRST_COMPLETED)
            while not news.empty():
                _tell(listener, work, heard, news.get())
            for future in sorted(ended, key=lambda future: future.exception() is not None):  # what is done is kept
                index, results, seconds = _result(future)
                yield Done(work[index][0], results, seconds)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def _result(future: Future):
    try:
        return future.result()
    except BrokenProcessPool as problem:
        what = "a process of this run was ended from outside, probably for lack of memory"
        raise BadInput(what, "run fewer at a time, `--jobs 1`; finished experiments are kept") from problem


class _News(NamedTuple):
    """What a process tells: an experiment has begun (no total), or how far it is."""

    index: int
    done: int = 0
    total: int | None = None


def _tell(listener: Listener, work: Work, heard: dict[int, Progress], news: _News):
    if news.total is None:
        experiment, trials = work[news.index]
        heard[news.index] = listener.begin(experiment, news.index, len(work), trials)
    else:
        heard[news.index](news.done, news.total)


_told: Callable[[_News], None] = lambda news: None


def _prepare(news: SimpleQueue, config: dict):
    """A new process: it is tuned and compiles as its parent, leaves Ctrl-C to it, and does not outlive it."""
    global _told
    _told = news.put
    tune_unless_told_not_to()
    for name, value in config.items():
        jax.config.update(name, value)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()


def _follow():
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(index: int, experiment: Experiment, trials: list[Trial]) -> tuple[int, list[Result], float]:
    _told(_News(index))
    done = _timed(experiment, trials, lambda done, total: _told(_News(index, done, total)))
    return index, done.results, done.seconds


def _timed(experiment: Experiment, trials: list[Trial], progress: Progress) -> Done:
    began = time.monotonic()
    results = run(experiment, trials, progress)
    return Done(experiment, results, time.monotonic() - began)
