"""Learning curves over env steps: the mean and spread of runs that differ only in the seed."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.runs.folder import VALUES
from ngt.runs.keys import RunKey
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import load_model, model_params
from paper.numbers.scores import UNEVALUATED, final_scores

AXES = ["env", "method", "mode", "rate", "demos", "seed"]  # columns that identify a run

CELL = AXES[:-1]  # columns whose values are equal for all runs of a curve

Array = NDArray[np.float64]


class Curve(NamedTuple):
    """The learning curve of runs that differ only in the seed. Each array has one value per step.

    A run's running mean at a step is the mean of the run's last evaluations up to this step.
    """

    step: Array  # env steps of the evaluations
    mean: Array  # mean of the runs' running means
    std: Array  # sample standard deviation (n - 1) of the runs' running means; NaN for one run
    raw: Array  # mean of the runs' evaluations, not smoothed
    each: Array  # each run's running mean, (seeds, steps); NaN after a run has diverged
    ends: list[tuple[float, float]]  # last step and last running mean of each diverged run
    seeds: int  # number of runs


class Level(NamedTuple):
    """The final scores of runs that differ only in the seed."""

    mean: float
    std: float  # sample standard deviation (n - 1); NaN for one run
    ends: list[float]  # final scores of the diverged runs
    seeds: int  # number of runs


def curve(runs: pd.DataFrame, window: int) -> Curve:
    """Return the learning curve of runs that differ only in the seed.

    A running mean covers the last `window` evaluations, or fewer at the start. A diverged run keeps
    its last value until the end of the curve, because the mean would otherwise leave out this run.
    """
    raw = runs.pivot(index="step", columns="seed", values="score").sort_index()
    smooth = raw.rolling(window, min_periods=1).mean().where(raw.notna())
    diverged = runs.loc[runs["status"] == "diverged", "seed"].unique()
    ends = []
    for seed in raw.columns:
        if seed in diverged:
            last = raw[seed].last_valid_index()
            ends.append((float(last), float(smooth.at[last, seed])))
        elif raw[seed].isna().any():
            step = raw.index[raw[seed].isna()][0]
            raise UserError(
                f"run {_key(runs[runs['seed'] == seed])}: no evaluation at step {step}, but "
                f"another seed has one; train the run again"
            )
    filled = smooth.ffill()
    return Curve(
        step=raw.index.to_numpy(float),
        mean=filled.mean(axis=1).to_numpy(),
        std=filled.std(axis=1, ddof=1).to_numpy(),
        raw=raw.ffill().mean(axis=1).to_numpy(),
        each=smooth.to_numpy(float).T,
        ends=ends,
        seeds=raw.shape[1],
    )


def level(runs: pd.DataFrame, window: int) -> Level:
    """Return the mean and spread of the final scores of runs that differ only in the seed."""
    scores = final_scores(runs, window).set_index("seed")["score"]
    diverged = runs.loc[runs["status"] == "diverged", "seed"].unique()
    ends = [float(scores[seed]) for seed in diverged]
    return Level(float(scores.mean()), float(scores.std(ddof=1)), ends, len(scores))


def usable(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a finite value to show.

    Raise UserError if a row without such a value belongs to a run that did not diverge.
    """
    finite = np.isfinite(shown(runs).to_numpy(float))
    bad = runs[~finite & (runs["status"] != "diverged").to_numpy()]
    if len(bad):
        raise UserError(
            f"run {_key(bad)}: its score at step {bad['step'].iloc[0]} is not finite; "
            f"check its eval.csv and the references in its run.json"
        )
    return runs[finite]


def shown(runs: pd.DataFrame) -> pd.Series:
    """Return the value to show for each row: its score, or its return on envs without scores."""
    lack = runs["env"].isin(unscored_envs(runs))
    return runs["score"].mask(lack, runs["return"]) if lack.any() else runs["score"]


def unevaluated(
    runs: pd.DataFrame, keys: Iterable[RunKey], absent: Iterable[RunKey]
) -> list[RunKey]:
    """Return the keys of all runs that diverged before their first evaluation.

    Such runs are not missing, but have no row in `runs`.

    absent: the keys of missing runs.
    """
    rows = runs[AXES].drop_duplicates().itertuples(index=False, name=None)
    gone = {RunKey(*row) for row in rows}.union(absent)
    return [key for key in keys if key not in gone]


def counted(runs: pd.DataFrame, silent: Iterable[RunKey]) -> pd.DataFrame:
    """Add a row for each run that diverged before its first evaluation.

    Such a run counts as a random policy, as it does in tables. Its row is at the first step of the
    other seeds' evaluations, or of the other runs on the env if no seed has an evaluation. A run is
    left out if no run on its env has an evaluation, because its panel then has no axes.

    silent: the keys that `unevaluated` returns.
    """
    added = []
    for key in silent:
        on_env = runs[runs["env"] == key.env]
        if on_env.empty:
            continue
        seeds = on_env[(on_env[CELL] == [getattr(key, name) for name in CELL]).all(axis=1)]
        row = (on_env if seeds.empty else seeds).nsmallest(1, "step")
        score = float("nan") if key.env in unscored_envs(runs) else UNEVALUATED
        nothing = dict.fromkeys((*VALUES, "pack"), float("nan"))
        known = {"return": row["random"], "score": score, "status": "diverged"}
        added.append(row.assign(**nothing | asdict(key) | known))
    out = pd.concat([runs, *added], ignore_index=True)
    out.attrs = runs.attrs
    return out


def reference(runs: pd.DataFrame, env: str) -> tuple[float, float] | None:
    """Return the mean return of a random policy and that of the expert on an env.

    Return None if the env has no runs.
    """
    pairs = runs.loc[runs["env"] == env, ["random", "expert"]].drop_duplicates()
    if len(pairs) > 1:
        raise UserError(
            f"runs of {env}: their random and expert returns differ; train the runs that have "
            f"other demonstrations again"
        )
    return (float(pairs.iat[0, 0]), float(pairs.iat[0, 1])) if len(pairs) else None


def _key(runs: pd.DataFrame) -> RunKey:
    row = runs.iloc[0]
    return RunKey(*(row[name] for name in AXES))


def offline(config: Config, method: str, env: str) -> bool:
    """Return True if a method trains without stepping an env."""
    model, _ = model_params(config, method, env)
    return bool(load_model(model, f"methods.{method}.model").offline)


def unit(steps: float) -> tuple[float, str]:
    """Return the unit for an axis of env steps, such as 1e6, and the text for the axis label.

    steps: the largest number of steps on the axis.
    """
    for power, sign in ((6, "⁶"), (3, "³")):
        if steps >= 2 * 10**power:
            return 10.0**power, f" (10{sign})"
    return 1.0, ""
