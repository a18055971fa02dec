"""The collector, which acts in the envs and stores transitions in the replay buffer.

In a vector step, every env takes one step. The collector's tensors have fixed addresses. On CUDA,
the device's work before and after the envs' step is therefore captured once in CUDA graphs and then
replayed. Each vector step copies data once to the device and once from the device, through pinned
memory. A vector step waits for the device only once, when it reads the actions. By then, all work
that was launched earlier has finished, including the previous vector step's copy to the device.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ngt.agent.streams import Streams
from ngt.experience.replay import Batch, Replay
from ngt.experience.vector import Step, VectorEnv
from ngt.reward import checked
from ngt.state import State, slice_of
from ngt.training.graphs import Graph
from ngt.training.learner import Learner
from ngt.training.model import shown


class Collector:
    """The envs of a pack (R runs with n envs each), with their latest observations and actions."""

    def __init__(self, env: VectorEnv, learner: Learner, replay: Replay, explore: Streams) -> None:
        self.env, self.learner, self.replay, self.explore = env, learner, replay, explore
        task, runs, device = env.task, learner.runs, learner.device
        self.shape = (runs, env.num // runs)
        self.obs = torch.zeros(*self.shape, task.obs, device=device)
        self.action = torch.zeros(*self.shape, task.act, device=device)
        self.noise = torch.zeros(*self.shape, task.act, device=device)
        # Widths of the columns that are copied to the device: next_obs | obs | reward | terminated
        # | slot. The slot is an index into the buffer's table of final observations.
        self.widths = [task.obs, task.obs, 1, 1, 1]
        self.host = torch.zeros(*self.shape, sum(self.widths), pin_memory=device.type == "cuda")
        self.arrived = self.host.to(device)
        self.chosen = torch.zeros(*self.shape, task.act, pin_memory=device.type == "cuda")
        self.returns = EpisodeReturns(*self.shape)
        self._act = self._captured(self._choose)
        self._put = self._captured(self._store)

    def _captured(self, step: Callable[[], None]) -> Callable[[], None]:
        return Graph(step) if self.learner.graphs else step

    def reset(self, seeds: Sequence[int], first: Batch | None = None) -> None:
        """Start every env from its own seed. If `first` is given, store these transitions."""
        self.obs.copy_(torch.from_numpy(self.env.reset(seeds)).view_as(self.obs))
        if first is not None:
            ended = np.zeros(tuple(first.reward.shape), bool)
            ended[:, -self.shape[1] :] = True  # after these, the envs start new episodes
            self.replay.add(first, ended)

    def act(self, random: bool = False) -> NDArray[np.float32]:
        """Return the agent's noisy actions for the latest observations, shape (R, n, act).

        random: return uniform random actions instead of the agent's actions.
        """
        draws = self.explore.next()
        if random:
            self._see()
            self.action.copy_(2.0 * draws["uniform"] - 1.0)
        else:
            self.noise.copy_(draws["explore"])
            self._act()
        self.chosen.copy_(self.action)
        return self.chosen.numpy().copy()

    def _see(self) -> None:
        if self.learner.normaliser is not None:
            self.learner.normaliser.update(self.obs)

    def _choose(self) -> None:
        learner = self.learner
        self._see()
        self.action.copy_(learner.agent.act(learner.policy.normalise(self.obs), self.noise))

    def step(self, action: NDArray[np.float32]) -> Step:
        """Step the envs with actions (R, n, act)."""
        return self.env.step(action.reshape(self.env.num, -1))

    def store(self, step: Step) -> None:
        """Store a step's transitions, with the rewards from `observe` if the model overrides it."""
        ended, table = step.terminated | step.truncated, self.replay.finals
        slot = self.replay.reserve(ended.reshape(self.shape))
        if self.learner.graphs and self.replay.finals is not table:
            torch.cuda.synchronize()  # running graphs may still use the old tensor
            self.learner.graph, self._put = None, self._captured(self._store)
        columns = [step.next_obs, step.obs, step.reward, step.terminated, slot]
        host = self.host.numpy().reshape(self.env.num, -1)
        np.concatenate([c.reshape(self.env.num, -1) for c in columns], axis=1, out=host)
        self.arrived.copy_(self.host, non_blocking=True)
        self._put()
        self.returns.add(step.reward, ended)

    def _store(self) -> None:
        next_obs, obs, *rest = self.arrived.split(self.widths, dim=-1)
        reward, terminated, slot = (x.squeeze(-1) for x in rest)
        transition = Batch(self.obs, self.action, next_obs, reward, terminated)
        model = self.learner.model
        if model.stores:
            reward = model.observe(shown(model, transition), slot > 0)
            name = f"{type(model).__name__}.observe"
            reward = checked(reward, transition.reward, name, grad=False)
        self.replay.store(transition._replace(reward=reward), slot)
        self.obs.copy_(obs)

    def state(self, run: int) -> State:
        """Return the state of one run's envs, buffer, exploration noise and episode returns."""
        n = self.shape[1]
        return (
            State({"obs": slice_of(self.obs, run)})
            | self.env.state(slice(run * n, (run + 1) * n))
            | self.replay.state(run)
            | self.explore.state(run)
            | self.returns.state(run)
        )

    def restore(self, states: Sequence[State]) -> None:
        """Restore the states of all runs. The envs replay their current episodes.

        Raise ValueError if the states do not fit the runs. Warn if an env's observation differs
        from the saved observation.
        """
        self.replay.restore(states)
        self.obs.copy_(torch.from_numpy(self.env.restore(states)).view_as(self.obs))
        if not torch.equal(self.obs.cpu(), torch.cat([s.tensors["obs"] for s in states])):
            warnings.warn(
                f"{self.env.task.id}: the same seed and actions led elsewhere, so the results will "
                "differ from those of an uninterrupted run",
                stacklevel=2,
            )
        self.explore.restore(states)
        self.returns.restore(states)


class EpisodeReturns:
    """The returns of completed training episodes, for R runs with n envs each."""

    def __init__(self, runs: int, n: int) -> None:
        self.running = np.zeros((runs, n))
        self.ended = np.zeros((runs, 2))  # sum of returns and number of episodes

    def add(self, reward: NDArray[np.float64], done: NDArray[np.bool_]) -> None:
        """Add the rewards of one step of all envs.

        done: True for each env whose episode ended.
        """
        self.running += reward.reshape(self.running.shape)
        if done.any():
            ends = done.reshape(self.running.shape)
            returns = np.where(ends, self.running, 0.0)
            self.ended += np.stack([returns.sum(axis=1), ends.sum(axis=1)], axis=1)
            self.running[ends] = 0.0

    def drain(self) -> dict[str, NDArray[np.float64]]:
        """Return the mean return and the number of the episodes that ended since the last call.

        The mean is nan if no episode ended.
        """
        total, count = self.ended.T.copy()
        self.ended[:] = 0.0
        with np.errstate(invalid="ignore"):
            return {"train_return": total / count, "train_episodes": count}

    def state(self, run: int) -> State:
        """Return the state of one run's returns."""
        return State(
            data={"running": self.running[run].tolist(), "ended": self.ended[run].tolist()}
        )

    def restore(self, states: Sequence[State]) -> None:
        """Restore the returns of all runs."""
        self.running[:] = [state.data["running"] for state in states]
        self.ended[:] = [state.data["ended"] for state in states]
