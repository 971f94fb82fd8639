"""Models on disk: one safetensors file, arrays and a JSON header, no pickle."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save as to_bytes

from sgpd import gp
from sgpd.arrays import on_device
from sgpd.checks import Check
from sgpd.errors import BadInput
from sgpd.gp import Kernel, Trend, WhitenedGaussian
from sgpd.importing import allowed_class, place_of
from sgpd.inference.facts import history_of, plain
from sgpd.inference.posterior.field import FieldPosterior, LatentGroup
from sgpd.inference.posterior.joint import Joint, Stored, Unknowns
from sgpd.integrators import (
    Integrator,
    PartitionedRungeKutta,
    PartitionedTableau,
    RungeKutta,
    SplitStep,
    Splitting,
    Tableau,
)
from sgpd.integrators import get as get_integrator
from sgpd.integrators import names as integrator_names
from sgpd.models.facts import Facts
from sgpd.models.model import TOLD, Model
from sgpd.models.pieces import Pieces
from sgpd.structures import Structure, key_of
from sgpd.structures import get as get_structure
from sgpd.writing import write_whole
from sgpd.xla.tuning import tune_unless_told_not_to

FORMAT = "sgpd.model/8"
READ = (*(f"sgpd.model/{number}" for number in (4, 5, 6, 7)), FORMAT)  # before 5 there were no axes, before 6 no trends
_RENAMED = {  # before 8
    "": {"spread": "sampling"},
    "structure": {"sees": "depends_on"},
}
# All that `sgpd.gp` shows; any other is somebody's own.
_KERNELS = {name: found for name, found in vars(gp).items() if isinstance(found, type) and issubclass(found, Kernel)}

_JOINT_ARRAYS = ("mean", "root", "starts", "gain", "start_root")
_STORED_ARRAYS = ("u", "starts", "place", "seed")
_PIECE_ARRAYS = ("run", "row", "times", "steps")


def save_model(model: Model, path: str | Path):
    """Write a model to one file; either the whole file is there afterwards or nothing has changed."""
    write_whole(path, to_bytes(_arrays(model), metadata={"sgpd": json.dumps(_header(model))}))


def load(path: str | Path, allow: Sequence[str | type] = ()) -> Model:
    """Read a model that `Model.save` wrote.

    A structure or kernel that is not part of sgpd is taken only if it is among those that are allowed, as a class or as
    its place, "mymodule:MyStructure", which is then imported.
    """
    from safetensors import safe_open

    tune_unless_told_not_to()
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("sgpd", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file", "give the path that `model.save` was given") from None
    except (SafetensorError, json.JSONDecodeError, OSError) as problem:
        raise BadInput(f"{path}: not a readable sgpd model ({problem})", "save it again with `model.save`") from None
    if header.get("format") not in READ:
        raise BadInput(
            f"{path}: has the format {header.get('format')!r}, but this version of sgpd reads {FORMAT!r}",
            "save the model again with this version",
        )
    try:
        return _model(_with_present_names(header), arrays, allow)
    except (KeyError, TypeError, AttributeError) as problem:
        raise BadInput(f"{path}: the file is damaged ({problem!r})", "save the model again") from None


def _with_present_names(header: dict) -> dict:
    """What other versions wrote, under the names of this one."""
    header = dict(header)
    header["structure"] = {_RENAMED["structure"].get(name, name): v for name, v in header["structure"].items()}
    return {_RENAMED[""].get(name, name): value for name, value in header.items()}


def _header(model: Model) -> dict:
    structure = model.posterior.structure
    return {
        "format": FORMAT,
        "structure": {"name": key_of(structure), **structure.options()},
        "integrator": _method_options(model.integrator),
        "kernels": [_kernel_key(type(group.kernel)) for group in model.posterior.groups],
        "jitters": [group.jitter for group in model.posterior.groups],
        "dimension": model.dimension,
        "step": model.step,
        "names": model.names,
        "units": model.units,
        "objective": model.objective,
        "features": model.features,
        "sampling": model.sampling,
        "history": plain(model.history),
        "run_names": model.run_names,
        "facts": model.facts.to_dict(),
        "remarks": model.remarks,
        "notes": model.notes,  # where earlier versions have both in one
        "diagnosis": [asdict(check) for check in model.diagnosis],
    }


def _arrays(model: Model) -> dict[str, np.ndarray]:
    arrays = {"noise": model.noise_std}
    for index, (group, q) in enumerate(zip(model.posterior.groups, model.posterior.whitened, strict=True)):
        arrays |= {
            f"latents.{index}.log_lengthscale": group.kernel.log_lengthscale,
            f"latents.{index}.log_variance": group.kernel.log_variance,
            f"latents.{index}.scaled_locations": group.scaled_locations,
            f"latents.{index}.scale": group.scale,
            f"latents.{index}.mean": q.mean,
            f"latents.{index}.raw_root": q.plain().raw_root,
        }
        if group.axes is not None:
            arrays[f"latents.{index}.axes"] = group.axes
        if group.trend is not None:
            arrays[f"latents.{index}.trend_centre"] = group.trend.centre
            arrays[f"latents.{index}.trend_log_variances"] = group.trend.log_variances
    arrays |= {f"joint.{name}": getattr(model.joint, name) for name in _JOINT_ARRAYS}
    if model.joint.stored is not None:
        stored = model.joint.stored
        pairs = zip(_STORED_ARRAYS, (*stored.unknowns, stored.place, stored.seed), strict=True)
        arrays |= {f"stored.{name}": np.asarray(array) for name, array in pairs}
    arrays |= {f"pieces.{name}": getattr(model.pieces, name) for name in _PIECE_ARRAYS}
    return {name: np.array(array, order="C") for name, array in arrays.items()}


def _model(header: dict, arrays: dict[str, np.ndarray], allow: Sequence[str | type]) -> Model:
    groups, values = [], []
    for index, (kernel_name, jitter) in enumerate(zip(header["kernels"], header["jitters"], strict=True)):
        part = lambda name: on_device(arrays[f"latents.{index}.{name}"])  # noqa: B023
        kernel = _kernel(kernel_name, allow).from_logs(part("log_lengthscale"), part("log_variance"))
        has = lambda name: f"latents.{index}.{name}" in arrays  # noqa: B023
        axes = part("axes") if has("axes") else None
        trend = Trend(part("trend_centre"), part("trend_log_variances")) if has("trend_centre") else None
        groups.append(LatentGroup(kernel, part("scaled_locations"), part("scale"), jitter, axes=axes, trend=trend))
        values.append(WhitenedGaussian(part("mean"), part("raw_root")))
    structure = _structure(**header["structure"], allow=allow)
    mean, root, starts, gain, start_root = (on_device(arrays[f"joint.{name}"]) for name in _JOINT_ARRAYS)
    stored = None
    if "stored.u" in arrays:
        u, own_starts, place, seed = (on_device(arrays[f"stored.{name}"]) for name in _STORED_ARRAYS)
        stored = Stored(Unknowns(u, own_starts), place, seed)
    joint = Joint(mean, root, starts, gain, start_root, stored)
    diagnosis = tuple(Check(**check) for check in header["diagnosis"])
    return Model(
        posterior=FieldPosterior(structure, header["dimension"], tuple(groups), tuple(values)),
        integrator=_method(header["integrator"]),
        step=header["step"],
        noise_std=arrays["noise"],
        names=tuple(header["names"]),
        units=tuple(header["units"]),
        joint=joint,
        pieces=Pieces(*(arrays[f"pieces.{name}"] for name in _PIECE_ARRAYS)),
        objective=header["objective"],
        features=tuple(np.broadcast_to(header["features"], len(groups)).tolist()),  # before 7 one number for all
        sampling=header["sampling"],
        history=history_of(header["history"]),
        run_names=tuple(header["run_names"]),
        facts=Facts.from_dict(header["facts"]),
        remarks=_remarks(header, diagnosis),
        diagnosis=diagnosis,
    )


def _remarks(header: dict, diagnosis: tuple[Check, ...]) -> tuple[str, ...]:
    """Version 0.3.1 and those before wrote them in one list with what the diagnosis says."""
    if "remarks" in header:
        return tuple(header["remarks"])
    told = Counter(check.words for check in diagnosis if check.verdict in TOLD)
    return tuple((Counter(header["notes"]) - told).elements())


def _structure(name: str, allow: Sequence[str | type], **options) -> Structure:
    return allowed_class(name, Structure, allow)(**options) if ":" in name else get_structure(name, **options)


def _kernel_key(kernel: type[Kernel]) -> str:
    return kernel.__name__ if _KERNELS.get(kernel.__name__) is kernel else place_of(kernel)


def _kernel(key: str, allow: Sequence[str | type]) -> type[Kernel]:
    return allowed_class(key, Kernel, allow) if ":" in key else _KERNELS[key]


def _method_options(method: Integrator) -> dict:
    """A method from the catalogue by its name; any other by its coefficients."""
    if method.name in integrator_names() and get_integrator(method.name) is method:
        return {"name": method.name}
    tableau = method.tableau
    match tableau:
        case Tableau():
            coefficients = {"a": tableau.a.tolist(), "b": tableau.b.tolist()}
        case Splitting():
            coefficients = {"kicks": tableau.kicks.tolist(), "drifts": tableau.drifts.tolist()}
        case PartitionedTableau():
            coefficients = {
                half: {"name": t.name, "a": t.a.tolist(), "b": t.b.tolist(), "order": t.order}
                for half, t in (("p", tableau.p), ("q", tableau.q))
            }
    return {"name": tableau.name, "order": tableau.order, "type": type(method).__name__, "coefficients": coefficients}


def _method(options: dict) -> Integrator:
    if "type" not in options:
        return get_integrator(options["name"])
    name, order, coefficients = options["name"], options["order"], options["coefficients"]
    match options["type"]:
        case "RungeKutta":
            return RungeKutta(Tableau(name, **coefficients, order=order))
        case "SplitStep":
            return SplitStep(Splitting(name, **coefficients, order=order))
        case "PartitionedRungeKutta":
            halves = {half: Tableau(**t) for half, t in coefficients.items()}
            return PartitionedRungeKutta(PartitionedTableau(name, **halves, order=order))
    raise KeyError(options["type"])
