"""Every check has its id from one enumeration, and stands in the documentation."""

import ast
import re
from pathlib import Path

import pytest

from sgpd.checks import CheckId

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src" / "sgpd").rglob("*.py"))


def calls_of_check(source: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Check" and call.args]


def test_every_check_is_made_with_an_id_of_the_enumeration():
    made = [call.args[0] for path in SOURCES for call in calls_of_check(path.read_text(encoding="utf-8"))]
    assert len(made) >= 20
    words = {ast.unparse(first) for first in made}
    named = {word for word in words if word.startswith("CheckId.")}
    assert words - named == {"check_id"}  # of the claims, which a table has under their ids
    assert {word.removeprefix("CheckId.") for word in named} <= {each.name for each in CheckId}


def test_no_id_is_compared_as_a_bare_string():
    bare = re.compile(r"\.id\s*(==|!=|in|not in)\s*[(\[{]?\s*[\"']")
    assert [str(path) for path in SOURCES if bare.search(path.read_text(encoding="utf-8"))] == []


def test_ids_are_strings_for_machines_and_each_is_used():
    assert all(isinstance(each, str) and str(each) == each.value for each in CheckId)
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES if path.name != "ids.py")
    assert [each.name for each in CheckId if f"CheckId.{each.name}" not in text] == []


@pytest.mark.parametrize("check_id", CheckId)
def test_every_id_is_explained_once_in_the_table_of_checks_and_has_a_remedy(check_id):
    explained, remedies = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("reading-the-report.md", "troubleshooting.md")
    )
    assert len(re.findall(rf"^\| `{check_id}` \|", explained, re.MULTILINE)) == 1
    assert f"`{check_id}`" in remedies
