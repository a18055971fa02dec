"""SAC compared with plain loops, with saved results of two public codes and with SB3 itself.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import itertools
import math
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from ngt.agent import sac
from ngt.agent.sac import Actor, Critic, Sac, polyak_, squashed_gaussian
from ngt.agent.streams import Streams
from ngt.experience.replay import Batch
from ngt.settings.config import CellConfig, SacConfig
from ngt.training.learner import Learner, Member
from tests.draws import rows

OBS, ACT = 5, 2
SMALL = SacConfig(hidden=(12, 10), actor_grad_clip=1e9)
RELEASED = replace(
    SMALL,
    activation="silu",
    layer_norm=True,
    head_gain=1e-3,
    alpha_form="softplus",
    critic_grad_clip=1e9,
)


def agent_of(seeds, config: SacConfig = SMALL, alphas=None) -> Sac:
    agent = Sac(OBS, ACT, config, seeds)
    # Without this shift, biases would be zero and targets would equal the critics.
    for i, p in enumerate(agent.parameters()):
        if p is not agent.log_alpha:
            p.data += 0.1 * rows(*p.shape[1:], seed=i)
    if alphas is not None:
        alphas = torch.tensor(alphas)
        softplus = config.alpha_form == "softplus"
        agent.log_alpha.data.copy_(alphas.expm1().log() if softplus else alphas.log())
    return agent


def take_gradients(monkeypatch, by_hand: bool) -> None:
    """Make agents compute gradients by hand or by autograd, whatever their dtype."""
    monkeypatch.setattr(sac, "served", lambda *_: by_hand)
    other = ("critic_loss", "actor_loss") if by_hand else ("critic_gradients", "actor_gradients")
    for name in other:
        monkeypatch.delattr(sac, name)


BY_HAND = pytest.mark.parametrize("by_hand", [False, True], ids=["autograd", "by_hand"])


def noises(runs: int, size: int, seed: int = 0) -> dict[str, torch.Tensor]:
    names = Sac.draws(size, ACT)
    return {name: rows(runs, size, ACT, seed=seed + i) for i, name in enumerate(names)}


# --- plain NumPy references, one run and one row at a time


def mlp(net, lead: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    for depth, layer in enumerate(net.layers):
        w, b = layer.weight.detach()[lead].numpy(), layer.bias.detach()[lead].numpy()
        x = x @ w + b[0]
        if depth == len(net.layers) - 1:
            return x
        if net.norms:
            scale, shift = (p.detach()[lead].numpy()[0] for p in net.norms[depth].parameters())
            x = (x - x.mean()) / np.sqrt(x.var() + 1e-5) * scale + shift
        x = x / (1.0 + np.exp(-x)) if net.activation is F.silu else np.maximum(x, 0.0)


def plain_policy(actor: Actor, run: int, obs: np.ndarray, noise: np.ndarray):
    """Return one row's action and its log-probability under a tanh-squashed Gaussian."""
    out = mlp(actor.net, (run,), obs)
    mean, raw = out[:ACT], out[ACT:]
    std = np.exp(-5.0 + 3.5 * (np.tanh(raw) + 1.0))
    action, log_prob = np.empty(ACT), 0.0
    for d in range(ACT):
        u = mean[d] + std[d] * noise[d]
        action[d] = math.tanh(u)
        density = math.exp(-0.5 * ((u - mean[d]) / std[d]) ** 2) / (std[d] * math.sqrt(2 * math.pi))
        log_prob += math.log(density / (1.0 - action[d] ** 2))
    return action, log_prob


def plain_value(critic: Critic, run: int, twin: int, obs: np.ndarray, action: np.ndarray) -> float:
    return float(mlp(critic.net, (run, twin), np.concatenate([obs, action]))[0])


# --- the four losses


@pytest.mark.parametrize("config", [SMALL, RELEASED], ids=["paper", "released"])
def test_losses_equal_plain_loops(float64, make_batch, config):
    """Compare the losses of three runs with different temperatures; some rows are terminal."""
    alphas, gamma, size = [0.05, 0.2, 1.7], 0.9, 6
    agent, batch = agent_of([1, 2, 3], config, alphas), make_batch(3, size, OBS, ACT)
    assert batch.terminated.unique().tolist() == [0.0, 1.0]
    noise = noises(3, size)
    reward = rows(3, size, seed=9)
    alpha = agent.temperature().detach()
    assert alpha.tolist() == pytest.approx(alphas, rel=1e-12)
    q_loss = sac.critic_loss(
        agent.critic, agent.target, agent.actor, alpha, batch, reward, noise["next_noise"], gamma
    )
    pi_loss, log_prob = sac.actor_loss(agent.actor, agent.critic, alpha, batch.obs, noise["noise"])
    t_loss = sac.temperature_loss(alpha.log(), log_prob, agent.target_entropy)
    assert agent.target_entropy == -ACT
    for r in range(3):
        q_sum = pi_sum = log_sum = 0.0
        for i in range(size):
            obs, action, next_obs, _, end = (field[r, i].numpy() for field in batch)
            a, lp = plain_policy(agent.actor, r, next_obs, noise["next_noise"][r, i].numpy())
            value = min(plain_value(agent.target, r, k, next_obs, a) for k in (0, 1))
            goal = float(reward[r, i])
            if end == 0.0:
                goal += gamma * (value - alphas[r] * lp)
            for k in (0, 1):
                q_sum += 0.5 * (plain_value(agent.critic, r, k, obs, action) - goal) ** 2
            a, lp = plain_policy(agent.actor, r, obs, noise["noise"][r, i].numpy())
            pi_sum += alphas[r] * lp
            pi_sum -= min(plain_value(agent.critic, r, k, obs, a) for k in (0, 1))
            log_sum += lp
            assert log_prob[r, i].item() == pytest.approx(lp, rel=1e-10)
        assert q_loss[r].item() == pytest.approx(q_sum / size, rel=1e-10)
        assert pi_loss[r].item() == pytest.approx(pi_sum / size, rel=1e-10)
        expected = -math.log(alphas[r]) * (log_sum / size - ACT)
        assert t_loss[r].item() == pytest.approx(expected, rel=1e-10)


