"""The interface of reward models: defaults, checked results, hidden rewards and the AUC.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from ngt.agent.sac import Sac
from ngt.agent.streams import Streams
from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.experience.replay import Batch, Replay, hide
from ngt.experience.vector import Step
from ngt.reward import Constant, EnvReward, NoParams, RewardModel, Spec
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.training.collector import Collector
from ngt.training.learner import Learner, Member
from ngt.training.model import rewards

SPEC = Spec(
    obs=3,
    act=2,
    mode="state-action",
    batch=8,
    seeds=(0, 1),
    time_limit=100,
    num_envs=4,
    gamma=0.99,
)


class Slope(RewardModel):
    """A toy model with one trainable weight per run and one parameter that is not trained."""

    Config = NoParams

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.weight = torch.nn.Parameter(torch.ones(len(spec.seeds)))
        self.fixed = torch.nn.Parameter(torch.ones(len(spec.seeds)), requires_grad=False)
        self.learn_with(0.1)

    def loss(self, agent, expert):
        gap = (agent.obs - expert.obs).mean(dim=(1, 2))
        return self.weight * self.fixed * gap


@pytest.mark.parametrize(
    ("mode", "width"), [("state-action", 5), ("state-state", 6), ("state-only", 3)]
)
def test_width_of_the_input(mode, width: int, make_batch):
    model = RewardModel(NoParams(), SPEC._replace(mode=mode))
    assert model.spec.input == width
    assert model.inputs(make_batch(2, 4, 3, 2)).shape == (2, 4, width)


def test_env_reward_is_what_was_stored(make_batch):
    model, batch = EnvReward(NoParams(), SPEC), make_batch(2, 4, 3, 2)
    assert not model.learns and not model.offline
    assert torch.equal(model.reward(batch), batch.reward)


def test_constant_reward(make_batch):
    model = Constant(NoParams(), SPEC)
    assert not model.learns
    assert torch.equal(model.reward(make_batch(2, 4, 3, 2)), torch.ones(2, 4))


def test_what_a_method_does_not_override(make_batch):
    model, batch = RewardModel(NoParams(), SPEC), make_batch(2, 4, 3, 2)
    assert model.draws() == {} and model.metrics == {}
    assert torch.equal(model.observe(batch, torch.zeros(2, 4)), batch.reward)
    assert model.feed(batch, hide(batch)) is batch and not model.feeds and not model.implicit
    assert model.prefill() is None and model.prefilled(model.config) == 0
    calls = (
        lambda: model.reward(batch),
        lambda: model.loss(batch, batch),
        lambda: model.update(batch, batch),
        lambda: model.fit(Sac.__new__(Sac), batch),
        lambda: model.critic_loss(Sac.__new__(Sac), batch, batch.obs),
    )
    for call in calls:
        with pytest.raises(UserError, match="has no method"):
            call()


class Odd(RewardModel):
    """A model with an arbitrary reward."""

    Config = NoParams
    value: Any

    def reward(self, batch):
        return self.value

    def loss(self, agent, expert):
        return self.value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (torch.zeros(2, 1), r"shape \(2, 1\), expected a tensor of shape \(2, 4\), torch.float32"),
        (
            torch.zeros(2, 4, 1),
            r"shape \(2, 4, 1\), .*; the first dimension indexes the pack's runs",
        ),
        (torch.zeros(()), r"shape \(\)"),
        (torch.zeros(2, 4, dtype=torch.float64), "torch.float64"),
        (torch.zeros(2, 4, dtype=torch.long), "torch.int64"),
        (torch.zeros(2, 4, requires_grad=True), "a tensor with a gradient, .* @torch.no_grad"),
        (1.0, "float"),
        (None, "NoneType"),
    ],
)
def test_what_a_method_returns_is_checked(make_batch, value, found):
    model, batch = Odd(NoParams(), SPEC), make_batch(2, 4, 3, 2)
    model.value = value
    for seam in ("reward", "score"):
        with pytest.raises(UserError, match=rf"^Odd.{seam}\(\): found {found}"):
            rewards(model, seam, batch)
    model.value = torch.ones(2, 4)
    assert rewards(model, "reward", batch) is model.value
    with pytest.raises(
        UserError, match=r"^Odd.loss\(\): found shape \(2, 4\), .* \(2,\), torch.fl"
    ):
        model.update(batch, batch)


def test_update_descends_the_loss_of_each_run(make_batch):
    model, agent = Slope(NoParams(), SPEC), make_batch(2, 4, 3, 2)
    shift = torch.tensor([1.0, -1.0])[:, None, None]
    expert = agent._replace(obs=agent.obs - shift)  # gaps are 1 and -1
    model.update(agent, expert)
    torch.testing.assert_close(model.metrics["reward_loss"], torch.tensor([1.0, -1.0]))
    assert not model.metrics["reward_loss"].requires_grad
    torch.testing.assert_close(model.weight.detach(), torch.tensor([0.9, 1.1]))  # Adam's first step
    assert model.fixed.eq(1.0).all()
    assert [p for g in model.optimiser.param_groups for p in g["params"]] == [model.weight]


# --- the env's own reward


class Peek(RewardModel):
    """A model that reads the env's reward in one place, named by `at`."""

    Config = NoParams
    at = ""

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.weight = torch.nn.Parameter(torch.ones(len(spec.seeds)))
        self.learn_with(0.1)
        if self.at == "demos":
            _ = spec.demos.sample(torch.zeros(2, 3, dtype=torch.long)).reward

    def look(self, where, batch):
        return batch.reward if self.at == where else torch.ones_like(batch.terminated)

    def loss(self, agent, expert):
        seen = self.look("agent", agent).mean(dim=1) + self.look("expert", expert).mean(dim=1)
        return self.weight * seen

    def reward(self, batch):
        return self.look("reward", batch)

    def score(self, batch):
        return self.look("score", batch)


