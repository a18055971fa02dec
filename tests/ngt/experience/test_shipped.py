"""Tests of shipped experts, which are read only if all their files are intact."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.experience import shipped

ENV = "HalfCheetah-v4"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make `shipped` read a copy of data/ with one expert, which tests may damage; return it."""
    shutil.copytree(shipped.DATA / ENV, tmp_path / ENV)
    monkeypatch.setattr(shipped, "DATA", tmp_path)
    return tmp_path


def change(data: Path, **fields: Any) -> None:
    file = data / ENV / shipped.EXPERT
    expert = json.loads(file.read_text())
    file.write_text(json.dumps({**expert, **fields}))


def error(env: str = ENV) -> str:
    with pytest.raises(UserError) as caught:
        shipped.read(env)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_whole_one(data: Path) -> None:
    assert shipped.read(ENV)["env"] == ENV and shipped.ships(ENV)
    assert shipped.read(ENV)["files"] == {
        name: shipped.sha256(data / ENV / name)
        for name in (shipped.POLICY, shipped.DEMOS, shipped.CURVE)
    }


def test_none_names_the_env_and_both_ways_out(data: Path) -> None:
    assert not shipped.ships("Ant-v4")  # absent from this copy
    said = error("Ant-v4")
    assert said.startswith("demos: shipped, but no expert of Ant-v4 ships")
    assert "`demos: trained`" in said and "envs.Ant-v4.demos" in said


@pytest.mark.parametrize("name", [shipped.POLICY, shipped.DEMOS, shipped.CURVE])
@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_changed_file_is_named(data: Path, name: str, damage: str) -> None:
    file = data / ENV / name
    shipped.read(ENV)  # remember the checksum
    content, time = bytearray(file.read_bytes()), file.stat().st_mtime_ns + 1
    if damage == "gone":
        file.unlink()
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes(content if damage == "flipped" else content[:-1])
        os.utime(file, ns=(time, time))
    said = error()
    assert said.startswith(f"{file}: ") and "`git checkout" in said
    assert ("can't be read" if damage == "gone" else "checksum") in said


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"env": "Ant-v4"}, "env"),
        ({"files": {}}, "files"),
        ({"files": dict.fromkeys((shipped.POLICY, shipped.DEMOS, shipped.CURVE), 3)}, "files"),
        ({"files": {"../../secret": "0"}}, "files"),
        ({"returns": []}, "returns"),
        ({"returns": ["8000"]}, "returns"),
        ({"episodes": 17}, "episodes"),
        ({"episodes": 0}, "episodes"),
        ({"returns": [float("nan")]}, "returns"),
        ({"returns": 3}, "returns"),
        ({"random": None}, "random"),
        ({"step": 1.5}, "step"),
        ({"updates": True}, "updates"),
        ({"wall_seconds": "1"}, "wall_seconds"),
        ({"kept": {"step": 1}}, "kept"),
        ({"config": "lite"}, "config"),
    ],
)
def test_a_wrong_field_is_named(data: Path, fields: dict[str, Any], name: str) -> None:
    change(data, **fields)
    assert f"{shipped.EXPERT}: field '{name}': found " in error()


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0}', "{"])
def test_no_record(data: Path, text: str) -> None:
    (data / ENV / shipped.EXPERT).write_text(text)
    assert f"{shipped.EXPERT}: not an expert's record of format 1" in error()


def test_a_file_is_read_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that only the first call reads the files; the workflow calls `read` for each run."""
    shipped.read(ENV)
    reads: list[Path] = []
    whole: Callable[[Path], bytes] = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: reads.append(self) or whole(self))
    shipped.read(ENV)
    assert reads == []
