"""(a) The paper's own way, plainly in PyTorch, against sgpd's training at the same settings and its default fit."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import torch
from peers_fits import fit_pendulum, pendulum_error, pendulum_recording
from peers_table import Row, Sizes, choose_threads
from peers_torch import Latent, Normals, PlainTraining, implicit_midpoint, symplectic_euler
from timing import side_by_side

import sgpd
from sgpd.gp import ValueGaussian, feature_normals
from sgpd.inference import FieldPosterior, Problem, initial_state, prepare, train
from sgpd.inference import side_by_side as stacked
from sgpd.inference.variational.bound import Noise, Parameters, bound
from sgpd.integrators import get as get_integrator
from sgpd.paper.published import L2_ERRORS
from sgpd.paper.settings import PATHS, PRINTED, Setting
from sgpd.paper.training import initial_posterior
from sgpd.paper.truths import record, solve

PAPER = 10_000  # independent features
STEPS = {"pendulum": symplectic_euler, "non-separable": implicit_midpoint}
MEASURED = {"pendulum": 91, "non-separable": 13}  # windows a turn, of 91
COLD_LIMIT, WARM_LIMIT = 60, 200


def paper_epochs(name: str, sizes: Sizes) -> list[Row]:
    """An epoch over all windows with gradient and Adam, batch 1, no model selection on either side."""
    setting = PRINTED[name, "sgpd"]
    ours = {features: Training(name, setting, features) for features in (setting.features, PAPER // 2, PAPER)}
    plain = plain_training(name, ours[PAPER])
    _assert_equal_losses(ours[PAPER], plain)
    threads = choose_threads(lambda: plain.train(1, PAPER), os.cpu_count() or 1)
    some, every = MEASURED[name], len(plain.windows)
    jobs: dict[str, Callable] = {"plain": lambda: plain.train(some, PAPER)}
    jobs |= {str(features): training.epoch for features, training in ours.items()}
    times = side_by_side(jobs, sizes.repeats)
    theirs = times["plain"].times(every / some)
    few, many = covariance_errors(name, setting)
    quality = f"rms error of the correlation {few:.1e} against {many:.1e}"
    how = f"plain PyTorch, {setting.integrator}, {PAPER:,} independent features, {threads} thread(s)"
    return [
        Row(f"{name}: an epoch, {setting.features} Sobol features; {how}", times[str(setting.features)], theirs, 100,
            quality),
        Row(f"{name}: an epoch, {PAPER:,} features, as {PAPER // 2:,} pairs of a sine and a cosine; {how}",
            times[str(PAPER // 2)], theirs, 10),
        Row(f"{name}: an epoch, {PAPER:,} pairs, which are {2 * PAPER:,} features; {how}",
            times[str(PAPER)], theirs, 10),
    ]  # fmt: skip


class Training:
    """sgpd's training at the paper's settings, as `sgpd.paper.training.train_models` sets it up, epoch by epoch."""

    def __init__(self, name: str, setting: Setting, features: int):
        self.system, self.setting = sgpd.systems.get(name), setting
        _, truth = solve(self.system, "exact")
        settings = sgpd.Variational(
            shooting=False,
            window=setting.rows,
            stride=1,
            batch=setting.batch,
            paths=PATHS,
            epochs=10**6,
            learning_rate=optax.constant_schedule(setting.rates[0][1]),
            prior_rate=1.0,
            likelihood_factor=setting.likelihood_factor,
            kl_factor=setting.kl_factor,
            features=features,
            noise_std=tuple(np.sqrt(self.system.noise_variance)),
        )
        guess = initial_posterior(setting, len(self.system.names), seed=0)
        data = record(self.system, truth, seed=0)
        one = prepare(data, guess, get_integrator(setting.integrator), settings, "observed")
        self.problem: Problem = one[0]
        self.parameters: Parameters = one[1]
        self._many, parameters = stacked([one[:2]])
        self._state = initial_state(self._many, parameters, [0])

    def epoch(self):
        """One more pass over the windows."""
        self._state = train(self._many, self._state, epochs=1)
        return self._state.parameters


def plain_training(name: str, ours: Training) -> PlainTraining:
    """The same model, start and windows in PyTorch."""
    setting = ours.setting
    latents = [
        Latent(*(part[0] for part in parts), jitter=setting.jitter)
        for parts in _parts(ours.parameters.field)  # in print there is one latent a group
    ]
    noise = np.sqrt(ours.system.noise_variance)
    cut = ours.problem.observations.states
    rate = setting.rates[0][1]
    factors = setting.likelihood_factor, setting.kl_factor
    return PlainTraining(latents, STEPS[name], np.asarray(cut), ours.system.step, noise, *factors, rate)


def _assert_equal_losses(ours: Training, plain: PlainTraining):
    """The same loss and the same gradient for the same window and the same random numbers, on both sides."""
    normals = plain.normals(PAPER)
    plain.optimiser.zero_grad()
    theirs = plain.loss(plain.windows[3], normals)
    theirs.backward()
    found, gradient = _our_loss(ours, normals)
    np.testing.assert_allclose(found, theirs.item(), rtol=1e-8)
    for latent, parts in zip(plain.latents, _parts(gradient.field), strict=True):
        for own, other in zip(latent.parameters(), parts, strict=True):
            assert own.grad is not None
            size = float(np.abs(other).max())
            np.testing.assert_allclose(np.asarray(other)[0], own.grad.numpy(), rtol=1e-5, atol=1e-6 * size)


def _parts(posterior: FieldPosterior) -> list[tuple]:
    """What is trained of each group, in the order of a plain `Latent`; inducing inputs are in units of 1 here."""
    values = [q for q in posterior.values if isinstance(q, ValueGaussian)]
    return [
        (g.kernel.log_lengthscale, g.kernel.log_variance, g.scaled_locations, q.mean, q.log_std)
        for g, q in zip(posterior.groups, values, strict=True)
    ]


def _our_loss(ours: Training, normals: list[Normals]) -> tuple[float, Parameters]:
    """a√2 w cos(z + b) is a (√2 w cos b) cos z - a (√2 w sin b) sin z: independent features in our pairs."""
    weights = [2**0.5 * n.weights * torch.stack([torch.cos(n.phases), -torch.sin(n.phases)]) for n in normals]
    noise = Noise(
        frequencies=tuple(jnp.asarray(n.frequencies.numpy()) for n in normals),
        weights=tuple(jnp.asarray(w.numpy())[None, None, None] for w in weights),
        values=tuple(jnp.asarray(n.values.numpy())[None, None, None] for n in normals),
        starts=jnp.zeros((1, 1, len(ours.system.names))),
    )

    @jax.jit
    def loss(parameters: Parameters):
        estimate = bound(parameters, ours.problem.observations, jnp.array([3]), noise, ours.problem.integrator)
        return -estimate.weighted(ours.setting.likelihood_factor, ours.setting.kl_factor)

    value, gradient = jax.value_and_grad(loss, allow_int=True)(ours.parameters)
    return float(value), gradient


def covariance_errors(name: str, setting: Setting, pairs: int = 2000, draws: int = 8) -> tuple[float, float]:
    """Rms errors of the prior's correlation at random pairs of inputs in the data box: our features, then theirs."""
    rng = np.random.default_rng(0)
    system = sgpd.systems.get(name)
    states = system.simulate(system.x0, system.step * np.arange(round(system.duration / system.step)))
    low, high = states.min(axis=0), states.max(axis=0)
    ours, theirs = [], []
    for spec in setting.structure.groups(len(system.names)):
        box = rng.uniform(low, high, (2 * pairs, len(low)))
        inputs = np.asarray(spec.inputs(jnp.asarray(box)))[0] / np.sqrt(setting.latents[spec.name].squared_lengthscales)
        x, y = inputs[:pairs], inputs[pairs:]
        exact = np.exp(-((x - y) ** 2).sum(axis=1) / 2)
        for draw in range(draws):
            quasi = np.asarray(feature_normals(jr.key(draw), setting.features, x.shape[1], "quasi"))
            ours.append(np.cos((x - y) @ quasi.T).mean(axis=1) - exact)
            frequencies, phases = rng.normal(size=(PAPER, x.shape[1])), rng.uniform(0, 2 * np.pi, PAPER)
            one, other = np.cos(x @ frequencies.T + phases), np.cos(y @ frequencies.T + phases)
            theirs.append(2 * (one * other).mean(axis=1) - exact)
    rms = lambda errors: float(np.sqrt(np.mean(np.square(errors))))
    return rms(ours), rms(theirs)


