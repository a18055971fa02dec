"""Tests of a run's state: joining states, slicing a pack and reading a ring buffer.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import torch

from ngt.state import Ring, State, slice_of


def test_joined_states_hold_the_names_of_both() -> None:
    ring = Ring(torch.zeros(2, 1), torch.arange(2), 5)
    a, b = State({"x": torch.ones(1)}, {"n": 1}), State({"y": torch.zeros(1)}, rings={"r": ring})
    joined = a | b
    assert [set(joined.tensors), joined.data, set(joined.rings)] == [{"x", "y"}, {"n": 1}, {"r"}]
    assert (set(a.tensors), a.rings) == ({"x"}, {}), "joining must change neither state"


def test_a_rings_items_come_oldest_first() -> None:
    ring = Ring(torch.arange(8.0).view(4, 2), torch.tensor([2, 3, 0]), 11)
    assert ring.items().tolist() == [[4.0, 5.0], [6.0, 7.0], [0.0, 1.0]]
    assert ring.items(2).tolist() == [[0.0, 1.0]]
    assert ring.items(3).shape == (0, 2)


def test_a_slice_is_a_copy() -> None:
    packed = torch.arange(6.0).view(3, 2).requires_grad_()
    own = slice_of(packed, 1)
    own.fill_(9.0)
    assert own.shape == (1, 2) and packed[1].tolist() == [2.0, 3.0]
