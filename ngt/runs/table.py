"""The tables that figures are drawn from.

A run's record comes from its folder, or from the records that ship (`records: published`). Either
way a missing, stale, doubled or foreign run is an error that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ngt.errors import UserError
from ngt.experience.reference import unscored
from ngt.runs.folder import Folders, Record
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.published import Published
from ngt.runs.state import COMPLETE, Status
from ngt.settings.config import Config

if TYPE_CHECKING:
    import pandas as pd


class Source(Protocol):
    """Where records come from."""

    def status(self, key: RunKey) -> Status:
        """The state of a run against the config."""

    def read(self, key: RunKey) -> Record:
        """A complete run."""

    def read_expert(self, env: str) -> Record:
        """An env's expert."""

    def strays(self, keys: Sequence[RunKey]) -> list[str]:
        """Runs that are there and in no artefact of the config."""


def source(layout: Layout, config: Config, *, other_settings: bool = False) -> Source:
    """Where the config says that records come from.

    other_settings: published records may have other settings than the config's.
    """
    if config.records == "published":
        return Published(layout.published, config, other_settings=other_settings)
    return Folders(layout, config)


class Runs(NamedTuple):
    """What a source holds of the keys that are asked for."""

    rows: pd.DataFrame | None  # of `read_runs`; None where no run is complete
    statuses: dict[RunKey, Status]
    records: dict[RunKey, dict[str, Any]]  # run.json of each complete run

    @property
    def absent(self) -> list[RunKey]:
        """The keys that are not complete."""
        return [key for key in self.statuses if key not in self.records]


def read_keys(
    layout: Layout, config: Config, keys: Sequence[RunKey], where: str, *,
    allow_partial: bool = False, other_settings: bool = False,
) -> Runs:  # fmt: skip
    """The runs of these keys; errors as `read_runs`. where: the config field that names them."""
    import pandas as pd

    origin = source(layout, config, other_settings=other_settings)
    if isinstance(origin, Published):
        origin.check(keys)
    for stray in origin.strays(keys):
        raise UserError(
            f"run {stray}: it is in no artefact at scale {config.scale}; move it elsewhere, or "
            f"name it in {where}"
        )
    statuses, records, frames = {}, {}, []
    for key in keys:
        statuses[key] = status = origin.status(key)
        if status.status in COMPLETE:
            record = origin.read(key)
            records[key] = record.run
            frames.append(as_rows(record, key))
        elif not allow_partial:
            why = f" ({status.note})" if status.status == "damaged" else ""
            raise UserError(
                f"run {key}: {status.status}{why}; train it (`ngt train`), or draw a partial "
                f"table with --allow-partial"
            )
    _check_demos(frames)
    # a run that diverged before its first evaluation has no rows
    full = [frame for frame in frames if len(frame)] or frames[:1]
    rows = pd.concat(full, ignore_index=True) if full else None
    if rows is not None:
        reasons = {f.attrs["env"]: f.attrs["unscored"] for f in frames if f.attrs["unscored"]}
        rows.loc[rows["env"].isin(reasons), "score"] = float("nan")  # of former records too
        rows.attrs = {"unscored": reasons}
    return Runs(rows, statuses, records)


def unscored_envs(rows: pd.DataFrame | None) -> dict[str, str]:
    """The envs whose returns can't be normalised, and why: their scores are missing.

    rows: of `read_runs` or `read_keys`, or some of them.
    """
    return {} if rows is None else dict(rows.attrs.get("unscored", {}))


def read_runs(
    layout: Layout, config: Config, figure: str, *, allow_partial: bool = False,
    other_settings: bool = False,
) -> tuple[pd.DataFrame, list[RunKey]]:  # fmt: skip
    """Every evaluation of an artefact's runs, one row a (run, step), and the keys not there.

    Columns: env, method, mode, rate, demos, seed, step, VALUES, score (of the mean return,
    normalised: random 0, expert 1; NaN on `unscored_envs`), random, expert, status. A missing,
    stale, doubled or foreign run is an error that names it, unless a partial table is asked for,
    which may lack runs. A diverged run keeps the rows it has. Published records whose settings
    differ from the config's are an error too, unless they are asked for.
    """
    keys = run_table(config, [figure], beside=True)
    runs = read_keys(
        layout, config, keys, f"figures.{figure}",
        allow_partial=allow_partial, other_settings=other_settings,
    )  # fmt: skip
    if runs.rows is None:
        raise UserError(f"{figure}: none of its {len(keys)} runs is finished under {layout.runs}")
    return runs.rows, runs.absent


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


def as_rows(record: Record, key: RunKey) -> pd.DataFrame:
    """One run's evaluations as rows of `read_runs`: here it is decided whether they have scores."""
    run, frame = record
    known = run.get("reference")
    known = known if isinstance(known, dict) else {}
    errors = [name for name in ("random_error", "expert_error") if name in known]
    reference = {name: _number(known, name, key) for name in ("random", "expert", *errors)}
    if run.get("status") not in COMPLETE:
        raise UserError(f"run {key}: its run.json lacks its status; train it again")
    reason = unscored(reference)
    random, expert = reference["random"], reference["expert"]
    span = float("nan") if reason else expert - random
    frame = frame.assign(
        env=key.env, method=key.method, mode=key.mode, rate=key.rate, demos=key.demos,
        seed=key.seed, score=(frame["return"] - random) / span,
        random=random, expert=expert, status=run.get("status"),
    )  # fmt: skip
    frame.attrs = {
        "run": str(key), "env": key.env, "demos": str(known.get("demos", "")), "unscored": reason,
    }  # fmt: skip
    return frame


def _number(reference: dict[str, Any], name: str, key: RunKey) -> float:
    """A number that a run's returns are normalised by."""
    value: Any = reference.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not abs(value) < 1e300:
        raise UserError(
            f"run {key}: its run.json: reference.{name} is {value!r:.20}, not a finite number; "
            f"train it again"
        )
    return float(value)


def final_scores(runs: pd.DataFrame, window: int, column: str = "score") -> pd.DataFrame:
    """Each run's final score: the mean of its last `window` evaluations. column: or `return`."""
    axes: Sequence[str] = ["env", "method", "mode", "rate", "demos", "seed"]
    last = runs.sort_values("step").groupby(axes).tail(window)
    return last.groupby(axes, as_index=False)[column].mean()
