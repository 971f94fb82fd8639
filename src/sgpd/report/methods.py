"""A paragraph for a paper's methods section."""

from sgpd.report.material import Material
from sgpd.wording import share

_ENGINES = {
    "evidence": "Kernels and noise maximise the evidence of the linearised model after staged multiple shooting; the "
    "posterior of field and initial states is a joint Gaussian",
    "lower bound": "Kernels, noise and a Gaussian posterior maximise a variational lower bound along rollouts",
    "composite likelihood": "Kernels, noise and a Gaussian posterior maximise a weighted variational objective along "
    "overlapping rollouts",
}
_DRAWS = {"weighed": "of it, resampled by importance weights", "randomised": "by randomise-then-optimise"}


def methods_text(material: Material) -> str:
    """What was done, in words that can be pasted."""
    model, data, about = material.model, material.data, material.about
    structure = model.posterior.structure
    learned = structure.words or f"a vector field of the structure '{structure.name}'"
    version = about.versions.get("sgpd", "")
    fit = model.facts.fit
    how = "" if fit is None else _DRAWS.get(fit.draws, "")
    draws = f", replaced by {fit.stored_draws} draws {how}" if fit and how else ""
    runs = f"{data.rows} rows in {len(data)} run{'' if len(data) == 1 else 's'}"
    if any(group.trend is not None for group in model.posterior.groups):
        learned += " (beside each process a parabola with Gaussian coefficients)"
    keeps = f", which keeps the {' and the '.join(sorted(model.preserves))}" if model.preserves else ""
    sentences = [
        f"The dynamics of ({', '.join(model.names)}) were learned with sgpd{version and f' {version}'} from {runs} "
        f"(usual interval {material.lasting(data.step)}) as {learned}.",
        f"Functions drawn from it were stepped by the {model.integrator.name} method of order {model.integrator.order} "
        f"with step {material.lasting(model.step)}{keeps}.",
        f"{_ENGINES.get(model.objective, 'The posterior is approximate')}{draws} (seed {about.seed}).",
        f"Learned noise (standard deviation): {material.noise_words}.",
    ]
    if material.held_out is not None:
        held, ahead = material.held_out, material.lasting(material.checked_to)
        sentences.append(
            f"On {held.data.rows} rows held out of the fit ({held.sample_words}, up to {ahead} "
            f"ahead) the 95 % band held {share(held.coverage(0.95))} of the values."
        )
    sentences.append(
        "The method is that of Ensinger, Solowjow, Ziesche, Tiemann and Trimpe, Structure-preserving Gaussian Process "
        "Dynamics."
    )
    return " ".join(sentences)
