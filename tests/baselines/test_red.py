"""RED*: NGT's potential, trained with only the expert's term.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from baselines.red import Red
from ngt.experience.demos import DemoSet
from ngt.experience.replay import Batch
from ngt.potential import Potential, PotentialConfig
from ngt.reward import Spec

OBS, ACT, BATCH = 5, 2, 16
PAIRINGS = ["huber", "mse_softmax", "hl_gauss"]
MODES = ["state-action", "state-state", "state-only"]


def build(
    seeds: Sequence[int] = (1,),
    mode: Any = "state-action",
    cls: type[Potential] = Red,
    **options: Any,
) -> Potential:
    config = PotentialConfig(**{"hidden": (32, 32), "m": 8, **options})
    return cls(config, Spec(OBS, ACT, mode, BATCH, seeds, 200, 4, 0.99))


def plain_h(model: Potential, x: np.ndarray) -> float:
    """Return the pairing loss of one input in run 0; HL-Gauss uses the expert's width."""
    c, outs = model.config, []
    for net in (model.predictor, model.prior):
        y = x
        for depth, layer in enumerate(net.layers):
            y = y @ layer.matrix().detach()[0].numpy() + layer.bias.detach()[0, 0].numpy()
            if depth < len(net.layers) - 1:
                y = np.where(y > 0, y, c.leak * y)
        outs.append(np.tanh(y))
    f, t = 5.0 * outs[0], (1.0 if c.pairing == "hl_gauss" else 5.0) * outs[1]
    if c.pairing == "huber":
        return sum(e * e / 2 if e <= 1 else e - 0.5 for e in abs(f - t)) / c.m
    if c.pairing == "mse_softmax":
        return float(((np.exp(f) / np.exp(f).sum() - np.exp(t) / np.exp(t).sum()) ** 2).sum())
    edges, total = np.linspace(-1, 1, 22), 0.0
    for unit in range(c.m):
        logits = f[unit :: c.m]  # the layout is bin-major
        z = np.array([math.erf((e - t[unit]) / (math.sqrt(2) * 0.25)) for e in edges])
        mass = np.diff(z) / (z[-1] - z[0] + 1e-6)
        total -= float((mass * (logits - math.log(np.exp(logits).sum()))).sum())
    return total / c.m


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_loss_is_the_mean_of_h_over_the_expert_by_plain_loops(
    float64: None, make_batch: Callable[..., Batch], pairing: str
) -> None:
    model = build(pairing=pairing, m=3, hidden=(6, 5))
    for i, p in enumerate(model.predictor.parameters()):
        p.data += 0.2 * torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
    expert = make_batch(1, 7, OBS, ACT, scale=3.0)
    loss = model.loss(make_batch(1, 4, OBS, ACT, seed=1), expert)
    by_hand = sum(plain_h(model, x) for x in model.inputs(expert)[0].numpy()) / 7
    assert loss.shape == (1,)
    assert loss.item() == pytest.approx(by_hand, rel=1e-9)
    assert model.metrics["h_expert"].item() == pytest.approx(by_hand, rel=1e-9)
    assert not model.metrics["h_expert"].requires_grad


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_agents_batch_has_no_influence(make_batch: Callable[..., Batch], pairing: str) -> None:
    """Check that even NaN in the agent's batch leaves loss, gradient and training unchanged."""
    expert, agent = make_batch(1, BATCH, OBS, ACT), make_batch(1, BATCH, OBS, ACT, seed=1)
    broken = Batch(*(torch.full_like(field, math.nan) for field in agent))
    results = []
    for other in (agent, broken):
        model = build(pairing=pairing)
        loss = model.loss(other, expert)
        loss.sum().backward()
        grads = [p.grad.clone() for p in model.predictor.parameters() if p.grad is not None]
        for _ in range(3):
            model.update(other, expert)
        results.append([loss.detach(), *grads, *model.state_dict().values(), model.reward(agent)])
    assert len(results[0]) > 12
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_hl_gauss_uses_the_experts_width_alone(make_batch: Callable[..., Batch]) -> None:
    batch = make_batch(1, BATCH, OBS, ACT)

    def loss(**widths: float) -> Tensor:
        return build(pairing="hl_gauss", **widths).loss(batch, batch).detach()

    assert torch.equal(loss(sigma_agent=0.9), loss())
    assert not torch.isclose(loss(sigma_expert=0.9), loss())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_learning_lowers_h_on_the_expert_below_unseen_data(
    make_batch: Callable[..., Batch], pairing: str, mode: str
) -> None:
    model = build((1, 2), mode=mode, pairing=pairing, scaling="none")
    expert = make_batch(2, BATCH, OBS, ACT)
    expert = expert._replace(obs=expert.obs + 1.0, next_obs=expert.next_obs + 1.0)
    unseen = make_batch(2, BATCH, OBS, ACT, seed=1, scale=3.0)
    first = model.loss(unseen, expert).detach()
    for _ in range(150):
        model.update(unseen, expert)
    h_expert, h_unseen = (
        model.potential(model.inputs(b), "expert").mean(dim=1).detach() for b in (expert, unseen)
    )
    assert (h_expert < first).all() and (h_expert < h_unseen).all()
    assert (model.reward(expert).mean(dim=1) > model.reward(unseen).mean(dim=1)).all()
    if pairing != "hl_gauss":  # hl_gauss's minimum is the targets' entropy, not 0
        assert (h_expert < 0.1 * first).all() and (h_expert < 0.2 * h_unseen).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_reward_is_ngts(make_batch: Callable[..., Batch], pairing: str, mode: str) -> None:
    batch, options = make_batch(2, BATCH, OBS, ACT), {"pairing": pairing}
    red, ngt = (build((1, 2), mode, cls, **options) for cls in (Red, Potential))
    for (name, p), q in zip(red.state_dict().items(), ngt.state_dict().values(), strict=True):
        assert torch.equal(p, q), f"{name} differs at the start"
    assert torch.equal(red.reward(batch), ngt.reward(batch))
    red.update(batch, batch)
    ngt.load_state_dict(red.state_dict())
    assert torch.equal(red.reward(batch), ngt.reward(batch))
    assert torch.equal(red.score(batch), ngt.score(batch))


