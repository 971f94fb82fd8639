"""What a fit leaves for people to look at."""

from sgpd.renamed import renamed
from sgpd.report.about import About as About
from sgpd.report.figures import forecast_figure as forecast_figure
from sgpd.report.figures import save_figure as save_figure
from sgpd.report.page import write_report as write_report

__getattr__ = renamed(__name__, Overall="sgpd.judging.Overall", Row="sgpd.judging.Row", verdict="sgpd.judging.verdict")
