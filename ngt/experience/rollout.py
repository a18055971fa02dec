"""Functions that run whole episodes of a policy, for evaluation and recording."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.experience.vector import VectorEnv
from ngt.seeding import derive, rng

Act = Callable[[Tensor], Tensor]  # observations (R, n, obs) -> actions (R, n, act) in [-1, 1]

# The observations, actions and rewards of an episode, and True if the env terminated it.
Trace = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64], bool]


@dataclass
class Rollout:
    """One episode in each of R * n envs: returns and lengths (R, n); transitions if requested."""

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    episodes: list[Trace] = field(default_factory=list)


def rollout(
    env: VectorEnv,
    act: Act,
    seeds: Sequence[int],
    runs: int,
    *,
    keep: bool = False,
    device: torch.device | str = "cpu",
) -> Rollout:
    """Reset every env with its own seed and run one whole episode in each env.

    All envs step together until the last of these episodes has ended. Steps that an env takes after
    the end of its episode are dropped.
    """
    total = len(seeds)
    obs = env.reset(seeds)
    returns, lengths = np.zeros(total), np.zeros(total, np.int64)
    running, terminated = np.ones(total, bool), np.zeros(total, bool)
    first, kept = obs, []
    while running.any():
        x = torch.from_numpy(obs).to(device).view(runs, total // runs, -1)
        action = act(x).cpu().numpy().reshape(total, -1)
        step = env.step(action)
        returns += np.where(running, step.reward, 0.0)
        lengths += running
        terminated |= running & step.terminated
        running &= ~(step.terminated | step.truncated)
        obs = step.obs
        if keep:
            kept.append((step.next_obs, action, step.reward))
    shape = (runs, total // runs)
    result = Rollout(returns.reshape(shape), lengths.reshape(shape))
    if keep:
        observed, acted, rewarded = zip(*kept, strict=True)
        o, a, r = np.stack([first, *observed]), np.stack(acted), np.stack(rewarded)
        result.episodes = [
            (o[: n + 1, i], a[:n, i], r[:n, i], bool(terminated[i])) for i, n in enumerate(lengths)
        ]
    return result


def play_random(env: VectorEnv, seed: int, *, keep: bool = False) -> Rollout:
    """Run one episode of a uniform-random policy, which has score 0 by definition, in each env."""
    dice = [rng(seed, "random-action", env.task.id, i) for i in range(env.num)]

    def act(obs: Tensor) -> Tensor:
        actions = np.stack([d.uniform(-1.0, 1.0, env.task.act) for d in dice])
        return torch.from_numpy(actions.astype(np.float32))[None]

    seeds = random_seeds(env.task.id, env.num, seed)
    return rollout(env, act, seeds, runs=1, keep=keep)


def random_seeds(env: str, episodes: int, seed: int) -> list[int]:
    """Return the env seed of each episode that `play_random` runs."""
    return [derive(seed, "random", env, i) for i in range(episodes)]


class Evaluator:
    """An evaluator of the policies of R runs together, which starts every episode from a new seed.

    An episode's seed depends on the env, the run's number of demonstrations and seed, the number of
    the evaluation and that of the episode. The seed does not depend on the method, so all methods
    are evaluated on the same seeds.
    """

    def __init__(
        self,
        env: str,
        keys: Sequence[tuple[int, int]],
        episodes: int,
        *,
        terminate_when_unhealthy: bool = True,
        device: torch.device | str = "cpu",
        env_workers: int = 0,
    ) -> None:
        """Make `episodes` envs per run; `keys` has each run's seed and number of demonstrations."""
        self.env_id, self.keys, self.episodes, self.device = env, list(keys), episodes, device
        self.env = VectorEnv(
            env,
            len(self.keys) * episodes,
            workers=env_workers,
            terminate_when_unhealthy=terminate_when_unhealthy,
        )

    def run(self, act: Act, index: int) -> Rollout:
        """Run evaluation number `index`; return its returns and lengths, shape (R, episodes)."""
        seeds = [
            derive(seed, "eval", self.env_id, demos, index, episode)
            for seed, demos in self.keys
            for episode in range(self.episodes)
        ]
        return rollout(self.env, act, seeds, runs=len(self.keys), device=self.device)

    def close(self) -> None:
        self.env.close()