def test_the_prior_stays_and_the_predictor_keeps_its_slope(
    make_batch: Callable[..., Batch],
) -> None:
    model, expert = build(), make_batch(1, BATCH, OBS, ACT)
    before = [p.clone() for p in model.prior.parameters()]
    start = [p.detach().clone() for p in model.predictor.parameters()]
    for _ in range(200):
        model.update(expert, expert)
    assert all(torch.equal(p, q) for p, q in zip(before, model.prior.parameters(), strict=True))
    assert not any(
        torch.equal(p, q) for p, q in zip(start, model.predictor.parameters(), strict=True)
    )
    assert model.predictor.lipschitz().item() < 1.2


def trained(seeds: Sequence[int], sizes: Sequence[int], pairing: str) -> list[Tensor]:
    """Train for 30 updates on each run's own demonstrations; return weights and rewards."""

    def own(seed: int, size: int) -> Batch:
        g = torch.Generator().manual_seed(seed)
        obs, action = torch.randn(1, size, OBS, generator=g), torch.rand(1, size, ACT, generator=g)
        flat = torch.zeros(1, size)
        return Batch(obs, action, obs, flat, flat)

    demos = DemoSet([own(*pair) for pair in zip(seeds, sizes, strict=True)])
    model = build(seeds, pairing=pairing)
    for step in range(30):
        rngs = [np.random.default_rng([seed, step]) for seed in seeds]
        index = torch.from_numpy(np.stack([r.integers(0, 1 << 48, BATCH) for r in rngs]))
        model.update(demos.sample(index), demos.sample(index))
    reward = model.reward(demos.sample(index))
    return [*(p.detach() for p in model.parameters()), reward]


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_pack_is_its_runs_side_by_side(pairing: str) -> None:
    """Compare a pack with its runs alone, whose demonstrations have 1, 10 and 40 transitions."""
    seeds, sizes = (3, 1, 2), (1, 10, 40)
    pack = trained(seeds, sizes, pairing)
    for run, pair in enumerate(zip(seeds, sizes, strict=True)):
        alone = trained([pair[0]], [pair[1]], pairing)
        for p, q in zip(pack[:-1], alone[:-1], strict=True):
            torch.testing.assert_close(p[run], q[0], rtol=0, atol=1e-4)
        if pair[1] > 1:  # with a single transition, the scaled reward is only rounding error
            torch.testing.assert_close(pack[-1][run], alone[-1][0], rtol=0, atol=0.02)
    assert not torch.isclose(pack[0][0], pack[0][1]).all()


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_raw_inputs_and_a_single_transition_stay_finite(
    make_batch: Callable[..., Batch], pairing: str
) -> None:
    model, agent = build(pairing=pairing), make_batch(1, BATCH, OBS, ACT, scale=1500.0)
    one = Batch(*(field[:, :1].expand_as(field) for field in agent))
    for _ in range(20):
        model.update(agent, one)
    for batch in (agent, one):
        assert model.reward(batch).isfinite().all()
    assert all(p.isfinite().all() for p in model.parameters())