def test_only_what_a_loss_trains_gets_gradient(make_batch):
    agent, batch, noise = agent_of([1, 2]), make_batch(2, 6, OBS, ACT), noises(2, 6)
    alpha = agent.log_alpha.exp()
    loss = sac.critic_loss(
        agent.critic, agent.target, agent.actor, alpha, batch, batch.reward, noise["noise"], 0.9
    )
    loss.sum().backward()
    assert {n.split(".")[0] for n, p in agent.named_parameters() if p.grad is not None} == {
        "critic"
    }
    agent.zero_grad(set_to_none=True)
    loss, log_prob = sac.actor_loss(
        agent.actor, agent.critic, alpha.detach(), batch.obs, noise["noise"]
    )
    loss.sum().backward()
    assert all(p.grad is not None for p in agent.actor.parameters())
    assert {n.split(".")[0] for n, p in agent.named_parameters() if p.grad is not None} == {"actor"}
    agent.zero_grad(set_to_none=True)
    sac.temperature_loss(agent.log_alpha, log_prob, -2.0).sum().backward()
    torch.testing.assert_close(agent.log_alpha.grad, -(log_prob.mean(dim=1) - 2.0).detach())


def test_stored_reward_is_not_the_one_learned_from(make_batch):
    batch, noise = make_batch(1, 6, OBS, ACT), noises(1, 6)
    first, second = agent_of([1]), agent_of([1])
    first.update(batch, torch.ones(1, 6), noise)
    second.update(batch._replace(reward=batch.reward + 5.0), torch.ones(1, 6), noise)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_target_entropy_and_temperature(float64, make_batch, scale):
    """Check that the temperature falls if the entropy exceeds its target, and rises otherwise."""
    config = replace(SMALL, target_entropy_scale=scale)
    agent = agent_of([1, 2], config)
    assert agent.target_entropy == -scale * ACT
    agent.actor.net.layers[-1].weight.data.zero_()
    raw = torch.tensor([[-0.5], [0.4]])[:, :, None].expand(2, 1, ACT)  # std 0.04 and 0.85
    agent.actor.net.layers[-1].bias.data.copy_(torch.cat([torch.zeros(2, 1, ACT), raw], dim=-1))
    metrics = agent.update(make_batch(2, 64, OBS, ACT), torch.zeros(2, 64), noises(2, 64))
    assert metrics["alpha"].tolist() == pytest.approx([0.2, 0.2])
    alpha = agent.log_alpha.exp()
    assert metrics["entropy"][0] < -scale * ACT < metrics["entropy"][1]
    assert alpha[0] > 0.2 > alpha[1]


def test_softplus_temperature(float64, make_batch):
    """Check a temperature of softplus(log 0.2).

    The loss is -alpha (log pi + target), so its gradient has a sigmoid from the chain rule.
    """
    agent = agent_of([1, 2], replace(RELEASED, lr_alpha=1e-2))
    start = math.log(0.2)
    alpha = math.log1p(0.2)
    assert agent.temperature().tolist() == pytest.approx([alpha] * 2) == [0.1823215568] * 2
    before = agent.log_alpha.detach().clone()
    metrics = agent.update(make_batch(2, 8, OBS, ACT), torch.zeros(2, 8), noises(2, 8))
    assert metrics["alpha"].tolist() == pytest.approx([alpha] * 2)
    slope = 1.0 / (1.0 + math.exp(-start)) * (metrics["entropy"] - agent.target_entropy)
    torch.testing.assert_close(agent.log_alpha.grad, slope)
    torch.testing.assert_close(agent.log_alpha.detach(), before - 1e-2 * slope.sign())
    loss = sac.temperature_loss(agent.temperature(), -metrics["entropy"][:, None], -2.0)
    torch.testing.assert_close(loss, -agent.temperature() * (-metrics["entropy"] - 2.0))


@pytest.mark.parametrize("alpha_form", ["exp", "softplus"])
@pytest.mark.parametrize("alpha_loss", ["alpha", "log_alpha"])
def test_weight_of_the_temperature_loss(float64, make_batch, alpha_form, alpha_loss):
    """Check the temperature loss's gradient with respect to the learned parameter x.

    The gradient is d alpha / dx or d log alpha / dx, times the gap to the target entropy.
    """
    config = replace(SMALL, alpha_form=alpha_form, alpha_loss=alpha_loss, lr_alpha=1e-2)
    agent = agent_of([1, 2], config, alphas=[0.3, 0.05])
    alpha = np.array([0.3, 0.05])
    before = agent.log_alpha.detach().clone()
    metrics = agent.update(make_batch(2, 8, OBS, ACT), torch.zeros(2, 8), noises(2, 8))
    slope = alpha if alpha_form == "exp" else 1.0 - np.exp(-alpha)  # softplus' = sigmoid
    if alpha_loss == "log_alpha":
        slope = slope / alpha
    gradient = torch.from_numpy(slope) * (metrics["entropy"] + ACT)
    torch.testing.assert_close(agent.log_alpha.grad, gradient, rtol=1e-12, atol=0)
    torch.testing.assert_close(agent.log_alpha.detach(), before - 1e-2 * gradient.sign())


@pytest.mark.parametrize("rate", [1e-3, 3e-4])
def test_rate_of_the_temperature(float64, make_batch, rate):
    """Compare three updates of log alpha with Adam's formulas for a single number."""
    assert SacConfig().lr_alpha == 1e-3
    agent = agent_of([1], replace(SMALL, lr_alpha=rate))
    x, first, second = math.log(0.2), 0.0, 0.0
    for step in (1, 2, 3):
        batch = make_batch(1, 8, OBS, ACT, seed=step)
        metrics = agent.update(batch, torch.zeros(1, 8), noises(1, 8, seed=10 * step))
        slope = math.exp(x) * (metrics["entropy"].item() + ACT)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        mean, square = first / (1.0 - 0.9**step), second / (1.0 - 0.999**step)
        x -= rate * mean / (math.sqrt(square) + 1e-8)
        assert agent.log_alpha.item() == pytest.approx(x, rel=1e-10)


