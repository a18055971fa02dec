"""SQIL: the batch fed to the agent, and the critic's loss compared with plain loops."""

from __future__ import annotations

import pytest
import torch

from baselines.sqil import Sqil
from ngt.agent import sac
from ngt.agent.sac import Sac, squashed_gaussian
from ngt.experience.replay import hide
from ngt.reward import NoParams, Spec
from ngt.settings.config import SacConfig

OBS, ACT, ROWS = 3, 2, 6


@pytest.fixture
def model() -> Sqil:
    return Sqil(NoParams(), Spec(OBS, ACT, "state-action", ROWS, [1, 2], 9, 4, 0.9))


def test_half_is_the_experts_and_worth_one(model: Sqil, make_batch) -> None:
    """Check the batch fed to the agent, and its rewards; the env's own rewards are hidden."""
    agent, expert = (make_batch(2, ROWS, OBS, ACT, seed=seed) for seed in (0, 1))
    fed = model.feed(hide(agent), hide(expert))
    assert torch.equal(fed.obs, torch.cat([agent.obs[:, :3], expert.obs[:, :3]], dim=1))
    assert torch.equal(fed.action[:, 3:], expert.action[:, :3])
    assert model.reward(fed).tolist() == [[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]] * 2


def test_an_odd_row_is_the_experts(model: Sqil, make_batch) -> None:
    fed = model.feed(*(make_batch(2, 5, OBS, ACT, seed=seed) for seed in (0, 1)))
    assert model.reward(fed).tolist() == [[0.0, 0.0, 1.0, 1.0, 1.0]] * 2


def test_the_critics_loss_equals_the_papers(float64: None, model: Sqil, make_batch) -> None:
    """Compare the loss with a quarter of each mean squared error, summed over critics and sides.

    The two sides are the agent's half and the expert's half of the batch.
    """
    agent = Sac(OBS, ACT, SacConfig(hidden=(5,)), [1, 2])
    fed = model.feed(*(make_batch(2, ROWS, OBS, ACT, seed=seed) for seed in (0, 1)))
    noise = torch.randn(2, ROWS, ACT, generator=torch.Generator().manual_seed(3))
    alpha = agent.temperature().detach()
    nets = (agent.critic, agent.target, agent.actor)
    loss = sac.critic_loss(*nets, alpha, fed, model.reward(fed), noise, 0.9)
    for run in (0, 1):
        total = 0.0
        for i in range(ROWS):
            action, log_prob = squashed_gaussian(*agent.actor(fed.next_obs), noise)
            value = (
                agent.target(fed.next_obs, action)[run, :, i].min() - alpha[run] * log_prob[run, i]
            )
            y = 0.9 * (1.0 - fed.terminated[run, i]) * value
            goal = (1.0 if i >= 3 else 0.0) + y
            for q in agent.critic(fed.obs, fed.action)[run, :, i]:
                total += 0.25 * float((q - goal) ** 2) / 3
        assert float(loss[run].detach()) == pytest.approx(total, rel=1e-10)
