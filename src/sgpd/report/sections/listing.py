"""Section 7: every check, in words."""

from sgpd.checks import Check
from sgpd.report.content import Section, Table
from sgpd.report.material import Material
from sgpd.wording import number


def checks_section(material: Material) -> Section:
    """What was claimed of the fit, of the structure and of the bands, measured."""
    held = () if material.held_out is None else material.held_out.checks
    checks = (*material.model.diagnosis, *material.checks.checks, *held)
    rows = tuple(_row(check) for check in checks)
    head = ("claim", "measured", "limit", "verdict", "in words")
    return Section("checks", "Every check", (Table("Every claim, measured", head, rows, id="check-table"),))


def _row(check: Check) -> tuple[str, ...]:
    words = f"{check.sentence} {check.remedy}".strip()
    return (check.title, _number(check.value), _number(check.limit), check.verdict, words)


def _number(value: float | None) -> str:
    return "" if value is None else number(value)
