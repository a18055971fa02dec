"""The replay buffer of R runs. Each run has a ring buffer with one row per transition."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.errors import UserError
from ngt.state import Ring, State, slice_of

SLOTS = 4096  # initial number of final observations that fit in a run's table
MOST = 2**24  # maximum number, since rows store indices of the table as float32


class Batch(NamedTuple):
    """B transitions for each of R runs.

    obs, next_obs: (R, B, obs).
    action: (R, B, act) in [-1, 1].
    reward: (R, B), the reward that was stored when the step was taken.
    terminated: (R, B), 1 if the env terminated the episode, otherwise 0; truncation is not
    termination.
    """

    obs: Tensor
    action: Tensor
    next_obs: Tensor
    reward: Tensor
    terminated: Tensor


class Hidden(Batch):
    """Transitions that hide the env's reward.

    Entry 3 of the tuple, the reward, is NaN, and the `reward` attribute raises UserError.
    """

    @property
    def reward(self) -> Tensor:
        """Raise UserError, since a model that uses the env's reward must declare this."""
        raise UserError(
            "batch.reward: the env's own reward is hidden from reward models; a class that uses "
            "it must declare `uses_env_reward = True`"
        )


def hide(batch: Batch) -> Batch:
    """Hide the env's reward in a batch."""
    return Hidden(*batch._replace(reward=torch.full_like(batch[3], torch.nan)))


