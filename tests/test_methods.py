"""The contract of a method, checked for each method that workflow/config/base.yaml names.

A method's own test file checks its numbers; this file checks what every method must do. A method
that is added to the config is checked without a change to this file.
A pack is a group of runs trained together.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ngt.experience.demos import DemoSet
from ngt.experience.envs import Task, get_task
from ngt.experience.replay import Batch, Replay, hide
from ngt.reward import RewardModel
from ngt.settings.config import MODES, CellConfig, Config
from ngt.settings.load import load
from ngt.settings.resolve import (
    distinct_methods,
    load_model,
    method_rate,
    model_params,
    resolve,
)
from ngt.training.learner import Learner, Member
from ngt.training.model import build_model, optimisers, shown
from ngt.training.trainer import Trainer

RUNS = (0, 1, 2)  # the seeds of a pack's runs
FALLS = "forward_kl"  # the form of reward that falls as the expert's density rises
SIZES = {0: 1, 1: 30, 2: 47}  # number of transitions in a run's demonstrations, by seed
UPDATES = 5  # number of updates that a pack and its runs alone are compared over

configs: Callable[[str], Config] = functools.cache(lambda scale: load({"scale": scale}))


def distinct_models(config: Config) -> tuple[str, ...]:
    """Return one method for each pair of model and params; other settings concern the trainer."""
    found: dict[str, str] = {}
    for name in distinct_methods(config):
        found.setdefault(repr(model_params(config, name, "")), name)
    return tuple(found.values())


METHODS = distinct_models(configs("paper"))
every_method = pytest.mark.parametrize("method", METHODS)
# Training takes seconds for each method, so `make long` tries those that only change settings.
MODELS = {name for name in METHODS if configs("paper").methods[name].model}
each_training = pytest.mark.parametrize(
    "method",
    [pytest.param(m, marks=() if m in MODELS else pytest.mark.long) for m in METHODS],
)


def class_of(method: str) -> type[RewardModel]:
    cls: type[RewardModel] = load_model(cell_of(method).model, method)
    return cls


def stores(cls: type[RewardModel]) -> bool:
    """Return True if the method computes and stores the reward when a step is taken."""
    return cls.observe is not RewardModel.observe


def implicit(cls: type[RewardModel]) -> bool:
    """Return True if the method supplies the critic's loss."""
    return cls.critic_loss is not RewardModel.critic_loss


def cell_of(
    method: str,
    env: str = "Pendulum-v1",
    mode: Any = "state-action",
    scale: str = "paper",
    **changes: Any,
) -> CellConfig:
    """Return the method's settings on an env (its cell), with small nets for the agent.

    At scale `test`, the method's own nets are also small.
    """
    config = configs(scale)
    cell = resolve(config, env, method, mode, method_rate(config, method) or 20)
    params = dict(cell.params)
    if scale == "test" and "hidden" in params:
        params["hidden"] = tuple(16 for _ in params["hidden"])
    return dataclasses.replace(
        cell,
        params=params,
        sac=dataclasses.replace(cell.sac, hidden=(16, 16)),
        train=dataclasses.replace(cell.train, batch=16, buffer=1000),
        **changes,
    )


# ---------------------------------------------------------------- a pack without envs

Make = Callable[[Task, int, int], Batch]  # (task, rows, seed) -> (1, rows, ·)


def plain(task: Task, rows: int, seed: int) -> Batch:
    """Return transitions with values of order 1."""
    g = torch.Generator().manual_seed(seed)

    def normal(width: int) -> Tensor:
        return torch.randn(1, rows, width, generator=g)

    return Batch(
        normal(task.obs),
        torch.tanh(normal(task.act)),
        normal(task.obs),
        normal(1)[..., 0],
        (torch.rand(1, rows, generator=g) < 0.2).float(),
    )


def raw(task: Task, rows: int, seed: int) -> Batch:
    """Return transitions like Humanoid's without normalisation.

    Observations reach 5000, and one feature in eight is constant.
    """
    batch = plain(task, rows, seed)
    scale = 10.0 ** torch.linspace(-3.0, 3.5, task.obs)
    constant = torch.arange(task.obs) % 8 == 0

    def stretch(obs: Tensor) -> Tensor:
        return torch.where(constant, scale, scale * obs).clamp(-5000.0, 5000.0)

    return batch._replace(obs=stretch(batch.obs), next_obs=stretch(batch.next_obs))


def stack(parts: Sequence[Batch]) -> Batch:
    return Batch(*(torch.cat(fields) for fields in zip(*parts, strict=True)))


