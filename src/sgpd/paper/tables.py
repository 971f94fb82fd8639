"""The paper's tables in markdown, our numbers beside the published ones."""

from collections.abc import Iterable
from typing import TypedDict

from sgpd.paper.differences import at, by_step, differences, heun_title
from sgpd.paper.published import ENERGIES, L2_ERRORS
from sgpd.paper.results import METHODS, TASKS, Result, chosen, sorted_rows
from sgpd.paper.summaries import ABSENT, Summary, mean_and_std, number, over_seeds, summary

QUICK = "Quick run: training was shortened; these numbers are not at the paper's settings."


class About(TypedDict):
    """How the results came about."""

    command: str
    version: str
    seeds: int  # how many were asked for
    truth: str
    quick: bool
    features: list[str]  # sentences on the random features
    seconds: float
    notes: str  # markdown


def tables(results: list[Result], about: About) -> str:
    """Everything that is not a figure, as one markdown text."""
    seeds = about["seeds"]
    published = [
        l2_table(results, seeds),
        _energy_table(results, seeds, "non-separable", "Table 1b"),
        _energy_table(results, seeds, "rigid-body", "Energy table of the supplement"),
    ]
    others = [
        _structure_table(results),
        _coverage_table(results),
        _starts_table(results),
        _finite_difference_table(results, seeds),
        _heun_table(results),
    ]
    parts = [
        f"# Tables\n\n{_provenance(about)}",
        *(_section(about, *table) for table in published),
        _list("Differences from the published numbers", differences(results, seeds), "No result yet."),
        *(_section(about, *table) for table in others),
        _list("Failures", _failures(results), "None."),
        _list("Random features", about["features"], "Not said."),
    ]
    return "\n\n".join(parts) + "\n"


def _provenance(about: About) -> str:
    """One paragraph: command, version, seeds, truth, time."""
    minutes, seconds = divmod(round(about["seconds"]), 60)
    quick = f" {QUICK}" if about["quick"] else ""
    return (
        f"Made by `{about['command']}` with sgpd {about['version']}: {about['seeds']} seeds, truth: {about['truth']}, "
        f"{minutes} min {seconds} s of computing.{quick}"
    )


