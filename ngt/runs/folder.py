"""The status and results of runs and experts, read from their folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ngt.errors import UserError
from ngt.experience import shipped
from ngt.files import read_json
from ngt.runs.former import find
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.provenance import source_hash
from ngt.runs.receipt import fault_in, fits
from ngt.runs.status import (
    COMPLETE,
    Status,
    changed,
    described,
    run_in,
    status_of,
)
from ngt.settings.config import CellConfig, Config, Mode
from ngt.settings.recording import other_episodes, other_expert, seeds_in
from ngt.settings.resolve import (
    config_hash,
    demos_file,
    expert_config,
    own_file,
    resolve_expert,
)

if TYPE_CHECKING:
    import pandas as pd

# Columns of a table of evaluations with one row per run and evaluation.
LOGGED = ("auc", "rank_correlation")  # diagnostics of the learned reward, from train.csv
VALUES = ("return", "std", "low", "high", "episodes", *LOGGED, "seconds")


class Record(NamedTuple):
    """A complete run: its run.json, and a table of its evaluations.

    The table has the column step and the columns in VALUES:

    return, std, low, high: mean, sample standard deviation, minimum and maximum of an evaluation's
    returns.
    auc, rank_correlation: values from train.csv at the same step, or NaN if train.csv lacks this
    step.
    seconds: training time up to the same step, from run.json, or NaN if run.json lacks this step.
    """

    run: dict[str, Any]
    evaluations: pd.DataFrame


class Folders:
    """The folders of runs and experts under `results/`."""

    def __init__(self, layout: Layout, config: Config) -> None:
        self.layout, self.config = layout, config
        self._cells: dict[tuple[str, str, Mode, int], CellConfig] = {}
        self._hashes: dict[tuple[str, str, Mode, int], tuple[str, str]] = {}
        self._references: dict[str, dict[str, Any]] = {}

    def cell(self, key: RunKey) -> CellConfig:
        """Return a run's complete settings."""
        if key.cell not in self._cells:
            self._cells[key.cell] = resolve_key(self.config, key)
        return self._cells[key.cell]

    def hashes(self, key: RunKey) -> tuple[str, str]:
        """Return the hash of a run's settings and the hash of the code that trains the run."""
        if key.cell not in self._hashes:
            cell = self.cell(key)
            self._hashes[key.cell] = config_hash(cell), source_hash(cell.model)
        return self._hashes[key.cell]

    def status(self, key: RunKey) -> Status:
        """Return a run's status: whether its folder has a result that matches the config."""
        settings, source = self.hashes(key)
        return status_of(
            self.layout.run(key),
            key.record,
            settings,
            self.reference(key.env),
            source,
            self.cell(key),
        )

    def former(self, key: RunKey) -> Path | None:
        """Return the folder of a former result that can replace an incomplete run, or None.

        A former result is a complete result that a newer one replaced (see ngt.runs.former). A run
        with such a result need not be trained. Return None if there is no former result with the
        config's settings and demonstrations. Also return None if the run's current result differs
        from the config only in its demonstrations. In that case, `ngt train` compares the
        demonstrations, since the workflow's receipts do not state them.
        """
        settings, _ = self.hashes(key)
        place = _former(self.layout.run(key), key.record, settings)
        if place is None:
            return None
        found = status_of(place, key.record, settings, self.reference(key.env))
        return place if found.status in COMPLETE else None

    def expert_status(self, env: str) -> Status:
        """Return an expert's status: whether its folder has a result that matches the config."""
        cell = resolve_expert(self.config, env)
        return status_of(
            self.layout.expert(env),
            expert_key(env, expert_config(self.config, env).seed),
            config_hash(cell),
            source=source_hash(cell.model),
            wanted=cell,
        )

    def former_expert(self, env: str) -> Path | None:
        """Return the folder of a former result that can replace an incomplete expert, or None.

        The workflow's receipts do not state an expert's seed. So also return None if the current
        result, or a newer former result, differs from the config only in the seed. In that case,
        `ngt expert` restores the former result.
        """
        folder, seed = self.layout.expert(env), expert_config(self.config, env).seed
        settings = config_hash(resolve_expert(self.config, env))
        found = _former(folder, expert_key(env, seed), settings)
        blocked = not fault_in(folder, settings)
        newest = find(folder, lambda place: fits(place, settings))
        return None if blocked or found != newest else found

    def reference(self, env: str) -> dict[str, Any]:
        """Return the `reference` entry that run.json should have for the runs on an env.

        Return {} if the env's demonstrations are missing or come from an expert with different
        settings. If the expert must be recorded again for other reasons, i.e. with another seed or
        another number of episodes, the entry's checksum is "", which no run has: the hash of a
        run's settings does not show that the run used the former recording.
        """
        if env not in self._references:
            self._references[env] = self._reference(env)
        return self._references[env]

    def _reference(self, env: str) -> dict[str, Any]:
        named = demos_file(self.config, env)
        file = Path(named) if named else self.layout.demos(env)
        demos = described(file)
        if not demos or (not named and other_expert(self.config, env, demos.get("source"))):
            return {}
        if not named and other_episodes(self.config, env, seeds_in(file)):
            return {"demos": ""}
        return {"demos": demos.get("checksum")}

    def read(self, key: RunKey) -> Record:
        """Read a complete run. Raise UserError if its run.json belongs to a different run."""
        folder = self.layout.run(key)
        record = read_folder(folder, f"run {key}")
        if (found := run_in(record.run)) != str(key):
            raise UserError(
                f"run {key}: {folder}/run.json belongs to another run, {found}; train it again"
            )
        return record

    def has_expert(self, env: str) -> bool:
        """Return True if runs on an env imitate an existing expert, not a user's own file."""
        if own_file(self.config, env):
            return False
        if self.config.demos == "shipped":
            return shipped.ships(env)
        return (self.layout.expert(env) / "run.json").exists()

    def read_expert(self, env: str) -> Record:
        """Read an expert from its folder, or from `data/` if the config uses shipped experts."""
        if self.config.demos == "shipped":
            return read_shipped(env)
        folder = self.layout.expert(env)
        status = self.expert_status(env)
        if status.status in ("stale", "damaged"):
            raise UserError(
                f"expert {env} in {folder}: {status.note}; `ngt expert {env}` trains it again"
            )
        return read_folder(folder, f"expert {env}")

    def strays(self, keys: Sequence[RunKey]) -> list[str]:
        """Return the names of complete runs that no figure or table of the config requests.

        Only runs that differ from one of `keys` in the seed alone are returned. Raise UserError if
        a run.json on one of the envs of `keys` does not belong to the run that its path names.
        """
        for key in keys:
            file = self.layout.run(key) / "run.json"
            other = run_in(read_json(file))
            if other not in (None, str(key)):
                raise UserError(
                    f"run {key}: {file} belongs to another run, {other}; train it again"
                )
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
                elif (other := run_in(read_json(file))) != name:
                    raise UserError(
                        f"run {name}: {file} belongs to another run, {other}; move it away"
                    )
        return found


