"""Tests of other projects' files: they are recognised, and the error names the import command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import h5py
import numpy as np
import pytest

from ngt.cli import build_parser
from ngt.errors import UserError
from ngt.foreign.recognise import recognise, refuse_foreign

ROOT = Path(__file__).resolve().parents[3]


def make(place: Path, kind: str) -> Path:
    """Make a file or folder of another project; `kind` selects the project and form."""
    if kind == "d4rl":
        with h5py.File(place / "a.hdf5", "w") as file:
            file["observations"] = np.zeros(3)
        return place / "a.hdf5"
    if kind == "npz":
        np.savez(place / "a.npz", obs=np.zeros(3))
        return place / "a.npz"
    if kind == "imitation":
        return ROOT / "tests/data/imitation-hopper"
    (place / "set/data").mkdir(parents=True)
    (place / "set/data/metadata.json").write_text(json.dumps({"minari_version": "0.5.4"}))
    with h5py.File(place / "set/data/main_data.hdf5", "w") as file:
        file["episode_0/rewards"] = np.zeros(3)
    return place / "set" / {"minari": "", "data": "data", "file": "data/main_data.hdf5"}[kind]


@pytest.mark.parametrize("kind", ["minari", "data", "file", "d4rl", "imitation", "npz"])
def test_the_error_names_the_command(kind: str, tmp_path: Path) -> None:
    path = make(tmp_path, kind)
    with pytest.raises(UserError) as caught:
        refuse_foreign(path, "Hopper-v4")
    text = str(caught.value)
    name = "minari" if kind in ("data", "file") else kind
    assert text.startswith(f"demonstrations {path}: it seems to be ")
    words = shlex.split(text.split("`ngt import")[1].split("` makes")[0])
    args = build_parser("import").parse_args(["import", *words])
    assert (args.format, args.env, args.actions) == (name, "Hopper-v4", "env")
    assert args.source == (path.parent if kind == "file" else path)


@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"PK\x03\x04"])
def test_ours_and_unknown_files_are_left_to_our_reader(
    content: bytes | None, tmp_path: Path
) -> None:
    ours = ROOT / "data/Hopper-v4/demos.npz"
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    for path in (ours, file, tmp_path):
        assert recognise(path) is None
        refuse_foreign(path, "Hopper-v4")
