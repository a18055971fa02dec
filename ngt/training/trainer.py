"""Algorithm 1 for a pack: R runs of one cell in lockstep.

A vector step is: choose actions, launch the updates, step the envs, store what they bring. So the
updates draw from what was stored before this step, and on CUDA the device works on them while the
envs are stepped here; the order, and with it every number, is the same on every device and with any
number of env processes. The price is that a policy knows the world as it was one vector step (4 of
10 million transitions) before. A vector step whose actions are random has no updates, nor has the
first of all, with nothing to draw from: N vector steps bring N - max(1, random ones) times
`updates_per_step` updates. At a step's end nothing is owed, so that log rows, evaluations and
checkpoints may come after any step: they hold its transitions, and the updates launched in it.

The loop knows no method: a RewardModel says through its seam what is learned, what is stored and
whether there is an env at all. A run that turns non-finite ends with status `diverged`, its step
and the tensor's name; the others go on.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.agent.sac import Sac
from ngt.errors import Interrupted, UserError, lacks_memory
from ngt.experience.envs import VectorEnv, get_task
from ngt.experience.replay import Replay
from ngt.experience.rollout import Evaluator
from ngt.runs.writer import RunWriter, source_hash
from ngt.seeding import Streams, derive
from ngt.settings.config import CellConfig
from ngt.training import checkpoint
from ngt.training.collector import Collector
from ngt.training.learner import Learner, Member, run_seed
from ngt.training.progress import Progress


def made_with(cell: CellConfig, member: Member) -> dict[str, Any]:
    """What a checkpoint must have been made with to be gone on from: plain data."""
    return {
        "key": dict(member.key), "config": dataclasses.asdict(cell), "source": source_hash(),
        "reference": dict(member.reference or {}),
    }  # fmt: skip


class Trainer:
    """The loop of a pack: env, buffer, learner, evaluation, records."""

    def __init__(
        self, cell: CellConfig, members: Sequence[Member], *,
        device: torch.device | str = "cpu", env_workers: int = 0, graphs: bool = True,
        checkpoint_every: int = 0,
    ) -> None:  # fmt: skip
        """checkpoint_every: env steps between checkpoints; 0 is only when told to stop."""
        self.cell, self.members, self.device = cell, list(members), torch.device(device)
        self.runs, self.n = len(members), cell.train.num_envs
        self.learner = Learner(cell, members, self.device, graphs)
        self.env_workers = env_workers
        self.evaluator = Evaluator(
            cell.env, [(m.seed, m.demos) for m in members], cell.train.eval_episodes,
            terminate_when_unhealthy=cell.terminate_when_unhealthy, device=self.device,
            env_workers=env_workers,
        )  # fmt: skip
        self.alive = np.ones(self.runs, bool)
        self.step = self.evaluations = 0
        self.best: list[tuple[float, int, dict[str, Tensor]] | None] = [None] * self.runs
        self.timing: list[tuple[int, float]] = []  # (step, seconds of training so far)
        self.checkpoint_every = checkpoint_every
        self.stop = False  # set it, from a signal's handler too, to write a checkpoint and end
        self.collector: Collector | None = None
        self.episodes: EpisodeReturns | None = None

    def run(self, name: str, resume: int | None = None) -> None:
        """Train to the end and write every member's folder.

        resume: the step of a checkpoint that every member has. Interrupted: told to stop.
        """
        saved = [] if resume is None else [checkpoint.load(m.folder, resume) for m in self.members]
        records: list[dict[str, Any] | None] = [s.meta["records"] for s in saved]
        self.writers = [
            RunWriter(m.folder, m.key, self.cell, so_far)
            for m, so_far in zip(self.members, records or [None] * self.runs, strict=True)
        ]
        self.progress = Progress(self.cell.train.steps, name, first=resume or 0)
        self.clock, self.pause = time.monotonic(), 0.0
        try:
            if self.learner.model.offline:
                self._offline(saved)
            else:
                self._online(saved)
        finally:
            self.progress.close()
            self.evaluator.close()
        for run in np.flatnonzero(self.alive):
            self._finish(int(run), {"status": "finished", "step": self.step})

    def _offline(self, saved: Sequence[checkpoint.Saved]) -> None:
        learner, train = self.learner, self.cell.train
        if learner.normaliser is not None:
            learner.normaliser.fit([m.data.obs for m in self.members if m.data is not None])
        self._restore(saved)
        while self.step < train.steps and self.alive.any():
            learner.fit()
            self.step += 1
            self._marks(1)

    def _online(self, saved: Sequence[checkpoint.Saved]) -> None:
        learner, train, task = self.learner, self.cell.train, get_task(self.cell.env)
        seeds = [run_seed(self.cell, m) for m in self.members]
        explore = Streams(seeds, Sac.exploration(self.n, task.act), self.device)
        capacity = min(train.buffer, train.steps + self.n)
        replay = Replay(self.runs, capacity, task.obs, task.act, self.device, envs=self.n)
        env = VectorEnv(
            self.cell.env, self.runs * self.n, workers=self.env_workers,
            terminate_when_unhealthy=self.cell.terminate_when_unhealthy,
        )  # fmt: skip
        collector = self.collector = Collector(env, learner, replay, explore)
        episodes = self.episodes = EpisodeReturns(self.runs, self.n)
        try:
            if saved:
                self._restore(saved)
            else:
                collector.reset([derive(s, "env", i) for s in seeds for i in range(self.n)])
            while self.step < train.steps and self.alive.any():
                random = self.step < train.learning_starts
                action = self._finite(collector.act(random))
                if not random and replay.size:
                    for _ in range(train.updates_per_step):
                        learner.update(replay)
                step = collector.step(action)
                self.step += self.n
                self._check_observations(step.next_obs)
                episodes.add(step.reward, step.terminated | step.truncated)
                self._marks(self.n)
        finally:
            env.close()

    def _finite(self, action: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (R, n, act); a run whose policy is no longer finite ends here, and acts by 0."""
        if not np.isfinite(action).all():
            for run in np.flatnonzero(~np.isfinite(action).all(axis=(1, 2)) & self.alive):
                self._diverge(int(run), self.learner.non_finite(int(run)) or "action")
            action[~self.alive] = 0.0
        return action

    def _check_observations(self, obs: NDArray[np.float32]) -> None:
        if np.isfinite(obs).all():
            return
        fine = np.isfinite(obs.reshape(self.runs, -1)).all(axis=1)
        for run in np.flatnonzero(~fine & self.alive):
            self._diverge(int(run), "obs")

    def _due(self, every: int, stride: int) -> bool:
        """Whether the last `stride` steps passed a multiple of `every`, or ended the run."""
        done = self.step >= self.cell.train.steps
        return done or self.step // every > (self.step - stride) // every

    def _marks(self, stride: int) -> None:
        """Log, evaluate, report and write checkpoints where they are due."""
        train = self.cell.train
        if self._due(train.log_every, stride) and self.learner.updates:
            self._log({} if self.episodes is None else self.episodes.drain())
        if self._due(train.eval_every, stride) and self.alive.any():
            self._evaluate()
        self.progress.update(self.step)
        if self.step < train.steps and self.alive.any():
            every = self.checkpoint_every
            if self.stop or (every and self._due(every, stride)):
                self._checkpoint()
            if self.stop:
                raise Interrupted(self.step)

    def _checkpoint(self) -> None:
        start = time.monotonic()
        for run in map(int, np.flatnonzero(self.alive)):
            tensors, meta = self.learner.state(run)
            rings: dict[str, checkpoint.Ring] = {}
            if self.collector is not None and self.episodes is not None:
                own, plain = self.collector.state(run)
                tensors, meta = {**tensors, **own}, {**meta, **plain}
                meta["episodes"] = self.episodes.state(run)
                rings = self.collector.rings(run)
            best = self.best[run]
            if best is not None:
                tensors |= {f"best.{name}": tensor for name, tensor in best[2].items()}
            meta |= {
                "evaluations": self.evaluations, "timing": self.timing,
                "seconds": round(time.monotonic() - self.clock - self.pause, 3),
                "best": None if best is None else best[:2],
                "records": self.writers[run].state(),
            }  # fmt: skip
            member = self.members[run]
            checkpoint.save(
                member.folder, made_with(self.cell, member), self.step, tensors, meta, rings
            )
        self.pause += time.monotonic() - start

    def _restore(self, saved: Sequence[checkpoint.Saved]) -> None:
        """Put everything back; UserError where a whole checkpoint is not of this form."""
        try:
            self._put_back(saved)
        except (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            if lacks_memory(error):
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise UserError(
                f"checkpoint {checkpoint.folder_of(self.members[0].folder)}: step "
                f"{saved[0].step} is not of this training's form ({reason}); start over with "
                f"--restart"
            ) from error

    def _put_back(self, saved: Sequence[checkpoint.Saved]) -> None:
        if not saved:
            return
        parts: list[dict[str, Tensor]] = []
        own = ("obs", "env.", "best.")
        for s in saved:
            parts.append({n: t for n, t in s.tensors.items() if not n.startswith(own)})
        self.learner.restore([(p, s.meta) for p, s in zip(parts, saved, strict=True)])
        for run, s in enumerate(saved):
            if s.meta["best"] is not None:
                best = [n for n in s.tensors if n.startswith("best.")]
                policy = {n.removeprefix("best."): s.tensors[n] for n in best}
                self.best[run] = (*s.meta["best"], policy)
            if self.episodes is not None:
                self.episodes.restore(run, s.meta["episodes"])
        if self.collector is not None:
            self.collector.restore(saved)
        meta = saved[0].meta
        self.step, self.evaluations = saved[0].step, meta["evaluations"]
        self.timing = [(step, seconds) for step, seconds in meta["timing"]]
        self.clock -= meta["seconds"]

    def _log(self, episodes: Mapping[str, NDArray[np.float64]]) -> None:
        self.timing.append((self.step, round(time.monotonic() - self.clock - self.pause, 3)))
        means = self.learner.drain()
        for run in np.flatnonzero(self.alive):
            row: dict[str, float | int] = {"step": self.step, "update": self.learner.updates}
            row |= {name: float(v[run]) for name, v in {**means, **episodes}.items()}
            self.writers[run].training(row)
            losses = [k for k in means if not np.isfinite(row[k])]
            bad = (losses and losses[0]) or self.learner.non_finite(int(run))
            if bad:
                self._diverge(int(run), bad)

    def _evaluate(self) -> None:
        start = time.monotonic()
        broken: dict[int, str] = {}

        def act(obs: Tensor) -> Tensor:
            """The policy's actions; 0 for a run that has none, so that the others go on."""
            action: Tensor = self.learner.policy(obs)
            fine = action.isfinite().flatten(1).all(dim=1)
            if fine.all():
                return action
            for run in np.flatnonzero(~fine.cpu().numpy()):
                broken.setdefault(int(run), "action" if obs[run].isfinite().all() else "obs")
            return torch.where(fine[:, None, None], action, 0.0)

        result = self.evaluator.run(act, self.evaluations)
        self.evaluations += 1
        self.pause += time.monotonic() - start
        for run in np.flatnonzero(self.alive):
            if not np.isfinite(result.returns[run]).all():
                broken.setdefault(int(run), "return")
            if run in broken:
                self._diverge(int(run), self.learner.non_finite(int(run)) or broken[int(run)])
                continue
            self.writers[run].evaluation(self.step, result.returns[run], result.lengths[run])
            mean, best = float(result.returns[run].mean()), self.best[run]
            if self.cell.train.keep == "best" and (best is None or mean > best[0]):
                self.best[run] = (mean, self.step, self.learner.policy.snapshot(int(run)))
        if self.alive.any():
            self.progress.note = f"return {result.returns[self.alive].mean():.1f}"

    def _diverge(self, run: int, tensor: str) -> None:
        self._finish(run, {"status": "diverged", "step": self.step, "tensor": tensor})
        self.alive[run] = False

    def _finish(self, run: int, record: Mapping[str, Any]) -> None:
        best = self.best[run]
        tensors = self.learner.policy.snapshot(run) if best is None else best[2]
        kept = {} if best is None else {"kept": {"step": best[1], "return": best[0]}}
        seconds = time.monotonic() - self.clock - self.pause
        self.writers[run].finish(
            tensors,
            {
                **record,
                **kept,
                "updates": self.learner.updates,
                "pack": self.runs,
                "device": str(self.device),
                "reference": dict(self.members[run].reference or {}),
                "train_seconds": round(seconds, 1),
                "steps_per_second": round(self.step / max(seconds, 1e-9), 1),
                "timing": self.timing,
            },
        )
        checkpoint.remove(self.members[run].folder)


class EpisodeReturns:
    """Returns of the episodes that training itself finishes, per run."""

    def __init__(self, runs: int, n: int) -> None:
        self.runs, self.n = runs, n
        self.running = np.zeros(runs * n)
        self.reset()

    def state(self, run: int) -> dict[str, Any]:
        """One run's part, as plain data."""
        running = self.running.reshape(self.runs, self.n)[run].tolist()
        return {"running": running, "total": self.total[run], "count": int(self.count[run])}

    def restore(self, run: int, state: Mapping[str, Any]) -> None:
        """Put one run's part back."""
        self.running.reshape(self.runs, self.n)[run] = state["running"]
        self.total[run], self.count[run] = state["total"], state["count"]

    def reset(self) -> None:
        self.total, self.count = np.zeros(self.runs), np.zeros(self.runs, np.int64)

    def add(self, reward: NDArray[np.float64], done: NDArray[np.bool_]) -> None:
        """Take in one vector step."""
        self.running += reward
        if done.any():
            shape = (self.runs, self.n)
            self.total += np.where(done, self.running, 0.0).reshape(shape).sum(axis=1)
            self.count += done.reshape(shape).sum(axis=1)
            self.running[done] = 0.0

    def drain(self) -> dict[str, NDArray[np.float64]]:
        """Mean return of the episodes ended since the last call; nan where none did."""
        with np.errstate(invalid="ignore"):
            mean = self.total / self.count
        out = {"train_return": mean, "train_episodes": self.count.astype(np.float64)}
        self.reset()
        return out
