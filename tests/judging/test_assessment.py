"""One judgement of a fit: what Python has is what is saved, what the command line prints and what the page shows."""

import dataclasses
import html
import itertools
import json
import re
import warnings

import numpy as np
import pytest

import sgpd
from sgpd.checks import Check, CheckReport
from sgpd.judging import Assessment, Scores, assess, verdict
from sgpd.judging.assessment import _fitted_duration, judge
from sgpd.judging.learned import Learned
from sgpd.models import Model
from sgpd.runs.layout import RunFolder
from tests.cli.conftest import write_recording
from tests.cli.running import sgpd_here as sgpd_here
from tests.guesses import guessed, oscillators
from tests.judging.test_overall import FITS, KEPT

SEVERITY = ("PASS", "ATTENTION", "NOT MEASURED", "FAIL")


def one(check_id: str, word: str) -> Check:
    return Check(check_id, check_id, 1.0, 2.0, word, f"{check_id}: {word}.", "Try.")


@pytest.fixture(scope="module")
def assessed(judged) -> Assessment:
    return judge(judged.model, KEPT, judged.held_out, 5.0)


def test_what_is_saved_is_read_back_equal(assessed):
    back = Assessment.from_dict(json.loads(json.dumps(assessed.to_dict())))
    assert back.to_dict() == assessed.to_dict()
    assert (back.scores, back.claims, back.overall) == (assessed.scores, assessed.claims, assessed.overall)
    assert str(back) == str(assessed)
    assert back.complete
    assert back.held_out is None  # forecasts are not saved


def test_a_period_that_is_not_a_number_is_read_back():
    nan = float("nan")
    still = Learned(("x",), ("",), np.zeros(1), np.ones(1), nan, nan)
    back = Learned.from_dict(json.loads(json.dumps(still.to_dict(), allow_nan=False)))
    assert str(back) == str(still)


def test_what_version_0_4_0_saved_is_read_and_known_to_be_less(assessed):
    old = {name: v for name, v in assessed.to_dict().items() if name not in ("questions", "equilibrium", "problems")}
    back = Assessment.from_dict(old)
    assert not back.complete
    assert back.checks == assessed.checks
    assert (back.checked_to, back.verdict) == (assessed.checked_to, assessed.verdict)


def test_the_word_for_all_is_never_better_than_a_check_whatever_is_claimed(judged):
    """A false PASS is the worst that can happen: `sgpd check` ends with 1 exactly where the word is FAIL."""
    free = guessed(oscillators(2), "free")
    words = itertools.product(SEVERITY, repeat=3)
    for (fits, steps, held), model in itertools.product(words, (judged.model, free)):
        model = dataclasses.replace(model, diagnosis=(one("residuals", fits),))
        scores = Scores((one("held_out_error", held), one("coverage", "PASS")), {"p": 0.1}, 1.0)
        claims = CheckReport((one("steps", steps),))
        found = verdict(model, claims, scores).verdict
        assert found == max((fits, steps, held), key=SEVERITY.index)
    assert verdict(model, claims).verdict in ("NOT MEASURED", "FAIL")


def test_without_rows_held_out_nothing_passes_but_the_claims_may(judged):
    model = dataclasses.replace(judged.model, diagnosis=FITS)
    found = judge(model, KEPT)
    assert found.verdict == "NOT MEASURED"
    assert not found.passed
    assert found.claims.passed
    assert judge(model, KEPT, judged.held_out).checks[-1].id == "coverage"


def test_ids_are_unique_and_a_check_is_found_by_its_own(assessed):
    ids = [check.id for check in assessed.checks]
    assert len(set(ids)) == len(ids)
    assert all(assessed[check.id] is check for check in assessed.checks)


def test_an_assessment_in_the_place_of_claims_counts_by_its_claims(judged, assessed):
    assert verdict(judged.model, assessed, judged.held_out) == assessed.overall


def test_the_usual_duration_is_that_of_the_longest_fitted_run(judged):
    assert _fitted_duration(judged.model) == judged.data.duration
    two = oscillators(2)
    parts = [two.runs[0].times[:12], two.runs[0].times], [two.runs[0].states[:12], two.runs[0].states]
    data = sgpd.Trajectories.from_arrays(*parts)
    assert _fitted_duration(guessed(data, "separable")) == data.duration


def test_warnings_are_told_and_kept_among_the_problems(judged, monkeypatch):
    def warning(self, *_, **__):
        warnings.warn("1 of 8 paths failed.", sgpd.SgpdWarning, stacklevel=2)
        return KEPT

    monkeypatch.setattr(type(judged.model), "check_claims", warning)
    with pytest.warns(sgpd.SgpdWarning, match="1 of 8"):
        found = assess(judged.model)
    assert found.problems == ("1 of 8 paths failed.",)


def shown(text: str) -> str:
    """Without line breaks and markup."""
    return " ".join(html.unescape(re.sub("<[^>]*>", "", text)).replace("\u00a0", " ").replace("`", "").split())


def test_python_folder_command_line_and_page_say_the_same_and_it_was_found_out_once(tmp_path, monkeypatch, sgpd_here):
    counted = []
    check_claims = Model.check_claims
    monkeypatch.setattr(
        Model, "check_claims", lambda self, *a, **k: counted.append("claims") or check_claims(self, *a, **k)
    )
    monkeypatch.chdir(tmp_path)
    write_recording(tmp_path / "air.csv")
    fit = sgpd_here("fit", "air.csv", "-s", "separable", "--holdout", "20%", "--unit", "t=s", "--out", "air")
    assert fit.code == 0
    assert sgpd_here("report", "air").code == 0
    assert sgpd_here("predict", "air", "--duration", "2", "--out", "f.csv").code == 0
    assert counted == ["claims"]  # by the fit alone

    folder = RunFolder.open("air")
    saved = folder.assessment()
    _, held_out = folder.recording()
    of_python = folder.model().check(held_out=held_out)
    assert of_python.to_dict() == saved.to_dict()

    checked = sgpd_here("check", "air", "--json", "--quiet")
    found = json.loads(checked.out)
    assert {name: found[name] for name in saved.to_dict()} == saved.to_dict()
    assert checked.code == (1 if saved.verdict == "FAIL" else 0)

    page, printed = shown((tmp_path / "air" / "report.html").read_text(encoding="utf-8")), shown(fit.out)
    for check in saved.checks:
        assert shown(check.words) in page
        assert shown(f"{check.verdict} {check.words}") in printed
    for row in saved.rows:
        assert shown(f"{row.question}{row.verdict}{row.sentence}") in page
    assert shown(f"{saved.verdict} {saved.sentence}") in page
    assert f"Verdict: {saved.sentence}" in printed
    assert f"learned {saved.learned}" in printed
