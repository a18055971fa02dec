"""Tests of tasks: their facts match the live envs, and unusable tasks are refused."""

import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TransformAction

from ngt.errors import UserError
from ngt.experience import envs
from ngt.experience.envs import (
    OURS,
    TASKS,
    Task,
    check_space,
    get_task,
    make,
    make_task,
    register,
)
from ngt.experience.vector import VectorEnv


def dm(task_id):
    if TASKS[task_id].gym_id.startswith("dm_control/"):
        pytest.importorskip("shimmy")
        pytest.importorskip("dm_control")


@pytest.mark.parametrize("task_id", sorted(TASKS))
def test_registry_matches_the_live_env(task_id):
    dm(task_id)
    task = get_task(task_id)
    env = make(task_id)
    obs, _ = env.reset(seed=0)
    assert obs.shape == (task.obs,) and obs.dtype == np.float32
    assert env.action_space == spaces.Box(-1.0, 1.0, (task.act,), env.action_space.dtype)
    inner = env.unwrapped.action_space
    assert np.all(inner.low == np.float32(task.low)) and np.all(inner.high == np.float32(task.high))
    assert env.spec.max_episode_steps == task.time_limit
    env.close()


@pytest.mark.parametrize("task_id", ["Reacher-v5", "Pendulum-v1", "finger-spin", "walker-walk"])
def test_time_limit_truncates(task_id):
    dm(task_id)
    env = make(task_id)
    env.reset(seed=0)
    steps = 0
    terminated = truncated = False
    while not (terminated or truncated):
        *_, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape, np.float32))
        steps += 1
    assert (steps, terminated, truncated) == (TASKS[task_id].time_limit, False, True)
    env.close()


@pytest.mark.parametrize("task_id, bound", [("Humanoid-v4", 0.4), ("Pusher-v5", 2.0)])
def test_actions_are_rescaled_to_the_env(task_id, bound):
    env = make(task_id)
    env.reset(seed=0)
    for action in (1.0, -1.0, 0.5, 0.0):
        env.step(np.full(env.action_space.shape, action, np.float32))
        assert env.unwrapped.data.ctrl == pytest.approx(action * bound)
    env.close()


class Strict(gym.Env):
    """An env that refuses actions outside its bounds."""

    observation_space = spaces.Box(-1.0, 1.0, (2,))

    def __init__(self, render_mode=None, low=0.0, high=1.0, dtype="float32"):
        self.action_space = spaces.Box(low, high, (2,), np.dtype(dtype))

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.action = action
        return np.zeros(2, np.float32), 0.0, False, False, {}


gym.register("ngt/Strict-v0", Strict)


@pytest.mark.parametrize(
    "low, high, dtype",
    [
        (0.1, 0.7, "float64"),
        (-0.4, 3.0, "float64"),
        (0.2, 0.9, "float32"),
        (-0.4, 0.4, "float32"),
        (0.0, 3.0, "float64"),
    ],
)
def test_rescaled_actions_are_within_the_envs_bounds(low, high, dtype):
    kwargs = {"low": low, "high": high, "dtype": dtype}
    task = Task("strict", "ngt/Strict-v0", 2, 2, low, high, 10**6, kwargs)
    env = make_task(task, True)
    env.reset(seed=0)
    box = env.unwrapped.action_space
    random = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    for action in np.concatenate([[[1, -1]], 1 - 1e-7 * abs(random), random]).astype(np.float32):
        env.step(action)
        found = env.unwrapped.action
        assert found == pytest.approx((low + high) / 2 + action * (high - low) / 2, abs=1e-6)
    env.step(np.array([1.0, -1.0], np.float32))
    assert np.allclose(env.unwrapped.action, [box.high[0], box.low[0]], rtol=1e-6, atol=0)


