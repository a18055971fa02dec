from __future__ import annotations

from collections import deque

import pytest
import torch

from ngt.replay import Batch, Replay

OBS, ACT = 3, 2


def transitions(runs: int, first: int, count: int) -> Batch:
    """Transitions first .. first + count - 1: each field tells its run, its number and its name."""
    number = torch.arange(first, first + count, dtype=torch.float32).expand(runs, count)
    mark = number + 1000.0 * torch.arange(runs)[:, None]

    def field(offset: float, width: int) -> torch.Tensor:
        return mark[..., None] + offset + 0.01 * torch.arange(width)

    return Batch(field(0.1, OBS), field(0.2, ACT), field(0.3, OBS), mark + 0.4, number % 2)


def assert_equal(a: Batch, b: Batch) -> None:
    for name, x, y in zip(Batch._fields, a, b, strict=True):
        assert torch.equal(x, y), name


@pytest.mark.parametrize(
    ("capacity", "count"),
    [(1, 1), (4, 1), (4, 3), (4, 4), (3, 4), (7, 3), (7, 4), (12, 4), (100, 3)],
)
def test_holds_the_last_transitions_in_every_field(capacity: int, count: int):
    """Against a plain queue, over several turns; the capacity need not be a multiple."""
    replay, held = Replay(2, capacity, OBS, ACT), deque[int](maxlen=capacity)
    for first in range(0, 40, count):
        replay.add(transitions(2, first, count))
        held.extend(range(first, first + count))
        assert replay.size == len(held)
        rows = replay.sample(torch.arange(replay.size).expand(2, -1))
        order = rows.reward[0].argsort()
        sorted_rows = Batch(*(field[:, order] for field in rows))
        assert_equal(sorted_rows, transitions(2, held[0], len(held)))


def test_oldest_go_first():
    replay = Replay(1, 5, OBS, ACT)
    replay.add(transitions(1, 0, 4))
    replay.add(transitions(1, 4, 4))  # over the seam: places 4, 0, 1, 2
    numbers = (replay.sample(torch.arange(5)[None]).reward - 0.4).round().int()
    assert numbers.tolist() == [[5, 6, 7, 3, 4]]
    assert (int(replay.count), replay.size) == (8, 5)


def test_sample_takes_the_index_modulo_the_size():
    replay = Replay(2, 100, OBS, ACT)
    replay.add(transitions(2, 0, 7))
    index = torch.tensor([[0, 7, 2**48 - 1, 6], [13, 5, 1, 2**47]])
    got = (replay.sample(index).reward - 0.4).round().int() % 1000
    assert got.tolist() == [[0, 0, (2**48 - 1) % 7, 6], [6, 5, 1, 2**47 % 7]]


def test_runs_do_not_see_each_other():
    replay = Replay(3, 10, OBS, ACT)
    replay.add(transitions(3, 0, 10))
    index = torch.randint(2**40, (3, 50))
    batch = replay.sample(index)
    for run in range(3):
        alone = Replay(1, 10, OBS, ACT)
        alone.add(Batch(*(field[run : run + 1] for field in transitions(3, 0, 10))))
        expected = alone.sample(index[run : run + 1])
        assert_equal(Batch(*(field[run : run + 1] for field in batch)), expected)
    assert (batch.reward // 1000).int().unique(dim=1).tolist() == [[0], [1], [2]]


def test_shapes_and_stored_values_are_copies():
    replay = Replay(2, 10, OBS, ACT)
    batch = transitions(2, 0, 4)
    replay.add(batch)
    batch.obs.zero_()
    sample = replay.sample(torch.zeros(2, 6, dtype=torch.int64))
    assert [tuple(t.shape) for t in sample] == [(2, 6, 3), (2, 6, 2), (2, 6, 3), (2, 6), (2, 6)]
    assert all(t.dtype == torch.float32 for t in sample)
    assert sample.obs.ne(0).all()
