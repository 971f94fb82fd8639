"""The paper's tables in markdown, our numbers beside the published ones."""

from collections.abc import Callable, Iterable
from typing import TypedDict

from sgpd.paper.output.differences import at, by_step, differences, heun_title
from sgpd.paper.output.summaries import ABSENT, Summary, mean_and_std, number, over_trials, summary
from sgpd.paper.published import ENERGIES, L2_ERRORS
from sgpd.paper.results import METHODS, TASKS, Result, chosen, sorted_rows
from sgpd.paper.settings import Reading, Setting, Source, changes, setting_of

QUICK = "Quick run: training was shortened; these numbers are not at the paper's settings."

ENOUGH = 5  # trials for a distribution
PRINTED = Source.PRINTED


def _rates(setting: Setting) -> str:
    return ", ".join(f"{rate:g}" if not start else f"{rate:g} after {start}" for start, rate in setting.rates)


def _likelihood(setting: Setting) -> str:
    return f"{setting.likelihood_factor:g}, of {'all windows' if setting.estimated else 'the batch'}"


# Column: the parts of a setting, and what to say of them.
SHOWN: dict[str, tuple[tuple[str, ...], Callable[[Setting], str]]] = {
    "learning rates, epochs": (("rates",), _rates),
    "epochs": (("epochs",), lambda s: f"{s.epochs}"),
    "selection among last": (("select_last",), lambda s: f"{s.select_last}"),
    "rows a window": (("rows",), lambda s: f"{s.rows}"),
    "factor of the log density": (("likelihood_factor", "estimated"), _likelihood),
    "factor of the KL": (("kl_factor",), lambda s: f"{s.kl_factor:g}"),
    "integrator": (("integrator",), lambda s: s.integrator),
    "relative jitter": (("jitter",), lambda s: f"{s.jitter:g}"),
}
WORDS = ("task", "method", "draws", "system", "trials", "best", *SHOWN)  # columns that are not numbers


class About(TypedDict):
    """How the results came about."""

    command: str
    version: str
    recordings: int  # how many were asked for
    trainings: int  # on each recording
    truth: str
    quick: bool
    settings: list[tuple[str, str]]  # that were used
    reading: Reading  # of them
    features: list[str]  # sentences on the random features
    seconds: float
    notes: str  # markdown


def tables(results: list[Result], about: About) -> str:
    """Everything that is not a figure, as one markdown text."""
    trials = asked(about)
    published = [
        l2_table(results, trials),
        _distribution_table(results),
        _energy_table(results, trials, "non-separable", "Table 1b"),
        _energy_table(results, trials, "rigid-body", "Energy table of the supplement"),
    ]
    others = [
        _structure_table(results),
        _coverage_table(results),
        _starts_table(results),
        _finite_difference_table(results, trials),
        _heun_table(results),
        _settings_table(about),
    ]
    parts = [
        f"# Tables\n\n{_provenance(about)}",
        *(_section(about, *table) for table in published),
        _list("Differences from the published numbers", differences(results, trials), "No result yet."),
        *(_section(about, *table) for table in others),
        _list("Failures", _failures(results), "None."),
        _list("Random features", about["features"], "Not said."),
    ]
    return "\n\n".join(parts) + "\n"


def _provenance(about: About) -> str:
    """One paragraph: command, version, trials, truth, time."""
    minutes, seconds = divmod(round(about["seconds"]), 60)
    quick = f" {QUICK}" if about["quick"] else ""
    return (
        f"Made by `{about['command']}` with sgpd {about['version']}: {about['trainings']} trainings on each of "
        f"{about['recordings']} recordings, truth: {about['truth']}, settings: {about['reading'].settings}, "
        f"jitter: {about['reading'].jitter}, "
        f"{minutes} min {seconds} s of computing.{quick}"
    )


def asked(about: About) -> int:
    """How many trials were asked for."""
    return about["recordings"] * about["trainings"]


