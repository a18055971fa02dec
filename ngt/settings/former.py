"""Former values: the values that settings have in records that are older than these settings.

A record is a file that states the settings of a run or an expert, such as run.json. If a setting is
added, or its default changes meaning, add its former value to FORMER. A record that lacks the
setting is then read with this value. Hashes of settings leave out every setting that has its former
value. The hashes of shipped experts, demonstrations and published runs therefore do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _alpha_loss(sac: Mapping[str, Any]) -> str:
    return "alpha" if sac.get("alpha_form") == "softplus" else "log_alpha"


# Dataclass -> setting -> former value, or a function that computes the former value from the
# dataclass's other settings in a record.
FORMER: dict[str, dict[str, Any]] = {
    "ngt.settings.config:SacConfig": {
        "alpha_loss": _alpha_loss,
        "entropy_units": "tanh",
        "critics": 2,
    },
    "ngt.potential:PotentialConfig": {"power_iterations": 1, "penalty": 0.0},
    "baselines.adversarial:AdversarialConfig": {"spectral_norm": False},
    "baselines.dac:DacConfig": {"logit_clip": 10.0},
    "baselines.pwil:PwilConfig": {"prefill": 0},
}


def former(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the former values of a dataclass's settings in FORMER, given its other settings."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= FORMER.get(f"{base.__module__}:{base.__qualname__}", {})
    return {name: value(data) if callable(value) else value for name, value in found.items()}


def with_former(cls: type, data: Any) -> Any:
    """Return a dataclass's settings from a record; missing settings get their former values."""
    return {**former(cls, data), **data} if isinstance(data, Mapping) else data


def without_former(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dataclass's settings without those that have their former values."""
    known = former(cls, data)
    return {n: v for n, v in data.items() if n not in known or v != known[n]}
