"""P2IL: its loss compared with plain loops, and which nets it trains."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from baselines.p2il import P2il
from ngt.training.model import optimisers

CHI2, TAU = 0.4, 0.7


def rewards(model: P2il, run: int, side) -> list[float]:
    """Return the reward net's outputs for the rows `side` of one run, one row at a time."""
    found = []
    for row in side:
        x = row.x
        for depth, layer in enumerate(model.net.layers):
            x = x @ layer.weight.detach()[run].numpy() + layer.bias.detach()[run, 0].numpy()
            x = np.maximum(x, 0.0) if depth < len(model.net.layers) - 1 else x
        found.append(float(x[0]))
    return found


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("target", [False, True])
def test_the_loss_equals_plain_loops(case, online: bool, target: bool) -> None:
    made = case(P2il, 2, target, hidden=(5,), chi2=CHI2, tau=TAU, online=online, target=target)
    loss = made.loss.detach()
    for run in (0, 1):
        agent, expert = made.sides(run)
        r_agent, r_expert = rewards(made.model, run, agent), rewards(made.model, run, expert)
        side, r = (agent, r_agent) if online else (expert, r_expert)
        errors = [x + row.after - min(row.q) for row, x in zip(side, r, strict=True)]
        weights = [math.exp(TAU * e) for e in errors]
        logistic = sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
        policy = np.mean([row.v - row.after for row in expert])
        squares = [x**2 + min(row.q) ** 2 for row, x in zip(agent, r_agent, strict=True)]
        squares += [x**2 + min(row.q) ** 2 for row, x in zip(expert, r_expert, strict=True)]
        expected = logistic - np.mean(r_expert) + policy + np.mean(squares) / (4.0 * CHI2)
        assert float(loss[run]) == pytest.approx(expected, rel=1e-10)


def test_the_gradient_is_that_of_the_logistic_error(case) -> None:
    """Compare the loss's gradient with that of log-mean-exp(tau * errors) / tau.

    The latter weights the gradient of each error by a softmax over the errors.
    """
    made = case(P2il, 1, True, hidden=(5,), chi2=1e12, tau=TAU, target=True)
    loss = made.loss
    (ours,) = torch.autograd.grad(loss.sum(), [made.model.net.layers[0].weight])
    model, batch = made.model, made.batch
    values = model.values(made.agent, batch, made.noise)
    reward = model.net(torch.cat([batch.obs, batch.action], dim=-1)).squeeze(-1)
    error = values.sides(reward + 0.9 * values.after - values.q.min(dim=1).values)[1]
    logistic = torch.logsumexp(TAU * error, dim=1) / TAU - values.sides(reward)[1].mean(dim=1)
    (theirs,) = torch.autograd.grad(logistic.sum(), [model.net.layers[0].weight])
    assert torch.allclose(ours, theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(("tau", "used"), [(1e-12, False), (TAU, True)])
def test_the_next_states_teach_the_critic_only_through_unequal_weights(
    case, tau: float, used: bool
) -> None:
    """Check that equal weights leave no trace of s' in the critic's gradient.

    The critic then only learns to prefer the expert's actions, as in behavioural cloning.
    """
    made = case(P2il, 2, False, hidden=(5,), tau=tau)
    weights = [layer.weight for layer in made.agent.critic.net.layers]
    before = torch.autograd.grad(made.loss.sum(), weights)
    after = torch.autograd.grad(
        made._replace(batch=made.batch._replace(next_obs=-made.batch.next_obs)).loss.sum(), weights
    )
    same = [torch.allclose(b, a, rtol=1e-8) for b, a in zip(before, after, strict=True)]
    assert all(same) != used


def test_critic_and_reward_take_the_step_together(case) -> None:
    made = case(P2il, 2, False, hidden=(5,))
    before = [p.clone() for p in (*made.agent.parameters(), *made.model.parameters())]
    names = [n for n, _ in (*made.agent.named_parameters(), *made.model.named_parameters())]
    made.agent.descend_critic(made.loss, *optimisers(made.model).values())
    after = [*made.agent.parameters(), *made.model.parameters()]
    moved = {
        n.split(".")[0] for n, b, a in zip(names, before, after, strict=True) if (b != a).any()
    }
    assert moved == {"critic", "net"}