def test_adam_does_not_cancel_the_weight(float64):
    """Check that alpha falls more slowly under the paper's loss, whose gradient shrinks with it."""
    found = {}
    for alpha_loss in ("alpha", "log_alpha"):
        agent = agent_of([1], replace(SMALL, alpha_loss=alpha_loss))
        optimiser = agent.optimisers["alpha"]
        for step in range(2000):  # the entropy is above its target on average
            log_prob = torch.full((1, 1), -1.0 - 2.0 * (step % 2)) + ACT
            loss = sac.temperature_loss(agent.temperature_weight(), log_prob, -float(ACT))
            optimiser.zero_grad()
            loss.sum().backward()
            optimiser.step()
        found[alpha_loss] = agent.temperature().item()
    assert found["log_alpha"] < 0.8 * found["alpha"] < 0.16


@pytest.mark.parametrize(
    ("env", "units", "target"),
    [
        ("Humanoid-v4", "env", -17 - 17 * math.log(0.4)),
        ("Humanoid-v4", "tanh", -17.0),
        ("Pusher-v5", "env", -7 - 7 * math.log(2.0)),
        ("Pusher-v5", "tanh", -7.0),
        ("HalfCheetah-v4", "env", -6.0),
        ("HalfCheetah-v4", "tanh", -6.0),
    ],
)
def test_target_entropy_counts_actions_in_units_of_the_env(env, units, target):
    cell = CellConfig(env, "ngt", "ngt.reward:EnvReward", sac=replace(SMALL, entropy_units=units))
    found = Learner(cell, [Member(Path(), {}, 0, 0)]).agent.target_entropy
    assert found == pytest.approx(target, abs=1e-12)
    if units == "env" and env != "HalfCheetah-v4":
        assert round(found, 2) == {"Humanoid-v4": -1.42, "Pusher-v5": -11.85}[env]


def test_target_entropy_is_that_of_the_scaled_action(float64):
    """Check by how much a uniform action's entropy exceeds the target.

    The excess must be the same for squashed actions, in [-1, 1], and for scaled ones.
    """
    half, act = 0.4, 3
    uniform_squashed, uniform_scaled = act * math.log(2.0), act * math.log(2.0 * half)
    config = replace(SMALL, target_entropy_scale=0.5)
    of_squashed = sac.target_entropy(act, config, half)
    assert uniform_squashed - of_squashed == pytest.approx(uniform_scaled + 0.5 * act)


@BY_HAND
@pytest.mark.parametrize("half", [0.4, 2.0])
def test_update_is_algorithm_1(float64, monkeypatch, make_batch, half, by_hand):
    """Compare an update with Algorithm 1, written out here and differentiated by autograd."""
    take_gradients(monkeypatch, by_hand)
    agent = Sac(OBS, ACT, replace(SMALL, alpha=0.3), [1], half)
    batch, noise = make_batch(1, 16, OBS, ACT), noises(1, 16)
    reward, old = rows(1, 16, seed=9).double(), deepcopy(agent)
    x = old.log_alpha

    def policy(obs, eps):  # log pi of the action in the env's units
        mean, log_std = old.actor(obs)
        u = mean + log_std.exp() * eps
        density = torch.distributions.Normal(mean, log_std.exp()).log_prob(u)
        return u.tanh(), (density - (half * (1.0 - u.tanh().square())).log()).sum(-1)

    shift = ACT * math.log(half)
    with torch.no_grad():
        action, log_pi = policy(batch.next_obs, noise["next_noise"])
        value = old.target(batch.next_obs, action).amin(1) - 0.3 * (log_pi + shift)
        y = reward + 0.99 * (1.0 - batch.terminated) * value
    loss = (0.5 * (old.critic(batch.obs, batch.action) - y[:, None]).square()).mean(-1).sum()
    metrics = agent.update(batch, reward, noise)
    torch.testing.assert_close(metrics["critic_loss"].sum(), loss.detach())
    critics = list(zip(agent.critic.parameters(), old.critic.parameters(), strict=True))
    for (p, _), grad in zip(
        critics, torch.autograd.grad(loss, [q for _, q in critics]), strict=True
    ):
        torch.testing.assert_close(p.grad, grad)
    action, log_pi = policy(batch.obs, noise["noise"])
    q = agent.critic(batch.obs, action).amin(1)  # the critics have been updated
    loss = (0.3 * log_pi - q).mean()
    actors = list(zip(agent.actor.parameters(), old.actor.parameters(), strict=True))
    grads = torch.autograd.grad(loss, [q for _, q in actors], retain_graph=True)
    for (p, _), grad in zip(actors, grads, strict=True):
        torch.testing.assert_close(p.grad, grad)
    loss = -(x.exp() * (log_pi.detach() - ACT)).mean()
    torch.testing.assert_close(agent.log_alpha.grad, torch.autograd.grad(loss, x)[0])


def test_temperature_can_be_fixed(make_batch):
    agent = agent_of([1], replace(SMALL, learn_alpha=False, alpha=0.3))
    agent.update(make_batch(1, 8, OBS, ACT), torch.zeros(1, 8), noises(1, 8))
    assert agent.log_alpha.exp().item() == pytest.approx(0.3)


def test_polyak(float64):
    target, online = agent_of([1, 2]).critic, agent_of([3, 4]).critic
    before = [p.detach().clone() for p in target.parameters()]
    polyak_(target, online, 0.1)
    for old, p, q in zip(before, target.parameters(), online.parameters(), strict=True):
        torch.testing.assert_close(p, 0.9 * old + 0.1 * q)


def test_target_starts_as_the_critic_and_is_never_trained():
    agent = Sac(OBS, ACT, SMALL, [1, 2])
    for p, q in zip(agent.target.parameters(), agent.critic.parameters(), strict=True):
        assert torch.equal(p, q) and not p.requires_grad and p is not q
    trained = {
        id(p) for o in agent.optimisers.values() for g in o.param_groups for p in g["params"]
    }
    own = {*agent.actor.parameters(), *agent.critic.parameters(), agent.log_alpha}
    assert trained == {id(p) for p in own}


