"""Functions that the benchmarks time, such as updates, whole steps, and other libraries' steps."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ngt.agent.sac import Sac
from ngt.agent.streams import Streams
from ngt.experience.envs import get_task, make
from ngt.experience.replay import Batch, Replay
from ngt.experience.vector import VectorEnv
from ngt.potential import PotentialConfig
from ngt.settings.config import CellConfig, TrainConfig
from ngt.training.collector import Collector
from ngt.training.learner import Learner, Member

FILLED = 10_000  # number of random transitions in a buffer; their values do not affect the speed
SB3 = "stable-baselines3 SAC"
MODELS = {
    "SAC": "ngt.reward:EnvReward",
    "NGT": "ngt.potential:Potential",
    "DAC": "baselines.dac:Dac",
}


class Contender(NamedTuple):
    """A function whose calls are timed."""

    call: Callable[[], None]
    runs: int = 1  # number of updates per call: one per run of a pack (runs trained together)
    many: Callable[[int], None] | None = None  # makes a given number of calls with less overhead


class Pack(NamedTuple):
    """A learner for a pack, i.e. for runs that are trained together, and a filled buffer."""

    learner: Learner
    replay: Replay

    def update(self) -> None:
        """Make one whole update: update the reward model, compute rewards, and update SAC."""
        self.learner.update(self.replay)


def random_batch(runs: int, rows: int, obs: int, act: int) -> Batch:
    """Return transitions with random values. Every call returns the same values."""
    g = torch.Generator().manual_seed(0)
    return Batch(
        torch.randn(runs, rows, obs, generator=g),
        torch.rand(runs, rows, act, generator=g) * 2 - 1,
        torch.randn(runs, rows, obs, generator=g),
        torch.randn(runs, rows, generator=g),
        torch.zeros(runs, rows),
    )


def cell_of(model: str, env: str, train: TrainConfig | None = None) -> CellConfig:
    """Return the paper's settings for training one of MODELS on an env.

    base.yaml also sets NGT's pairing loss, but cannot be read without PyYAML. The pairing loss is
    therefore set here as well.
    """
    pairing = "hl_gauss" if env == "Humanoid-v4" else PotentialConfig().pairing
    return CellConfig(
        env=env,
        method="bench",
        model=MODELS[model],
        params={"pairing": pairing} if model == "NGT" else {},
        train=train or TrainConfig(),
    )


def members_of(cell: CellConfig, seeds: Sequence[int], folder: Path = Path()) -> list[Member]:
    """Return one run per seed, each with four random demonstrations."""
    task = get_task(cell.env)
    data = random_batch(1, 4 * -(-task.time_limit // cell.rate), task.obs, task.act)
    return [Member(folder / str(seed), {}, seed, 4, data) for seed in seeds]


def pack_of(
    cell: CellConfig,
    seeds: Sequence[int],
    device: str = "cpu",
    *,
    graphs: bool = True,
    filled: int = FILLED,
) -> Pack:
    """Return a learner with one run per seed, and a buffer with the same rows on every device.

    The buffer holds `filled` random transitions.
    """
    task = get_task(cell.env)
    learner = Learner(cell, members_of(cell, seeds), device, graphs)
    replay = Replay(len(seeds), filled, task.obs, task.act, device, envs=cell.train.num_envs)
    rows = random_batch(1, filled, task.obs, task.act)
    replay.add(Batch(*(x.to(device).expand(len(seeds), *x.shape[1:]) for x in rows)))
    return Pack(learner, replay)


def whole(cell: CellConfig, seeds: Sequence[int]) -> Callable[[], None]:
    """Return a function that makes one training step: act, update, step all envs, and store."""
    pack, num = pack_of(cell, seeds), cell.train.num_envs
    envs = VectorEnv(cell.env, len(seeds) * num)
    explore = Streams(seeds, Sac.exploration(num, envs.task.act), "cpu")
    collector = Collector(envs, pack.learner, pack.replay, explore)
    collector.reset(range(envs.num))

    def step() -> None:
        action = collector.act()
        for _ in range(cell.train.updates_per_step):
            pack.update()
        collector.store(collector.step(action))

    return step


def iteration(cell: CellConfig) -> Callable[[], None]:
    """Return a function that makes one iteration of one run, but neither acts nor steps envs.

    The iteration stores random transitions with their rewards, one transition per env of the run.
    It then updates the reward model and the agent. For an offline method, the iteration is one
    gradient step.
    """
    pack, task = pack_of(cell, [0]), get_task(cell.env)
    model = pack.learner.model
    if model.offline:
        return pack.learner.fit
    taken = random_batch(1, cell.train.num_envs, task.obs, task.act)
    done = torch.zeros(taken.reward.shape, dtype=torch.bool)

    def step() -> None:
        pack.replay.add(taken._replace(reward=model.observe(taken, done)))
        for _ in range(cell.train.updates_per_step):
            pack.update()

    return step


def stepping(env: str, num: int) -> Callable[[], None]:
    """Return a function that steps `num` envs once with random actions."""
    envs, rng = VectorEnv(env, num), np.random.default_rng(0)
    envs.reset(range(num))

    def step() -> None:
        envs.step(rng.uniform(-1, 1, (num, envs.task.act)))

    return step


def peers(env: str) -> dict[str, Contender]:
    """Map the name of each installed peer to a function that makes one gradient step.

    A peer is a different library that implements the same algorithm.
    """
    found = {}
    with contextlib.suppress(ImportError):  # stable-baselines3 is only installed for tests
        found[SB3] = Contender(sb3_update(env))
    return found


def sb3_update(env: str) -> Callable[[], None]:
    """Return a function that makes one gradient step of stable-baselines3's SAC.

    The nets, the batch and the buffer have the same sizes as in the suite's SAC.
    """
    from stable_baselines3 import SAC

    task = get_task(env)
    agent = SAC(
        "MlpPolicy",
        make(env),
        batch_size=256,
        buffer_size=FILLED,
        device="cpu",
        policy_kwargs={"net_arch": [256, 256]},
        learning_rate=3e-4,
        seed=0,
    )
    assert agent.replay_buffer is not None
    batch = random_batch(1, FILLED, task.obs, task.act)
    done = np.zeros(1, bool)
    for obs, action, next_obs, reward in zip(*(x[0].numpy() for x in batch[:4]), strict=True):
        agent.replay_buffer.add(obs, next_obs, action, reward, done, [{}])
    agent._setup_learn(total_timesteps=1)
    return lambda: agent.train(gradient_steps=1, batch_size=256)
