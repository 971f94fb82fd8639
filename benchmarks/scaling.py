"""How cost grows: with features, inducing points, dimension, length, paths, stages, and in the fit with its data.

    python benchmarks/scaling.py [NAME ...] [--repeats 5] [--sizes N] [--out build/performance]

Every size is called once before it is timed; N leaves out all but the N smallest. The slope in logarithms is fitted to
those of the upper half of the sizes that take more than three times as long as the smallest: below, starting programs
costs more than running them. Timed is processor time, the least of the repeats, which other work changes little.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from limit import clocked, surroundings

import sgpd
from sgpd.data import windows
from sgpd.fields import Field
from sgpd.gp import SquaredExponential, WhitenedGaussian
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.posterior.field import Features, FieldPosterior, LatentGroup, feature_counts, sample_features
from sgpd.integrators import Integrator, rollout

STEP = 0.1
RESTART = 20  # rows after which a rollout of the fit begins anew
SLACK = 0.25  # by which a slope may exceed what the mathematics asks
FLOOR = 3.0
HEADER = "| quantity | range | ms at the ends | slope | asked | verdict | why |\n|---|---|---|---|---|---|---|"

Job = Callable[[], Any]


@dataclass(frozen=True)
class Quantity:
    """One thing that grows: its sizes, a job for each of them, and the slopes that the mathematics allows."""

    name: str
    sizes: Sequence[int]
    job: Callable[[int], Job]
    slope: tuple[float, float]  # at least (for orientation), at most
    why: str


@dataclass(frozen=True)
class Grown:
    """What was measured of a quantity."""

    name: str
    sizes: list[int]
    seconds: list[float]
    slope: float
    fitted: list[int]
    asked: tuple[float, float]
    why: str

    @property
    def verdict(self) -> str:
        """Whether the cost grows no faster than it must."""
        if self.slope > self.asked[1] + SLACK:
            return "steeper than asked"
        return "as asked" if self.seconds[-2] > FLOOR * self.seconds[0] else "as asked, but near the floor"


def prior(structure: str, dimension: int, inducing: int) -> FieldPosterior:
    """A posterior that is the prior: unit kernels, inducing points spread at random. No data, nothing to compile."""
    made = sgpd.structures.get(structure)
    rng, groups, values = np.random.default_rng(0), [], []
    for spec in made.groups(dimension):
        count, k = spec.depends_on.shape[:2]
        locations = jnp.asarray(rng.uniform(-3, 3, size=(count, inducing, k)))
        kernel = SquaredExponential.from_logs(jnp.zeros((count, k)), jnp.zeros(count))
        groups.append(LatentGroup(kernel, locations, jnp.ones((count, 1, k)), jitter=1e-4))
        values.append(WhitenedGaussian.isotropic(jnp.zeros((count, inducing)), 1.0, diagonal=True))
    return FieldPosterior(made, dimension, tuple(groups), tuple(values))


@eqx.filter_jit
def drawn(posterior: FieldPosterior, u, frequencies, weights) -> Field:
    """A stack of fields."""
    one = lambda u, w: posterior.field(posterior.unravel(u), Features(frequencies, w))
    return eqx.filter_vmap(one)(u, weights)


@eqx.filter_jit
def rolled(fields: Field, integrator: Integrator, x0, steps):
    """All of them stepped, side by side."""
    return eqx.filter_vmap(lambda field, x: rollout(integrator, field, x, steps).states)(fields, x0)


def _normals(posterior: FieldPosterior, features: int, paths: int):
    rng = np.random.default_rng(1)
    found = sample_features(rng, posterior, feature_counts(posterior, features), "independent", paths)
    size = sum(g.scaled_locations[..., 0].size for g in posterior.groups)
    return jnp.asarray(0.1 * rng.normal(size=(paths, size))), found.frequencies, found.weights


def drawing(inducing: int) -> Job:
    """Drawing fields: a Cholesky factor for each latent."""
    posterior = prior("separable", 2, inducing)
    return partial(drawn, posterior, *_normals(posterior, 16, 1))


def rolling(
    structure: str = "separable",
    method: str = "stormer-verlet",
    dimension: int = 2,
    features: int = 256,
    inducing: int = 12,
    steps: int = 50,
    paths: int = 8,
) -> Job:
    """Stepping drawn fields that are there already."""
    posterior = prior(structure, dimension, inducing)
    fields = jax.block_until_ready(drawn(posterior, *_normals(posterior, features, paths)))
    x0 = jnp.asarray(np.random.default_rng(2).normal(size=(paths, dimension)))
    return partial(rolled, fields, sgpd.integrators.get(method), x0, jnp.full(steps, STEP))


def iterating(rows: int = 100, runs: int = 1, inducing: int = 12) -> Job:
    """One iteration of the default fit: the linear model around an iterate, and the next iterate."""
    data = _recordings(rows, runs)
    posterior, pieces = prior("separable", 2, inducing), windows(data, rows)
    recording = Recording.of(data, pieces, np.zeros(len(pieces), bool))
    rollouts = recording.rollouts(RESTART)
    at = ShootingState(np.asarray(posterior.flat_mean), recording.states[rollouts.first], rollouts)
    model = LinearModel.of(posterior, sgpd.integrators.get("stormer-verlet"), recording, np.full(2, 0.1))

    def once():
        return model.improved(at, model.linearise(at).equations, 1e-2)

    return once


def _recordings(rows: int, runs: int) -> sgpd.Trajectories:
    """Noisy oscillations."""
    times, rng = STEP * np.arange(rows), np.random.default_rng(3)
    phases = rng.uniform(0, 2 * np.pi, size=runs)
    clean = [np.stack([np.cos(times + p), np.sin(times + p)], axis=1) for p in phases]
    noisy = [states + 0.1 * rng.normal(size=states.shape) for states in clean]
    return sgpd.Trajectories.from_arrays([times] * runs, noisy, names=["p", "q"])


DIMENSIONS = (2, 4, 8, 12, 16, 20)
GAUSS = {1: "implicit-midpoint", 2: "gauss-4", 3: "gauss-6"}
QUANTITIES = (
    Quantity("features", (64, 128, 256, 512, 1024, 2048, 4096), lambda n: rolling(features=n), (1, 1), "one sine each"),
    Quantity(
        "inducing points",
        (64, 128, 256, 512, 1024, 2048, 4096),
        lambda n: rolling(inducing=n, features=16),
        (1, 1),
        "one exponential each, in a rollout",
    ),
    Quantity("inducing points, drawing", (64, 128, 256, 512, 1024), drawing, (2, 3), "n² kernel values, n³ Cholesky"),
    Quantity(
        "dimension, separable",
        DIMENSIONS,
        lambda d: rolling(dimension=d, inducing=32),
        (0, 1),
        "two latents; sines do not grow, their arguments and gradients do, linearly",
    ),
    Quantity(
        "dimension, free",
        DIMENSIONS,
        lambda d: rolling("free", "rk4", dimension=d, inducing=32),
        (1, 2),
        "d latents, each with arguments of d terms",
    ),
    Quantity(
        "dimension, hamiltonian",
        DIMENSIONS,
        lambda d: rolling("hamiltonian", "implicit-midpoint", dimension=d, inducing=32),
        (1, 3),
        "one latent; its Jacobian d² sums, one d³ solve a Newton iteration",
    ),
    Quantity("steps", (50, 100, 200, 400, 800), lambda n: rolling(steps=n), (1, 1), "one after the other"),
    Quantity("paths", (8, 16, 32, 64, 128, 256), lambda n: rolling(paths=n), (1, 1), "independent"),
    Quantity(
        "paths, implicit",
        (4, 8, 16, 32, 64),
        lambda n: rolling("hamiltonian", "implicit-midpoint", paths=n, steps=20),
        (1, 1),
        "independent, but as many Newton iterations as the slowest needs",
    ),
    Quantity(
        "stages of Gauss",
        (1, 2, 3),
        lambda s: rolling("hamiltonian", GAUSS[s], paths=8, steps=20),
        (1, 3),
        "s evaluations and one (sd)³ solve a Newton iteration",
    ),
    Quantity("fit: rows", (100, 200, 400, 800, 1600, 3200), lambda n: iterating(rows=n), (1, 1), "one after the other"),
    Quantity("fit: runs", (1, 4, 8, 16, 32, 64), lambda n: iterating(runs=n), (1, 1), "independent"),
    Quantity(
        "fit: inducing points",
        (12, 24, 48, 96, 192),
        lambda n: iterating(inducing=n),
        (1, 3),
        "rows × n derivatives, rows × n² normal equations, n³ solve",
    ),
)


def grow(quantity: Quantity, repeats: int, count: int | None) -> Grown:
    """Time so many of the sizes, or all, in turns, and fit the slope."""
    sizes = list(quantity.sizes[:count])
    jobs = {str(size): quantity.job(size) for size in sizes}
    seconds = [taken.busy for taken in clocked(jobs, repeats).values()]
    kept = fitted_sizes(seconds)
    x, y = np.log([sizes[i] for i in kept]), np.log([seconds[i] for i in kept])
    slope = float(np.polyfit(x, y, 1)[0])
    return Grown(quantity.name, sizes, seconds, slope, [sizes[i] for i in kept], quantity.slope, quantity.why)


def fitted_sizes(seconds: Sequence[float]) -> list[int]:
    """Which sizes enter the slope: the upper half, three at least, and of those the ones well above the floor."""
    upper = range(min(len(seconds) // 2, len(seconds) - 3), len(seconds))
    above = [i for i in upper if seconds[i] > FLOOR * seconds[0]]
    return above if len(above) > 1 else list(upper)


def table(found: Sequence[Grown], around: dict) -> str:
    """Markdown."""
    load, flags = ", ".join(f"{value:.1f}" for value in around["load"]), around["xla_flags"] or "none"
    lines = ["# How cost grows", "", f"jax {around['jax']}, {around['cores']} cores, load {load}, XLA flags: {flags}."]
    lines += ["", HEADER]
    for g in found:
        asked = f"{g.asked[0]:g}" if g.asked[0] == g.asked[1] else f"{g.asked[0]:g} to {g.asked[1]:g}"
        ends = f"{g.seconds[0] * 1e3:.1f} to {g.seconds[-1] * 1e3:.1f}"
        sizes = f"{g.sizes[0]} to {g.sizes[-1]}"
        lines.append(f"| {g.name} | {sizes} | {ends} | {g.slope:.2f} | {asked} | {g.verdict} | {g.why} |")
    return "\n".join(lines) + "\n"


def draw(found: Sequence[Grown], out: Path):
    """Small multiples: measured times, and the slope that is asked through the last of them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(4, len(found))
    rows = -(-len(found) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.2 * columns, 2.7 * rows), squeeze=False, layout="constrained")
    for axis, g in zip(axes.flat, found, strict=False):
        x, y = np.array(g.sizes, float), np.array(g.seconds) * 1e3
        axis.loglog(x, y, "o-", color="tab:blue", markersize=4, label="measured")
        axis.loglog(x, y[-1] * (x / x[-1]) ** g.asked[1], "--", color="gray", linewidth=1, label="asked, at most")
        axis.set_ylim(y.min() / 2, y.max() * 2)
        axis.set_title(f"{g.name}: slope {g.slope:.2f}", fontsize=9)
        axis.set_xticks(x, [f"{size:g}" for size in x], fontsize=7, minor=False)
        axis.minorticks_off()
        axis.tick_params(axis="y", labelsize=7)
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(found) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("processor time, ms", fontsize=8)
    axes[0][0].legend(fontsize=7)
    for kind in ("png", "svg"):
        figure.savefig(out / f"scaling.{kind}", dpi=150)


def main():
    """Measure and write."""
    sgpd.xla.tune()
    names = [q.name for q in QUANTITIES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(names)}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", type=int, metavar="N", help="only the N smallest of each quantity; 3 at least")
    parser.add_argument("--out", type=Path, default=Path("build/performance"))
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(names)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    if chosen.sizes is not None and chosen.sizes < 3:
        parser.error("a slope is fitted to three sizes at least")
    around = surroundings()
    found = []
    for quantity in QUANTITIES:
        if not chosen.names or quantity.name in chosen.names:
            found.append(grow(quantity, chosen.repeats, chosen.sizes))
            print(f"{quantity.name}: slope {found[-1].slope:.2f}", flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    text = table(found, around)
    (chosen.out / "scaling.md").write_text(text)
    measured = [asdict(g) | {"verdict": g.verdict} for g in found]
    (chosen.out / "scaling.json").write_text(json.dumps({"around": around, "quantities": measured}, indent=1))
    draw(found, chosen.out)
    print(text)


if __name__ == "__main__":
    main()
