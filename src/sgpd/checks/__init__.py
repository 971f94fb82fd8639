"""Each claim of a structure and an integrator, measured; usable on any callable field."""

from sgpd.checks.claims import Claim as Claim
from sgpd.checks.claims import preserved as preserved
from sgpd.checks.claims import require_compatible as require_compatible
from sgpd.checks.ids import CheckId as CheckId
from sgpd.checks.measures import Measurements as Measurements
from sgpd.checks.measures import determinant_error as determinant_error
from sgpd.checks.measures import energy_deviation as energy_deviation
from sgpd.checks.measures import invariant_drift as invariant_drift
from sgpd.checks.measures import measure as measure
from sgpd.checks.measures import step_jacobian as step_jacobian
from sgpd.checks.measures import symplectic_defect as symplectic_defect
from sgpd.checks.verdicts import Check as Check
from sgpd.checks.verdicts import CheckReport as CheckReport
from sgpd.checks.verdicts import check_field as check_field
from sgpd.checks.verdicts import judge as judge
from sgpd.checks.verdicts import worst as worst
