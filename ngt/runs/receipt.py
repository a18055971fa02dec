"""Receipts: empty files that tell the workflow which results are complete.

python -m ngt.runs.receipt RECEIPT...

A run has the receipt `<run>/done.<hash>`, an expert has `<expert>/done.<hash>`, and a recording (an
env's demonstration file) has `<env>.done.<hash>`. The hash identifies the settings. The command
writes a receipt only if the result in the same folder is intact and has these settings. Otherwise,
the command looks for an earlier result of the run or expert that a newer one replaced (see
ngt.runs.former). If such a result is intact and has these settings, the command restores it; if
not, the command reports an error.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from ngt.errors import UserError
from ngt.files import read_json, sha256
from ngt.runs.former import bring_back, find, returned
from ngt.runs.lock import locked
from ngt.runs.status import COMPLETE, changed, described, run_in


def receipt_hash(run: str, config_hash: str) -> str:
    """Return a hash of a run's key and settings, for the file name of the run's receipt."""
    return sha256(f"{run}{config_hash}".encode())[:16]


def certify(receipt: Path) -> None:
    """Write a receipt. Raise UserError if the result does not match the receipt's hash."""
    stem, _, wanted = receipt.name.rpartition("done.")
    if stem:  # the receipt of a recording
        file = receipt.with_name(f"{stem}npz")
        found = described(file).get("source")
        if found != wanted:
            raise UserError(
                f"{file}: recorded from {found}, but {wanted} was planned; run the same command "
                f"to record it again"
            )
    else:
        folder = receipt.parent
        if fault_in(folder, wanted) and (place := find(folder, lambda p: fits(p, wanted))):
            with locked(folder):
                aside = bring_back(folder, place)
            print(returned(folder, place, aside), file=sys.stderr)
        if fault := fault_in(folder, wanted):
            raise UserError(f"{fault}; run the same command to train it again")
    receipt.touch()


def fault_in(folder: Path, wanted: str) -> str:
    """Return why a folder's result does not match a receipt's hash, or "" if the result matches."""
    file, record = folder / "run.json", read_json(folder / "run.json")
    record = record if isinstance(record, dict) else {}
    run, made = run_in(record), str(record.get("config_hash"))
    found = made if run is None else receipt_hash(run, made)  # an expert's key has no `run` field
    if found != wanted:
        what = f"made with {found}" if record else "missing or unreadable"
        return f"{file}: {what}, but {wanted} was planned"
    return changed(folder, record)


def fits(place: Path, wanted: str) -> bool:
    """Return True if a replaced result is complete and matches a receipt's hash."""
    record = read_json(place / "run.json")
    complete = isinstance(record, dict) and record.get("status") in COMPLETE
    return complete and not fault_in(place, wanted)


def main(argv: Sequence[str] | None = None) -> None:
    """Write every receipt named on the command line."""
    try:
        for receipt in sys.argv[1:] if argv is None else argv:
            certify(Path(receipt))
    except UserError as error:
        print(f"ngt: error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
