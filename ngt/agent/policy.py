"""Policies and their safetensors files. A policy consists of an actor and a normaliser."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ngt.agent.nets import ObsNormaliser
from ngt.agent.sac import Actor, fill_rows
from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.files import atomic
from ngt.settings.config import SacConfig
from ngt.settings.schema import parse

# The settings needed to rebuild an actor. A setting in SOMETIMES is saved only if it differs from
# its default.
ALWAYS = ("hidden", "log_std_min", "log_std_max")
SOMETIMES = ("activation", "layer_norm")


class Policy(nn.Module):
    """The deterministic policy tanh(mean): obs (R, n, obs) -> actions (R, n, act) in [-1, 1]."""

    def __init__(self, actor: Actor, normaliser: ObsNormaliser | None) -> None:
        super().__init__()
        self.actor, self.normaliser = actor, normaliser

    @torch.no_grad()
    def forward(self, obs: Tensor) -> Tensor:
        mean = self.actor(fill_rows(self.normalise(obs)))[0]
        return torch.tanh(mean)[:, : obs.shape[1]]

    def normalise(self, obs: Tensor) -> Tensor:
        """Normalise observations if there is a normaliser; otherwise return them unchanged."""
        return obs if self.normaliser is None else self.normaliser(obs)

    def snapshot(self, run: int) -> dict[str, Tensor]:
        """Return a copy of one run's tensors, each with a first dimension of size 1."""
        return {
            name: tensor[run : run + 1].detach().cpu().clone()
            for name, tensor in self.state_dict().items()
        }


def save(path: Path, tensors: dict[str, Tensor], env: str, sac: SacConfig) -> None:
    """Write one run's policy atomically. The same policy always gives the same bytes."""
    from safetensors.torch import save as to_bytes

    settings = {
        name: value
        for name, value in asdict(sac).items()
        if name in ALWAYS or (name in SOMETIMES and value != getattr(SacConfig(), name))
    }
    # There is only one metadata key, since safetensors does not keep the order of several keys.
    meta = {"ngt": json.dumps({"format": 1, "env": env, "sac": settings})}
    with atomic(path) as temporary:
        temporary.write_bytes(to_bytes(tensors, metadata=meta))


def load(path: Path) -> tuple[Policy, str]:
    """Load a policy from a file; return the policy and the id of its env.

    If the file cannot be used, raise a UserError that names the file and the field.
    """
    from safetensors import SafetensorError, safe_open

    where = f"policy {path}"
    try:
        with safe_open(path, framework="pt") as file:
            meta: dict[str, Any] = json.loads((file.metadata() or {}).get("ngt", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise UserError(
            f"{where}: no such file; `ngt train RUN` or `ngt expert ENV` writes it"
        ) from None
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        text = " ".join(str(error).split())
        raise UserError(f"{where}: truncated, or not a safetensors file ({text})") from None
    if not isinstance(meta, dict) or meta.get("format") != 1:
        raise UserError(f"{where}: field 'format': expected 1; not a policy of this suite")
    broken = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"{where}: tensor {broken[0]!r} is not finite; the run diverged")
    try:
        task = get_task(str(meta.get("env")))
    except UserError as error:
        raise UserError(f"{where}: field 'env': {error}") from None
    sac = parse(SacConfig, meta.get("sac"), f"{where}: sac")
    normaliser = (
        ObsNormaliser(1, task.obs) if any(n.startswith("normaliser.") for n in tensors) else None
    )
    sizes = {size for tensor in tensors.values() for size in tensor.shape}
    if (
        len(sac.hidden) > len(tensors) or not set(sac.hidden) <= sizes
    ):  # checked before memory is allocated
        raise UserError(f"{where}: tensors do not fit {task.id}: no layers of {sac.hidden}")
    policy = Policy(Actor(task.obs, task.act, sac, [0]), normaliser)
    try:
        policy.load_state_dict(tensors)
    except RuntimeError as error:
        text = " ".join(str(error).split())
        raise UserError(f"{where}: tensors do not fit {task.id}: {text}") from None
    return policy, task.id
