"""Tests of a pack's training loop: equal results, counts, stored transitions and divergence.

A pack is a group of runs trained together. A vector step is one step in each of its envs.
"""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ngt import cli, errors
from ngt.agent import policy
from ngt.errors import UserError
from ngt.experience import demos, envs
from ngt.experience.demos import Demos
from ngt.experience.envs import Task
from ngt.experience.replay import Batch, Replay
from ngt.experience.rollout import Evaluator, Rollout
from ngt.files import read_json
from ngt.reward import NoParams, RewardModel
from ngt.seeding import rng
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.settings.load import load
from ngt.settings.resolve import resolve
from ngt.training import trainer
from ngt.training.collector import Collector, EpisodeReturns
from ngt.training.learner import Learner, Member, run_seed
from ngt.training.model import COLUMNS
from ngt.training.trainer import Trainer

ROOT = Path(__file__).resolve().parents[3]
END, LIMIT = 5, 7  # step at which the toy env ends an episode, and its time limit


class Steps(gym.Env[np.ndarray, np.ndarray]):
    """A toy env that may end at step END.

    It observes the number of steps in the episode and a number drawn for each episode. The reward
    is the number of steps. Observations are NaN from step `fault` on, and the reward is NaN in
    step `unpaid`.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-2.0, 2.0, (1,), np.float32)

    def __init__(
        self, render_mode: Any = None, terminate_when_unhealthy: bool = False, fault=99, unpaid=99
    ):
        self.render_mode, self.ends = render_mode, terminate_when_unhealthy
        self.fault, self.unpaid = fault, unpaid

    def observe(self) -> np.ndarray:
        number = np.nan if self.count >= self.fault else self.number
        return np.array([self.count, number], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.count, self.number = 0, float(self.np_random.uniform())
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.count += 1
        reward = np.nan if self.count == self.unpaid else float(self.count)
        return self.observe(), reward, self.ends and self.count == END, False, {}


gym.register("ngt/Steps-v0", Steps)
TOYS = [
    Task("steps", "ngt/Steps-v0", 2, 1, -2.0, 2.0, LIMIT, can_terminate=True),
    Task("faulty", "ngt/Steps-v0", 2, 1, -2.0, 2.0, LIMIT, {"fault": 6}),
    Task("unpaid", "ngt/Steps-v0", 2, 1, -2.0, 2.0, LIMIT, {"unpaid": 6}),
]


class Zero(RewardModel):
    """A model whose reward is 0, and which stores the env's reward with the opposite sign."""

    Config = NoParams
    learns = False
    uses_env_reward = True

    def reward(self, batch: Batch) -> Tensor:
        return torch.zeros_like(batch.reward)

    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        return -transition.reward


@dataclass(frozen=True)
class BrokenConfig:
    """Settings that choose which run breaks, and when."""

    first: int = 1  # number of the first update that breaks
    seed: int = -1  # derived seed of the run that breaks; -1 for all runs


class Broken(Zero):
    """A model whose reward is NaN from update `first` on."""

    Config = BrokenConfig
    updates = 0

    def reward(self, batch: Batch) -> Tensor:
        self.updates += 1
        out = super().reward(batch)
        for run, seed in enumerate(self.spec.seeds):
            if self.updates >= self.config.first and self.config.seed in (seed, -1):
                out[run] = torch.nan
        return out

    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        return transition.reward


class BrokenFit(Broken):
    """An offline method that sets one bias of its actor to NaN in update `first`."""

    offline = True

    def fit(self, agent: Any, expert: Batch) -> None:
        self.updates += 1
        if self.updates == self.config.first:
            with torch.no_grad():
                for run, seed in enumerate(self.spec.seeds):
                    if self.config.seed in (seed, -1):
                        agent.actor.net.layers[1].bias[run, 0, 0] = torch.nan
        self.metrics["fine"] = torch.ones(len(self.spec.seeds))


class Interrupted(Zero):
    """A model that raises KeyboardInterrupt at the third update."""

    updates = 0

    def reward(self, batch: Batch) -> Tensor:
        self.updates += 1
        if self.updates == 3:
            raise KeyboardInterrupt
        return super().reward(batch)


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for task in TOYS:
        monkeypatch.setitem(envs.TASKS, task.id, task)


@pytest.fixture
def buffers(monkeypatch: pytest.MonkeyPatch) -> list[Replay]:
    """Return a list to which each new replay buffer of a trainer is added."""
    made: list[Replay] = []

    class Watched(Replay):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(trainer, "Replay", Watched)
    return made


def held(buffer: Replay) -> Batch:
    """Return all transitions of a buffer, in the order of their places."""
    return buffer.sample(torch.arange(buffer.size).expand(buffer.runs, -1))


