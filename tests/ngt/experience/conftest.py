"""A toy env with known transitions."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from ngt.experience import envs
from ngt.experience.envs import Task

END, LIMIT = 5, 7  # step at which the toy env ends an episode, and its time limit


class Counter(gym.Env[np.ndarray, np.ndarray]):
    """A toy env that may end at step END.

    It observes the number of steps in the episode and rewards 10 plus this number.
    """

    observation_space = spaces.Box(0.0, np.inf, (1,), np.float32)
    action_space = spaces.Box(-3.0, 3.0, (2,), np.float32)

    def __init__(self, render_mode=None, terminate_when_unhealthy=False, stubborn=False):
        self.render_mode = render_mode
        self.ends = terminate_when_unhealthy or stubborn
        self.count = np.zeros(1, np.float32)  # one buffer, changed in place to expose aliasing

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count[:] = 0
        return self.count, {}

    def step(self, action):
        self.count += 1
        n = float(self.count[0])
        return self.count, 10.0 + n, self.ends and n == END, False, {}


gym.register("ngt/Counter-v0", Counter)
COUNTER = Task("counter", "ngt/Counter-v0", 1, 2, -3.0, 3.0, LIMIT, can_terminate=True)


@pytest.fixture
def counter(monkeypatch):
    """Register the toy env's task for one test and return it."""
    monkeypatch.setattr(envs, "TASKS", {**envs.TASKS, COUNTER.id: COUNTER})
    return COUNTER
