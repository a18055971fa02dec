"""Acting in the envs: one vector step at a time, kept in tensors that stay where they are.

On CUDA, what happens on the device before and after the envs' step is captured once and replayed,
and each way is one copy through pinned memory. Reading the actions is the only wait in a step: it
ends when all that was launched before has run, the former step's copy included.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.experience.envs import Step, VectorEnv
from ngt.experience.replay import Batch, Replay
from ngt.reward import checked
from ngt.seeding import Streams
from ngt.training.checkpoint import Ring, Saved, slice_of
from ngt.training.graphs import Graph
from ngt.training.learner import Learner


class Collector:
    """The envs of a pack, R runs with n each, their last observations and their last actions."""

    def __init__(self, env: VectorEnv, learner: Learner, replay: Replay, explore: Streams) -> None:
        self.env, self.learner, self.replay, self.explore = env, learner, replay, explore
        task, runs, device = env.task, learner.runs, learner.device
        self.shape = (runs, env.num // runs)
        self.obs = torch.zeros(*self.shape, task.obs, device=device)
        self.action = torch.zeros(*self.shape, task.act, device=device)
        self.noise = torch.zeros(*self.shape, task.act, device=device)
        # next_obs | obs | reward, terminated, slot of the buffer: all that a step brings
        self.widths = [task.obs, task.obs, 1, 1, 1]
        self.host = torch.zeros(*self.shape, sum(self.widths), pin_memory=device.type == "cuda")
        self.arrived = self.host.to(device)
        self.chosen = torch.zeros(*self.shape, task.act, pin_memory=device.type == "cuda")
        self._act = self._captured(self._choose)
        self._put = self._captured(self._store)

    def _captured(self, step: Callable[[], None]) -> Callable[[], None]:
        return Graph(step) if self.learner.graphs else step

    def reset(self, seeds: Sequence[int]) -> None:
        """Start every env from its own seed."""
        obs = torch.from_numpy(self.env.reset(seeds))
        self.obs.copy_(obs.view(*self.shape, -1))

    def act(self, random: bool = False) -> NDArray[np.float32]:
        """Exploring actions (R, n, act) for the last observations, or uniform random ones."""
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
        """Take the actions (R, n, act) and store the transitions."""
        step = self.env.step(action.reshape(self.env.num, -1))
        ended, table = step.terminated | step.truncated, self.replay.finals
        slot = self.replay.reserve(ended.reshape(self.shape))
        if self.learner.graphs and self.replay.finals is not table:
            torch.cuda.synchronize()  # graphs that may still run hold the former table's address
            self.learner.graph, self._put = None, self._captured(self._store)
        columns = [step.next_obs, step.obs, step.reward, step.terminated, slot]
        host = self.host.numpy().reshape(self.env.num, -1)
        at = 0
        for column, width in zip(columns, self.widths, strict=True):
            host[:, at : at + width] = column.reshape(self.env.num, -1)
            at += width
        self.arrived.copy_(self.host, non_blocking=True)
        self._put()
        return step

    def _store(self) -> None:
        next_obs, obs, *rest = self.arrived.split(self.widths, dim=-1)
        reward, terminated, slot = (x.squeeze(-1) for x in rest)
        transition = Batch(self.obs, self.action, next_obs, reward, terminated)
        model = self.learner.model
        reward = model.observe(transition, slot > 0)
        reward = checked(reward, transition.reward, f"{type(model).__name__}.observe", grad=False)
        self.replay.store(transition._replace(reward=reward), slot)
        self.obs.copy_(obs)

    def state(self, run: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Where one run's envs stand, as tensors, and its exploration stream as plain data."""
        mine = slice(run * self.shape[1], (run + 1) * self.shape[1])
        envs = {f"env.{n}": torch.from_numpy(x[mine].copy()) for n, x in self.env.state().items()}
        return {"obs": slice_of(self.obs, run), **envs}, {"explore": self.explore.state_of(run)}

    def rings(self, run: int) -> dict[str, Ring]:
        """One run's buffer, as checkpoints keep it."""
        replay = self.replay
        total, ends = replay.total, replay.ends[run]
        held, live = replay.size, replay.live(run)
        width, obs = replay.rows.shape[2], replay.finals.shape[2]
        return {
            "rows": Ring(total - held, total, width, partial(replay.read, run)),
            "finals": Ring(ends - live, ends, obs, partial(replay.read_finals, run)),
        }

    def restore(self, saved: Sequence[Saved]) -> None:
        """Bring all runs to where `state` was taken: buffers, envs by playing their episodes again.

        ValueError where a buffer is not of this form.
        """
        for run, s in enumerate(saved):
            rows, finals = s.rings["rows"], s.rings["finals"]
            self.replay.write(
                run, torch.from_numpy(rows.items), rows.total, torch.from_numpy(finals.items),
                finals.total, s.tensors["obs"][0],
            )  # fmt: skip
        longest = max(s.tensors["env.actions"].shape[1] for s in saved)
        envs: dict[str, list[NDArray[Any]]] = {}
        for s in saved:
            for name in ("seed", "episode", "length", "actions"):
                part = s.tensors[f"env.{name}"].numpy()
                if name == "actions":
                    part = np.pad(part, ((0, 0), (0, longest - part.shape[1]), (0, 0)))
                envs.setdefault(name, []).append(part)
        obs = self.env.restore({name: np.concatenate(parts) for name, parts in envs.items()})
        self.obs.copy_(torch.from_numpy(obs).view_as(self.obs))
        if not torch.equal(self.obs.cpu(), torch.cat([s.tensors["obs"] for s in saved])):
            warnings.warn(
                f"{self.env.task.id}: the same seed and actions led elsewhere, so the numbers will "
                "not be those of an uninterrupted run", stacklevel=2,
            )  # fmt: skip
        self.explore.restore([s.meta["explore"] for s in saved])