@pytest.fixture(scope="module")
def pendulum() -> Demos:
    def act(obs: Tensor) -> Tensor:
        return torch.tanh(obs[..., 1:2] - obs[..., 2:3])

    return demos.record("Pendulum-v1", act, 3, 0, source="toy", terminate_when_unhealthy=True)


def cell_of(env: str = "steps", model: Any = Zero, **changes: Any) -> CellConfig:
    """Return a small run's settings (a cell); each change goes to the section that has it."""
    sections: dict[str, Any] = {
        "sac": {"hidden": (16, 16)},
        "train": {"steps": 24, "batch": 8, "eval_every": 8, "eval_episodes": 2, "log_every": 8},
        "cell": {},
    }
    for name, value in changes.items():
        section = next(
            (s for s, cls in (("sac", SacConfig), ("train", TrainConfig)) if name in vars(cls())),
            "cell",
        )
        sections[section][name] = value
    path = model if isinstance(model, str) else f"{__name__}:{model.__name__}"
    return CellConfig(
        env,
        "toy",
        path,
        sac=SacConfig(**sections["sac"]),
        train=TrainConfig(**sections["train"]),
        **sections["cell"],
    )


def members_of(
    folder: Path, seeds: Sequence[int] = (0,), data: Demos | None = None, rate: int = 20
) -> list[Member]:
    """Return runs that differ in their seeds and their numbers of demonstrations."""
    return [
        Member(
            folder / f"seed{seed}",
            {"run": f"seed{seed}"},
            seed,
            1 + seed % 3,
            None if data is None else demos.subsample(data, 1 + seed % 3, rate, seed),
            {"random": 0.0, "expert": 1.0},
        )
        for seed in seeds
    ]


def train(cell: CellConfig, members: list[Member]) -> Trainer:
    made = Trainer(cell, members)
    made.run("test")
    return made


def rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as opened:
        return list(csv.DictReader(opened))


def steps_of(file: Path) -> list[int]:
    return [int(row["step"]) for row in rows(file)]


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files with a run's numbers, by file name."""
    return {n: (folder / n).read_bytes() for n in ("eval.csv", "train.csv", "policy.safetensors")}


# ---------------------------------------------------------------- reproducibility


