"""Make gradient steps of SBX's SAC on request. A Python that has `peers.txt` runs this file.

`python serve_sbx.py OBS ACT` prints its versions as JSON once the buffer is filled. For each input
line `STEPS CALLS` it then makes that many calls of that many gradient steps and prints `done`. The
suite itself is not imported, because it need not be installed there.
"""

import json
import sys
from importlib import metadata
from typing import Any

import gymnasium as gym
import numpy as np

FILLED, BATCH, HIDDEN = 10_000, 256, [256, 256]  # as the suite's own learners have them
LIBRARIES = ("sbx-rl", "jax", "jaxlib", "flax", "optax", "stable_baselines3", "numpy")


class Sizes(gym.Env[Any, Any]):
    """An env with these sizes of observation and action, which is never stepped."""

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
    """Serve until the input ends."""
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
