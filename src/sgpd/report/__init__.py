"""What a fit leaves for people to look at."""

from sgpd.report.figures import forecast_figure as forecast_figure
from sgpd.report.figures import save_figure as save_figure
