"""Gaussian processes as functions: kernels, inducing values, drawn paths. No trajectory is ever seen here."""

from sgpd.gp.basis import Reads as Reads
from sgpd.gp.basis import readings as readings
from sgpd.gp.basis import stacked_basis as stacked_basis
from sgpd.gp.features import feature_normals as feature_normals
from sgpd.gp.features import host_normals as host_normals
from sgpd.gp.inducing import JITTER as JITTER
from sgpd.gp.inducing import FramedGaussian as FramedGaussian
from sgpd.gp.inducing import ValueGaussian as ValueGaussian
from sgpd.gp.inducing import WhitenedGaussian as WhitenedGaussian
from sgpd.gp.inducing import prior_root as prior_root
from sgpd.gp.inducing import whitening as whitening
from sgpd.gp.kernels import Kernel as Kernel
from sgpd.gp.kernels import Matern32 as Matern32
from sgpd.gp.kernels import Matern52 as Matern52
from sgpd.gp.kernels import SquaredExponential as SquaredExponential
from sgpd.gp.paths import Path as Path
from sgpd.gp.paths import bump_path as bump_path
from sgpd.gp.paths import draw_path as draw_path
from sgpd.gp.paths import mean_path as mean_path
from sgpd.gp.trends import Trend as Trend
from sgpd.renamed import renamed
from sgpd.xla.sincos import sincos as sincos

__getattr__ = renamed(__name__, spread_normals="sgpd.gp.feature_normals")
