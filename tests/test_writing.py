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
    whole = Path.write_bytes

    def write_bytes(path, content):
        if path.name.startswith(f".{full_at}."):
            whole(path, content[:2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, content)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(OSError, match="No space") as caught:
        write_together({tmp_path / "a": b"new a", tmp_path / "b": b"new b"})
    assert caught.value.filename == str(tmp_path / full_at)
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"old a", b"old b"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_place_that_cannot_be_taken_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(tmp_path / "folder", b"")
    assert caught.value.filename == str(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]