def _section(about: About, title: str, remark: str, header: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return f"## {title}\n\nNo result yet."
    said = f"{remark} {QUICK}" if about["quick"] else remark
    rule = [":--" if column in ("task", "method", "system", "seeds", "best") else "--:" for column in header]
    lines = ["| " + " | ".join(cells) + " |" for cells in [header, rule, *rows]]
    return f"## {title}\n\n{said}\n\n" + "\n".join(lines)


def _list(title: str, sentences: list[str], otherwise: str) -> str:
    return f"## {title}\n\n" + ("\n".join(f"- {sentence}" for sentence in sentences) or otherwise)


def _failures(results: list[Result]) -> list[str]:
    """What failed, with its seeds, and why."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for row in (row for row in sorted_rows(results) if row.get("failure")):
        heun = f" ({TASKS[row['system']].title}, {at(row)})" if row["task"] == "heun" else ""
        where = f"{_task(row['task'])}{heun}, {METHODS[row['method']].title}"
        seeds.setdefault((where, row["failure"]), []).append(str(row["seed"]))
    return [f"{where}, seed {', '.join(found)}: {sentence}" for (where, sentence), found in seeds.items()]


def _task(task: str) -> str:
    return f"{TASKS[task].label} {TASKS[task].title}"


def _groups(results: list[Result]) -> Iterable[tuple[list[str], list[Result]]]:
    """The first two cells and the rows of each task and method that was run."""
    for task in TASKS:
        for method in METHODS:
            rows = chosen(results, task=task, method=method)
            if rows and task != "heun":
                yield [_task(task), METHODS[method].title], rows


def l2_table(results: list[Result], seeds: int):
    """Every task and method of the paper, also those that were not run."""
    run = {(result.row["task"], result.row["method"]) for result in results}
    rows = []
    for task, method in ((task, method) for task in TASKS if task != "heun" for method in METHODS):
        published = L2_ERRORS.get((task, method))
        values = over_seeds(chosen(results, task=task, method=method), "l2")
        printed = mean_and_std(published.mean, published.std) if published else ABSENT
        if published or (task, method) in run or method == "hnn":
            rows.append([_task(task), METHODS[method].title, str(values), printed, values.seeds(seeds)])
    remark = "L2 error of the average of 5 rollouts: mean (standard deviation) over seeds."
    return "Table 1a: L2 errors", remark, ["task", "method", "ours", "paper", "seeds"], rows


def _energy_table(results: list[Result], seeds: int, task: str, where: str):
    rows = []
    for method in METHODS:
        found, published = chosen(results, task=task, method=method), ENERGIES.get((task, method))
        error, std = over_seeds(found, "energy_error"), over_seeds(found, "energy_std")
        printed = [number(published.error), number(published.std)] if published else [ABSENT, ABSENT]
        if found or published:
            rows.append([METHODS[method].title, str(error), printed[0], str(std), printed[1], error.seeds(seeds)])
    remarks = [ENERGIES[key].remark for key in ENERGIES if key[0] == task and ENERGIES[key].remark]
    remark = " ".join(
        ["Mean (standard deviation) over seeds; the paper prints one number each.", *(f"SGPD: {r}." for r in remarks)]
    )
    header = ["method", "energy error", "paper", "std. dev. in time", "paper", "seeds"]
    return f"{where}: energy of the {TASKS[task].title}", remark, header, rows


def _structure_table(results: list[Result]):
    rows = []
    for cells, found in _groups(results):
        worst = [over_seeds(found, key).worst for key in ("det_error", "symplectic_defect", "invariant_error")]
        rows.append([*cells, *(number(value, 2) for value in worst), _failed_draws(found)])
    header = ["task", "method", "determinant - 1", "symplectic defect", "invariant", "failed draws"]
    remark = "Largest deviation over seeds and draws; a failed draw did not stay finite or its stages did not converge."
    return "Structure", remark, header, rows


def _failed_draws(found: list[Result]) -> str:
    failed, paths = over_seeds(found, "failed_paths").values, over_seeds(found, "paths").values
    return f"{sum(failed):.0f} of {sum(paths):.0f}" if paths else ABSENT


def _coverage_table(results: list[Result]):
    rows = []
    for cells, found in _groups(results):
        covered = summary(None if (c := r.row.get("coverage95")) is None else 100 * c for r in found)
        rows.append([*cells, covered.range(), over_seeds(found, "seconds").range(2)])
    remark = "Mean (smallest to largest) over seeds; coverage is that of the 95 % bands over the whole horizon."
    return "Coverage and wall time", remark, ["task", "method", "coverage, %", "seconds"], rows


def _starts_table(results: list[Result]):
    rows = [
        [*cells, *(str(over_seeds(found, key)) for key in ("l2", "l2_best", "l2_noisy_start"))]
        for cells, found in _groups(results)
    ]
    remark = "L2 error, mean (standard deviation) over seeds; rollouts of all but the last column start without noise."
    header = ["task", "method", "average of 5 draws", "mean field", "from the noisy first point"]
    return "Best estimate and noisy start", remark, header, rows


def _finite_difference_table(results: list[Result], seeds: int):
    found = [r for r in results if r.row.get("l2_by_differences")]
    kinds = sorted({kind for r in found for kind in r.row["l2_by_differences"]})
    rows = []
    for task in TASKS:
        group = chosen(found, task=task)
        values = {kind: summary(r.row["l2_by_differences"].get(kind) for r in group) for kind in kinds}
        if group:
            rows.append([_task(task), *(_with_failed(values[kind]) for kind in kinds), _best(values)])
    remark = f"HNN, L2 error by the finite differences it is given, up to {seeds} seeds. Table 1a uses gradient."
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
    remark = "L2 error, mean (standard deviation) over seeds, of models trained at step 0.1; the paper prints none."
    return "Heun experiment", remark, ["system", "method", *steps], rows
