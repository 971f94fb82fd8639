"""One sentence on each difference from a published number, made from the numbers themselves."""

from sgpd.paper.output.summaries import ABSENT, Summary, mean_and_std, number, over_trials
from sgpd.paper.published import ENERGIES, L2_ERRORS, Energy, Errors
from sgpd.paper.results import METHODS, TASKS, Result, chosen

TRUTHS = {"exact": "exact truth", "published": "the published truth (explicit Euler with a short step)"}


def differences(results: list[Result], trials: int) -> list[str]:
    """The sentences, in the paper's order: L2 errors, then energies, then the Heun experiment."""
    pairs = [(task, method) for task in TASKS if task != "heun" for method in METHODS]
    found = {pair: chosen(results, task=pair[0], method=pair[1]) for pair in pairs}
    found = {pair: rows for pair, rows in found.items() if rows}
    errors = [_l2(*pair, rows, trials) for pair, rows in found.items()]
    energies = [_energy(*pair, rows, trials, ENERGIES[pair]) for pair, rows in found.items() if pair in ENERGIES]
    return errors + energies + _heun(results, trials)


def name(task: str, method: str) -> str:
    """`Rigid body, SGPD`."""
    title = TASKS[task].title
    return f"{title[0].upper()}{title[1:]}, {METHODS[method].title}"


def compare(ours: float, published: Errors) -> str:
    """`0.009 (2 %) lower than the published 0.421 (0.1), within its standard deviation`."""
    away = abs(ours - published.mean)
    place = "within" if away <= published.std else "outside"
    direction = "lower" if ours < published.mean else "higher"
    printed = mean_and_std(published.mean, published.std)
    times = ours / published.mean
    share = f"{100 * away / published.mean:.0f} %" if times < 10 else f"{number(times, 2)} times"
    return f"{number(away, 2)} ({share}) {direction} than the published {printed}, {place} its standard deviation"


def _setting(rows: list[Result], values: Summary, trials: int) -> str:
    truths = sorted({TRUTHS[row.row["truth"]] for row in rows})
    return f"on {' and '.join(truths)} ({values.trials(trials)})"


def _l2(task: str, method: str, rows: list[Result], trials: int) -> str:
    values, published = over_trials(rows, "l2"), L2_ERRORS.get((task, method))
    printed = "the paper prints no number for it"
    if published:
        printed = f"the paper prints {mean_and_std(published.mean, published.std)}"
    setting = _setting(rows, values, trials)
    selected = over_trials(rows, "l2_selected")
    own = f", {selected} of the draws that won the selection" if selected.values else ""
    if values.mean is None:
        return f"{name(task, method)}: no L2 error {setting}; {printed}."
    said = compare(values.mean, published) if published else printed
    return f"{name(task, method)}: L2 error {values}{own} {setting}; {said}."


def _energy(task: str, method: str, rows: list[Result], trials: int, published: Energy) -> str:
    error, std = over_trials(rows, "energy_error"), over_trials(rows, "energy_std")
    remark = f" ({published.remark})" if published.remark else ""
    printed = f"the paper prints {number(published.error)} and {number(published.std)}{remark}"
    head = f"Energy of the {TASKS[task].title}, {METHODS[method].title}"
    if error.mean is None:
        return f"{head}: none {_setting(rows, error, trials)}; {printed}."
    ours = f"error {number(error.mean)}, standard deviation {number(std.mean)} {_setting(rows, error, trials)}"
    return f"{head}: {ours}; {printed}; our error is {number(error.mean / published.error, 2)} times the published one."


def _heun(results: list[Result], trials: int) -> list[str]:
    sentences = []
    for method in METHODS:
        rows = chosen(results, task="heun", method=method)
        if rows:
            systems = [system for system in TASKS if chosen(rows, system=system)]
            said = "; ".join(f"{TASKS[s].title} {_steps(chosen(rows, system=s))}" for s in systems)
            title = heun_title(method)
            sentences.append(f"Other steps, {title}: the paper prints no number; L2 errors here: {said}.")
    return sentences


def heun_title(method: str) -> str:
    """In the Heun experiment our method is the Heun model."""
    return "Heun" if method == "sgpd" else METHODS[method].title


def at(row: dict) -> str:
    """The column of a row of the Heun experiment: its step, or that the solver chose it."""
    return "adaptive" if row.get("step") is None else f"step {row['step']:g}"


def by_step(rows: list[Result]) -> dict[str, Summary]:
    """L2 errors of one Heun model by prediction step, longest first, adaptive last."""
    ordered = sorted({row.row.get("step") or 0.0 for row in rows}, reverse=True)
    return {at({"step": s or None}): over_trials(chosen(rows, step=s or None), "l2") for s in ordered}


def _steps(rows: list[Result]) -> str:
    parts = []
    for place, values in by_step(rows).items():
        failed = f", {values.failed} of {values.run} failed" if values.failed else ""
        parts.append(f"{values if values.values else ABSENT} at {place}{failed}".replace("at adaptive", "adaptively"))
    return ", ".join(parts)
