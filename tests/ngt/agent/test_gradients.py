"""SAC's hand-written gradients compared with autograd, in float64 and in `Sac.update`.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from ngt.agent import kernels, sac
from ngt.agent.gradients import Squashed, actor_gradients, critic_gradients, policies, runs_of
from ngt.agent.sac import Sac
from ngt.experience.replay import Batch
from ngt.settings.config import SacConfig

OBS, ACT, SIZE = 5, 2, 32
CONFIG = SacConfig(hidden=(24, 16))
HALF = 0.4  # half the width of the action bounds; not 1, so that the action's units matter
SETTINGS = [
    replace(CONFIG, alpha_loss=loss, entropy_units=units)
    for loss in ("alpha", "log_alpha")
    for units in ("env", "tanh")
]
TEMPERATURES = pytest.mark.parametrize(
    "config", SETTINGS, ids=lambda c: f"{c.alpha_loss}-{c.entropy_units}"
)
CLIPS = pytest.mark.parametrize("clip", [None, 0.1], ids=["unclipped", "clipped"])
close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-10)

if not kernels.ONEDNN:
    pytest.skip("this torch has no oneDNN", allow_module_level=True)


def agent_of(runs: int, config: SacConfig = CONFIG, act: int = ACT) -> Sac:
    """Return an agent whose parameters all differ from their initial values."""
    agent = Sac(OBS, act, config, range(runs), HALF)
    g = torch.Generator().manual_seed(0)
    for p in agent.parameters():
        p.data += 0.1 * torch.randn(p.shape, generator=g)
    return agent


def noise_of(runs: int, seed: int = 0, act: int = ACT) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {n: torch.randn(runs, SIZE, act, generator=g) for n in Sac.draws(SIZE, act)}


def taken(net: torch.nn.Module) -> list[Tensor]:
    """Return a net's gradients and remove them from the net."""
    grads = [p.grad for p in net.parameters() if p.grad is not None]
    net.zero_grad(set_to_none=True)
    return grads


@pytest.mark.parametrize("act", [1, 2])
@pytest.mark.parametrize("runs", [1, 3])
def test_the_critics_gradients(float64, make_batch: Callable[..., Batch], runs: int, act: int):
    agent, batch = agent_of(runs, act=act), make_batch(runs, SIZE, OBS, act)
    assert batch.terminated.unique().tolist() == [0.0, 1.0]
    alpha, noise = torch.linspace(0.05, 1.7, runs), noise_of(runs, act=act)["next_noise"]
    nets, reward = (agent.critic, agent.target), 3.0 * batch.reward
    loss = sac.critic_loss(*nets, agent.actor, alpha, batch, reward, noise, 0.9)
    loss.sum().backward()
    expected = taken(agent.critic)
    policy = Squashed.of(agent.actor, batch.next_obs, noise)
    close(critic_gradients(*nets, policy, alpha, batch, reward, 0.9), loss.detach())
    found = taken(agent.critic)
    assert len(found) == 6
    for a, b in zip(found, expected, strict=True):
        close(a, b)
    assert not taken(agent.actor) and not taken(agent.target)


@pytest.mark.parametrize("act", [1, 2])
@pytest.mark.parametrize("runs", [1, 3])
def test_the_actors_gradients(float64, make_batch: Callable[..., Batch], runs: int, act: int):
    agent, obs = agent_of(runs, act=act), make_batch(runs, SIZE, OBS, act).obs
    alpha, noise = torch.linspace(0.05, 1.7, runs), noise_of(runs, act=act)["noise"]
    nets = (agent.actor, agent.critic)
    loss, log_prob = sac.actor_loss(*nets, alpha, obs, noise)
    loss.sum().backward()
    expected = taken(agent.actor)
    values = agent.critic(obs, agent.actor(obs)[0].tanh())
    # Each twin critic must have the smaller value in some rows.
    assert 0 < (values[:, 0] < values[:, 1]).double().mean() < 1
    policy = Squashed.of(agent.actor, obs, noise)
    for a, b in zip(actor_gradients(*nets, policy, alpha, obs), (loss, log_prob), strict=True):
        close(a, b.detach())
    found = taken(agent.actor)
    assert len(found) == 6
    for a, b in zip(found, expected, strict=True):
        close(a, b)
    assert not taken(agent.critic)


def test_saturated_actions_have_finite_gradients(float64, make_batch: Callable[..., Batch]):
    agent, obs = agent_of(1), make_batch(1, SIZE, OBS, ACT).obs
    agent.actor.net.layers[-1].bias.data += 40.0
    nets, alpha, noise = (agent.actor, agent.critic), torch.ones(1), noise_of(1)["noise"]
    loss, _ = sac.actor_loss(*nets, alpha, obs, noise)
    loss.sum().backward()
    expected = taken(agent.actor)
    policy = Squashed.of(agent.actor, obs, noise)
    close(actor_gradients(*nets, policy, alpha, obs)[0], loss.detach())
    for a, b in zip(taken(agent.actor), expected, strict=True):
        assert a.isfinite().all()
        close(a, b)


@pytest.mark.parametrize("runs", [1, 3])
def test_two_batches_in_one_pass(make_batch: Callable[..., Batch], runs: int):
    """Check that a policy on two batches equals the policy on each batch to the bit."""
    agent, batch, noise = agent_of(runs), make_batch(runs, SIZE, OBS, ACT), noise_of(runs)
    pairs = [(batch.next_obs, noise["next_noise"]), (batch.obs, noise["noise"])]
    together = policies(agent.actor, (pairs[0][0], pairs[1][0]), (pairs[0][1], pairs[1][1]))
    for found, (obs, drawn) in zip(together, pairs, strict=True):
        alone = Squashed.of(agent.actor, obs, drawn)
        for a, b in zip(found[:-1], alone[:-1], strict=True):
            assert torch.equal(a, b)
        for own, other in zip(found.hidden, alone.hidden, strict=True):
            for a, b in zip(own, other, strict=True):
                assert torch.equal(a, b)


