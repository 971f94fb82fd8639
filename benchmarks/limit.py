"""How close rollouts of drawn fields come to what this processor can do.

A drawn field is sines and cosines of its random features and exponentials of its kernel. Counted here: how many of them
a rollout needs at least. Measured: what one costs in a bare compiled loop over an array that stays in the cache, and
what the rollout takes. Their ratio is the share of the limit, 1 where there is nothing but sines and exponentials.

    python benchmarks/limit.py [--paths 64 1024] [--steps 100] [--repeats 9] [--out build/performance]

Two clocks: wall (the median, in turns with the others) and busy, processor time of all threads (the least of the
repeats), which hardly suffers from what else runs on the machine but counts threads that wait by spinning. The limit is
that of one core. Set XLA_FLAGS to compare compilers' settings; they are written beside the numbers.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from timing import side_by_side

import sgpd
from sgpd.gp import SquaredExponential, sincos
from sgpd.inference.initial import initial_posterior
from sgpd.inference.posterior.field import Features, FieldPosterior, feature_counts, sample_features
from sgpd.integrators import Integrator, rollout
from sgpd.xla.batches import one_lapack_thread

FEATURES = 256
AT_ONCE = (8, 64)  # paths side by side; forecasts of 64 paths roll out all of them, more by the 72
LOOP = 4_000_000  # evaluations a timed call of a bare loop: clocks of processor time are coarse
CASES = (("separable", "stormer-verlet"), ("hamiltonian", "implicit-midpoint"))


class Clocked(NamedTuple):
    """Seconds of one call: wall (median) and processor (least)."""

    wall: float
    busy: float


class Count(NamedTuple):
    """Evaluations in one step of one path: pairs of sine and cosine, and exponentials."""

    sincos: float
    exp: float


@dataclass(frozen=True)
class Row:
    """One rollout against its limit."""

    case: str
    what: str
    paths: int
    batch: str
    sincos: float  # pairs a step and path
    exp: float
    wall_ms: float
    busy_ms: float
    limit_ms: float

    @property
    def share(self) -> tuple[float, float]:
        """Of the limit, by wall and by processor time."""
        return self.limit_ms / self.wall_ms, self.limit_ms / self.busy_ms


def clocked(jobs: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, Clocked]:
    """Wall and processor time of several jobs, each after a first call."""
    busy = {name: [] for name in jobs}
    with one_lapack_thread():  # as in fits and forecasts
        walls = side_by_side(jobs, repeats)
        for _ in range(repeats):
            for name, job in jobs.items():
                begin = time.process_time()
                jax.block_until_ready(job())
                busy[name].append(time.process_time() - begin)
    return {name: Clocked(walls[name].median, min(taken)) for name, taken in busy.items()}


def bare_loops(repeats: int) -> dict[str, float]:
    """Nanoseconds of processor time an evaluation, in a loop that does nothing else, best of a few sizes."""
    best: dict[str, float] = {}
    for size in (512, 2048, 8192):
        x = np.random.default_rng(0).normal(size=size) * 5
        rounds = LOOP // size
        inside = {
            "sincos": lambda y: jnp.add(*sincos(y)) * 5,
            "jnp.exp": lambda y: jnp.exp(-jnp.abs(y)) * 5,
            "jnp.sin + jnp.cos": lambda y: (jnp.sin(y) + jnp.cos(y)) * 5,
        }
        jobs = {name: partial(_looped(work, rounds), jnp.asarray(x)) for name, work in inside.items()}
        jobs["numpy sin + cos"] = lambda x=x, n=rounds: [np.add(np.sin(x), np.cos(x)) for _ in range(n)]
        jobs["numpy exp"] = lambda x=x, n=rounds: [np.exp(x) for _ in range(n)]
        for name, taken in clocked(jobs, repeats).items():
            best[name] = min(best.get(name, np.inf), taken.busy / (rounds * size) * 1e9)
    return best


def _looped(work: Callable[[Array], Array], rounds: int) -> Callable[[Array], Array]:
    """The work on its own result again and again, so that nothing can be left out."""
    return jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda _, y: work(y), x))


class Problem(NamedTuple):
    """Drawn fields of a pendulum and their starts."""

    posterior: FieldPosterior
    integrator: Integrator
    frequencies: tuple[Array, ...]
    u: Float[Array, "paths p"]
    weights: tuple[Array, ...]
    x0: Float[Array, "paths 2"]
    steps: Float[Array, " n"]


def problem(structure: str, method: str, paths: int, steps: int) -> Problem:
    """The prior that a fit would begin with, and draws of it from starts around the recorded first state."""
    times, states = sgpd.systems.get("pendulum").record(seed=0)
    data = sgpd.Trajectories.from_arrays(times, states, names=["p", "q"])
    posterior = initial_posterior(sgpd.structures.get(structure), data, SquaredExponential, None, False)
    rng = np.random.default_rng(1)
    features = sample_features(rng, posterior, feature_counts(posterior, FEATURES), "quasi", paths)
    mean = np.asarray(posterior.flat_mean)
    u = mean + 0.3 * rng.normal(size=(paths, mean.size))
    x0 = states[0] + 0.3 * rng.normal(size=(paths, 2))
    arrays = jnp.asarray(u), features.weights, jnp.asarray(x0), jnp.full(steps, data.step)
    return Problem(posterior, sgpd.integrators.get(method), features.frequencies, *arrays)


def _path(given: Problem, u: Array, weights: tuple[Array, ...], x0: Array) -> Array:
    """States of one drawn field."""
    field = given.posterior.field(given.posterior.unravel(u), Features(given.frequencies, weights))
    return rollout(given.integrator, field, x0, given.steps).states


@eqx.filter_jit
def forward(given: Problem, batch: int | None) -> Array:
    """All paths, so many side by side (None: all)."""
    each = (given.u, given.weights, given.x0)
    if batch is None:
        return jax.vmap(partial(_path, given))(*each)
    return jax.lax.map(lambda one: _path(given, *one), each, batch_size=batch)


@eqx.filter_jit
def gradient(given: Problem, batch: int | None) -> Array:
    """The gradient of every path's sum of squares by its inducing values."""
    slope = jax.grad(lambda u, w, x0: jnp.sum(_path(given, u, w, x0) ** 2))
    each = (given.u, given.weights, given.x0)
    if batch is None:
        return jax.vmap(slope)(*each)
    return jax.lax.map(lambda one: slope(*one), each, batch_size=batch)


