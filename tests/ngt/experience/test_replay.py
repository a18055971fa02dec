"""A pack's replay buffer, compared with a plain one that stores next_obs with each obs.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from ngt.experience import replay
from ngt.experience.replay import Batch, Replay, peak_bytes
from ngt.state import Ring, State

OBS, ACT = 3, 2
Ends = Callable[[np.random.Generator, int], np.ndarray]  # (generator, vector step) -> (R, n) bool


class Plain:
    """A buffer with one list per run. Transition number i is at place i modulo capacity."""

    def __init__(self, runs: int, capacity: int) -> None:
        self.capacity, self.total = capacity, 0
        self.held: list[list[list[Tensor]]] = [[[] for _ in range(capacity)] for _ in range(runs)]

    def add(self, batch: Batch) -> None:
        for i in range(batch.reward.shape[1]):
            for run, held in enumerate(self.held):
                held[(self.total + i) % self.capacity] = [field[run, i].clone() for field in batch]
        self.total += batch.reward.shape[1]

    def sample(self, index: Tensor) -> Batch:
        size = min(self.total, self.capacity)
        drawn = [
            [held[int(i) % size] for i in row] for held, row in zip(self.held, index, strict=True)
        ]
        return Batch(
            *(
                torch.stack([torch.stack([item[field] for item in row]) for row in drawn])
                for field in range(5)
            )
        )


class Stream:
    """Transitions of `runs` times `n` envs, all distinct; `ends` decides which episodes end."""

    def __init__(self, runs: int, n: int, ends: Ends) -> None:
        self.shape, self.ends, self.rng, self.steps = (runs, n), ends, np.random.default_rng(0), 0
        self.obs = self.draw(OBS)

    def draw(self, *width: int) -> Tensor:
        return torch.from_numpy(self.rng.standard_normal((*self.shape, *width), np.float32))

    def step(self) -> tuple[Batch, np.ndarray]:
        ended, next_obs = self.ends(self.rng, self.steps), self.draw(OBS)
        terminated = torch.from_numpy((ended & (self.rng.random(self.shape) < 0.5)).astype("f4"))
        batch = Batch(self.obs, self.draw(ACT), next_obs, self.draw(), terminated)
        self.obs = torch.where(torch.from_numpy(ended)[..., None], self.draw(OBS), next_obs)
        self.steps += 1
        return batch, ended


def at_random(chance: float) -> Ends:
    def ends(rng: np.random.Generator, step: int) -> np.ndarray:
        return rng.random((3, 4)) < chance * np.array([0.2, 1.0, 0.0])[:, None]

    return ends


PATTERNS: dict[str, Ends] = {
    "never": at_random(0.0),
    "now and then": at_random(0.1),  # the runs end at different rates, the last run never
    "always": lambda rng, step: np.ones((3, 4), bool),
    "one env at every step": lambda rng, step: np.array([[True, False, False, False]] * 3),
    "in bursts": lambda rng, step: np.full((3, 4), step // 7 % 3 == 1),
    "one run": lambda rng, step: np.array([[False] * 4, [True] * 4, [False] * 4]),
}


def assert_equal(a: Batch, b: Batch) -> None:
    for name, x, y in zip(Batch._fields, a, b, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype == torch.float32, name
        assert x.equal(y), name


@pytest.mark.parametrize("capacity", [4, 5, 7, 8, 23, 24, 100])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_draws_are_those_of_a_plain_buffer(
    capacity: int, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare every transition bit by bit after each of 60 steps.

    The table of final observations starts with one slot.
    """
    monkeypatch.setattr(replay, "SLOTS", 1)
    ours, plain = Replay(3, capacity, OBS, ACT, envs=4), Plain(3, capacity)
    stream = Stream(3, 4, PATTERNS[pattern])
    draws = torch.Generator().manual_seed(0)
    for _ in range(60):
        batch, ended = stream.step()
        ours.add(batch, ended)
        plain.add(batch)
        assert ours.size == min(plain.total, capacity)
        every = torch.arange(ours.size).expand(3, -1)
        drawn = torch.randint(2**48, (3, 9), generator=draws)
        for index in (every, drawn):
            assert_equal(ours.sample(index), plain.sample(index))
        held = [sum(float(x) > 0 for x in ours.rows[r, : ours.size, -1]) for r in range(3)]
        assert [len(ours.state(r).rings["finals"].order) for r in range(3)] == held
        assert max(held) <= ours.slots < 2 * capacity


