"""The interface that a method implements to be trained.

Each method, such as NGT, is a subclass of RewardModel. A method defines the functions `loss` and
`reward`, or overrides some of these functions:

- `observe`, if the reward is known at the env step and stored in the buffer
- `fit`, if the method trains without stepping an env
- `feed`, if the agent also learns from transitions other than its own
- `critic_loss`, if the method defines the critic's loss directly, without a reward
- `prefill`, if the replay buffer must contain transitions before the first env step

The trainer, the agent and the buffer are the same for all methods.

NGT computes and scales its reward in ngt/potential.py. The other methods are in baselines/. A
method's file imports what it needs from this module:
`from ngt.reward import Batch, Draw, RewardModel, Spec, opt`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ngt.agent.optim import adam, descend
from ngt.agent.sac import Sac
from ngt.agent.streams import Draw
from ngt.errors import UserError
from ngt.experience.replay import Batch
from ngt.settings.config import Mode
from ngt.settings.schema import opt

if TYPE_CHECKING:
    from ngt.experience.demos import DemoSet

__all__ = [
    "Batch",
    "Constant",
    "Draw",
    "EnvReward",
    "NoParams",
    "RewardModel",
    "Spec",
    "checked",
    "half_each",
    "opt",
    "resized",
]


class Spec(NamedTuple):
    """The sizes and settings for building the model of a pack, i.e. R runs trained together."""

    obs: int
    act: int
    mode: Mode
    batch: int  # number of agent transitions per update, and of expert transitions
    seeds: Sequence[int]  # one seed per run
    time_limit: int  # maximum number of steps in an episode
    num_envs: int  # number of envs that each run steps in parallel
    gamma: float  # the agent's discount
    demos: DemoSet | None = None  # all demonstrations, if any, with unnormalised observations

    @property
    def input(self) -> int:
        """Return the number of columns of the model's input."""
        further = {"state-action": self.act, "state-state": self.obs, "state-only": 0}
        return self.obs + further[self.mode]


def checked(value: Any, like: Tensor, name: str, grad: bool = True) -> Tensor:
    """Return the result `value` of a method's function after checking its type and shape.

    Raise UserError if the result is wrong.

    like: a tensor with the shape and dtype that the result must have.
    name: the function's name in the error message.
    grad: True if the result may have a gradient.
    """
    found, fix = "", ""
    if not isinstance(value, Tensor):
        found = f"{type(value).__name__}"
    elif value.shape != like.shape:
        found, fix = f"shape {tuple(value.shape)}", "; the first dimension indexes the pack's runs"
    elif value.dtype != like.dtype:
        found = str(value.dtype)
    elif value.requires_grad and not grad:
        found, fix = "a tensor with a gradient", "; decorate the method with @torch.no_grad()"
    if not found:
        return value
    raise UserError(
        f"{name}(): found {found}, expected a tensor of shape {tuple(like.shape)}, {like.dtype}"
        f"{'' if grad else ', without gradient'}{fix}"
    )


def half_each(agent: Batch, expert: Batch) -> Batch:
    """Return a batch (R, B, ·): B // 2 rows of the agent's batch, then B - B // 2 expert rows."""
    rows = agent.obs.shape[1]
    own = rows // 2
    sides = zip(agent, expert, strict=True)
    return Batch(*(torch.cat([a[:, :own], e[:, : rows - own]], dim=1) for a, e in sides))


def resized(tensor: Tensor, width: int) -> Tensor:
    """Cut zeros from a tensor's last dimension, or append zeros, so that its size becomes `width`.

    If this would cut other values than zeros, return the tensor as it is.
    """
    if tensor[..., width:].any():
        return tensor
    return F.pad(tensor, (0, width - tensor.shape[-1]))  # cuts if the number is negative


