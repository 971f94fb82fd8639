"""What docs/your-own-file.md shows is what is said."""

from pathlib import Path

import numpy as np
import pytest

from sgpd.data import read_recording
from sgpd.data.reading.naming import meaning
from sgpd.errors import BadInput

PAGE = (Path(__file__).parents[3] / "docs" / "your-own-file.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())

T = np.arange(100) / 30
TRACK = "% x v\n" + "".join(
    f"{trial} {t:.3f} {100 * np.cos(2.5 * t + trial):.2f} {-250 * np.sin(2.5 * t + trial):.2f}\n"
    for trial in (1, 2)
    for t in T
)
JOINT = "Zeit [s];Winkel [rad];omega [rad/s];Notiz\n" + "".join(
    f"{k / 50:.2f};{np.sin(k / 12):.4f};{50 / 12 * np.cos(k / 12):.4f};ok\n".replace(".", ",") for k in range(100)
)
ANGLES = "t,theta1,theta2\n" + "".join(f"{k / 10},{np.sin(k):.4f},{np.cos(k):.4f}\n" for k in range(50))


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the page shows files by their names alone
    for name, text in {"track.txt": TRACK, "joint.csv": JOINT, "angles.csv": ANGLES}.items():
        Path(name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("file", "flags"), [("track.txt", {}), ("joint.csv", {"decimal": ","})])
def test_what_is_said_of_a_file_is_on_the_page(written, file, flags):
    for word, sentence in read_recording(file, roles="pq", **flags).said:
        assert word == "data" or f"{word} {sentence}" in WORDS


@pytest.mark.parametrize(
    ("file", "flags"),
    [("joint.csv", {}), ("track.txt", {"momentum": "x", "position": "v"}), ("angles.csv", {})],
)
def test_what_is_refused_is_on_the_page(written, file, flags):
    with pytest.raises(BadInput) as refusal:
        read_recording(file, roles="pq", **flags)
    assert f"error: {refusal.value.message} hint: {refusal.value.hint}" in WORDS


def test_the_first_lines_of_the_example_are_on_the_page():
    assert "\n".join(f"    {line}" for line in TRACK.splitlines()[:3]) in PAGE


@pytest.mark.parametrize("part", ["momentum", "velocity", "position"])
def test_names_in_the_table_mean_what_it_says(part):
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {part} |"))
    names = row.split("|")[2].split(",")
    assert len(names) > 3
    assert {meaning(name.strip()).part for name in names} == {part}