def _section(about: About, title: str, remark: str, header: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return f"## {title}\n\nNo result yet."
    said = f"{remark} {QUICK}" if about["quick"] else remark
    rule = [":--" if column in WORDS else "--:" for column in header]
    lines = ["| " + " | ".join(cells) + " |" for cells in [header, rule, *rows]]
    return f"## {title}\n\n{said}\n\n" + "\n".join(lines)


def _list(title: str, sentences: list[str], otherwise: str) -> str:
    return f"## {title}\n\n" + ("\n".join(f"- {sentence}" for sentence in sentences) or otherwise)


def _failures(results: list[Result]) -> list[str]:
    """What failed, in which trials (recording/training), and why."""
    trials: dict[tuple[str, str], list[str]] = {}
    for row in (row for row in sorted_rows(results) if row.get("failure")):
        heun = f" ({TASKS[row['system']].title}, {at(row)})" if row["task"] == "heun" else ""
        where = f"{_task(row['task'])}{heun}, {METHODS[row['method']].title}"
        trials.setdefault((where, row["failure"]), []).append(f"{row['recording']}/{row['training']}")
    return [f"{where}, trial {', '.join(found)}: {sentence}" for (where, sentence), found in trials.items()]


def _task(task: str) -> str:
    return f"{TASKS[task].label} {TASKS[task].title}"


def _groups(results: list[Result]) -> Iterable[tuple[list[str], list[Result]]]:
    """The first two cells and the rows of each task and method that was run."""
    for task in TASKS:
        for method in METHODS:
            rows = chosen(results, task=task, method=method)
            if rows and task != "heun":
                yield [_task(task), METHODS[method].title], rows


def l2_table(results: list[Result], trials: int):
    """Every task and method of the paper, also those that were not run."""
    run = {(result.row["task"], result.row["method"]) for result in results}
    rows = []
    for task, method in ((task, method) for task in TASKS if task != "heun" for method in METHODS):
        published = L2_ERRORS.get((task, method))
        if not (published or (task, method) in run or method == "hnn"):
            continue
        found = chosen(results, task=task, method=method)
        fresh, selected = over_trials(found, "l2"), over_trials(found, "l2_selected")
        printed = mean_and_std(published.mean, published.std) if published else ABSENT
        spreads = [number(fresh.recording_std, 2), number(fresh.training_std, 2)]
        cells = [_task(task), METHODS[method].title, str(fresh), str(selected), printed, *spreads]
        rows.append([*cells, fresh.trials(trials)])
    remark = (
        "L2 error of the average of 5 rollouts, mean (standard deviation) over all trials: of fresh draws, which is "
        "what a user gets, and of the very five draws that won the model selection, which is what the paper computes. "
        "Then the standard deviation of fresh draws' error over recordings (of each one's mean) and over trainings on "
        "one recording."
    )
    header = ["task", "method", "fresh draws", "selected draws", "paper", "recordings", "trainings", "trials"]
    return "Table 1a: L2 errors", remark, header, rows


def _distribution_table(results: list[Result]):
    rows = []
    for (task, method), published in L2_ERRORS.items():
        for draws, key in (("fresh", "l2"), ("selected", "l2_selected")):
            found = over_trials(chosen(results, task=task, method=method), key)
            if len(found.values) < ENOUGH:
                continue
            low, median, high = (found.quantile(share) for share in (0.1, 0.5, 0.9))
            below = sum(value < published.mean for value in found.values)
            quantiles = [number(value) for value in (min(found.values), low, median, high, max(found.values))]
            share = f"{below} of {len(found.values)}"
            rows.append([_task(task), METHODS[method].title, draws, *quantiles, number(published.mean), share])
    remark = "L2 errors of all trials: smallest, quantiles, largest; and how many lie below the published mean."
    header = ["task", "method", "draws", "least", "10 %", "median", "90 %", "most", "paper", "below"]
    return "Distribution over trials", remark, header, rows


def _settings_table(about: About):
    rows = []
    for key in about["settings"]:
        setting, changed = setting_of(key, about["reading"]), changes(key, about["reading"])
        source = lambda names: ", ".join(dict.fromkeys(changed[n][1] if n in changed else PRINTED for n in names))  # noqa: B023
        name = f"Heun, {key[1]}" if key[0] == "heun" else f"{key[0]}, {METHODS[key[1]].title}"
        rows.append([name, *(f"{say(setting)} ({source(names)})" for names, say in SHOWN.values())])
    remark = (
        "How the models were trained, and where each choice comes from: printed in the paper, read in the authors' "
        "program, inferred (the program has no script for it; the habit of those it has), or ours. Everything else is "
        "as printed."
    )
    return "Settings", remark, ["system", *SHOWN], rows


def _energy_table(results: list[Result], trials: int, task: str, where: str):
    rows = []
    for method in METHODS:
        found, published = chosen(results, task=task, method=method), ENERGIES.get((task, method))
        error, std = over_trials(found, "energy_error"), over_trials(found, "energy_std")
        printed = [number(published.error), number(published.std)] if published else [ABSENT, ABSENT]
        if found or published:
            rows.append([METHODS[method].title, str(error), printed[0], str(std), printed[1], error.trials(trials)])
    remarks = [ENERGIES[key].remark for key in ENERGIES if key[0] == task and ENERGIES[key].remark]
    remark = " ".join(
        ["Mean (standard deviation) over trials; the paper prints one number each.", *(f"SGPD: {r}." for r in remarks)]
    )
    header = ["method", "energy error", "paper", "std. dev. in time", "paper", "trials"]
    return f"{where}: energy of the {TASKS[task].title}", remark, header, rows


def _structure_table(results: list[Result]):
    rows = []
    for cells, found in _groups(results):
        worst = [over_trials(found, key).worst for key in ("det_error", "symplectic_defect", "invariant_error")]
        rows.append([*cells, *(number(value, 2) for value in worst), _failed_draws(found)])
    header = ["task", "method", "determinant - 1", "symplectic defect", "invariant", "failed draws"]
    remark = "Largest deviation of any draw; a failed one did not stay finite, or its stages did not converge."
    return "Structure", remark, header, rows


def _failed_draws(found: list[Result]) -> str:
    failed, paths = over_trials(found, "failed_paths").values, over_trials(found, "paths").values
    return f"{sum(failed):.0f} of {sum(paths):.0f}" if paths else ABSENT


def _coverage_table(results: list[Result]):
    rows = []
    for cells, found in _groups(results):
        covered = summary(None if (c := r.row.get("coverage95")) is None else 100 * c for r in found)
        rows.append([*cells, covered.range(), over_trials(found, "seconds").range(2)])
    remark = "Mean (smallest to largest) over trials; coverage is that of the 95 % bands over the whole horizon."
    return "Coverage and wall time", remark, ["task", "method", "coverage, %", "seconds"], rows


def _starts_table(results: list[Result]):
    rows = [
        [*cells, *(str(over_trials(found, key)) for key in ("l2", "l2_best", "l2_noisy_start"))]
        for cells, found in _groups(results)
    ]
    remark = "L2 error, mean (standard deviation) over trials; rollouts of all but the last column start without noise."
    header = ["task", "method", "average of 5 draws", "mean field", "from the noisy first point"]
    return "Best estimate and noisy start", remark, header, rows


def _finite_difference_table(results: list[Result], trials: int):
    found = [r for r in results if r.row.get("l2_by_differences")]
    kinds = sorted({kind for r in found for kind in r.row["l2_by_differences"]})
    rows = []
    for task in TASKS:
        group = chosen(found, task=task)
        values = {kind: summary(r.row["l2_by_differences"].get(kind) for r in group) for kind in kinds}
        if group:
            rows.append([_task(task), *(_with_failed(values[kind]) for kind in kinds), _best(values)])
    remark = f"HNN, L2 error by the finite differences it is given, up to {trials} trials. Table 1a uses gradient."
    return "HNN by finite differences", remark, ["task", *kinds, "best"], rows


def _best(values: dict[str, Summary]) -> str:
    means = {kind: s.mean for kind, s in values.items() if s.mean is not None}
    return min(means, key=lambda kind: means[kind], default=ABSENT)


def _with_failed(values: Summary) -> str:
    return f"{values}; {values.failed} of {values.run} failed" if values.failed else str(values)


def _heun_table(results: list[Result]):
    steps = list(by_step(chosen(results, task="heun")))
    rows = []
    for system in TASKS:
        for method in METHODS:
            found = by_step(chosen(results, task="heun", system=system, method=method))
            if found:
                cells = [_with_failed(found[step]) if step in found else ABSENT for step in steps]
                rows.append([TASKS[system].title, heun_title(method), *cells])
    remark = "L2 error, mean (standard deviation) over trials, of models trained at step 0.1; the paper prints none."
    return "Heun experiment", remark, ["system", "method", *steps], rows
