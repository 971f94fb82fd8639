"""Learning: the only place where Gaussian processes and integrators meet."""

from sgpd.inference.bound import Bound as Bound
from sgpd.inference.fit import fit as fit
from sgpd.inference.forecast import Forecast as Forecast
from sgpd.inference.held_out import HeldOut as HeldOut
from sgpd.inference.held_out import judge_held_out as judge_held_out
from sgpd.inference.intervals import interval_of as interval_of
from sgpd.inference.intervals import observed_interval as observed_interval
from sgpd.inference.joint import Joint as Joint
from sgpd.inference.laplace import Laplace as Laplace
from sgpd.inference.learned import Learned as Learned
from sgpd.inference.learned import learned as learned
from sgpd.inference.learned import plus_minus as plus_minus
from sgpd.inference.model import Model as Model
from sgpd.inference.posterior import FieldPosterior as FieldPosterior
from sgpd.inference.posterior import LatentGroup as LatentGroup
from sgpd.inference.problem import Problem as Problem
from sgpd.inference.problem import Variational as Variational
from sgpd.inference.problem import prepare as prepare
from sgpd.inference.problem import side_by_side as side_by_side
from sgpd.inference.saving import load as load
from sgpd.inference.variational import TrainingState as TrainingState
from sgpd.inference.variational import initial_state as initial_state
from sgpd.inference.variational import selection_draws as selection_draws
from sgpd.inference.variational import train as train
