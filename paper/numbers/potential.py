"""Maps of NGT's potential on Pendulum-v1, over angle and velocity, at four moments of training.

`python -m paper.numbers.potential` trains NGT for a few minutes on one core and writes the file of
maps that ships with the suite. The training run is seeded.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.agent.sac import Sac
from ngt.agent.streams import Streams
from ngt.errors import UserError
from ngt.experience import demos
from ngt.experience.replay import Batch, Replay
from ngt.experience.vector import VectorEnv
from ngt.files import CHECKOUT, atomic
from ngt.potential import Potential, PotentialConfig
from ngt.seeding import derive
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.training.collector import Collector
from ngt.training.learner import Learner, Member, run_seed

Floats = NDArray[np.float64]
ENV = "Pendulum-v1"
DEMOS = CHECKOUT / "tests" / "data" / f"{ENV}.npz"
EPISODES, RATE = 4, 20  # 4 demonstrations, with every 20th transition
STEPS = 20_000  # maximum number of env steps
MOMENTS = (0.05, 0.2, 0.5, 1.0)  # the moments of the maps, as fractions of the training run
RECENT = 400  # each map shows this many of the agent's most recent transitions
ANGLES = np.linspace(-np.pi, np.pi, 97)
VELOCITIES = np.linspace(-8.0, 8.0, 65)  # from the env's lower to its upper limit


@dataclass(frozen=True)
class Maps:
    """The potential at action 0, and the points (angle, velocity) that expert and agent visit."""

    step: Floats  # env steps at each moment, (moments,)
    potential: Floats  # the maps, (moments, VELOCITIES, ANGLES)
    expert: Floats  # the points of the N transitions of the demonstrations, (N, 2)
    agent: Floats  # the points of recent transitions, (moments, RECENT, 2), padded with NaN


def cell(steps: int) -> CellConfig:
    """Return the run's settings: small nets, and the same pairing loss as at the `quick` scale."""
    params = asdict(PotentialConfig(pairing="mse_softmax", hidden=(128, 128)))
    train = TrainConfig(steps=steps, batch=128)
    return CellConfig(
        ENV, "ngt", "ngt.potential:Potential", params, sac=SacConfig((64, 64)), train=train
    )


def train(steps: int = STEPS, moments: Sequence[float] = MOMENTS) -> Maps:
    """Train one run, and return the maps of its potential.

    moments: the moments of the maps, as increasing fractions of the training run.
    """
    torch.set_num_threads(1)
    settings = cell(steps)
    data = demos.subsample(demos.load(DEMOS), EPISODES, RATE, seed=0)
    member = Member(Path(), {}, 0, EPISODES, data)
    learner, n = Learner(settings, [member]), settings.train.num_envs
    assert isinstance(learner.model, Potential)
    seed, obs = run_seed(settings, member), data.obs.shape[-1]
    explore = Streams([seed], Sac.exploration(n, 1))
    replay = Replay(1, steps + n, obs, 1, envs=n)
    collector = Collector(VectorEnv(ENV, n), learner, replay, explore)
    due = [max(n, round(part * steps / n) * n) for part in moments]
    shown: list[tuple[Floats, Floats]] = []
    with contextlib.closing(collector.env):
        collector.reset([derive(seed, "env", i) for i in range(n)])
        for step in range(n, steps + n, n):
            action = collector.act(False)
            if replay.size:
                learner.update(replay)
            collector.store(collector.step(action))
            shown += [(over_states(learner.model), recent(replay))] * due.count(step)
    maps, agent = zip(*shown, strict=True)
    return Maps(np.array(due, float), np.stack(maps), points(data.obs[0]), np.stack(agent))


@torch.no_grad()
def over_states(model: Potential) -> Floats:
    """Return the potential at action 0 over the grid of states, shape (VELOCITIES, ANGLES)."""
    velocity, angle = np.meshgrid(VELOCITIES, ANGLES, indexing="ij")
    flat = np.stack([np.cos(angle), np.sin(angle), velocity], axis=-1).reshape(1, -1, 3)
    states = torch.from_numpy(flat).float()
    zero = torch.zeros_like(states[..., :1])
    batch = Batch(states, zero, states, zero[..., 0], zero[..., 0])
    h = model.potential(model.inputs(batch), model.config.reward_sigma)
    return np.asarray(h.double().numpy().reshape(velocity.shape))


def recent(replay: Replay) -> Floats:
    """Return the angles and velocities of the last RECENT transitions, shape (RECENT, 2).

    If there are fewer transitions, the first rows are NaN.
    """
    index = torch.arange(max(0, replay.total - RECENT), replay.total)
    found = points(replay.sample(index[None]).obs[0])
    return np.pad(found, ((RECENT - len(found), 0), (0, 0)), constant_values=np.nan)


def points(obs: Tensor) -> Floats:
    """Return the angles and velocities, shape (N, 2), of N observations (cos, sin, velocity)."""
    x = obs.double().numpy()
    return np.stack([np.arctan2(x[:, 1], x[:, 0]), x[:, 2]], axis=-1)


def save(path: Path, maps: Maps) -> None:
    """Write the maps to a file as float32."""
    with atomic(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **{k: v.astype(np.float32) for k, v in vars(maps).items()})


def load(path: Path) -> Maps:
    """Load the maps from a file. Raise UserError if the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return Maps(**{name: file[name].astype(float) for name in file.files})
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"{path}: can't be read ({error}); write it again with "
            f"`python -m paper.numbers.potential`"
        ) from None


if __name__ == "__main__":
    from paper.register import POTENTIAL

    save(Path(POTENTIAL), train())
