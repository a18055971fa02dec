"""The status and record of each run and expert, read from their folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ngt.errors import UserError
from ngt.experience import shipped
from ngt.files import read_json
from ngt.runs.former import find
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.provenance import source_hash
from ngt.runs.status import (
    COMPLETE,
    PART,
    Status,
    changed,
    described,
    last_step,
    run_in,
    status_of,
)
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

# The columns of a table of evaluations, which has one row per run and step.
LOGGED = ("auc", "rank_correlation")  # diagnostics of the learned reward, from train.csv
VALUES = ("return", "std", "low", "high", "episodes", *LOGGED, "seconds")


class Record(NamedTuple):
    """A complete run: its run.json, and its evaluations with columns step and VALUES.

    return, std, low, high: mean, sample standard deviation, minimum and maximum of an evaluation's
    returns.
    LOGGED: values from train.csv at the same step, or NaN if it lacks the step.
    seconds: training time from run.json at the same step, or NaN if it lacks the step.
    """

    run: dict[str, Any]
    evaluations: pd.DataFrame


class Folders:
    """The runs and experts under `results/`."""

    def __init__(self, layout: Layout, config: Config) -> None:
        self.layout, self.config = layout, config
        self._hashes: dict[tuple[str, str, Mode, int], tuple[str, str]] = {}
        self._references: dict[str, dict[str, Any]] = {}

    def hashes(self, key: RunKey) -> tuple[str, str]:
        """Return the hashes of a run's settings and of the code that trains it."""
        if key.cell not in self._hashes:
            cell = resolve_key(self.config, key)
            self._hashes[key.cell] = config_hash(cell), source_hash(cell.model)
        return self._hashes[key.cell]

    def status(self, key: RunKey) -> Status:
        """Return the status of a run's folder, compared with the config."""
        settings, source = self.hashes(key)
        return status_of(
            self.layout.run(key), key.record, settings, self.reference(key.env), source
        )

    def former(self, key: RunKey) -> Path | None:
        """Return the former result that can replace an incomplete run without a training job.

        A former result is a complete one that was replaced (ngt.runs.former).
        Return None if there is no such result. Also return None if the run in the folder differs
        only in its demonstrations. The workflow's receipts do not state the demonstrations, so `ngt
        train` compares these.
        """
        settings, _ = self.hashes(key)
        place = _former(self.layout.run(key), key.record, settings)
        if place is None:
            return None
        found = status_of(place, key.record, settings, self.reference(key.env))
        return place if found.status in COMPLETE else None

    def expert_status(self, env: str) -> Status:
        """Return the status of an expert's folder, compared with the config."""
        cell = resolve_expert(self.config, env)
        return status_of(
            self.layout.expert(env),
            expert_key(env, expert_config(self.config, env).seed),
            config_hash(cell),
            source=source_hash(cell.model),
        )

    def former_expert(self, env: str) -> Path | None:
        """Return the former result that can replace an incomplete expert, or None."""
        key = expert_key(env, expert_config(self.config, env).seed)
        settings = config_hash(resolve_expert(self.config, env))
        return _former(self.layout.expert(env), key, settings)

    def reference(self, env: str) -> dict[str, Any]:
        """Return the reference that an env's runs should have.

        Return {} if the env's demonstrations are missing or come from an expert with other
        settings.
        """
        if env not in self._references:
            named = demos_file(self.config, env)
            demos = described(Path(named) if named else self.layout.demos(env))
            ours = named or demos.get("source") == config_hash(resolve_expert(self.config, env))
            self._references[env] = {"demos": demos.get("checksum")} if ours and demos else {}
        return self._references[env]

    def read(self, key: RunKey) -> Record:
        """Read a complete run. Raise UserError if its run.json belongs to another run."""
        folder = self.layout.run(key)
        record = read_folder(folder, f"run {key}")
        if (found := run_in(record.run)) != str(key):
            raise UserError(
                f"run {key}: {folder}/run.json belongs to another run, {found}; train it again"
            )
        return record

    def has_expert(self, env: str) -> bool:
        """Return True if the config uses an expert's demonstrations on an env, and one exists."""
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
                f"expert {env}: {status.note} in {folder}; `ngt expert {env}` trains it again"
            )
        return read_folder(folder, f"expert {env}")

    def strays(self, keys: Sequence[RunKey]) -> list[str]:
        """Return the complete runs that no figure or table of the config requests.

        Runs are left out unless they differ from one of `keys` only in the seed. Raise UserError if
        a run's folder, on the envs of these keys, holds another run.
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
    """Return the newest former result with these settings, or None if the folder's own has them."""

    def fits(place: Path) -> bool:
        return status_of(place, key, settings).status in COMPLETE

    return None if fits(folder) else find(folder, fits)


def expert_key(env: str, seed: int) -> dict[str, Any]:
    """Return an expert's key in the form used by its run.json."""
    return {"env": env, "method": "expert", "seed": seed}


def how_far(layout: Layout, config: Config, keys: Iterable[RunKey]) -> list[str]:
    """Return one line for each cell with unfinished runs, with their number and progress.

    A cell is the set of runs with the same env, method, mode and rate.
    """
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
        lines.append(
            f"{env}/{method}/{mode}-rate{rate}: {len(found)} at {at} of {steps}, "
            f"{100 * sum(found) / len(found) / steps:.0f}%"
        )
    return lines


def read_folder(folder: Path, name: str) -> Record:
    """Read a complete folder. Raise UserError if it is not complete."""
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
    """Return the first five of VALUES, which summarise each evaluation's episodes, by step.

    The mean is NaN if a return is not finite.
    """
    import pandas as pd

    types = {"step": "int64", "return": "float64"}  # needed if the table has no rows
    try:
        table = pd.read_csv(path, float_precision="round_trip", dtype=types)
        grouped = table.groupby("step")["return"]
    except (OSError, ValueError, KeyError, OverflowError) as error:  # pandas' own are ValueErrors
        raise UserError(f"{name}: {path}: {' '.join(str(error).split())}; train it again") from None
    means = grouped.agg(["mean", "std", "min", "max", "size"])
    means.columns = pd.Index(VALUES[:5])
    finite = np.isfinite(table["return"]).groupby(table["step"]).all()
    return means.assign(**{"return": means["return"].where(finite)})


def _clock(record: dict[str, Any], where: str, name: str) -> pd.Series:
    """Return the seconds of training up to each logged step, from the content of a run.json."""
    import pandas as pd

    try:
        return pd.Series({int(s): float(t) for s, t in record.get("timing", [])}, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"{name}: {where}: timing is not a list of (step, seconds) pairs; train it again"
        ) from None


def _logged(path: Path, column: str, name: str) -> pd.Series:
    """Return a column of train.csv by step, or an empty series if the run did not log it."""
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
