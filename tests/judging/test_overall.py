"""The verdict box: the worst of the claims made, in words, and what was not measured never passes."""

import dataclasses

import numpy as np
import pytest

from sgpd.checks import Check, CheckReport
from sgpd.judging import HeldOut, verdict
from tests.guesses import guessed, oscillators

KEPT = CheckReport((Check("determinant", "determinant", 1e-16, 1e-10, "PASS", "Determinant: fine."),))
BROKEN = CheckReport((Check("determinant", "determinant", 0.1, 1e-10, "FAIL", "Determinant: off.", "Shorter h."),))
FITS = (Check("residuals", "residuals", 0.0, 0.2, "PASS", "Residuals are white."),)
LOSES = (*FITS, Check("recorded_energy", "trend", 9.0, 5.0, "ATTENTION", "The energy falls.", "Use 'free'."))


def held_out(judged, pit: np.ndarray, samples: float) -> HeldOut:
    real = judged.held_out
    return HeldOut(real.data, real.forecasts, real.leads, (pit,), samples, np.array([0.1, 0.1]))


@pytest.fixture
def calibrated(judged):
    shape = judged.held_out.pit[0].shape
    return held_out(judged, np.linspace(0.001, 0.999, np.prod(shape)).reshape(shape), 40.0)


def fitted(judged, diagnosis):
    return dataclasses.replace(judged.model, diagnosis=diagnosis)


def test_all_is_well_only_when_all_was_measured(judged, calibrated):
    found = verdict(fitted(judged, FITS), KEPT, calibrated)
    assert [row.verdict for row in found.rows] == ["PASS"] * 4
    assert found.verdict == "PASS"
    assert [row.question for row in found.rows] == [
        "Fits the recording",
        "Keeps its physics",
        "Bands can be trusted",
        "How far",
    ]


def test_nothing_held_out_is_not_measured_and_says_what_to_do(judged):
    found = verdict(fitted(judged, FITS), KEPT)
    assert found.verdict == "NOT MEASURED"
    assert "--holdout" in found["Bands can be trusted"].sentence
    assert "nothing past the recording was tested" in found.sentence


def test_a_structure_that_is_kept_may_still_not_be_that_of_the_recording(judged, calibrated):
    found = verdict(fitted(judged, LOSES), KEPT, calibrated)
    assert found["Keeps its physics"].verdict == "PASS"
    assert found["Fits the recording"].verdict == "ATTENTION"
    assert found["Fits the recording"].sentence == "The energy falls. Use 'free'."
    assert found.sentence.startswith("The physics claimed is kept; it may not be the physics of this recording;")


def test_a_broken_claim_and_bands_that_are_too_narrow_fail(judged, calibrated):
    broken = verdict(fitted(judged, FITS), BROKEN, calibrated)
    assert broken.verdict == broken["Keeps its physics"].verdict == "FAIL"
    assert "not kept" in broken.sentence
    narrow = held_out(judged, np.full(judged.held_out.pit[0].shape, 0.999), 40.0)
    found = verdict(fitted(judged, FITS), KEPT, narrow)
    assert found.verdict == found["Bands can be trusted"].verdict == "FAIL"
    assert "do not use its bands" in found.sentence


def test_too_few_looks_do_not_pass(judged):
    few = held_out(judged, np.full(judged.held_out.pit[0].shape, 0.5), 5.0)
    assert verdict(fitted(judged, FITS), KEPT, few)["Bands can be trusted"].verdict == "NOT MEASURED"


def test_a_structure_without_claims_is_not_judged_by_them_and_an_engine_without_diagnosis_says_so(calibrated):
    model = guessed(oscillators(2), "free")
    assert verdict(model, model.check(1.0, paths=2))["Fits the recording"].verdict == "NOT MEASURED"
    model = dataclasses.replace(model, diagnosis=FITS)
    found = verdict(model, model.check(1.0, paths=2), calibrated)
    assert found["Keeps its physics"].verdict == "NOT MEASURED"
    assert found.verdict == "PASS"
    assert found.sentence.startswith("No physics is claimed;")
