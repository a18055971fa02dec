"""Check everything in a config that can be wrong before a job starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ngt.errors import UserError
from ngt.experience import shipped
from ngt.experience.envs import get_task
from ngt.settings.config import Config, ExpertConfig, FigureConfig, SacConfig, TrainConfig
from ngt.settings.resolve import (
    check_override,
    demos_source,
    expert_config,
    find_method,
    model_params,
    own_file,
)
from ngt.settings.schema import check_partial
from ngt.text import check_label, check_name


def check(config: Config) -> None:
    """Check names, differences, demonstrations and model parameters."""
    check_name(config.scale, "scale")
    for name, method in config.methods.items():
        check_name(name, f"methods.{name}")
        check_label(method.label, f"methods.{name}.label")
        _check_envs(method.envs, f"methods.{name}.envs")
    for name, figure in config.figures.items():
        _check_figure(config, figure, f"figures.{name}")
    _check_envs(config.envs, "envs")
    for env, entry in config.envs.items():
        where = f"envs.{env}"
        check_override(entry, where)
        check_partial(ExpertConfig, entry.expert, f"{where}.expert")
        for section, cls in (("sac", SacConfig), ("train", TrainConfig)):
            check_partial(cls, entry.expert.get(section, {}), f"{where}.expert.{section}")
    check_override(config.expert, "expert")
    for name, figure in config.figures.items():
        for env in figure.envs:
            _check_demos(config, env, max(figure.demos), f"figures.{name}.demos")
    envs = {env for figure in config.figures.values() for env in figure.envs}
    envs |= {env for method in config.methods.values() for env in method.envs}
    for name in config.methods:
        for env in sorted(envs) or [""]:
            model_params(config, name, env)


def _check_figure(config: Config, figure: FigureConfig, where: str) -> None:
    for f in dataclasses.fields(figure):
        values = getattr(figure, f.name)
        if not values and f.name != "beside":
            raise UserError(f"{where}.{f.name}: empty; name at least one")
        twice = next((v for v in values if values.count(v) > 1), None)
        if twice is not None:
            raise UserError(f"{where}.{f.name}: {twice} stands twice; name it once")
    for axis in ("methods", "beside"):
        for method in getattr(figure, axis):
            find_method(config, method, f"{where}.{axis}")
    _check_envs(figure.envs, f"{where}.envs")


def _check_envs(names: Iterable[str], where: str) -> None:
    for name in names:
        try:
            get_task(name)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None


def _check_demos(config: Config, env: str, count: int, where: str) -> None:
    """Check that enough demonstrations exist.

    A missing shipped expert is reported only when it is used.
    """
    if own_file(config, env):
        demos_source(config, env)  # raises UserError if the file cannot be read
    elif config.demos == "trained":
        most = expert_config(config, env).episodes
        if count > most:
            raise UserError(
                f"{where}: {count} asked for, and the expert of {env} is recorded for {most} "
                f"episodes; raise expert.episodes"
            )
    elif shipped.ships(env):
        most = shipped.read(env)["episodes"]
        if count > most:
            raise UserError(
                f"{where}: {count} asked for, and {most} of {env} ship; ask for no more, or write "
                f"`demos: trained`"
            )
