"""What learns: agent, reward model and demonstrations of a pack, updated in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from ngt.agent.nets import ObsNormaliser
from ngt.agent.policy import Policy
from ngt.agent.sac import Sac
from ngt.errors import UserError
from ngt.experience.demos import DemoSet
from ngt.experience.envs import get_task
from ngt.experience.replay import Batch, Replay
from ngt.reward import RewardModel, Spec, checked
from ngt.seeding import Draw, Streams, derive
from ngt.settings.config import CellConfig, load_model
from ngt.settings.schema import parse
from ngt.training import checkpoint
from ngt.training.graphs import Graph


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


def rewards(model: RewardModel, seam: Literal["reward", "score"], batch: Batch) -> Tensor:
    """What a model's `reward` or `score` gives a batch, if it is what it should be."""
    name = f"{type(model).__name__}.{seam}"
    return checked(getattr(model, seam)(batch), batch.reward, name, grad=False)


def run_seed(cell: CellConfig, member: Member) -> int:
    """The seed of a run's own streams: it depends on the whole key."""
    return derive(member.seed, cell.env, cell.method, cell.mode, cell.rate, member.demos)


class Learner:
    """Agent, reward model, demonstrations and their streams: all that an update touches.

    An iteration is a pure function of tensors with static shapes; nothing is read back until
    `drain`. On CUDA it is captured once and replayed, unless `graphs` is off.
    """

    def __init__(
        self, cell: CellConfig, members: Sequence[Member], device: torch.device | str = "cpu",
        graphs: bool = True,
    ) -> None:  # fmt: skip
        task, seeds = get_task(cell.env), [run_seed(cell, m) for m in members]
        self.cell, self.device, self.runs = cell, torch.device(device), len(members)
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
        }
        own = self.model.draws()
        for name in own.keys() & (draws | Sac.exploration(cell.train.num_envs, task.act)).keys():
            raise UserError(
                f"methods.{cell.method}: draws() has {name!r}, a name of the suite's own draws; "
                f"choose another, e.g. {cell.method}_{name}"
            )
        self.streams = Streams(seeds, draws | own, device)
        self.graphs = graphs and self.device.type == "cuda"
        self.graph: Graph | None = None
        self.drawn: dict[str, Tensor] = {}  # this iteration's draws, where a graph reads them
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
        self._run(partial(self._update, replay))

    def fit(self) -> None:
        """One gradient step of an offline method."""
        self._run(self._fit)

    def _run(self, iteration: Callable[[], None]) -> None:
        """One iteration with draws of its own; on CUDA the first one's graph serves all."""
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
        draws = self.drawn
        if self.model.learns:
            assert self.demos is not None
            agent = self.normalise(replay.sample(draws["agent_index"]))
            expert = self.normalise(self.demos.sample(draws["expert_index"]))
            self.model.update(agent, expert)
            self.last = (expert, agent)
        batch = self.normalise(replay.sample(draws["sac_index"]))
        reward = rewards(self.model, "reward", batch)
        metrics = self.agent.update(batch, reward, draws)
        self._count({**metrics, "reward": reward.mean(dim=1), **self.model.metrics})

    def _fit(self) -> None:
        assert self.demos is not None
        expert = self.normalise(self.demos.sample(self.drawn["expert_index"]))
        self.model.fit(self.agent, expert)
        self._count(self.model.metrics)

    def _count(self, metrics: Mapping[str, Tensor]) -> None:
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
        for total in self.sums.values():  # in place: a graph adds to these very tensors
            total.zero_()
        self.summed = 0
        if self.last is not None:
            means["auc"] = self.auc(*self.last).double().cpu().numpy()
        return means

    @torch.no_grad()
    def auc(self, expert: Batch, agent: Batch) -> Tensor:
        """P(score of an expert transition > of an agent's), (R,); ties count one half."""
        kept = dict(self.model.metrics)
        e = rewards(self.model, "score", expert)[:, :, None]
        a = rewards(self.model, "score", agent)[:, None, :]
        self.model.metrics = kept
        return (e > a).float().mean(dim=(1, 2)) + 0.5 * (e == a).float().mean(dim=(1, 2))

    def non_finite(self, run: int) -> str | None:
        """The name of a parameter of this run that holds a non-finite value."""
        for root, module in (("agent", self.agent), ("reward", self.model)):
            for name, parameter in module.named_parameters():
                if parameter.shape[0] == self.runs and not parameter[run].isfinite().all():
                    return f"{root}.{name}"
        return None

    def optimisers(self) -> dict[str, Optimizer]:
        """Every optimiser, by name."""
        own = {n: o for n, o in vars(self.model).items() if isinstance(o, Optimizer)}
        return {**self.agent.optimisers, **{f"model.{name}": o for name, o in own.items()}}

    def _packed(self) -> dict[str, Tensor]:
        """Every tensor that outlives an iteration, by name; each leads with the run dimension."""
        modules = {"agent": self.agent, "model": self.model, "normaliser": self.normaliser}
        tensors = {
            f"{root}.{name}": tensor
            for root, module in modules.items() if module is not None
            for name, tensor in module.state_dict().items()
        }  # fmt: skip
        for name, optimiser in self.optimisers().items():
            parameters = [p for group in optimiser.param_groups for p in group["params"]]
            for i, state in enumerate(optimiser.state.get(p, {}) for p in parameters):
                for moment in ("exp_avg", "exp_avg_sq"):
                    if moment in state:
                        tensors[f"optimiser.{name}.{i}.{moment}"] = state[moment]
        return tensors | {f"sum.{name}": total for name, total in self.sums.items()}

    def state(self, run: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """One run's tensors, and its counters and generators as plain data."""
        taken = {
            name: float(state["step"])
            for name, optimiser in self.optimisers().items()
            for state in [next(iter(optimiser.state.values()), {"step": 0.0})]
        }
        meta = {
            "updates": self.updates, "summed": self.summed, "optimiser_steps": taken,
            "streams": self.streams.state_of(run), "sums": list(self.sums),
        }  # fmt: skip
        return {name: checkpoint.slice_of(t, run) for name, t in self._packed().items()}, meta

    def restore(self, saved: Sequence[tuple[Mapping[str, Tensor], Mapping[str, Any]]]) -> None:
        """Bring all runs to where `state` was taken of each; ValueError where it does not fit."""
        first, meta = saved[0]
        for name, optimiser in self.optimisers().items():
            parameters = [p for group in optimiser.param_groups for p in group["params"]]
            for i, parameter in enumerate(parameters):
                if f"optimiser.{name}.{i}.exp_avg" in first:  # else no gradient ever reached it
                    optimiser.state[parameter] = {
                        "step": torch.full((), meta["optimiser_steps"][name], device=self.device),
                        "exp_avg": torch.zeros_like(parameter),
                        "exp_avg_sq": torch.zeros_like(parameter),
                    }
        self.sums = {  # in their order, which is that of train.csv's columns
            name: torch.zeros(self.runs, device=self.device) for name in meta["sums"]
        }
        packed = self._packed()
        if set(packed) != set(first):
            raise ValueError(f"tensors {sorted(set(packed) ^ set(first))} are on one side alone")
        with torch.no_grad():
            for name, tensor in packed.items():
                tensor.copy_(checkpoint.pack([tensors[name] for tensors, _ in saved], tensor))
        self.streams.restore([m["streams"] for _, m in saved])
        self.updates, self.summed = meta["updates"], meta["summed"]
