"""Functions that train like the commands `ngt train` and `ngt expert`, and return the run."""

from __future__ import annotations

import json
import operator
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngt.api.loading import Controller, find, folder, load_demos, load_policy, with_scale
from ngt.cli import build_parser
from ngt.errors import Interrupted, UserError
from ngt.experience.demos import Demos, save
from ngt.experience.shipped import DEMOS as SHIPPED
from ngt.files import read_json
from ngt.runs.keys import Layout, RunKey
from ngt.settings.config import CellConfig, Config, Mode
from ngt.settings.load import load
from ngt.settings.resolve import method_rate
from ngt.settings.schema import describe, merge

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """A finished run, with access to the files in its folder.

    Attributes:
        folder: the run's folder, which holds the files that `ngt train` writes.
    """

    folder: Path

    @property
    def record(self) -> dict[str, Any]:
        """Return the content of run.json: how the run ended, its settings and its code version."""
        return read_json(self.folder / "run.json") or {}

    @property
    def evaluations(self) -> pd.DataFrame:
        """Return the content of eval.csv, with one row per episode of each evaluation."""
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
    """Train a run that imitates demonstrations, as `ngt train` does.

    Args:
        env: the id of a registered env.
        demos: a demonstration file, a `Demos` object, or the id of an env with a shipped expert.
        method: the name of a method in the config.
        steps: total number of steps of all parallel envs. Default: the number that `scale` sets.
        seed: the seed of the run.
        episodes: the number of episodes to imitate. Default: all episodes in `demos`.
        rate: the subsampling rate, which keeps every `rate`-th transition of an episode. Default:
            the rate that the config sets for the method, or the suite's default rate.
        mode: the inputs of the learned reward: "state-action", "state-state" or "state-only".
        scale: the name of a scale (a set of settings in workflow/config), such as "quick".
        settings: further settings, which override the scale's, with the structure of a config file.
        results: the results folder.
        device: "cpu" or "cuda".

    Returns:
        The finished run. If the run is finished already, it is not trained again.

    Raises:
        UserError: `ngt train` would reject these arguments.
        KeyboardInterrupt: training was stopped, for example by Ctrl-C. The same call resumes it.
    """
    mine, config, layout = _load(env, scale, settings, results)
    own_rate = method_rate(config, method)  # raises UserError if the method is unknown
    rate = own_rate or CellConfig.rate if rate is None else _integer("rate", rate, 1)
    data, file = _read(demos, env, layout)
    count = len(data.length) if episodes is None else _integer("episodes", episodes, 1)
    key = RunKey(env, method, mode, rate, count, _integer("seed", seed, 0))
    mine = _with_steps(mine, steps, "methods", method, "envs", env)
    _command(mine, layout.root, "train", str(key), "--demos", str(file), "--device", device)
    return Run(layout.run(key))


def _load(
    env: str, scale: str, settings: Mapping[str, Any] | None, results: str | Path
) -> tuple[dict[str, Any], Config, Layout]:
    """Return the settings, the config and the paths of results. Raise UserError if one is wrong."""
    given: Any = env  # callers may pass anything
    if not isinstance(given, str):
        raise UserError(f"env: expected the id of an env, found {describe(given)}")
    mine = with_scale(scale, settings)
    config = load(mine)
    return mine, config, Layout.of(config, folder(results))


def _integer(name: str, value: Any, low: int) -> int:
    """Return an argument's value. Raise UserError if it is not an integer, or is below `low`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # also NumPy's integers
    except TypeError:
        raise UserError(f"{name}: expected an integer, found {describe(value)}") from None
    if number < low:
        raise UserError(f"{name}: must be at least {low}, found {number}")
    return number


def _with_steps(settings: dict[str, Any], steps: int | None, *sections: str) -> dict[str, Any]:
    """Return the settings with this number of steps, or unchanged if it is None.

    sections: the nested sections of the config that override all others.
    """
    if steps is None:
        return settings
    own: dict[str, Any] = {"train": {"steps": _integer("steps", steps, 1)}}
    for section in reversed(sections):
        own = {section: own}
    return merge(settings, own)


def _read(demos: str | Path | Demos, env: str, layout: Layout) -> tuple[Demos, Path]:
    """Return an env's demonstrations and the file that contains them.

    Demonstrations that are passed as an object are first saved to a file.
    """
    data = demos if isinstance(demos, Demos) else load_demos(demos, env)
    if data.env != env:
        raise UserError(f"demos: they are of {data.env}, not of {env}")
    if not isinstance(demos, Demos):
        return data, find(demos, SHIPPED)
    file = layout.demos(f"{env}-{data.checksum[:12]}")
    if not file.exists():
        save(file, data)
    return data, file


def expert(
    env: str,
    *,
    steps: int | None = None,
    scale: str = Config.scale,
    settings: Mapping[str, Any] | None = None,
    results: str | Path = "results",
    device: str = "cpu",
) -> Run:
    """Train an env's SAC expert on the env's own reward, as `ngt expert` does.

    Args:
        env: the id of a registered env.
        steps: total number of steps of all parallel envs. Default: the number that `scale` sets.
        scale: the name of a scale (a set of settings in workflow/config), such as "quick".
        settings: further settings, which override the scale's, with the structure of a config file.
        results: the results folder.
        device: "cpu" or "cuda".

    Returns:
        The expert's finished run. If the expert is finished already, it is not trained again.

    Raises:
        UserError: `ngt expert` would reject these arguments, for example because the env is
            unknown.
        KeyboardInterrupt: training was stopped, for example by Ctrl-C. The same call resumes it.
    """
    mine, _, layout = _load(env, scale, settings, results)
    mine = _with_steps(mine, steps, "envs", env, "expert")
    _command(mine, layout.root, "expert", env, "--device", device)
    return Run(layout.expert(env))


def _command(settings: Mapping[str, Any], root: Path, *words: str) -> None:
    """Run an `ngt` command in this process, with these settings and this results folder.

    If a signal stops training, raise KeyboardInterrupt, since code that goes on after an error,
    such as a search for settings, must not go on then.
    """
    try:
        text = json.dumps(settings)
    except (TypeError, ValueError) as error:  # a model's parameters may have any type
        raise UserError(
            f"settings: {error}; use only the numbers, texts, lists and mappings of Python itself"
        ) from None
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        more = ["--config", file.name, "--results", str(root)]
        args = build_parser(words[0]).parse_args([*words, *more])
        try:
            args.run(args)
        except Interrupted as stop:
            raise KeyboardInterrupt(
                f"stopped at step {stop.args[0]}; the same call resumes from there"
            ) from None
        except UserError as error:
            if str(error).endswith("--restart"):  # the error names the checkpoint's folder
                raise UserError(f"{error} (in Python, remove this folder)") from None
            raise
