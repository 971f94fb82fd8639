"""What a fit gives, and what one does with it: forecasts, tables, files."""

from sgpd.models.forecast import Forecast as Forecast
from sgpd.models.intervals import interval_of as interval_of
from sgpd.models.intervals import observed_interval as observed_interval
from sgpd.models.model import Model as Model
from sgpd.models.pieces import Pieces as Pieces
from sgpd.models.saving import load as load
