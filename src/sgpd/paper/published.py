"""The results that the paper prints, as printed."""

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Errors:
    """An L2 error as in Table 1a: mean and standard deviation over 5 independent runs."""

    mean: float
    std: float


@dataclass(frozen=True)
class Energy:
    """Error and standard deviation of the energy along the averaged rollouts; no spread over runs is printed."""

    error: float
    std: float | None
    remark: str = ""


# Table 1a, "t:errors": total L2 errors; the rigid body has no HNN.
L2_ERRORS = MappingProxyType(
    {
        ("pendulum", "sgpd"): Errors(0.421, 0.1),
        ("pendulum", "euler"): Errors(0.459, 0.12),
        ("pendulum", "hnn"): Errors(4.69, 0.02),
        ("two-body", "sgpd"): Errors(0.056, 0.01),
        ("two-body", "euler"): Errors(0.057, 0.009),
        ("two-body", "hnn"): Errors(0.12, 0.009),
        ("non-separable", "sgpd"): Errors(0.033, 0.01),
        ("non-separable", "euler"): Errors(0.034, 0.021),
        ("non-separable", "hnn"): Errors(0.035, 0.007),
        ("rigid-body", "sgpd"): Errors(0.046, 0.014),
        ("rigid-body", "euler"): Errors(0.073, 0.02),
    }
)

# Table 1b, "t:nonsep" (non-separable), and the table beside the supplement's figure "fig:energy" (rigid body).
ENERGIES = MappingProxyType(
    {
        ("non-separable", "sgpd"): Energy(9e-4, None, "the digit before 10^-3 is missing in print"),
        ("non-separable", "euler"): Energy(1e-3, 4e-3),
        ("non-separable", "hnn"): Energy(1e-3, 2e-3),
        ("rigid-body", "sgpd"): Energy(7e-3, 0.01),
        ("rigid-body", "euler"): Energy(9e-3, 0.02),
    }
)
