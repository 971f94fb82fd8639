"""Momenta and positions are guessed by name, then by order; the sign decides, and every guess can be overruled."""

import numpy as np
import pytest

from sgpd.data import read_recording
from sgpd.data.reading.naming import matched, meaning
from sgpd.errors import BadInput

T = np.arange(200) * 0.1
# Two uncoupled oscillators of different frequency: q = sin(w t), p = dq/dt.
Q = np.stack([np.sin(T), np.sin(1.7 * T + 1)], axis=1)
P = np.stack([np.cos(T), 1.7 * np.cos(1.7 * T + 1)], axis=1)


@pytest.fixture
def record(tmp_path):
    def write(columns):
        path = tmp_path / "lab.csv"
        rows = np.column_stack([T, *columns.values()])
        np.savetxt(path, rows, delimiter=",", header=",".join(["t", *columns]), comments="")
        return path

    return write


def said(reading, word):
    return [sentence for found, sentence in reading.said if found == word]


NAMES = {
    "p": ("momentum", ""),
    "P2": ("momentum", "2"),
    "p_theta": ("momentum", "theta"),
    "px": ("momentum", "x"),
    "momentum 1": ("momentum", "1"),
    "v": ("velocity", ""),
    "v1": ("velocity", "1"),
    "v_x": ("velocity", "x"),
    "vx": ("velocity", "x"),
    "dq": ("velocity", "q"),
    "dq1": ("velocity", "q1"),
    "d_x": ("velocity", "x"),
    "dx/dt": ("velocity", "x"),
    "dtheta": ("velocity", "theta"),
    "thetadot": ("velocity", "theta"),
    "q1_dot": ("velocity", "q1"),
    "qdot1": ("velocity", "q1"),
    "x'": ("velocity", "x"),
    "omega": ("velocity", ""),
    "ω1": ("velocity", "1"),
    "joint1_vel": ("velocity", "joint1"),
    "angular velocity": ("velocity", "angular"),
    "q": ("position", ""),
    "x1": ("position", "1"),
    "theta": ("position", ""),
    "θ2": ("position", "2"),
    "qx": ("position", "x"),
    "joint1_pos": ("position", "joint1"),
    "Angle": ("position", ""),
    "phi": ("position", ""),
    "pos": ("position", ""),
    "pitch": ("position", ""),
    "o": ("", ""),
    "ddq": ("", ""),
    "x_ddot": ("position", "ddot"),
    "qddot": ("", ""),
    "pressure": ("", ""),
    "voltage": ("", ""),
    "dummy": ("", ""),
    "a": ("", ""),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_mean_what_people_mean_by_them(name):
    found = meaning(name)
    assert (found.part, found.key) == NAMES[name]


@pytest.mark.parametrize(
    ("momenta", "positions", "expected"),
    [
        (["v2", "v1"], ["x1", "x2"], ("v1", "v2")),
        (["p_phi", "p_theta"], ["theta", "phi"], ("p_theta", "p_phi")),
        (["vy", "vx"], ["x", "y"], ("vx", "vy")),
        (["dq2", "dq1"], ["q1", "q2"], ("dq1", "dq2")),
        (["py", "px"], ["qx", "qy"], ("px", "py")),
        (["v", "w"], ["x", "y"], ("v", "w")),
        (["p1", "p3"], ["q1", "q2"], ("p1", "p3")),
        (["v"], ["o"], ("v",)),
    ],
)
def test_a_momentum_goes_with_the_position_that_shares_its_key(momenta, positions, expected):
    assert matched(momenta, positions) == expected


def test_the_state_is_momenta_then_positions_whatever_their_order_in_the_file(record):
    path = record({"x": Q[:, 0], "v": P[:, 0]})
    reading = read_recording(path, roles="pq")
    assert reading.data.names == ("v", "x")
    np.testing.assert_allclose(reading.data.runs[0].states, np.stack([P[:, 0], Q[:, 0]], axis=1))
    assert said(reading, "guessed")[-1] == (
        "momentum = v, position = x (dx/dt follows v, correlation +0.999); change with --momentum --position"
    )
    assert read_recording(path, roles="any").data.names == ("x", "v")
    assert said(reading, "note") == []


def test_velocities_of_several_masses_come_with_a_note(record):
    both = {"x1": Q[:, 0], "x2": Q[:, 1], "v2": P[:, 1], "v1": P[:, 0]}
    reading = read_recording(record(both), roles="pq")
    assert reading.data.names == ("v1", "v2", "x1", "x2")
    assert "v1, v2 are velocities by name; they may stand for momenta only if all masses" in said(reading, "note")[0]
    momenta = {name.replace("v", "p"): values for name, values in both.items()}
    assert said(read_recording(record(momenta), roles="pq"), "note") == []


def test_units_go_with_their_columns(record):
    path = record({"x [mm]": Q[:, 0], "v": P[:, 0]})
    assert read_recording(path, roles="pq").data.units == ("", "mm")
    assert read_recording(path, roles="pq", units=["m/s", "mm"]).data.units == ("m/s", "mm")


ORDERS = {
    "positions first": ["q0", "q1", "p0", "p1"],
    "momenta first": ["p0", "p1", "q0", "q1"],
    "position beside momentum": ["q0", "p0", "q1", "p1"],
    "momentum beside position": ["p0", "q0", "p1", "q1"],
}


@pytest.mark.parametrize("order", ORDERS)
def test_names_that_say_nothing_are_told_apart_by_order_and_sign(record, order):
    values = {f"{side}{k}": array[:, k] for side, array in (("p", P), ("q", Q)) for k in (0, 1)}
    named = dict(zip("abcd", (values[key] for key in ORDERS[order]), strict=True))
    data = read_recording(record(named), roles="pq").data
    np.testing.assert_allclose(data.runs[0].states, np.concatenate([P, Q], axis=1))


def test_one_unknown_name_takes_the_side_that_is_left(record):
    assert read_recording(record({"o": Q[:, 0], "v": P[:, 0]}), roles="pq").data.names == ("v", "o")
    assert read_recording(record({"theta": Q[:, 0], "s": P[:, 0]}), roles="pq").data.names == ("s", "theta")


def test_columns_that_are_neither_are_left_out_and_said(record):
    reading = read_recording(record({"q": Q[:, 0], "dq": P[:, 0], "ddq": -Q[:, 0], "energy": T}), roles="pq")
    assert reading.data.names == ("dq", "q")
    assert said(reading, "skipped") == ["column ddq, column energy"]


def test_noise_that_only_the_order_makes_a_momentum_is_refused(record):
    noise = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(BadInput, match="can be told neither by name nor by sign") as refusal:
        read_recording(record({"q": noise[:, 0], "s": noise[:, 1]}), roles="pq")
    assert "--momentum and --position" in refusal.value.hint


def test_swapped_flags_are_refused_with_the_flags_that_are_right(record):
    path = record({"x": Q[:, 0], "v": P[:, 0]})
    with pytest.raises(BadInput) as refusal:
        read_recording(path, momentum="x", position="v")
    assert refusal.value.message == (
        f"{path}: dv/dt runs against x, correlation -0.999: momentum and position look swapped"
    )
    assert refusal.value.hint.startswith("try --momentum v --position x; if it is right as it is, take it untested")
    swapped = read_recording(path, state=["x", "v"], roles="pq")  # as the hint says
    assert swapped.data.names == ("x", "v")
    assert said(swapped, "roles")[0].endswith("this looks swapped")
    right = read_recording(path, momentum="v", position="x")
    assert said(right, "roles") == ["momentum = v, position = x (dx/dt follows v, correlation +0.999)"]


def test_a_weak_negative_correlation_is_said_but_not_refused(record):
    noise = np.random.default_rng(0).normal(size=(200, 2))
    reading = read_recording(record({"q": noise[:, 0], "p": noise[:, 1]}), roles="pq")
    assert "dq/dt against p: correlation -0." in said(reading, "guessed")[-1]
    assert "too weak to tell" in said(reading, "guessed")[-1]


def test_swapped_names_are_refused(record):
    with pytest.raises(BadInput, match="look swapped"):
        read_recording(record({"p": Q[:, 0], "q": P[:, 0]}), roles="pq")
    with pytest.raises(BadInput, match="dx2/dt runs against v2") as refusal:
        read_recording(record({"x1": Q[:, 0], "v1": P[:, 0], "x2": P[:, 1], "v2": Q[:, 1]}), roles="pq")
    assert "v1" not in refusal.value.message


def test_one_side_may_be_asked_for_and_the_other_guessed(record):
    both = {"a": Q[:, 0], "b": Q[:, 1], "c": P[:, 0], "d": P[:, 1]}
    assert read_recording(record(both), momentum=["c", "d"]).data.names == ("c", "d", "a", "b")
    assert read_recording(record(both), position=["b", "a"], momentum=["d", "c"]).data.names == ("d", "c", "b", "a")
    assert read_recording(record({"x": Q[:, 0], "v": P[:, 0], "u": T}), position="x").data.names == ("v", "x")
    with pytest.raises(BadInput, match="there is no momentum or velocity"):
        read_recording(record({"x": Q[:, 0], "y": Q[:, 1], "z": T}), position="x")


@pytest.mark.parametrize("names", [["x"], ["x", "y"], ["theta1", "theta2"]])
def test_positions_alone_are_refused_with_what_is_missing(record, names):
    with pytest.raises(BadInput, match="there is no momentum or velocity, only") as refusal:
        read_recording(record({name: Q[:, k] for k, name in enumerate(names)}), roles="pq")
    assert "add a column with the velocity of each position" in refusal.value.hint


def test_too_few_rows_for_the_sign_test_are_said(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text("t,p,q\n0,1,2\n1,2,1\n2,1,0\n")
    assert "too few rows to test that dq/dt follows p" in said(read_recording(path, roles="pq"), "guessed")[-1]
