"""The sizes of the envs in the paper and in its authors' code."""

from __future__ import annotations

from paper.claims.envs import CODE_SIZES, PAPER_SIZES


def test_sizes() -> None:
    assert len(PAPER_SIZES) == 5 and "Hopper-v4" not in PAPER_SIZES
    assert {e for e in PAPER_SIZES if CODE_SIZES[e] != PAPER_SIZES[e]} == {"Ant-v4"}
