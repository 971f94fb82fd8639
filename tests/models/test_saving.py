"""Model files: those of the version before are read under the names of this one."""

import dataclasses
import json
from typing import ClassVar

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import sgpd
from sgpd.checks import Check, CheckId
from sgpd.errors import BadInput
from sgpd.gp import Matern32, Matern52, SquaredExponential
from sgpd.models.saving import _kernel, _kernel_key
from sgpd.structures import Separable

OLD_FACTS = {"converged": "settled", "importance_sample_size": "worth", "autocorrelation_times": "rows_a_look"}


def as_format_7(path):
    """Rewrite a model file as version 0.3.1 wrote it."""
    with safe_open(path, framework="numpy") as file:
        header, arrays = json.loads(file.metadata()["sgpd"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header["format"], header["spread"] = "sgpd.model/7", header.pop("sampling")
    if "depends_on" in header["structure"]:
        header["structure"]["sees"] = header["structure"].pop("depends_on")
    del header["remarks"]
    flat = header["facts"]["recording"] | (header["facts"]["fit"] or {})
    header["facts"] = {OLD_FACTS.get(k, "spread" if k == "std" else k): v for k, v in flat.items()}
    save_file(arrays, path, metadata={"sgpd": json.dumps(header)})


def test_a_model_of_version_0_3_1_is_read_with_the_same_forecast(pendulum, tmp_path):
    structure = Separable(depends_on={"V": [[2.0]]})
    model = sgpd.fit(pendulum, structure, inference=sgpd.Variational(steps=3, shooting=False, features=32))
    path = tmp_path / "model.safetensors"
    model.save(path)
    as_format_7(path)
    old = sgpd.load(path)
    assert old.posterior.structure == structure
    assert (old.sampling, old.facts) == (model.sampling, model.facts)
    ends = [m.predict([2.0, 2.0], duration=1.0, paths=4).paths for m in (model, old)]
    np.testing.assert_array_equal(*ends)


class OwnKernel(SquaredExponential):
    """A kernel of one's own."""


@dataclasses.dataclass(frozen=True, eq=False)
class Own(Separable):
    """A structure of one's own."""

    name: ClassVar[str] = "own"


def test_notes_are_remarks_and_what_the_diagnosis_asks_attention_for_also_of_a_model_of_before(model, tmp_path):
    diagnosis = (
        Check(CheckId.NOISE, "noise", 2.0, 1.5, "ATTENTION", "The noise is large.", "Look."),
        Check(CheckId.CONVERGED, "converged", None, None, "PASS", "All converged."),
    )
    noted = dataclasses.replace(model, remarks=("First.", "The noise is large."), diagnosis=diagnosis)
    assert noted.notes == ("First.", "The noise is large.", "The noise is large. Look.")
    path = tmp_path / "noted.safetensors"
    noted.save(path)
    assert sgpd.load(path).remarks == noted.remarks
    as_format_7(path)
    assert sgpd.load(path).remarks == noted.remarks
    assert sgpd.load(path).notes == noted.notes


def test_kernels_of_the_package_are_written_by_their_names():
    """Files of versions before have them so, and they are read without leave."""
    for kernel in (SquaredExponential, Matern32, Matern52):
        assert _kernel_key(kernel) == kernel.__name__
        assert _kernel(kernel.__name__, allow=()) is kernel
    assert ":" in _kernel_key(OwnKernel)


def test_a_structure_and_a_kernel_of_ones_own_are_loaded_where_they_are_allowed_and_nowhere_else(pendulum, tmp_path):
    settings = sgpd.Variational(steps=3, shooting=False, features=32, kernel=OwnKernel)
    model, path = sgpd.fit(pendulum, Own(depends_on={"V": [[2.0]]}), inference=settings), tmp_path / "own.safetensors"
    model.save(path)
    places = [f"{__name__}:Own", f"{__name__}:OwnKernel"]
    for allow in ([Own, OwnKernel], places):
        loaded = sgpd.load(path, allow=allow)
        assert loaded.posterior.structure == model.posterior.structure
        assert type(loaded.posterior.groups[0].kernel) is OwnKernel
    for allow in ([], [Own], places[1:], [Separable, SquaredExponential]):
        with pytest.raises(BadInput, match=r"the model needs .*Own.*, which is not part of sgpd; if you trust it"):
            sgpd.load(path, allow=allow)


@pytest.mark.parametrize("place", ["nowhere:Own", "json:nothing", "json:loads", "json:JSONDecoder", ":", "a:b:c"])
def test_a_place_that_holds_no_structure_is_refused(place):
    with pytest.raises(BadInput, match=r"this (cannot be imported|is no structure)"):
        sgpd.structures.get(place)


def test_old_names_of_options_and_attributes_work_with_a_warning(model, pendulum):
    with pytest.warns(sgpd.SgpdWarning, match=r"Laplace\(noise=\) is noise_std= now"):
        assert sgpd.Laplace(noise=(0.1, 0.2)) == sgpd.Laplace(noise_std=(0.1, 0.2))
    with pytest.warns(sgpd.SgpdWarning, match=r"Variational\(spread=\) is sampling= now"):
        assert sgpd.Variational(spread="independent").sampling == "independent"
    with pytest.warns(sgpd.SgpdWarning, match=r"Model\.noise is Model\.noise_std now"):
        np.testing.assert_array_equal(model.noise, model.noise_std)
    with pytest.warns(sgpd.SgpdWarning, match=r"facts\['spread'\] is facts\.recording\.std now"):
        assert model.facts["spread"] == model.facts.recording.std
    with pytest.warns(sgpd.SgpdWarning, match=r"Trajectories\.spread is Trajectories\.std now"):
        np.testing.assert_array_equal(pendulum.spread, pendulum.std)
