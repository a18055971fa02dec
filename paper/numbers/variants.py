"""Functions that list the settings of a method, and the settings in which two methods differ."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ngt.settings.config import CellConfig, Config, SacConfig, TrainConfig
from ngt.settings.resolve import load_model, method_rate, resolve

# Fields of CellConfig that say which runs have the settings, and are not settings themselves.
IDENTITY = ("env", "method", "demos_source")

Settings = dict[str, tuple[str, str]]  # value and meaning of each setting, by its name


class Difference(NamedTuple):
    """A setting and its values in two methods. The value is `-` if a method lacks the setting."""

    name: str
    envs: tuple[str, ...]  # the envs on which the methods have these values
    values: tuple[str, str]
    meaning: str


def settings(cell: CellConfig) -> Settings:
    """Return the value and the meaning of every setting in `cell`, by its name in the config."""
    model = load_model(cell.model, f"methods.{cell.method}.model")
    sections: list[tuple[str, type, dict[str, Any]]] = [
        ("", CellConfig, vars(cell)),
        ("sac.", SacConfig, vars(cell.sac)),
        ("train.", TrainConfig, vars(cell.train)),
        ("params.", model.Config, cell.params),
    ]
    return {
        prefix + f.name: (as_text(values[f.name]), f.metadata["doc"])
        for prefix, cls, values in sections
        for f in dataclasses.fields(cls)
        if "doc" in f.metadata and f.name not in IDENTITY
    }


def as_text(value: Any) -> str:
    """Return a value as it is written in a config file."""
    return value if isinstance(value, str) else json.dumps(value)


def cell(config: Config, env: str, method: str) -> CellConfig:
    """Return a method's settings on an env.

    Demonstrations are subsampled at the method's rate or, if the method has none, at the default
    rate.
    """
    rate = method_rate(config, method) or CellConfig.rate
    return resolve(config, env, method, CellConfig.mode, rate)


def differences(config: Config, a: str, b: str, envs: Sequence[str]) -> list[Difference]:
    """Return every setting in which methods a and b differ on an env, in the config's order."""
    return compare(
        {env: (settings(cell(config, env, a)), settings(cell(config, env, b))) for env in envs}
    )


def compare(sides: Mapping[str, tuple[Settings, Settings]]) -> list[Difference]:
    """Return every setting whose value differs between two methods on an env.

    sides: the settings of both methods on each env.
    """
    meanings = {n: doc for pair in sides.values() for side in pair for n, (_, doc) in side.items()}
    rows = []
    for name, meaning in meanings.items():
        found: dict[tuple[str, str], list[str]] = {}
        for env, pair in sides.items():
            left, right = (side.get(name, ("-", ""))[0] for side in pair)
            if left != right:
                found.setdefault((left, right), []).append(env)
        rows += [Difference(name, tuple(on), values, meaning) for values, on in found.items()]
    return rows
