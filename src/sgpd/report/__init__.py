"""What a fit leaves for people to look at."""

from sgpd.report.about import About as About
from sgpd.report.figures import forecast_figure as forecast_figure
from sgpd.report.figures import save_figure as save_figure
from sgpd.report.overall import Overall as Overall
from sgpd.report.overall import Row as Row
from sgpd.report.overall import verdict as verdict
from sgpd.report.page import write_report as write_report
