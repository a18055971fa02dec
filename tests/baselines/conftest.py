"""Plain NumPy critics, one row at a time, for methods whose critic implies the reward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.agent.nets import PackedMLP
from ngt.agent.sac import Sac
from ngt.agent.streams import Streams
from ngt.experience.replay import Batch
from ngt.reward import RewardModel, Spec
from ngt.settings.config import SacConfig
from tests.draws import rows

OBS, ACT, ROWS = 4, 2, 6  # of the six rows, three are the agent's and three the expert's
GAMMA = 0.9

Array = NDArray[Any]


def passed(net: PackedMLP, lead: tuple[int, ...], x: Array) -> float | Array:
    """Return a ReLU net's outputs for one input x; `lead` selects the run, or the run and twin."""
    for depth, layer in enumerate(net.layers):
        x = x @ layer.weight.detach()[lead].numpy() + layer.bias.detach()[lead].numpy()[0]
        if depth < len(net.layers) - 1:
            x = np.maximum(x, 0.0)
    return x


class Row(NamedTuple):
    """The values that the NumPy critics give one transition."""

    q: list[float]  # one value per critic
    v: float
    after: float  # gamma V(s'), or 0 if s' is terminal
    end: bool
    x: Array  # obs and action


class Case(NamedTuple):
    """An agent and a model, with the batch fed to the agent and the noise for next actions."""

    agent: Sac
    model: RewardModel
    batch: Batch
    noise: Tensor
    target: bool

    @property
    def loss(self) -> Tensor:
        return self.model.critic_loss(self.agent, self.batch, self.noise)

    def _value(self, run: int, obs: Array, noise: Array, target: bool = False) -> float:
        out = passed(self.agent.actor.net, (run,), obs)
        assert not isinstance(out, float)
        mean, std = out[:ACT], np.exp(-5.0 + 3.5 * (np.tanh(out[ACT:]) + 1.0))
        u = mean + std * noise
        density = np.exp(-0.5 * noise**2) / (std * math.sqrt(2.0 * math.pi))
        log_prob = float(np.log(density / (1.0 - np.tanh(u) ** 2)).sum())
        alpha = float(self.agent.temperature().detach()[run])
        return min(self._q(run, np.concatenate([obs, np.tanh(u)]), target)) - alpha * log_prob

    def _q(self, run: int, x: Array, target: bool = False) -> list[float]:
        critic = self.agent.target if target else self.agent.critic
        leads = [(run,)] if critic.twins == 1 else [(run, 0), (run, 1)]
        return [float(passed(critic.net, lead, x)[0]) for lead in leads]  # type: ignore[index]

    def sides(self, run: int) -> tuple[list[Row], list[Row]]:
        """Return a run's agent rows and its expert rows."""
        own = self.model.noise["value_noise"][run].numpy()
        found = []
        for i in range(ROWS):
            obs, action, next_obs, _, end = (field[run, i].numpy() for field in self.batch)
            x = np.concatenate([obs, action])
            after = self._value(run, next_obs, self.noise[run, i].numpy(), self.target)
            after = 0.0 if end else GAMMA * after
            found.append(Row(self._q(run, x), self._value(run, obs, own[i]), after, bool(end), x))
        return found[: ROWS // 2], found[ROWS // 2 :]


@pytest.fixture
def case(float64: None, make_batch: Callable[..., Batch]) -> Callable[..., Case]:
    """Return make(cls, critics, targets, **params), which builds a `Case` of two float64 runs."""

    def make(cls: type[RewardModel], critics: int = 2, targets: bool = True, **params: Any) -> Case:
        config = SacConfig(hidden=(7, 5), critics=critics, alpha=0.3)
        agent = Sac(OBS, ACT, config, [1, 2])
        for i, p in enumerate(agent.parameters()):  # makes biases nonzero, targets unlike critics
            p.data += 0.1 * rows(*p.shape, seed=i)
        model = cls(cls.Config(**params), Spec(OBS, ACT, "state-action", ROWS, [1, 2], 9, 4, GAMMA))
        model.noise = Streams([1, 2], model.draws()).next()
        model.noise = {name: x.double() for name, x in model.noise.items()}
        sides = [make_batch(2, ROWS, OBS, ACT, seed=seed) for seed in (3, 4)]
        ends = torch.tensor([[0.0, 1.0, 0.0, 0.0, 1.0, 0.0]]).expand(2, ROWS)
        agents, experts = (side._replace(terminated=ends) for side in sides)
        batch = model.feed(agents, experts)
        return Case(agent, model, batch, rows(2, ROWS, ACT, seed=5).double(), targets)

    return make
