"""Former results: complete results that a newer result with the same key has replaced.

A run's key is the path of its folder below `runs/`. When a new result of a run or an expert
replaces an old one, the old result is moved to `former/<key>/<config hash>-<source hash>/`, in the
folder that holds `runs/` and `experts/`. If a run with the old settings is requested later, the old
result is restored and nothing is trained. A process that moves a result holds the lock on the run's
folder.

A folder holds a result only if it holds run.json. A move therefore copies all files, run.json last,
and then deletes the originals, run.json first. If the move is interrupted, at least one of the two
folders holds the complete result.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ngt.files import atomic, read_json
from ngt.runs.status import Status, drop_receipts, status_of
from ngt.text import NAME

FORMER = "former"
FILES = ("config.json", "eval.csv", "train.csv", "policy.safetensors", "run.json")


class Former(NamedTuple):
    """A former result.

    name: the run's key, or `<env>/expert` for an expert.
    folder: the folder below `former/` that holds the result.
    """

    name: str
    folder: Path
    status: Status


def former_of(folder: Path) -> Path:
    """Return the folder for the former results of the run or expert in `folder`.

    A run's key has four parts, of which the env or the method may be called `runs` or `experts`.
    """
    if folder.parent.name == "experts":
        return folder.parent.parent / FORMER / folder.name / "expert"
    if len(folder.parents) > 3 and (runs := folder.parents[3]).name == "runs":
        return runs.parent / FORMER / folder.relative_to(runs)
    return folder / FORMER  # the folder is not below `runs` or `experts`


def set_aside(folder: Path) -> Path | None:
    """Move a run's current result to the folder for former results.

    Return the result's new folder, or None if there is no result.
    """
    drop_receipts(folder / "done")
    if not (folder / "run.json").exists():
        return None
    found: Any = read_json(folder / "run.json")
    record = found if isinstance(found, dict) else {}
    name = "-".join(_hash(record.get(field)) for field in ("config_hash", "source_hash"))
    places = [former_of(folder) / name]
    while _another(folder, places[-1]):  # a result with the same settings and code
        places.append(former_of(folder) / f"{name}-{len(places) + 1}")
    _move(folder, places[-1])
    return places[-1]


def _another(folder: Path, place: Path) -> bool:
    """Return True if `place` holds a result, and not the one in `folder` from a stopped move."""
    record = place / "run.json"
    return record.exists() and record.read_bytes() != (folder / "run.json").read_bytes()


def _move(source: Path, target: Path) -> None:
    """Move a result's files in an order that keeps one complete result if the move is stopped."""
    files = [file for file in FILES if (source / file).exists()]
    done = (target / "run.json").exists()  # a stopped move has copied everything
    for file in () if done else files:
        with atomic(target / file) as temporary:
            shutil.copy2(source / file, temporary)  # keeps the time stamp, which `find` compares
    for file in reversed(files):
        (source / file).unlink()


def _hash(value: Any) -> str:
    """Return a hash from run.json, or "unknown" if the hash can't be part of a folder name."""
    return value if isinstance(value, str) and NAME.fullmatch(value) else "unknown"


def find(folder: Path, fits: Callable[[Path], bool]) -> Path | None:
    """Return the folder of a run's newest suitable former result, or None if there is none.

    folder: the run's folder.
    fits: a function that returns True if the former result in a given folder is suitable, for
    example because it has the requested settings.
    """
    records = sorted(
        former_of(folder).glob("*/run.json"), key=lambda file: (-file.stat().st_mtime_ns, file)
    )
    return next((file.parent for file in records if fits(file.parent)), None)


def bring_back(folder: Path, place: Path) -> Path | None:
    """Restore a former result to its run's folder, after setting aside the current result.

    Return the current result's new folder, or None if there was no current result.

    folder: the run's folder.
    place: the former result's folder.
    """
    aside = set_aside(folder)
    _move(place, folder)
    _remove(place)
    return aside


def returned(folder: Path, place: Path, aside: Path | None) -> str:
    """Return a message that a former result was restored.

    folder, place: the arguments of `bring_back`.
    aside: the path that `bring_back` returned.
    """
    other = f"; the result that was there moved to {aside}" if aside else ""
    return f"{folder}: its former result with these settings came back from {place}{other}"


def listed(work: Path) -> Iterator[Former]:
    """Yield the former results in a folder, sorted by their names.

    work: the folder that holds `runs/` and `former/`, such as results/quick.
    """
    for file in sorted((work / FORMER).rglob("run.json")):
        found: Any = read_json(file)
        record = found if isinstance(found, dict) else {}
        status = Status("damaged", "run.json can't be read")
        if isinstance(key := record.get("key"), dict):
            status = status_of(file.parent, key, str(record.get("config_hash")))
        yield Former(file.parent.parent.relative_to(work / FORMER).as_posix(), file.parent, status)


def remove(former: Former) -> None:
    """Delete a former result."""
    (former.folder / "run.json").unlink()  # removed first, so that no process restores the result
    _remove(former.folder)


def _remove(place: Path) -> None:
    """Remove a former result's folder, and all folders above it that become empty."""
    shutil.rmtree(place)
    for parent in place.parents:
        if parent.name == FORMER or any(parent.iterdir()):
            return
        parent.rmdir()
