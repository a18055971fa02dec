"""Algorithm 1 for a pack: R runs of one cell in lockstep.

The loop knows no method: a RewardModel says through its seam what is learned, what is stored and
whether there is an env at all. A run that turns non-finite ends with status `diverged`, its step
and the tensor's name; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.config import CellConfig, load_model
from ngt.demos import DemoSet
from ngt.envs import VectorEnv, get_task
from ngt.evaluation import Evaluator
from ngt.nets import ObsNormaliser
from ngt.policy import Policy
from ngt.progress import Progress
from ngt.records import RunWriter
from ngt.replay import Batch, Replay
from ngt.reward import RewardModel, Spec
from ngt.sac import Sac
from ngt.schema import parse
from ngt.seeding import Draw, Streams, derive


@dataclass(frozen=True)
class Member:
    """One run of a pack."""

    folder: Path
    key: Mapping[str, Any]  # as records show it
    seed: int
    demos: int  # number of demonstrations; 0 where none are used
    data: Batch | None = None  # the subsampled demonstrations, (1, N, ·)
    reference: Mapping[str, Any] | None = None  # random and expert returns, demos checksum


def build_model(
    cell: CellConfig, seeds: Sequence[int], demos: DemoSet | None = None
) -> RewardModel:
    """The reward model of a cell for runs with these seeds and demonstrations."""
    task = get_task(cell.env)
    cls = load_model(cell.model, f"methods.{cell.method}.model")
    config = parse(cls.Config, cell.params, f"methods.{cell.method}.params")
    spec = Spec(
        task.obs, task.act, cell.mode, cell.train.batch, seeds, task.time_limit,
        cell.train.num_envs, cell.sac.gamma, demos,
    )  # fmt: skip
    model: RewardModel = cls(config, spec)
    return model


def run_seed(cell: CellConfig, member: Member) -> int:
    """The seed of a run's own streams: it depends on the whole key."""
    return derive(member.seed, cell.env, cell.method, cell.mode, cell.rate, member.demos)


class Learner:
    """Agent, reward model, demonstrations and their streams: all that an update touches.

    `update` is a pure function of its tensors with static shapes; on a device nothing is read back
    until `drain`.
    """

    def __init__(
        self, cell: CellConfig, members: Sequence[Member], device: torch.device | str = "cpu"
    ) -> None:
        task, seeds = get_task(cell.env), [run_seed(cell, m) for m in members]
        self.cell, self.device, self.runs = cell, device, len(members)
        self.agent = Sac(task.obs, task.act, cell.sac, seeds).to(device)
        data = [m.data for m in members if m.data is not None]
        self.demos = DemoSet(data, device) if data else None
        self.model = build_model(cell, seeds, self.demos).to(device)
        self.normaliser = (
            ObsNormaliser(self.runs, task.obs).to(device) if cell.normalise_obs else None
        )
        self.policy = Policy(self.agent.actor, self.normaliser)
        batch = cell.train.batch
        draws = {
            "agent_index": Draw("index", (batch,)),
            "expert_index": Draw("index", (batch,)),
            "sac_index": Draw("index", (batch,)),
            **Sac.draws(batch, task.act),
            **self.model.draws(),
        }
        self.streams = Streams(seeds, draws, device)
        self.sums: dict[str, Tensor] = {}
        self.updates = self.summed = 0
        self.last: tuple[Batch, Batch] | None = None  # expert and agent batch, for the AUC

    def normalise(self, batch: Batch) -> Batch:
        """A batch with the observations as the nets see them."""
        if self.normaliser is None:
            return batch
        return batch._replace(
            obs=self.normaliser(batch.obs), next_obs=self.normaliser(batch.next_obs)
        )

    def update(self, replay: Replay) -> None:
        """One reward-model update, then one SAC update on a batch of its own."""
        draws = self.streams.next()
        self.model.noise = draws
        if self.model.learns:
            assert self.demos is not None
            agent = self.normalise(replay.sample(draws["agent_index"]))
            expert = self.normalise(self.demos.sample(draws["expert_index"]))
            self.model.update(agent, expert)
            self.last = (expert, agent)
        batch = self.normalise(replay.sample(draws["sac_index"]))
        reward = self.model.reward(batch)
        metrics = self.agent.update(batch, reward, draws)
        self._count({**metrics, "reward": reward.mean(dim=1), **self.model.metrics})

    def fit(self) -> None:
        """One gradient step of an offline method."""
        assert self.demos is not None
        draws = self.streams.next()
        self.model.noise = draws
        expert = self.normalise(self.demos.sample(draws["expert_index"]))
        self.model.fit(self.agent.actor, expert)
        self._count(self.model.metrics)

    def _count(self, metrics: Mapping[str, Tensor]) -> None:
        self.updates += 1
        self.summed += 1
        for name, value in metrics.items():
            if name in self.sums:
                self.sums[name] += value
            else:
                self.sums[name] = value.clone()

    def drain(self) -> dict[str, NDArray[np.float64]]:
        """Mean metrics since the last call, (R,) each, and the reward's AUC; then zero."""
        means = {
            name: (total / max(self.summed, 1)).double().cpu().numpy()
            for name, total in self.sums.items()
        }
        self.sums, self.summed = {}, 0
        if self.last is not None:
            means["auc"] = self.auc(*self.last).double().cpu().numpy()
        return means

    @torch.no_grad()
    def auc(self, expert: Batch, agent: Batch) -> Tensor:
        """P(score of an expert transition > of an agent's), (R,); ties count one half."""
        kept = dict(self.model.metrics)
        e, a = self.model.score(expert)[:, :, None], self.model.score(agent)[:, None, :]
        self.model.metrics = kept
        return (e > a).float().mean(dim=(1, 2)) + 0.5 * (e == a).float().mean(dim=(1, 2))

    def non_finite(self, run: int) -> str | None:
        """The name of a parameter of this run that holds a non-finite value."""
        for root, module in (("agent", self.agent), ("reward", self.model)):
            for name, parameter in module.named_parameters():
                if parameter.shape[0] == self.runs and not parameter[run].isfinite().all():
                    return f"{root}.{name}"
        return None


