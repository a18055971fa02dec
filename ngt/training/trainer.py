"""Algorithm 1 for a pack, i.e. R runs that are trained together.

The runs of a pack differ only in their seed and demonstrations.

In a vector step, every env takes one step. A vector step chooses actions, launches the updates,
steps the envs, and stores the transitions, in this order. The updates therefore use only
transitions of earlier vector steps, and a CUDA device computes the updates while the envs are
stepped. The order is the same on every device and for any number of env processes, so a run's
numbers depend neither on the device nor on the number of processes. The drawback of this order is
that the policy lags one vector step behind the buffer.

Vector steps with random actions make no updates. The first vector step makes no updates either,
because the buffer is still empty, unless the method fills the buffer beforehand. Consider a method
that does not fill the buffer, and N vector steps, of which the first K have random actions. These
steps make (N - max(1, K)) * `updates_per_step` updates. All work of a vector step is complete when
the step ends. A row of the log, an evaluation or a checkpoint may therefore follow any vector step,
and includes the transitions and updates of this step.

The loop is the same for every method. The method's RewardModel decides what is learned and stored,
and whether envs are used at all. If one of a run's tensors is no longer finite, the run ends, and
its run.json states the status `diverged`, the step and the tensor's name. The pack's other runs
continue.
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.agent.sac import Sac
from ngt.agent.streams import Streams
from ngt.errors import Interrupted, UserError, lacks_memory
from ngt.experience.envs import get_task
from ngt.experience.replay import Batch, Replay
from ngt.experience.rollout import Evaluator
from ngt.experience.vector import VectorEnv
from ngt.runs.provenance import source_hash
from ngt.seeding import derive
from ngt.settings.config import CellConfig
from ngt.state import State
from ngt.training import checkpoint
from ngt.training.collector import Collector
from ngt.training.learner import Learner, Member, run_seed
from ngt.training.progress import Progress
from ngt.training.records import Records

Part = Learner | Records | Collector  # each has `state` and `restore`


def made_with(cell: CellConfig, member: Member) -> dict[str, Any]:
    """Return a run's key, settings, code hash and reference (the returns with scores 0 and 1).

    The run resumes from a checkpoint only if all of these are equal to the values in the
    checkpoint.
    """
    return {
        "key": dict(member.key),
        "config": dataclasses.asdict(cell),
        "source": source_hash(cell.model),
        "reference": dict(member.reference or {}),
    }


class Trainer:
    """The training loop of a pack, with its envs, buffer, learner, evaluation and records."""

    def __init__(
        self,
        cell: CellConfig,
        members: Sequence[Member],
        *,
        device: torch.device | str = "cpu",
        env_workers: int = 0,
        graphs: bool = True,
        checkpoint_every: int = 0,
    ) -> None:
        """Prepare the training of a pack.

        checkpoint_every: the number of env steps between two checkpoints. If 0, a checkpoint is
        written only after a stop signal.
        """
        self.cell, self.members, self.device = cell, list(members), torch.device(device)
        self.runs, self.n = len(members), cell.train.num_envs
        self.learner = Learner(cell, members, self.device, graphs)
        self.env_workers, self.checkpoint_every = env_workers, checkpoint_every
        self.evaluator = Evaluator(
            cell.env,
            [(m.seed, m.demos) for m in members],
            cell.train.eval_episodes,
            terminate_when_unhealthy=cell.terminate_when_unhealthy,
            device=self.device,
            env_workers=env_workers,
        )
        self.alive = np.ones(self.runs, bool)
        self.step = 0
        self.stop = False  # set this to True, even in a signal handler, to stop after a checkpoint
        self.collector: Collector | None = None  # None if the method is offline
        self.parts: dict[str, Part] = {"learner": self.learner}  # their states form a checkpoint

    def run(self, name: str, resume: int | None = None) -> None:
        """Train to the end and write every run's folder. Raise Interrupted after `stop` is set.

        name: the text that the progress display shows.
        resume: the step from whose checkpoints all runs resume, or None to start from the
        beginning.
        """
        saved = [] if resume is None else [checkpoint.load(m.folder, resume) for m in self.members]
        self.step = resume or 0
        self.parts["records"] = self.records = Records(self.cell, self.members, self.learner)
        self.progress = Progress(self.cell.train.steps, name, first=self.step)
        with contextlib.closing(self.evaluator), contextlib.closing(self.progress):
            (self._offline if self.learner.model.offline else self._online)(saved)
        for run in np.flatnonzero(self.alive).tolist():
            self._finish(run)

    def _offline(self, saved: Sequence[Mapping[str, State]]) -> None:
        """Fit the policy to demonstrations without envs. `self.step` counts gradient steps."""
        if self.learner.normaliser is not None:
            self.learner.normaliser.fit([m.data.obs for m in self.members if m.data is not None])
        if saved:
            self._restore(saved)
        while self.step < self.cell.train.steps and self.alive.any():
            self.learner.fit()
            self.step += 1
            self._log_evaluate_save(1)

    def _online(self, saved: Sequence[Mapping[str, State]]) -> None:
        """Train in envs. `self.step` counts the env steps of each run."""
        train = self.cell.train
        seeds = [run_seed(self.cell, m) for m in self.members]
        first = self.learner.model.prefill()
        self.parts["collector"] = self.collector = collector = self._collector(seeds, first)
        with contextlib.closing(collector.env):
            if saved:
                self._restore(saved)
            else:
                collector.reset([derive(s, "env", i) for s in seeds for i in range(self.n)], first)
            while self.step < train.steps and self.alive.any():
                random = self.step < train.learning_starts
                action = self._act(collector, random)
                if not random and collector.replay.size:
                    for _ in range(train.updates_per_step):
                        self.learner.update(collector.replay)
                transitions = collector.step(action)
                collector.store(transitions)
                self.step += self.n
                self._check(transitions.next_obs, "obs")
                self._log_evaluate_save(self.n)

    def _act(self, collector: Collector, random: bool) -> NDArray[np.float32]:
        """Return actions (R, n, act) for all envs. End the runs whose actions are not finite."""
        action = collector.act(random)
        self._check(action, "action")
        action[~self.alive] = 0.0  # the envs of ended runs still need actions
        return action

    def _collector(self, seeds: Sequence[int], first: Batch | None) -> Collector:
        cell, task = self.cell, get_task(self.cell.env)
        explore = Streams(seeds, Sac.exploration(self.n, task.act), self.device)
        stored = 0 if first is None else first.obs.shape[1]
        if stored > cell.train.buffer:
            raise UserError(
                f"train.buffer: found {cell.train.buffer}, but {cell.method} stores {stored} "
                f"transitions before the first step; raise train.buffer"
            )
        capacity = min(cell.train.buffer, stored + cell.train.steps + self.n)
        replay = Replay(self.runs, capacity, task.obs, task.act, self.device, envs=self.n)
        env = VectorEnv(
            cell.env,
            self.runs * self.n,
            workers=self.env_workers,
            terminate_when_unhealthy=cell.terminate_when_unhealthy,
        )
        return Collector(env, self.learner, replay, explore)

    def _check(self, values: NDArray[np.float32], name: str) -> None:
        """End the runs whose values are not all finite.

        values: shape (R, ...).
        """
        if not np.isfinite(values).all():
            fine = np.isfinite(values.reshape(self.runs, -1)).all(axis=1)
            for run in np.flatnonzero(~fine & self.alive).tolist():
                self._diverge(run, self.learner.non_finite(run) or name)

    def _due(self, every: int, stride: int) -> bool:
        """Return True if the last `stride` steps include a multiple of `every` or the run's end."""
        done = self.step >= self.cell.train.steps
        return done or self.step // every > (self.step - stride) // every

    def _log_evaluate_save(self, stride: int) -> None:
        """Report progress; log, evaluate and write checkpoints if they are due at this step."""
        train = self.cell.train
        if self._due(train.log_every, stride) and self.learner.updates:
            self._log()
        if self._due(train.eval_every, stride) and self.alive.any():
            self._evaluate()
        self.progress.update(self.step)
        if self.step < train.steps and self.alive.any():
            every = self.checkpoint_every
            if self.stop or (every and self._due(every, stride)):
                self._save()
            if self.stop:
                raise Interrupted(self.step)

    def _log(self) -> None:
        means = self.learner.drain()
        episodes = {} if self.collector is None else self.collector.returns.drain()
        for run in np.flatnonzero(self.alive).tolist():
            self.records.log(run, self.step, {**means, **episodes})
            losses = (name for name, values in means.items() if not np.isfinite(values[run]))
            if broken := next(losses, None) or self.learner.non_finite(run):
                self._diverge(run, broken)

    def _evaluate(self) -> None:
        broken: dict[int, str] = {}

        def act(obs: Tensor) -> Tensor:
            """Return the policies' actions, or zeros for runs whose actions are not all finite."""
            action: Tensor = self.learner.policy(obs)
            fine = action.isfinite().flatten(1).all(dim=1)
            if fine.all():
                return action
            for run in np.flatnonzero(~fine.cpu().numpy()).tolist():
                broken.setdefault(run, "action" if obs[run].isfinite().all() else "obs")
            return torch.where(fine[:, None, None], action, 0.0)

        with self.records.paused():
            result = self.evaluator.run(act, self.records.evaluations)
        self.records.evaluations += 1
        for run in np.flatnonzero(self.alive).tolist():
            if not np.isfinite(result.returns[run]).all():
                broken.setdefault(run, "return")
            if run in broken:
                self._diverge(run, self.learner.non_finite(run) or broken[run])
            else:
                self.records.evaluated(run, self.step, result)
        if self.alive.any():
            self.progress.note = f"return {result.returns[self.alive].mean():.1f}"

    def _save(self) -> None:
        """Write a checkpoint for every run that has not diverged."""
        with self.records.paused():
            for run in np.flatnonzero(self.alive).tolist():
                member = self.members[run]
                checkpoint.save(
                    member.folder,
                    made_with(self.cell, member),
                    self.step,
                    {name: part.state(run) for name, part in self.parts.items()},
                )

    def _restore(self, saved: Sequence[Mapping[str, State]]) -> None:
        """Restore every part of the training. Raise UserError if a checkpoint does not fit."""
        try:
            for name, part in self.parts.items():
                part.restore([sections[name] for sections in saved])
        except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            if lacks_memory(error):
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise UserError(
                f"checkpoint {checkpoint.folder_of(self.members[0].folder)}: step {self.step} does "
                f"not fit this run ({reason}); start over with --restart"
            ) from error

    def _diverge(self, run: int, tensor: str) -> None:
        self._finish(run, tensor)
        self.alive[run] = False

    def _finish(self, run: int, broken: str | None = None) -> None:
        self.records.finish(run, self.step, broken)
        checkpoint.remove(self.members[run].folder)
