"""Tables print hand-computed numbers, count what failed, and survive whatever is missing."""

import re

import pytest

from sgpd.paper.output.tables import QUICK, tables
from sgpd.paper.published import ENERGIES, L2_ERRORS
from sgpd.paper.results import Result
from tests.paper.made_up import ABOUT, everything, heun, row


def table(text: str, title: str) -> list[list[str]]:
    """The cells of a section's table, without its header."""
    section = text.split(f"## {title}")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def rows(*found: dict) -> list[Result]:
    return [Result(r, {}) for r in found]


def pendulum(values, method="sgpd", **more) -> list[Result]:
    return rows(*(row("pendulum", method, seed, l2=value, **more) for seed, value in enumerate(values)))


def sentence(text: str, start: str) -> str:
    found = [line for line in text.splitlines() if line.startswith(f"- {start}")]
    assert len(found) == 1, found
    return found[0]


def test_table_1a_has_the_mean_and_the_sample_std_beside_the_published_numbers():
    """0.4, 0.5, 0.6: mean 0.5, std 0.1 with divisor n - 1."""
    cells = table(tables(pendulum([0.4, 0.5, 0.6]), ABOUT | {"recordings": 3}), "Table 1a")
    assert cells[0] == ["(i) pendulum", "SGPD", "0.5 (0.1)", "-", "0.421 (0.1)", "0.1", "-", "3 of 3 trials"]
    assert ["(iv) rigid body", "HNN", *["-"] * 6] in cells
    assert len(cells) == 12


def test_both_kinds_of_spread_and_the_selected_draws_stand_beside_the_fresh_ones():
    """Recordings 0.3 ± 0.1 and 0.6 ± 0.1: their means differ by 0.3, std 0.3/√2; trainings 0.2/√2 on each."""
    errors = {(0, 0): 0.2, (0, 1): 0.4, (1, 0): 0.5, (1, 1): 0.7}
    ours = rows(
        *(
            row("pendulum", "sgpd", r, l2=value, l2_selected=value / 2) | {"training": t}
            for (r, t), value in errors.items()
        )
    )
    text = tables(ours, ABOUT | {"recordings": 2, "trainings": 2})
    cells = table(text, "Table 1a")[0]
    assert cells[2:] == ["0.45 (0.21)", "0.225 (0.1)", "0.421 (0.1)", "0.21", "0.14", "4 of 4 trials"]
    assert "0.225 (0.1) of the draws that won the selection" in sentence(text, "Pendulum, SGPD")
    assert "No result yet." in text.split("## Distribution")[1].split("\n## ")[0]


def test_the_distribution_has_quantiles_and_the_share_below_the_published_mean():
    cells = table(tables(pendulum([0.1, 0.2, 0.3, 0.4, 0.5]), ABOUT), "Distribution")
    assert cells == [["(i) pendulum", "SGPD", "fresh", "0.1", "0.14", "0.3", "0.46", "0.5", "0.421", "4 of 5"]]


def test_every_choice_is_named_with_its_source():
    cells = {line[0]: line[1:] for line in table(tables([], ABOUT), "Settings")}
    assert cells["pendulum, SGPD"] == [
        "0.01 (printed)",
        "149 (printed)",
        "149 (printed)",
        "11 (read in the program)",
        "20, of the batch (read in the program)",
        "1e-06 (printed)",
        "symplectic-euler-q (read in the program)",
        "0.01 (ours)",
    ]
    assert cells["rigid-body, SGPD"][0] == "0.01, 0.001 after 3, 0.0001 after 5, 1e-05 after 7 (inferred)"
    assert cells["Heun, pendulum"][6] == "heun (printed)"


def test_failed_and_open_trials_are_counted():
    text = tables(pendulum([0.4, None, 0.6, None]), ABOUT)
    assert table(text, "Table 1a")[0][2:] == [
        "0.5 (0.14)",
        "-",
        "0.421 (0.1)",
        "0.14",
        "-",
        "2 of 5 trials; 2 failed; 1 not run",
    ]
    assert "2 of 5 trials; 2 failed; 1 not run" in sentence(text, "Pendulum, SGPD")


def test_one_trial_has_no_std():
    assert table(tables(pendulum([0.4]), ABOUT | {"recordings": 1}), "Table 1a")[0][2] == "0.4 (-)"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.41, 0.42], "0.006 (1 %) lower than the published 0.421 (0.1), within its standard deviation"),
        ([0.2, 0.3], "0.17 (41 %) lower than the published 0.421 (0.1), outside its standard deviation"),
        ([42.1, 42.1], "42 (1e+02 times) higher than the published 0.421 (0.1), outside its standard deviation"),
        ([0.6, 0.7], "0.23 (54 %) higher than the published 0.421 (0.1), outside its standard deviation"),
        ([None, None], "no L2 error on exact truth (0 of 2 trials; 2 failed); the paper prints 0.421 (0.1)"),
    ],
)
def test_a_difference_is_said_with_its_size_and_place(values, said):
    text = tables(pendulum(values), ABOUT | {"recordings": 2})
    assert said in sentence(text, "Pendulum, SGPD")
    assert "on exact truth" in sentence(text, "Pendulum, SGPD")


