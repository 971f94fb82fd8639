"""How good the random features are, next to the paper's 10,000 independent ones."""

from collections.abc import Sequence

import jax.random as jr
import numpy as np

import sgpd
from sgpd.gp import feature_normals
from sgpd.paper.settings import PRINTED, system_of

PAPER = 10_000
SHIFTS = 8  # of the Sobol points, over which the error is averaged
ROWS = 60  # of the recording, at whose pairs the covariance is compared


def feature_sentences(keys: Sequence[tuple[str, str]]) -> list[str]:
    """One sentence for each setting that was used."""
    return [_sentence(key) for key in dict.fromkeys(keys)]


def _sentence(key: tuple[str, str]) -> str:
    ours, papers = covariance_errors(key)
    verdict = "as good or better" if ours <= papers else f"{ours / papers:.1f} times larger"
    return (
        f"{' '.join(key)}: {PRINTED[key].features} Sobol features, rms error of the correlation {ours:.1e} over pairs "
        f"of recorded states, against {papers:.1e} expected of {PAPER:,} independent ones ({verdict})."
    )


def covariance_errors(key: tuple[str, str]) -> tuple[float, float]:
    """Rms errors of a setting's first correlations at pairs of true states: our features, and the paper's number.

    A feature is cos(ω·δ) with ω ~ N(0, I), δ = (x - y)/l. Its mean is φ(δ) = exp(-|δ|²/2), and its variance
    (1 + φ(2δ))/2 - φ(δ)², so that independent features need no sampling.
    """
    setting = PRINTED[key]
    system = sgpd.systems.get(system_of(key))
    states = system.simulate(system.x0, np.linspace(0, system.duration, ROWS))
    ours, papers = [], []
    for spec in setting.structure.groups(states.shape[1]):
        inputs = spec.inputs(np.asarray(states))  # (count, n, k)
        squared = np.broadcast_to(setting.latents[spec.name].squared_lengthscales, (spec.count, inputs.shape[2]))
        apart = (inputs[:, :, None] - inputs[:, None]) / np.sqrt(squared)[:, None, None]
        apart = apart.reshape(-1, inputs.shape[2])
        exact = np.exp(-(apart**2).sum(axis=1) / 2)
        papers.append(((1 + exact**4) / 2 - exact**2) / PAPER)
        for shift in range(SHIFTS):
            frequencies = np.asarray(feature_normals(jr.key(shift), setting.features, inputs.shape[2], "quasi"))
            ours.append((np.cos(apart @ frequencies.T).mean(axis=1) - exact) ** 2)
    rms = lambda squares: float(np.sqrt(np.concatenate(squares).mean()))
    return rms(ours), rms(papers)