def _former(folder: Path, key: Mapping[str, Any], settings: str) -> Path | None:
    """Return the folder of the newest former result with these settings.

    Return None if there is no such result, or if the current result has these settings.
    """

    def fits(place: Path) -> bool:
        return status_of(place, key, settings).status in COMPLETE

    return None if fits(folder) else find(folder, fits)


def expert_key(env: str, seed: int) -> dict[str, Any]:
    """Return an expert's key in the form that its run.json uses."""
    return {"env": env, "method": "expert", "seed": seed}


def read_folder(folder: Path, name: str) -> Record:
    """Read the folder of a complete run or expert. Raise UserError if it is incomplete."""
    record = read_json(folder / "run.json")
    if not isinstance(record, dict):
        raise UserError(f"{name}: {folder}/run.json is missing; train it first")
    if damage := changed(folder, record, ("eval.csv", "train.csv")):
        raise UserError(f"{name}: {damage}; train it again")
    means = _means(folder / "eval.csv", name)
    logged = {c: _logged(folder / "train.csv", c, name).reindex(means.index) for c in LOGGED}
    seconds = _clock(record, f"{folder}/run.json", name).reindex(means.index)
    return Record(record, means.assign(**logged, seconds=seconds).reset_index())


def read_shipped(env: str) -> Record:
    """Read a shipped expert, whose expert.json includes the fields of a run.json."""
    name, folder = f"expert {env}", shipped.DATA / env
    record = shipped.read(env)
    means = _means(folder / shipped.CURVE, name)
    seconds = _clock(record, f"{folder / shipped.EXPERT}", name).reindex(means.index)
    logged = dict.fromkeys(LOGGED, float("nan"))
    return Record(record, means.assign(**logged, seconds=seconds).reset_index())


def _means(path: Path, name: str) -> pd.DataFrame:
    """Return a table of evaluations by step, whose columns are the first five of VALUES.

    An evaluation's mean is NaN if one of its returns is not finite.
    """
    import pandas as pd

    types = {"step": "int64", "return": "float64"}  # needed for a table without rows
    try:
        table = pd.read_csv(path, float_precision="round_trip", dtype=types)
        grouped = table.groupby("step")["return"]
    except (OSError, ValueError, KeyError, OverflowError) as error:  # pandas raises ValueErrors
        raise UserError(f"{name}: {path}: {' '.join(str(error).split())}; train it again") from None
    means = grouped.agg(["mean", "std", "min", "max", "size"])
    means.columns = pd.Index(VALUES[:5])
    finite = np.isfinite(table["return"]).groupby(table["step"]).all()
    return means.assign(**{"return": means["return"].where(finite)})


def _clock(record: dict[str, Any], where: str, name: str) -> pd.Series:
    """Return the seconds of training up to each logged step, given the content of a run.json."""
    import pandas as pd

    try:
        return pd.Series({int(s): float(t) for s, t in record.get("timing", [])}, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"{name}: {where}: timing is not a list of (step, seconds) pairs; train it again"
        ) from None


def _logged(path: Path, column: str, name: str) -> pd.Series:
    """Return a column of train.csv by step, or an empty series if the column is missing."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"step": "int64", column: "float64"})
    except pd.errors.EmptyDataError:
        table = pd.DataFrame(columns=["step"])
    except (OSError, ValueError, OverflowError) as error:
        raise UserError(f"{name}: {path}: {' '.join(str(error).split())}; train it again") from None
    if column not in table or "step" not in table:
        return pd.Series(dtype=float)
    return table.drop_duplicates("step", keep="last").set_index("step")[column]