@pytest.mark.parametrize("task_id", sorted(OURS))
def test_clipping_would_change_no_action_on_the_suites_own_envs(task_id):
    dm(task_id)
    env = make(task_id)
    box, dice = env.unwrapped.action_space, np.random.default_rng(0)
    edges = np.nextafter(np.float32([-1, 1]), np.float32(0))
    actions = np.concatenate(
        [
            dice.uniform(-1, 1, (10_000, *box.shape)),
            np.tanh(dice.normal(0, 5, (10_000, *box.shape))),
            dice.choice([-1.0, 1.0, 0.0, *edges, 1e-45, -1e-45], (10_000, *box.shape)),
        ]
    ).astype(np.float32)
    found = env.func(actions)
    env.close()
    assert not isinstance(env.env, TransformAction), "this would slow down the env"
    assert found.dtype == box.dtype
    assert found.tobytes() == found.clip(box.low, box.high).tobytes()


def test_ant_has_its_contact_forces():
    assert TASKS["Ant-v4"].obs == 111
    with pytest.raises(UserError, match="obs is 27 in the live env and 111"):
        make_task(Task("ant", "Ant-v4", 111, 8, -1, 1, 1000), True)


def test_ant_27_is_ant_without_its_contact_forces():
    """Check that both tasks move alike, and that only Ant-v4 sees contact forces and pays for them.

    With forces f clipped to [-1, 1], Ant-v4 pays 5e-4 |f|^2 per step.
    """
    both, few = make("Ant-v4"), make("Ant-27")
    (seen, _), (own, _) = both.reset(seed=0), few.reset(seed=0)
    rng, cost, ended = np.random.default_rng(0), 0.0, False
    for _ in range(100):
        action = rng.uniform(-1, 1, 8)
        seen, paid, ended, *_ = both.step(action)
        own, free, *_ = few.step(action)
        forces = np.clip(both.unwrapped.data.cfrc_ext, -1, 1)
        np.testing.assert_array_equal(seen[:27], own)
        np.testing.assert_array_equal(seen[27:], forces.ravel().astype(np.float32))
        assert free - paid == pytest.approx(5e-4 * np.square(forces).sum(), abs=1e-12)
        cost += free - paid
        if ended:
            break
    both.close()
    few.close()
    assert cost > 0.0, "the body must have touched the ground"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"obs": 2}, "obs is 1 in the live env and 2"),
        ({"act": 3}, "act is 2 in the live env and 3"),
        ({"low": -1}, r"low is -3.0 in the live env and -1.0"),
        ({"high": 1}, r"high is 3.0 in the live env and 1.0"),
        ({"gym_id": "Pendulum-v1", "obs": 3, "act": 1, "low": -2, "high": 2}, "time_limit is 200"),
        ({"gym_id": "ngt/Counter-v1"}, "gymnasium can't make it"),
        ({"gym_id": "nowhere:Toy-v0"}, "can't make it: .*nowhere"),
        ({"gym_id": "Pendulum-v1", "can_terminate": True}, "can't make it: .*when_unhealthy"),
        ({"gym_id": "CartPole-v1", "time_limit": 500}, "is not continuous"),
    ],
)
def test_wrong_entry_is_refused(counter, change, message):
    facts = {**vars(counter), "can_terminate": False, **change}
    with pytest.raises(UserError, match=message):
        make_task(Task(**facts), True)


@pytest.mark.parametrize("task_id", ["Hopper-v4", "Pendulum-v1", "finger-spin"])
def test_nan_leaves_a_single_env_usable(task_id, tmp_path, monkeypatch):
    dm(task_id)
    monkeypatch.chdir(tmp_path)
    env = make(task_id)
    env.reset(seed=0)
    for _ in range(3):
        try:
            env.step(np.full(env.action_space.shape, np.nan, np.float32))
        except Exception as error:  # dm_control raises its own error type
            assert type(error).__name__ == "PhysicsError"
    obs, _ = env.reset(seed=0)
    obs, *_ = env.step(np.zeros(env.action_space.shape, np.float32))
    assert np.isfinite(obs).all()
    env.close()
    assert not list(Path().iterdir())


def box(*shape, low=-1.0, high=1.0, dtype=np.float32):
    return spaces.Box(low, high, shape, dtype)


