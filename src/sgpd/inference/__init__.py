"""Learning: the only place where Gaussian processes and integrators meet. Both engines end in a posterior."""

from sgpd.inference.laplace.engine import Laplace as Laplace
from sgpd.inference.posterior.field import FieldPosterior as FieldPosterior
from sgpd.inference.posterior.field import LatentGroup as LatentGroup
from sgpd.inference.posterior.joint import Joint as Joint
from sgpd.inference.variational.bound import Bound as Bound
from sgpd.inference.variational.engine import TrainingState as TrainingState
from sgpd.inference.variational.engine import initial_state as initial_state
from sgpd.inference.variational.engine import selection_draws as selection_draws
from sgpd.inference.variational.engine import train as train
from sgpd.inference.variational.problem import Problem as Problem
from sgpd.inference.variational.problem import Variational as Variational
from sgpd.inference.variational.problem import prepare as prepare
from sgpd.inference.variational.problem import side_by_side as side_by_side
from sgpd.renamed import renamed

__getattr__ = renamed(
    __name__,
    fit="sgpd.fit",
    load="sgpd.load",
    Model="sgpd.Model",
    Forecast="sgpd.Forecast",
    interval_of="sgpd.models.interval_of",
    observed_interval="sgpd.models.observed_interval",
    HeldOut="sgpd.judging.HeldOut",
    judge_held_out="sgpd.judging.judge_held_out",
    Learned="sgpd.judging.Learned",
    learned="sgpd.judging.learned.learned",
    plus_minus="sgpd.wording.plus_minus",
)