class Trainer:
    """The loop of a pack: env, buffer, learner, evaluation, records."""

    def __init__(
        self, cell: CellConfig, members: Sequence[Member], *,
        device: torch.device | str = "cpu", env_workers: int = 0,
    ) -> None:  # fmt: skip
        self.cell, self.members, self.device = cell, list(members), torch.device(device)
        self.runs, self.n = len(members), cell.train.num_envs
        self.learner = Learner(cell, members, self.device)
        self.env_workers = env_workers
        self.evaluator = Evaluator(
            cell.env, [(m.seed, m.demos) for m in members], cell.train.eval_episodes,
            terminate_when_unhealthy=cell.terminate_when_unhealthy, device=self.device,
        )  # fmt: skip
        self.alive = np.ones(self.runs, bool)
        self.step = self.evaluations = 0
        self.best: list[tuple[float, int, dict[str, Tensor]] | None] = [None] * self.runs
        self.timing: list[tuple[int, float]] = []  # (step, seconds of training so far)

    def run(self, name: str) -> None:
        """Train to the end and write every member's folder."""
        self.writers = [RunWriter(m.folder, m.key, self.cell) for m in self.members]
        self.progress = Progress(self.cell.train.steps, name)
        self.clock, self.pause = time.monotonic(), 0.0
        try:
            if self.learner.model.offline:
                self._offline()
            else:
                self._online()
        finally:
            self.progress.close()
            self.evaluator.close()
        for run in np.flatnonzero(self.alive):
            self._finish(int(run), {"status": "finished", "step": self.step})

    def _offline(self) -> None:
        learner, train = self.learner, self.cell.train
        if learner.normaliser is not None:
            learner.normaliser.fit([m.data.obs for m in self.members if m.data is not None])
        while self.step < train.steps and self.alive.any():
            learner.fit()
            self.step += 1
            self._marks(1, None)

    def _online(self) -> None:
        learner, train, task = self.learner, self.cell.train, get_task(self.cell.env)
        seeds = [run_seed(self.cell, m) for m in self.members]
        explore = Streams(seeds, {"explore": Draw("normal", (self.n, task.act))}, self.device)
        uniform = Streams(seeds, {"uniform": Draw("uniform", (self.n, task.act))}, self.device)
        replay = Replay(
            self.runs, min(train.buffer, train.steps + self.n), task.obs, task.act, self.device
        )
        env = VectorEnv(
            self.cell.env, self.runs * self.n, workers=self.env_workers,
            terminate_when_unhealthy=self.cell.terminate_when_unhealthy,
        )  # fmt: skip
        episodes = EpisodeReturns(self.runs, self.n)
        try:
            obs = env.reset([derive(s, "env", i) for s in seeds for i in range(self.n)])
            while self.step < train.steps and self.alive.any():
                x = self._tensor(obs)
                if learner.normaliser is not None:
                    learner.normaliser.update(x)
                if self.step < train.learning_starts:
                    action = (2.0 * uniform.next()["uniform"] - 1.0).cpu().numpy()
                else:
                    action = self._act(x, explore.next()["explore"])
                step = env.step(action.reshape(self.runs * self.n, -1))
                self.step += self.n
                self._check_observations(step.next_obs)
                transition = Batch(
                    obs=x,
                    action=torch.from_numpy(action).to(self.device),
                    next_obs=self._tensor(step.next_obs),
                    reward=self._tensor(step.reward).squeeze(-1),
                    terminated=self._tensor(step.terminated).squeeze(-1),
                )
                ended = step.terminated | step.truncated
                done = torch.from_numpy(ended.reshape(self.runs, self.n)).to(self.device)
                reward = learner.model.observe(transition, done)
                replay.add(transition._replace(reward=reward))
                episodes.add(step.reward, ended)
                if self.step > train.learning_starts:
                    for _ in range(train.updates_per_step):
                        learner.update(replay)
                self._marks(self.n, episodes)
                obs = step.obs
        finally:
            env.close()

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        shaped = values.astype(np.float32, copy=False).reshape(self.runs, self.n, -1)
        return torch.from_numpy(shaped).to(self.device)

    def _act(self, obs: Tensor, noise: Tensor) -> NDArray[np.float32]:
        """Exploring actions (R, n, act); a run whose policy is no longer finite ends here."""
        action: NDArray[np.float32] = (
            self.learner.agent.act(self.learner.policy.normalise(obs), noise).cpu().numpy()
        )
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

    def _marks(self, stride: int, episodes: EpisodeReturns | None) -> None:
        """Log, evaluate and report where they are due."""
        train = self.cell.train
        if self._due(train.log_every, stride) and self.learner.updates:
            self._log({} if episodes is None else episodes.drain())
        if self._due(train.eval_every, stride) and self.alive.any():
            self._evaluate()
        self.progress.update(self.step)

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


class EpisodeReturns:
    """Returns of the episodes that training itself finishes, per run."""

    def __init__(self, runs: int, n: int) -> None:
        self.runs, self.n = runs, n
        self.running = np.zeros(runs * n)
        self.reset()

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
