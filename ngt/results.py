"""Reading runs back: the status of each key, and the tables that figures are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ngt.config import Config, config_hash
from ngt.errors import UserError
from ngt.files import read_json
from ngt.records import PART, source_hash
from ngt.runs import Layout, RunKey, resolve_key, run_table

if TYPE_CHECKING:
    import pandas as pd

STATUSES = ("finished", "diverged", "stale", "part", "missing")


class Status(NamedTuple):
    """A run's state: `stale` has other settings, `part` has begun and not ended."""

    status: str
    note: str
    other_source: bool = False  # made by other code than this


def run_status(layout: Layout, config: Config, key: RunKey) -> Status:
    """The state of a run's folder against the config."""
    folder = layout.run(key)
    record = read_json(folder / "run.json")
    if not isinstance(record, dict):
        begun = [p for p in (folder / f"eval.csv{PART}", folder / "eval.csv") if p.exists()]
        if not begun:
            return Status("missing", "")
        return Status("part", f"last evaluation at step {_last_step(begun[0])}")
    if record.get("config_hash") != config_hash(resolve_key(config, key)):
        return Status("stale", "trained with other settings")
    if record.get("status") not in ("finished", "diverged"):
        return Status("part", "run.json lacks its status")
    note = f"step {record.get('step')}, {record.get('steps_per_second')} steps/s"
    if record["status"] == "diverged":
        note = f"step {record.get('step')}: {record.get('tensor')} is not finite"
    other = record.get("source_hash") != source_hash()
    return Status(record["status"], note + ", other source" * other, other)


def _last_step(path: Path) -> str:
    last = path.read_text().splitlines()[-1:]
    step = last[0].split(",")[0] if last else ""
    return step if step.isdigit() else "0"


def read_runs(
    layout: Layout, config: Config, figure: str, *, allow_partial: bool = False
) -> tuple[pd.DataFrame, list[RunKey]]:
    """Every evaluation of an artefact's runs, one row a (run, step), and the keys not there.

    Columns: env, method, mode, rate, demos, seed, step, return (mean over episodes), score
    (normalised: random 0, expert 1), random, expert, status. A missing, stale or foreign run is an
    error that names it, unless a partial table is asked for. A diverged run keeps the rows it has.
    """
    import pandas as pd

    keys = run_table(config, [figure])
    absent, frames = [], []
    for key in keys:
        status = run_status(layout, config, key)
        if status.status not in ("finished", "diverged"):
            absent.append(key)
            if not allow_partial:
                raise UserError(
                    f"run {key}: {status.status}; train it (`ngt train`), or draw a partial table "
                    f"with --allow-partial"
                )
            continue
        frames.append(read_run(layout.run(key), key))
    if not frames:
        raise UserError(f"{figure}: none of its {len(keys)} runs is finished under {layout.runs}")
    _check_demos(frames)
    # a run that diverged before its first evaluation has no rows
    full = [frame for frame in frames if len(frame)] or frames[:1]
    return pd.concat(full, ignore_index=True), absent


def _check_demos(frames: Sequence[pd.DataFrame]) -> None:
    """The runs of an env must come from the same demonstrations."""
    first: dict[str, tuple[str, str]] = {}
    for frame in frames:
        run, env, demos = frame.attrs["run"], frame.attrs["env"], frame.attrs["demos"]
        other, checksum = first.setdefault(env, (run, demos))
        if demos != checksum:
            raise UserError(
                f"run {run}: made from other demonstrations ({demos[:12]}) than run {other} "
                f"({checksum[:12]}); train one of them again"
            )


def read_evaluations(folder: Path, name: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """A complete folder's run.json and eval.csv; UserError where it is not complete."""
    import pandas as pd

    record = read_json(folder / "run.json")
    if not isinstance(record, dict):
        raise UserError(f"{name}: {folder}/run.json is not there; train it first")
    types = {"step": "int64", "return": "float64"}  # said, for a table without rows
    try:
        table = pd.read_csv(folder / "eval.csv", float_precision="round_trip", dtype=types)
        table[["step", "return"]]
    except (OSError, ValueError, KeyError) as error:  # pandas' own errors are ValueErrors
        reason = " ".join(str(error).split())
        raise UserError(f"{name}: {folder}/eval.csv: {reason}; train it again") from None
    return record, table


def read_run(folder: Path, key: RunKey) -> pd.DataFrame:
    """One run's evaluations, episodes averaged; columns as `read_runs`."""
    import pandas as pd

    record, table = read_evaluations(folder, f"run {key}")
    found = record.get("key", {}).get("run")
    if found != str(key):
        raise UserError(f"run {key}: {folder}/run.json is of another run, {found}; train it again")
    try:
        random, expert = record["reference"]["random"], record["reference"]["expert"]
        status = record["status"]
    except (KeyError, TypeError) as error:
        raise UserError(f"run {key}: {folder}/run.json lacks {error}; train it again") from None
    if random == expert:
        raise UserError(f"run {key}: random and expert return are both {expert}; record again")
    means = table.groupby("step")["return"].mean()
    frame = pd.DataFrame(
        {
            "env": key.env, "method": key.method, "mode": key.mode, "rate": key.rate,
            "demos": key.demos, "seed": key.seed,
            "step": means.index, "return": means.to_numpy(),
            "score": (means.to_numpy() - random) / (expert - random),
            "random": random, "expert": expert, "status": status,
        }
    )  # fmt: skip
    frame.attrs = {"run": str(key), "env": key.env, "demos": record["reference"].get("demos", "")}
    return frame


def final_scores(runs: pd.DataFrame, window: int) -> pd.DataFrame:
    """Each run's final score: the mean of its last `window` evaluations."""
    axes: Sequence[str] = ["env", "method", "mode", "rate", "demos", "seed"]
    last = runs.sort_values("step").groupby(axes).tail(window)
    return last.groupby(axes, as_index=False)["score"].mean()
