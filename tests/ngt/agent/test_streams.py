"""Streams of random draws for each run of a pack, i.e. a group of runs trained together."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from ngt.agent.streams import Draw, Streams, torch_generator
from ngt.seeding import rng
from ngt.state import State

DRAWS = {
    "noise": Draw("normal", (5, 2)),
    "mix": Draw("uniform", (5,)),
    "index": Draw("index", (7,)),
}


def take(streams: Streams, n: int) -> dict[str, torch.Tensor]:
    """Return the draws of the next n iterations by name, each of shape (n, R, ...)."""
    rows = [{name: t.clone() for name, t in streams.next().items()} for _ in range(n)]
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def assert_same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def test_generators_are_their_own():
    torch.manual_seed(0)
    first = torch.rand(3, generator=torch_generator(1, "x"))
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3, generator=torch_generator(1, "x")), first)
    assert not torch.equal(torch.rand(3, generator=torch_generator(1, "y")), first)


def test_streams_leave_global_generators_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    Streams([0], DRAWS).next()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_draws_of_a_run_do_not_depend_on_its_pack():
    alone = take(Streams([5], DRAWS), 3)
    packed = take(Streams([4, 5, 6], DRAWS), 3)
    assert_same(alone, {name: t[:, 1:2] for name, t in packed.items()})


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_does_not_depend_on_other_draws(name: str):
    more = {"other": Draw("normal", (100,)), **DRAWS, "last": Draw("index", (9,))}
    few = take(Streams([5, 8], {name: DRAWS[name]}), 3)
    assert torch.equal(few[name], take(Streams([5, 8], more), 3)[name])


def test_runs_names_and_iterations_differ():
    draws = take(Streams([0, 1], {"a": Draw("normal", (3,)), "b": Draw("normal", (3,))}), 200)
    rows = torch.cat([draws["a"].flatten(0, 1), draws["b"].flatten(0, 1)])
    assert len(rows.unique(dim=0)) == 800, "a draw must not occur twice"


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch):
    """Check that the draws are the generator's sequence, whatever the block length."""
    n = 2 * Streams.BLOCK + 3
    default = take(Streams([2, 3], DRAWS), n)
    expected = rng(3, "draw", "noise").standard_normal((n, 5, 2), dtype=np.float32)
    assert np.array_equal(default["noise"][:, 1].numpy(), expected)
    monkeypatch.setattr(Streams, "BLOCK", 5)
    assert_same(default, take(Streams([2, 3], DRAWS), n))


def test_distributions():
    draws = take(Streams([0], {k: d._replace(shape=(4000,)) for k, d in DRAWS.items()}), 10)
    noise, mix, index = (draws[name].flatten() for name in DRAWS)
    assert (noise.dtype, mix.dtype, index.dtype) == (torch.float32, torch.float32, torch.int64)
    assert abs(float(noise.mean())) < 0.02
    assert abs(float(noise.std()) - 1.0) < 0.02
    assert mix.min() >= 0.0 and mix.max() < 1.0
    assert abs(float(mix.mean()) - 0.5) < 0.01
    assert index.min() >= 0 and 0.99 * 2**48 < index.max() < 2**48
    share = torch.bincount(index % 10, minlength=10) / index.numel()
    assert (share - 0.1).abs().max() < 0.01


@pytest.mark.parametrize("drawn", [0, 1, Streams.BLOCK - 1, Streams.BLOCK, Streams.BLOCK + 7])
def test_state_round_trip_goes_on_identically(drawn: int):
    streams = Streams([4, 9], DRAWS)
    if drawn:
        take(streams, drawn)
    data = json.loads(json.dumps([streams.state(run).data for run in (0, 1)]))  # through JSON
    state = [State(data=each) for each in data]
    expected = take(streams, Streams.BLOCK + 10)
    restored = Streams([0, 1], DRAWS)
    restored.restore(state)
    assert_same(expected, take(restored, Streams.BLOCK + 10))
    streams.restore(state)
    assert_same(expected, take(streams, Streams.BLOCK + 10))
