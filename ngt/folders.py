"""Runs as their folders hold them: the status of each key, and its record; shipped experts too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ngt import shipped
from ngt.config import Config, Mode, config_hash, own_file, resolve, resolve_expert
from ngt.errors import UserError
from ngt.files import read_json
from ngt.records import PART, checksum, source_hash
from ngt.runs import Layout, RunKey, resolve_key, run_table

if TYPE_CHECKING:
    import pandas as pd

STATUSES = ("finished", "diverged", "stale", "part", "missing")
COMPLETE = STATUSES[:2]

# What is kept of an evaluation, one row a (run, step).
VALUES = ("return", "std", "low", "high", "episodes", "auc", "seconds")


class Status(NamedTuple):
    """A run's state: `stale` has other settings, `part` has begun and not ended."""

    status: str
    note: str
    other_source: bool = False  # made by other code than this


class Record(NamedTuple):
    """A complete run: its run.json, and its evaluations with columns step and VALUES.

    return, std (sample), low and high are over the episodes of an evaluation; auc and seconds are
    what train.csv and run.json's timing say at that step, nan where they do not.
    """

    run: dict[str, Any]
    evaluations: pd.DataFrame


class Folders:
    """Runs that were made here."""

    def __init__(self, layout: Layout, config: Config) -> None:
        self.layout, self.config = layout, config

    def status(self, key: RunKey) -> Status:
        """As `run_status`."""
        return run_status(self.layout, self.config, key)

    def read(self, key: RunKey) -> Record:
        """Its run.json must be of this key."""
        record = read_folder(self.layout.run(key), f"run {key}")
        found = key_in(record.run)
        if found != str(key):
            folder = self.layout.run(key)
            raise UserError(
                f"run {key}: {folder}/run.json is of another run, {found}; train it again"
            )
        return record

    def has_expert(self, env: str) -> bool:
        """Whether there is one to read, and the config takes its demonstrations."""
        if own_file(self.config, env):
            return False
        if self.config.demos == "shipped":
            return shipped.ships(env)
        return (self.layout.expert(env) / "run.json").exists()

    def read_expert(self, env: str) -> Record:
        """From its folder, or as it ships where the config says so."""
        if self.config.demos == "shipped":
            return read_shipped(env)
        folder = self.layout.expert(env)
        record = read_folder(folder, f"expert {env}")
        if record.run.get("config_hash") != config_hash(resolve_expert(self.config, env)):
            raise UserError(
                f"expert {env}: trained with other settings in {folder}; `ngt expert {env} "
                f"--replace` trains it with these"
            )
        return record

    def strays(self, keys: Sequence[RunKey]) -> list[str]:
        """Complete runs in these keys' cells; UserError for a copy of another run in their envs."""
        known = {str(key) for key in run_table(self.config)}
        cells = {self.layout.run(key).parent for key in keys}
        found = []
        for env in sorted({key.env for key in keys}):
            for file in sorted((self.layout.runs / env).glob("*/*/*/run.json")):
                name = file.parent.relative_to(self.layout.runs).as_posix()
                if name in known:
                    continue
                if file.parent.parent in cells:
                    found.append(name)
                elif (told := key_in(read_json(file))) != name:
                    raise UserError(f"run {name}: {file} is of another run, {told}; move it away")
        return found


def key_in(run: Any) -> str | None:
    """The key that a run.json names."""
    told = run.get("key") if isinstance(run, dict) else None
    return told.get("run") if isinstance(told, dict) else None


def run_status(layout: Layout, config: Config, key: RunKey) -> Status:
    """The state of a run's folder against the config."""
    folder = layout.run(key)
    record = read_json(folder / "run.json")
    if not isinstance(record, dict):
        begun = [p for p in (folder / f"eval.csv{PART}", folder / "eval.csv") if p.exists()]
        damaged = "run.json can't be read, " * (folder / "run.json").exists()
        if not begun and not damaged:
            return Status("missing", "")
        reached = _last_step(begun[0]) if begun else 0
        return Status("part", f"{damaged}last evaluation at step {reached}")
    if record.get("config_hash") != config_hash(resolve_key(config, key)):
        return Status("stale", "trained with other settings")
    if record.get("status") not in COMPLETE:
        return Status("part", "run.json lacks its status")
    note = f"step {record.get('step')}, {record.get('steps_per_second')} steps/s"
    if record["status"] == "diverged":
        note = f"step {record.get('step')}: {record.get('tensor')} is not finite"
    other = record.get("source_hash") != source_hash()
    return Status(record["status"], note + ", other source" * other, other)


