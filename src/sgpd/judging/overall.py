"""The verdict box: four questions, each a word and a sentence, and one sentence for all of them.

Two things are kept apart: that the structure is kept (by construction, and measured), and that it is true of the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sgpd.checks import Check, CheckReport
from sgpd.checks.verdicts import Verdict
from sgpd.judging import HeldOut
from sgpd.models import Model
from sgpd.wording import number, share, with_unit

FITS, KEEPS, BANDS, HOW_FAR = "Fits the recording", "Keeps its physics", "Bands can be trusted", "How far"
HOLD_OUT = "For a test, fit again with `--holdout 20%`."


@dataclass(frozen=True)
class Row:
    """One question of the box."""

    question: str
    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class Overall:
    """The box: `verdict` is the worst word of the claims made, `sentence` what to make of the model."""

    rows: tuple[Row, ...]
    sentence: str
    verdict: Verdict

    def __getitem__(self, question: str) -> Row:
        return {row.question: row for row in self.rows}[question]


def verdict(model: Model, checks: CheckReport, held_out: HeldOut | None = None) -> Overall:
    """Judge a model by its diagnosis, by the measured claims of its structure and by what was held out of its fit."""
    fits, keeps = _fits(model), _keeps(model, checks)
    bands, far = _bands(model, held_out), _how_far(held_out)
    # A structure that claims nothing cannot break its claim, and does not decide the word for all.
    claimed = (fits, keeps, bands, far) if model.preserves else (fits, bands, far)
    worst = _worst([row.verdict for row in claimed])
    return Overall((fits, keeps, bands, far), _sentence(model, fits, keeps, bands, held_out), worst)


def checked_to(held_out: HeldOut | None) -> float:
    """The longest time past its start to which a forecast was compared with a recording; 0 where none was."""
    return 0.0 if held_out is None else held_out.checked_to


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    return CheckReport(tuple(Check("", "", None, None, word, "") for word in verdicts)).verdict


def _said(checks: Sequence[Check]) -> tuple[Verdict, str]:
    """The worst verdict of some checks, the sentences that carry it, and one remedy."""
    worst = _worst([check.verdict for check in checks])
    carry = [check for check in checks if check.verdict == worst]
    # Lost energy explains residuals and noise, so its remedy comes before theirs.
    root = max(carry, key=lambda check: check.id == "recorded_energy")
    return worst, " ".join([*(check.sentence for check in carry), root.remedy]).strip()


def _fits(model: Model) -> Row:
    if not model.diagnosis:
        why = "The fit was not compared with the recording, because this engine makes no diagnosis"
        return Row(FITS, "NOT MEASURED", f"{why}; to have one, fit with `--inference laplace`.")
    worst, sentence = _said([check for check in model.diagnosis if check.id != "draws"])
    if worst != "PASS":
        return Row(FITS, worst, sentence)
    shown = [check.sentence for check in model.diagnosis if check.id in ("residuals", "recorded_energy")]
    return Row(FITS, worst, " ".join(shown) or sentence)


def _keeps(model: Model, checks: CheckReport) -> Row:
    pair = f"{model.posterior.structure.name} with {model.integrator.name}"
    steps = [check.sentence for check in checks.checks if check.id == "steps"]
    if not model.preserves:
        if checks.verdict == "FAIL":
            return Row(KEEPS, "FAIL", " ".join([*steps, "Shorten the step or the horizon."]))
        why = f"Nothing was tested, because {pair} claims nothing; to have physics kept, choose a structure."
        return Row(KEEPS, "NOT MEASURED", " ".join([why, *steps]))
    if checks.verdict != "PASS":
        return Row(KEEPS, *_said(checks.checks))
    kept = " and ".join(sorted(model.preserves))
    wander = [c.value for c in checks.checks if c.id == "energy_wander" and c.value is not None]
    wanders = f"; the energy wanders by {share(wander[0])} of the energy exchanged" if wander else ""
    return Row(KEEPS, "PASS", f"{pair[0].upper()}{pair[1:]} keeps {kept}, to rounding{wanders}.")


def _bands(model: Model, held_out: HeldOut | None) -> Row:
    checks = [check for check in model.diagnosis if check.id == "draws"]
    checks += [check for check in held_out.checks if check.id == "coverage"] if held_out is not None else []
    if not checks:
        return Row(BANDS, "NOT MEASURED", f"The bands were not tested, because nothing was held out. {HOLD_OUT}")
    return Row(BANDS, *_said(checks))


def _how_far(held_out: HeldOut | None) -> Row:
    if held_out is None:
        why = "No forecast past the recording was tested, because nothing was held out."
        return Row(HOW_FAR, "NOT MEASURED", f"{why} {HOLD_OUT}")
    worst, sentence = _said([check for check in held_out.checks if check.id != "coverage"])
    return Row(HOW_FAR, worst, f"{sentence} Beyond {_lead(held_out)} forecasts are untested.")


def _lead(held_out: HeldOut) -> str:
    return with_unit(number(held_out.checked_to), held_out.data.time_unit)


def _sentence(model: Model, fits: Row, keeps: Row, bands: Row, held_out: HeldOut | None) -> str:
    kept = {
        "PASS": "The physics claimed is kept",
        "ATTENTION": "The physics claimed is kept, with reservations",
        "FAIL": "The physics claimed is not kept",
    }.get(keeps.verdict, "The physics claimed was only partly tested")
    if not model.preserves:
        kept = "No physics is claimed"
    true = {
        "PASS": "the model fits the recording",
        "NOT MEASURED": "whether it is that of the recording was not tested",
    }.get(fits.verdict, "it may not be the physics of this recording" if model.preserves else "the fit has blemishes")
    if bands.verdict == "FAIL":
        far = "do not use its bands"
    elif held_out is None:
        far = "nothing past the recording was tested"
    else:
        far = f"forecasts are untested beyond {_lead(held_out)} ahead"
    return f"{kept}; {true}; {far}."
