"""The benchmark: what it measures and what it prints."""

from __future__ import annotations

import pytest

from ngt import bench


@pytest.mark.slow
def test_bench_measures_every_contender_and_agreement() -> None:
    result = bench.bench("Pendulum-v1", pack=2, repeats=2, updates=4)
    names = [row["what"] for row in result["rows"]]
    assert names[:3] == ["SAC", "NGT", "NGT, pack of 2"]
    assert all(0 < r["slowest"] <= r["updates_per_second"] <= r["fastest"] for r in result["rows"])
    assert sum(p["share"] for p in result["profile"]) == pytest.approx(1, abs=0.01)
    assert [a["updates"] for a in result["agreement"]] == [1, 10, 100]
    assert result["agreement"][0]["difference"] < 1e-6
    text = bench.table(result)
    assert "NGT, pack of 2" in text and "matrix products" in text and "after  100 updates" in text


@pytest.mark.parametrize(
    ("op", "group"),
    [
        ("aten::baddbmm", "matrix products"),
        ("aten::_fused_adam_", "optimisers"),
        ("Optimizer.step#Adam.step", "optimisers"),
        ("aten::threshold_backward", "activations"),
        ("aten::mul", "elementwise"),
        ("aten::index_select", "copies and draws"),
        ("autograd::engine::evaluate_function", "other"),
    ],
)
def test_operators_are_grouped(op: str, group: str) -> None:
    assert bench._group(op) == group