def demonstrations(make: Make, task: Task, run: int) -> Batch:
    """Return a run's demonstrations, shifted so that they differ from the agent's data."""
    batch = make(task, SIZES[run], 100 + run)
    return batch._replace(
        obs=batch.obs + 1.0, next_obs=batch.next_obs + 1.0, action=(batch.action + 0.5).clamp(-1, 1)
    )


def members(make: Make, task: Task, runs: Sequence[int], poison: dict[int, float]) -> list[Member]:
    """Return runs with unequal numbers of demonstrations; `poison` gives factors for their data."""
    data = [Batch(*(x * poison.get(r, 1.0) for x in demonstrations(make, task, r))) for r in runs]
    return [Member(Path(), {}, r, r + 1, d) for r, d in zip(runs, data, strict=True)]


class Rig:
    """A pack's learner with made-up transitions that depend only on each run's seed."""

    def __init__(
        self,
        cell: CellConfig,
        runs: Sequence[int] = RUNS,
        make: Make = plain,
        poison: dict[int, float] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> None:
        """Build the learner; `seeds` replaces the seeds of the runs' nets and draws."""
        self.task, self.runs, self.make = get_task(cell.env), runs, make
        self.poison, self.n, self.taken = poison or {}, cell.train.num_envs, 0
        pack = members(make, self.task, runs, self.poison)
        if seeds is not None:
            pack = [dataclasses.replace(m, seed=s) for m, s in zip(pack, seeds, strict=True)]
        self.learner = Learner(cell, pack)
        self.model = self.learner.model
        self.replay = Replay(len(runs), 1000, self.task.obs, self.task.act)
        self.model.noise = self.learner.streams.next()
        if self.learner.normaliser is not None and self.model.offline:
            self.learner.normaliser.fit([m.data.obs for m in pack if m.data is not None])

    def transitions(self, rows: int, seed: int) -> Batch:
        parts = [self.make(self.task, rows, 1000 * seed + r) for r in self.runs]
        factor = torch.tensor([self.poison.get(r, 1.0) for r in self.runs])
        return Batch(*(x * factor.view(-1, *[1] * (x.dim() - 1)) for x in stack(parts)))

    def step(self) -> None:
        """Do one iteration as the trainer does: take a vector step, then update."""
        if self.model.offline:
            self.learner.fit()
            return
        self.taken += 1
        taken = self.transitions(self.n, self.taken)
        if self.learner.normaliser is not None:
            self.learner.normaliser.update(taken.obs)
        reward = taken.reward
        if self.model.stores:
            reward = self.model.observe(shown(self.model, taken), taken.terminated > 0)
        assert reward.shape == taken.reward.shape
        self.replay.add(taken._replace(reward=reward))
        self.learner.update(self.replay)

    def probe(self) -> Batch:
        """Return a batch for `values`: one vector step if the method stores rewards."""
        rows = self.n if stores(type(self.model)) else self.learner.cell.train.batch
        batch = self.transitions(rows, 999)
        return self.model.feed(hide(batch), hide(fixed(self)[1])) if self.model.feeds else batch

    def values(self, batch: Batch) -> Tensor:
        """Return the agent's rewards (R, B), or the policy's modes if the method has no rewards."""
        if self.model.offline or self.model.implicit:
            return self.learner.policy(batch.obs)
        if stores(type(self.model)):
            return self.model.observe(batch, torch.zeros_like(batch.terminated) > 0)
        return self.model.reward(batch)

    def state(self) -> dict[str, Any]:
        """Return everything that determines a run's future."""
        learner = [self.learner.state(run) for run in range(self.learner.runs)]
        return copy.deepcopy(
            {"learner": learner, "rest": (self.replay, self.taken, self.model.noise)}
        )

    def load(self, state: dict[str, Any]) -> None:
        self.learner.restore(state["learner"])
        self.replay, self.taken, self.model.noise = copy.deepcopy(state["rest"])


def numbers(rig: Rig) -> dict[str, Tensor]:
    """Return the probe's values, all parameters and their last gradients, by name."""
    out = {"values": rig.values(rig.probe()).clone()}
    for root, module in (("agent", rig.learner.agent.actor), ("model", rig.model)):
        for name, parameter in module.named_parameters():
            out[f"{root}.{name}"] = parameter.detach().clone()
            if parameter.grad is not None:
                out[f"gradient of {root}.{name}"] = parameter.grad.clone()
    return out


# ---------------------------------------------------------------- building


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env", ["HalfCheetah-v4", "Humanoid-v4"])
@every_method
def test_it_builds_from_its_defaults(method: str, env: str, mode: str) -> None:
    cell, task = cell_of(method, env, mode), get_task(env)
    demos = DemoSet([m.data for m in members(plain, task, RUNS, {}) if m.data is not None])
    model = build_model(cell, RUNS, demos)
    assert model.spec.demos is not None
    assert torch.equal(model.spec.demos.data.obs, demos.data.obs)
    for name, parameter in model.named_parameters():
        assert parameter.shape[0] == len(RUNS) and parameter.dtype == torch.float32, name
    for draw in model.draws().values():
        assert draw.kind in ("normal", "uniform", "index")
        assert all(isinstance(size, int) and size > 0 for size in draw.shape)


# ---------------------------------------------------------------- values


def check_values(rig: Rig, batch: Batch) -> None:
    """Check the shape, type and range of a method's values, and that the batch does not change."""
    before = copy.deepcopy(batch)
    values = rig.values(batch)
    assert values.shape[:2] == batch.reward.shape
    assert values.dtype == torch.float32 and not values.requires_grad
    assert values.isfinite().all()
    graded = not rig.model.offline and not rig.model.implicit and not stores(type(rig.model))
    if graded and not rig.model.feeds and rig.learner.cell.params.get("form") != FALLS:
        score = rig.model.score(batch)
        assert score.shape == values.shape and not score.requires_grad
        alive = batch._replace(terminated=torch.zeros_like(batch.terminated))
        order = rig.model.score(alive).argsort(dim=1)
        rise = rig.values(alive).gather(1, order).diff(dim=1)
        assert (rise >= -1e-5 * values.abs().amax()).all(), (
            "values must not fall if the score rises"
        )
    for mine, theirs in zip(batch, before, strict=True):
        assert torch.allclose(mine, theirs, 0.0, 0.0, equal_nan=True), "the batch must not change"


@pytest.mark.parametrize(
    ("mode", "normalise"), [*((mode, False) for mode in MODES), ("state-action", True)]
)
@every_method
def test_values_are_finite_on_raw_humanoid_inputs(method: str, mode: str, normalise: bool) -> None:
    """Check values before and after updates; one run has a single expert transition."""
    random_states = torch.get_rng_state(), np.random.get_state()[1].copy()
    cell = cell_of(method, "Humanoid-v4", mode, normalise_obs=normalise)
    rig = Rig(cell, (0, 1), raw)
    batch = rig.probe()
    check_values(rig, rig.learner.normalise(batch))
    names: list[set[str]] = []
    for _ in range(3):
        rig.step()
        names.append(set(rig.model.metrics))
    assert names[0] == names[1] == names[2], (
        "the first row of train.csv fixes its columns, so metrics must keep their names"
    )
    for name, value in rig.model.metrics.items():
        assert value.shape == (2,) and not value.requires_grad and value.isfinite().all(), name
    check_values(rig, rig.learner.normalise(batch))
    assert torch.equal(torch.get_rng_state(), random_states[0]), "global draws are not allowed"
    assert np.array_equal(np.random.get_state()[1], random_states[1])


class Watch(TorchDispatchMode):
    """A dispatch mode that refuses any operation that needs a tensor's values on the CPU."""

    REFUSED = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "is_nonzero")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__.split(".")[0]
        assert name not in self.REFUSED, f"{name} comes from .item() or a branch on a tensor"
        if name in ("index", "index_put", "index_put_"):
            masks = [i for i in args[1] if i is not None and i.dtype == torch.bool]
            assert not masks, "an index is a mask; use torch.where"
        return func(*args, **(kwargs or {}))