def test_the_published_truth_is_named_and_our_own_method_has_no_published_number():
    text = tables(pendulum([0.4, 0.5], "default", truth="published"), ABOUT | {"recordings": 2})
    said = sentence(text, "Pendulum, SGPD (default fit)")
    assert "on the published truth (explicit Euler with a short step)" in said
    assert "the paper prints no number for it" in said


def test_energies_stand_beside_the_published_ones_with_the_missing_digit_said():
    ours = rows(
        *(row("non-separable", "sgpd", s, energy_error=e, energy_std=0.002) for s, e in enumerate((2e-4, 4e-4)))
    )
    text = tables(ours, ABOUT | {"recordings": 2})
    assert table(text, "Table 1b")[0] == ["SGPD", "0.0003 (0.00014)", "0.0009", "0.002 (0)", "-", "2 of 2 trials"]
    assert "digit before 10^-3 is missing in print" in text.split("## Table 1b")[1].split("|")[0]
    said = sentence(text, "Energy of the non-separable system, SGPD")
    assert "error 0.0003, standard deviation 0.002" in said
    assert "our error is 0.33 times the published one" in said
    assert "SGPD | - | 0.007 | - | 0.01 | -" in text


def test_structure_shows_the_worst_trial_and_all_failed_draws():
    ours = rows(
        row("rigid-body", "sgpd", 0, det_error=None, invariant_error=1e-12, failed_paths=1),
        row("rigid-body", "sgpd", 1, det_error=None, invariant_error=3e-10, failed_paths=2),
    )
    assert table(tables(ours, ABOUT), "Structure")[0][2:] == ["-", "-", "3e-10", "3 of 10"]


def test_coverage_and_time_show_mean_and_range():
    ours = rows(*(row("pendulum", "sgpd", s, coverage95=c, seconds=10.0 * (s + 1)) for s, c in enumerate((0.8, 0.9))))
    assert table(tables(ours, ABOUT), "Coverage")[0][2:] == ["85 (80 to 90)", "15 (10 to 20)"]


def test_best_estimate_and_noisy_start():
    ours = rows(*(row("pendulum", "sgpd", s, l2=0.4, l2_best=0.2 + 0.2 * s) for s in range(2)))
    assert table(tables(ours, ABOUT), "Best estimate")[0][2:] == ["0.4 (0)", "0.3 (0.14)", "-"]


def test_the_best_finite_differences_are_named():
    kinds = [{"gradient": 1.0, "forward": 2.0, "midpoint": None}, {"gradient": 2.0, "forward": 0.5, "midpoint": 1.9}]
    ours = rows(*(row("pendulum", "hnn", s, l2_by_differences=k) for s, k in enumerate(kinds)))
    cells = table(tables(ours, ABOUT), "HNN by finite")[0]
    assert cells[1:] == ["1.25 (1.1)", "1.5 (0.71)", "1.9 (-); 1 of 2 failed", "forward"]


def test_the_heun_table_has_a_column_for_each_step_and_counts_failures():
    text = tables(heun(2), ABOUT)
    assert "| system | method | step 0.1 | step 0.05 | step 0.005 | adaptive |" in text
    cells = table(text, "Heun experiment")
    assert [line[1] for line in cells] == ["Heun", "Euler", "Heun", "Euler"]
    assert cells[1][-1] == "-; 2 of 2 failed"
    assert "- adaptively, 2 of 2 failed" in sentence(text, "Other steps, Euler")
    assert "(pendulum, adaptive), Euler, trial 0/0, 1/0: No rollout stayed finite." in text


def test_there_is_one_sentence_for_each_published_number_that_was_run():
    listed = tables(everything(), ABOUT).split("## Differences")[1].split("\n## ")[0]
    assert listed.count("\n- ") == len(L2_ERRORS) + len(ENERGIES) + 2


def test_a_quick_run_says_so_at_every_table():
    text = tables(everything(), ABOUT | {"quick": True})
    assert text.count(QUICK) == 1 + text.count("|\n| :--")
    assert QUICK not in tables(everything(), ABOUT)


def test_no_null_stops_anything():
    bare = rows(*({k: None for k in r.row} | {k: r.row[k] for k in KEYS if k in r.row} for r in everything()))
    text = tables(bare, ABOUT)
    assert "None" not in text.replace("None.", "")
    assert not re.search(r"\b(nan|inf)\b", text)
    assert "No result yet." in tables([], ABOUT)


KEYS = ("task", "method", "recording", "training", "truth", "system", "step", "solver")