def test_the_table_grows_only_where_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the table of final observations grows only with the ends still in the buffer."""
    monkeypatch.setattr(replay, "SLOTS", 2)
    ours, stream = Replay(3, 40, OBS, ACT, envs=4), Stream(3, 4, PATTERNS["one env at every step"])
    sizes = []
    for _ in range(200):
        ours.add(*stream.step())
        sizes.append(ours.slots)
    assert sizes[:10] == [2, 2, 4, 4, 8, 8, 8, 8, 16, 16] and set(sizes[10:]) == {16}
    assert ours.ends == [200] * 3


def test_a_table_that_float32_cannot_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "SLOTS", 4)
    monkeypatch.setattr(replay, "MOST", 8)
    ours, stream = Replay(3, 24, OBS, ACT, envs=4), Stream(3, 4, PATTERNS["always"])
    ours.add(*stream.step())
    ours.add(*stream.step())
    with pytest.raises(ValueError, match="more than 4 transitions of a run ended"):
        ours.add(*stream.step())
    assert ours.size == 8


@pytest.mark.parametrize("steps", [3, 6, 40])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_read_and_written_back_draws_and_goes_on_alike(
    pattern: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "SLOTS", 1)
    ours, stream = Replay(3, 23, OBS, ACT, envs=4), Stream(3, 4, PATTERNS[pattern])
    for _ in range(steps):
        ours.add(*stream.step())
    other = Replay(3, 23, OBS, ACT, envs=4)
    other.restore([ours.state(run) for run in range(3)])
    for _ in range(20):
        every = torch.arange(ours.size).expand(3, -1)
        assert_equal(ours.sample(every), other.sample(every))
        batch, ended = stream.step()
        ours.add(batch, ended)
        other.add(batch, ended)
    with pytest.raises(ValueError, match="1 final observations for 0 of 9 ends"):
        rows = Ring(torch.zeros(4, 8), torch.arange(4), 4)
        finals = Ring(torch.zeros(1, OBS), torch.arange(1), 9)
        other.restore([State(rings={"rows": rows, "finals": finals})])


def test_several_steps_at_once_are_the_same_as_one_by_one() -> None:
    together, apart = Replay(3, 50, OBS, ACT, envs=4), Replay(3, 50, OBS, ACT, envs=4)
    stream = Stream(3, 4, PATTERNS["now and then"])
    for _ in range(6):
        steps = [stream.step() for _ in range(3)]
        for batch, ended in steps:
            apart.add(batch, ended)
        joined = Batch(
            *(torch.cat(fields, 1) for fields in zip(*(b for b, _ in steps), strict=True))
        )
        together.add(joined, np.concatenate([ended for _, ended in steps], 1))
        every = torch.arange(together.size).expand(3, -1)
        assert_equal(together.sample(every), apart.sample(every))


def test_runs_do_not_see_each_other() -> None:
    ours, stream = Replay(3, 30, OBS, ACT, envs=4), Stream(3, 4, PATTERNS["now and then"])
    alone = [Replay(1, 30, OBS, ACT, envs=4) for _ in range(3)]
    index = torch.randint(2**40, (3, 50))
    for _ in range(12):
        batch, ended = stream.step()
        ours.add(batch, ended)
        for run, one in enumerate(alone):
            one.add(Batch(*(x[run : run + 1] for x in batch)), ended[run : run + 1])
    drawn = ours.sample(index)
    for run, one in enumerate(alone):
        own = Batch(*(x[run : run + 1] for x in drawn))
        assert_equal(own, one.sample(index[run : run + 1]))


def test_what_is_stored_is_a_copy() -> None:
    ours, stream = Replay(3, 30, OBS, ACT, envs=4), Stream(3, 4, PATTERNS["one env at every step"])
    batch, ended = stream.step()
    kept = copy.deepcopy(batch)
    ours.add(batch, ended)
    for field in batch:
        field.fill_(7.0)
    assert_equal(ours.sample(torch.arange(4).expand(3, -1)), kept)


def test_what_never_ends_lets_no_garbage_in() -> None:
    """Fill the table of final observations with NaN and check that no draw reads it."""
    ours, stream = Replay(3, 30, OBS, ACT, envs=4), Stream(3, 4, PATTERNS["never"])
    ours.finals.fill_(torch.nan)
    for _ in range(3):
        ours.add(*stream.step())
    assert ours.sample(torch.arange(12).expand(3, -1)).next_obs.isfinite().all()


@pytest.mark.parametrize("shape", [(2, 4), (3, 5), (3, 36)])
def test_only_whole_vector_steps_that_fit_are_taken(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="whole vector steps of 4"):
        Replay(3, 35, OBS, ACT, envs=4).reserve(np.zeros(shape, bool))
    with pytest.raises(ValueError, match="capacity 3 is less than a vector step of 4"):
        Replay(3, 3, OBS, ACT, envs=4)


def test_bytes_are_those_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the peak bytes: while the table of final observations grows, two copies exist."""
    for first, ends in ((64, 50), (8, 50), (1, 1)):
        monkeypatch.setattr(replay, "SLOTS", first)
        ours, stream = Replay(3, 50, OBS, ACT, envs=4), Stream(3, 4, PATTERNS["always"])
        seen = [ours.finals]
        for _ in range(20 if ends == 50 else 0):
            ours.add(*stream.step())
            if ours.finals is not seen[-1]:
                seen.append(ours.finals)
        held = sum(t.numel() * t.element_size() for t in (ours.rows, *seen[-2:]))
        after = ours.after.numel() * ours.after.element_size()  # shared by all three runs
        assert held + 3 * after == 3 * peak_bytes(50, OBS, ACT, ends, envs=4)


def test_the_papers_largest_buffer_is_under_7_gb() -> None:
    """Check the size of Humanoid-v4's buffer with 4 million transitions.

    An episode ends every 22 steps, as it does under a random policy.
    """
    assert peak_bytes(4_000_000, 376, 17, 4_000_000 // 22, envs=4) < 7e9
    before = 4 * 4_000_000 * (2 * 376 + 17 + 2)
    assert before > 12.3e9