@every_method
def test_nothing_is_read_back(method: str) -> None:
    """Watch an update and its rewards, since a CUDA graph must be able to capture both."""
    rig = Rig(cell_of(method, scale="test"))
    rig.step()  # the first step creates buffers that are needed later
    with Watch():
        rig.step()
        rig.values(rig.probe())


# ---------------------------------------------------------------- learning


def fixed(rig: Rig) -> tuple[Batch, Batch]:
    """Return a fixed batch of the agent's transitions and one of the expert's."""
    rows = rig.learner.cell.train.batch
    assert rig.learner.demos is not None
    expert = rig.learner.demos.sample(torch.arange(rows).expand(len(rig.runs), rows))
    return rig.transitions(rows, 1), expert


def critic_step(rig: Rig, agent: Batch, expert: Batch) -> dict[str, Tensor]:
    """Update only the critic of a method that supplies the critic's loss; return {name: loss}."""
    model, noise = rig.model, torch.zeros(len(rig.runs), agent.obs.shape[1], rig.task.act)
    loss = model.critic_loss(rig.learner.agent, model.feed(agent, expert), noise)
    rig.learner.agent.descend_critic(loss, *optimisers(model).values())
    return {"critic_loss": loss.detach()}


@torch.no_grad()
def advantage(rig: Rig, expert: Batch) -> Tensor:
    """Return the critic's mean advantage of the expert's actions over the policy's, shape (R,)."""
    agent, noise = rig.learner.agent, torch.zeros_like(expert.action)
    values = agent.critic(expert.obs, expert.action).mean(dim=1)
    return (values - agent.soft_value(expert.obs, noise)).mean(dim=1)