def test_learning_rates_go_to_their_networks():
    config = replace(SMALL, lr_actor=1.0, lr_critic=2.0, lr_alpha=3.0)
    rates = {k: o.param_groups[0]["lr"] for k, o in agent_of([1], config).optimisers.items()}
    assert rates == {"actor": 1.0, "critic": 2.0, "alpha": 3.0}


def test_actor_gradient_is_clipped_per_run(float64, make_batch):
    """Check in Adam's first moment that each run's gradient is clipped to a tiny norm."""
    agent = agent_of([1, 2, 3], replace(SMALL, actor_grad_clip=1e-3))
    agent.update(make_batch(3, 8, OBS, ACT), torch.zeros(3, 8), noises(3, 8))
    state = agent.optimisers["actor"].state
    square = sum(state[p]["exp_avg"].flatten(1).square().sum(1) for p in agent.actor.parameters())
    torch.testing.assert_close(square.sqrt() / 0.1, torch.full((3,), 1e-3), rtol=1e-2, atol=0)


@pytest.mark.parametrize("limit", [1e-3, 5.0, None])
def test_critic_gradient_is_clipped_per_run_if_asked(float64, make_batch, limit):
    """Check that a run's two critics are clipped by their joint norm, whatever the other runs."""
    batch, noise = make_batch(3, 8, OBS, ACT), noises(3, 8)
    reward = batch.reward * torch.tensor([[1.0], [10.0], [100.0]])
    free, clipped = agent_of([1, 2, 3]), agent_of([1, 2, 3], replace(SMALL, critic_grad_clip=limit))
    for agent in (free, clipped):
        agent.update(batch, reward, noise)
    norm = sum(p.grad.flatten(1).square().sum(1) for p in free.critic.parameters()).sqrt()
    assert norm.min() < 5.0 < norm.max()
    scale = torch.ones(3) if limit is None else (limit / (norm + 1e-6)).clamp(max=1.0)
    for p, q in zip(free.critic.parameters(), clipped.critic.parameters(), strict=True):
        expected = p.grad * scale.view(-1, *[1] * (p.dim() - 1))
        torch.testing.assert_close(q.grad, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("net", ["actor", "critic"])
def test_released_nets_start_near_zero(net):
    """Check initial nets with a head gain of 1e-3.

    Modes and values are near 0, and the log-std is near the middle of its range.
    """
    agent, obs = Sac(OBS, ACT, RELEASED, [1, 2]), rows(2, 50, OBS)
    mean, log_std = agent.actor(obs)
    assert 0 < mean.abs().max() < 0.02 and (log_std + 1.5).abs().max() < 0.05
    assert 0 < agent.critic(obs, mean).abs().max() < 0.02
    head = getattr(agent, net).net.layers[-1].weight.detach().flatten(0, -3)
    norms = torch.linalg.svdvals(head)
    torch.testing.assert_close(norms, torch.full_like(norms, 1e-3))


# --- the policy


def test_act(float64):
    agent, obs, noise = agent_of([1, 2]), rows(2, 4, OBS), rows(2, 4, ACT, seed=1)
    mode, sampled = agent.act(obs, torch.zeros_like(noise)), agent.act(obs, noise)
    assert not mode.requires_grad and not sampled.requires_grad
    for r in range(2):
        for i in range(4):
            one = obs[r, i].numpy()
            expected, _ = plain_policy(agent.actor, r, one, noise[r, i].numpy())
            np.testing.assert_allclose(sampled[r, i], expected, atol=1e-12)
            expected, _ = plain_policy(agent.actor, r, one, np.zeros(ACT))
            np.testing.assert_allclose(mode[r, i], expected, atol=1e-12)


def test_log_std_range():
    actor = Actor(OBS, ACT, replace(SMALL, log_std_min=-3.0, log_std_max=1.0), [1])
    actor.net.layers[-1].weight.data.zero_()
    for raw, expected in ((-50.0, -3.0), (0.0, -1.0), (50.0, 1.0)):
        actor.net.layers[-1].bias.data[..., ACT:] = raw
        assert actor(rows(1, 3, OBS))[1].eq(expected).all()


@given(
    mean=st.floats(-50, 50, width=32),
    log_std=st.floats(-5, 2, width=32),
    noise=st.floats(-6, 6, width=32),
)
def test_log_prob_is_finite_and_right_where_actions_saturate(mean, log_std, noise):
    single = torch.tensor([[mean, log_std, noise]])
    action, log_prob = squashed_gaussian(single[:, :1], single[:, 1:2], single[:, 2:])
    assert action.abs().max() <= 1.0 and log_prob.isfinite().all()
    m, s, e = single.double()[0]
    u = m + s.exp() * e
    log_cosh = u.abs() + torch.log1p(torch.exp(-2 * u.abs())) - math.log(2.0)
    exact = -0.5 * e**2 - s - 0.5 * math.log(2 * math.pi) + 2.0 * log_cosh  # 1 - tanh^2 = sech^2
    assert log_prob.item() == pytest.approx(exact.item(), rel=1e-5, abs=1e-4)


def test_log_prob_has_gradient_where_actions_saturate():
    mean = torch.tensor([[-50.0, -9.0, 0.0, 9.0, 50.0]]).requires_grad_()
    log_std = torch.zeros(1, 5, requires_grad=True)
    squashed_gaussian(mean, log_std, torch.ones(1, 5))[1].sum().backward()
    assert mean.grad.isfinite().all() and log_std.grad.isfinite().all()
    torch.testing.assert_close(mean.grad, 2.0 * torch.tanh(mean + 1.0).detach())


def test_density_integrates_to_one(float64):
    action = torch.linspace(-1, 1, 20001)[1:-1, None]
    mean, log_std = torch.tensor([0.4]), torch.tensor([-0.7])
    noise = (torch.atanh(action) - mean) / log_std.exp()
    got, log_prob = squashed_gaussian(mean.expand_as(noise), log_std.expand_as(noise), noise)
    torch.testing.assert_close(got, action)
    assert log_prob.exp().sum().item() * 1e-4 == pytest.approx(1.0, abs=1e-4)


# --- saved numbers of the actor that the paper's authors released


def actor_of(v, load_layers) -> Actor:
    normed = "ln1_w" in v
    options = {"activation": "silu", "layer_norm": True} if normed else {}
    obs, act, hidden = v["obs"].shape[1], v["noise"].shape[1], (len(v["b1"]), len(v["b2"]))
    actor = Actor(obs, act, SacConfig(hidden=hidden, **options), [0])
    for i, norm in enumerate(actor.net.norms, start=1):
        norm.weight.data[0, 0] = v[f"ln{i}_w"].to(norm.weight.dtype)
        norm.bias.data[0, 0] = v[f"ln{i}_b"].to(norm.bias.dtype)
    load_layers(actor.net, [(v["w1"], v["b1"]), (v["w2"], v["b2"]), (v["head_w"], v["head_b"])])
    return actor


def unguarded(actor: Actor, obs):
    """Return a mask of the rows that the released code's guard does not change.

    The guard keeps |tanh(raw)| at least 1e-6 below 1.
    """
    raw = actor.net(obs)[0].chunk(2, dim=-1)[1]
    return raw.tanh().abs().amax(dim=1) < 1 - 1e-6


def to_env(action, v):
    low, high = v["action_low"].to(action.dtype), v["action_high"].to(action.dtype)
    return low + 0.5 * (action + 1.0) * (high - low)


ACTORS = pytest.mark.parametrize("name", ["actor_ngt_relu", "actor_ngt_silu_ln"])


@ACTORS
def test_released_actor(vectors, load_layers, name):
    v = vectors(name)
    actor = actor_of(v, load_layers)
    mean, log_std = (t[0] for t in actor(v["obs"][None]))
    action, log_prob = squashed_gaussian(mean, log_std, v["noise"])
    close = partial(torch.testing.assert_close, rtol=2e-5, atol=2e-5, check_dtype=False)
    close(mean, v["mean"])
    close(log_std, v["log_std"])
    close(log_prob, v["log_prob_tanh_units64"][:, 0])
    close(to_env(action, v), v["sample"])
    close(to_env(mean.tanh(), v), v["mode"])
    half = 0.5 * (v["action_high"] - v["action_low"])
    close(log_prob - half.log().sum(), v["log_prob"][:, 0])


@ACTORS
def test_released_actor_in_float64(vectors, load_layers, float64, name):
    """Compare with the saved float64 numbers, more loosely in rows that the guard changes."""
    v = vectors(name)
    actor = actor_of(v, load_layers)
    mean, log_std = (t[0] for t in actor(v["obs"].double()[None]))
    free = unguarded(actor, v["obs"].double()[None])
    action, log_prob = squashed_gaussian(mean, log_std, v["noise"].double())
    assert free.double().mean() > 0.5
    for at, tolerance in ((free, 1e-9), (~free, 1e-4)):
        close = partial(torch.testing.assert_close, rtol=0, atol=tolerance)
        close(log_prob[at], v["log_prob_tanh_units64"][at, 0])
        close(to_env(action, v)[at], v["sample64"][at])
        pre_tanh = mean + log_std.exp() * v["noise"].double()
        close(pre_tanh[at], v["pre_tanh64"][at])


@ACTORS
def test_released_actor_scores_given_actions(vectors, load_layers, float64, name):
    v = vectors(name)
    actor, obs = actor_of(v, load_layers), v["obs"].double()[None]
    mean, log_std = (t[0] for t in actor(obs))
    low, high = v["action_low"].double(), v["action_high"].double()
    action = 2.0 * (v["given_action"].double() - low) / (high - low) - 1.0
    pre_tanh = action.clamp(-1 + 1e-6, 1 - 1e-6).atanh()
    log_prob = squashed_gaussian(mean, log_std, (pre_tanh - mean) / log_std.exp())[1]
    log_prob = log_prob - (0.5 * (high - low)).log().sum()
    free = unguarded(actor, obs)
    for at, tolerance in ((free, 1e-12), (~free, 1e-5)):
        expected = v["given_log_prob64"][at, 0]
        torch.testing.assert_close(log_prob[at], expected, rtol=tolerance, atol=0)


# --- saved numbers of stable-baselines3, and a comparison with its code


class ClampedActor(Actor):
    """An actor that, like that of stable-baselines3, clamps the log-std instead of squashing it."""

    def forward(self, obs):
        mean, raw = self.net(obs).chunk(2, dim=-1)
        return mean, raw.clamp(-20.0, 2.0)


def clamp_log_std(monkeypatch) -> None:
    """Give agents an actor like that of stable-baselines3, with gradients by autograd.

    Gradients by hand are available for `Actor` only.
    """
    monkeypatch.setattr(sac, "Actor", ClampedActor)
    take_gradients(monkeypatch, by_hand=False)


class Squash(torch.nn.Module):
    """A layer that squashes the log-std as our actor does, so that a later clamp has no effect."""

    def forward(self, raw):
        return -5.0 + 3.5 * (torch.tanh(raw) + 1.0)


def pi_pairs(v, prefix: str = ""):
    """Return the saved actor's layers, with its two heads side by side as in our single head."""
    heads = [torch.cat([v[f"{prefix}pi_{h}_{p}"] for h in ("mean", "logstd")]) for p in "wb"]
    return [(v[f"{prefix}pi_w{i}"], v[f"{prefix}pi_b{i}"]) for i in (1, 2)] + [tuple(heads)]


def q_pairs(v, name: str):
    return [(v[f"{name}_w{i}"], v[f"{name}_b{i}"]) for i in (1, 2, 3)]


def sb3_agent(v, load_layers, monkeypatch) -> Sac:
    """Return our agent with the weights saved from stable-baselines3."""
    clamp_log_std(monkeypatch)
    alpha, gamma, tau, target_entropy = v["alpha_gamma_tau_target_entropy"].tolist()
    lr = float(v.get("lr", 3e-4))
    config = SacConfig(
        hidden=(len(v["pi_b1"]), len(v["pi_b2"])),
        gamma=gamma,
        tau=tau,
        alpha=alpha,
        actor_grad_clip=1e9,
        lr_actor=lr,
        lr_critic=lr,
        lr_alpha=lr,
        alpha_loss="log_alpha",
        entropy_units="tanh",
    )
    agent = Sac(v["obs"].shape[1], v["act"].shape[1], config, [0])
    assert agent.target_entropy == target_entropy
    load_layers(agent.actor.net, pi_pairs(v))
    for k in (0, 1):
        load_layers(agent.critic.net, q_pairs(v, f"q{k}"), twin=k)
        load_layers(agent.target.net, q_pairs(v, f"qt{k}"), twin=k)
    return agent


def sb3_batch(v, dtype=torch.float32) -> Batch:
    columns = (v["obs"], v["act"], v["next_obs"], v["reward"][:, 0], v["done"][:, 0])
    return Batch(*(t.to(dtype)[None] for t in columns))


def assert_layers(net, pairs, twin=None, *, grad=False, **tolerance):
    """Compare a net's weights or gradients with pairs of a weight (out, in) and a bias."""
    for layer, (weight, bias) in zip(net.layers, pairs, strict=True):
        for p, expected in ((layer.weight, weight.T), (layer.bias, bias[None])):
            value = (p.grad if grad else p.detach())[0]
            value = value if twin is None else value[twin]
            torch.testing.assert_close(value, expected, check_dtype=False, **tolerance)


def test_sb3_losses_and_gradients(vectors, load_layers, monkeypatch):
    v = vectors("sac_sb3")
    agent, batch = sb3_agent(v, load_layers, monkeypatch), sb3_batch(v)
    close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5, check_dtype=False)
    mean, log_std = agent.actor(batch.obs)
    close(mean[0], v["mean"])
    close(log_std[0], v["log_std"])
    next_action, next_log_prob = squashed_gaussian(
        *agent.actor(batch.next_obs), v["noise_next"][None]
    )
    close(next_action[0], v["next_action"])
    torch.testing.assert_close(next_log_prob[0], v["next_log_prob"], rtol=0, atol=3e-5)
    for k in (0, 1):
        close(agent.critic(batch.obs, batch.action)[0, k], v[f"q{k}"][:, 0])

    alpha = agent.log_alpha.detach().exp()
    loss = sac.critic_loss(
        agent.critic,
        agent.target,
        agent.actor,
        alpha,
        batch,
        batch.reward,
        v["noise_next"][None],
        agent.config.gamma,
    )
    close(loss[0], v["critic_loss"])
    loss.sum().backward()
    for k in (0, 1):
        grads = q_pairs(v, f"grad_q{k}")
        assert_layers(agent.critic.net, grads, k, grad=True, rtol=1e-5, atol=1e-5)

    loss, log_prob = sac.actor_loss(agent.actor, agent.critic, alpha, batch.obs, v["noise"][None])
    close(loss[0], v["actor_loss"])
    close(log_prob[0], v["log_prob64_exact"])
    loss.sum().backward()
    assert_layers(agent.actor.net, pi_pairs(v, "grad_"), grad=True, rtol=1e-5, atol=1e-5)

    loss = sac.temperature_loss(agent.log_alpha, log_prob, agent.target_entropy)
    close(loss[0], v["alpha_loss"])
    loss.sum().backward()
    close(agent.log_alpha.grad, v["grad_log_alpha"])


