"""Functions of the Python API that load policies, demonstrations and tables of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.errors import UserError
from ngt.experience import demos, shipped
from ngt.experience.demos import Demos
from ngt.experience.envs import get_task
from ngt.experience.units import to_env
from ngt.foreign.recognise import refuse_foreign
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import no_rows, read_keys
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.schema import describe

if TYPE_CHECKING:
    import pandas as pd


class Controller:
    """A deterministic policy whose inputs and outputs are in the env's own units.

    Attributes:
        actor: the policy's network, which maps tensors of observations to tensors of actions in
            [-1, 1].
        env: the id of the env that the policy was trained on.
    """

    def __init__(self, actor: Policy, env: str) -> None:
        self.actor, self.env = actor, env

    def predict(self, obs: ArrayLike) -> NDArray[np.float32]:
        """Return the action for one observation, or one action for each row of observations.

        Args:
            obs: one or n flat observations in the env's own units, shape (obs,) or (n, obs). Here,
                obs is the number of values in one observation of the env.

        Returns:
            Actions in the env's own units, within its bounds, shape (act,) or (n, act), float32.

        Raises:
            UserError: `obs` has the wrong shape, or is not an array of finite numbers, e.g. because
                it is a dict that must be flattened first.
        """
        task = get_task(self.env)
        try:
            with np.errstate(over="ignore"):  # values that become infinite are refused below
                rows = np.asarray(obs, np.float32)
        except (TypeError, ValueError):
            raise UserError(
                f"obs: found {describe(obs):.80}, expected an array of numbers; flatten a Dict or "
                f"Tuple observation with gymnasium.spaces.flatten(env.observation_space, obs)"
            ) from None
        if rows.ndim not in (1, 2) or rows.shape[-1] != task.obs:
            raise UserError(
                f"obs: found shape {rows.shape}, expected ({task.obs},) or (n, {task.obs}) on "
                f"{self.env}"
            )
        if not np.isfinite(rows).all():
            value = rows[~np.isfinite(rows)][0]
            raise UserError(f"obs: found {value}, expected finite numbers within float32's range")
        flat = rows.reshape(-1, task.obs)
        unit = self.actor(torch.from_numpy(flat)[None])[0].numpy()
        actions = to_env(unit, task).astype(np.float32)
        return actions.reshape(*rows.shape[:-1], task.act)


def load_policy(source: str | Path) -> Controller:
    """Load a policy from a run's folder, from a policy file, or from an env's shipped expert.

    Args:
        source: a run's folder, a policy file, or the id of an env with a shipped expert, i.e. an
            expert in the repository's data/ folder.

    Returns:
        The policy, on the CPU.

    Raises:
        UserError: the file is missing or damaged, has the wrong format, or belongs to an unknown
            env.
    """
    path = find(source, shipped.POLICY)
    return Controller(*policy.load(path / shipped.POLICY if path.is_dir() else path))


def load_demos(source: str | Path, env: str | None = None) -> Demos:
    """Load demonstrations from a file, or the demonstrations of an env's shipped expert.

    Args:
        source: a demonstration file, or the id of an env with a shipped expert, i.e. an expert in
            the repository's data/ folder.
        env: the id of the env that the demonstrations must come from, or None to accept any env.

    Returns:
        Whole episodes, one after another. For n episodes with T transitions in total, `obs` has
        shape (T + n, obs) and is in the env's own units. `action` has shape (T, act) and lies in
        [-1, 1]. `reward`, shape (T,), is the env's own reward. `length`, `terminated`, `returns`
        and `seeds` have shape (n,).

    Raises:
        UserError: the file is missing or damaged, belongs to a different env, or has another
            project's format. In the last case, the message names the `ngt import` command that
            converts the file.
    """
    path = find(source, shipped.DEMOS)
    refuse_foreign(path, env or "ENV")
    return demos.load(path, env)


def find(source: str | Path, name: str) -> Path:
    """Return the path `source` or, if `source` is an env id, a file of that env's shipped expert.

    name: the name of the expert's file.
    """
    given: Any = source  # callers may pass anything
    if not isinstance(given, str | os.PathLike):
        kind = Path(name).stem
        raise UserError(f"{kind}: expected a path or the id of an env, found {describe(given)}")
    env = str(source)
    if Path(source).exists() or not shipped.ships(env):
        return Path(source)
    shipped.read(env)  # raises UserError if a shipped file is damaged
    return shipped.DATA / env / name


def folder(results: str | Path) -> Path:
    """Return the results folder. Raise UserError if `results` is not a path."""
    given: Any = results  # callers may pass anything
    if not isinstance(given, str | os.PathLike):
        raise UserError(f"results: expected a path, found {describe(given)}")
    return Path(given)


def with_scale(scale: str, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return settings that also name the scale. Raise UserError if they are not a mapping."""
    if not isinstance(settings, Mapping | None):
        raise UserError(f"settings: expected a mapping, found {describe(settings)}")
    return {"scale": scale, **(settings or {})}


def load_runs(
    scale: str = Config.scale,
    *,
    settings: Mapping[str, Any] | None = None,
    results: str | Path = "results",
    other_settings: bool = False,
) -> pd.DataFrame:
    """Load the evaluations of a scale's finished runs. A scale is a named set of settings.

    Args:
        scale: the name of a scale, such as "quick".
        settings: further settings, with the structure of a config file. With {"records":
            "published"}, the function reads the published records, i.e. the results in the
            repository, instead of the runs' own files.
        results: the results folder.
        other_settings: True to read published records even if their settings differ from the
            config's.

    Returns:
        A table with one row per evaluation of each finished run. `step` counts env steps, `return`
        is the mean of the evaluation's undiscounted returns, and `score` is the return, normalised
        so that a random policy scores 0 and the expert scores 1. Runs are left out if they are
        missing, not finished, or stale, i.e. trained with other settings or demonstrations than the
        config's. If there are no runs, the table has the same columns but no rows.

    Raises:
        UserError: a setting is wrong, a run's files are damaged, or a finished run differs from a
            run of the config's figures only in its seed.
    """
    config = load(with_scale(scale, settings))
    layout = Layout.of(config, folder(results))
    runs = read_keys(
        layout,
        config,
        run_table(config),
        "figures",
        allow_partial=True,
        other_settings=other_settings,
    )
    return no_rows() if runs.rows is None else runs.rows
