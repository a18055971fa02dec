"""Former results: complete runs that another run with the same key has replaced.

A run or an expert that is replaced moves to `former/<key>/<config hash>-<source hash>/`, beside
`runs/` and `experts/`. If its settings are requested again, it moves back instead of being trained
again. A process that moves a result holds the lock of the run's folder.

Files move one by one. The record, run.json, leaves the run's folder last and returns first. If a
move is interrupted, the next one therefore completes it.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ngt.files import read_json
from ngt.runs.status import Status, drop_receipts, status_of
from ngt.text import NAME

FORMER = "former"
FILES = ("config.json", "eval.csv", "train.csv", "policy.safetensors", "run.json")


class Former(NamedTuple):
    """A former result. Its name is the run's key, or `<env>/expert` for an expert."""

    name: str
    folder: Path
    status: Status


def former_of(folder: Path) -> Path:
    """Return the folder of the former results of a run or an expert, given its own folder."""
    for parent in folder.parents:
        if parent.name in ("runs", "experts"):
            key = folder.relative_to(parent)
            return parent.parent / FORMER / (key / "expert" if parent.name == "experts" else key)
    return folder / FORMER  # the run is not in a scale's folder


def set_aside(folder: Path) -> Path | None:
    """Move a folder's result to its former results.

    Return the result's new folder, or None if there is no result.
    """
    drop_receipts(folder / "done")
    if not (folder / "run.json").exists():
        return None
    found: Any = read_json(folder / "run.json")
    record = found if isinstance(found, dict) else {}
    name = "-".join(_hash(record.get(field)) for field in ("config_hash", "source_hash"))
    places = [former_of(folder) / name]
    while (places[-1] / "run.json").exists():  # another result with the same settings and code
        places.append(former_of(folder) / f"{name}-{len(places) + 1}")
    places[-1].mkdir(parents=True, exist_ok=True)
    for file in FILES:
        if (folder / file).exists():
            (folder / file).replace(places[-1] / file)
    return places[-1]


def _hash(value: Any) -> str:
    """Return a hash from a record, or "unknown" if it cannot be part of a folder's name."""
    return value if isinstance(value, str) and NAME.fullmatch(value) else "unknown"


def find(folder: Path, fits: Callable[[Path], bool]) -> Path | None:
    """Return the folder of a run's newest former result for which `fits` is True, or None."""
    records = sorted(
        former_of(folder).glob("*/run.json"), key=lambda file: (-file.stat().st_mtime_ns, file)
    )
    return next((file.parent for file in records if fits(file.parent)), None)


def bring_back(folder: Path, place: Path) -> Path | None:
    """Move a former result back into its run's folder, and set aside the result that is there.

    Return the new folder of the result that was set aside, or None if there was none.

    folder: the run's folder.
    place: the former result's folder.
    """
    aside = set_aside(folder)
    for file in reversed(FILES):
        if (place / file).exists():
            (place / file).replace(folder / file)
    _remove(place)
    return aside


def returned(folder: Path, place: Path, aside: Path | None) -> str:
    """Return a message about a former result that came back.

    folder, place: the arguments of `bring_back`.
    aside: its result.
    """
    other = f"; the result that was there moved to {aside}" if aside else ""
    return f"{folder}: its former result with these settings came back from {place}{other}"


def listed(work: Path) -> Iterator[Former]:
    """Yield a scale's former results, sorted by their names. work: the scale's folder."""
    for file in sorted((work / FORMER).rglob("run.json")):
        found: Any = read_json(file)
        record = found if isinstance(found, dict) else {}
        status = Status("damaged", "run.json can't be read")
        if isinstance(key := record.get("key"), dict):
            status = status_of(file.parent, key, str(record.get("config_hash")))
        yield Former(file.parent.parent.relative_to(work / FORMER).as_posix(), file.parent, status)


def remove(former: Former) -> None:
    """Delete a former result."""
    (former.folder / "run.json").unlink()  # first, so that no process brings it back meanwhile
    _remove(former.folder)


def _remove(place: Path) -> None:
    """Remove a former result's folder, and the folders above it that become empty."""
    shutil.rmtree(place)
    for parent in place.parents:
        if parent.name == FORMER or any(parent.iterdir()):
            return
        parent.rmdir()
