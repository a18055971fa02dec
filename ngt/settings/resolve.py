"""Resolve a config to the complete settings of cells, and hash settings.

A cell is the set of runs with the same env, method, input mode and subsampling rate.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import json
import os
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ngt.errors import UserError, fault, suggest
from ngt.experience import shipped
from ngt.files import CHECKOUT, INSTALLED
from ngt.settings.config import (
    CellConfig,
    Config,
    ExpertConfig,
    MethodConfig,
    MethodEnvConfig,
    Mode,
    Override,
    SacConfig,
    TrainConfig,
)
from ngt.settings.former import with_former, without_former
from ngt.settings.schema import check_partial, check_types, merge, parse


def check_override(entry: Override, where: str) -> None:
    """Check the SAC and training settings that an env or a method overrides."""
    check_partial(SacConfig, entry.sac, f"{where}.sac")
    check_partial(TrainConfig, entry.train, f"{where}.train")


def find_method(config: Config, name: str, where: str = "method") -> MethodConfig:
    """Return a method's config entry. If there is none, raise a UserError with suggestions."""
    if name not in config.methods:
        raise UserError(f"{where}: {name!r} is not known; {suggest(name, list(config.methods))}")
    return config.methods[name]


def distinct_methods(config: Config) -> list[str]:
    """Return the names of all methods, except variants that change only `train` settings."""
    own = [f.name for f in dataclasses.fields(MethodConfig) if f.name not in ("label", "like")]
    plain = MethodConfig()
    return [
        name
        for name, entry in config.methods.items()
        if not (entry.like and entry.train)
        or any(getattr(entry, f) != getattr(plain, f) for f in own if f != "train")
    ]


def _lineage(config: Config, name: str) -> list[tuple[str, MethodConfig]]:
    """Return a method's base methods, as given by `like` fields, then the method itself.

    The method that has no `like` field comes first.
    """
    chain: list[tuple[str, MethodConfig]] = []
    while name:
        if name in (n for n, _ in chain):
            cycle = " like ".join([*(n for n, _ in reversed(chain)), name])
            raise UserError(f"methods.{name}.like: a cycle, {cycle}; give one of them a model")
        entry = find_method(config, name, f"methods.{chain[0][0]}.like" if chain else "method")
        chain.insert(0, (name, entry))
        name = entry.like
    return chain


def _layers(config: Config, method: str, env: str) -> Iterator[tuple[str, MethodEnvConfig]]:
    """Yield a method's overrides on an env, each with its place in the config.

    Later overrides replace the values of earlier overrides.
    """
    for name, entry in _lineage(config, method):
        yield f"methods.{name}", entry
        if env in entry.envs:
            yield f"methods.{name}.envs.{env}", entry.envs[env]


def load_model(path: str, where: str) -> Any:
    """Return the class at a dotted path `package.module:Class`."""
    module, _, name = path.partition(":")
    failed = f"{where}: {path!r} can't be loaded"
    try:
        imported = import_model(module)
    except Exception as error:  # a user's module may raise anything
        lacks = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        wrong = lacks or not module or module.startswith(".")
        fix = "write package.module:Class" if wrong else "fix it"
        raise UserError(f"{failed} ({fault(error)}); {fix}") from None
    if (model := getattr(imported, name, None)) is None:
        raise UserError(f"{failed} ({module} has no {name!r}); write package.module:Class")
    # This module may not import RewardModel, which is on a higher floor of the code.
    if not any(base.__name__ == "RewardModel" for base in getattr(model, "__mro__", ())):
        raise UserError(
            f"{where}: {path!r} is not a subclass of ngt.reward.RewardModel; make it one"
        )
    if not dataclasses.is_dataclass(getattr(model, "Config", None)):
        raise UserError(f"{where}: {path!r} has no dataclass `Config`; write one")
    check_types(model.Config, f"{where}: {path!r}: Config")
    return model