def test_sb3_target(vectors, load_layers, monkeypatch, float64):
    """Check that each row's loss is half the critics' squared distances to the saved target."""
    v = vectors("sac_sb3")
    agent, batch = sb3_agent(v, load_layers, monkeypatch), sb3_batch(v, torch.float64)
    alpha = agent.log_alpha.detach().exp()
    for i in range(len(v["obs"])):
        row = Batch(*(field[:, i : i + 1] for field in batch))
        loss = sac.critic_loss(
            agent.critic,
            agent.target,
            agent.actor,
            alpha,
            row,
            row.reward,
            v["noise_next"][None, i : i + 1].double(),
            agent.config.gamma,
        )
        errors = agent.critic(row.obs, row.action)[0, :, 0] - v["target_q64"][i]
        assert loss.item() == pytest.approx(0.5 * errors.square().sum().item(), rel=1e-4, abs=1e-6)


def test_sb3_whole_update(vectors, load_layers, monkeypatch):
    v, after = vectors("sac_sb3"), vectors("sac_sb3_step")
    agent = sb3_agent({**v, "lr": after["lr"]}, load_layers, monkeypatch)
    batch = sb3_batch(v)
    draws = {"next_noise": v["noise_next"][None], "noise": v["noise"][None]}
    metrics = agent.update(batch, batch.reward, draws)
    assert metrics["critic_loss"].item() == pytest.approx(v["critic_loss"].item(), abs=1e-5)
    assert metrics["actor_loss"].item() == pytest.approx(
        after["actor_loss_at_step"].item(), abs=1e-5
    )
    tight = {"rtol": 0.0, "atol": 1e-6}
    assert_layers(agent.actor.net, pi_pairs(after, "after_"), **tight)
    for k in (0, 1):
        assert_layers(agent.critic.net, q_pairs(after, f"after_q{k}"), k, **tight)
        assert_layers(agent.target.net, q_pairs(after, f"after_qt{k}"), k, **tight)
    torch.testing.assert_close(agent.log_alpha.detach(), after["after_log_alpha"], **tight)