@every_method
def test_updates_lower_the_loss(method: str) -> None:
    """Check the losses of thirty updates with the same batch and the same draws."""
    cls = class_of(method)
    if not cls.learns and not cls.offline and not implicit(cls):
        pytest.skip("the method learns nothing")
    if cls.learns and cls.update is not RewardModel.update and cls.loss is RewardModel.loss:
        pytest.skip("the method updates without a loss")
    rig = Rig(cell_of(method, "HalfCheetah-v4"))
    model, (agent, expert) = rig.model, fixed(rig)
    losses = []
    for _ in range(30):
        name, metrics = "", model.metrics
        if model.offline:
            model.fit(rig.learner.agent, expert)
        elif model.implicit:
            metrics = critic_step(rig, agent, expert)
        else:
            model.update(agent, expert)
        (name,) = (k for k in metrics if k.endswith("_loss"))
        losses.append(metrics[name])
    table = torch.stack(losses)
    print(f"{name} {table[0].tolist()} -> {table[-1].tolist()}")
    assert table.shape == (30, len(RUNS))
    assert (table[-1] < table[0]).all()
    assert (table.diff(dim=0) < 0).float().mean() > 0.7, "the loss must fall in most updates"


@every_method
def test_high_is_expert_like(method: str) -> None:
    """Check that the expert's transition scores higher than the agent's in over 60 % of pairs.

    A critic that contains the reward must prefer the expert's actions in the expert's states.
    """
    cls = class_of(method)
    if cls.offline or not (cls.learns or stores(cls) or implicit(cls)):
        pytest.skip("the method has no reward, or a constant one")
    cell = cell_of(method, "HalfCheetah-v4")
    if "lr" in cell.params:  # a small learning rate needs thousands of updates
        rate = max(cell.params["lr"], 1e-3)
        cell = dataclasses.replace(cell, params={**cell.params, "lr": rate})
    sac = dataclasses.replace(cell.sac, lr_critic=max(cell.sac.lr_critic, 1e-3))
    rig = Rig(dataclasses.replace(cell, sac=sac))
    agent, expert = fixed(rig)
    if stores(cls):
        near, far = (Batch(*(x[:, : rig.n] for x in batch)) for batch in (expert, agent))
        assert (rig.values(near) > rig.values(far)).float().mean() > 0.8
        return
    if implicit(cls):
        before = advantage(rig, expert)
        for _ in range(200):
            rig.model.noise = rig.learner.streams.next()
            critic_step(rig, agent, expert)
        assert (advantage(rig, expert) > before.clamp(min=0.0)).all()
        return
    for update in range(1, 101):
        rig.model.noise = rig.learner.streams.next()
        rig.model.update(agent, expert)
        if update % 10 == 0:
            wins = rig.learner.diagnostics(expert, agent)["auc"]
            print(f"AUC {wins.tolist()} after {update} updates")
            if (wins > 0.9).all():  # clear enough to save the other updates
                return
    assert (wins > 0.6).all()


@every_method
def test_no_number_depends_on_the_envs_reward(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the env's rewards in steps and demonstrations; no number may change."""
    assert not class_of(method).uses_env_reward
    cell = cell_of(method, scale="test")
    found = []
    for factor in (1.0, -7.0):

        def paid(task: Task, rows: int, seed: int, factor: float = factor) -> Batch:
            batch = plain(task, rows, seed)
            return batch._replace(reward=factor * batch.reward)

        rig = Rig(cell, make=paid)
        for _ in range(3):
            rig.step()
        logged = rig.learner.drain()
        logged.pop("rank_correlation", None)  # this diagnostic uses the env's reward
        found.append({**numbers(rig), **logged})
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name], err_msg=name)


