"""The first setting that differs between a result and the config, for messages."""

import json
from collections.abc import Mapping
from typing import Any


def flat(settings: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Flatten nested settings into a mapping from dotted names to values."""
    out: dict[str, Any] = {}
    for name, value in settings.items():
        out |= flat(value, f"{where}{name}.") if isinstance(value, dict) else {where + name: value}
    return out


def difference(made: Mapping[str, Any], wanted: Mapping[str, Any], place: str) -> str:
    """Describe the first setting that differs between a result and the config, or return "".

    The `demos_source` setting is compared last. It is a hash, so its difference tells a reader
    little.

    made: the result's settings.
    wanted: the settings that the config gives the result.
    place: what holds the result's settings, such as "the records".
    """
    theirs, ours = flat(made), flat(wanted)
    for name in sorted(ours | theirs, key=lambda name: name == "demos_source"):
        there, here = (
            json.dumps(side[name]) if name in side else "not set" for side in (theirs, ours)
        )
        if there != here:
            return f"{name} is {there} in {place} and {here} in the config"
    return ""
