"""A noisy pendulum, from recording to checked forecast. Takes a minute or two."""

import tempfile
from pathlib import Path

import numpy as np

import sgpd


def main():
    """Simulate, fit, forecast past the recording, check, save, load."""
    system = sgpd.systems.get("pendulum")
    times, states = system.record(seed=0)
    data = sgpd.Trajectories.from_arrays(times, states, names=system.names)
    print(data)

    # The first state of this recording is exact; with your own data leave x0 out, and it is learned.
    model = sgpd.fit(data, structure="separable", integrator="stormer-verlet", x0="known", seed=0)
    print(model, "keeps", " and ".join(sorted(model.preserves)))

    forecast = model.predict(system.x0, start="first", duration=system.horizon, paths=64, seed=0)
    low, high = forecast.interval(0.95)
    truth = system.simulate(system.x0, forecast.times)
    print(f"rms error of the best estimate: {np.sqrt(np.mean((forecast.best - truth) ** 2)):.3f}")
    print(f"truth inside the 95% band: {np.mean((low <= truth) & (truth <= high)):.0%}")
    print(model.check(duration=system.horizon))

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "pendulum.safetensors")
        same = sgpd.load(Path(folder) / "pendulum.safetensors")
    print("one drawn field at x0:", same.draw(seed=1)(system.x0))


if __name__ == "__main__":
    main()