@every_method
def test_the_state_goes_round(method: str) -> None:
    """Load a state into a learner with other seeds; compare values at once and after updates."""
    cell = cell_of(method, scale="test")
    rig, other = Rig(cell), Rig(cell, seeds=(7, 8, 9))
    for _ in range(3):
        rig.step()
    other.step()
    if class_of(method).learns or rig.model.offline or rig.model.implicit:
        assert not torch.equal(rig.values(rig.probe()), other.values(other.probe()))
    other.load(rig.state())
    for _ in range(3):
        mine, theirs = numbers(rig), numbers(other)
        assert mine.keys() == theirs.keys()
        state = [name for name in mine if not name.startswith("gradient")]
        assert [n for n in state if not torch.equal(mine[n], theirs[n])] == []
        rig.step()
        other.step()


# ---------------------------------------------------------------- packs


@functools.cache
def history(
    method: str, runs: tuple[int, ...], poison: float, dtype: torch.dtype, updates: int
) -> list[dict[str, Tensor]]:
    """Return a pack's numbers at the start and after each update.

    The factor `poison` multiplies run 1's data.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        rig = Rig(cell_of(method, scale="test"), runs, poison={1: poison})
        out = [numbers(rig)]
        for _ in range(updates):
            rig.step()
            out.append(numbers(rig))
    finally:
        torch.set_default_dtype(before)
    return out


@every_method
def test_a_run_of_a_pack_is_the_run_alone(method: str) -> None:
    """Compare some updates in float64, and in float32 everything up to the first gradient.

    If symmetry makes a gradient zero, only its rounding error remains, and Adam turns this error
    into full-size steps. So later float32 parameters cannot be compared.
    """
    largest = {torch.float32: 0.0, torch.float64: 0.0}
    for dtype, bound, updates in ((torch.float32, 1e-6, 1), (torch.float64, 1e-9, UPDATES)):
        pack = history(method, RUNS, 1.0, dtype, UPDATES)[: updates + 1]
        for place, run in enumerate(RUNS):
            alone = history(method, (run,), 1.0, dtype, updates)
            for update, (ours, theirs) in enumerate(zip(pack, alone, strict=True)):
                for name, value in ours.items():
                    if dtype == torch.float32 and update and not name.startswith("gradient"):
                        continue
                    gap = float((value[place] - theirs[name][0]).abs().max())
                    gap /= max(1.0, float(theirs[name].abs().max()))
                    largest[dtype] = max(largest[dtype], gap)
                    assert gap <= bound, f"{name} of run {run}, update {update}"
    print(f"largest differences {largest}")


@pytest.mark.parametrize("poison", [1e6, float("nan")])
@every_method
def test_runs_of_a_pack_do_not_touch_each_other(method: str, poison: float) -> None:
    both = (history(method, RUNS, p, torch.float32, UPDATES) for p in (1.0, poison))
    for clean, poisoned in zip(*both, strict=True):
        different = [
            f"{name} of run {place}"
            for name, value in clean.items()
            for place in (0, 2)
            if not torch.equal(value[place], poisoned[name][place])
        ]
        assert different == []


# ---------------------------------------------------------------- training


@each_training
def test_a_run_repeats_to_the_byte_beside_one_that_diverges(method: str, tmp_path: Path) -> None:
    """Train two runs for 120 steps twice; the second time, run 1's demonstrations are NaN."""
    config = configs("test")
    rate = method_rate(config, method) or 20
    cell = resolve(config, "Pendulum-v1", method, "state-action", rate)
    train = dataclasses.replace(
        cell.train, steps=120, learning_starts=0, eval_every=120, eval_episodes=1, log_every=24
    )
    params = cell_of(method, scale="test").params
    cell = dataclasses.replace(cell, params=params, train=train)
    made = []
    for name, poison in (("clean", 1.0), ("poisoned", float("nan"))):
        pack = [
            dataclasses.replace(m, folder=tmp_path / name / str(m.seed), key={"run": m.seed})
            for m in members(plain, get_task(cell.env), (0, 1), {1: poison})
        ]
        Trainer(cell, pack).run(name)
        folder = pack[0].folder
        files = {n: (folder / n).read_bytes() for n in ("eval.csv", "train.csv")}
        assert b"nan" not in files["eval.csv"] and files["train.csv"].count(b"\n") == 6
        made.append({**files, "policy": (folder / "policy.safetensors").read_bytes()})
        assert json.loads((folder / "run.json").read_text())["status"] == "finished"
    assert made[0] == made[1]
    cls = class_of(method)
    record = json.loads((tmp_path / "poisoned" / "1" / "run.json").read_text())
    fed = cls.feed is not RewardModel.feed
    if cls.learns or cls.offline or stores(cls) or fed:
        assert record["status"] == "diverged" and record["tensor"]
    else:
        assert record["status"] == "finished", "the method uses no demonstrations"