def test_sb3_distribution(vectors, float64):
    v = vectors("sac_sb3_dist")
    action, log_prob = squashed_gaussian(v["mean"], v["log_std_raw"].clamp(-20.0, 2.0), v["noise"])
    torch.testing.assert_close(action, v["action"], rtol=0, atol=1e-12)
    torch.testing.assert_close(log_prob, v["log_prob64_exact"], rtol=0, atol=1e-9)


class Live:
    """The SAC of stable-baselines3 and our SAC, with the same weights and draws.

    With `by_hand`, our SAC computes gradients by hand, and the log-std of stable-baselines3
    is squashed like ours.
    """

    def __init__(self, monkeypatch, load_layers, dtype, epsilon, by_hand):
        sb3 = pytest.importorskip("stable_baselines3")
        from stable_baselines3.common import policies
        from stable_baselines3.common.logger import Logger
        from torch.distributions import normal

        self.sb3 = sb3.SAC(
            "MlpPolicy",
            "Pendulum-v1",
            policy_kwargs={"net_arch": [32, 32]},
            learning_rate=1e-3,
            ent_coef="auto_0.2",
            tau=0.05,
            buffer_size=100,
            seed=3,
            device="cpu",
        )
        self.logger = Logger(None, [])
        self.sb3.set_logger(self.logger)
        self.sb3.policy.to(dtype)
        self.sb3.log_ent_coef.data = self.sb3.log_ent_coef.data.to(dtype)
        self.sb3.actor.action_dist.epsilon = epsilon
        self.queue: list[torch.Tensor] = []
        monkeypatch.setattr(normal, "_standard_normal", lambda *a, **k: self.queue.pop(0))
        # The original function casts observations to float32.
        monkeypatch.setattr(policies, "preprocess_obs", lambda obs, *a, **k: obs)
        if by_hand:
            actor = self.sb3.actor
            actor.log_std = torch.nn.Sequential(actor.log_std, Squash())
            take_gradients(monkeypatch, by_hand=True)
        else:
            clamp_log_std(monkeypatch)
        config = SacConfig(
            hidden=(32, 32),
            lr_actor=1e-3,
            lr_critic=1e-3,
            lr_alpha=1e-3,
            alpha_loss="log_alpha",
            entropy_units="tanh",
            tau=0.05,
            actor_grad_clip=1e9,
        )
        self.ours = Sac(3, 1, config, [0], half_range=2.0)
        with torch.no_grad():
            for net, pairs, twin in self.nets():
                load_layers(net, pairs, twin)
        self.grads: dict[str, list[torch.Tensor]] = {}
        optimisers = {
            "actor": self.sb3.actor.optimizer,
            "critic": self.sb3.critic.optimizer,
            "alpha": self.sb3.ent_coef_optimizer,
        }
        for name, optimiser in optimisers.items():
            optimiser.register_step_pre_hook(partial(self.keep, name))

    def keep(self, name, optimiser, *_):
        (group,) = optimiser.param_groups
        self.grads[name] = [p.grad.clone() for p in group["params"]]

    def nets(self, values=None):
        """Yield (our net, stable-baselines3's layers, twin) for each net.

        A layer is a pair of weight and bias, each passed through `values` if that is given.
        """
        value = values or (lambda p: p.detach())

        def linear(*modules):
            found = [m for s in modules for m in s.modules() if isinstance(m, torch.nn.Linear)]
            return [(value(m.weight), value(m.bias)) for m in found]

        theirs, ours = self.sb3, self.ours
        heads = zip(*linear(theirs.actor.mu, theirs.actor.log_std), strict=True)
        hidden = linear(theirs.actor.latent_pi)
        yield ours.actor.net, [*hidden, tuple(torch.cat(p) for p in heads)], None
        for mine, its in ((ours.critic, theirs.critic), (ours.target, theirs.critic_target)):
            for k in (0, 1):
                yield mine.net, linear(its.q_networks[k]), k

    def update(self, batch, draws):
        """Update both agents once and return our metrics and the losses of stable-baselines3."""
        from stable_baselines3.common.type_aliases import ReplayBufferSamples

        data = ReplayBufferSamples(
            batch.obs[0],
            batch.action[0],
            batch.next_obs[0],
            batch.terminated[0, :, None],
            batch.reward[0, :, None],
        )
        self.sb3.replay_buffer.sample = lambda *a, **k: data
        self.queue[:] = [draws["noise"][0], draws["next_noise"][0]]
        self.sb3.train(1, batch.obs.shape[1])
        assert self.queue == []
        metrics = self.ours.update(batch, batch.reward, draws)
        return metrics, self.logger.name_to_value

    def gradients(self):
        """Yield pairs of our gradient and stable-baselines3's from the last update."""
        by_id = {}
        for name, module in (("actor", self.sb3.actor), ("critic", self.sb3.critic)):
            by_id.update(zip(map(id, module.parameters()), self.grads[name], strict=True))
        for net, pairs, twin in self.nets(lambda p: by_id.get(id(p))):
            if net is not self.ours.target.net:
                for layer, pair in zip(net.layers, pairs, strict=True):
                    for p, theirs in zip((layer.weight, layer.bias), pair, strict=True):
                        grad = p.grad[0] if twin is None else p.grad[0, twin]
                        yield grad, theirs.T if theirs.dim() == 2 else theirs[None]
        yield self.ours.log_alpha.grad, self.grads["alpha"][0]


