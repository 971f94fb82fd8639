"""Runge-Kutta methods of every kind: explicit, implicit, partitioned, split. They step any field and know no GP."""

from sgpd.integrators.adaptive import adaptive_rollout as adaptive_rollout
from sgpd.integrators.catalogue import get as get
from sgpd.integrators.catalogue import names as names
from sgpd.integrators.implicit import Newton as Newton
from sgpd.integrators.implicit import StepInfo as StepInfo
from sgpd.integrators.methods import Integrator as Integrator
from sgpd.integrators.methods import PartitionedRungeKutta as PartitionedRungeKutta
from sgpd.integrators.methods import RungeKutta as RungeKutta
from sgpd.integrators.methods import SplitStep as SplitStep
from sgpd.integrators.response import Response as Response
from sgpd.integrators.response import respond as respond
from sgpd.integrators.rollouts import Rollout as Rollout
from sgpd.integrators.rollouts import rollout as rollout
from sgpd.integrators.tableau import PartitionedTableau as PartitionedTableau
from sgpd.integrators.tableau import Splitting as Splitting
from sgpd.integrators.tableau import Tableau as Tableau