@pytest.fixture(scope="module")
def demos_file(pendulum: Demos, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demos") / "Pendulum-v1.npz"
    demos.save(path, pendulum)
    return path


@pytest.mark.parametrize("method", ["ngt", "bc"])
def test_a_key_trained_twice_gives_the_same_bytes(
    tmp_path: Path, demos_file: Path, method: str
) -> None:
    key = f"Pendulum-v1/{method}/state-action-demos2-rate20/seed1"
    made = []
    for name in ("a", "b"):
        command = ["train", key, "--scale", "test", "--demos", str(demos_file)]
        command += ["--results", str(tmp_path / name)]
        cli.main([*command, "--set", "train.steps=100", "--set", "train.eval_every=50"])
        made.append(files(tmp_path / name / "test" / "runs" / key))
    assert made[0] == made[1]
    assert b"nan" not in made[0]["eval.csv"]
    other = key.replace("seed1", "seed2")
    cli.main([*command[:1], other, *command[2:], "--set", "train.steps=100"])
    changed = files(tmp_path / "b" / "test" / "runs" / other)
    assert all(changed[name] != made[0][name] for name in changed)


HIDDEN = {"hidden": [32, 32]}
PACKED = {
    "huber": ("ngt", HIDDEN | {"pairing": "huber"}),
    "mse_softmax": ("ngt", HIDDEN | {"pairing": "mse_softmax"}),
    "hl_gauss": ("ngt", HIDDEN | {"pairing": "hl_gauss"}),
    "released": ("ngt-release", HIDDEN),
    "bc": ("bc", {}),
    "iq-learn": ("iq-learn", {}),
    "ls-iq": ("ls-iq", {}),
    "p2il": ("p2il", HIDDEN),
    "sqil": ("sqil", {}),
    "red-original": ("red-original", {"hidden": [32], "prior": [32, 32], "outputs": 32}),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_run_of_a_pack_is_the_run_alone(
    tmp_path: Path, pendulum: Demos, buffers: list[Replay], name: str
) -> None:
    """Check that a run of a pack equals the single run to the bit.

    Matrix products are computed per run. Elementwise kernels give equal bits if all widths and the
    batch size are multiples of 32, as at every scale but `test`.
    """
    method, params = PACKED[name]
    batch = {"batch": 32}
    own = {method: {"params": params, "train": batch}}
    config = load({"scale": "test", "sac": HIDDEN, "train": batch, "methods": own})
    cell = resolve(config, "Pendulum-v1", method, "state-action", 20)
    # Each method makes 40 updates. NGT (release) first takes 100 random steps.
    steps = {"bc": 40, "ngt-release": 140}.get(method, 164)
    short = {"steps": steps, "eval_every": steps, "eval_episodes": 1}
    cell = dataclasses.replace(cell, train=dataclasses.replace(cell.train, **short))
    seeds = (0, 1, 2)
    pack = train(cell, members_of(tmp_path / "pack", seeds, pendulum))
    largest = {"parameter": 0.0, "replay row": 0.0, "return": 0.0}
    for run, seed in enumerate(seeds):
        alone = train(cell, members_of(tmp_path / "alone", [seed], pendulum))
        assert alone.learner.updates == pack.learner.updates == 40
        assert alone.learner.demos is not None and pack.learner.demos is not None
        size = int(alone.learner.demos.size)
        assert size == int(pack.learner.demos.size[run]) == 10 * (1 + seed)
        for mine, packed in zip(alone.learner.demos.data, pack.learner.demos.data, strict=True):
            assert torch.equal(mine[0, :size], packed[run, :size])
        pairs = [
            (pack.learner.agent, alone.learner.agent),
            (pack.learner.model, alone.learner.model),
        ]
        for ours, theirs in pairs:
            for (key, p), (_, q) in zip(
                ours.named_parameters(), theirs.named_parameters(), strict=True
            ):
                assert p[run].shape == q[0].shape, key
                gap = float((p[run] - q[0]).detach().abs().max())
                largest["parameter"] = max(largest["parameter"], gap)
        if method != "bc":
            own, packed_rows = buffers[-1].rows[0, :steps], buffers[0].rows[run, :steps]
            assert buffers[-1].size == buffers[0].size == steps
            gap = float((own - packed_rows).abs().max())
            largest["replay row"] = max(largest["replay row"], gap)
        returns = [
            float(rows(tmp_path / kind / f"seed{seed}" / "eval.csv")[0]["return"])
            for kind in ("pack", "alone")
        ]
        largest["return"] = max(largest["return"], abs(1 - returns[0] / returns[1]))
    assert set(largest.values()) == {0.0}, largest
    if method != "bc":
        assert len({float(b.rows[r, 0, 0]) for b in buffers[:1] for r in range(3)}) == 3


def test_runs_of_a_pack_differ_in_everything_random(tmp_path: Path, buffers: list[Replay]) -> None:
    made = train(cell_of(), members_of(tmp_path, (0, 1)))
    learner, rows_ = made.learner, buffers[0].rows
    assert len({derived for derived in learner.model.spec.seeds}) == 2
    for tensor in (learner.agent.actor.net.layers[0].weight, rows_[:, :24, 1], rows_[:, :24, 2]):
        assert (tensor[0] != tensor[1]).any()
    assert len(set(rows_[:, :4, 1].flatten().tolist())) == 8, (
        "each env must have its own initial state"
    )
    assert len(set(rows_[0, :24, 2].tolist())) == 24, "each env must have its own noise"


def test_a_runs_seed_depends_on_its_whole_key(tmp_path: Path) -> None:
    cell = cell_of()
    (member,) = members_of(tmp_path)
    others = [
        (dataclasses.replace(cell, env="faulty"), member),
        (dataclasses.replace(cell, method="b"), member),
        (dataclasses.replace(cell, mode="state-only"), member),
        (dataclasses.replace(cell, rate=5), member),
        (cell, dataclasses.replace(member, seed=1)),
        (cell, dataclasses.replace(member, demos=4)),
    ]
    seeds = {run_seed(*pair) for pair in [(cell, member), *others]}
    assert len(seeds) == 7
    assert run_seed(dataclasses.replace(cell, sac=SacConfig()), member) in seeds, (
        "a seed must not depend on the settings"
    )


def test_env_processes_change_no_number(tmp_path: Path) -> None:
    """Compare training and evaluation with and without env processes."""
    made = []
    for workers in (0, 2):
        members = members_of(tmp_path / str(workers), (0, 1))
        Trainer(cell_of("Hopper-v4", steps=200, eval_every=100), members, env_workers=workers).run(
            "test"
        )
        made.append([files(m.folder) for m in members])
    assert made[0] == made[1]


# ---------------------------------------------------------------- counting


@pytest.mark.parametrize(
    ("changes", "steps", "updates"),
    [
        ({}, 24, 5),  # no update in the first vector step, because the buffer is empty
        ({"num_envs": 3}, 24, 7),
        ({"num_envs": 1}, 24, 23),
        ({"steps": 22}, 24, 5),  # the last vector step is completed
        ({"updates_per_step": 3}, 24, 15),
        ({"learning_starts": 4}, 24, 5),
        ({"learning_starts": 8}, 24, 4),  # updates begin with the first step that is not random
        ({"learning_starts": 9}, 24, 3),
        ({"learning_starts": 99}, 24, 0),
    ],
)
def test_steps_and_updates(
    tmp_path: Path, buffers: list[Replay], changes: dict[str, Any], steps: int, updates: int
) -> None:
    made = train(cell_of(**changes, eval_every=12), members_of(tmp_path, (0, 1)))
    (buffer,) = buffers
    assert (made.step, buffer.size, made.learner.updates) == (steps, steps, updates)
    for seed in (0, 1):
        run = read_json(tmp_path / f"seed{seed}" / "run.json")
        assert (run["status"], run["step"], run["updates"]) == ("finished", steps, updates)
        assert steps_of(tmp_path / f"seed{seed}" / "eval.csv") == [12, 12, 24, 24]


def test_rows_of_the_records(tmp_path: Path) -> None:
    made = train(cell_of(steps=40, eval_every=12, log_every=16), members_of(tmp_path))
    folder = tmp_path / "seed0"
    assert steps_of(folder / "eval.csv") == [12, 12, 24, 24, 36, 36, 40, 40], (
        "the end must be evaluated too"
    )
    assert [row["episode"] for row in rows(folder / "eval.csv")] == ["0", "1"] * 4
    assert steps_of(folder / "train.csv") == [16, 32, 40]
    assert [row["update"] for row in rows(folder / "train.csv")] == ["3", "7", "9"]
    assert set(rows(folder / "train.csv")[0]) - made.learner.sums.keys() <= set(COLUMNS)
    assert list(rows(folder / "train.csv")[0]) == [
        "step",
        "update",
        "critic_loss",
        "actor_loss",
        "alpha",
        "entropy",
        "reward",
        "train_return",
        "train_episodes",
    ]
    assert [step for step, _ in made.records.timing[0]] == [16, 32, 40]
    run = read_json(folder / "run.json")
    assert (run["pack"], run["device"]) == (1, "cpu")
    assert run["reference"] == {"random": 0.0, "expert": 1.0}
    assert [step for step, _ in run["timing"]] == [16, 32, 40]
    assert "tensor" not in run and "kept" not in run


@pytest.mark.parametrize("learning_starts", [0, 8])
def test_an_update_sees_what_was_stored_before_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learning_starts: int
) -> None:
    """Check the order: choose actions, update, step the envs, store the transitions."""
    told: list[tuple[str, int]] = []

    def note(owner: Any, name: str, size: Callable[[Any, tuple[Any, ...]], int]) -> None:
        original = getattr(owner, name)

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            told.append((name, size(self, args)))
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    note(Collector, "act", lambda self, _: self.replay.size)
    note(Learner, "update", lambda _, args: args[0].size)
    note(Collector, "step", lambda self, _: self.replay.size)
    note(Collector, "store", lambda self, _: self.replay.size)
    note(Trainer, "_log_evaluate_save", lambda self, _: self.collector.replay.size)
    train(cell_of(steps=16, learning_starts=learning_starts), members_of(tmp_path))
    first = max(4, learning_starts)
    expected: list[tuple[str, int]] = []
    for stored in (0, 4, 8, 12):
        expected += [("act", stored), *[("update", stored)] * (stored >= first)]
        expected += [("step", stored), ("store", stored), ("_log_evaluate_save", stored + 4)]
    assert told == expected


def test_a_stride_that_does_not_divide_the_interval(tmp_path: Path) -> None:
    train(cell_of(num_envs=3, steps=31, eval_every=10, log_every=10), members_of(tmp_path))
    expected = [12, 21, 30, 33]
    assert steps_of(tmp_path / "seed0" / "train.csv") == expected
    assert steps_of(tmp_path / "seed0" / "eval.csv") == [s for s in expected for _ in "ab"]


def test_rows_begin_with_the_first_update(tmp_path: Path) -> None:
    """Check that every row has metrics, because the first row fixes the columns."""
    train(cell_of(learning_starts=10), members_of(tmp_path))
    table = rows(tmp_path / "seed0" / "train.csv")
    assert [row["step"] for row in table] == ["16", "24"]
    assert all(float(row["critic_loss"]) > 0 for row in table)


def test_a_small_buffer_keeps_the_last_transitions(tmp_path: Path, buffers: list[Replay]) -> None:
    train(cell_of(buffer=8, steps=20), members_of(tmp_path))
    (buffer,) = buffers
    assert (buffer.capacity, buffer.size) == (8, 8)
    counts = held(buffer).obs[0, :, 0].sort().values.tolist()
    assert counts == [3.0] * 4 + [4.0] * 4, "the buffer must hold vector steps 4 and 5"


class Filled(Zero):
    """A model that first stores two vector steps, whose observations are -9 and -8."""

    def prefill(self) -> Batch:
        runs = len(self.spec.seeds)
        count = torch.tensor([-9.0, -8.0]).repeat_interleave(4).expand(runs, 8)
        obs = torch.stack([count, count], dim=-1)
        one = torch.ones(runs, 8)
        return Batch(obs, 0.5 * one[..., None], obs + 1.0, 7.0 * one, 0.0 * one)


def test_a_method_may_fill_the_buffer_first(tmp_path: Path, buffers: list[Replay]) -> None:
    """Check that the first update can draw the stored transitions, and that they are kept."""
    made = train(cell_of(model=Filled, steps=20), members_of(tmp_path, (0, 1)))
    (buffer,) = buffers
    assert (buffer.capacity, buffer.size) == (8 + 20 + 4, 8 + 20)
    assert made.learner.updates == 5, "each vector step must have an update, even the first"
    obs, action, after, reward, _ = held(buffer)
    first = [-9.0] * 4 + [-8.0] * 4
    assert obs[:, :8, 0].tolist() == [first, first]
    assert after[:, :8, 0].tolist() == [[x + 1.0 for x in first]] * 2, (
        "next_obs must not be the env's first state"
    )
    assert (reward[:, :8] == 7.0).all() and (action[:, :8] == 0.5).all()
    assert obs[:, 8:12, 0].tolist() == [[0.0] * 4] * 2, "the envs must start as usual"


def test_a_buffer_too_small_for_what_is_stored_first_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train.buffer: found 4, but toy stores 8 transitions"):
        train(cell_of(model=Filled, buffer=4), members_of(tmp_path))


def test_a_filled_buffer_is_not_filled_again_on_resumption(
    tmp_path: Path, buffers: list[Replay]
) -> None:
    """Compare resumed training with training that was not interrupted."""
    cell = cell_of(model=Filled, steps=20, eval_every=20)
    train(cell, members_of(tmp_path / "whole"))
    stopped = Trainer(cell, members_of(tmp_path / "parts"))
    stopped.stop = True
    with pytest.raises(errors.Interrupted) as caught:
        stopped.run("test")
    Trainer(cell, members_of(tmp_path / "parts")).run("test", resume=caught.value.args[0])
    for mine, theirs in zip(held(buffers[0]), held(buffers[2]), strict=True):
        assert torch.equal(mine, theirs)


# ---------------------------------------------------------------- contents of the replay buffer


@pytest.mark.parametrize(
    ("learning_starts", "random", "updates"),
    [(0, 0, 63), (239, 240, 4), (240, 240, 4), (241, 244, 3)],
)
def test_actions_are_uniform_until_learning_starts(
    tmp_path: Path, buffers: list[Replay], learning_starts: int, random: int, updates: int
) -> None:
    """Check that random actions come from the run's own stream and fill whole vector steps."""
    cell = cell_of(steps=256, learning_starts=learning_starts, eval_every=256, log_every=256)
    members = members_of(tmp_path / "pack", (0, 1))
    made = train(cell, members)
    assert made.learner.updates == updates and buffers[0].size == 256
    actions = buffers[0].rows[:, :256, 2]
    for run, member in enumerate(members):
        u = rng(run_seed(cell, member), "draw", "uniform").random((64, 4, 1), dtype=np.float32)
        same = actions[run] == torch.from_numpy(2.0 * u - 1.0).flatten()
        assert same[:random].all() and not same[random:].any()
        train(cell, [dataclasses.replace(member, folder=tmp_path / f"alone{run}")])
        assert torch.equal(buffers[-1].rows[0, :random], buffers[0].rows[run, :random])
    if random:
        drawn = actions[:, :random].flatten().sort().values
        assert drawn.min() >= -1.0 and drawn.max() < 1.0
        distance = (drawn - torch.linspace(-1.0, 1.0, len(drawn))).abs().max()
        assert distance < 0.12, "twice the Kolmogorov-Smirnov statistic must be small"


@pytest.mark.parametrize("terminate", [True, False])
def test_termination_ends_the_bootstrap_and_truncation_does_not(
    tmp_path: Path, buffers: list[Replay], terminate: bool
) -> None:
    cell = cell_of(steps=80, eval_every=80, log_every=80, terminate_when_unhealthy=terminate)
    train(cell, members_of(tmp_path, (0, 1)))
    (buffer,) = buffers
    obs, action, after, reward, terminated = held(buffer)
    length = END if terminate else LIMIT
    expected = torch.arange(20).remainder(length).repeat_interleave(4).float()
    assert torch.equal(obs[..., 0], expected.expand(2, -1))
    assert torch.equal(after[..., 0], expected.expand(2, -1) + 1), (
        "at an end, next_obs must be the final observation"
    )
    assert torch.equal(after[..., 1], obs[..., 1]), "next_obs must come from the same episode"
    last = after[..., 0] == length
    assert int(last.sum()) == 2 * 4 * (20 // length)
    assert torch.equal(terminated, (last & terminate).float())
    assert torch.equal(reward, -after[..., 0]), "stored rewards must come from `observe`"
    assert action.abs().max() <= 1 and action.std() > 0.1


def test_stored_rewards_are_the_envs_by_default(tmp_path: Path, buffers: list[Replay]) -> None:
    train(cell_of(model="ngt.reward:EnvReward"), members_of(tmp_path))
    stored = held(buffers[0]).reward[0]
    assert stored.tolist() == [n for n in (1, 2, 3, 4, 5, 1) for _ in range(4)]
    row = rows(tmp_path / "seed0" / "train.csv")[0]
    assert 1.0 <= float(row["reward"]) <= 2.0, "the reward must be a mean over drawn batches"


def test_returns_of_training_episodes(tmp_path: Path) -> None:
    cell = cell_of(steps=80, eval_every=80, log_every=8)
    train(cell, members_of(tmp_path))
    table = rows(tmp_path / "seed0" / "train.csv")
    ended = [row for row in table if row["train_episodes"] != "0"]
    assert [int(row["step"]) for row in ended] == [24, 40, 64, 80], (
        "ends come after 5, 10, 15 and 20 vector steps"
    )
    assert {row["train_return"] for row in ended} == {"15"}
    assert {row["train_episodes"] for row in ended} == {"4"}
    assert {row["train_return"] for row in table if row not in ended} == {"nan"}


def test_episode_returns_by_hand() -> None:
    returns = EpisodeReturns(2, 2)
    returns.add(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, False]))
    returns.add(np.array([1.0, 1.0, 1.0, 1.0]), np.array([True, True, False, False]))
    told = returns.drain()
    assert told["train_return"][0] == pytest.approx((2.0 + 2.0 + 1.0) / 3)
    assert told["train_episodes"].tolist() == [3.0, 0.0]
    assert np.isnan(told["train_return"][1])
    returns.add(np.array([0.0, 0.0, 5.0, 0.0]), np.array([False, False, True, False]))
    assert returns.drain()["train_return"][1] == 9.0, "an episode must be able to span two logs"