class Replay:
    """The last `capacity` transitions of each run, in one float32 tensor (R, capacity + envs, row).

    A row is obs | action | reward | terminated | slot. Each observation is stored only once: a
    transition's next observation is the obs in the same env's next row. The following example has
    two envs, a and b. The row a3 belongs to env a at step 3, which is the newest step:

        place   0   1   2   3   4   5  |  6   7       capacity 6, then one row per env
        row    a3  b3  a1  b1  a2  b2  | a4  b4       (rows after the ring hold only obs)
        after   6   7   4   5   0   1                 place of the next obs

    If a transition ends an episode, the env's next row begins a new episode. That episode's
    final observation is then stored in `finals` (R, 1 + slots, obs), at the index `slot` from the
    transition's row. Rows of all other transitions have slot 0, which is never read. Sampling
    gathers rows from tensors of fixed shape. A row takes up memory only once it is stored.

    `reserve` assigns slots before transitions are stored. It frees the slots of overwritten
    transitions. If too few slots are free, `reserve` replaces `finals` with a tensor of twice the
    size. A CUDA graph that reads the old tensor must then be captured again.
    """

    def __init__(
        self,
        runs: int,
        capacity: int,
        obs: int,
        act: int,
        device: torch.device | str = "cpu",
        *,
        envs: int = 1,
    ) -> None:
        if capacity < envs:
            raise ValueError(f"capacity {capacity} is less than a vector step of {envs}")
        self.splits = [obs, act, 1, 1, 1]
        self.rows = torch.empty(runs, capacity + envs, sum(self.splits), device=device)
        self.finals = torch.empty(runs, 1 + SLOTS, obs, device=device)
        self.after = torch.empty(capacity, dtype=torch.int32, device=device)
        self.runs, self.capacity, self.envs = runs, capacity, envs
        self.total = 0  # number of transitions ever added to each run
        # The value of `total` in a tensor, so that a CUDA graph reads the current value.
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        self.ends = [0] * runs  # for each run, how many episodes have ended so far
        # For each run, the index and slot of every stored transition that ended an episode.
        self._lent: list[deque[tuple[int, int]]] = [deque() for _ in range(runs)]
        self._free = [list(range(SLOTS, 0, -1)) for _ in range(runs)]
        self._run = torch.arange(runs, device=device).unsqueeze(1)

    @property
    def size(self) -> int:
        """Return the number of transitions that each run holds."""
        return min(self.total, self.capacity)

    @property
    def slots(self) -> int:
        """Return the number of final observations that each run's table can hold."""
        return self.finals.shape[1] - 1

    def add(self, batch: Batch, ended: NDArray[np.bool_] | None = None) -> None:
        """Store vector steps of every run in order, overwriting the oldest transitions.

        A vector step is one transition of each env. A transition's next_obs is read only if the
        transition ends an episode or belongs to the last vector step of the batch. In the last
        vector step, next_obs must equal the obs of the same env's next transition, which is added
        later.

        ended: (R, B), True for transitions that end an episode by termination or truncation; None
        if there are no such transitions.
        """
        if ended is None:
            ended = np.zeros(tuple(batch.reward.shape), bool)
        self.store(batch, torch.from_numpy(self.reserve(ended)).to(self.rows))

    def reserve(self, ended: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Make room for the next transitions and return their slots, shape (R, B).

        ended: (R, B), True for transitions that end an episode and therefore need a slot above 0.
        """
        runs, count = ended.shape
        if runs != self.runs or count % self.envs or count > self.capacity:
            raise ValueError(f"{ended.shape} are not whole vector steps of {self.envs} that fit")
        slot = np.zeros(ended.shape, np.float32)
        for run in np.flatnonzero(ended.any(axis=1)):
            at, lent, free = np.flatnonzero(ended[run]), self._lent[run], self._free[run]
            while lent and lent[0][0] < self.total + count - self.capacity:
                free.append(lent.popleft()[1])
            while len(free) < len(at):
                self._grow()
            for i in at:
                lent.append((self.total + int(i), free.pop()))
                slot[run, i] = lent[-1][1]
            self.ends[run] += len(at)
        self.total += count
        return slot

    def _grow(self) -> None:
        former, slots = self.finals, 2 * self.slots
        if slots > MOST:
            raise ValueError(f"more than {MOST // 2} transitions of a run ended an episode")
        self.finals = torch.empty(self.runs, 1 + slots, former.shape[2], device=former.device)
        self.finals[:, : former.shape[1]] = former
        for free in self._free:
            free[:0] = range(slots, slots // 2, -1)

    def store(self, batch: Batch, slot: Tensor) -> None:
        """Store transitions, given their slots from `reserve`, without copying from GPU to CPU."""
        columns = [batch.obs, batch.action]
        columns += [x.unsqueeze(-1) for x in (batch.reward, batch.terminated, slot)]
        rows, next_obs = torch.cat(columns, dim=-1).to(self.rows), batch.next_obs.to(self.rows)
        count, envs, width = rows.shape[1], self.envs, next_obs.shape[2]
        numbers = self.count + torch.arange(-envs, count, device=rows.device)
        before, own = (numbers % self.capacity).split([envs, count])
        behind = torch.arange(self.capacity, self.capacity + envs, device=rows.device)
        self.after.index_copy_(0, before, own[:envs].int())
        self.after.index_copy_(0, own, torch.cat([own[envs:], behind]).int())
        self.rows.index_copy_(1, own, rows)
        self.rows[:, self.capacity :, :width].copy_(next_obs[:, -envs:])
        self.finals.view(-1, width).index_copy_(0, self._flat(slot), next_obs.reshape(-1, width))
        self.count += count

    def _flat(self, slot: Tensor) -> Tensor:
        return (slot.long() + self._run * self.finals.shape[1]).flatten()

    def sample(self, index: Tensor) -> Batch:
        """Return the transitions in the rows `index % size` of each run.

        index: integers, shape (R, B).
        """
        own = index % self.count.clamp(max=self.capacity)
        after = self.after.index_select(0, own.flatten()).view_as(own)
        flat = torch.cat([own, after], dim=1) + self._run * self.rows.shape[1]
        rows = self.rows.view(-1, self.rows.shape[2]).index_select(0, flat.flatten())
        rows, following = rows.view(self.runs, 2, index.shape[1], -1).unbind(1)
        obs, action, *rest = rows.split(self.splits, dim=-1)
        reward, terminated, slot = (x.squeeze(-1) for x in rest)
        final = self.finals.view(-1, obs.shape[2]).index_select(0, self._flat(slot)).view_as(obs)
        next_obs = torch.where(slot[..., None] > 0, final, following[..., : obs.shape[2]])
        return Batch(obs, action, next_obs, reward, terminated)

    def state(self, run: int) -> State:
        """Return one run's state: its transitions and the final observations of its episodes."""
        first, ends = self.total - self.size, self.ends[run]
        slots = [slot for number, slot in self._lent[run] if number >= first]
        order = torch.arange(first, self.total) % self.capacity
        return State(
            {"following": slice_of(self.rows[:, self.capacity :, : self.splits[0]], run)},
            rings={
                "rows": Ring(self.rows[run], order, self.total),
                "finals": Ring(self.finals[run], torch.tensor(slots).long(), ends),
            },
        )

    def restore(self, states: Sequence[State]) -> None:
        """Restore the states of all runs, which must come from the same step.

        Raise ValueError if the parts of a state are inconsistent.
        """
        for run, state in enumerate(states):
            rows, finals = state.rings["rows"].items(), state.rings["finals"].items()
            total, ends = state.rings["rows"].total, state.rings["finals"].total
            ended = torch.nonzero(rows[:, -1]).flatten()
            slots, first = rows[ended, -1].long(), total - len(rows)
            if len(finals) != len(slots) or len(finals) > ends:
                raise ValueError(
                    f"{len(finals)} final observations for {len(slots)} of {ends} ends"
                )
            while self.slots < max(slots.tolist(), default=0):
                self._grow()
            device, numbers = self.rows.device, torch.arange(first, total)
            at = (numbers % self.capacity).to(device)
            self.rows[run].index_copy_(0, at, rows.to(device))
            self.rows[run, self.capacity :, : self.splits[0]].copy_(state.tensors["following"][0])
            self.finals[run].index_copy_(0, slots.to(device), finals.to(device))
            following = (numbers + self.envs) % self.capacity
            following[-self.envs :] = torch.arange(self.capacity, self.capacity + self.envs)
            self.after[at] = following.int().to(device)
            self._lent[run] = deque(zip((first + ended).tolist(), slots.tolist(), strict=True))
            self._free[run] = sorted({*range(1, self.slots + 1)} - {*slots.tolist()}, reverse=True)
            self.ends[run], self.total = ends, total
            self.count.fill_(total)


def peak_bytes(capacity: int, obs: int, act: int, ends: int, envs: int = 1) -> int:
    """Return the largest size, in bytes, of a run's buffer that holds at most `ends` episode ends.

    The size includes the rows, the table that holds the place of each row's next row, and the table
    of final observations. It also includes the previous table of final observations, which has half
    the size and still exists while the new table is filled.
    """
    slots = SLOTS << (max(-(-ends // SLOTS), 1) - 1).bit_length()
    former = slots // 2 + 1 if slots > SLOTS else 0
    return 4 * ((capacity + envs) * (obs + act + 3) + capacity + (slots + 1 + former) * obs)
