"""The learner, which updates the agents and reward models of a pack, i.e. R runs, together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from ngt.agent.kernels import keep_freed_memory
from ngt.agent.nets import ObsNormaliser
from ngt.agent.policy import Policy
from ngt.agent.sac import Sac
from ngt.agent.streams import Draw, Streams
from ngt.errors import UserError
from ngt.experience.demos import DemoSet
from ngt.experience.envs import get_task
from ngt.experience.replay import Batch, Replay
from ngt.reward import checked, resized
from ngt.seeding import derive
from ngt.settings.config import CellConfig
from ngt.state import State, slice_of
from ngt.training.graphs import Graph
from ngt.training.model import (
    build_model,
    check_metric,
    drawn,
    fed,
    optimisers,
    rewards,
    shown,
)

MOMENTS = ("exp_avg", "exp_avg_sq")  # tensors in Adam's state of each parameter


@dataclass(frozen=True)
class Member:
    """One of several runs that train together."""

    folder: Path
    key: Mapping[str, Any]  # the run's key, in the form that run.json uses
    seed: int
    demos: int  # number of demonstrations; 0 if none are used
    data: Batch | None = None  # the subsampled demonstrations, (1, N, ·)
    reference: Mapping[str, Any] | None = None  # the returns that have the scores 0 and 1


def run_seed(cell: CellConfig, member: Member) -> int:
    """Return the seed of a run's random streams. It depends on every part of the run's key."""
    return derive(member.seed, cell.env, cell.method, cell.mode, cell.rate, member.demos)


def auc(expert: Tensor, agent: Tensor) -> Tensor:
    """Return the probability that an expert transition scores higher than an agent one, shape (R,).

    A tie counts as one half.

    expert, agent: the scores of the transitions, (R, B) and (R, C).
    """
    e, a = expert[:, :, None], agent[:, None, :]
    return (e > a).float().mean(dim=(1, 2)) + 0.5 * (e == a).float().mean(dim=(1, 2))


def rank_correlation(a: Tensor, b: Tensor) -> Tensor:
    """Return Spearman's correlation between each row of a and b: (R, B), (R, B) -> (R,).

    The correlation is 0 if a row is constant. Equal values share their mean rank.
    """

    def ranks(x: Tensor) -> Tensor:
        """Return twice the difference between each rank and the mean rank."""
        return (x[:, :, None] - x[:, None, :]).sign().double().sum(dim=2)

    x, y = ranks(a), ranks(b)
    size = (x.square().sum(dim=1) * y.square().sum(dim=1)).sqrt()
    return (x * y).sum(dim=1) / size.clamp(min=1.0)


class Learner:
    """The agents, reward models, demonstrations and random streams of R runs.

    All tensors of an iteration have fixed shapes. No value is copied to the CPU before `drain`. On
    CUDA, an iteration is captured once and then replayed, unless `graphs` is False.
    """

    def __init__(
        self,
        cell: CellConfig,
        members: Sequence[Member],
        device: torch.device | str = "cpu",
        graphs: bool = True,
    ) -> None:
        keep_freed_memory()
        task, seeds = get_task(cell.env), [run_seed(cell, m) for m in members]
        self.cell, self.device, self.runs = cell, torch.device(device), len(members)
        self.agent = Sac(task.obs, task.act, cell.sac, seeds, task.half_range).to(device)
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
        }
        own = self.model.draws()
        for name in own.keys() & (draws | Sac.exploration(cell.train.num_envs, task.act)).keys():
            raise UserError(
                f"methods.{cell.method}: draws() has {name!r}, a name of the suite's own draws; "
                f"choose another name, e.g. {cell.method}_{name}"
            )
        self.streams = Streams(seeds, draws | own, device)
        self.graphs = graphs and self.device.type == "cuda"
        self.graph: Graph | None = None
        self.drawn: dict[str, Tensor] = {}  # this iteration's random tensors; graphs read these
        self.sums: dict[str, Tensor] = {}
        self.updates = self.summed = 0
        self.last: tuple[Batch, Batch] | None = None  # expert and agent batches, for diagnostics

    def normalise(self, batch: Batch) -> Batch:
        """Normalise a batch's observations if the runs have a normaliser."""
        if self.normaliser is None:
            return batch
        return batch._replace(
            obs=self.normaliser(batch.obs), next_obs=self.normaliser(batch.next_obs)
        )

    def update(self, replay: Replay) -> None:
        """Update the reward model, then update the SAC agent on a different batch."""
        self._run(partial(self._update, replay))

    def fit(self) -> None:
        """Take one training step of an offline method."""
        self._run(self._fit)

    def _run(self, iteration: Callable[[], None]) -> None:
        """Run an iteration with new random tensors. On CUDA, all iterations use one graph."""
        draws = self.streams.next()
        if not self.graphs:
            self.model.noise = self.drawn = draws
            iteration()
        else:
            if self.graph is None:
                self.graph = Graph(iteration)
                self.model.noise = self.drawn = {n: t.clone() for n, t in draws.items()}
            for name, tensor in draws.items():
                self.drawn[name].copy_(tensor)
            self.graph()
        self.updates += 1
        self.summed += 1

    def _update(self, replay: Replay) -> None:
        draws, model = self.drawn, self.model
        if model.learns:
            agent, expert = self.normalise(replay.sample(draws["agent_index"])), self._expert()
            model.update(drawn(model, agent), shown(model, expert))
            self.last = (expert, agent)
        batch = self.normalise(replay.sample(draws["sac_index"]))
        seen = drawn(model, batch)
        if model.feeds:
            batch = seen = fed(model, seen, shown(model, self._expert()))
        if model.implicit:
            metrics = self._implicit(seen)
        else:
            reward = rewards(model, "reward", seen)
            metrics = {**self.agent.update(batch, reward, draws), "reward": reward.mean(dim=1)}
        self._count(metrics, model.metrics)

    def _expert(self) -> Batch:
        """Return this iteration's batch of expert transitions."""
        assert self.demos is not None
        return self.normalise(self.demos.sample(self.drawn["expert_index"]))

    def _implicit(self, batch: Batch) -> dict[str, Tensor]:
        """Update the agent with the critic loss that the model defines; return metrics."""
        model, draws = self.model, self.drawn
        loss = model.critic_loss(self.agent, batch, draws["next_noise"])
        loss = checked(loss, batch.terminated[:, 0], f"{type(model).__name__}.critic_loss")
        self.agent.descend_critic(loss, *optimisers(model).values())
        return {
            "critic_loss": loss.detach(),
            **self.agent.follow(batch.obs, draws["noise"]),
        }

    def _fit(self) -> None:
        self.model.fit(self.agent, shown(self.model, self._expert()))
        self._count({}, self.model.metrics)

    def _count(self, metrics: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
        """Add to the sums of the metrics. own: the metrics of the model."""
        for name, value in {**metrics, **own}.items():
            if name in self.sums:
                self.sums[name] += value
            else:
                if name in own:
                    check_metric(self.model, name, value, self.runs, metrics)
                self.sums[name] = value.clone()

    def drain(self) -> dict[str, NDArray[np.float64]]:
        """Return the metrics and the diagnostics, each of shape (R,). Reset the sums.

        The metrics are averaged over the updates since the last call. The diagnostics are computed
        on the batches of the last update and do not affect training.
        """
        means = {
            name: (total / max(self.summed, 1)).double().cpu().numpy()
            for name, total in self.sums.items()
        }
        for total in self.sums.values():  # in place, since a graph adds to these tensors
            total.zero_()
        self.summed = 0
        if self.last is not None:
            for name, value in self.diagnostics(*self.last).items():
                means[name] = value.double().cpu().numpy()
        return means

    @torch.no_grad()
    def diagnostics(self, expert: Batch, agent: Batch) -> dict[str, Tensor]:
        """Return the logged diagnostics of the learned reward by name, each of shape (R,).

        auc: the probability that an expert transition scores higher than an agent transition.
        rank_correlation: Spearman's correlation between the learned reward and the env's reward on
        the agent's batch. It is left out if the buffer holds the model's rewards instead.
        """
        kept = dict(self.model.metrics)
        of_expert = rewards(self.model, "score", shown(self.model, expert))
        of_agent = rewards(self.model, "score", drawn(self.model, agent))
        self.model.metrics = kept
        found = {"auc": auc(of_expert, of_agent)}
        if not self.model.stores:
            found["rank_correlation"] = rank_correlation(of_agent, agent.reward)
        return found

    def non_finite(self, run: int) -> str | None:
        """Return the name of one of the run's parameters that is not finite, or None."""
        for root, module in (("agent", self.agent), ("reward", self.model)):
            for name, parameter in module.named_parameters():
                if parameter.shape[0] == self.runs and not parameter[run].isfinite().all():
                    return f"{root}.{name}"
        return None

    def _trained(self) -> dict[str, tuple[Optimizer, Tensor]]:
        """Return each trained parameter and its optimiser, by a name such as optimiser.actor.0."""
        own = {f"model.{name}": each for name, each in optimisers(self.model).items()}
        return {
            f"optimiser.{name}.{i}": (optimiser, parameter)
            for name, optimiser in {**self.agent.optimisers, **own}.items()
            for i, parameter in enumerate(p for g in optimiser.param_groups for p in g["params"])
        }

    def _packed(self) -> dict[str, Tensor]:
        """Return the tensors, each (R, ...), that persist between iterations, by name."""
        modules = {"agent": self.agent, "model": self.model, "normaliser": self.normaliser}
        tensors = {
            f"{root}.{name}": tensor
            for root, module in modules.items()
            if module is not None
            for name, tensor in module.state_dict().items()
        }
        for name, (optimiser, parameter) in self._trained().items():
            moments = optimiser.state.get(parameter, {})
            tensors |= {f"{name}.{m}": moments[m] for m in MOMENTS if m in moments}
        return tensors | {f"sum.{name}": total for name, total in self.sums.items()}

    def state(self, run: int) -> State:
        """Return the state of one run: its tensors, counters and generators."""
        data = {
            "updates": self.updates,
            "summed": self.summed,
            "sums": list(self.sums),
            "steps": {  # number of optimiser steps of each parameter that has had a gradient
                name: float(optimiser.state[parameter]["step"])
                for name, (optimiser, parameter) in self._trained().items()
                if optimiser.state.get(parameter)
            },
        }
        tensors = {name: slice_of(tensor, run) for name, tensor in self._packed().items()}
        return State(tensors, data) | self.streams.state(run)

    def restore(self, states: Sequence[State]) -> None:
        """Restore the states of all runs. Raise ValueError if a tensor does not fit the learner."""
        first, data = states[0].tensors, states[0].data
        for name, (optimiser, parameter) in self._trained().items():
            if name in data["steps"]:
                moments = {moment: torch.zeros_like(parameter) for moment in MOMENTS}
                step = torch.full((), data["steps"][name], device=self.device)
                optimiser.state[parameter] = {"step": step, **moments}
        self.sums = {  # in the order of train.csv's columns
            name: torch.zeros(self.runs, device=self.device) for name in data["sums"]
        }
        packed = self._packed()
        if set(packed) != set(first):
            raise ValueError(
                f"tensors {sorted(set(packed) ^ set(first))} are missing from the learner or state"
            )
        padded = {f"model.{name}" for name in self.model.padded}
        for name, tensor in packed.items():
            parts = [state.tensors[name] for state in states]
            if name in padded:
                parts = [resized(part, tensor.shape[-1]) for part in parts]
            whole, want = torch.cat(parts), tuple(tensor.shape)
            if whole.shape != want:
                raise ValueError(f"found shape {tuple(whole.shape)}, expected {want}")
            tensor.copy_(whole)
        self.streams.restore(states)
        self.updates, self.summed = data["updates"], data["summed"]
