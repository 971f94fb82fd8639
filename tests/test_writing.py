"""Files are there whole or not at all, alone or together; errors name the file that was meant."""

import errno
import os
from pathlib import Path

import pytest

from sgpd.writing import write_together, write_whole


def test_a_file_takes_the_place_of_the_one_before(tmp_path):
    write_whole(tmp_path / "a", b"old")
    write_whole(str(tmp_path / "a"), b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("full_at", ["a", "b"])
def test_on_a_full_disk_files_that_belong_together_stay_as_they_were(tmp_path, monkeypatch, full_at):
    write_together({tmp_path / "a": b"old a", tmp_path / "b": b"old b"})
    onto_disk = os.fsync

    def full(descriptor):
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.startswith(f".{full_at}."):
            raise OSError(errno.ENOSPC, "No space left on device")
        onto_disk(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        write_together({tmp_path / "a": b"new a", tmp_path / "b": b"new b"})
    assert caught.value.filename == str(tmp_path / full_at)
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"old a", b"old b"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_contents_are_on_the_disk_before_names_and_names_before_the_call_returns(tmp_path, monkeypatch):
    """So that a power cut leaves each file as it was or whole, and what was said to be written is there."""
    done, onto_disk, rename = [], os.fsync, os.replace

    def fsync(descriptor):
        done.append(("fsync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.split(".")[-2:][0]))
        onto_disk(descriptor)

    def replace(source, place):
        done.append(("replace", Path(place).name))
        rename(source, place)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_together({tmp_path / "a": b"a", tmp_path / "b": b"b"})
    assert done == [("fsync", "a"), ("fsync", "b"), ("replace", "a"), ("replace", "b"), ("fsync", tmp_path.name)]


def test_a_place_that_cannot_be_taken_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(tmp_path / "folder", b"")
    assert caught.value.filename == str(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]
