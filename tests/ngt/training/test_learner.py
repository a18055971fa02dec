"""Tests of the learner: draws, batches, losses that methods supply, and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from ngt.agent.sac import Sac
from ngt.agent.streams import Draw
from ngt.bench.cases import random_batch
from ngt.errors import UserError
from ngt.experience.replay import Batch, Replay
from ngt.reward import NoParams, RewardModel, Spec
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.settings.resolve import load_model
from ngt.settings.schema import parse
from ngt.training.learner import Learner, Member, rank_correlation, run_seed
from ngt.training.model import build_model


class Named(RewardModel):
    Config = NoParams
    learns = False
    name = "mine"

    def draws(self) -> dict[str, Draw]:
        return {self.name: Draw("normal", (2,))}


@pytest.mark.parametrize("name", ["noise", "next_noise", "sac_index", "explore", "uniform"])
def test_a_draw_of_the_suites_own_name_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = CellConfig(env="Pendulum-v1", method="m", model=f"{__name__}:Named")
    members = [Member(Path(), {}, 0, 1, random_batch(1, 9, 3, 1))]
    assert "mine" in Learner(cell, members).streams.next()
    monkeypatch.setattr(Named, "name", name)
    with pytest.raises(UserError, match=rf"methods.m: draws\(\) has '{name}', .* e.g. m_{name}"):
        Learner(cell, members)


class Spy(RewardModel):
    """A reward model that records its batches. Its reward is the sum of the observation."""

    uses_env_reward = True  # so that whole batches can be compared

    Config = NoParams

    def __init__(self, config: NoParams, spec: Spec) -> None:
        super().__init__(config, spec)
        self.seen: dict[str, Any] = {}

    def update(self, agent: Batch, expert: Batch) -> None:
        self.seen |= {"agent": agent, "expert": expert}

    def reward(self, batch: Batch) -> Tensor:
        return batch.obs.sum(dim=-1)

    def fit(self, agent: Sac, expert: Batch) -> None:
        self.seen["fit"] = expert


class OfflineSpy(Spy):
    offline = True


def same(got: Batch, expected: Batch) -> None:
    for name in Batch._fields:
        assert torch.equal(getattr(got, name), getattr(expected, name)), name


def spied(
    monkeypatch: pytest.MonkeyPatch, model: str, normalise: bool
) -> tuple[Learner, dict[str, Tensor], dict[str, Any]]:
    """Return a learner of two runs, its next draws, and a dict that records its agent's updates."""
    cell = CellConfig(
        env="Pendulum-v1",
        method="m",
        model=f"{__name__}:{model}",
        normalise_obs=normalise,
        train=TrainConfig(batch=16),
    )
    members = [Member(Path(), {}, seed, 1, random_batch(1, 9, 3, 1)) for seed in (0, 1)]
    learner, twin = Learner(cell, members), Learner(cell, members)
    if learner.normaliser is not None:
        learner.normaliser.update(3.0 + 2.0 * random_batch(2, 50, 3, 1).obs)
    given: dict[str, Any] = {}

    def update(batch: Batch, reward: Tensor, draws: Mapping[str, Tensor]) -> dict[str, Tensor]:
        given.update(batch=batch, reward=reward, draws=draws)
        return {}

    monkeypatch.setattr(learner.agent, "update", update)
    return learner, twin.streams.next(), given


def as_seen(learner: Learner, batch: Batch) -> Batch:
    """Return a batch as the nets see it, with normalised observations."""
    see = learner.normaliser or (lambda obs: obs)
    return batch._replace(obs=see(batch.obs), next_obs=see(batch.next_obs))


@pytest.mark.parametrize("normalise", [False, True])
def test_each_batch_is_drawn_by_its_own_indices(
    monkeypatch: pytest.MonkeyPatch, normalise: bool
) -> None:
    """Check that the agent and the reward model learn from different batches."""
    learner, draws, given = spied(monkeypatch, "Spy", normalise)
    replay = Replay(2, 40, 3, 1)
    replay.add(random_batch(2, 40, 3, 1))
    learner.update(replay)
    assert learner.demos is not None
    own = as_seen(learner, replay.sample(draws["sac_index"]))
    agent = as_seen(learner, replay.sample(draws["agent_index"]))
    expert = as_seen(learner, learner.demos.sample(draws["expert_index"]))
    seen = learner.model.seen
    same(seen["agent"], agent)
    same(seen["expert"], expert)
    same(given["batch"], own)
    assert torch.equal(given["reward"], own.obs.sum(dim=-1)), (
        "the reward must be the model's, not the stored one"
    )
    assert torch.equal(given["draws"]["noise"], draws["noise"])
    assert learner.last is not None
    same(learner.last[0], expert)
    same(learner.last[1], agent)
    means = learner.drain()
    np.testing.assert_allclose(means["reward"], own.obs.sum(dim=-1).mean(dim=1), rtol=1e-5)


