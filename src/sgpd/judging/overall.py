"""The verdict box: four questions, each a word and a sentence, and one sentence for all of them.

Two things are kept apart: that the structure is kept (by construction, and measured), and that it is true of the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgpd.checks import Check, CheckId, CheckReport, worst
from sgpd.checks.verdicts import Verdict
from sgpd.judging.held_out import HeldOut, Scores
from sgpd.models import Model
from sgpd.wording import number, share, with_unit

if TYPE_CHECKING:
    from sgpd.judging.assessment import Assessment

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


def verdict(model: Model, checks: "CheckReport | Assessment", held_out: HeldOut | Scores | None = None) -> Overall:
    """Judge a model by its diagnosis, by the measured claims of its structure and by what was held out of its fit."""
    claims = checks if isinstance(checks, CheckReport) else checks.claims
    scores = held_out.scores if isinstance(held_out, HeldOut) else held_out
    fits, keeps = _fits(model), _keeps(model, claims)
    bands, far = _bands(model, scores), _how_far(scores)
    # A structure that claims nothing cannot break its claim: there only its paths count, which may fail all the same.
    kept = keeps.verdict if model.preserves else claims.verdict
    word = worst((fits.verdict, kept, bands.verdict, far.verdict))
    return Overall((fits, keeps, bands, far), _sentence(model, fits, keeps, bands, scores), word)


def _said(checks: Sequence[Check]) -> tuple[Verdict, str]:
    """The worst verdict of some checks, the sentences that carry it, and one remedy."""
    word = worst(check.verdict for check in checks)
    carry = [check for check in checks if check.verdict == word]
    # Lost energy explains residuals and noise, so its remedy comes before theirs.
    root = max(carry, key=lambda check: check.id == CheckId.RECORDED_ENERGY)
    return word, " ".join([*(check.sentence for check in carry), root.remedy]).strip()


def _fits(model: Model) -> Row:
    if not model.diagnosis:
        why = "The fit was not compared with the recording, because this engine makes no diagnosis"
        return Row(FITS, "NOT MEASURED", f"{why}; to have one, fit with `--inference laplace`.")
    word, sentence = _said([check for check in model.diagnosis if check.id != CheckId.DRAWS])
    if word != "PASS":
        return Row(FITS, word, sentence)
    telling = (CheckId.RESIDUALS, CheckId.RECORDED_ENERGY)
    shown = [check.sentence for check in model.diagnosis if check.id in telling]
    return Row(FITS, word, " ".join(shown) or sentence)


def _keeps(model: Model, claims: CheckReport) -> Row:
    pair = f"{model.posterior.structure.name} with {model.integrator.name}"
    steps = [check.sentence for check in claims.checks if check.id == CheckId.STEPS]
    if not model.preserves:
        if claims.verdict == "FAIL":
            return Row(KEEPS, "FAIL", " ".join([*steps, "Shorten the step or the horizon."]))
        why = f"Nothing was tested, because {pair} claims nothing; to have physics kept, choose a structure."
        return Row(KEEPS, "NOT MEASURED", " ".join([why, *steps]))
    if claims.verdict != "PASS":
        return Row(KEEPS, *_said(claims.checks))
    kept = " and ".join(sorted(model.preserves))
    wander = [c.value for c in claims.checks if c.id == CheckId.ENERGY_WANDER and c.value is not None]
    wanders = f"; the energy wanders by {share(wander[0])} of the energy exchanged" if wander else ""
    return Row(KEEPS, "PASS", f"{pair[0].upper()}{pair[1:]} keeps {kept}, to rounding{wanders}.")


def _bands(model: Model, scores: Scores | None) -> Row:
    checks = [check for check in model.diagnosis if check.id == CheckId.DRAWS]
    checks += [check for check in scores.checks if check.id == CheckId.COVERAGE] if scores is not None else []
    if not checks:
        return Row(BANDS, "NOT MEASURED", f"The bands were not tested, because nothing was held out. {HOLD_OUT}")
    return Row(BANDS, *_said(checks))


def _how_far(scores: Scores | None) -> Row:
    if scores is None:
        why = "No forecast past the recording was tested, because nothing was held out."
        return Row(HOW_FAR, "NOT MEASURED", f"{why} {HOLD_OUT}")
    word, sentence = _said([check for check in scores.checks if check.id != CheckId.COVERAGE])
    return Row(HOW_FAR, word, f"{sentence} Beyond {_lead(scores)} forecasts are untested.")


def _lead(scores: Scores) -> str:
    return with_unit(number(scores.checked_to), scores.time_unit)


def _sentence(model: Model, fits: Row, keeps: Row, bands: Row, scores: Scores | None) -> str:
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
    elif scores is None:
        far = "nothing past the recording was tested"
    else:
        far = f"forecasts are untested beyond {_lead(scores)} ahead"
    return f"{kept}; {true}; {far}."
