"""A script that runs gradient steps of SBX's SAC on request.

The Python that runs this file needs the packages in `peers.txt`. `python serve_sbx.py OBS ACT`
makes an agent for observations of size OBS and actions of size ACT, fills its buffer and prints the
library versions as JSON. For each input line `STEPS CALLS` it then makes CALLS calls of STEPS
gradient steps each and prints `done`. This file does not import `ngt`, which that Python's
environment may lack.
"""

import json
import sys
from importlib import metadata
from typing import Any

import gymnasium as gym
import numpy as np

FILLED, BATCH, HIDDEN = 10_000, 256, [256, 256]  # as for the suite's own SAC in the benchmarks
LIBRARIES = ("sbx-rl", "jax", "jaxlib", "flax", "optax", "stable_baselines3", "numpy")


class Sizes(gym.Env[Any, Any]):
    """An env that is never stepped. It only defines the sizes of observations and actions."""

    def __init__(self, obs: int, act: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (obs,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (act,), np.float32)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Return zeros."""
        return np.zeros(self.observation_space.shape or (), np.float32), {}


def agent_of(obs: int, act: int) -> Any:
    """Return SBX's SAC with a buffer filled with random transitions."""
    from sbx import SAC

    agent = SAC(
        "MlpPolicy",
        Sizes(obs, act),
        batch_size=BATCH,
        buffer_size=FILLED,
        policy_kwargs={"net_arch": HIDDEN},
        learning_rate=3e-4,
        seed=0,
    )
    rng, done = np.random.default_rng(0), np.zeros(1, bool)
    for _ in range(FILLED):
        seen, after = rng.standard_normal((2, 1, obs)).astype(np.float32)
        action = rng.uniform(-1, 1, (1, act)).astype(np.float32)
        agent.replay_buffer.add(seen, after, action, rng.standard_normal(1), done, [{}])
    agent._setup_learn(total_timesteps=1)
    return agent


def main() -> None:
    """Answer requests until the input ends."""
    from jax import block_until_ready

    agent = agent_of(*map(int, sys.argv[1:]))
    print(json.dumps({name: metadata.version(name) for name in LIBRARIES}), flush=True)
    for line in sys.stdin:
        steps, calls = map(int, line.split())
        for _ in range(calls):
            agent.train(gradient_steps=steps, batch_size=BATCH)
        block_until_ready(agent.policy.qf_state.params)
        print("done", flush=True)


if __name__ == "__main__":
    main()
