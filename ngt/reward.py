"""The interface that a method implements to be trained.

A method such as NGT is a RewardModel. It defines the functions `loss` and `reward`, or overrides
some of the following functions:

- `observe`, if the reward is known when the step is taken
- `fit`, if no env is stepped
- `feed`, if the agent learns from other transitions than its own
- `critic_loss`, if the critic learns from the method's own loss instead of a reward
- `prefill`, if the buffer does not start empty

The trainer, the agent and the buffer do not know which method is trained.

NGT computes and scales its reward in ngt/potential.py. The other methods are in baselines/.
A method's file imports from this module:
`from ngt.reward import Batch, Draw, RewardModel, Spec, opt`.
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
]


class Spec(NamedTuple):
    """Sizes and settings of the pack, i.e. the R runs, that a model is built for."""

    obs: int
    act: int
    mode: Mode
    batch: int  # number of agent transitions per update, and of expert transitions
    seeds: Sequence[int]  # one seed per run
    time_limit: int  # maximum number of steps in an episode
    num_envs: int  # number of envs that each run steps in parallel
    gamma: float  # the agent's discount
    demos: DemoSet | None = None  # all demonstrations, not normalised; None if there are none

    @property
    def input(self) -> int:
        """Return the width of the model's input."""
        further = {"state-action": self.act, "state-state": self.obs, "state-only": 0}
        return self.obs + further[self.mode]


def checked(value: Any, like: Tensor, name: str, grad: bool = True) -> Tensor:
    """Return a method's result. Raise UserError unless its shape and type match `like`.

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


class RewardModel(nn.Module):
    """The reward of R runs. Subclasses set `Config` and are constructed with (config, spec).

    metrics: values for train.csv by name, each (R,), from the last call of `update` or `reward`.
    """

    Config: ClassVar[type]
    offline: ClassVar[bool] = False  # True if the class overrides `fit`, so that no env is stepped
    learns: ClassVar[bool] = True  # False if `update` has nothing to do and need not be called
    # True if the model may read the env's own reward. Otherwise batch.reward is hidden, except that
    # a model with its own `observe` sees the rewards that `observe` returned.
    uses_env_reward: ClassVar[bool] = False

    def __init__(self, config: Any, spec: Spec) -> None:
        super().__init__()
        self.config, self.spec = config, spec
        self.metrics: dict[str, Tensor] = {}
        self.noise: Mapping[str, Tensor] = {}  # this iteration's draws, set by the trainer

    def draws(self) -> dict[str, Draw]:
        """Return kind and shape of the random tensors that a run needs per iteration, by name."""
        return {}

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return the loss that `update` descends, one value per run, shape (R,)."""
        raise self._lacks("loss", "or set learns = False if there is nothing to learn")

    def reward(self, batch: Batch) -> Tensor:
        """Return the reward of each transition, (R, B), without gradient; high is expert-like."""
        raise self._lacks("reward", "or override `fit` and set offline = True")

    def score(self, batch: Batch) -> Tensor:
        """Return the score by which the logged AUC compares expert and agent batches, shape (R, B).

        Override this method if a transition's reward depends on the rest of its batch. A
        transition's score must not depend on the batch, and its reward must rise with its score.
        """
        return self.reward(batch)

    def update(self, agent: Batch, expert: Batch) -> None:
        """Take one step of `optimiser` down the loss of these batches."""
        like = agent.terminated[:, 0]
        loss = checked(self.loss(agent, expert), like, f"{type(self).__name__}.loss")
        descend(self.optimiser, loss)
        self.metrics["reward_loss"] = loss.detach()

    def learn_with(self, lr: float) -> None:
        """Create the optimiser that `update` uses. Call this after building the nets."""
        self.optimiser = adam([p for p in self.parameters() if p.requires_grad], lr)

    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        """Return the rewards to store with the transitions just taken, shape (R, n) for n envs.

        The default stores the env's own reward, which serves for diagnostics only. `done` (R, n) is
        True if the step ended the episode, by termination or truncation.
        """
        return transition.reward

    @property
    def stores(self) -> bool:
        """Return True if the buffer stores the model's rewards, i.e. if `observe` is overridden."""
        return type(self).observe is not RewardModel.observe

    def feed(self, agent: Batch, expert: Batch) -> Batch:
        """Return the batch that the agent learns from, with as many rows as each given batch.

        The default is the agent's own batch. The result is then passed to `reward` or
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

        In a model that overrides this method, `reward` is never called. The critic takes a step
        down this loss, and so does the model's `optimiser`, if it has one. The loss's gradients
        with respect to the actor are not used.

        batch: the result of `feed`.
        noise: standard normal, (R, B, act), for actions at batch.next_obs.
        """
        raise self._lacks("critic_loss", "or define `reward`")

    @property
    def implicit(self) -> bool:
        """Return True if the model supplies the critic's loss, so that there is no reward."""
        return type(self).critic_loss is not RewardModel.critic_loss

    @classmethod
    def prefilled(cls, config: Any) -> int:
        """Return how many transitions `prefill` is to make, before rounding up to vector steps."""
        return 0

    def prefill(self) -> Batch | None:
        """Return transitions (R, P, ·) to store in the buffer before the first step, or None.

        They form whole vector steps, i.e. one transition of every env, then the next of every env,
        and so on. A transition leads to the next one of the same env, so its `next_obs` is used
        only if it is the env's last.
        """
        return None

    def fit(self, agent: Sac, expert: Batch) -> None:
        """Take one step of an offline method on the agent's actor, using the agent's optimiser."""
        raise self._lacks("fit", "or set offline = False")

    def _lacks(self, name: str, otherwise: str) -> UserError:
        return UserError(f"{type(self).__name__} has no method {name!r}; write it, {otherwise}")

    def inputs(self, batch: Batch) -> Tensor:
        """Return the model's input for a batch, chosen by the input mode, shape (R, B, input)."""
        if self.spec.mode == "state-action":
            return torch.cat([batch.obs, batch.action], dim=-1)
        if self.spec.mode == "state-state":
            return torch.cat([batch.obs, batch.next_obs], dim=-1)
        return batch.obs


@dataclass(frozen=True)
class NoParams:
    """The settings of a model that has none."""


class EnvReward(RewardModel):
    """The env's own reward, on which experts are trained."""

    Config = NoParams
    learns = False
    uses_env_reward = True

    def reward(self, batch: Batch) -> Tensor:
        return batch.reward


class Constant(RewardModel):
    """A constant reward. It serves as a control that shows what survival alone earns.

        reward = 1

    Reward: 1 for every transition. It does not measure expert-likeness, and nothing is learned.
    Range: 1.
    Deviations: none.
    Sources: Kostrikov et al., "Discriminator-Actor-Critic", ICLR 2019, on the survival bonus.
    """

    Config = NoParams
    learns = False

    def reward(self, batch: Batch) -> Tensor:
        return torch.ones_like(batch.terminated)
