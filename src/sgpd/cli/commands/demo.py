"""The first thing to run: a pendulum from noisy recording to report, by the commands that one would type."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgpd.cli.commands.fitting import Where, run_fit
from sgpd.cli.commands.reporting import run_report
from sgpd.cli.commands.simulating import Ask, run_simulate
from sgpd.cli.settings import given_settings
from sgpd.cli.talk import Talk

if TYPE_CHECKING:
    from sgpd.models import Model

NOISE_VARIANCE = 0.01


def run_demo(out: Path, seed: int):
    """Simulate, fit, forecast, check, draw, report."""
    talk, began = Talk(), time.monotonic()
    recording, folder = out / "recording.csv", out / "run"
    run_simulate(Ask("pendulum", seed, NOISE_VARIANCE), recording, None, talk, hint=False)
    given = given_settings(structure="separable", holdout="20%", seed=seed)
    fitted = run_fit([str(recording)], given, Where(folder, force=True), talk)
    assert fitted is not None  # a fit that is forced has something to do
    _compare(fitted.model, folder, out / "forecast.png", seed, talk)
    run_report(folder, talk, fitted.assessment)
    talk.say("done", f"{time.monotonic() - began:.0f} s in all; all files are in {out}")


def _compare(model: "Model", folder: Path, figure: Path, seed: int, talk: Talk):
    """The forecast against the truth, which is known here."""
    from sgpd import systems
    from sgpd.report import forecast_figure, save_figure
    from sgpd.runs.layout import RunFolder

    system, (fitted, _) = systems.get("pendulum"), RunFolder(folder).recording()
    forecast = model.predict(system.x0, start="first", duration=system.horizon, paths=64, seed=seed)
    truth = system.simulate(system.x0, forecast.times)
    save_figure(forecast_figure(forecast, fitted, truth), figure)
    talk.say(
        "wrote", f"{figure}: forecast to {system.horizon:g} s, {system.horizon / fitted.duration:.0f} times as long"
    )
    low, high = forecast.interval(0.95)
    error = np.sqrt(((forecast.best - truth) ** 2).mean())
    inside = ((low <= truth) & (truth <= high)).mean()
    noise = np.sqrt(NOISE_VARIANCE)
    talk.result("Truth:   ", f"rms error {error:.2g} (the noise is {noise:g}); {inside:.0%} inside the 95% band")
