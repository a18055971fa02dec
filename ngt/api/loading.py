"""Read policies, demonstrations and tables of runs from Python."""

from __future__ import annotations

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
from ngt.runs.table import read_keys
from ngt.settings.config import Config
from ngt.settings.load import load

if TYPE_CHECKING:
    import pandas as pd


class Controller:
    """A deterministic policy whose actions are in the env's own units."""

    def __init__(self, actor: Policy, env: str) -> None:
        self.actor, self.env = actor, env

    def predict(self, obs: ArrayLike) -> NDArray[np.float32]:
        """Return the action for one observation (obs,), or one action per row of (n, obs)."""
        task = get_task(self.env)
        rows = np.asarray(obs, np.float32)
        if rows.ndim not in (1, 2) or rows.shape[-1] != task.obs:
            raise UserError(
                f"obs: found shape {rows.shape}, expected ({task.obs},) or (n, {task.obs}) on "
                f"{self.env}"
            )
        flat = rows.reshape(-1, task.obs)
        unit = self.actor(torch.from_numpy(flat)[None])[0].numpy()
        actions = to_env(unit, task).clip(task.low, task.high).astype(np.float32)
        return actions.reshape(*rows.shape[:-1], task.act)


def load_policy(source: str | Path) -> Controller:
    """Return the policy of a run, of a policy file, or of the shipped expert of an env.

    source: the run's folder, the policy file, or the env id.
    """
    path = find(source, shipped.POLICY)
    return Controller(*policy.load(path / shipped.POLICY if path.is_dir() else path))


def load_demos(source: str | Path, env: str | None = None) -> Demos:
    """Return the demonstrations in a file, or those of the shipped expert of an env.

    source: the file or the env id.
    env: if given, raise UserError unless the file's demonstrations are of this env.
    """
    path = find(source, shipped.DEMOS)
    refuse_foreign(path, env or "ENV")
    return demos.load(path, env)


def find(source: str | Path, name: str) -> Path:
    """Return the path `source`, or a file of the shipped expert if `source` is an env id.

    name: the name of this file.
    """
    env = str(source)
    if Path(source).exists() or not shipped.ships(env):
        return Path(source)
    shipped.read(env)  # raises UserError if a shipped file is damaged
    return shipped.DATA / env / name


def load_runs(
    scale: str = Config.scale,
    *,
    settings: dict[str, Any] | None = None,
    results: str | Path = "results",
    other_settings: bool = False,
) -> pd.DataFrame:
    """Return the evaluations of a scale's finished runs, one row per evaluation of a run.

    Missing runs are left out.

    settings: further settings, as in a config file. {"records": "published"} reads the published
    records, which ship with a checkout, instead of the runs under `results`.
    results: the folder of results.
    other_settings: accept published records that were made with other settings.
    """
    import pandas as pd

    config = load({"scale": scale, **(settings or {})})
    layout = Layout.of(config, Path(results))
    runs = read_keys(
        layout,
        config,
        run_table(config),
        "figures",
        allow_partial=True,
        other_settings=other_settings,
    )
    return pd.DataFrame() if runs.rows is None else runs.rows
