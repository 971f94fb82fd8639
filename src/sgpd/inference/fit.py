"""From a recording to a model, in one call."""

from collections.abc import Callable, Sequence
from typing import overload

import jax
import numpy as np

from sgpd.checks import require_compatible
from sgpd.data import Trajectories, Windows
from sgpd.inference.bound import Parameters
from sgpd.inference.initial import initial_posterior
from sgpd.inference.model import Model, RunEnds
from sgpd.inference.posterior import FieldPosterior
from sgpd.inference.problem import Problem, Variational, prepare, side_by_side
from sgpd.inference.variational import initial_state, train
from sgpd.integrators import Integrator
from sgpd.integrators import get as get_integrator
from sgpd.outcome import unknown_name
from sgpd.structures import Structure
from sgpd.structures import get as get_structure

STARTS = ("latent", "known", "observed")

# A sound method for each structure; anything else is a free field.
_AUTOMATIC = {
    "separable": "stormer-verlet",
    "hamiltonian": "gauss-4",
    "quadratic-invariant": "implicit-midpoint",
    "free": "rk4",
}
_ENGINES = {"variational": Variational}


@overload
def fit(data: Trajectories, structure: str | Structure, *args, seed: int = 0, **kwargs) -> Model: ...
@overload
def fit(
    data: Trajectories | Sequence[Trajectories], structure: str | Structure, *args, seed: Sequence[int], **kwargs
) -> list[Model]: ...
def fit(
    data: Trajectories | Sequence[Trajectories],
    structure: str | Structure,
    integrator: str | Integrator = "auto",
    *,
    x0: str = "latent",
    inference: str | Variational = "variational",
    initial: FieldPosterior | Sequence[FieldPosterior] | None = None,
    seed: int | Sequence[int] = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Model | list[Model]:
    """Learn a system from recordings.

    **Arguments:**

    - `data`: the recordings.
    - `structure`: what is known of the physics, by name ("separable") or as an object
        (`sgpd.structures.Separable(form="components")`).
    - `integrator`: the method inside which the field is learned; "auto" chooses one that keeps the structure.
    - `x0`: first states are learned ("latent"), exact ("known"), or taken to be the observations ("observed").
    - `inference`: "variational", or a `Variational` with settings.
    - `initial`: kernels, inducing points and q to start from; None finds them in the data.
    - `seed`: of all random numbers; several seeds are trained side by side and give a list of models. `data` and
        `initial` may then be lists too, one entry a seed: a study over noise is one call.
    - `progress`: called with (epochs done, epochs in all) after each.
    """
    seeds = [seed] if isinstance(seed, int) else list(seed)
    recordings = _one_each(data, Trajectories, len(seeds), "data")
    structure = get_structure(structure) if isinstance(structure, str) else structure
    method = _method(integrator, structure)
    require_compatible(structure.traits(recordings[0].dimension), method, structure.name)
    if x0 not in STARTS:
        raise unknown_name("way to start (x0=)", x0, STARTS)
    if isinstance(inference, str):
        if inference not in _ENGINES:
            raise unknown_name("inference engine", inference, _ENGINES)
        inference = _ENGINES[inference]()

    guesses = _one_each(initial, FieldPosterior, len(seeds), "initial")
    one = lambda recording, guess: _prepared(recording, structure, method, inference, x0, guess)
    if isinstance(data, Trajectories) and not isinstance(initial, Sequence):
        prepared = [one(data, initial)] * len(seeds)
    else:
        prepared = [one(*each) for each in zip(recordings, guesses, strict=True)]
    problem, parameters = side_by_side([(problem, parameters) for problem, parameters, _ in prepared])
    state = train(problem, initial_state(problem, parameters, seeds), progress=progress)
    models = [
        _model(recording, method, inference, x0, state, cut, index)
        for index, (recording, (_, _, cut)) in enumerate(zip(recordings, prepared, strict=True))
    ]
    return models[0] if isinstance(seed, int) else models


def _one_each(given, kind: type, count: int, name: str) -> list:
    """One entry for each seed."""
    if given is None or isinstance(given, kind):
        return [given] * count
    if len(given) != count:
        raise ValueError(
            f"There are {count} seeds but {len(given)} entries in {name}=; give one, or one for each seed."
        )
    return list(given)


def _prepared(
    data: Trajectories,
    structure: Structure,
    integrator: Integrator,
    settings: Variational,
    x0: str,
    guess: FieldPosterior | None,
) -> tuple[Problem, Parameters, Windows]:
    if guess is None:
        guess = initial_posterior(structure, data, settings.kernel, settings.inducing, settings.diagonal)
    elif (repr(guess.structure), guess.dimension) != (repr(structure), data.dimension):
        raise ValueError(
            f"initial= is a posterior over {guess.structure} in {guess.dimension} dimensions, but this fit is of "
            f"{structure} in {data.dimension}; pass initial.structure as the structure."
        )
    return prepare(data, guess, integrator, settings, x0)


def _method(integrator: str | Integrator, structure: Structure) -> Integrator:
    if not isinstance(integrator, str):
        return integrator
    return get_integrator(_AUTOMATIC.get(structure.name, "rk4") if integrator == "auto" else integrator)


def _model(
    data: Trajectories, integrator: Integrator, settings: Variational, x0: str, state, cut: Windows, index: int
) -> Model:
    """The model of one seed."""
    parameters: Parameters = jax.tree.map(lambda leaf: leaf[index], state.best)
    bounded = x0 != "observed" and settings.stride is None
    unweighted = settings.likelihood_factor == settings.kl_factor == 1
    return Model(
        posterior=parameters.field.plain(),
        integrator=integrator,
        step=data.step,
        noise=np.exp(np.asarray(parameters.log_noise)),
        names=data.names,
        units=data.units,
        runs=_run_ends(data, parameters, cut),
        objective="lower bound" if bounded and unweighted else "composite likelihood",
        features=settings.features,
        spread=settings.spread,
        history=[{k: v if np.isscalar(v) else float(v[index]) for k, v in line.items()} for line in state.history],
    )


def _run_ends(data: Trajectories, parameters: Parameters, cut: Windows) -> tuple[RunEnds, ...]:
    mean, std = np.asarray(parameters.starts.mean), np.asarray(parameters.starts.std)
    ends = []
    for index, run in enumerate(data.runs):
        of_run = np.flatnonzero(cut.run == index)
        first, last = of_run[np.argmin(cut.row[of_run])], of_run[np.argmax(cut.row[of_run])]
        lead = cut.flat_steps[last]
        ends.append(RunEnds(mean[first], std[first], mean[last], std[last], lead[lead > 0], float(run.times[-1])))
    return tuple(ends)
