"""Packed ring buffer: one row a transition, R runs side by side."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """Transitions of R runs: obs, next_obs (R, B, obs); action (R, B, act) in [-1, 1]; rest (R, B).

    terminated is 1 where no value follows (truncation is not termination); reward is what was
    stored when the step was taken.
    """

    obs: Tensor
    action: Tensor
    next_obs: Tensor
    reward: Tensor
    terminated: Tensor


class Replay:
    """The last `capacity` transitions of each run, float32, in one (R, capacity, row) tensor.

    Rows are obs | action | next_obs | reward | terminated, so that a draw is one gather. Memory is
    touched only as it fills.
    """

    def __init__(
        self, runs: int, capacity: int, obs: int, act: int, device: torch.device | str = "cpu"
    ) -> None:
        self.splits = [obs, act, obs, 1, 1]
        self.rows = torch.empty(runs, capacity, sum(self.splits), device=device)
        self.runs, self.capacity = runs, capacity
        # A tensor, so that a graph sees it grow: rows ever added, the same for every run.
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        self._base = (torch.arange(runs, device=device) * capacity).unsqueeze(1)

    @property
    def size(self) -> int:
        """Transitions held by each run."""
        return min(int(self.count), self.capacity)

    def add(self, batch: Batch) -> None:
        """Store B transitions of every run, in order, over the oldest ones."""
        rows = torch.cat(
            [batch.obs, batch.action, batch.next_obs, batch.reward[..., None],
             batch.terminated[..., None]],
            dim=-1,
        )  # fmt: skip
        step = torch.arange(rows.shape[1], device=rows.device)
        self.rows.index_copy_(1, (self.count + step) % self.capacity, rows.to(self.rows))
        self.count += rows.shape[1]

    def sample(self, index: Tensor) -> Batch:
        """Rows `index % size` of each run; index (R, B) integers."""
        flat = (index % self.count.clamp(max=self.capacity) + self._base).flatten()
        rows = self.rows.view(-1, self.rows.shape[-1]).index_select(0, flat)
        obs, action, next_obs, reward, terminated = rows.view(*index.shape, -1).split(
            self.splits, dim=-1
        )
        return Batch(obs, action, next_obs, reward.squeeze(-1), terminated.squeeze(-1))

    def read(self, run: int, first: int, last: int) -> Tensor:
        """Rows of a run's transitions first to last - 1, counted since the start; on the CPU."""
        index = torch.arange(first, last, device=self.rows.device) % self.capacity
        return self.rows[run].index_select(0, index).cpu()

    def write(self, run: int, rows: Tensor, total: int) -> None:
        """Put back a run's last rows, of `total` ever added; the same total for every run."""
        index = torch.arange(total - len(rows), total, device=self.rows.device) % self.capacity
        self.rows[run].index_copy_(0, index, rows.to(self.rows))
        self.count.fill_(total)
