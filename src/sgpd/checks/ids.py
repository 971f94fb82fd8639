"""The name of every check, once. The report, the JSON and the documentation refer to a check by it."""

from enum import StrEnum


class CheckId(StrEnum):
    """A string wherever one is needed: in JSON it is the plain word."""

    # What a structure and an integrator claim, measured on drawn fields
    DETERMINANT = "determinant"
    SYMPLECTIC = "symplectic"
    INVARIANT = "invariant"
    ENERGY_WANDER = "energy_wander"
    ENERGY_TREND = "energy_trend"
    STEPS = "steps"

    # What a fit says of itself and its recording
    CONVERGED = "settled"
    FIT_STEPS = "fit_steps"
    RESIDUALS = "residuals"
    NOISE = "noise"
    RECORDED_ENERGY = "recorded_energy"
    INDUCING = "inducing"
    DRAWS = "draws"
    ROLLOUTS = "rollouts"

    # Forecasts of rows that were held out
    HELD_OUT_REACH = "held_out_reach"
    HELD_OUT_ERROR = "held_out_error"
    COVERAGE = "coverage"
