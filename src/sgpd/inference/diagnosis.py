"""What a fit says about itself: numbers a physicist would ask for, in words, and whether it suits the recording."""

from typing import NamedTuple

import numpy as np

from sgpd.checks import Check, CheckId
from sgpd.data import Trajectories, Windows
from sgpd.data.smoothing import noise_std
from sgpd.inference.constants import FEW
from sgpd.inference.course import BLOCKS, Course, along_recording
from sgpd.inference.facts import FitFacts
from sgpd.inference.initial import leads_out
from sgpd.inference.laplace.constants import FULL, LONGEST, MOST_POINTS
from sgpd.inference.posterior.field import FieldPosterior
from sgpd.inference.posterior.kernels import Kernels
from sgpd.inference.residuals import neighbours
from sgpd.inference.unexplained import SPARSE, unexplained

ROUGH = 1.5  # noise found, against what the recording's own roughness shows
UNSOLVED = 0.5  # share of steps that did not converge, from which nothing that a fit says means anything
TREND = 5.0  # standard errors of a slope of the energy
MORE = "`--inducing N`, in Python `inference=Laplace(inducing=N)`"
MISSING = (  # what to do where even a free field does not fit
    f"The system may have inputs or states that were not recorded; record more often, or try more points ({MORE})."
)


class Diagnosis(NamedTuple):
    """What was found, in sentences, and what was looked at."""

    remarks: tuple[str, ...]
    checks: tuple[Check, ...]


def diagnose(
    data: Trajectories,
    recording: Windows,
    posterior: FieldPosterior,
    rows: np.ndarray,
    noise: np.ndarray,
    facts: FitFacts,
) -> Diagnosis:
    """Judge a fit by its residuals, its noise, the energy of the recording and the places of the inducing points."""
    numbers = ", ".join(f"{name} {value:.3g}" for name, value in zip(data.names, noise, strict=True))
    notes = [
        f"Noise found (standard deviation): {numbers}.",
        f"Lengthscales: {_lengthscales(posterior)}.",
        *_subspaces(posterior, rows),
        f"Log evidence {facts.log_evidence:.1f}; {facts.effective_parameters:.1f} effective parameters of "
        f"{facts.parameters}.",
        _draws(facts),
        *_points(posterior, facts),
        *_cut(data, rows.shape[1]),
    ]
    free = posterior.structure.most_general
    checks = (
        _converged(facts),
        _solved(facts),
        _white(data.names, recording, rows, np.asarray(facts.autocorrelation_times), free),
        _noise(data, noise, free),
        _recorded_energy(data, posterior),
        _inducing(posterior, rows, facts),
        _rollouts(data, rows.shape[1]),
        _bands(facts),
    )
    return Diagnosis(tuple(notes), tuple(check for check in checks if check is not None))


def _lengthscales(posterior: FieldPosterior) -> str:
    found = []
    for spec, group in zip(posterior.structure.groups(posterior.dimension), posterior.groups, strict=True):
        numbers = ", ".join(f"{value:.3g}" for value in np.asarray(group.kernel.lengthscale)[0])
        unit = "" if group.axes is None else " standard deviations along principal axes"
        found.append(f"{spec.name} {numbers}{unit}")
    return "; ".join(found)


def _subspaces(posterior: FieldPosterior, rows: np.ndarray) -> list[str]:
    """Where latents have axes: along how many of them the recording moves."""
    notes, states = [], rows.reshape(-1, rows.shape[-1])
    for spec, group in zip(posterior.structure.groups(posterior.dimension), posterior.groups, strict=True):
        if group.axes is not None:
            along = ~leads_out(group.along_axes(spec.inputs(states)).std(axis=1))  # (count, k)
            moving, directions = int(along.sum(axis=1).min()), along.shape[1]
            if moving < directions:
                notes.append(
                    f"What {spec.name} sees moves along {moving} of {directions} directions only. How {spec.name} "
                    "changes across them is not seen; the evidence takes the simplest."
                )
    return notes


def _cut(data: Trajectories, rows: int) -> list[str]:
    """Where rollouts had to be shorter than the recording."""
    if rows >= max(map(len, data.runs)):
        return []
    return [f"No rollout is longer than {rows} rows: each such piece has a first state of its own."]


def _draws(facts: FitFacts) -> str:
    size = f"an importance effective sample size of {facts.importance_sample_size:.0f}"
    drawn = f"{facts.drawn} draws of the Gaussian posterior have {size}"
    match facts.draws:
        case "gaussian":
            said = f"{drawn}: the Gaussian is taken for it."
        case "weighed":
            said = f"{drawn}, by how well they fit the recording; {facts.stored_draws} are kept, chosen by that."
        case "randomised":
            said = f"{drawn}, so {facts.stored_draws} draws by randomise-then-optimise are kept instead."
        case "unsearched":
            said = f"{drawn}: the Gaussian is taken for it, because the recording is too long to draw otherwise."
        case _:
            said = f"{drawn}, and most fits to randomised data failed."
    return f"{said} Drawn fields do not vary between the inducing points." if facts.features_dropped else said


