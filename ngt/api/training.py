"""Functions that do the same as the commands `ngt train` and `ngt expert`, and return the run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngt.api.loading import Controller, find, load_demos, load_policy
from ngt.cli import build_parser
from ngt.errors import UserError
from ngt.experience.demos import Demos, save
from ngt.experience.shipped import DEMOS as SHIPPED
from ngt.files import read_json
from ngt.runs.keys import Layout, RunKey
from ngt.settings.config import CellConfig, Config, Mode
from ngt.settings.load import load
from ngt.settings.resolve import method_rate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """The folder of a finished run. The properties return the contents of its files."""

    folder: Path

    @property
    def record(self) -> dict[str, Any]:
        """Return the contents of run.json: how the run ended, its settings and its code version."""
        return read_json(self.folder / "run.json") or {}

    @property
    def evaluations(self) -> pd.DataFrame:
        """Return the contents of eval.csv, with one row per episode of each evaluation."""
        import pandas as pd

        return pd.read_csv(self.folder / "eval.csv")

    @property
    def policy(self) -> Controller:
        """Return the trained policy."""
        return load_policy(self.folder)


def imitate(
    env: str,
    demos: str | Path | Demos,
    method: str = "ngt",
    *,
    steps: int | None = None,
    seed: int = 0,
    episodes: int | None = None,
    rate: int | None = None,
    mode: Mode = CellConfig.mode,
    scale: str = Config.scale,
    settings: Mapping[str, Any] | None = None,
    results: str | Path = "results",
    device: str = "cpu",
) -> Run:
    """Imitate demonstrations, as `ngt train` does, and return the run.

    A finished run is not trained again. Raise UserError if `ngt train` would refuse to train.

    demos: a demonstration file, a `Demos` object, or the env id of a shipped expert.
    steps: the number of env steps; by default that of the scale.
    episodes: the number of demonstrations to imitate; by default all.
    rate: keep every `rate`-th transition of the demonstrations; by default the method's rate.
    mode: the inputs of the learned reward: "state-action", "state-state" or "state-only".
    settings: further settings, as in a config file.
    results: the folder of results.
    """
    mine: dict[str, Any] = {"scale": scale, **(settings or {})}
    if steps is not None:
        mine["train"] = {**mine.get("train", {}), "steps": steps}
    config, root = load(mine), Path(results)
    data = demos if isinstance(demos, Demos) else load_demos(demos, env)
    if data.env != env:
        raise UserError(f"demos: they are of {data.env}, not of {env}")
    if rate is None:
        rate = method_rate(config, method) or CellConfig.rate
    key = RunKey(env, method, mode, rate, episodes or len(data.length), seed)
    layout = Layout.of(config, root)
    if isinstance(demos, Demos):
        file = layout.demos(f"{env}-{data.checksum[:12]}")
        if not file.exists():
            save(file, data)
    else:
        file = find(demos, SHIPPED)
    _command(mine, root, "train", str(key), "--demos", str(file), "--device", device)
    return Run(layout.run(key))


def expert(
    env: str,
    *,
    steps: int | None = None,
    scale: str = Config.scale,
    settings: Mapping[str, Any] | None = None,
    results: str | Path = "results",
    device: str = "cpu",
) -> Run:
    """Train the SAC expert of an env on the env's own reward, and return the run.

    This does the same as `ngt expert`. The arguments are those of `imitate`.
    """
    mine: dict[str, Any] = {"scale": scale, **(settings or {})}
    if steps is not None:
        own = mine.get("expert", {})
        mine["expert"] = {**own, "train": {**own.get("train", {}), "steps": steps}}
    config, root = load(mine), Path(results)
    _command(mine, root, "expert", env, "--device", device)
    return Run(Layout.of(config, root).expert(env))


def _command(settings: Mapping[str, Any], root: Path, *words: str) -> None:
    """Run a command of `ngt` in this process, with these settings and this results folder."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(settings, file)
        file.flush()
        more = ["--config", file.name, "--results", str(root)]
        args = build_parser(words[0]).parse_args([*words, *more])
        args.run(args)