@pytest.mark.parametrize("normalise", [False, True])
def test_an_offline_method_sees_the_experts_batch(
    monkeypatch: pytest.MonkeyPatch, normalise: bool
) -> None:
    learner, draws, _ = spied(monkeypatch, "OfflineSpy", normalise)
    learner.fit()
    assert learner.demos is not None
    same(learner.model.seen["fit"], as_seen(learner, learner.demos.sample(draws["expert_index"])))


class Feeder(Spy):
    """A model that gives the agent the expert's batch in reverse order."""

    learns = False

    def __init__(self, config: NoParams, spec: Spec) -> None:
        super().__init__(config, spec)
        self.weight = torch.nn.Parameter(torch.ones(len(spec.seeds)))
        self.learn_with(0.1)

    def feed(self, agent: Batch, expert: Batch) -> Batch:
        self.seen |= {"agent": agent, "expert": expert}
        return Batch(*(x.flip(1) for x in expert))


class Critical(Feeder):
    def critic_loss(self, agent: Sac, batch: Batch, noise: Tensor) -> Tensor:
        self.seen |= {"batch": batch, "noise": noise}
        return self.weight * agent.critic(batch.obs, batch.action).mean(dim=(1, 2))


@pytest.mark.parametrize("normalise", [False, True])
def test_a_method_may_choose_what_the_agent_learns_from(
    monkeypatch: pytest.MonkeyPatch, normalise: bool
) -> None:
    """Check that the method gets the agent's and the expert's batches as the nets see them."""
    learner, draws, given = spied(monkeypatch, "Feeder", normalise)
    replay = Replay(2, 40, 3, 1)
    replay.add(random_batch(2, 40, 3, 1))
    learner.update(replay)
    assert learner.demos is not None
    expert = as_seen(learner, learner.demos.sample(draws["expert_index"]))
    same(learner.model.seen["agent"], as_seen(learner, replay.sample(draws["sac_index"])))
    same(learner.model.seen["expert"], expert)
    same(given["batch"], Batch(*(x.flip(1) for x in expert)))
    assert torch.equal(given["reward"], expert.obs.flip(1).sum(dim=-1)), (
        "the reward must be the model's for that batch"
    )


def critical() -> tuple[Learner, dict[str, Tensor]]:
    """Return a learner after an update by the model's own critic loss, and the update's draws."""
    cell = CellConfig(
        env="Pendulum-v1", method="m", model=f"{__name__}:Critical", train=TrainConfig(batch=16)
    )
    members = [Member(Path(), {}, seed, 1, random_batch(1, 9, 3, 1)) for seed in (0, 1)]
    learner = Learner(cell, members)
    draws = Learner(cell, members).streams.next()
    replay = Replay(2, 40, 3, 1)
    replay.add(random_batch(2, 40, 3, 1))
    learner.update(replay)
    return learner, draws


def test_a_method_may_supply_the_critics_loss() -> None:
    """Check that critic and model descend the loss, and that the rest is updated as in SAC."""
    learner, draws = critical()
    seen, agent = learner.model.seen, learner.agent
    assert torch.equal(seen["noise"], draws["next_noise"])
    twin = Sac(3, 1, learner.cell.sac, [run_seed(learner.cell, m) for m in MEMBERS], half_range=2.0)
    loss = twin.critic(seen["batch"].obs, seen["batch"].action).mean(dim=(1, 2))
    twin.descend_critic(loss)
    twin.follow(seen["batch"].obs, draws["noise"])
    for (name, ours), theirs in zip(agent.named_parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours, theirs), name
    assert torch.allclose(learner.model.weight, torch.tensor(1.0) - 0.1 * loss.sign(), atol=1e-4)
    means = learner.drain()
    np.testing.assert_allclose(means["critic_loss"], loss.detach(), rtol=1e-5)
    assert "reward" not in means, "no reward must be reported"


MEMBERS = [Member(Path(), {}, seed, 1) for seed in (0, 1)]


