"""Read a scale's config: base.yaml, then the scale's file, then the user's own differences."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ngt.errors import UserError, suggest
from ngt.files import CHECKOUT
from ngt.settings.check import check
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash
from ngt.settings.schema import describe, merge, parse


def read_yaml(path: Path) -> dict[str, Any]:
    """A mapping from a YAML file, or a JSON one: YAML would read its 1e-05 as text."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML would keep the last of two equal keys and say nothing."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = next((k for k in keys if keys.count(k) > 1), None)
            if twice is not None:
                line = node.start_mark.line + 1
                raise ValueError(f"key {twice!r} stands twice in the mapping at line {line}")
            return dict(super().construct_mapping(node, deep))

    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader)
    except OSError as error:
        raise UserError(f"config file {path}: can't be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "YAML"
        reason = " ".join(str(error).split())
        raise UserError(f"config file {path}: not valid {kind}: {reason}") from None
    if not isinstance(data, dict):
        raise UserError(f"config file {path}: expected a mapping, found {describe(data)}")
    return data


CONFIG_DIR = CHECKOUT / "workflow" / "config"


def load(data: Mapping[str, Any], directory: Path = CONFIG_DIR) -> Config:
    """The config of a scale: base.yaml <- <scale>.yaml <- `data`, checked whole.

    data: the user's own differences; its `scale` picks the file.
    """
    base = read_yaml(directory / "base.yaml")
    scale = data.get("scale", base.get("scale", Config.scale))
    scales = sorted(p.stem for p in directory.glob("*.yaml") if p.stem != "base")
    if scale not in scales:
        raise UserError(f"scale: {scale!r} is not known; {suggest(str(scale), scales)}")
    merged = merge(base, read_yaml(directory / f"{scale}.yaml"), data)
    for f in dataclasses.fields(Config):
        if f.metadata.get("null") and isinstance(merged.get(f.name), dict):  # null: not here
            merged[f.name] = {k: v for k, v in merged[f.name].items() if v is not None}
    return _checked(merged)


def _checked(data: Mapping[str, Any]) -> Config:
    config: Config = parse(Config, data)
    for name in config.imports:
        import_module(name)
    check(config)
    return config


def to_file(config: Config) -> str:
    """The text of a file of complete settings, which `load_file` reads."""
    return json.dumps(dataclasses.asdict(config), indent=1) + "\n"


def load_file(path: Path) -> Config:
    """The config in a file of complete settings whose name is their hash; nothing is merged in.

    Errors: a file that was cut or changed is a UserError.
    """
    config = _checked(read_yaml(path))
    if config_hash(config) != path.stem:
        raise UserError(
            f"settings {path}: its content has hash {config_hash(config)}: the file was changed or "
            f"damaged; remove it, and the workflow writes it again"
        )
    return config


def import_module(name: str) -> None:
    """Import a user's module, for what it registers."""
    try:
        importlib.import_module(name)
    except Exception as error:  # whatever its code raises
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(
            f"imports: {name!r} can't be imported ({reason}); it must lie where Python looks, e.g. "
            f"in this folder"
        ) from None