@BY_HAND
@pytest.mark.parametrize(
    ("dtype", "epsilon", "tolerance"),
    # the log-probability of stable-baselines3 adds 1e-6 in its logarithm, and ours does not
    [(torch.float32, 1e-6, 1e-5), (torch.float64, 0.0, 1e-9)],
    ids=["unchanged", "float64_without_its_epsilon"],
)
def test_sb3_live(
    monkeypatch, load_layers, make_batch, request, dtype, epsilon, tolerance, by_hand
):
    if dtype == torch.float64:
        request.getfixturevalue("float64")
    live = Live(monkeypatch, load_layers, dtype, epsilon, by_hand)
    close = partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    for step in range(5):
        batch = make_batch(1, 64, 3, 1, seed=step)
        draws = {"noise": rows(1, 64, 1, seed=50 + step), "next_noise": rows(1, 64, 1, seed=step)}
        alpha = live.ours.log_alpha.detach().clone()
        metrics, theirs = live.update(batch, draws)
        for name in ("critic_loss", "actor_loss"):
            close(metrics[name].item(), theirs[f"train/{name}"])
        close(metrics["alpha"].item(), theirs["train/ent_coef"])
        entropy_loss = -alpha * (-metrics["entropy"] + live.ours.target_entropy)
        close(entropy_loss.item(), theirs["train/ent_coef_loss"])
        for ours, grad in live.gradients():
            close(ours, grad)
    for net, pairs, twin in live.nets():
        assert_layers(net, pairs, twin, rtol=10 * tolerance, atol=10 * tolerance)