@pytest.mark.parametrize("shape", [(), (2, 1)])
def test_a_critics_loss_of_another_shape_is_refused(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr(Critical, "critic_loss", lambda *_: torch.zeros(shape))
    with pytest.raises(UserError, match=r"Critical.critic_loss\(\): found shape"):
        critical()


def test_drained_means_are_of_the_updates_since(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, _, given = spied(monkeypatch, "Spy", normalise=False)
    replay = Replay(2, 40, 3, 1)
    replay.add(random_batch(2, 40, 3, 1))
    for updates in (2, 3):
        rewards = []
        for _ in range(updates):
            learner.update(replay)
            rewards.append(given["reward"].mean(dim=1))
        expected = torch.stack(rewards).mean(dim=0)
        np.testing.assert_allclose(learner.drain()["reward"], expected, rtol=1e-4)


def test_a_runs_seed_depends_on_every_part_of_its_key() -> None:
    cell = CellConfig(env="Pendulum-v1", method="m", model=f"{__name__}:Spy")
    member = Member(Path(), {}, 0, 1)
    seeds = [run_seed(cell, member)]
    for change in ({"env": "Reacher-v5"}, {"method": "n"}, {"mode": "state-only"}, {"rate": 3}):
        seeds.append(run_seed(replace(cell, **change), member))
    seeds += [run_seed(cell, replace(member, seed=1)), run_seed(cell, replace(member, demos=4))]
    assert len(set(seeds)) == len(seeds)
    assert run_seed(cell, replace(member, folder=Path("x"))) == seeds[0]


def test_padding_is_cut_or_added_when_runs_change_their_pack() -> None:
    """Move the masses of PWIL's atoms between packs whose largest runs have 9 and 4 atoms."""
    cell = CellConfig(
        env="Pendulum-v1", method="pwil", model="baselines.pwil:Pwil", sac=SacConfig(hidden=(4,))
    )
    few, many = (Member(Path(), {}, 0, 1, random_batch(1, n, 3, 1)) for n in (4, 9))

    def masses(learner: Learner) -> list[Tensor]:
        return [learner.state(run).tensors["model.mass"] for run in range(learner.runs)]

    pack = Learner(cell, [few, many])
    own = torch.rand(1, 4, 4), torch.rand(1, 4, 9)  # for the four envs of each run
    pack.model.mass.copy_(torch.cat([torch.nn.functional.pad(own[0], (0, 5)), own[1]]))
    first, second = pack.state(0), pack.state(1)
    alone = Learner(cell, [few])
    alone.restore([first])
    assert torch.equal(masses(alone)[0], own[0])
    other = Learner(cell, [many, few])
    other.restore([second, alone.state(0)])
    assert torch.equal(masses(other)[0], own[1])
    assert torch.equal(masses(other)[1], pack.model.mass[:1])
    with pytest.raises(ValueError, match=r"found shape \(1, 4, 9\), expected \(1, 4, 4\)"):
        alone.restore([second])


def test_the_model_is_built_with_the_cells_own_numbers() -> None:
    cell = CellConfig(
        env="Pendulum-v1",
        method="m",
        model=f"{__name__}:Spy",
        sac=SacConfig(gamma=0.5),
        train=TrainConfig(batch=16, num_envs=3),
    )
    spec = build_model(cell, [4, 5]).spec
    assert (spec.obs, spec.act, spec.batch, list(spec.seeds)) == (3, 1, 16, [4, 5])
    assert (spec.time_limit, spec.num_envs, spec.gamma) == (200, 3, 0.5)


# --- diagnostics


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 40)).round(1)  # with ties
    b = b + a
    got = rank_correlation(torch.from_numpy(a), torch.from_numpy(b))
    expected = [scipy.stats.spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_rank_correlation_at_its_ends() -> None:
    """Check that a monotone transform has correlation 1 or -1, and a constant 0, not NaN."""
    x = torch.arange(9.0).expand(2, 9)
    assert rank_correlation(x, x.exp()).tolist() == [1.0, 1.0]
    assert rank_correlation(x, -x).tolist() == [-1.0, -1.0]
    assert rank_correlation(x, torch.ones(2, 9)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "model", ["ngt.potential:Potential", "baselines.dac:Dac", "baselines.diffail:DiffAil"]
)
def test_no_number_depends_on_the_diagnostics(model: str) -> None:
    """Compare a learner that logs after each update with one that never logs.

    The two also get different env rewards.
    """
    cls = load_model(model, "m")
    params = asdict(parse(cls.Config, {"hidden": [8, 8]}, "m"))
    cell = CellConfig(
        "Pendulum-v1", "m", model, params, sac=SacConfig((8, 8)), train=TrainConfig(batch=16)
    )
    members = [Member(Path(), {}, seed, 1, random_batch(1, 9, 3, 1)) for seed in (0, 1)]
    learners = [Learner(cell, members) for _ in range(2)]
    taken = random_batch(2, 40, 3, 1)
    for learner, factor in zip(learners, (1.0, -3.0), strict=True):
        replay = Replay(2, 40, 3, 1)
        replay.add(taken._replace(reward=factor * taken.reward))
        for _ in range(4):
            learner.update(replay)
            if factor == 1.0:
                assert {"auc", "rank_correlation"} <= learner.drain().keys()
    first, second = ({**one.agent.state_dict(), **one.model.state_dict()} for one in learners)
    assert all(torch.equal(first[name], second[name]) for name in first)
