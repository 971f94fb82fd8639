"""Learning: the only place where Gaussian processes and integrators meet."""

from sgpd.inference.bound import Bound as Bound
from sgpd.inference.fit import fit as fit
from sgpd.inference.forecast import Forecast as Forecast
from sgpd.inference.model import Model as Model
from sgpd.inference.saving import load as load
from sgpd.inference.variational import Variational as Variational