def import_model(name: str) -> ModuleType:
    """Import a model's module. In an installed suite, `baselines` is inside the `ngt` package."""
    if INSTALLED and name.partition(".")[0] == "baselines":
        folder = CHECKOUT / "baselines"
        if [str(folder)] != list(getattr(sys.modules.get("baselines"), "__path__", ())):
            spec = importlib.util.spec_from_file_location(
                "baselines", folder / "__init__.py", submodule_search_locations=[str(folder)]
            )
            assert spec is not None and spec.loader is not None
            sys.modules["baselines"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules["baselines"])
    return importlib.import_module(name)


def model_params(config: Config, method: str, env: str) -> tuple[str, dict[str, Any]]:
    """Return the path of a method's model on an env, and the model's complete parameters."""
    model, params = "", {}
    for where, entry in _layers(config, method, env):
        model = getattr(entry, "model", "") or model
        if not model:
            raise UserError(f"{where}.model: missing; write package.module:Class or `like`")
        check_override(entry, where)
        check_partial(load_model(model, where).Config, entry.params, f"{where}.params")
        params.update(entry.params)
    full = parse(load_model(model, method).Config, params, f"methods.{method}.params")
    return model, dataclasses.asdict(full)


def method_rate(config: Config, method: str) -> int | None:
    """Return the subsampling rate that the config fixes for a method, or None if it fixes none."""
    rates = [entry.rate for _, entry in _lineage(config, method) if entry.rate is not None]
    return rates[-1] if rates else None


def method_label(config: Config, method: str) -> str:
    """Return a method's name in figures."""
    return find_method(config, method).label or method


def _overlay(config: Config, env: str, differences: Sequence[Override]) -> dict[str, Any]:
    """Return the settings of a cell that can be overridden.

    The env's entry in the config overrides the shared settings. `differences` override both.
    """
    entries = [*([config.envs[env]] if env in config.envs else []), *differences]
    sac = merge(dataclasses.asdict(config.sac), *(e.sac for e in entries))
    train = merge(dataclasses.asdict(config.train), *(e.train for e in entries))
    out = {"sac": parse(SacConfig, sac, "sac"), "train": parse(TrainConfig, train, "train")}
    for name in ("terminate_when_unhealthy", "normalise_obs"):
        given = [getattr(e, name) for e in entries if getattr(e, name) is not None]
        out[name] = given[-1] if given else getattr(config, name)
    return out


def flat_settings(config: Config, method: str, env: str) -> dict[str, Any]:
    """Return a method's settings on an env by dotted name.

    The mode, the rate and the demonstrations are left out.
    """
    model, params = model_params(config, method, env)
    found = _overlay(config, env, [entry for _, entry in _layers(config, method, env)])
    flat = {f"params.{name}": value for name, value in params.items()} | {"model": model}
    for name, value in found.items():
        section = isinstance(value, SacConfig | TrainConfig)
        flat |= {f"{name}.{n}": v for n, v in vars(value).items()} if section else {name: value}
    return flat


def resolve(config: Config, env: str, method: str, mode: Mode, rate: int) -> CellConfig:
    """Return the complete settings of a cell."""
    model, params = model_params(config, method, env)
    entries = [entry for _, entry in _layers(config, method, env)]
    return CellConfig(
        env,
        method,
        model,
        params,
        mode,
        rate,
        demos_source=demos_source(config, env),
        **_overlay(config, env, entries),
    )


def own_file(config: Config, env: str) -> str:
    """Return the user's own demonstration file for an env, or an empty string if no file is set.

    A relative path is looked up in the working folder, then in the checkout. A leading ~ stands for
    the home folder: a shell does not expand it inside `--set`.
    """
    file = os.path.expanduser(config.envs[env].demos) if env in config.envs else ""
    shipped_file = CHECKOUT / file
    return str(shipped_file) if file and not Path(file).exists() and shipped_file.exists() else file


