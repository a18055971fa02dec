"""Tests of W-DAC: loss (against plain loops), sign, offset, slope, packs and bad input.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from baselines.wdac import Wdac
from ngt.agent.streams import Streams
from ngt.experience.demos import DemoSet
from ngt.experience.replay import Batch
from ngt.reward import Spec
from tests.draws import rows

OBS, ACT, BATCH = 3, 2, 8
MODES = ["state-action", "state-state", "state-only"]


def build(
    seeds: Sequence[int] = (1,),
    mode: Any = "state-action",
    obs=OBS,
    act=ACT,
    batch=BATCH,
    **options: Any,
) -> Wdac:
    config = Wdac.Config(**{"hidden": (16, 16), **options})
    model = Wdac(config, Spec(obs, act, mode, batch, seeds, 100, 4, 0.9))
    model.noise = Streams(seeds, model.draws()).next()
    return model


def batch_of(x: Tensor, obs: int = OBS) -> Batch:
    """Split x (R, B, obs + act) into non-terminal transitions whose next_obs equals obs."""
    return Batch(x[..., :obs], x[..., obs:], x[..., :obs], 0.0 * x[..., 0], 0.0 * x[..., 0])


def output(model: Wdac, run: int, x: np.ndarray) -> float:
    """Return the critic's value D(x) for one input x of a run, computed by hand."""
    for depth, layer in enumerate(model.net.layers):
        x = x @ layer.weight[run].detach().numpy() + layer.bias[run, 0].detach().numpy()
        if depth < len(model.net.layers) - 1:
            x = np.where(x > 0.0, x, model.config.leak * x)
    return float(x[0])


def slope(model: Wdac, run: int, x: np.ndarray, step: float = 1e-6) -> float:
    """Return |grad D(x)| for one input x by central differences.

    These differences are exact where D is linear.
    """
    ends = [[output(model, run, x + s * unit) for s in (step, -step)] for unit in np.eye(len(x))]
    return float(np.linalg.norm([(up - down) / (2.0 * step) for up, down in ends]))


@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_loss_equals_plain_loops(float64, make_batch, mode, one_sided, absorbing):
    model = build(
        (1, 2), mode, one_sided=one_sided, absorbing=absorbing, penalty=4.0, hidden=(6, 5), leak=0.2
    )
    for i, p in enumerate(model.net.parameters()):
        p.data += 0.3 * rows(*p.shape, seed=i)
    agent, expert = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    got = model.loss(agent, expert)
    x_agent, x_expert = (x.numpy() for x in model.pair(agent, expert))
    for run in range(2):
        gap = penalty = 0.0
        for i in range(BATCH):
            a, e = x_agent[run, i], x_expert[run, i]
            gap += (output(model, run, e) - output(model, run, a)) / BATCH
            epsilon = float(model.noise["epsilon"][run, i])
            excess = slope(model, run, epsilon * e + (1.0 - epsilon) * a) - 1.0
            penalty += (max(excess, 0.0) if one_sided else excess) ** 2 / BATCH
        assert got[run].item() == pytest.approx(4.0 * penalty - gap, rel=1e-6)
        assert model.metrics["wasserstein"][run].item() == pytest.approx(gap, rel=1e-9)
    assert not model.metrics["wasserstein"].requires_grad


@pytest.mark.parametrize("mode", MODES)
def test_reward_is_the_critics_value(float64, make_batch, mode):
    batch, model = make_batch(2, BATCH, OBS, ACT), build((1, 2), mode)
    reward, x = model.reward(batch), model.inputs(batch)
    for run in range(2):
        expected = [output(model, run, row.numpy()) for row in x[run]]
        assert reward[run].tolist() == pytest.approx(expected, rel=1e-10)
    assert torch.equal(model.score(batch), reward) and not reward.requires_grad


@pytest.mark.parametrize("shift", [-100.0, 3.0, 1e4])
def test_loss_does_not_change_with_a_shift_and_the_reward_does(float64, make_batch, shift: float):
    agent, expert = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    model = build((1, 2))
    loss, reward = model.loss(agent, expert).detach(), model.reward(agent)
    model.net.layers[-1].bias.data += shift
    torch.testing.assert_close(model.loss(agent, expert).detach(), loss)
    torch.testing.assert_close(model.reward(agent), reward + shift)
    model.loss(agent, expert).sum().backward()
    assert model.net.layers[-1].bias.grad.abs().max() < 1e-15, (
        "the loss must not constrain the critic's offset"
    )