def _last_step(path: Path) -> int:
    last = path.read_text(encoding="utf-8").splitlines()[-1:]
    step = last[0].split(",")[0] if last else ""
    return int(step) if step.isdigit() else 0


def how_far(layout: Layout, config: Config, keys: Iterable[RunKey]) -> list[str]:
    """One line a cell: how many of these runs have begun and not ended, and how far they are."""
    reached: dict[tuple[str, str, Mode, int], list[int]] = {}
    for key in keys:
        file = layout.run(key) / f"eval.csv{PART}"
        if file.exists():
            reached.setdefault(key.cell, []).append(_last_step(file))
    lines = []
    for cell, found in reached.items():
        steps, (env, method, mode, rate) = resolve(config, *cell).train.steps, cell
        low, high = min(found), max(found)
        at = f"step {low}" if low == high else f"steps {low} to {high}"
        share = f"{100 * sum(found) / len(found) / steps:.0f}%"
        lines.append(f"{env}/{method}/{mode}-rate{rate}: {len(found)} at {at} of {steps}, {share}")
    return lines


def read_folder(folder: Path, name: str) -> Record:
    """A complete folder; UserError where it is not complete."""
    record = read_json(folder / "run.json")
    if not isinstance(record, dict):
        raise UserError(f"{name}: {folder}/run.json is not there; train it first")
    known = record.get("files")  # a record of before there were checksums has none
    sums = known if isinstance(known, dict) else {}
    for file in sums.keys() & {"eval.csv", "train.csv"}:
        if (folder / file).exists() and checksum(folder / file) != sums[file]:
            raise UserError(
                f"{name}: {folder / file} was changed or damaged (checksum); train it again"
            )
    means = _means(folder / "eval.csv", name)
    means["auc"] = _logged(folder / "train.csv", "auc", name).reindex(means.index)
    means["seconds"] = _clock(record, f"{folder}/run.json", name).reindex(means.index)
    return Record(record, means.reset_index())


def read_shipped(env: str) -> Record:
    """An expert as it ships: expert.json is its run.json, and says more."""
    name, folder = f"expert {env}", shipped.DATA / env
    record = shipped.read(env)
    means = _means(folder / shipped.CURVE, name)
    means["auc"] = float("nan")
    means["seconds"] = _clock(record, f"{folder / shipped.EXPERT}", name).reindex(means.index)
    return Record(record, means.reset_index())


def _means(path: Path, name: str) -> pd.DataFrame:
    """VALUES of each evaluation that are over its episodes, by step; nan where one is no number."""
    import pandas as pd

    types = {"step": "int64", "return": "float64"}  # said, for a table without rows
    try:
        table = pd.read_csv(path, float_precision="round_trip", dtype=types)
        grouped = table.groupby("step")["return"]
    except (OSError, ValueError, KeyError, OverflowError) as error:  # pandas' own are ValueErrors
        reason = " ".join(str(error).split())
        raise UserError(f"{name}: {path}: {reason}; train it again") from None
    whole = np.isfinite(table["return"]).groupby(table["step"]).all()
    return pd.DataFrame(
        {
            "return": grouped.mean().where(whole), "std": grouped.std(), "low": grouped.min(),
            "high": grouped.max(), "episodes": grouped.size(),
        }
    )  # fmt: skip


def _clock(record: dict[str, Any], where: str, name: str) -> pd.Series:
    """Seconds of training by step."""
    import pandas as pd

    try:
        clock = {int(step): float(seconds) for step, seconds in record.get("timing", [])}
        return pd.Series(clock, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"{name}: {where}: timing is not pairs of step and seconds; train it again"
        ) from None


def _logged(path: Path, column: str, name: str) -> pd.Series:
    """A column of train.csv by step; empty where the run logged no such thing."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"step": "int64", column: "float64"})
    except pd.errors.EmptyDataError:
        table = pd.DataFrame(columns=["step"])
    except (OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{name}: {path}: {reason}; train it again") from None
    if column not in table or "step" not in table:
        return pd.Series(dtype=float)
    values: pd.Series = table.drop_duplicates("step", keep="last").set_index("step")[column]
    return values