class PeekAtStep(Peek):
    """A model that stores its own rewards, which it may read again."""

    def observe(self, transition, done):
        return self.look("observe", transition)


def peeking(make_batch, cls, at: str, uses: bool) -> None:
    """Train a model for two steps and one update, then read its diagnostics."""

    class Model(cls):
        uses_env_reward = uses

    Model.at = at
    module = ModuleType("peeking")
    module.Model = Model
    sys.modules["peeking"] = module
    train, sac = TrainConfig(batch=8, buffer=64, num_envs=4), SacConfig(hidden=(8,))
    cell = CellConfig("Pendulum-v1", "peek", "peeking:Model", train=train, sac=sac)
    members = [Member(Path(), {}, s, 1, make_batch(1, 5, 3, 1, seed=s)) for s in (0, 1)]
    learner = Learner(cell, members)
    replay = Replay(2, 64, 3, 1, envs=4)
    env = SimpleNamespace(task=get_task("Pendulum-v1"), num=8)
    explore = Streams((0, 1), Sac.exploration(4, 1), "cpu")
    collector = Collector(env, learner, replay, explore)
    rng = np.random.default_rng(0)
    obs, no = rng.normal(size=(8, 3)).astype(np.float32), np.zeros(8, bool)
    for _ in range(2):
        collector.act()
        collector.store(Step(obs, obs, rng.normal(size=8), no, no))
    learner.update(replay)
    learner.drain()


@pytest.mark.parametrize("at", ["demos", "agent", "expert", "reward", "score"])
def test_a_model_that_reads_the_envs_reward_must_declare_it(make_batch, at):
    with pytest.raises(UserError, match="must declare `uses_env_reward = True`"):
        peeking(make_batch, Peek, at, uses=False)
    peeking(make_batch, Peek, at, uses=True)


@pytest.mark.parametrize("at", ["demos", "expert", "observe", "score"])
def test_a_model_that_stores_its_own_reward_must_declare_the_envs_too(make_batch, at):
    with pytest.raises(UserError, match="must declare `uses_env_reward = True`"):
        peeking(make_batch, PeekAtStep, at, uses=False)
    peeking(make_batch, PeekAtStep, at, uses=True)


@pytest.mark.parametrize("at", ["agent", "reward"])
def test_a_model_reads_the_rewards_that_it_stored(make_batch, at):
    peeking(make_batch, PeekAtStep, at, uses=False)


def test_a_hidden_reward_cannot_be_reached_by_unpacking(make_batch):
    batch = make_batch(2, 4, 3, 2)
    *_, reward, terminated = hide(batch)
    assert reward.isnan().all() and torch.equal(terminated, batch.terminated)
    again = hide(batch)._replace(obs=batch.obs + 1.0)
    with pytest.raises(UserError, match="uses_env_reward"):
        _ = again.reward


# --- AUC of the reward as a classifier of expert and agent


class Stored(EnvReward):
    """A model that returns the stored reward and writes a metric."""

    def reward(self, batch):
        self.metrics = {**self.metrics, "last": batch.reward[:, 0]}
        return batch.reward


def auc(expert, agent):
    """Return the AUC that the learner reports for these rewards."""

    def batch(reward):
        wide = reward[..., None]
        return Batch(wide, wide, wide, reward, reward)

    model = Stored(NoParams(), SPEC)
    model.metrics["last"] = torch.zeros(2)
    value = Learner.diagnostics(SimpleNamespace(model=model), batch(expert), batch(agent))["auc"]
    assert model.metrics["last"].tolist() == [0.0, 0.0], "metrics for train.csv must not change"
    return value


def test_auc_counts_pairs_and_half_of_the_ties():
    rng = np.random.default_rng(0)
    expert = rng.integers(0, 6, (2, 9)).astype(np.float32)
    agent = rng.integers(0, 5, (2, 14)).astype(np.float32)
    got = auc(torch.from_numpy(expert), torch.from_numpy(agent))
    for run in range(2):
        wins = sum((e > a) + 0.5 * (e == a) for e in expert[run] for a in agent[run])
        assert got[run].item() == pytest.approx(wins / (9 * 14), abs=1e-6)


def test_auc_at_its_ends():
    ordered = torch.arange(8.0).expand(2, 8)
    assert auc(ordered + 10.0, ordered).tolist() == [1.0, 1.0]
    assert auc(ordered - 10.0, ordered).tolist() == [0.0, 0.0]
    assert auc(ordered, ordered).tolist() == pytest.approx([0.5, 0.5])
    assert auc(torch.ones(2, 4), torch.ones(2, 9)).tolist() == pytest.approx([0.5, 0.5])