@pytest.mark.parametrize(
    "observation, action, message",
    [
        (box(3), spaces.Discrete(2), r"Discrete\(2\) is not continuous"),
        (box(3), spaces.MultiDiscrete([2, 2]), "is not continuous"),
        (box(3), spaces.Dict(a=box(2)), "is not continuous"),
        (box(3), box(2, low=0, high=9, dtype=np.int64), "is not continuous"),
        (box(3), box(2, 2), "has 2 dimensions"),
        (box(3), box(), "has 0 dimensions"),
        (box(3), box(2, high=np.inf), "is unbounded"),
        (box(3), spaces.Box(np.float32([-1, -2]), np.float32([1, 2])), "differ between"),
        (box(8, 8, 3), box(2), "is not a vector"),
        (spaces.Discrete(4), box(2), "is not a vector"),
        (spaces.Dict(a=box(3), b=spaces.Dict(c=box(8, 8))), box(2), "is not a vector"),
        (spaces.Tuple([box(3), spaces.Text(4)]), box(2), "is not a vector"),
    ],
)
def test_spaces_refused(observation, action, message):
    with pytest.raises(UserError, match=message) as caught:
        check_space("toy-v0", observation, action)
    assert "'toy-v0'" in str(caught.value) and "\n" not in str(caught.value)


def test_spaces_accepted():
    check_space("toy-v0", spaces.Dict(a=box(3), b=spaces.Tuple([box(), box(2)])), box(2))


def test_ids(counter):
    with pytest.raises(UserError, match=r"Pusher-v4.*refused.*use Pusher-v5"):
        get_task("Pusher-v4")
    with pytest.raises(UserError, match="'Ant-v5' is unknown: use one of Ant-v4"):
        get_task("Ant-v5")
    with pytest.raises(UserError, match="walker-walk"):
        make("dm_control/walker-walk-v0")
    with pytest.raises(UserError, match=r"Ant-v4.*walker-walk"):
        get_task("$$$")
    with pytest.raises(UserError, match="'my/counter' cannot name a folder"):
        register(Task("my/counter", "ngt/Counter-v0", 1, 2, -3, 3, 7))
    register(counter)
    with pytest.raises(UserError, match="'counter' is already registered"):
        register(Task("counter", "ngt/Counter-v0", 9, 2, -3, 3, 7))


@pytest.mark.parametrize("task_id", ["HalfCheetah-v4", "Pendulum-v1", "finger-spin"])
def test_no_warning_and_no_log_file(task_id, tmp_path, monkeypatch):
    dm(task_id)
    mujoco = pytest.importorskip("mujoco")
    make(task_id).close()  # import first, because warnings of imports are not tested here
    monkeypatch.chdir(tmp_path)
    mujoco.set_mju_user_warning(None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = make(task_id)
        env.reset(seed=0)
        env.step(np.zeros(env.action_space.shape, np.float32))
        env.close()
        vector = VectorEnv(task_id, 2, workers=2)
        vector.reset([0, 1])
        vector.close()
    assert not [str(w.message) for w in caught if "fork" not in str(w.message)]
    assert not list(Path().iterdir())


def test_import_is_light():
    code = "import sys, ngt.experience.envs; print(*(m.split('.')[0] for m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"shimmy", "dm_control", "mujoco", "glfw", "OpenGL", "torch"}
    assert not heavy & set(out.stdout.split())


def test_missing_dm_control_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control.suite", None)
    with pytest.raises(UserError, match=r"'walker-walk' needs dm_control .*pip install") as caught:
        make("walker-walk")
    assert "\n" not in str(caught.value)
    make("Pendulum-v1").close()


def test_ones_own_tasks_are_made_once_when_planning(monkeypatch):
    made = []
    monkeypatch.setattr(envs, "make", lambda name: made.append(name) or make(name))
    monkeypatch.setattr(envs, "TASKS", dict(TASKS))
    register(Task("CartPole-v1", "CartPole-v1", 4, 1, -1.0, 1.0, 500))
    with pytest.raises(UserError, match="is not continuous"):
        envs.check_registered(["Pendulum-v1", "CartPole-v1"])
    register(Task("Blackjack-v1", "Blackjack-v1", 3, 1, -1.0, 1.0, 500))
    with pytest.raises(UserError, match="Blackjack-v1"):
        envs.check_registered(["Blackjack-v1"])
    assert made == ["CartPole-v1", "Blackjack-v1"], "only the user's tasks must be made"
