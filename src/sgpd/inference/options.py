"""How a recording is fitted, whatever the engine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgpd.inference.laplace.compiling import Compiling
from sgpd.inference.posterior.field import FieldPosterior, feature_counts
from sgpd.integrators import Integrator

Progress = Callable[[int, int], None]  # told (work done, work in all)


@dataclass(frozen=True)
class FitOptions:
    """What stays the same for all seeds."""

    integrator: Integrator
    settings: Any  # of the engine: a `Laplace` or a `Variational`
    x0: str  # "latent", "known" or "observed"
    progress: Progress | None = None
    checkpoint: str | Path | None = None
    compiling: Compiling = field(default_factory=Compiling)
    own_points: bool = False  # inducing points are the caller's, and stay

    def report(self, done: int, total: int):
        """Tell how far the fit is, if anybody listens."""
        if self.progress is not None:
            self.progress(done, total)

    def compile(self, posterior: FieldPosterior):
        """Begin to compile what the default engine needs for kernels of these sizes; for draws, if these will stay."""
        self.compiling.begin_stages(posterior, self.integrator)
        grows = any(group.may_grow for group in posterior.groups)
        if self.settings.inducing is not None or self.own_points or not grows:
            self.compile_draws(posterior)

    def compile_draws(self, posterior: FieldPosterior):
        """Begin to compile what the draws of such a posterior need."""
        features = feature_counts(posterior, self.settings.features, self.settings.sampling)
        self.compiling.begin_draws(posterior, self.integrator, features)
