"""The tables from which figures are drawn: all evaluations of a set of runs, with scores.

A run's record consists of its run.json and its evaluations. It comes from the run's folder or from
published records (`records: published`). In both cases, a run causes an error if it is missing,
stale (trained with different settings or demonstrations), damaged, a duplicate, or in a different
run's folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from ngt.errors import UserError
from ngt.experience.reference import unscored
from ngt.runs.folder import VALUES, Folders, Record
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.published import Published
from ngt.runs.status import COMPLETE, Status
from ngt.settings.config import CellConfig, Config
from ngt.settings.options import chosen

if TYPE_CHECKING:
    import pandas as pd


Source = Published | Folders  # a source of records


def source(layout: Layout, config: Config, *, other_settings: bool = False) -> Source:
    """Return the source of records that the config selects.

    other_settings: True to accept published records whose settings differ from the config's.
    """
    if config.records == "published":
        return Published(layout.published, config, other_settings=other_settings)
    return Folders(layout, config)


class Runs(NamedTuple):
    """The evaluations of the complete runs, and the statuses of all requested runs."""

    rows: pd.DataFrame | None  # rows as in `read_runs`; None if no run is complete
    statuses: dict[RunKey, Status]
    records: dict[RunKey, dict[str, Any]]  # run.json of each complete run

    @property
    def absent(self) -> list[RunKey]:
        """Return the keys of the runs that are not complete."""
        return [key for key in self.statuses if key not in self.records]


def read_keys(
    layout: Layout,
    config: Config,
    keys: Sequence[RunKey],
    where: str,
    *,
    allow_partial: bool = False,
    other_settings: bool = False,
    selected: str = "",
) -> Runs:
    """Read the runs with these keys. Raise UserError in the same cases as `read_runs`.

    where: the config field that requests these runs, for messages.
    selected: the command-line options that select the config, for messages.
    """
    origin = source(layout, config, other_settings=other_settings)
    if isinstance(origin, Published):
        origin.check(keys)
        allow_partial = True
    else:  # published records may have runs that the config leaves out, e.g. of more seeds
        for stray in origin.strays(keys):
            raise UserError(
                f"run {stray}: it is in no artefact at scale {config.scale}; move it elsewhere, or "
                f"add it to {where}"
            )
    statuses, records, frames = {}, {}, []
    for key in keys:
        statuses[key] = status = origin.status(key)
        if status.status in COMPLETE:
            record = origin.read(key)
            records[key] = record.run
            frames.append(as_rows(record, key))
        elif status.status == "damaged":  # leaving the run out would hide a lost result
            raise UserError(
                f"run {key}: damaged ({status.note}); train it again with `ngt train {key} "
                f"{selected or chosen(config)}`"
            )
        elif not allow_partial:
            raise UserError(
                f"run {key}: {status.status}; train it with `ngt train {key} "
                f"{selected or chosen(config)}`, or omit missing runs with --allow-partial"
            )
    _check_demos(frames)
    return Runs(_joined(frames), statuses, records)


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame | None:
    """Return the rows of all runs, or None if there are no runs."""
    import pandas as pd

    # A run that diverged before its first evaluation has no rows.
    full = [frame for frame in frames if len(frame)] or frames[:1]
    rows = pd.concat(full, ignore_index=True) if full else None
    if rows is not None:
        reasons = {f.attrs["env"]: f.attrs["unscored"] for f in frames if f.attrs["unscored"]}
        # If one run on an env cannot be scored, no run on this env is scored. Some of these runs
        # may lack the reason, since it follows from standard errors that records of earlier
        # versions lack.
        rows.loc[rows["env"].isin(reasons), "score"] = float("nan")
        rows.attrs = {"unscored": reasons}
    return rows


def unscored_envs(rows: pd.DataFrame | None) -> dict[str, str]:
    """Return the envs whose returns can't be normalised to scores, with the reason for each env.

    rows: all or some of the rows from `read_runs` or `read_keys`.
    """
    return {} if rows is None else dict(rows.attrs.get("unscored", {}))


def read_runs(
    layout: Layout,
    config: Config,
    figure: str,
    *,
    allow_partial: bool = False,
    other_settings: bool = False,
    selected: str = "",
) -> tuple[pd.DataFrame, list[RunKey]]:
    """Return all evaluations of a figure's or table's runs, and the keys of its missing runs.

    There is one row per run and step. The columns are env, method, mode, rate, demos, seed, step,
    `ngt.runs.folder.VALUES`, score, random, expert, status, pack and machine. The score is the
    normalised mean return: 0 for a random policy, 1 for the expert, and NaN on `unscored_envs`. The
    pack is the number of runs that were trained together, or NaN if the run's record lacks it. The
    machine is a text that names the machine and the device. The rows of a diverged run are
    included.

    Raise UserError if a run is missing, part, stale, damaged, a duplicate, or in a different run's
    folder, or if a finished run differs from one of the figure's runs only in its seed. With
    `allow_partial` or with published records, runs that are missing, part or stale are left out
    instead. Also raise UserError if the settings in published records differ from the config's,
    unless `other_settings` is set.

    figure: name of the figure or table.
    selected: the command-line options that select the config, for messages.
    """
    keys = run_table(config, [figure], beside=True)
    runs = read_keys(
        layout,
        config,
        keys,
        f"figures.{figure}",
        allow_partial=allow_partial,
        other_settings=other_settings,
        selected=selected,
    )
    if runs.rows is None:
        published = config.records == "published"
        where = f"published in {layout.published}" if published else f"finished under {layout.runs}"
        raise UserError(f"{figure}: none of its runs is {where}; train them first")
    return runs.rows, runs.absent


def _check_demos(frames: Sequence[pd.DataFrame]) -> None:
    """Check that all runs on an env used the same demonstrations."""
    first: dict[str, tuple[str, str]] = {}
    for frame in frames:
        run, env, demos = frame.attrs["run"], frame.attrs["env"], frame.attrs["demos"]
        other, checksum = first.setdefault(env, (run, demos))
        if demos != checksum:
            raise UserError(
                f"run {run}: made from other demonstrations ({demos[:12]}) than run {other} "
                f"({checksum[:12]}); train one of the two again"
            )


def as_rows(record: Record, key: RunKey) -> pd.DataFrame:
    """Return a run's evaluations as rows with the columns of `read_runs`.

    The scores are NaN if the run's reference cannot normalise returns.
    """
    run, frame = record
    known = run["reference"] if isinstance(run.get("reference"), dict) else {}
    errors = [name for name in ("random_error", "expert_error") if name in known]
    reference = {name: _number(known, name, key) for name in ("random", "expert", *errors)}
    if run.get("status") not in COMPLETE:
        raise UserError(f"run {key}: its run.json lacks its status; train it again")
    reason = unscored(reference)
    random, expert = reference["random"], reference["expert"]
    span = float("nan") if reason else expert - random
    frame = frame.assign(
        **asdict(key),
        score=(frame["return"] - random) / span,
        random=random,
        expert=expert,
        status=run.get("status"),
        pack=run.get("pack", float("nan")),
        machine=f"{run.get('machine')} ({run.get('gpu') or run.get('device')})",
    )
    frame.attrs = {
        "run": str(key),
        "env": key.env,
        "demos": str(known.get("demos", "")),
        "unscored": reason,
    }
    return frame


def no_rows() -> pd.DataFrame:
    """Return a table without rows that has the columns of `read_runs`."""
    import pandas as pd

    frame = pd.DataFrame(
        {"step": pd.Series(dtype=int)} | dict.fromkeys(VALUES, pd.Series(dtype=float))
    )
    run = {"status": COMPLETE[0], "reference": {"random": 0.0, "expert": 1.0}}
    rows = as_rows(Record(run, frame), RunKey("", "", CellConfig.mode, 1, 1, 0))
    rows.attrs = {"unscored": {}}
    return rows


def _number(reference: dict[str, Any], name: str, key: RunKey) -> float:
    """Return a field of a run's reference. Raise UserError if its value is not a finite number."""
    value: Any = reference.get(name)
    if type(value) not in (int, float) or not abs(value) < 1e300:
        raise UserError(
            f"run {key}: reference.{name} in its run.json is {value!r:.20}, not a finite number; "
            f"train it again"
        )
    return float(value)
