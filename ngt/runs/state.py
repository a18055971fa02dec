"""The state of what a folder holds, from its content alone, and the workflow's receipts.

python -m ngt.runs.state RECEIPT

A receipt `<...>done.<hash>` is an empty file that stands for a run, an expert or a recording beside
it. It is written if what lies there has the hash of the receipt's name, and is whole; otherwise it
is an error. No time stamp counts, and nothing that the workflow remembers.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ngt.errors import UserError
from ngt.files import read_json

PART = ".part"  # behind the names of a run's files until it is complete
STATUSES = ("finished", "diverged", "stale", "damaged", "part", "missing")
COMPLETE = STATUSES[:2]


class Status(NamedTuple):
    """A run's state.

    `stale`: complete, with other settings, with other demonstrations or of another run. `damaged`:
    complete once, and a file is missing or was changed since. `part`: begun and not ended.
    """

    status: str
    note: str
    other_source: bool = False  # made by other code than this


def state(
    folder: Path, key: Mapping[str, Any], config_hash: str,
    reference: Mapping[str, Any] | None = None, source: str | None = None,
) -> Status:  # fmt: skip
    """The state of a run's or an expert's folder.

    reference: what its returns are normalised by. Only the demonstrations' checksum is compared:
    all else follows from them, and former records lack some of it. source: hash of the code at
    hand; None is not compared.
    """
    record = read_json(folder / "run.json")
    if not isinstance(record, dict):
        return _unfinished(folder)
    if record.get("key") != dict(key):
        return Status("stale", f"run.json is of another run, {run_in(record)}")
    if record.get("config_hash") != config_hash:
        return Status("stale", "trained with other settings")
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


def _unfinished(folder: Path) -> Status:
    """The state of a folder whose run.json is missing or can't be read."""
    begun = [p for p in (folder / f"eval.csv{PART}", folder / "eval.csv") if p.exists()]
    reached = f"last evaluation at step {last_step(begun[0]) if begun else 0}"
    if (folder / "run.json").exists():
        return Status("damaged", f"run.json can't be read, {reached}")
    return Status("part", reached) if begun else Status("missing", "")


def last_step(path: Path) -> int:
    """The step of the last evaluation in a file; 0 if there is none."""
    last = path.read_text(errors="replace").splitlines()[-1:]
    step = last[0].split(",")[0] if last else ""
    return int(step) if step.isdigit() else 0


def run_in(record: Any) -> str | None:
    """The run that a run.json names."""
    told = record.get("key") if isinstance(record, dict) else None
    return told.get("run") if isinstance(told, dict) else None


def changed(folder: Path, record: Mapping[str, Any], names: Iterable[str] = ()) -> str:
    """The first file that is not as its run.json says, in words; empty if all are.

    names: only these files; all that it lists if none is given.
    """
    listed = record.get("files")
    sums = listed if isinstance(listed, dict) else {}
    if not sums and not (folder / "eval.csv").exists():  # older records list none
        return f"{folder / 'eval.csv'} is missing"
    for name in sorted(sums.keys() & set(names or sums)):
        try:
            if checksum(folder / name) != sums[name]:
                return f"{folder / name} was changed or damaged (checksum)"
        except OSError as error:
            return f"{folder / name} can't be read ({error.strerror})"
    return ""


def checksum(path: Path) -> str:
    """Of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def named_by(run: str, config_hash: str) -> str:
    """Names a run and its settings: what its receipt carries."""
    return hashlib.sha256(f"{run}{config_hash}".encode()).hexdigest()[:16]


def recorded(file: Path) -> dict[str, Any]:
    """What a demonstration file says of itself: env, source and checksum; empty if unreadable."""
    import numpy as np

    try:
        with zipfile.ZipFile(file) as archive, archive.open("meta.npy") as member:
            meta = json.loads(str(np.lib.format.read_array(member, allow_pickle=False)[()]))
    except Exception:  # zipfile, zlib and NumPy raise all sorts on a damaged file
        return {}
    return meta if isinstance(meta, dict) else {}


def certify(receipt: Path) -> None:
    """Write a receipt; UserError if what lies beside it is not what its name says."""
    stem, _, wanted = receipt.name.rpartition("done.")
    if stem:  # <env>.done.<hash>: a recording
        file = receipt.with_name(f"{stem}npz")
        found = recorded(file).get("source")
        if found != wanted:
            raise UserError(
                f"{file}: recorded from {found}, and {wanted} was planned; the same command "
                f"records it again"
            )
    else:
        file, record = receipt.parent / "run.json", read_json(receipt.parent / "run.json")
        record = record if isinstance(record, dict) else {}
        run, made = run_in(record), str(record.get("config_hash"))
        found = made if run is None else named_by(run, made)  # an expert's has no run
        if found != wanted:
            what = f"made with {found}" if record else "missing or unreadable"
            raise UserError(
                f"{file}: {what}, and {wanted} was planned; the same command trains it again"
            )
        if damage := changed(receipt.parent, record):
            raise UserError(f"{damage}; the same command trains it again")
    receipt.touch()


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    try:
        for receipt in sys.argv[1:] if argv is None else argv:
            certify(Path(receipt))
    except UserError as error:
        print(f"ngt: error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
