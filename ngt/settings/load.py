"""Load a scale's config from base.yaml, the scale's file and the user's settings."""

import dataclasses
import importlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ngt.errors import UserError, fault, suggest
from ngt.files import CHECKOUT
from ngt.settings.check import check
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash
from ngt.settings.schema import describe, merge, parse

CONFIG_DIR = CHECKOUT / "workflow" / "config"
OTHERS = "others"  # a key in the `figures` section of a user's settings


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file.

    JSON files need a separate parser, since YAML would read 1e-05 as text.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """A loader that refuses duplicate keys, of which PyYAML would silently keep the last."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = next((k for k in keys if keys.count(k) > 1), None)
            if twice is not None:
                line = node.start_mark.line + 1
                raise ValueError(f"key {twice!r} appears twice in the mapping at line {line}")
            return dict(super().construct_mapping(node, deep))

    try:
        text = path.read_text(encoding="utf-8")
        stream = io.StringIO(text)
        stream.name = str(path)  # for messages
        data = json.loads(text) if path.suffix == ".json" else yaml.load(stream, Loader)
    except OSError as error:
        raise UserError(f"config file {path}: can't be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "YAML"
        reason = " ".join(str(error).split())
        raise UserError(f"config file {path}: not valid {kind}: {reason}") from None
    if not isinstance(data, dict):
        raise UserError(f"config file {path}: expected a mapping, found {describe(data)}")
    return data


def load(data: Mapping[str, Any], directory: Path = CONFIG_DIR) -> Config:
    """Merge base.yaml, <scale>.yaml and `data` into a config, and check the config.

    Later values override earlier values.

    data: the user's own settings. The `scale` entry selects the scale's file.
    """
    base = read_yaml(directory / "base.yaml")
    scale = data.get("scale", base.get("scale", Config.scale))
    scales = sorted(p.stem for p in directory.glob("*.yaml") if p.stem != "base")
    if scale not in scales:
        raise UserError(f"scale: {scale!r} is not known; {suggest(str(scale), scales)}")
    if str(data.get("study")).lower() in (*scales, "published"):
        raise UserError(
            f"study: {data['study']!r} is the name of a folder under results/ already (scales: "
            f"{', '.join(scales)}); choose another name"
        )
    merged = merge(base, read_yaml(directory / f"{scale}.yaml"))
    _check_entries(data, merged, directory)
    merged = merge(merged, _without_others(data, merged))
    for f in dataclasses.fields(Config):
        # If a field has `null` in its metadata, null entries of its mapping are left out.
        if f.metadata.get("null") and isinstance(merged.get(f.name), dict):
            merged[f.name] = {k: v for k, v in merged[f.name].items() if v is not None}
    return _checked(merged)


def _check_entries(data: Mapping[str, Any], lower: Mapping[str, Any], directory: Path) -> None:
    """Refuse a figure that no scale has, and that is null or incomplete: its name is misspelt.

    lower: the settings of the scale.
    """
    figures = data.get("figures")
    own = figures if isinstance(figures, Mapping) else {}
    added = [name for name in own if name not in {OTHERS, *lower.get("figures", {})}]
    files = directory.glob("*.yaml") if added else ()
    known = {name for file in files for name in read_yaml(file).get("figures", {})}
    for name in added:
        entry = own[name]
        complete = not isinstance(entry, Mapping) or {"methods", "envs"} <= entry.keys()
        if name not in known and (entry is None or not complete):
            need = "" if entry is None else ", so it must name `methods` and `envs`"
            near = suggest(str(name), sorted(known))
            raise UserError(f"figures.{name}: no scale has it{need}; {near}")


def _without_others(data: Mapping[str, Any], lower: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a user's settings with the `figures.others` entry written out.

    This entry is always null, and stands for all of the scale's figures that the user does not
    name.

    lower: the settings of the scale.
    """
    figures = data.get("figures")
    if not isinstance(figures, Mapping) or OTHERS not in figures:
        return data
    if figures[OTHERS] is not None:
        raise UserError(
            f"figures.{OTHERS}: must be null, and leaves out all figures that you do not name; "
            f"found {describe(figures[OTHERS])}"
        )
    return {**data, "figures": {**dict.fromkeys(lower.get("figures", {})), **figures}}


def _checked(data: Mapping[str, Any]) -> Config:
    config: Config = parse(Config, data)
    for name in config.imports:
        import_module(name)
    check(config)
    return config


def to_file(config: Config) -> str:
    """Return all settings of a config as text for a file that `load_file` can read."""
    return json.dumps(dataclasses.asdict(config), indent=1) + "\n"


def load_file(path: Path) -> Config:
    """Load the config from a file of complete settings, which is not merged with other settings.

    The file's name is the hash of the settings. Raise UserError if the name and the hash differ.
    """
    config = _checked(read_yaml(path))
    if config_hash(config) != path.stem:
        raise UserError(
            f"settings {path}: the content has hash {config_hash(config)}, so the file was changed "
            f"or damaged; remove it, and the workflow writes it again"
        )
    return config


def import_module(name: str) -> None:
    """Import a user's module. The module may register tasks."""
    try:
        importlib.import_module(name)
    except Exception as error:  # the module's code may raise anything
        lacks = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
        fix = "put it where Python finds it, e.g. in this folder" if lacks else "fix it"
        raise UserError(f"imports: {name!r} can't be imported ({fault(error)}); {fix}") from None
