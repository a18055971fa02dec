"""Tests of the benchmarks' timing functions."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from ngt.bench import measure
from ngt.bench.cases import Contender, cell_of, pack_of


def test_contenders_take_turns_and_the_updates_of_all_runs_are_counted() -> None:
    calls: list[str] = []

    def call(name: str) -> Callable[[], None]:
        return lambda: (calls.append(name), time.sleep(0.001))[0]

    found = measure.measure({"a": Contender(call("a")), "b": Contender(call("b"), 2)}, 2, 8)
    assert "".join(calls) == "aaaabbb" + 2 * ("aaaaaaaa" + "bbbb"), (
        "two rounds must follow a burn-in"
    )
    assert [len(rates) for rates in found.values()] == [2, 2]
    assert all(rate < 1000 for rate in found["a"]), "a call takes at least 1 ms"
    assert all(rate < 2000 for rate in found["b"]), "a call of at least 1 ms updates two runs"


def test_work_on_a_gpu_is_waited_for_before_the_clock_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    def clock() -> float:
        events.append("clock")
        return 0.0

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: events.append("wait"))
    monkeypatch.setattr(time, "perf_counter", clock)
    measure.seconds(lambda: events.append("call"), 2)
    assert events == ["wait", "clock", "call", "call", "wait", "clock"]


def test_ratios_are_taken_round_by_round() -> None:
    assert measure.ratio([2.0, 20.0, 9.0], [1.0, 10.0, 3.0]) == 2.0
    assert measure.ratio([2.0, 20.0, 9.0], [1.0, 10.0, 3.0], max) == 3.0
    assert measure.rate([3.0, 1.0, 2.0], "updates") == {
        "updates_per_second": 2.0,
        "slowest": 1.0,
        "fastest": 3.0,
    }


def test_products_are_timed_within_an_update() -> None:
    x = torch.ones(8, 8)
    with measure.Products() as timed:
        x + x
        assert timed.seconds == 0.0
        x @ x
    assert timed.seconds > 0.0 and timed.calls == []


def test_the_floor_repeats_the_products_and_nothing_else() -> None:
    x, y, bias = torch.ones(2, 5, 3), torch.ones(2, 7, 3).mT, torch.ones(2, 1, 7)

    def update() -> None:
        torch.baddbmm(bias, x, y).relu().sum()
        torch.addmm(bias[0], x[0], y[0])
        torch.bmm(torch.ones(1, 1, 1).expand(2, 5, 3), y)

    products = measure.floor(update)
    with measure.Products("cpu") as noted:
        products()
    factors = [[(f.shape, f.stride()) for f in args] for _, args in noted.calls]
    assert factors[0] == [(x.shape, x.stride()), (y.shape, y.stride())], "factor layouts must stay"
    assert [f[0] for f in factors[1]] == [(5, 3), (3, 7)]
    assert factors[2][0] == ((2, 5, 3), (0, 0, 0)), "an expanded factor must stay expanded"
    assert len(factors) == 3


def test_a_difference_is_found_wherever_it_is() -> None:
    cell = cell_of("DAC", "Pendulum-v1")
    sides = {
        "pack": [pack_of(cell, range(2), filled=300)],
        "alone": [pack_of(cell, [seed], filled=300) for seed in range(2)],
        "again": [pack_of(cell, range(2), filled=300)],
    }
    values = measure.parameters(sides["pack"][0].learner)
    assert values.dtype == torch.float64 and values.shape[0] == 2
    with torch.no_grad():
        list(sides["alone"][1].learner.model.parameters())[-1].add_(1.0)
    (row, last) = measure.agreement(sides, (1, 2))
    assert (row["updates"], last["updates"]) == (1, 2)
    assert row["pack_alone"] == pytest.approx(1.0, abs=0.01) == row["alone_again"]


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("aten::baddbmm", "matrix products"),
        ("mkldnn::_linear_pointwise", "matrix products"),
        ("aten::_fused_adam_", "optimisers"),
        ("Optimizer.step#Adam.step", "optimisers"),
        ("aten::threshold_backward", "activations"),
        ("aten::sum", "reductions"),
        ("aten::mul", "elementwise"),
        ("aten::index_select", "copies and draws"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "other"),
    ],
)
def test_operators_have_a_kind(operator: str, kind: str) -> None:
    assert measure.kind(operator) == kind