def demos_file(config: Config, env: str) -> str:
    """Return an env's demonstration file, or an empty string if a job records the file."""
    shipping = config.demos == "shipped"
    return own_file(config, env) or (str(shipped.DATA / env / shipped.DEMOS) if shipping else "")


def demos_source(config: Config, env: str) -> str:
    """Return the hash of an env's demonstration file or of the env's expert config.

    The expert's config is hashed if a job records the file. Otherwise, i.e. for a user's own file
    or a shipped file, the file is hashed. Raise UserError if this file is missing, cannot be read
    or was changed.
    """
    if own := own_file(config, env):
        return file_hash(Path(own), f"envs.{env}.demos")
    if config.demos == "shipped":
        return short(shipped.read(env)["files"][shipped.DEMOS])
    return config_hash(resolve_expert(config, env))


def short(sha256: str) -> str:
    """Shorten a hash to the length that is used in names and records."""
    return sha256[:16]


def file_hash(path: Path, where: str) -> str:
    """Return the short hash of a file's bytes."""
    try:
        return short(hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise UserError(f"{where}: {path} can't be read: {error.strerror}") from None


def expert_config(config: Config, env: str) -> ExpertConfig:
    """Return the settings of an env's expert, which override the agents' settings."""
    own = config.envs[env].expert if env in config.envs else {}
    return typing.cast(
        ExpertConfig,
        parse(ExpertConfig, merge(dataclasses.asdict(config.expert), own), f"envs.{env}.expert"),
    )


def resolve_expert(config: Config, env: str) -> CellConfig:
    """Return the complete settings of an env's expert."""
    differences = _overlay(config, env, [expert_config(config, env)])
    return CellConfig(env, "expert", "ngt.reward:EnvReward", **differences)


def expert_ships(config: Config, env: str) -> bool:
    """Return True if the env has a shipped expert that was trained with the config's settings."""
    if not shipped.ships(env):
        return False
    made = recorded(shipped.read(env)["config"], f"data/{env}/{shipped.EXPERT}: config")
    return made == resolve_expert(config, env)


def _sections(data: Mapping[str, Any]) -> dict[str, type]:
    """Return the dataclasses of the sections of a cell's settings: sac, train and params."""
    model = str(data.get("model", ""))
    own = {"params": load_model(model, "model").Config} if model else {}
    return {"sac": SacConfig, "train": TrainConfig, **own}


def recorded(data: Any, where: str) -> CellConfig:
    """Parse a cell's settings from plain data in a record, such as run.json.

    A setting that is newer than the record gets its former value (`ngt.settings.former`), or its
    default if it has no former value.
    """
    if isinstance(data, Mapping):
        parts = {n: with_former(c, data[n]) for n, c in _sections(data).items() if n in data}
        data = with_former(CellConfig, {**data, **parts})
    cell: CellConfig = parse(CellConfig, data, where)
    if not cell.model:
        return cell
    params = parse(load_model(cell.model, "model").Config, cell.params, "params")
    return dataclasses.replace(cell, params=dataclasses.asdict(params))


def plain(config: Any) -> dict[str, Any]:
    """Convert settings to plain data, in the form that is hashed and stored in records.

    Of a `CellConfig`, leave out settings that have their former values (`ngt.settings.former`). Of
    a `Config`, leave out the study's name.
    """
    data = dataclasses.asdict(config)
    if isinstance(config, Config):
        del data["study"]
    if isinstance(config, CellConfig):
        parts = {n: without_former(c, data[n]) for n, c in _sections(data).items()}
        data = without_former(CellConfig, {**data, **parts})
    return data


def to_json(config: Any) -> str:
    """Convert a config dataclass to canonical JSON."""
    return json.dumps(plain(config), sort_keys=True, separators=(",", ":"))


def config_hash(config: Any) -> str:
    """Return the short hash of a config. Equal configs have equal hashes."""
    return short(hashlib.sha256(to_json(config).encode()).hexdigest())
