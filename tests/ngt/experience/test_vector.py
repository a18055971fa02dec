"""Tests of envs in lockstep: true transitions, a seed per env, and reported faults."""

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.experience.envs import Task, register
from ngt.experience.vector import VectorEnv

END, LIMIT = 5, 7  # step at which the toy env ends an episode, and its time limit

pytestmark = pytest.mark.usefixtures("counter")


def rollout(env, seeds, steps, rng=0):
    """Take `steps` vector steps with seeded random actions; return observations and ends."""
    act = env.task.act
    rngs = [np.random.default_rng([rng, seed]) for seed in seeds]
    out = [env.reset(seeds)]
    ends = []
    for _ in range(steps):
        step = env.step(np.stack([r.uniform(-1, 1, act) for r in rngs]))
        out += [step.next_obs, step.obs]
        ends.append(step.terminated)
    return np.stack(out), np.stack(ends)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("terminate", [True, False])
def test_every_step_is_a_transition_with_its_true_next_obs(workers, terminate):
    length = END if terminate else LIMIT
    env = VectorEnv("counter", 2, terminate_when_unhealthy=terminate, workers=workers)
    obs = env.reset([0, 1])
    assert obs.shape == (2, 1) and obs.dtype == np.float32 and not obs.any()
    total = 0.0
    kept = []
    for t in range(3 * length):
        step = env.step(np.zeros((2, 2)))
        count = t % length + 1
        done = count == length
        assert step.next_obs.tolist() == [[count]] * 2
        assert step.obs.tolist() == [[0 if done else count]] * 2
        assert step.reward.tolist() == [10.0 + count] * 2
        assert step.terminated.tolist() == [done and terminate] * 2
        assert step.truncated.tolist() == [done and not terminate] * 2
        assert [x.dtype for x in step] == [np.float32, np.float32, np.float64, bool, bool]
        total += step.reward.sum()
        kept.append((step, count))
    env.close()
    assert total == 2 * 3 * sum(10 + n for n in range(1, length + 1))
    assert all(s.next_obs.tolist() == [[n]] * 2 for s, n in kept)  # steps do not share memory


@pytest.mark.parametrize("workers", [0, 2])
def test_envs_may_end_at_different_steps(workers):
    env = VectorEnv("Hopper-v4", 3, workers=workers)
    out, ends = rollout(env, [3, 4, 5], 60)
    env.close()
    assert ends.any(axis=0).all() and not (ends.all(axis=1) == ends.any(axis=1)).all()
    for t, i in zip(*np.nonzero(ends), strict=True):
        final, start = out[1 + 2 * t, i], out[2 + 2 * t, i]
        assert abs(start[0] - 1.25) < 0.01  # only the start of an episode is this high
        assert final[0] < 0.75 or abs(final[1]) > 0.15  # the hopper has fallen or tilted


@pytest.mark.parametrize("task_id", ["Hopper-v4", "finger-spin"])
def test_seeds(task_id):
    pytest.importorskip("dm_control")

    def run(seeds, workers=0):
        env = VectorEnv(task_id, len(seeds), workers=workers)
        out, _ = rollout(env, seeds, 50)
        env.close()
        return out

    both = run([7, 8])
    assert not np.array_equal(both[0, 0], both[0, 1])
    assert np.array_equal(both, run(np.array([7, 8])))
    assert np.array_equal(both, run([7, 8], workers=2))
    assert np.array_equal(both[:, :1], run([7]))
    assert np.array_equal(both[:, [1, 0]], run([8, 7, 9])[:, :2])


def test_reset_restarts_the_same_env_from_its_seed():
    env = VectorEnv("Hopper-v4", 2)
    first, _ = rollout(env, [1, 2], 40)
    again, _ = rollout(env, [1, 2], 40)
    env.close()
    assert np.array_equal(first, again)
    with pytest.raises(ValueError, match="length"):
        VectorEnv("counter", 2).reset([1])


@pytest.mark.parametrize("workers", [0, 1])
def test_bad_actions_are_refused_and_the_env_lives_on(workers):
    env = VectorEnv("counter", 2, workers=workers)
    env.reset([0, 1])
    with pytest.raises(UserError, match="not finite"):
        env.step(np.array([[0.0, 0.0], [np.nan, 0.0]]))
    with pytest.raises(ValueError, match="is not"):
        env.step(np.zeros((2, 1)))
    assert env.step(np.zeros((2, 2))).next_obs.tolist() == [[1], [1]]
    env.close()


def test_unhealthy_hopper_goes_on_when_told():
    env = VectorEnv("Hopper-v4", 2, terminate_when_unhealthy=False)
    _, ends = rollout(env, [0, 1], 300)
    env.close()
    assert not ends.any()


def test_env_that_ignores_the_choice_is_reported(counter):
    register(Task("stubborn", counter.gym_id, 1, 2, -3, 3, LIMIT, {"stubborn": True}))
    env = VectorEnv("stubborn", 1, terminate_when_unhealthy=False)
    env.reset([0])
    with pytest.raises(UserError, match=r"stubborn.*terminate_when_unhealthy=True"):
        for _ in range(END):
            env.step(np.zeros((1, 2)))
    env.close()
