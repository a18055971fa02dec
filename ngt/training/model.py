"""The reward model of a pack: build it, call it, and check what it has and returns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from ngt.errors import UserError
from ngt.experience.demos import DemoSet
from ngt.experience.envs import get_task
from ngt.experience.replay import Batch, hide
from ngt.reward import RewardModel, Spec, checked
from ngt.settings.config import CellConfig
from ngt.settings.resolve import load_model
from ngt.settings.schema import parse

# The columns of train.csv that the suite itself writes, besides the metrics of an update.
COLUMNS = ("step", "update", "auc", "rank_correlation", "train_return", "train_episodes")


def build_model(
    cell: CellConfig, seeds: Sequence[int], demos: DemoSet | None = None
) -> RewardModel:
    """Build the reward model that `cell` names, for runs with these seeds and demonstrations."""
    task = get_task(cell.env)
    cls = load_model(cell.model, f"methods.{cell.method}.model")
    config = parse(cls.Config, cell.params, f"methods.{cell.method}.params")
    spec = Spec(
        task.obs,
        task.act,
        cell.mode,
        cell.train.batch,
        seeds,
        task.time_limit,
        cell.train.num_envs,
        cell.sac.gamma,
        demos if demos is None or cls.uses_env_reward else demos.hidden(),
    )
    model: RewardModel = cls(config, spec)
    check_packed(model, len(seeds))
    return model


def rewards(model: RewardModel, seam: Literal["reward", "score"], batch: Batch) -> Tensor:
    """Call a model's `reward` or `score`, as named by `seam`, and check the result."""
    name = f"{type(model).__name__}.{seam}"
    return checked(getattr(model, seam)(batch), batch.terminated, name, grad=False)


def shown(model: RewardModel, batch: Batch) -> Batch:
    """Hide the env's reward in a batch, unless the model uses this reward."""
    return batch if model.uses_env_reward else hide(batch)


def drawn(model: RewardModel, batch: Batch) -> Batch:
    """Hide the rewards of a batch drawn from the buffer, unless the model set or may read them."""
    return batch if model.stores else shown(model, batch)


def optimisers(model: RewardModel) -> dict[str, Optimizer]:
    """Return the optimisers among a model's attributes, by attribute name."""
    return {name: value for name, value in vars(model).items() if isinstance(value, Optimizer)}


def check_metric(
    model: RewardModel, name: str, value: Any, runs: int, taken: Collection[str] = ()
) -> None:
    """Check one of the metrics of R runs that a model logs, and its name.

    taken: the names of the suite's own metrics in the same update.
    """
    where = f"{type(model).__name__}.metrics[{name!r}]"
    if name in COLUMNS or name in taken:
        raise UserError(
            f"{where}: the suite itself logs {name!r} in train.csv; choose another name"
        )
    right = isinstance(value, Tensor) and value.shape == (runs,) and not value.requires_grad
    if not right:
        found = (
            f"a tensor of shape {tuple(value.shape)}{' with a gradient' * value.requires_grad}"
            if isinstance(value, Tensor)
            else type(value).__name__
        )
        raise UserError(f"{where}: found {found}, expected a detached tensor of shape ({runs},)")


def fed(model: RewardModel, agent: Batch, expert: Batch) -> Batch:
    """Return the batch from a model's `feed`, and check its number of rows."""
    batch = model.feed(agent, expert)
    if batch.obs.shape != agent.obs.shape:
        raise UserError(
            f"{type(model).__name__}.feed(): found observations of shape "
            f"{tuple(batch.obs.shape)}, expected {tuple(agent.obs.shape)}: as many rows as given"
        )
    return batch


def check_packed(model: RewardModel, runs: int) -> None:
    """Check that a model's tensors and optimisers can be trained and saved for R runs.

    Raise UserError otherwise, since a checkpoint holds one slice of each tensor per run.
    """
    for name, tensor in model.state_dict().items():
        if tensor.shape[:1] != (runs,):
            raise UserError(
                f"{type(model).__name__}.{name}: has shape {tuple(tensor.shape)}, but must have "
                f"one entry per run, ({runs}, ...); for a constant, use "
                f"register_buffer(..., persistent=False)"
            )
    inherits = model.learns and type(model).update is RewardModel.update
    if inherits and not (model.offline or "optimiser" in vars(model)):
        raise UserError(
            f"{type(model).__name__}: has no optimiser; call self.learn_with(lr) at the end of "
            f"__init__, or set learns = False"
        )
    for name, optimiser in optimisers(model).items():
        group = optimiser.param_groups[0]
        plain = type(optimiser) is torch.optim.Adam and len(optimiser.param_groups) == 1
        if not plain or group["amsgrad"] or group.get("decoupled_weight_decay"):
            raise UserError(
                f"{type(model).__name__}.{name}: found {type(optimiser).__name__}, but only Adam "
                f"with one parameter group and without amsgrad can be trained per run; use "
                f"`learn_with(lr)` or ngt.agent.optim.adam"
            )