def test_parts_follow_the_parameters():
    """Check that the parts of a net are kept, and made anew if a tensor has moved."""
    net = agent_of(2).critic.net
    parts = runs_of(net, trained=True)
    assert runs_of(net, trained=True) is parts and runs_of(net) is parts
    layer = net.layers[0]
    layer.weight.data = layer.weight.data + 1.0
    layer.weight.grad = None
    found = runs_of(net, trained=True)[3]  # the second twin of the second run
    assert torch.equal(found.weights[0], layer.weight[1, 1])
    found.grads[0].fill_(7.0)
    assert layer.weight.grad is not None and (layer.weight.grad[1, 1] == 7.0).all()


def updated(
    monkeypatch: pytest.MonkeyPatch,
    make_batch: Callable[..., Batch],
    config: SacConfig,
    runs: int = 3,
    **how: Any,
) -> tuple[Sac, dict[str, Tensor]]:
    """Return an agent after five updates and the metrics of the last one."""
    agent, metrics = agent_of(runs, config), {}
    with monkeypatch.context() as patch:
        for name, value in how.items():
            patch.setattr(sac, name, value)
        for step in range(5):
            batch = make_batch(runs, SIZE, OBS, ACT, seed=step)
            metrics = agent.update(batch, batch.reward, noise_of(runs, step))
    return agent, metrics


def forbidden(*_: Any) -> Any:
    raise AssertionError("called")


BY_HAND = {"critic_loss": forbidden, "actor_loss": forbidden}
BY_AUTOGRAD = {"critic_gradients": forbidden, "actor_gradients": forbidden}


@TEMPERATURES
@pytest.mark.parametrize("runs", [1, 3])
def test_whole_updates_in_float64(float64, monkeypatch, make_batch, runs: int, config: SacConfig):
    """Compare updates by hand-written gradients and by autograd for each temperature loss."""
    update = partial(updated, monkeypatch, make_batch, config, runs)
    found, metrics = update(served=lambda *_: True, **BY_HAND)
    expected, others = update(served=lambda *_: False, **BY_AUTOGRAD)
    for p, q in zip(found.parameters(), expected.parameters(), strict=True):
        close(p, q)
        if p.grad is not None:
            close(p.grad, q.grad)
    assert metrics.keys() == others.keys()
    for name, value in metrics.items():
        close(value, others[name])
    # The temperature's loss is a weight times (entropy - target). Its slope in log alpha is
    # (entropy - target) times alpha or, for the loss "log_alpha", times 1.
    shift = ACT * math.log(HALF) if config.entropy_units == "env" else 0.0
    slope = metrics["alpha"] if config.alpha_loss == "alpha" else torch.ones(runs)
    close(found.log_alpha.grad, slope * (metrics["entropy"] + ACT + shift))


@CLIPS
def test_updates_equal_those_by_autograd(monkeypatch, make_batch, clip: float | None):
    """Compare float32 updates, whose gradients are hand-written, with updates by autograd."""
    config = replace(CONFIG, actor_grad_clip=clip or 1e9, critic_grad_clip=clip)
    update = partial(updated, monkeypatch, make_batch, config)
    found, metrics = update(**BY_HAND)
    expected, others = update(served=lambda *_: False, **BY_AUTOGRAD)
    for p, q in zip(found.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    assert metrics.keys() == others.keys()
    for name, value in metrics.items():
        torch.testing.assert_close(value, others[name], rtol=1e-4, atol=1e-5)
        assert not value.requires_grad


@pytest.mark.parametrize("other", [{"activation": "silu"}, {"layer_norm": True}], ids=str)
def test_other_nets_take_autograd(monkeypatch, make_batch, other: dict[str, Any]):
    updated(monkeypatch, make_batch, replace(CONFIG, **other), **BY_AUTOGRAD)


def test_float64_takes_autograd(float64, monkeypatch, make_batch):
    updated(monkeypatch, make_batch, CONFIG, **BY_AUTOGRAD)


@CLIPS
@TEMPERATURES
@pytest.mark.parametrize("size", [16, SIZE])
def test_a_run_is_the_same_alone_and_in_a_pack(
    monkeypatch, make_batch, of_run, clip, config: SacConfig, size: int
):
    """Check that a pack's runs equal single runs to the bit.

    The batch sizes fill whole SIMD vectors in the elementwise kernels.
    """
    for name, value in BY_HAND.items():
        monkeypatch.setattr(sac, name, value)
    config = replace(config, actor_grad_clip=clip or 1e9, critic_grad_clip=clip)
    pack, alone = agent_of(3, config), [agent_of(1, config) for _ in range(3)]
    for run, agent in enumerate(alone):
        for p, q in zip(agent.parameters(), pack.parameters(), strict=True):
            p.data.copy_(q.data[run : run + 1])
    for step in range(3):
        batch = make_batch(3, size, OBS, ACT, seed=step)
        draws = {name: x[:, :size] for name, x in noise_of(3, step).items()}
        pack.update(batch, batch.reward, draws)
        for run, agent in enumerate(alone):
            own = of_run(batch, run)
            agent.update(own, own.reward, {n: x[run : run + 1] for n, x in draws.items()})
    for run, agent in enumerate(alone):
        for (name, p), q in zip(pack.named_parameters(), agent.parameters(), strict=True):
            assert torch.equal(p[run], q[0]), name


def test_updates_are_deterministic(monkeypatch, make_batch):
    first, second = (updated(monkeypatch, make_batch, CONFIG)[0] for _ in range(2))
    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(p, q)
