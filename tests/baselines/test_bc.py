"""Behavioural cloning: loss, learned policy and packs.

A pack is a group of runs trained together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from baselines.bc import Bc
from ngt.agent.sac import Actor, Sac
from ngt.agent.streams import Streams
from ngt.errors import UserError
from ngt.experience.replay import Batch
from ngt.reward import NoParams, RewardModel, Spec
from ngt.settings.config import SacConfig

OBS, ACT, BATCH = 3, 2, 32
SAC = SacConfig(hidden=(16, 16))


def build(seeds: Sequence[int], lr: float = 3e-3) -> tuple[Bc, Sac, Streams]:
    """Return a model, an agent with separate nets per run, and the streams of random draws."""
    model = Bc(NoParams(), Spec(OBS, ACT, "state-action", BATCH, seeds, 200, 4, 0.99))
    return model, Sac(OBS, ACT, replace(SAC, lr_actor=lr), seeds), Streams(seeds, model.draws())


def expert_of(obs: torch.Tensor) -> torch.Tensor:
    """Return the actions of a squashed linear policy."""
    weight = torch.tensor([[0.9, -0.4], [0.2, 0.7], [-0.6, 0.3]])
    return torch.tanh(obs @ weight + 0.1)


def pairs(seeds: Sequence[int], step: int, size: int = BATCH) -> Batch:
    """Return a batch of expert transitions for each run, drawn from that run's seed."""
    obs = torch.stack(
        [
            torch.from_numpy(np.random.default_rng([seed, step]).normal(size=(size, OBS)))
            for seed in seeds
        ]
    ).float()
    flat = torch.zeros(obs.shape[:2])
    return Batch(obs, expert_of(obs), obs, flat, flat)


def fit(seeds: Sequence[int], steps: int, lr: float = 3e-3) -> tuple[Bc, Actor]:
    model, agent, streams = build(seeds, lr)
    for step in range(steps):
        model.noise = streams.next()
        model.fit(agent, pairs(seeds, step))
    return model, agent.actor


def test_it_is_offline_and_names_its_draw() -> None:
    model, _, streams = build([0, 1])
    assert issubclass(Bc, RewardModel) and Bc.offline
    assert list(model.draws()) == ["bc_noise"]
    assert streams.next()["bc_noise"].shape == (2, BATCH, ACT)
    assert list(model.parameters()) == [], "BC must train nothing but the actor"
    with pytest.raises(UserError, match="Bc has no method 'reward'"):
        model.reward(pairs([0, 1], 0))


def test_loss_against_float64_by_hand(make_batch: Callable[..., Batch]) -> None:
    model, agent, _ = build([0, 1])
    actor = agent.actor
    batch = make_batch(2, 7, OBS, ACT)
    noise = torch.randn(2, 7, ACT, generator=torch.Generator().manual_seed(3))
    model.noise = {"bc_noise": noise}
    loss = model.imitation_loss(actor, batch)
    assert loss.shape == (2,)
    for run in (0, 1):
        x = batch.obs[run].double().numpy()
        layers = [
            (layer.weight[run].detach().double().numpy(), layer.bias[run].detach().double().numpy())
            for layer in actor.net.layers
        ]
        for weight, bias in layers[:-1]:
            x = np.maximum(x @ weight + bias, 0.0)
        out = x @ layers[-1][0] + layers[-1][1]
        mean, raw = out[:, :ACT], out[:, ACT:]
        std = np.exp(-5.0 + 3.5 * (np.tanh(raw) + 1.0))
        action = np.tanh(mean + std * noise[run].double().numpy())
        total = 0.0
        for i in range(7):  # || a_theta(s) - a ||^2 / |A|, mean over the batch
            total += sum((action[i, j] - float(batch.action[run, i, j])) ** 2 for j in range(ACT))
        assert float(loss[run].detach()) == pytest.approx(total / ACT / 7, rel=1e-5)


def test_a_step_lowers_the_loss_of_the_same_batch_and_noise() -> None:
    model, agent, streams = build([0, 1], lr=1e-3)
    model.noise = streams.next()
    batch = pairs([0, 1], 0)
    losses = []
    for _ in range(20):
        model.fit(agent, batch)
        losses.append(model.metrics["bc_loss"])
    table = torch.stack(losses)
    assert not table.requires_grad
    assert (table.diff(dim=0) < 0).all()


def test_the_first_step_is_adams() -> None:
    """Check that Adam's first step moves every coordinate with a gradient by the learning rate."""
    model, agent, streams = build([0], lr=0.01)
    actor = agent.actor
    before = actor.net.layers[-1].bias.detach().clone()
    model.noise = streams.next()
    model.fit(agent, pairs([0], 0))
    step = (actor.net.layers[-1].bias.detach() - before).abs()
    assert torch.allclose(step, torch.full_like(step, 0.01), rtol=1e-3)


def test_it_clones_an_expert_and_its_std_falls_to_the_floor() -> None:
    untrained = build([0, 1])[1].actor
    model, actor = fit([0, 1], 600)
    test = pairs([0, 1], 10**6, 512)

    def told(net: Actor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            mean, log_std = net(test.obs)
            error = (torch.tanh(mean) - test.action).square().mean(dim=(1, 2))
        return error, log_std.mean(dim=(1, 2))

    start, start_std = told(untrained)
    error, log_std = told(actor)
    print(f"error of the mode {start.tolist()} -> {error.tolist()}, log-std {log_std.tolist()}")
    assert (error < 0.01).all() and (error < start / 20).all()
    assert (start_std > -2.5).all(), "log-std must start in the middle of its range"
    assert (log_std < -4.0).all() and (log_std > SAC.log_std_min).all()
    assert (model.metrics["bc_loss"] < 0.02).all()


def test_packed_equals_single() -> None:
    seeds = (3, 4, 5)
    _, pack = fit(seeds, 100)
    for run, seed in enumerate(seeds):
        _, alone = fit([seed], 100)
        for p, q in zip(pack.parameters(), alone.parameters(), strict=True):
            assert torch.allclose(p[run], q[0], rtol=0.0, atol=1e-6)
    first = pack.net.layers[0].weight
    assert not torch.equal(first[0], first[1])