def _bands(facts: FitFacts) -> Check | None:
    """Worth a word only where the posterior was not drawn from as it should be."""
    title, remedy = "draws of the posterior", f"Use more inducing points ({MORE})."
    if facts.draws == "failed":
        sentence = "Drawing fields that fit the recording failed: the best estimate stands, the bands mean nothing."
        return Check(CheckId.DRAWS, title, None, None, "ATTENTION", sentence, remedy)
    if facts.draws == "unsearched":
        sentence = (
            "The posterior is not Gaussian but is drawn from as if it were: the recording is too long for draws by "
            "randomise-then-optimise, and the bands may be too narrow or too wide."
        )
        remedy = "Fit fewer rows (`--rows 20000`, in Python `inference=Laplace(rows=20000)`)."
        return Check(CheckId.DRAWS, title, None, None, "ATTENTION", sentence, remedy)
    if facts.features_dropped:
        sentence = (
            "Fields that vary between the inducing points cannot fit the recording, so drawn fields do not vary there: "
            "the bands are too narrow."
        )
        return Check(CheckId.DRAWS, title, None, None, "ATTENTION", sentence, remedy)
    return None


def _solved(facts: FitFacts) -> Check | None:
    """Whether the steps of the fit were those of the method; explicit ones have nothing to solve."""
    share, residual = 1 - facts.steps_converged, facts.worst_residual
    if not residual > 0 and share == 0:  # also where it is not a number
        return None
    title = "steps of the fit that did not converge"
    if share == 0:
        sentence = f"Every step of the fit converged, stage residuals at most {residual:.1e}."
        return Check(CheckId.FIT_STEPS, title, 0.0, 0.0, "PASS", sentence)
    sentence = (
        f"{share:.1%} of the fit's steps did not converge (stage residuals up to {residual:.1e}): "
        "what the method keeps is not kept there."
    )
    remedy = (
        "Shorten the step (record more often), or check whether lengthscales are much shorter than a step's motion."
    )
    return Check(CheckId.FIT_STEPS, title, share, 0.0, "FAIL" if share > UNSOLVED else "ATTENTION", sentence, remedy)


def _converged(facts: FitFacts) -> Check:
    title = "kernels and noise converged"
    if facts.converged:
        return Check(CheckId.CONVERGED, title, None, None, "PASS", "Kernels and noise converged.")
    sentence = "Kernels and noise had not converged when the fit stopped."
    return Check(CheckId.CONVERGED, title, None, None, "ATTENTION", sentence, "Compare with another seed or kernel.")


def _white(names: tuple[str, ...], recording: Windows, rows: np.ndarray, times: np.ndarray, free: bool) -> Check:
    """Neighbouring residuals that resemble one another: the rollout misses something that the recording does."""
    title, found = "correlation of neighbouring residuals", neighbours(recording, rows)
    if np.isnan(found.limit).all():
        sentence = f"Residuals were not tested: there are fewer than {FEW} neighbouring pairs."
        return Check(CheckId.RESIDUALS, title, None, None, "NOT MEASURED", sentence, "Record more rows.")
    worst = int(np.nanargmax(found.correlation / found.limit))
    value, limit = float(found.correlation[worst]), float(found.limit[worst])
    coloured = [f"{names[k]} by {found.correlation[k]:.2f}" for k in np.flatnonzero(found.alike)]
    if not coloured:
        sentence = (
            f"Residuals are white: neighbours correlate by {value:.2f} at most ({names[worst]}, limit {limit:.2f})."
        )
        return Check(CheckId.RESIDUALS, title, value, limit, "PASS", sentence)
    sentence = f"Residuals are not white: neighbours correlate, {', '.join(coloured)} (limit {limit:.2f})."
    discounted = [f"{float(f'{times[k]:.2g}'):g} rows of {names[k]}" for k in np.flatnonzero(times > 1)]
    if discounted:
        sentence += f" Their autocorrelation time: for the bands {' and '.join(discounted)} count as one."
    remedy = MISSING if free else "The structure or the step may not fit this recording; try another structure."
    return Check(CheckId.RESIDUALS, title, value, limit, "ATTENTION", sentence, remedy)


def _noise(data: Trajectories, noise: np.ndarray, free: bool) -> Check:
    ratios = noise / noise_std(data)
    title, worst = "noise found over roughness of the recording", float(ratios.max())
    worse = [f"{name} {ratio:.1f} times" for name, ratio in zip(data.names, ratios, strict=True) if ratio > ROUGH]
    if not worse:
        sentence = (
            f"The noise found is that of the recording's roughness (at most {worst:.1f} times it, limit {ROUGH})."
        )
        return Check(CheckId.NOISE, title, worst, ROUGH, "PASS", sentence)
    sentence = f"The noise found is larger than the roughness of the recording shows ({', '.join(worse)})."
    unfit = "The structure does not fit the data, or the recording has slow disturbances; compare with 'free'."
    remedy = MISSING if free else unfit
    return Check(CheckId.NOISE, title, worst, ROUGH, "ATTENTION", sentence, remedy)


