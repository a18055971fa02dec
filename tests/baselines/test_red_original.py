"""RED: fit and reward compared with plain loops, packs, and rewards of near and far inputs.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from baselines.red_original import RedOriginal, RedOriginalConfig
from ngt.agent.streams import torch_generator
from ngt.experience.demos import DemoSet, load, subsample
from ngt.experience.replay import Batch
from ngt.reward import Spec

OBS, ACT = 3, 2
ENV = "HalfCheetah-v4"
FILE = Path(__file__).resolve().parents[2] / "data" / ENV / "demos.npz"


def rows(size: int, seed: int) -> Batch:
    g = torch.Generator().manual_seed(seed)
    obs, action = torch.randn(1, size, OBS, generator=g), torch.randn(1, size, ACT, generator=g)
    zero = torch.zeros(1, size)
    return Batch(obs, torch.tanh(action), obs, zero, zero)


def build(sizes: dict[int, int], mode: Any = "state-action", **options: Any) -> RedOriginal:
    """Return a model with one run per seed; `sizes` maps a seed to its number of transitions."""
    config = RedOriginalConfig(
        **{"hidden": (16,), "prior": (16, 16), "outputs": 8, "temperature": 100.0, **options}
    )
    demos = DemoSet([rows(size, seed) for seed, size in sizes.items()])
    return RedOriginal(config, Spec(OBS, ACT, mode, 8, [*sizes], 100, 4, 0.99, demos))


def passed(net, run: int, x: np.ndarray, leak: float = 0.2) -> np.ndarray:
    for depth, layer in enumerate(net.layers):
        x = x @ layer.weight[run].detach().numpy() + layer.bias[run, 0].detach().numpy()
        if depth < len(net.layers) - 1:
            x = np.where(x > 0.0, x, leak * x)
    return x


def given(model: RedOriginal, batch: Batch) -> torch.Tensor:
    return model.observe(batch, torch.zeros_like(batch.terminated) > 0)


def test_the_reward_equals_a_plain_loop(float64: None) -> None:
    model, batch = build({1: 5}, epochs=1), rows(7, 9)
    reward = given(model, batch)
    for i in range(7):
        x = torch.cat([batch.obs[0, i], batch.action[0, i]]).numpy()
        gap = passed(model.predictor, 0, x) - passed(model.prior, 0, x)
        assert float(reward[0, i]) == pytest.approx(math.exp(-100.0 * np.mean(gap**2)), rel=1e-9)


def test_the_fit_is_adam_on_shuffled_batches(float64: None) -> None:
    """Compare two epochs, in batches of four and three rows, with torch's Adam on the same rows."""
    model = build({1: 7}, epochs=2, batch=4)
    fresh = build({1: 7}, epochs=1, lr=0.0)
    x = torch.cat([rows(7, 1).obs, rows(7, 1).action], dim=-1)
    order, optimiser = torch_generator(1, "init", "order"), None
    net = fresh.predictor.requires_grad_(True)
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(2):
        for part in torch.randperm(7, generator=order).split(4):
            optimiser.zero_grad()
            (net(x[:, part]) - model.prior(x[:, part])).square().mean().backward()
            optimiser.step()
    for ours, theirs in zip(model.predictor.parameters(), net.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_run_of_a_pack_is_the_run_alone() -> None:
    """Check that a pack's runs get the bits of single runs, although their data sizes differ."""
    sizes = {1: 5, 2: 40, 3: 17}
    pack = build(sizes, epochs=3)
    for place, (seed, size) in enumerate(sizes.items()):
        alone = build({seed: size}, epochs=3)
        for ours, theirs in zip(pack.parameters(), alone.parameters(), strict=True):
            assert torch.equal(ours[place], theirs[0])


def test_the_expert_is_worth_more_and_nothing_learns_later() -> None:
    model = build({1: 30}, epochs=300, temperature=30.0)
    near, far = given(model, rows(30, 1)), given(model, rows(30, 5))
    assert (near > 0.5).float().mean() > 0.8
    assert near.mean() > 1.2 * far.mean()
    assert not any(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("mode", ["state-action", "state-state", "state-only"])
def test_a_higher_temperature_lowers_rewards(mode: Any) -> None:
    low, high = (build({1: 9}, mode, epochs=1, temperature=t) for t in (1.0, 9.0))
    batch = rows(6, 2)
    assert torch.allclose(given(high, batch), given(low, batch) ** 9, rtol=1e-4)


def test_without_a_temperature_the_experts_mean_error_is_worth_nine_tenths() -> None:
    """Check that each run's reward is 0.9 at the mean error of its own demonstrations."""
    sizes = {1: 5, 2: 40}
    model = build(sizes, epochs=3, temperature=None)
    for place, (seed, size) in enumerate(sizes.items()):
        error = build({seed: size}, epochs=3).error(torch.cat(rows(size, seed)[:2], dim=-1)).mean()
        worth = torch.exp(-model.temperature[place, 0] * error)
        assert float(worth) == pytest.approx(0.9, rel=1e-5)


@pytest.mark.long
def test_rewards_at_the_temperature_of_the_public_code() -> None:
    """Check the docstring's numbers for HalfCheetah-v4 after 25 200 steps; this takes a minute.

    Almost all of the mean reward comes from the few transitions with the smallest errors.
    """
    demos = DemoSet([subsample(load(FILE, ENV), 4, 20, 0, where=str(FILE))])
    config = RedOriginalConfig((20,), (20,) * 4, temperature=25_000.0, epochs=3600)
    model = RedOriginal(config, Spec(17, 6, "state-action", 256, [0], 1000, 4, 0.99, demos))
    error = model.error(model.inputs(demos.data))[0].double()
    reward = torch.exp(-25_000.0 * error)
    assert float(error.mean()) == pytest.approx(0.0027, rel=0.1)
    assert 1e-9 < float(reward.mean()) < 1e-5
    assert float(torch.exp(-25_000.0 * error.mean())) < 1e-25 and float(reward.median()) < 1e-20
