"""Check everything that can be wrong in a config before a job starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ngt.errors import UserError
from ngt.experience import shipped
from ngt.experience.envs import get_task
from ngt.settings.config import Config, ExpertConfig, FigureConfig, SacConfig, TrainConfig
from ngt.settings.resolve import (
    _check_override,
    demos_source,
    expert_config,
    find_method,
    model_params,
    own_file,
)
from ngt.settings.schema import check_partial
from ngt.text import check_label, check_name


def check(config: Config) -> None:
    """Everything that can be wrong before a job starts: names, differences, model parameters."""
    check_name(config.scale, "scale")
    for name, method_entry in config.methods.items():
        check_name(name, f"methods.{name}")
        check_label(method_entry.label, f"methods.{name}.label")
    for name, figure in config.figures.items():
        _check_axes(figure, f"figures.{name}")
        for axis in ("methods", "beside"):
            for method in getattr(figure, axis):
                find_method(config, method, f"figures.{name}.{axis}")
        _check_envs(figure.envs, f"figures.{name}.envs")
    for name, method_entry in config.methods.items():
        _check_envs(method_entry.envs, f"methods.{name}.envs")
    _check_envs(config.envs, "envs")
    for env, entry in config.envs.items():
        _check_override(entry, f"envs.{env}")
        check_partial(ExpertConfig, entry.expert, f"envs.{env}.expert")
        for section, cls in (("sac", SacConfig), ("train", TrainConfig)):
            check_partial(cls, entry.expert.get(section, {}), f"envs.{env}.expert.{section}")
    _check_override(config.expert, "expert")
    for name, figure in config.figures.items():
        for env in figure.envs:
            _check_demos(config, env, max(figure.demos), f"figures.{name}.demos")
    envs = {e for figure in config.figures.values() for e in figure.envs}
    envs |= {e for method_entry in config.methods.values() for e in method_entry.envs}
    for name in config.methods:
        for env in sorted(envs) or [""]:
            model_params(config, name, env)


def _check_axes(figure: FigureConfig, where: str) -> None:
    for f in dataclasses.fields(figure):
        values = getattr(figure, f.name)
        if not values and f.name != "beside":
            raise UserError(f"{where}.{f.name}: empty; name at least one")
        twice = next((v for v in values if values.count(v) > 1), None)
        if twice is not None:
            raise UserError(f"{where}.{f.name}: {twice} stands twice; name it once")


def _check_envs(names: Iterable[str], where: str) -> None:
    for name in names:
        try:
            get_task(name)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None


def _check_demos(config: Config, env: str, count: int, where: str) -> None:
    """Enough of them. Where none ships it is said once one is asked for: not every env need be."""
    if own_file(config, env):
        demos_source(config, env)  # it can be read
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
