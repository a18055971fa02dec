"""Seeds and generators derived from keys."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ngt.seeding import derive, record_seeds, rng


def test_derive_never_changes():
    """Pin the outputs, because a change here changes every result."""
    assert derive(0) == 4246866556266386882
    assert derive(3, "Hopper-v4", "ngt", 11) == 269401864377003271


@given(st.integers(0, 2**63 - 1), st.lists(st.text(max_size=5) | st.integers(), max_size=4))
def test_derive_lies_in_range(seed: int, axes: list[str | int]):
    assert 0 <= derive(seed, *axes) < 2**63


def test_derive_tells_axes_apart():
    keys = [
        (0, "a", "bc"),
        (0, "ab", "c"),
        (0, "abc"),
        (0, "a", "b", "c"),
        (0, "bc", "a"),
        (0, "abc", ""),
        (0, 1, 23),
        (0, 12, 3),
        (0, 123),
        (1, "a", "bc"),
        (0,),
        (1,),
        (0, ""),
        (12, 3),
        (1, 23),
    ]
    assert len({derive(*key) for key in keys}) == len(keys)
    many = {derive(s, env, i) for s, env, i in itertools.product(range(20), "abcd", range(20))}
    assert len(many) == 20 * 4 * 20


def test_generators_are_their_own():
    np.random.seed(0)
    first = rng(1, "x").random(3)
    np.random.seed(1)
    assert np.array_equal(rng(1, "x").random(3), first)
    assert not np.array_equal(rng(1, "y").random(3), first)


def test_each_recorded_episode_has_its_own_seed():
    seeds = record_seeds("Hopper-v4", 16, 0)
    assert len({*seeds, *record_seeds("Hopper-v4", 16, 1), *record_seeds("Ant-v4", 16, 0)}) == 48
    assert record_seeds("Hopper-v4", 4, 0) == seeds[:4], "fewer episodes are the first ones"
