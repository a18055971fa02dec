"""Functions that recognise files of other projects and name the command that imports them."""

from __future__ import annotations

import zipfile
from pathlib import Path

from ngt.errors import UserError
from ngt.files import read_json

HDF5 = b"\x89HDF\r\n\x1a\n"


def refuse_foreign(path: Path, env: str) -> None:
    """If a file has another project's format, raise a UserError that names the import command."""
    if not (kind := recognise(path)):
        return
    name, words = kind
    source = path.parent if path.name == "main_data.hdf5" else path
    target = f"{path.stem or path.name}-ngt.npz"
    raise UserError(
        f"demonstrations {path}: it seems to be {words}; `ngt import {name} {source} --env {env} "
        f"--actions env --out {target}` makes a file to use instead (--actions unit if its "
        f"actions are fractions of the env's bound)"
    )


def recognise(path: Path) -> tuple[str, str] | None:
    """Return another project's format and its description, or None if no such format is found."""
    if path.is_dir():
        for folder in (path, path / "data"):
            meta = read_json(folder / "metadata.json")
            if isinstance(meta, dict) and "minari_version" in meta:
                return "minari", "a Minari dataset"
        if (path / "state.json").is_file() and (path / "dataset_info.json").is_file():
            return "imitation", "trajectories saved by `imitation`"
        return None
    try:
        with open(path, "rb") as file:
            start = file.read(len(HDF5))
        if start == HDF5:
            if (path.parent / "metadata.json").is_file():
                return "minari", "the data file of a Minari dataset"
            return "d4rl", "an HDF5 file as D4RL has them"
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            if names and "meta.npy" not in names and any(n.endswith(".npy") for n in names):
                return "npz", "a NumPy archive of another layout"
    except (OSError, zipfile.BadZipFile):
        pass  # the reader of the suite's own format reports the fault
    return None
