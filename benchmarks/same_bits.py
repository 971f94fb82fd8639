"""Whether two versions of sgpd give the same numbers, to the bit: a digest of every default fit and its forecast.

    python benchmarks/same_bits.py [--seeds 0-4] [--only pendulum ...] > after.txt

Run it in a checkout of the other version, too (copy this file there if need be), and compare the two outputs. The fits
are those of `default_fit.py`. A change that only moves or renames leaves every line as it was.
"""

import argparse
import hashlib

import numpy as np
from default_fit import FITS

import sgpd


def main():
    """One line for each fit, way to start and seed."""
    sgpd.xla.tune()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--only", nargs="*", default=list(FITS))
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    for name in options.only:
        system, structure, integrator = FITS[name]
        for x0 in ("known", "latent"):
            for seed in range(first, last + 1):
                known = sgpd.systems.get(system)
                data = sgpd.Trajectories.from_arrays(*known.record(seed), names=known.names)
                model = sgpd.fit(data, structure, integrator, x0=x0, seed=seed)
                ahead = model.predict(duration=100 * model.step, paths=16, seed=seed)
                joint, facts = model.joint, model.facts
                old = isinstance(facts, dict)  # up to version 0.3.1
                noise, evidence = (
                    (model.noise, facts["log_evidence"]) if old else (model.noise_std, facts.fit.log_evidence)
                )
                numbers = (joint.mean, joint.root, joint.starts, noise, ahead.paths, ahead.best)
                print(f"{name} | {x0} | {seed} | {evidence!r} | {digest(numbers)}", flush=True)


def digest(arrays) -> str:
    """The same for the same bits."""
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()[:16]


if __name__ == "__main__":
    main()