def default_fit(sizes: Sizes) -> list[Row]:
    """The default fit of the paper's pendulum recording, cold and warm, against the plain training's 149 epochs."""
    setting, some = PRINTED["pendulum", "sgpd"], MEASURED["pendulum"]
    plain = plain_training("pendulum", Training("pendulum", setting, PAPER))
    choose_threads(lambda: plain.train(1, PAPER), os.cpu_count() or 1)
    published = L2_ERRORS["pendulum", "sgpd"].mean
    errors = [pendulum_error(fit_pendulum(seed), seed) for seed in range(sizes.recordings)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pendulum.csv"
        run = pendulum_recording(0).runs[0]
        np.savetxt(file, np.column_stack([run.times, run.states]), delimiter=",", header="t,p,q", comments="")
        jobs = {
            "warm": lambda: fit_pendulum(0),
            "plain": lambda: plain.train(some, PAPER),
            "cold": lambda: _fit_in_a_fresh_process(file),
        }
        times = side_by_side(jobs, repeats=max(1, sizes.repeats // 2))
    whole = times["plain"].times(setting.epochs * len(plain.windows) / some)
    each = ", ".join(f"{error:.3f}" for error in errors)
    accuracy = f"L2 error of five draws, {sizes.recordings} recording(s): {each}; printed {published}"
    plainly = f"plain PyTorch's {setting.epochs} epochs, from {some} windows a turn"
    cold = "pendulum: default fit in a fresh process, imports and compilation included"
    return [
        Row(f"{cold}; {plainly}", times["cold"], whole, COLD_LIMIT, accuracy),
        Row(f"pendulum: default fit, second call; {plainly}", times["warm"], whole, WARM_LIMIT, accuracy),
    ]


def _fit_in_a_fresh_process(file: Path):
    """From the start of Python to the fitted model, with no compiled program to be found anywhere."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
    code = (
        "import sys, peers_fits, sgpd; "
        "peers_fits.fit_recording(sgpd.Trajectories.read(sys.argv[1], time='t', state=['p', 'q']), 0)"
    )
    here = Path(__file__).resolve().parent
    with TemporaryDirectory() as cache:
        environment = kept | {"XDG_CACHE_HOME": cache}
        subprocess.run([sys.executable, "-c", code, str(file)], check=True, cwd=here, env=environment)
