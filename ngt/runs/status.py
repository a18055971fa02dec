"""The status of a run's folder: finished, diverged, stale, damaged, part or missing.

The commands, the tables and the workflow all use `status_of`, which reads the folder's content and
ignores time stamps. Runs in published records have no folders, so
`ngt.runs.published.Published.status` compares the settings in the records instead.
"""

import contextlib
import dataclasses
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ngt.errors import UserError
from ngt.files import checksum, read_json
from ngt.settings.config import CellConfig
from ngt.settings.difference import difference
from ngt.settings.resolve import recorded

PART = ".part"  # suffix of the names of a run's files until the run is complete
STATUSES = ("finished", "diverged", "stale", "damaged", "part", "missing")
COMPLETE = STATUSES[:2]


class Status(NamedTuple):
    """A run's status, which is one of STATUSES, with the reason for it.

    finished  complete
    diverged  complete; training ended because a tensor was not finite
    stale     complete, but its key, settings or demonstrations differ from the config's
    damaged   was complete, but a file was then removed or changed
    part      started but not complete
    missing   not started
    """

    status: str
    note: str
    other_source: bool = False  # True if a different version of the code made the result


def status_of(
    folder: Path,
    key: Mapping[str, Any],
    config_hash: str,
    reference: Mapping[str, Any] | None = None,
    source: str | None = None,
    wanted: CellConfig | None = None,
) -> Status:
    """Return the status of a run's or an expert's folder.

    key, config_hash: the key and the hash of the settings that the run should have.
    reference: the `reference` entry that run.json should have, or None to skip this comparison.
    Only the checksum of the demonstrations is compared, since it determines the entry's other
    fields.
    source: hash of the current code, or None to skip this comparison.
    wanted: the settings whose hash is `config_hash`. With them, the note of a result that has other
    settings names the first setting that differs.
    """
    record = read_json(folder / "run.json")
    if not isinstance(record, dict):
        return _unfinished(folder)
    if record.get("key") != dict(key):
        return Status("stale", _other_key(record.get("key"), key))
    if record.get("config_hash") != config_hash:
        differs = other_settings(folder, wanted) if wanted else ""
        return Status("stale", "trained with other settings" + f": {differs}" * bool(differs))
    if reference is not None and "demos" in reference:
        found = record.get("reference")
        if not isinstance(found, dict) or found.get("demos") != reference["demos"]:
            return Status("stale", "trained with other demonstrations")
    if record.get("status") not in COMPLETE:
        return Status("damaged", "run.json lacks its status")
    if damage := changed(folder, record):
        return Status("damaged", damage)
    note = f"step {record.get('step')}, {record.get('steps_per_second')} steps/s"
    if record["status"] == "diverged":
        note = f"step {record.get('step')}: {record.get('tensor')} is not finite"
    other = source is not None and record.get("source_hash") != source
    return Status(record["status"], note + ", other source" * other, other)


def _other_key(found: Any, key: Mapping[str, Any]) -> str:
    """Return a message about a key in run.json that differs from the planned key.

    An expert's key has no `run` field. It may differ in the seed alone.
    """
    if not isinstance(found, dict):
        return "run.json names no run"
    if "run" not in key and found == {**key, "seed": found.get("seed")}:
        return f"trained with expert.seed {found['seed']}, not {key['seed']}"
    name = found.get("run", f"{found.get('env')}/{found.get('method')}")
    return f"run.json belongs to another run, {name}"


def other_settings(folder: Path, wanted: CellConfig) -> str:
    """Describe the first of a result's settings that differs from `wanted`, or return "".

    Also return "" if the result's config.json is missing or can't be read.
    """
    found = read_json(folder / "config.json")
    if not isinstance(found, dict):
        return ""
    made = {name: value for name, value in found.items() if name != "key"}
    with contextlib.suppress(UserError):  # of a setting or a model that is gone, say as it is
        made = dataclasses.asdict(recorded(made, "config.json"))  # complete, as `wanted` is
    differs = difference(made, dataclasses.asdict(wanted), "the result")
    if differs.startswith("demos_source "):  # a hash, which tells a reader nothing
        return "demonstrations of another expert, or from another file"
    return differs


def _unfinished(folder: Path) -> Status:
    """Return the status of a folder in which run.json is missing or can't be read."""
    begun = [p for p in (folder / f"eval.csv{PART}", folder / "eval.csv") if p.exists()]
    reached = f"last evaluation at step {last_step(begun[0]) if begun else 0}"
    if (folder / "run.json").exists():
        return Status("damaged", f"run.json can't be read, {reached}")
    return Status("part", reached) if begun else Status("missing", "")


def last_step(path: Path) -> int:
    """Return the step of the last evaluation in an eval.csv file, or 0 if there is none."""
    last = path.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
    step = last[0].split(",")[0] if last else ""
    return int(step) if re.fullmatch(r"\d{1,18}", step) else 0  # int() refuses 4301 digits


def run_in(record: Any) -> str | None:
    """Return the run's name from the content of a run.json, or None if the content names no run."""
    key = record.get("key") if isinstance(record, dict) else None
    return key.get("run") if isinstance(key, dict) else None


def changed(folder: Path, record: Mapping[str, Any], names: Iterable[str] = ()) -> str:
    """Return a message about a file that does not match run.json, or "" if all files match.

    names: the files to check; by default, all files that run.json lists.
    """
    listed = record.get("files")
    sums = listed if isinstance(listed, dict) else {}
    if not sums and not (folder / "eval.csv").exists():  # a run.json of earlier versions lists none
        return f"{folder / 'eval.csv'} is missing"
    for name in sorted(sums.keys() & set(names or sums)):
        try:
            if checksum(folder / name) != sums[name]:
                return f"{folder / name} was changed or damaged (checksum)"
        except OSError as error:
            return f"{folder / name} can't be read ({error.strerror})"
    return ""


def drop_receipts(done: Path) -> None:
    """Remove the receipts `<done>.<hash>` of a result that is about to be replaced."""
    for receipt in done.parent.glob(f"{done.name}.*"):
        receipt.unlink()


def described(demos: Path) -> dict[str, Any]:
    """Return a demonstration file's env, source and checksum, or {} if it is unreadable.

    NumPy is not needed to read the `meta` array, since the file stores it as a one-line header
    followed by JSON text. `json` detects the encoding of that text.
    """
    try:
        with zipfile.ZipFile(demos) as archive:
            meta = json.loads(archive.read("meta.npy").partition(b"\n")[2])
    except Exception:  # on a damaged file, zipfile and zlib may raise any exception
        return {}
    return meta if isinstance(meta, dict) else {}
