"""IQ-Learn: its loss compared with plain loops, its gradients, and the rewards that it implies."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from baselines.iq import IqLearn
from ngt.agent.optim import descend
from ngt.errors import UserError
from ngt.reward import Spec

GAMMA, CHI2 = 0.9, 0.4


def plain(agent, expert, objective: str, critic: int) -> float:
    """Return one critic's loss, computed from the agent's and the expert's rows."""
    both = agent + expert
    if objective == "value":
        policy = np.mean([row.v - row.after for row in both])
    elif objective == "value_expert":
        policy = np.mean([row.v - row.after for row in expert])
    else:
        policy = (1.0 - GAMMA) * np.mean([row.v for row in expert])
    gain = np.mean([row.q[critic] - row.after for row in expert])
    square = np.mean([(row.q[critic] - row.after) ** 2 for row in both])
    return float(policy - gain + square / (4.0 * CHI2))


@pytest.mark.parametrize("objective", ["value", "value_expert", "v0"])
@pytest.mark.parametrize(("critics", "target"), [(1, True), (2, True), (2, False)])
def test_the_loss_equals_plain_loops(case, objective: str, critics: int, target: bool) -> None:
    made = case(IqLearn, critics, target, objective=objective, chi2=CHI2, target=target)
    loss = made.loss
    assert loss.shape == (2,) and loss.requires_grad
    for run in (0, 1):
        sides = made.sides(run)
        expected = np.mean([plain(*sides, objective, k) for k in range(critics)])
        assert float(loss[run].detach()) == pytest.approx(expected, rel=1e-10)
        implied = [np.mean(row.q) - row.after for row in sides[1]]
        assert float(made.model.metrics["reward_expert"][run]) == pytest.approx(np.mean(implied))


def test_only_the_critic_has_a_gradient(case) -> None:
    """Check that the actor, the temperature and the target nets get no gradient."""
    made = case(IqLearn)
    made.loss.sum().backward()
    moved = {n.split(".")[0] for n, p in made.agent.named_parameters() if p.grad is not None}
    assert moved == {"critic"}


@pytest.mark.parametrize(("target", "more"), [(True, False), (False, True)])
def test_the_critics_own_value_of_the_next_state_has_a_gradient(
    case, target: bool, more: bool
) -> None:
    """Check that next states give the critic no gradient if the target net evaluates them."""
    made = case(IqLearn, target=target)
    values = made.model.values(made.agent, made.batch, made.noise, target)
    assert values.after.requires_grad == more


def test_it_raises_the_implied_reward_of_the_expert(case) -> None:
    """Check that training raises the expert's implied reward above the agent's.

    At the optimum these rewards are 4 chi2 (expert) and -4 chi2 (agent).
    """
    made = case(IqLearn, chi2=0.5, objective="value_expert")
    before = {}
    for step in range(200):
        loss = made.loss
        if step == 0:
            before = {name: x.clone() for name, x in made.model.metrics.items()}
            first = loss.detach()
        descend(made.agent.optimisers["critic"], loss)
    after = made.model.metrics
    assert (made.loss < first).all()
    gap = after["reward_expert"] - after["reward_agent"]
    assert (gap > before["reward_expert"] - before["reward_agent"]).all()
    assert (after["reward_expert"] > 0.0).all()


def test_a_batch_must_have_two_sides() -> None:
    with pytest.raises(UserError, match=r"train\.batch: found 1"):
        IqLearn(IqLearn.Config(), Spec(3, 1, "state-action", 1, [0], 9, 4, 0.9))


def test_the_batch_is_half_the_agents_and_half_the_experts(case, make_batch) -> None:
    model = case(IqLearn).model
    agent, expert = (make_batch(2, 5, 3, 1, seed=seed) for seed in (0, 1))
    fed = model.feed(agent, expert)
    for mixed, a, e in zip(fed, agent, expert, strict=True):
        assert torch.equal(mixed, torch.cat([a[:, :2], e[:, :3]], dim=1))
