"""A structure of the user's own, by its place: fitted, and read again only where it is allowed."""

import sys

import pytest

import sgpd
from tests.cli.conftest import write_recording

MODULE = """
from dataclasses import dataclass
from typing import ClassVar

from sgpd.structures import Separable


@dataclass(frozen=True, eq=False)
class Mine(Separable):
    name: ClassVar[str] = "mine"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    from sgpd.models.fit import ENGINES

    fast = sgpd.Variational(epochs=2, inducing=4, features=8, paths=1)
    monkeypatch.setitem(ENGINES, "variational", lambda: fast)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "springs.py").write_text(MODULE)
    yield write_recording(tmp_path / "air.csv")
    sys.modules.pop("springs", None)


def test_a_structure_of_ones_own_is_fitted_and_its_model_read_where_it_is_allowed(here, sgpd_here):
    fitted = sgpd_here("fit", "air.csv", "-s", "springs:Mine", "--inference", "variational", "--out", "air")
    assert fitted.code == 0, fitted
    assert "model    mine + stormer-verlet (auto)" in fitted.err
    refused = sgpd_here("check", "air")
    assert refused.code == 2
    assert "the model needs springs:Mine, which is not part of sgpd" in refused.err
    assert sgpd_here("check", "air", "--allow", "springs:Mine").code == 0
    ask = ("predict", "air", "--duration", "2", "--paths", "4", "--out", "f.csv", "--allow", "springs:Mine")
    assert sgpd_here(*ask).code == 0


def test_a_place_without_a_structure_is_refused(here, sgpd_here):
    ended = sgpd_here("fit", "air.csv", "-s", "springs:Yours", "--out", "air")
    assert ended.code == 2
    assert "springs:Yours: this cannot be imported" in ended.err