@eqx.filter_jit
def _iterations(given: Problem) -> Array:
    """Newton iterations of every step and path."""

    def one(u, weights, x0):
        field = given.posterior.field(given.posterior.unravel(u), Features(given.frequencies, weights))

        def step(x, h):
            x, info = given.integrator.advance(field, x, h)
            return x, info.iterations

        return jax.lax.scan(step, x0, given.steps)[1]

    return jax.vmap(one)(given.u, given.weights, given.x0)


def count(given: Problem, what: str) -> Count:
    """What a step needs at least.

    A split step evaluates one latent for each kick and drift. An implicit step: twice to predict, once for each Newton
    iterate (the Jacobian has the same sines) and once at the solution. Backwards no sine is needed again, because
    slopes are kept; bumps at the stages are, because the gradient is by their heights.
    """
    points = [g.scaled_locations.shape[:2] for g in given.posterior.groups]
    tableau = given.integrator.tableau
    if given.integrator.implicit:
        stages, times = [1], [2 + 1 + float(_iterations(given).mean()) + 1]
    else:
        times = stages = [np.count_nonzero(c) for c in (tableau.kicks, tableau.drifts)]
    waves = sum(c * t for (c, _), t in zip(points, times, strict=True))
    again = what == "gradient"
    bumps = sum(c * m * (t + again * s) for (c, m), t, s in zip(points, times, stages, strict=True))
    return Count(float(FEATURES * waves), float(bumps))


def measured(case: tuple[str, str], paths: int, steps: int, repeats: int, costs: dict[str, float]) -> list[Row]:
    """One structure and method, forward and gradient, with few and with all paths side by side."""
    given = problem(*case, paths, steps)
    batches = {f"{n} at once": n for n in AT_ONCE if n < paths} | {"all at once": None}
    works = {"forward": forward, "gradient": gradient}
    jobs = {(what, name): partial(works[what], given, b) for what in works for name, b in batches.items()}
    rows = []
    for (what, name), taken in clocked(jobs, repeats).items():
        needs = count(given, what)
        limit = paths * steps * (needs.sincos * costs["sincos"] + needs.exp * costs["jnp.exp"]) * 1e-6
        label = " + ".join(case)
        rows.append(Row(label, what, paths, name, *needs, taken.wall * 1e3, taken.busy * 1e3, limit))
    return rows


def table(costs: dict[str, float], rows: list[Row], around: dict) -> str:
    """Markdown."""
    lines = ["# Rollouts against the limit", "", _surroundings(around), "", "| evaluation | ns |", "|---|---|"]
    lines += [f"| {name} | {ns:.2f} |" for name, ns in costs.items()]
    lines += ["", "| rollout | | paths | batch | sincos a step | exp a step | wall ms | busy ms | limit ms | share |"]
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        wall, busy = r.share
        lines.append(
            f"| {r.case} | {r.what} | {r.paths} | {r.batch} | {r.sincos:.0f} | {r.exp:.0f} | {r.wall_ms:.1f} "
            f"| {r.busy_ms:.1f} | {r.limit_ms:.1f} | {wall:.2f} wall, {busy:.2f} busy |"
        )
    return "\n".join(lines) + "\n"


def surroundings() -> dict:
    """What the numbers depend on: versions, cores, load, compiler flags."""
    return {
        "jax": jax.__version__,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def _surroundings(around: dict) -> str:
    load = ", ".join(f"{value:.1f}" for value in around["load"])
    flags = around["xla_flags"] or "none"
    return f"jax {around['jax']}, {around['cores']} cores, load {load}, XLA flags: {flags}."


def main():
    """Measure and write."""
    sgpd.xla.tune()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("build/performance"))
    chosen = parser.parse_args()
    around = surroundings()
    costs = bare_loops(chosen.repeats)
    each = ((case, paths) for case in CASES for paths in chosen.paths)
    rows = [
        row for case, n in each for row in measured(case, n, max(chosen.steps * 64 // n, 10), chosen.repeats, costs)
    ]
    chosen.out.mkdir(parents=True, exist_ok=True)
    text = table(costs, rows, around)
    (chosen.out / "limit.md").write_text(text)
    found = {"around": around, "nanoseconds": costs, "rows": [asdict(row) | {"share": row.share} for row in rows]}
    (chosen.out / "limit.json").write_text(json.dumps(found, indent=1))
    print(text)


if __name__ == "__main__":
    main()