class RewardModel(nn.Module):
    """The reward model of R runs. A subclass sets `Config`, and is constructed with (config, spec).

    metrics: the values to log from the last call of `update` or `reward`, each of shape (R,). The
    keys are names of columns in train.csv.
    """

    Config: ClassVar[type]
    offline: ClassVar[bool] = False  # True if the class overrides `fit` and needs no env
    learns: ClassVar[bool] = True  # False if there is nothing to learn: `update` is never called
    # True if the model may read the env's own reward from batch.reward. If False, batch.reward is
    # hidden, unless the model overrides `observe`. In this case, batch.reward holds the rewards
    # that `observe` returned.
    uses_env_reward: ClassVar[bool] = False
    # Names of the buffers whose last dimension is padded with zeros, because the pack's runs have
    # different numbers of demonstrations. If a run resumes in another pack, its padding is resized.
    padded: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Any, spec: Spec) -> None:
        super().__init__()
        self.config, self.spec = config, spec
        self.metrics: dict[str, Tensor] = {}
        self.noise: Mapping[str, Tensor] = {}  # the iteration's random tensors, set by the trainer

    def draws(self) -> dict[str, Draw]:
        """Return the kinds and shapes of the random tensors that a run needs per iteration."""
        return {}

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return the loss that `update` minimises, with one value per run, shape (R,)."""
        raise self._lacks("loss", "or set learns = False if there is nothing to learn")

    def reward(self, batch: Batch) -> Tensor:
        """Return each transition's reward, (R, B), without gradient; high means expert-like."""
        raise self._lacks("reward", "or override `fit` and set offline = True")

    def score(self, batch: Batch) -> Tensor:
        """Return each transition's score, (R, B), for the logged AUC of expert and agent batches.

        Override this function if a transition's reward depends on the rest of its batch. A
        transition's score must not depend on its batch, and its reward must rise with its score.
        """
        return self.reward(batch)

    def update(self, agent: Batch, expert: Batch) -> None:
        """Take one step of the model's `optimiser` to lower the loss on these batches."""
        like = agent.terminated[:, 0]
        loss = checked(self.loss(agent, expert), like, f"{type(self).__name__}.loss")
        descend(self.optimiser, loss)
        self.metrics["reward_loss"] = loss.detach()

    def learn_with(self, lr: float) -> None:
        """Create the optimiser that `update` uses. Call this function after building the nets."""
        self.optimiser = adam([p for p in self.parameters() if p.requires_grad], lr)

    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        """Return the rewards to store with the n envs' latest transitions, shape (R, n).

        By default, these are the env's own rewards, which serve only for diagnostics.

        done: (R, n), True if the step ended the episode, by termination or truncation.
        """
        return transition.reward

    @property
    def stores(self) -> bool:
        """Return True if the buffer stores the model's rewards, i.e. if `observe` is overridden."""
        return type(self).observe is not RewardModel.observe

    def feed(self, agent: Batch, expert: Batch) -> Batch:
        """Return the batch that the agent learns from. It has as many rows as each given batch.

        By default, this is the agent's own batch. The trainer passes the result to `reward` or
        `critic_loss`.

        agent, expert: transitions drawn from the buffer and the demonstrations, (R, B, ·).
        """
        return agent

    @property
    def feeds(self) -> bool:
        """Return True if the model supplies the agent's batch, i.e. if `feed` is overridden."""
        return type(self).feed is not RewardModel.feed

    def critic_loss(self, agent: Sac, batch: Batch, noise: Tensor) -> Tensor:
        """Return the loss of the agent's critic, shape (R,).

        If a model overrides this function, its `reward` is never called. This loss updates the
        critic and, if the model has an `optimiser`, also the model's parameters. The loss's
        gradients with respect to the actor are not used.

        batch: the result of `feed`.
        noise: standard normal numbers (R, B, act) with which actions at batch.next_obs are sampled.
        """
        raise self._lacks("critic_loss", "or define `reward`")

    @property
    def implicit(self) -> bool:
        """Return True if the model overrides `critic_loss` and therefore has no reward."""
        return type(self).critic_loss is not RewardModel.critic_loss

    @classmethod
    def prefilled(cls, config: Any) -> int:
        """Return the number of transitions per run that `prefill` should make.

        `prefill` rounds this number up to whole vector steps, i.e. steps of all envs of a run.
        """
        return 0

    def prefill(self) -> Batch | None:
        """Return transitions (R, P, ·) to store in the buffer before the first step, or None.

        The transitions form whole vector steps: first one transition of every env, then the next
        transition of every env, and so on. Each transition starts where the same env's previous
        transition ended. `next_obs` is therefore used only for the last transition of each env.
        """
        return None

    def fit(self, agent: Sac, expert: Batch) -> None:
        """Take one training step of an offline method with the agent's actor and optimiser."""
        raise self._lacks("fit", "or set offline = False")

    def _lacks(self, name: str, otherwise: str) -> UserError:
        return UserError(f"{type(self).__name__} has no method {name!r}; write it, {otherwise}")

    def inputs(self, batch: Batch) -> Tensor:
        """Return the columns of a batch that the input mode selects, shape (R, B, input)."""
        if self.spec.mode == "state-action":
            return torch.cat([batch.obs, batch.action], dim=-1)
        if self.spec.mode == "state-state":
            return torch.cat([batch.obs, batch.next_obs], dim=-1)
        return batch.obs


@dataclass(frozen=True)
class NoParams:
    """The settings class of a model without settings."""


class EnvReward(RewardModel):
    """The env's own reward, on which experts are trained."""

    Config = NoParams
    learns = False
    uses_env_reward = True

    def reward(self, batch: Batch) -> Tensor:
        return batch.reward


class Constant(RewardModel):
    """A constant reward, as a control experiment that shows the return that survival alone earns.

        reward = 1

    Reward: 1 for every transition. The reward does not measure expert-likeness, and nothing is
    learned.
    Range: 1.
    Deviations: none.
    Sources: Kostrikov et al., "Discriminator-Actor-Critic", ICLR 2019, on the survival bonus.
    """

    Config = NoParams
    learns = False

    def reward(self, batch: Batch) -> Tensor:
        return torch.ones_like(batch.terminated)
