"""From a recording to a model, in one call."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import overload

import jax
import numpy as np

from sgpd.checks import require_compatible
from sgpd.data import Trajectories, Windows, excerpts, sign_test
from sgpd.data.smoothing import smooth_run
from sgpd.errors import BadInput, CheckWarning, SgpdWarning, unknown_name
from sgpd.inference.checkpoint import Checkpoint
from sgpd.inference.facts import Epoch, History, Selection
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace.constants import LONGEST
from sgpd.inference.laplace.engine import Laplace, fit_laplace, tuned_on
from sgpd.inference.options import FitOptions, Progress
from sgpd.inference.posterior.field import FieldPosterior, feature_counts
from sgpd.inference.posterior.joint import Joint
from sgpd.inference.variational.engine import Selected, initial_state, train
from sgpd.inference.variational.problem import Variational, prepare, side_by_side
from sgpd.integrators import Integrator
from sgpd.integrators import get as get_integrator
from sgpd.models.facts import Facts, RecordingFacts
from sgpd.models.model import TOLD, Model
from sgpd.models.pieces import Pieces
from sgpd.structures import Structure
from sgpd.structures import get as get_structure
from sgpd.xla.batches import one_lapack_thread
from sgpd.xla.tuning import tune_unless_told_not_to

STARTS = ("latent", "known", "observed")

_LONG = 0.7  # radians of the motion in one step: a symmetric method of order 2 is enough for shorter ones
ENGINES = {"laplace": Laplace, "variational": Variational}


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
    inference: str | Laplace | Variational = "laplace",
    initial: FieldPosterior | Sequence[FieldPosterior] | None = None,
    seed: int | Sequence[int] = 0,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Model | list[Model]:
    """Learn a system from recordings.

    **Arguments:**

    - `data`: the recordings.
    - `structure`: what is known of the physics, by name ("separable") or as an object
        (`sgpd.structures.Separable(form="components")`).
    - `integrator`: the method inside which the field is learned; "auto" chooses one that keeps the structure.
    - `x0`: first states are learned ("latent"), exact ("known"), or taken to be the observations ("observed").
    - `inference`: "laplace" (staged least squares, evidence, a joint Gaussian: seconds) or "variational" (the paper's
        bound), or a `Laplace` or `Variational` with settings.
    - `initial`: kernels, inducing points and q to start from; None finds them in the data.
    - `seed`: of all random numbers; several seeds are trained side by side and give a list of models. `data` and
        `initial` may then be lists too, one entry a seed: a study over noise is one call.
    - `progress`: called with (work done, work in all) after every stage or epoch.
    - `checkpoint`: a file in which the fit keeps where it stands, and from which it goes on if the file is there: an
        interrupted fit ends with the same numbers. It stays when the fit has ended; delete it then.
    """
    tune_unless_told_not_to()
    seeds = [seed] if isinstance(seed, int) else list(seed)
    whole = _one_each(data, Trajectories, len(seeds), "data")
    recordings = [tuned_on(recording) for recording in whole]
    structure = get_structure(structure) if isinstance(structure, str) else structure
    structure = structure.named(recordings[0].names)
    method = choose_integrator(integrator, structure, whole[0])
    require_compatible(structure.traits(recordings[0].dimension), method, structure.name)
    if x0 not in STARTS:
        raise unknown_name("way to start (x0=)", x0, STARTS)
    if checkpoint is not None and len(seeds) > 1:
        raise BadInput("A checkpoint is of one fit", "give one seed, or no checkpoint")
    _warn_of_swapped_roles(structure, recordings[0])
    settings = _settings(inference)
    guesses = _one_each(initial, FieldPosterior, len(seeds), "initial")
    options = FitOptions(method, settings, x0, progress, checkpoint, own_points=initial is not None)
    guess = _once(lambda recording, given: _guess(given, recording, structure, options))
    with one_lapack_thread():
        guesses = [guess(*each) for each in zip(recordings, guesses, strict=True)]
        if isinstance(settings, Laplace):
            models = [_laplace(*one, options) for one in zip(whole, guesses, seeds, strict=True)]
            if integrator == "auto":
                chosen = (
                    f"Integrator: {method.name} (order {method.order}), chosen for '{structure.name}' and this step."
                )
                models = [dataclasses.replace(model, remarks=(chosen, *model.remarks)) for model in models]
        else:
            models = _variational(recordings, guesses, seeds, options)
    models = [_noting_excerpts(model, data) for model, data in zip(models, whole, strict=True)]
    return models[0] if isinstance(seed, int) else models


def rows_used(data: Trajectories, settings: Laplace | Variational) -> Trajectories:
    """What an engine takes of a recording: all of it, or excerpts of a long one."""
    if isinstance(settings, Variational):
        return tuned_on(data)
    return data if settings.rows is None else excerpts(data, settings.rows, LONGEST)


def _noting_excerpts(model: Model, whole: Trajectories) -> Model:
    tuned, used, stretches = (
        tuned_on(whole).rows,
        model.facts.recording.rows,
        f"stretches of {LONGEST} rows, spread evenly",
    )
    if used < whole.rows:
        said = f"The fit used {used:,} of {whole.rows:,} rows: {stretches}."
    elif tuned < whole.rows:
        said = (
            f"Kernels and noise were chosen on {tuned:,} of {whole.rows:,} rows ({stretches}); the rest is of all rows."
        )
    else:
        return model
    return dataclasses.replace(model, remarks=(*model.remarks, said))


def _warn_of_swapped_roles(structure: Structure, data: Trajectories):
    """A separable fit with p and q swapped does not fail; it learns -H."""
    half = data.dimension // 2
    if not structure.swaps_silently or data.dimension % 2:
        return
    swapped = [sign for sign in sign_test(data, data.names[:half], data.names[half:]) if sign.negative]
    if swapped:
        warnings.warn(
            f"A state is momenta first, then positions, but {swapped[0].position} falls where {swapped[0].momentum} is "
            "positive; if the two are swapped, the fit learns -H.",
            SgpdWarning,
            stacklevel=3,
        )


def _settings(inference: str | Laplace | Variational) -> Laplace | Variational:
    if not isinstance(inference, str):
        return inference
    if inference not in ENGINES:
        raise unknown_name("inference engine", inference, ENGINES)
    return ENGINES[inference]()


def _one_each(given, kind: type, count: int, name: str) -> list:
    """One entry for each seed."""
    if given is None or isinstance(given, kind):
        return [given] * count
    if len(given) != count:
        raise BadInput(f"There are {count} seeds but {len(given)} entries in {name}=", "give one, or one for each seed")
    return list(given)


def _guess(
    guess: FieldPosterior | None, data: Trajectories, structure: Structure, options: FitOptions
) -> FieldPosterior:
    """Where to start: what was given, or what the data say."""
    settings = options.settings
    if guess is None and isinstance(settings, Variational):
        return initial_posterior(structure, data, settings.kernel, settings.inducing, settings.diagonal)
    if guess is None:
        return initial_posterior(structure, data, settings.kernel, settings.inducing, sized=options.compile)
    if (guess.structure, guess.dimension) != (structure, data.dimension):
        raise BadInput(
            f"initial= is a posterior over {guess.structure} in {guess.dimension} dimensions, but this fit is of "
            f"{structure} in {data.dimension}",
            "pass initial.structure as the structure",
        )
    return guess


def _laplace(data: Trajectories, guess: FieldPosterior, seed: int, options: FitOptions) -> Model:
    data = rows_used(data, options.settings)
    found = fit_laplace(data, guess, options, seed)
    for check in found.diagnosis.checks:
        if check.verdict in TOLD:
            warnings.warn(check.words, CheckWarning, stacklevel=3)
    return Model(
        posterior=found.posterior,
        integrator=options.integrator,
        step=data.step,
        noise_std=found.noise,
        names=data.names,
        units=data.units,
        joint=found.joint,
        pieces=Pieces.of(found.pieces),
        objective="evidence",
        features=found.facts.features,
        sampling=options.settings.sampling,
        history=found.history,
        run_names=data.run_names,
        facts=Facts(RecordingFacts.of(data), fit=found.facts),
        remarks=found.diagnosis.remarks,
        diagnosis=found.diagnosis.checks,
    )


def _variational(
    recordings: Sequence[Trajectories],
    guesses: Sequence[FieldPosterior],
    seeds: Sequence[int],
    options: FitOptions,
) -> list[Model]:
    """All seeds side by side."""
    chosen = (options.integrator, options.settings, options.x0)
    prepared_for = _once(lambda data, guess: prepare(data, guess, *chosen))
    prepared = [prepared_for(*each) for each in zip(recordings, guesses, strict=True)]
    problem, parameters = side_by_side([(problem, parameters) for problem, parameters, _ in prepared])
    identity = (options.settings, options.integrator, options.x0)
    kept = Checkpoint(options.checkpoint, (problem, parameters, repr(identity), seeds))
    state = train(problem, initial_state(problem, parameters, seeds), progress=options.progress, checkpoint=kept)
    bests: list[Selected] = [jax.tree.map(lambda leaf, at=index: leaf[at], state.best) for index in range(len(seeds))]
    epochs = [epoch for epoch in state.history if isinstance(epoch, Epoch)]
    histories = [tuple(epoch.of_seed(index) for epoch in epochs) for index in range(len(seeds))]
    cuts = [cut for _, _, cut in prepared]
    each = zip(recordings, cuts, bests, histories, strict=True)
    return [_model(*one, options) for one in each]


def _once(work: Callable) -> Callable:
    """The same work for the same objects is done once: seeds may share a recording."""
    done = {}

    def remembered(*objects):
        key = tuple(map(id, objects))
        if key not in done:
            done[key] = work(*objects)
        return done[key]

    return remembered


def choose_integrator(integrator: str | Integrator, structure: Structure, data: Trajectories) -> Integrator:
    """By name; "auto" takes one that keeps the structure, of order 4 where steps are long: the fitted rows say.

    So many rows that not all are tuned on see the error of order 2, too (`benchmarks/rows.py --integrator`).
    """
    if not isinstance(integrator, str):
        return integrator
    if integrator != "auto":
        return get_integrator(integrator)
    usual, for_long_steps = structure.integrators
    used = tuned_on(data)
    if usual == for_long_steps or (used is data and _turn(used) < _LONG):
        return get_integrator(usual)
    return get_integrator(for_long_steps)


def _turn(data: Trajectories) -> float:
    """How far the motion turns in one step: h times its usual frequency, rms(x'') / rms(x')."""
    run = max(data.runs, key=len)
    slope = smooth_run(run).derivatives
    bend = np.gradient(slope, run.times, axis=0)
    return float(data.step * np.sqrt((bend**2).mean() / np.maximum((slope**2).mean(), 1e-300)))


def _model(data: Trajectories, cut: Windows, best: Selected, history: History, options: FitOptions) -> Model:
    """The model of one seed."""
    settings, parameters = options.settings, best.parameters
    bounded = options.x0 != "observed" and settings.stride is None
    unweighted = settings.likelihood_factor == settings.kl_factor == 1
    posterior, kept = parameters.field.plain(), _kept(cut, settings)
    return Model(
        posterior=posterior,
        integrator=options.integrator,
        step=data.step,
        noise_std=np.exp(np.asarray(parameters.log_noise)),
        names=data.names,
        units=data.units,
        joint=Joint.independent(posterior, parameters.starts.mean[kept], parameters.starts.std[kept]),
        pieces=Pieces.of(cut, kept),
        objective="lower bound" if bounded and unweighted else "composite likelihood",
        features=feature_counts(posterior, settings.features),
        sampling=settings.sampling,
        history=history,
        run_names=data.run_names,
        facts=Facts(RecordingFacts.of(data), selection=_selection(best)),
    )


def _selection(best: Selected) -> Selection | None:
    """What was selected, if anything was."""
    if not np.isfinite(best.error):
        return None
    return Selection(int(best.epoch), float(best.error), tuple(jax.random.key_data(best.keys).tolist()))


def _kept(cut: Windows, settings: Variational) -> np.ndarray:
    """Windows whose starts the model keeps: all that stand side by side, of overlapping ones each run's ends."""
    if settings.stride is None:
        return np.arange(len(cut))
    of_run = [np.flatnonzero(cut.run == run) for run in np.unique(cut.run)]
    ends = [(w[np.argmin(cut.row[w])], w[np.argmax(cut.row[w])]) for w in of_run]
    return np.unique(ends)