# --- packs


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("config", [SacConfig(), RELEASED], ids=["paper", "released"])
def test_initial_weights_of_a_run_are_those_it_has_alone(seed: int, config):
    packed = Sac(OBS, ACT, config, [1, 2, 3]).state_dict()
    for name, tensor in Sac(OBS, ACT, config, [seed]).state_dict().items():
        assert torch.equal(packed[name][seed - 1], tensor[0]), name


def test_actor_critics_and_runs_start_differently():
    agent = Sac(OBS, ACT, SMALL, [1, 2])
    q = agent.critic.net.layers[1].weight.detach()
    matrices = [*agent.actor.net.layers[1].weight.detach(), *q[0], *q[1]]
    for a, b in itertools.combinations(matrices, 2):
        assert not torch.isclose(a, b).any()


@pytest.mark.parametrize(("updates", "tolerance"), [(1, 1e-12), (100, 1e-8)])
@pytest.mark.parametrize(
    "config",
    [SacConfig(hidden=(16, 16)), replace(RELEASED, critic_grad_clip=0.5)],
    ids=["paper", "released"],
)
def test_a_pack_is_its_runs_side_by_side(
    float64, make_batch, of_run, updates: int, tolerance, config
):
    seeds, size = [3, 1, 2], 16
    packed, singles = agent_of(seeds, config), [agent_of([seed], config) for seed in seeds]
    streams = [Streams(s, Sac.draws(size, ACT)) for s in (seeds, *([seed] for seed in seeds))]
    for step in range(updates):
        batch = make_batch(3, size, OBS, ACT, seed=step)
        draws = [{k: t.double() for k, t in s.next().items()} for s in streams]
        metrics = packed.update(batch, batch.reward, draws[0])
        for run, agent in enumerate(singles):
            own = of_run(batch, run)
            alone = agent.update(own, own.reward, draws[run + 1])
            for name, value in alone.items():
                torch.testing.assert_close(
                    metrics[name][run], value[0], rtol=tolerance, atol=tolerance
                )
    for run, agent in enumerate(singles):
        for p, q in zip(packed.parameters(), agent.parameters(), strict=True):
            torch.testing.assert_close(p[run], q[0], rtol=0, atol=tolerance)


@pytest.mark.parametrize("poison", [1e30, math.nan, math.inf])
@pytest.mark.parametrize("config", [SMALL, RELEASED], ids=["paper", "released"])
def test_a_broken_run_does_not_reach_the_others(make_batch, poison: float, config):
    agents = [agent_of([1, 2, 3], config) for _ in range(2)]
    for step in range(3):
        batch, draws = make_batch(3, 8, OBS, ACT, seed=step), noises(3, 8, seed=step)
        agents[0].update(batch, batch.reward, draws)
        bad = Batch(*(field.clone() for field in batch))
        for field in bad:
            field[1] = poison
        agents[1].update(bad, bad.reward, draws)
    for (name, p), q in zip(agents[0].named_parameters(), agents[1].parameters(), strict=True):
        assert torch.equal(p[[0, 2]], q[[0, 2]]), name


def test_state_round_trip_continues_identically(make_batch):
    agent, copy = agent_of([1, 2]), agent_of([3, 4])
    agent.update(make_batch(2, 8, OBS, ACT), torch.ones(2, 8), noises(2, 8))
    copy.load_state_dict(agent.state_dict())
    for name, optimiser in agent.optimisers.items():
        copy.optimisers[name].load_state_dict(deepcopy(optimiser.state_dict()))
    for a in (agent, copy):
        a.update(make_batch(2, 8, OBS, ACT, seed=1), torch.ones(2, 8), noises(2, 8, seed=5))
    for p, q in zip(agent.parameters(), copy.parameters(), strict=True):
        assert torch.equal(p, q)


def test_critic_loss_falls_on_a_fixed_batch(make_batch):
    agent, batch = agent_of([1, 2]), make_batch(2, 32, OBS, ACT)
    metrics = [agent.update(batch, batch.reward, noises(2, 32)) for _ in range(200)]
    assert not any(value.requires_grad for value in metrics[0].values())
    losses = [m["critic_loss"] for m in metrics]
    assert (losses[-1] < 0.5 * losses[0]).all()


# --- functions for methods with their own critic


@pytest.mark.parametrize("target", [False, True])
def test_the_soft_value_equals_plain_loops(float64, target: bool):
    """Check the soft value, and that its gradient reaches only the critic, never the target net."""
    agent, size = agent_of([1, 2], alphas=[0.05, 0.7]), 5
    obs, noise = rows(2, size, OBS), 0.2 * rows(2, size, ACT, seed=1)  # no action saturates
    value = agent.soft_value(obs, noise, target)
    critic = agent.target if target else agent.critic
    for run, alpha in enumerate((0.05, 0.7)):
        for i in range(size):
            at = obs[run, i].numpy()
            action, log_prob = plain_policy(agent.actor, run, at, noise[run, i].numpy())
            least = min(plain_value(critic, run, twin, at, action) for twin in (0, 1))
            assert float(value[run, i].detach()) == pytest.approx(least - alpha * log_prob)
    assert value.requires_grad != target
    if not target:
        value.sum().backward()
        moved = {n.split(".")[0] for n, p in agent.named_parameters() if p.grad is not None}
        assert moved == {"critic"}


def test_one_critic_is_the_value_alone(make_batch):
    """Check a float32 update with one critic; with two, gradients would be computed by hand."""
    agent = agent_of([1, 2], replace(SMALL, critics=1))
    batch = make_batch(2, 6, OBS, ACT)
    q = agent.critic(batch.obs, batch.action)
    assert q.shape == (2, 1, 6)
    x = np.concatenate([batch.obs[1, 2], batch.action[1, 2]])
    assert float(q[1, 0, 2].detach()) == pytest.approx(mlp(agent.critic.net, (1,), x)[0], abs=1e-5)
    loss = sac.critic_loss(
        agent.critic,
        agent.target,
        agent.actor,
        agent.temperature().detach(),
        batch,
        batch.reward,
        noises(2, 6)["next_noise"],
        agent.config.gamma,
    )
    metrics = agent.update(batch, batch.reward, noises(2, 6))
    assert torch.allclose(metrics["critic_loss"], loss.detach())
    assert all(value.isfinite().all() for value in metrics.values())
