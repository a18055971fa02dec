"""Runs as their folders hold them: the status of each key, and its record; shipped experts too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ngt.errors import UserError
from ngt.experience import shipped
from ngt.files import read_json
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.provenance import source_hash
from ngt.runs.state import PART, Status, changed, last_step, recorded, run_in, state
from ngt.settings.config import Config, Mode
from ngt.settings.resolve import (
    config_hash,
    demos_file,
    expert_config,
    own_file,
    resolve,
    resolve_expert,
)

if TYPE_CHECKING:
    import pandas as pd

# What is kept of an evaluation, one row a (run, step).
VALUES = ("return", "std", "low", "high", "episodes", "auc", "seconds")


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
        self._hashes: dict[tuple[str, str, Mode, int], str] = {}
        self._references: dict[str, dict[str, Any]] = {}

    def config_hash(self, key: RunKey) -> str:
        """Of the settings of a run's cell."""
        if key.cell not in self._hashes:
            self._hashes[key.cell] = config_hash(resolve_key(self.config, key))
        return self._hashes[key.cell]

    def status(self, key: RunKey) -> Status:
        """The state of a run's folder against the config."""
        return state(
            self.layout.run(key), key.record, self.config_hash(key), self.reference(key.env),
            source_hash(),
        )  # fmt: skip

    def expert_status(self, env: str) -> Status:
        """The state of an expert's folder against the config."""
        cell = resolve_expert(self.config, env)
        key = expert_key(env, expert_config(self.config, env).seed)
        return state(self.layout.expert(env), key, config_hash(cell), None, source_hash())

    def reference(self, env: str) -> dict[str, Any]:
        """What runs say of an env's demonstrations, if those that the config names are there."""
        if env not in self._references:
            named = demos_file(self.config, env)
            said = recorded(Path(named) if named else self.layout.demos(env))
            ours = named or said.get("source") == config_hash(resolve_expert(self.config, env))
            self._references[env] = {"demos": said.get("checksum")} if ours and said else {}
        return self._references[env]

    def read(self, key: RunKey) -> Record:
        """Its run.json must be of this key."""
        record = read_folder(self.layout.run(key), f"run {key}")
        found = run_in(record.run)
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
        status = self.expert_status(env)
        if status.status in ("stale", "damaged"):
            raise UserError(
                f"expert {env}: {status.note} in {folder}; `ngt expert {env} --replace` trains it "
                f"again"
            )
        return read_folder(folder, f"expert {env}")

    def strays(self, keys: Sequence[RunKey]) -> list[str]:
        """Complete runs in these keys' cells; UserError for a copy of another run in their envs."""
        for key in keys:
            file = self.layout.run(key) / "run.json"
            told = run_in(read_json(file))
            if told not in (None, str(key)):
                raise UserError(f"run {key}: {file} is of another run, {told}; train it again")
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
                elif (told := run_in(read_json(file))) != name:
                    raise UserError(f"run {name}: {file} is of another run, {told}; move it away")
        return found


def expert_key(env: str, seed: int) -> dict[str, Any]:
    """An expert's key as its run.json shows it."""
    return {"env": env, "method": "expert", "seed": seed}


def how_far(layout: Layout, config: Config, keys: Iterable[RunKey]) -> list[str]:
    """One line a cell: how many of these runs have begun and not ended, and how far they are."""
    reached: dict[tuple[str, str, Mode, int], list[int]] = {}
    for key in keys:
        file = layout.run(key) / f"eval.csv{PART}"
        if file.exists():
            reached.setdefault(key.cell, []).append(last_step(file))
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
    if damage := changed(folder, record, ("eval.csv", "train.csv")):
        raise UserError(f"{name}: {damage}; train it again")
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
