"""A recording of your own, from CSV file to forecast file, as `sgpd fit` and `sgpd predict` do it."""

import tempfile
from pathlib import Path

import numpy as np

import sgpd
from sgpd.data import hold_out, read_recording


def record(path: Path):
    """Stands for your instrument: a mass on a spring, position first, as files mostly have it."""
    t = 0.2 * np.arange(75)
    rng = np.random.default_rng(0)
    states = np.stack([np.cos(t), -np.sin(t)], axis=1) + 0.02 * rng.normal(size=(len(t), 2))
    np.savetxt(path, np.column_stack([t, states]), delimiter=",", header="time,x,v", comments="")


def main():
    """Read, look at what was guessed, hold rows out, fit, judge, forecast, write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spring.csv"
        record(path)
        reading = read_recording(path, units={"x": "m"}, roles="pq")  # momenta first: (v, x)
        for word, sentence in reading.said:
            print(f"{word:<8} {sentence}")

        fitted, held, sentence = hold_out(reading.data, 0.2)
        print(f"{'split':<8} {sentence}")
        model = sgpd.fit(fitted, "separable", seed=0)
        print(model.check(held_out=held))

        forecast = model.predict(duration=15.0, paths=32, seed=0)  # goes on from the last fitted row
        table = forecast.to_dataframe(levels=[0.5, 0.95], time=fitted.time_name)
        table.to_csv(Path(folder) / "forecast.csv", index=False)
        print(table.iloc[[0, -1]].round(3).T)


if __name__ == "__main__":
    main()
