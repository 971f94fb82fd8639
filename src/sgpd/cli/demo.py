"""The first thing to run: a pendulum from noisy recording to checked forecast."""

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sgpd.cli.compilation import keep_compiled_programs

NOISE_VARIANCE = 0.01


def run_demo(out: Path, seed: int):
    """Simulate, fit, forecast, check, draw."""
    out.mkdir(parents=True, exist_ok=True)  # before the work, so that a wrong folder is told at once
    keep_compiled_programs()
    import sgpd
    from sgpd.report import forecast_figure, save_figure

    talk, began = Console(stderr=True), time.monotonic()
    system = sgpd.systems.get("pendulum")
    times = np.arange(0, system.duration, system.step)
    rng = np.random.default_rng(seed)
    states = system.simulate(system.x0, times)
    states[1:] += rng.normal(size=states[1:].shape) * np.sqrt(NOISE_VARIANCE)
    recording = sgpd.Trajectories.from_arrays(times, states, names=system.names)
    talk.print(f"data     pendulum, {len(times)} rows in {system.duration:g} s, noise {np.sqrt(NOISE_VARIANCE):g}")
    talk.print("model    separable + stormer-verlet: symplectic, order 2, explicit")

    model = _fit_with_bar(sgpd, recording, seed, talk)
    talk.print("forecast 64 paths")
    forecast = model.predict(system.x0, duration=system.horizon, paths=64, seed=seed)
    talk.print("check    every claim, on drawn fields")
    report = model.check(system.horizon, seed=seed)

    truth = system.simulate(system.x0, forecast.times)
    save_figure(forecast_figure(forecast, recording, truth), out / "forecast.png")
    model.save(out / "model.safetensors")
    _print_results(forecast, truth, model, report, system)
    talk.print(
        f"wrote    {out / 'forecast.png'}, {out / 'model.safetensors'} ({time.monotonic() - began:.0f} s in all)"
    )


def _fit_with_bar(sgpd, recording, seed: int, talk: Console):
    columns = (TextColumn("fit     "), BarColumn(32), TextColumn("{task.percentage:3.0f}%"), TimeRemainingColumn())
    with Progress(*columns, console=talk, disable=not talk.is_terminal, transient=True) as bar:
        task = bar.add_task("fit", total=None)
        model = sgpd.fit(
            recording,
            "separable",
            seed=seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    facts = model.facts
    talk.print(
        f"fit      log evidence {facts['log_evidence']:.1f}, {facts['effective_parameters']:.0f} effective parameters"
    )
    return model


def _print_results(forecast, truth: np.ndarray, model, report, system):
    recorded = forecast.times < system.duration
    low, high = forecast.interval(0.95)
    inside = (truth >= low) & (truth <= high)
    error = np.sqrt(((forecast.best - truth) ** 2).sum(axis=1))
    table = Table(box=None, header_style="bold")
    for heading in ("", "while recorded", f"to {system.horizon:g} s"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for name, values in (("error of the best estimate (rms)", error**2), ("truth inside the 95% band", inside)):
        pair = [np.sqrt(v.mean()) if values.dtype == float else v.mean() for v in (values[recorded], values)]
        table.add_row(name, *(f"{v:.3f}" if values.dtype == float else f"{v:.0%}" for v in pair))
    noise = ", ".join(f"{n} {s:.3f}" for n, s in zip(model.names, model.noise, strict=True))
    console = Console()
    console.print(table)
    console.print(f"noise found: {noise} (true {np.sqrt(NOISE_VARIANCE):g})", highlight=False)
    for check in report.checks:
        console.print(f"{check.verdict:<13} {check.sentence}", highlight=False)
