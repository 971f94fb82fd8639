"""The figure of the Heun experiment: fields taken to other steps than the one they were trained at."""

from matplotlib import rc_context

from sgpd.paper.output.differences import at, heun_title
from sgpd.paper.output.panels import (
    STYLE,
    SYSTEMS,
    TRUTH,
    Drawn,
    first_trial,
    grid,
    l2,
    legend,
    line,
    thin,
    training_end,
    trials_of,
)
from sgpd.paper.results import METHODS, TASKS, Result, chosen


@rc_context(STYLE)
def heun(results: list[Result]) -> Drawn | None:
    """Predictions of the first trial at other steps than the trained one."""
    first = first_trial(results, "heun")
    steps = sorted({r.row["step"] or 0.0 for r in first}, reverse=True)
    found = {(s, m): chosen(first, system=s, method=m) for s in SYSTEMS for m in ("euler", "sgpd")}
    found = {key: rows for key, rows in found.items() if rows}
    if not found:
        return None
    figure, panels = grid(len(found) * len(steps), columns=len(steps), height=1.4)
    places = [(system, method, step or None) for system, method in found for step in steps]
    for axes, (system, method, step) in zip(panels, places, strict=True):
        _prediction(axes, system, method, {"step": step}, chosen(found[system, method], step=step))
    legend(figure, panels)
    caption = (
        "Coordinate q of models trained at step 0.1, at other steps: average of 5 rollouts. The view is one and "
        f"a half times the truth's range, whatever a method does beyond. {trials_of(first)}"
    )
    return Drawn(figure, "Heun against Euler at other steps", caption, _transfer(found))


def _prediction(axes, system: str, method: str, place: dict, rows: list[Result]):
    """One model at one step, over the truth."""
    for result in rows:
        curves, keep = result.curves, thin(result.curves["times"])
        axes.plot(curves["times"][keep], curves["truth"][keep, 1], **TRUTH)
        if result.finished:
            line(axes, curves["times"], curves["mean"][:, 1], METHODS[method], label=heun_title(method))
        training_end(axes, result)
        low, high = curves["truth"][:, 1].min(), curves["truth"][:, 1].max()
        axes.set_ylim(low - 0.25 * (high - low), high + 0.25 * (high - low))
        axes.set_title(f"{at(place)}: {_found(result)}", size=8)
    axes.tick_params(labelsize=7)
    axes.set_xlabel("time [s]", size=8)
    axes.set_ylabel(f"{system}\n{heun_title(method)}, q", size=8)
    axes.label_outer(remove_inner_ticks=True)


def _found(result: Result) -> str:
    return f"L2 {l2([result])}" if result.finished else "not finite"


def _transfer(found: dict[tuple[str, str], list[Result]]) -> str:
    sentences = []
    for (system, method), rows in found.items():
        said = [f"{at(r.row)} {_found(r)}" for r in rows]
        sentences.append(f"{TASKS[system].title}, {heun_title(method)}: {', '.join(said)}.")
    return " ".join(sentences)