def test_normaliser_sees_every_observation_once(tmp_path: Path) -> None:
    cell = cell_of(normalise_obs=True, steps=40, eval_every=40, log_every=40)
    train(cell, members_of(tmp_path))
    loaded, _ = policy.load(tmp_path / "seed0" / "policy.safetensors")
    assert loaded.normaliser is not None
    assert int(loaded.normaliser.count) == 40
    seen = np.repeat(np.arange(10) % END, 4)  # the observations that the policy acted on
    assert float(loaded.normaliser.mean[0, 0, 0]) == pytest.approx(seen.mean(), rel=1e-5)
    assert float(loaded.normaliser.var[0, 0, 0]) == pytest.approx(seen.var(), rel=1e-5)


# ---------------------------------------------------------------- the learner


class Height(Zero):
    """A model whose reward is the first coordinate of the observation."""

    def reward(self, batch: Batch) -> Tensor:
        self.metrics["seen"] = batch.obs.mean(dim=(1, 2))
        return batch.obs[..., 0]


def test_auc_by_hand(tmp_path: Path) -> None:
    learner = Learner(cell_of(model=Height), members_of(tmp_path, (0, 1)))

    def batch(*values: list[float]) -> Batch:
        obs = torch.tensor(values)[..., None].expand(-1, -1, 2).contiguous()
        flat = torch.zeros(obs.shape[:2])
        return Batch(obs, flat[..., None], obs, flat, flat)

    expert = batch([3.0, 1.0], [0.0, 0.0])
    agent = batch([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    # run 0: the expert's 3 exceeds three values; its 1 exceeds one and equals one
    assert learner.diagnostics(expert, agent)["auc"].tolist() == pytest.approx([4.5 / 6, 0.0])
    assert learner.diagnostics(expert, expert)["auc"].tolist() == [0.5, 0.5]
    assert learner.model.metrics == {}, "diagnostics must leave no metrics"


def test_means_over_an_interval(tmp_path: Path) -> None:
    learner = Learner(cell_of(), members_of(tmp_path, (0, 1)))
    for value in (1.0, 2.0, 6.0):
        learner._count({"x": torch.tensor([value, -value])}, {})
        learner.summed += 1
    assert {k: v.tolist() for k, v in learner.drain().items()} == {"x": [3.0, -3.0]}
    learner._count({"x": torch.tensor([5.0, 5.0])}, {})
    learner.summed += 1
    assert learner.drain()["x"].tolist() == [5.0, 5.0], "the sum must start again from zero"


# ---------------------------------------------------------------- divergence


def own_seed(cell: CellConfig, member: Member) -> dict[str, int]:
    return {"seed": run_seed(cell, member)}


@pytest.mark.parametrize(
    ("first", "log_every", "tensor"),
    [
        (4, 1000, "agent.actor.net.layers.0.weight"),  # noticed at the next action
        (4, 20, "critic_loss"),  # noticed in the log of the same step
        (5, 1000, "agent.actor.net.layers.0.weight"),  # noticed at an evaluation
    ],
)
def test_a_nan_reward_is_a_divergence_with_step_and_tensor(
    tmp_path: Path, first: int, log_every: int, tensor: str
) -> None:
    cell = cell_of(model=Broken, params={"first": first}, steps=80, log_every=log_every)
    train(cell, members_of(tmp_path, (0, 1)))
    for seed in (0, 1):
        folder = tmp_path / f"seed{seed}"
        run = read_json(folder / "run.json")
        assert (run["status"], run["step"], run["tensor"]) == ("diverged", 4 + 4 * first, tensor)
        assert steps_of(folder / "eval.csv") == [8, 8, 16, 16], "earlier evaluations must stay"
        assert sorted(p.name for p in folder.iterdir()) == [
            "config.json",
            "eval.csv",
            "policy.safetensors",
            "run.json",
            "train.csv",
        ]


@pytest.mark.parametrize("first", [2, 5])
@pytest.mark.parametrize("log_every", [8, 1000])
def test_one_run_diverges_and_the_others_go_on(tmp_path: Path, first: int, log_every: int) -> None:
    """Check that the other runs' files are the same as without the diverged run.

    The diverged run is also evaluated while its policy is NaN. The batch size is 32, because
    smaller batches may round differently in packs of different sizes on a processor with AVX-512.
    """
    cell = cell_of(model=Broken, steps=48, batch=32, eval_every=8, log_every=log_every)
    broken = members_of(tmp_path, (0, 1, 2))
    params = {"first": first, "seed": run_seed(cell, broken[1])}
    train(dataclasses.replace(cell, params=params), broken)
    statuses = [read_json(m.folder / "run.json")["status"] for m in broken]
    assert statuses == ["finished", "diverged", "finished"]
    assert read_json(broken[1].folder / "run.json")["step"] == 4 + 4 * first
    whole = members_of(tmp_path / "whole", (0, 2))
    train(dataclasses.replace(cell, params=params), whole)
    for mine, theirs in zip((broken[0], broken[2]), whole, strict=True):
        assert steps_of(mine.folder / "eval.csv") == [s for s in range(8, 49, 8) for _ in "ab"]
        assert files(mine.folder) == files(theirs.folder)


def test_when_all_have_diverged_the_pack_ends(tmp_path: Path, buffers: list[Replay]) -> None:
    cell = cell_of(model=Broken, params={"first": 2}, steps=10_000)
    made = train(cell, members_of(tmp_path, (0, 1)))
    assert made.step < 20 and buffers[0].size < 20


@pytest.mark.parametrize(
    ("eval_every", "step"),
    [(1000, 24), (8, 8)],  # noticed in the 6th vector step of training, or in an evaluation
)
def test_a_nan_observation_is_a_divergence(tmp_path: Path, eval_every: int, step: int) -> None:
    cell = cell_of("faulty", steps=80, eval_every=eval_every)
    train(cell, members_of(tmp_path, (0, 1)))
    for seed in (0, 1):
        run = read_json(tmp_path / f"seed{seed}" / "run.json")
        assert (run["status"], run["step"], run["tensor"]) == ("diverged", step, "obs")
        assert rows(tmp_path / f"seed{seed}" / "eval.csv") == []


@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_return_that_is_no_number_is_a_divergence(tmp_path: Path, keep: str) -> None:
    """Use a method with its own reward, so that NaN occurs only in the return."""
    train(cell_of("unpaid", model=Zero, steps=80, keep=keep), members_of(tmp_path, (0,)))
    run = read_json(tmp_path / "seed0" / "run.json")
    assert (run["status"], run["step"], run["tensor"]) == ("diverged", 8, "return")
    assert rows(tmp_path / "seed0" / "eval.csv") == [] and "kept" not in run


def test_an_offline_run_may_diverge_too(tmp_path: Path, pendulum: Demos) -> None:
    cell = cell_of("Pendulum-v1", BrokenFit, steps=9, eval_every=3, log_every=1000)
    members = members_of(tmp_path, (0, 1), pendulum)
    params = {"first": 5, "seed": run_seed(cell, members[1])}
    train(dataclasses.replace(cell, params=params), members)
    first, second = (read_json(m.folder / "run.json") for m in members)
    assert first["status"] == "finished"
    assert (second["status"], second["step"]) == ("diverged", 6), (
        "the next evaluation must notice the NaN"
    )
    assert second["tensor"] == "agent.actor.net.layers.1.bias"
    assert steps_of(members[0].folder / "eval.csv") == [3, 3, 6, 6, 9, 9]
    assert steps_of(members[1].folder / "eval.csv") == [3, 3]


def test_an_interrupted_run_is_not_complete(tmp_path: Path) -> None:
    members = members_of(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train(cell_of(model=Interrupted), members)
    assert not (members[0].folder / "run.json").exists()
    assert steps_of(members[0].folder / "eval.csv.part") == [8, 8]
    assert not (members[0].folder / "eval.csv").exists()


# ---------------------------------------------------------------- the kept policy


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_policy_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    scripted = [[1.0, 5.0], [7.0, 4.0], [7.0, 5.5]]  # returns of two runs in each evaluation
    seen: list[list[dict[str, Tensor]]] = []

    def fake(self: Evaluator, act: Any, index: int) -> Rollout:
        seen.append([made.learner.policy.snapshot(run) for run in (0, 1)])
        returns = np.array(scripted[index])[:, None] + np.array([-0.5, 0.5])
        return Rollout(returns, np.ones((2, 2), np.int64))

    monkeypatch.setattr(Evaluator, "run", fake)
    members = members_of(tmp_path, (0, 1))
    made = Trainer(cell_of(keep=keep), members)
    made.run("test")
    for run, best in ((0, 1), (1, 2)):  # a later policy with an equal return is not kept
        expected = seen[best if keep == "best" else 2][run]
        stored, _ = policy.load(members[run].folder / "policy.safetensors")
        assert all(torch.equal(expected[n], t) for n, t in stored.state_dict().items())
        record = read_json(members[run].folder / "run.json")
        kept = {"step": 8 * (best + 1), "return": scripted[best][run]}
        assert record.get("kept") == (kept if keep == "best" else None)
    name = "actor.net.layers.0.weight"
    assert not torch.equal(seen[1][0][name], seen[2][0][name])


# ---------------------------------------------------------------- offline methods


def test_an_offline_method_steps_no_env_and_counts_gradient_steps(
    tmp_path: Path, pendulum: Demos, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("an env was made for training")

    monkeypatch.setattr(trainer, "VectorEnv", refuse)
    cell = cell_of("Pendulum-v1", "baselines.bc:Bc", steps=30, eval_every=12, log_every=10)
    made = train(cell, members_of(tmp_path, (0, 1), pendulum))
    assert (made.step, made.learner.updates) == (30, 30)
    run = read_json(tmp_path / "seed0" / "run.json")
    assert (run["status"], run["step"], run["updates"]) == ("finished", 30, 30)
    assert steps_of(tmp_path / "seed0" / "eval.csv") == [12, 12, 24, 24, 30, 30]
    table = rows(tmp_path / "seed0" / "train.csv")
    assert [(row["step"], row["update"]) for row in table] == [(s, s) for s in ("10", "20", "30")]
    assert list(table[0]) == ["step", "update", "bc_loss"]


def test_an_offline_methods_normaliser_is_fitted_to_the_demonstrations(
    tmp_path: Path, pendulum: Demos
) -> None:
    cell = cell_of("Pendulum-v1", "baselines.bc:Bc", steps=3, normalise_obs=True)
    members = members_of(tmp_path, (0, 1), pendulum)
    train(cell, members)
    for member in members:
        loaded, _ = policy.load(member.folder / "policy.safetensors")
        assert loaded.normaliser is not None and member.data is not None
        mean = member.data.obs[0].double().mean(0)
        assert torch.allclose(loaded.normaliser.mean[0, 0], mean, atol=1e-12)


# ---------------------------------------------------------------- names of methods in the code


@pytest.mark.parametrize(
    "name",
    [
        "training/trainer",
        "training/records",
        "agent/sac",
        "experience/replay",
        "experience/rollout",
    ],
)
def test_no_method_is_named_in_the_machinery(name: str) -> None:
    words = r"\b(huber|hl_gauss|mse_softmax|bc|pwil|dac|red|diffail|mmd|wdac)\b"
    text = (ROOT / "ngt" / f"{name}.py").read_text()
    assert re.findall(words, text, re.IGNORECASE) == []


# ---------------------------------------------------------------- learning


@pytest.mark.slow
def test_sac_learns_to_swing_a_pendulum_up(tmp_path: Path) -> None:
    """Check the return after 1500 updates on the env's own reward.

    Six runs ended with returns from -640 to -137. The return of a random policy is about -1200,
    and that of a good policy about -150.
    """
    cell = cell_of(
        "Pendulum-v1",
        "ngt.reward:EnvReward",
        steps=6000,
        batch=64,
        hidden=(32, 32),
        eval_every=6000,
        eval_episodes=4,
        log_every=1500,
        gamma=0.95,
        lr_actor=3e-3,
        lr_critic=3e-3,
        lr_alpha=3e-3,
        tau=0.02,
    )
    members = members_of(tmp_path, (0, 1, 2))
    train(cell, members)
    returns = [[float(row["return"]) for row in rows(m.folder / "eval.csv")] for m in members]
    assert np.median(np.mean(returns, axis=1)) > -700
