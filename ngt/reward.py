"""The seam: what a method is to the trainer.

A method is a RewardModel. It gives `loss` and `reward`, or overrides exactly one other seam:
`observe` (the reward is known when the step is taken) or `fit` (no env at all). The trainer, the
agent and the buffer hold no branch on a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ngt.agent.optim import adam, descend
from ngt.agent.sac import Sac
from ngt.errors import UserError
from ngt.experience.replay import Batch
from ngt.seeding import Draw
from ngt.settings.config import Mode

if TYPE_CHECKING:
    from ngt.experience.demos import DemoSet


class Spec(NamedTuple):
    """What a model is built for: one pack."""

    obs: int
    act: int
    mode: Mode
    batch: int  # transitions per update, from the agent and from the demonstrations
    seeds: Sequence[int]  # one a run, the run's own
    time_limit: int  # of the env, in steps
    num_envs: int  # that a run steps side by side
    gamma: float  # the agent's discount
    demos: DemoSet | None = None  # all that is known of the expert, raw; None where none is used

    @property
    def input(self) -> int:
        """Width of the reward model's input."""
        return (
            self.obs
            + {"state-action": self.act, "state-state": self.obs, "state-only": 0}[self.mode]
        )


def checked(value: Any, like: Tensor, name: str, grad: bool = True) -> Tensor:
    """What a method returned, if it has the shape and type of `like`: a UserError if not.

    grad: whether it may have a gradient.
    """
    found, fix = "", ""
    if not isinstance(value, Tensor):
        found = f"{type(value).__name__}"
    elif value.shape != like.shape:
        found, fix = f"shape {tuple(value.shape)}", "; the first dimension is the pack's runs"
    elif value.dtype != like.dtype:
        found = str(value.dtype)
    elif value.requires_grad and not grad:
        found, fix = "one with a gradient", "; decorate it with @torch.no_grad()"
    if not found:
        return value
    raise UserError(
        f"{name}(): found {found}, expected a tensor of shape {tuple(like.shape)}, {like.dtype}"
        f"{'' if grad else ', without gradient'}{fix}"
    )


class RewardModel(nn.Module):
    """A learned reward of R runs. Subclasses set `Config`, build from (config, spec).

    metrics: values (R,) that the last update or reward left for train.csv, by name.
    """

    Config: ClassVar[type]
    offline: ClassVar[bool] = False  # True: `fit` is overridden, and no env is stepped
    learns: ClassVar[bool] = True  # False: nothing to update, no demonstrations drawn

    def __init__(self, config: Any, spec: Spec) -> None:
        super().__init__()
        self.config, self.spec = config, spec
        self.metrics: dict[str, Tensor] = {}
        self.noise: Mapping[str, Tensor] = {}  # the iteration's draws, set by the trainer

    def draws(self) -> dict[str, Draw]:
        """Random tensors that an update or a reward consumes, per run."""
        return {}

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """What `update` descends, (R,)."""
        raise self._lacks("loss", "set learns = False where there is nothing to learn")

    def reward(self, batch: Batch) -> Tensor:
        """Reward of each transition, (R, B), without gradient: high is expert-like."""
        raise self._lacks("reward", "or override `fit` and set offline = True")

    def score(self, batch: Batch) -> Tensor:
        """The reward, or what it is a rising function of, apart from the rest of the batch.

        The logged AUC compares an expert batch with an agent batch by it, (R, B).
        """
        return self.reward(batch)

    def update(self, agent: Batch, expert: Batch) -> None:
        """One step on the loss, where the model has parameters to learn."""
        loss = checked(self.loss(agent, expert), agent.reward[:, 0], f"{type(self).__name__}.loss")
        descend(self.optimiser, loss)
        self.metrics["reward_loss"] = loss.detach()

    def learn_with(self, lr: float) -> None:
        """Make the optimiser of `update`; call it when the nets are built."""
        self.optimiser = adam([p for p in self.parameters() if p.requires_grad], lr)

    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        """The reward to store with transitions just taken, (R, n); the env's own by default.

        done (R, n): whether the episode ended with this step, terminated or truncated.
        """
        return transition.reward

    def fit(self, agent: Sac, expert: Batch) -> None:
        """One gradient step of an offline method on the agent's actor, by the agent's optimiser."""
        raise self._lacks("fit", "or set offline = False")

    def _lacks(self, name: str, otherwise: str) -> UserError:
        return UserError(f"{type(self).__name__} has no method {name!r}; write it, {otherwise}")

    def inputs(self, batch: Batch) -> Tensor:
        """What the model sees of a batch by input mode, (R, B, input)."""
        if self.spec.mode == "state-action":
            return torch.cat([batch.obs, batch.action], dim=-1)
        if self.spec.mode == "state-state":
            return torch.cat([batch.obs, batch.next_obs], dim=-1)
        return batch.obs


@dataclass(frozen=True)
class NoParams:
    """A model without settings."""


class EnvReward(RewardModel):
    """The env's own reward: how experts are trained."""

    Config = NoParams
    learns = False

    def reward(self, batch: Batch) -> Tensor:
        return batch.reward


class Constant(RewardModel):
    """A constant reward: the control that shows what survival alone earns.

        reward = 1

    Reward: 1, whatever happens: nothing is expert-like, and nothing is learned.
    Range: 1.
    Deviations: none.
    Sources: Kostrikov et al., "Discriminator-Actor-Critic", ICLR 2019, on the survival bonus.
    """

    Config = NoParams
    learns = False

    def reward(self, batch: Batch) -> Tensor:
        return torch.ones_like(batch.reward)