@pytest.mark.parametrize("two_sides", [1.0, 3.0])
def test_it_finds_the_slope_between_two_points(two_sides: float):
    """Train on one agent point and one expert point at distance d.

    The optimal slope s maximises s d - 10 (s - 1)^2, so s = 1 + d / 20.
    """
    model = build((1,), "state-only", obs=1, lr=3e-3, batch=64, hidden=(32, 32))
    streams = Streams((1,), model.draws())
    agent, expert = (
        batch_of(torch.full((1, 64, 1), v), 1) for v in (-two_sides / 2, two_sides / 2)
    )
    for _ in range(400):
        model.noise = streams.next()
        model.update(agent, expert)
    gap = model.metrics["wasserstein"].item()
    assert gap == pytest.approx(two_sides * (1.0 + two_sides / 20.0), rel=0.02)
    low, high = model.value(torch.tensor([[[-two_sides / 2], [two_sides / 2]]]))[0].tolist()
    assert high > low, "the expert must have the higher value"


def clusters(step: int, seeds: Sequence[int], size: int = BATCH) -> tuple[Batch, Batch]:
    """Return an agent batch and an expert batch, with different rows in each run.

    The means of the two batches differ by 1 in each dimension.
    """
    x = torch.cat([rows(2, size, OBS + ACT, seed=100 * s + step)[None] for s in seeds])
    return batch_of(0.5 * x[:, 0] - 0.5), batch_of(0.5 * x[:, 1] + 0.5)


@pytest.mark.parametrize("mode", MODES)
def test_it_separates_two_clusters(mode):
    seeds = (1, 2)
    model = build(seeds, mode, lr=3e-3)
    streams = Streams(seeds, model.draws())
    for step in range(150):
        model.noise = streams.next()
        model.update(*clusters(step, seeds))
    agent, expert = clusters(10**6, seeds, 200)
    e, a = model.score(expert)[:, :, None], model.score(agent)[:, None, :]
    assert ((e > a).float().mean(dim=(1, 2)) > 0.95).all()
    dims = {"state-action": OBS + ACT, "state-state": 2 * OBS, "state-only": OBS}[mode]
    gap = model.reward(expert).mean(dim=1) - model.reward(agent).mean(dim=1)
    assert (gap > 0.8 * dims**0.5).all() and (gap < 1.5 * dims**0.5).all(), (
        "the slope must be near 1"
    )


@pytest.mark.parametrize("options", [{}, {"absorbing": True, "mode": "state-state"}], ids=str)
def test_a_pack_is_its_runs_side_by_side(float64, train_on_own_data, options):
    seeds = (3, 1, 2)
    pack = train_on_own_data(build(seeds, **options), 60, torch.float64)
    for run, seed in enumerate(seeds):
        alone = train_on_own_data(build((seed,), **options), 60, torch.float64)
        for p, q in zip(pack.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(p[run], q[0], rtol=0.0, atol=1e-9)
        for name, value in pack.metrics.items():
            torch.testing.assert_close(value[run], alone.metrics[name][0])


@pytest.mark.parametrize("poison", [1e30, math.nan])
def test_a_broken_run_does_not_reach_the_others(broken_run_stays_alone, poison: float):
    broken_run_stays_alone(lambda: build((1, 2, 3)), BATCH, OBS, ACT, poison)


@pytest.mark.parametrize("one_sided", [False, True])
def test_raw_inputs_are_no_matter(raw_inputs_stay_finite, one_sided: bool):
    model = build((1, 2), obs=50, one_sided=one_sided, lr=1e-3)
    raw_inputs_stay_finite(model, BATCH, 50, ACT)


def test_a_demonstration_of_one_transition_will_do(make_batch):
    """Train on a single expert transition; from step 10 on, it also fills the agent's batch.

    From that step on, all interpolates between the two batches are equal.
    """
    model = build((1, 2))
    demos = DemoSet([make_batch(1, 1, OBS, ACT, seed=s) for s in (0, 1)])
    expert = demos.sample(torch.arange(BATCH).expand(2, BATCH))
    for step in range(20):
        model.update(make_batch(2, BATCH, OBS, ACT, seed=step) if step < 10 else expert, expert)
        assert model.metrics["reward_loss"].isfinite().all()
        assert model.reward(expert).isfinite().all()
    assert all(p.isfinite().all() for p in model.parameters())
