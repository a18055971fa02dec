"""Tests of atomic writes, JSON files and digests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ngt.files import atomic, checksum, read_json, sha256, write_json

ROOT = Path(__file__).resolve().parents[2]


def test_a_block_that_succeeds_writes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.txt"
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == path.parent, (
            "the temporary file must be on the same file system, or the rename fails"
        )
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="mine"), atomic(path) as temporary:
        temporary.write_text("half of the n")
        assert path.read_text() == "old"
        raise RuntimeError("mine")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_before_it_writes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic(tmp_path / "file.txt"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), atomic(path):
        pass
    assert path.read_text() == "old"


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    with pytest.raises(OSError, match="No space left") as caught, atomic(path) as temporary:
        temporary.write_text("half")
        with open("/dev/full", "w") as full:
            full.write("x")  # raises on close, with an error that names no file
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_a_process_killed_inside_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    code = (
        "import os, pathlib, sys; from ngt.files import atomic\n"
        "with atomic(pathlib.Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, check=False)
    assert done.returncode == -9
    assert path.read_text() == "old"
    # the dead process's temporary file has a unique name and does no harm
    (left,) = (p for p in tmp_path.iterdir() if p != path)
    assert left.name.startswith(".file.txt.") and left.suffix == ".tmp"
    write_json(path, [1])
    assert read_json(path) == [1]


def test_the_rename_comes_after_the_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), replace(a, b))[1])
    write_json(tmp_path / "file.json", {})
    assert calls == ["fsync", "replace", "fsync"], (
        "the order must be: flush the data, rename the file, flush the folder"
    )


def test_json_round_trip(tmp_path: Path) -> None:
    data = {"b": [1, 2.5, None, True], "a": {"x": "ü"}, "big": 2**62, "tiny": 1e-300}
    path = tmp_path / "file.json"
    write_json(path, data)
    assert read_json(path) == data
    assert list(read_json(path)) == list(data), "the order of keys must stay the same"
    assert path.read_text().endswith("}\n")


def test_no_json(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    assert read_json(path) is None
    for content in (b"", b'{"a": 1', b"\xff\xfe"):
        path.write_bytes(content)
        assert read_json(path) is None
    assert read_json(path / "under" / "a file") is None


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000, '{"x": ', "\x00"])
def test_what_is_no_json_that_can_be_read_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    assert read_json(file) is None
    assert read_json(tmp_path) is None, "a folder is not JSON"


@pytest.mark.parametrize(
    ("digest", "start"), [(sha256, "ba7816bf8f01cfea"), (checksum, "cf4ab791c62b8d2b")]
)
def test_digests_of_bytes_and_of_a_file_are_the_standard_ones(
    tmp_path: Path, digest: Callable[[bytes | Path], str], start: str
) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert digest(b"abc") == digest(tmp_path / "abc")
    assert digest(b"abc").startswith(start)


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(IsADirectoryError) as caught, atomic(folder) as temporary:
        temporary.write_text("new")
    assert caught.value.filename == str(folder)
    unwritable = Path("/proc/file.txt")  # no user can write here
    with pytest.raises(OSError) as refused, atomic(unwritable) as temporary:
        temporary.write_text("new")
    assert refused.value.filename == str(unwritable)
    other = tmp_path / "other"
    with pytest.raises(FileNotFoundError) as lost, atomic(tmp_path / "file.txt"):
        other.read_text()
    assert lost.value.filename == str(other), "an error about another file keeps its name"