def _recorded_energy(data: Trajectories, posterior: FieldPosterior) -> Check | None:
    """The learned energy along the recording as splines see it, in blocks: friction shows as a slope."""
    energy = getattr(Kernels.of(posterior).field(np.asarray(posterior.flat_mean)), "energy", None)
    if energy is None:
        return None
    title = "trend of the recording's energy, in standard errors"
    long = [run for run in data.runs if len(run) >= 3 * BLOCKS]
    if not long:
        sentence = f"The recording's energy was not followed: no run has {3 * BLOCKS} rows."
        return Check(CheckId.RECORDED_ENERGY, title, None, TREND, "NOT MEASURED", sentence, "Record longer runs.")
    found = [Course.of(run.times, along_recording(energy, run)) for run in long]
    slope, error = np.mean([c.slope for c in found]), np.sqrt(np.sum([c.error**2 for c in found])) / len(found)
    value = float(abs(slope) / max(error, 1e-300))
    if value < TREND:
        sentence = f"The energy of the recorded states has no trend ({value:.1f} standard errors, limit {TREND:g})."
        return Check(CheckId.RECORDED_ENERGY, title, value, TREND, "PASS", sentence)
    word = "falls" if slope < 0 else "rises"
    sentence = f"The energy of the recorded states {word} steadily ({slope / error:+.0f} standard errors)."
    remedy = "A Hamiltonian structure has no friction or drive; use the structure 'free' if the system has."
    return Check(CheckId.RECORDED_ENERGY, title, value, TREND, "ATTENTION", sentence, remedy)


def _rollouts(data: Trajectories, rows: int) -> Check | None:
    """Worth a word only where pieces had to be cut, but not for their sheer length."""
    longest, title = min(max(map(len, data.runs)), LONGEST), "rows of the longest rollout"
    if rows >= longest:
        return None
    sentence = (
        f"Longer rollouts are so unstable that no field was found for them: the recording was cut in pieces of {rows} "
        f"rows (instead of {longest}), each with a first state of its own."
    )
    remedy = (
        f"Forecasts over more than {rows} rows mean little. Where the motion hardly leaves a subspace, take "
        "coordinates within it; else record more often or with less noise, or try another structure."
    )
    return Check(CheckId.ROLLOUTS, title, float(rows), float(longest), "ATTENTION", sentence, remedy)


def _points(posterior: FieldPosterior, facts: FitFacts) -> list[str]:
    """How many inducing points there are where those at first were too few, and why there are no more."""
    if not facts.growth:
        return []
    names = [spec.name for spec in posterior.structure.groups(posterior.dimension)]
    counts = zip(names, facts.inducing_first, facts.inducing, facts.determined, strict=True)
    said = ", ".join(
        f"{name} {now} (at first {before}; the recording determines {share:.0%} of the values there)"
        for name, before, now, share in counts
    )
    why = {
        "enough": "that is enough",
        "most": f"more than {MOST_POINTS} are not tried",
        "work": "with more, a fit of so many rows would take too long",
        "worse": "twice as many had a lower evidence",
    }
    return [f"Inducing points: {said}; {why[facts.growth]}."]


def _inducing(posterior: FieldPosterior, rows: np.ndarray, facts: FitFacts) -> Check:
    names = [spec.name for spec in posterior.structure.groups(posterior.dimension)]
    shares = unexplained(posterior, rows.reshape(-1, rows.shape[-1]))
    title, worst = "unexplained prior variance", max(shares)
    poor = [f"{name} {share:.1%}" for name, share in zip(names, shares, strict=True) if share > SPARSE]
    full = [
        f"{name} {share:.0%}"
        for name, group, share in zip(names, posterior.groups, facts.determined, strict=True)
        if share > FULL and group.may_grow
    ]
    remedy = f"More of them may help ({MORE})."
    if facts.growth == "worse":
        remedy = "Twice as many had a lower evidence: compare with another structure or kernel, or record more."
    if poor:
        sentence = f"Inducing points leave prior variance unexplained where the recording goes: {', '.join(poor)}."
        return Check(CheckId.INDUCING, title, worst, SPARSE, "ATTENTION", sentence, remedy)
    if full:
        sentence = (
            f"Inducing points are too few for what the recording tells: it determines more than half of the values "
            f"there ({', '.join(full)}), so the field may be too smooth and the bands too narrow."
        )
        return Check(CheckId.INDUCING, title, worst, SPARSE, "ATTENTION", sentence, remedy)
    sentence = f"Inducing points suffice: {worst:.1e} of the prior variance stays unexplained (limit {SPARSE:g})."
    return Check(CheckId.INDUCING, title, worst, SPARSE, "PASS", sentence)
