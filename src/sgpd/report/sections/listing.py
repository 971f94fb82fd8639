"""Section 7: every check, in words."""

from sgpd.checks import Check
from sgpd.report.content import Section, Table
from sgpd.report.material import Material
from sgpd.wording import number


def checks_section(material: Material) -> Section:
    """What was claimed of the fit, of the structure and of the bands, measured."""
    rows = tuple(_row(check) for check in material.assessment.checks)
    head = ("claim", "measured", "limit", "verdict", "in words")
    return Section("checks", "Every check", (Table("Every claim, measured", head, rows, id="check-table"),))


def _row(check: Check) -> tuple[str, ...]:
    return (check.title, _number(check.value), _number(check.limit), check.verdict, check.words)


def _number(value: float | None) -> str:
    return "" if value is None else number(value)
