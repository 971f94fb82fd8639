"""Forecasts as tables: one row a time, the user's own names, the level of a band in the name of its column."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sgpd.errors import BadInput, unknown_name
from sgpd.models.intervals import observed_interval

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from sgpd.models.forecast import Forecast

LAYOUTS = ("wide", "long")
CONVERGED = 1e-6  # the stage residual up to which a failed path failed by becoming infinite or NaN, not by its solver

Bands = dict[str, np.ndarray]  # column name without the coordinate's: values (n, d)


def to_dataframe(
    forecast: "Forecast",
    levels: Sequence[float] = (0.95,),
    layout: str = "wide",
    noise: ArrayLike | None = None,
    time: str = "t",
) -> "pd.DataFrame":
    """One row a time (`wide`), or one row a time and coordinate (`long`)."""
    import pandas as pd

    if layout not in LAYOUTS:
        raise unknown_name("layout", layout, LAYOUTS)
    statistics = {"mean": forecast.mean, "std": forecast.std} | _bands(forecast, levels, noise)
    run = {} if forecast.run is None else {"run": forecast.run}
    times = run | {time: forecast.times, "lead": forecast.times - forecast.times[0]}
    standing = {"paths_ok": _paths_ok(forecast)}
    if layout == "wide":
        values = {
            f"{name}_{what}": array[:, k] for k, name in enumerate(forecast.names) for what, array in statistics.items()
        }
        return pd.DataFrame(times | values | standing)
    parts = [
        pd.DataFrame(
            times
            | {"state": name, "unit": forecast.units[k]}
            | {what: array[:, k] for what, array in statistics.items()}
            | standing
        )
        for k, name in enumerate(forecast.names)
    ]
    return pd.concat(parts, ignore_index=True)


def paths_dataframe(forecast: "Forecast", time: str = "t") -> "pd.DataFrame":
    """Every path that is ok, one after the other: the shape of a recording whose runs are the paths."""
    import pandas as pd

    used, rows = np.flatnonzero(forecast.ok), len(forecast.times)
    columns = {"path": np.repeat(used, rows), time: np.tile(forecast.times, len(used))}
    states = forecast.paths[used].reshape(-1, len(forecast.names))
    return pd.DataFrame(columns | dict(zip(forecast.names, states.T, strict=True)))


def to_xarray(forecast: "Forecast", arviz: bool = False) -> "xr.Dataset":
    """One variable a coordinate over (path, time), with its unit, and whether each path stayed finite and converged.

    For ArviZ: over (chain, draw, time), without the paths that did not.
    """
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_xarray needs the package xarray; `pip install sgpd[xarray]` brings it.") from None

    variables = {
        name: (("path", "time"), forecast.paths[:, :, k], {"units": unit, "long_name": name})
        for k, (name, unit) in enumerate(zip(forecast.names, forecast.units, strict=True))
    }
    converged = {"converged": (("path",), forecast.ok, {"long_name": "finite and converged"})}
    coordinates: dict[str, Any] = {"path": np.arange(len(forecast.ok)), "time": forecast.times}
    coordinates["lead"] = (("time",), forecast.times - forecast.times[0], {"long_name": "time since the start"})
    if forecast.run is not None:
        coordinates["run"] = ((), forecast.run, {"long_name": "recorded run"})
    dataset = xr.Dataset(variables | converged, coordinates, {"source": "sgpd forecast"})
    if not arviz:
        return dataset
    return dataset.isel(path=forecast.ok).drop_vars("converged").rename(path="draw").expand_dims(chain=[0])


def to_html(forecast: "Forecast") -> str:
    """A small card for notebooks; it takes the colours of the page around it."""
    failed = int((~forecast.ok).sum())
    of_run = "" if forecast.run is None else f", run {forecast.run}"
    last = zip(forecast.names, forecast.mean[-1], forecast.std[-1], forecast.units, strict=True)
    rows = {
        "forecast": f"{len(forecast.ok)} paths, {len(forecast.times)} rows{of_run}",
        "time": f"{forecast.times[0]:g} to {forecast.times[-1]:g}",
        "at the end": ", ".join(f"{name} = {mean:.3g} ± {std:.2g} {unit}".rstrip() for name, mean, std, unit in last),
        "paths": f"▲ ATTENTION: {failed} failed" if failed else "● PASS: none failed",
    }
    style = "text-align: left; padding: 0.1em 0.8em; color: currentColor; background: transparent"
    lines = "".join(
        f'<tr><th style="{style}">{escape(head)}</th><td style="{style}">{escape(text)}</td></tr>'
        for head, text in rows.items()
    )
    return f"<table>{lines}</table>"


def percent(level: float) -> str:
    """A level as it stands in a column's name: 95, 99.5."""
    return f"{100 * level:g}"


def _bands(forecast: "Forecast", levels: Sequence[float], noise: ArrayLike | None) -> Bands:
    bands: Bands = {}
    for level in levels:
        bands[f"lo{percent(level)}"], bands[f"hi{percent(level)}"] = forecast.interval(level)
    if noise is not None:
        std, paths = _noise(forecast, noise), forecast.paths[forecast.ok]
        for level in levels:
            ends = observed_interval(paths, std, level)
            bands[f"obs_lo{percent(level)}"], bands[f"obs_hi{percent(level)}"] = ends
    return bands


def _noise(forecast: "Forecast", noise: ArrayLike) -> np.ndarray:
    std = np.asarray(noise, float)
    if std.shape != (len(forecast.names),) or not (np.isfinite(std) & (std > 0)).all():
        raise BadInput(
            f"the noise must be {len(forecast.names)} positive numbers ({', '.join(forecast.names)}), got {noise!r}",
            "give the model's own: noise=model.noise_std",
        )
    return std


def _paths_ok(forecast: "Forecast") -> np.ndarray:
    """How many paths still stand at each row. Where a solver failed is not known: such a path stands nowhere."""
    finite = np.logical_and.accumulate(np.isfinite(forecast.paths).all(axis=2), axis=1)
    solved = forecast.ok | (forecast.residual <= CONVERGED)
    return (finite & solved[:, None]).sum(axis=0)
