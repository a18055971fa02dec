"""Check a config before any job starts."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ngt.errors import UserError
from ngt.experience.envs import Task, get_task
from ngt.settings.config import (
    DIGITS,
    Config,
    ExpertConfig,
    FigureConfig,
    SacConfig,
    TrainConfig,
)
from ngt.settings.resolve import (
    check_override,
    demos_source,
    expert_config,
    find_method,
    flat_settings,
    method_label,
    method_rate,
    model_params,
    own_file,
)
from ngt.settings.schema import check_partial
from ngt.text import amount, check_label, check_name

# Endings of the files of figures, tables and documents, which lie beside the folders of studies.
ENDINGS = (".pdf", ".png", ".csv", ".tex", ".json", ".md", ".html")


def check(config: Config) -> None:
    """Check a config's names, overrides, demonstrations and model parameters."""
    check_name(config.scale, "scale")
    if config.study:
        check_name(config.study, "study")
        if (ending := Path(config.study).suffix.lower()) in ENDINGS:
            raise UserError(
                f"study: {config.study!r} ends like a file in results/; leave out {ending}"
            )
    if config.statistics.reference:
        find_method(config, config.statistics.reference, "statistics.reference")
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
    cells = {
        (method, env): f"figures.{name}.methods"
        for name, figure in config.figures.items()
        for method in figure.methods
        for env in figure.envs_of(method)
    }
    for cell, where in cells.items():
        _check_acts(config, *cell, where)


def _check_figure(config: Config, figure: FigureConfig, where: str) -> None:
    for f in dataclasses.fields(figure):
        values = getattr(figure, f.name)
        if not values and f.name not in ("beside", "only"):
            raise UserError(f"{where}.{f.name}: empty; name at least one")
        twice = next((v for v in values if [*values].count(v) > 1), None)
        if twice is not None:
            raise UserError(f"{where}.{f.name}: {twice} is listed twice; list it once")
        long = next((v for v in values if isinstance(v, int) and v >= 10**DIGITS), None)
        if long is not None:
            raise UserError(f"{where}.{f.name}: {long} is too large; use at most {DIGITS} digits")
    for axis in ("methods", "beside"):
        for method in getattr(figure, axis):
            find_method(config, method, f"{where}.{axis}")
            if not figure.envs_of(method):
                raise UserError(
                    f"{where}.only.{method}: none of the figure's envs; list at least one of them"
                )
    _check_labels(config, figure, where)
    _check_envs(figure.envs, f"{where}.envs")
    for method, envs in figure.only.items():
        find_method(config, method, f"{where}.only")
        _check_envs(envs, f"{where}.only.{method}")
    for method in (*figure.methods, *figure.beside):
        own = method_rate(config, method)
        field = f"{where}.rates" if own is None else f"methods.{method}.rate"
        for env in figure.envs_of(method):
            check_rate(max(figure.rates) if own is None else own, env, field)


def _check_labels(config: Config, figure: FigureConfig, where: str) -> None:
    """Check that no two methods of a figure have the same label."""
    first: dict[str, str] = {}
    for method in (*figure.methods, *figure.beside):
        label = method_label(config, method)
        if (other := first.setdefault(label, method)) != method:
            raise UserError(
                f"{where}: {other} and {method} have the same label {label!r}; write another "
                f"methods.{method}.label"
            )


def check_rate(rate: int, env: str, where: str) -> None:
    """Raise UserError if an env's episodes have fewer steps than a subsampling rate."""
    most = get_task(env).time_limit
    if rate > most:
        raise UserError(
            f"{where}: rate {rate}, but an episode of {env} has at most {most} steps; lower the "
            f"rate"
        )


HL_GAUSS = ("sigma_expert", "sigma_agent", "reward_sigma", "bins", "support", "hlg_target")


def idle(name: str, settings: Mapping[str, Any], task: Task) -> str:
    """Return why a setting has no effect on a task, or an empty string if it may have an effect.

    settings: all settings of the method on the task, by dotted name.
    """
    pairing, field = settings.get("params.pairing"), name.removeprefix("params.")
    if field in HL_GAUSS and pairing not in (None, "hl_gauss"):
        return f"params.pairing is {pairing}"
    if (
        field == "reward_sigma"
        and settings["params.sigma_expert"] == settings["params.sigma_agent"]
    ):
        return "the two widths are equal"
    if field == "delta" and pairing not in (None, "huber"):
        return f"params.pairing is {pairing}"
    if field in ("terminate_when_unhealthy", "absorbing") and not task.can_terminate:
        return "nothing terminates there"
    if name == "sac.entropy_units" and (task.low, task.high) == (-1.0, 1.0):
        return "the action bounds are 1"
    return ""


def _check_acts(config: Config, method: str, env: str, where: str) -> None:
    """Raise UserError if a variant changes only settings that have no effect on an env.

    A variant is a method that copies a base method, named by its `like` field, and changes some
    settings.
    """
    like = config.methods[method].like
    if not like:
        return
    own, other = (flat_settings(config, name, env) for name in (method, like))
    changed = [name for name in own | other if own.get(name) != other.get(name)]
    reasons = {name: idle(name, own, get_task(env)) for name in changed}
    if changed and all(reasons.values()):
        name, reason = next(iter(reasons.items()))
        raise UserError(
            f"{where}: {method} on {env} would equal {like}: {name} has no effect, since {reason}; "
            f"list other envs in `only`"
        )


def _check_envs(names: Iterable[str], where: str) -> None:
    for name in names:
        try:
            get_task(name)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None


def _check_demos(config: Config, env: str, count: int, where: str) -> None:
    """Check that an env has, or will have, at least `count` demonstrations.

    If the config uses shipped experts but the env has none, or too few episodes of it ship, this is
    no error here: it is reported for the runs that need them.
    """
    if own_file(config, env):
        demos_source(config, env)  # raises UserError if the file cannot be read
    elif config.demos == "trained":
        most = expert_config(config, env).episodes
        if count > most:
            raise UserError(
                f"{where}: {count} requested, but the expert of {env} is recorded for "
                f"{amount(most, 'episode')}; raise expert.episodes"
            )
