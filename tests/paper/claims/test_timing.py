"""Rules on speed and memory, each on both sides of its threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.keys import RunKey
from paper.claims.timing import (
    GRAPHS_RULE,
    HOURS_RULE,
    MEMORY_RULE,
    TimingRule,
    falling,
    flat,
    on_par,
    order,
)

Make = Callable[..., Any]


def timed(method: str, env: str = "Humanoid-v4") -> RunKey:
    return RunKey(env, method, "state-action", 20, 4, 0)


RISING = {
    "speed-pwil": 1,
    "speed-diffail": 2,
    "speed-ngt": 3,
    "speed-dac": 4,
    "speed-mmd-dac": 5,
    "speed-wdac": 6,
}
GPU = {"device": "cuda:0", "machine": "m"}


def at_end(rates: dict[str, float], env: str = "Humanoid-v4") -> dict[RunKey, list[float]]:
    """Ten evaluations, whose last fifth has this rate."""
    return {timed(method, env): [9.0] * 8 + [rate] * 2 for method, rate in rates.items()}


def test_order(make_evidence: Make) -> None:
    def verdict(env: str, rates: dict[str, float], record: dict[str, str] = GPU) -> str:
        return order(env).judge(make_evidence({}, paces=at_end(rates, env), record=record)).verdict

    assert verdict("Humanoid-v4", RISING) == "reproduced"
    assert verdict("Walker2d-v4", RISING) == "partly", "there the paper has DAC below NGT"
    assert verdict("Walker2d-v4", {**RISING, "speed-ngt": 4.5}) == "reproduced"
    falling_ = {method: -rate + 10 for method, rate in RISING.items()}
    assert verdict("Humanoid-v4", falling_) == "not reproduced"
    tied = dict.fromkeys(RISING, 5.0)
    assert verdict("Humanoid-v4", tied) == "not reproduced"
    assert verdict("Humanoid-v4", RISING, {**GPU, "device": "cpu"}) == "not run at this scale"
    fewer = {m: r for m, r in RISING.items() if m != "speed-dac"}
    assert verdict("Humanoid-v4", fewer) == "not run at this scale"
    e = make_evidence({}, paces=at_end(RISING), record=GPU)
    assert str(order("Humanoid-v4").judge(e).text()).startswith(
        "PWIL 1 < DiffAIL 2 < NGT 3 < DAC, R 4"
    )
    assert order("Humanoid-v4").judge(e).text().endswith("(m, cuda:0)")
    assert order("Walker2d-v4").judge(e).text() is None


def test_runs_on_several_machines_decide_nothing(make_evidence: Make) -> None:
    e = make_evidence({}, paces=at_end(RISING), record=GPU)
    assert order("Humanoid-v4").judge(e).verdict == "reproduced"
    e.runs.records[timed("speed-ngt")] |= {"machine": "another"}
    assert order("Humanoid-v4").judge(e).verdict == "not run at this scale"


@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        (flat("ngt"), [1, 2, 3, 4, 4.19], [1, 2, 3, 4, 4.21]),
        (flat("ngt"), [1, 2, 3, 4, 3.81], [4, 4, 4, 4, 3.79]),
        (falling("ngt"), [1, 4, 3, 4, 3.79], [9, 4, 3, 4, 3.81]),
    ],
)
def test_curves(make_evidence: Make, rule: TimingRule, yes: list[float], no: list[float]) -> None:
    def verdict(*fifths: list[float]) -> str:
        envs = ("Humanoid-v4", "Walker2d-v4")
        paces = {
            timed("speed-ngt", env): [rate for rate in paced for _ in range(2)]
            for env, paced in zip(envs, fifths, strict=True)
        }
        return rule.judge(make_evidence({}, paces=paces, record=GPU)).verdict

    assert verdict(yes, yes) == "reproduced"
    assert verdict(no, no) == "not reproduced"
    assert verdict(yes, no) == "partly"


def test_a_run_too_short_for_a_trend(make_evidence: Make) -> None:
    e = make_evidence({}, paces={timed("speed-ngt"): [1.0, 2.0]}, record=GPU)
    assert flat("ngt").judge(e).checks[0].holds is None


@pytest.mark.parametrize(("red", "verdict"), [(1.04, "reproduced"), (0.94, "not reproduced")])
def test_on_par(make_evidence: Make, red: float, verdict: str) -> None:
    paces = {
        key: pace
        for env in ("Humanoid-v4", "Walker2d-v4")
        for key, pace in at_end({"speed-ngt": 1.0, "speed-red": red}, env).items()
    }
    found = on_par("red", "ngt").judge(make_evidence({}, paces=paces, record=GPU))
    assert found.verdict == verdict
    assert found.checks[0].text == ("+4.0 %" if red > 1 else "−6.0 %")


# --- what a GPU gives


def measured(**changes: Any) -> dict[str, Any]:
    row = {
        "model": "NGT",
        "env": "Humanoid-v4",
        "pack": 1,
        "eager_ms": 9.0,
        "graph_ms": 3.0,
        "memory_gb": 17.35,
        "buffer_gb": 0.3,
    }
    pack = {**row, "pack": 4, "graph_ms": 90.0, "memory_gb": 99.0}
    training = {"model": "NGT", "env": "Humanoid-v4", "pack": 1, "env_steps_per_second": 556.0}
    return {
        "device": "a GPU",
        "rates": [{**row, **{k: v for k, v in changes.items() if k in row}}, pack],
        "training": [
            {**training, **{k: v for k, v in changes.items() if k in training}},
            {**training, "pack": 4, "env_steps_per_second": 1.0},
        ],
    }


@pytest.mark.parametrize(
    ("rule", "no", "text"),
    [
        (GRAPHS_RULE, {"graph_ms": 3.01}, "NGT on Humanoid-v4: 3.0 times (a GPU)"),
        # 17.35 - 0.3, 4e6 rows of 4 x (376 + 17 + 4) bytes, and 4 x 376 for 2^18 + 2^17 ends
        (MEMORY_RULE, {"memory_gb": 17.36}, "NGT on Humanoid-v4: 24.0 GB (a GPU)"),
        (HOURS_RULE, {"env_steps_per_second": 555.0}, "5.0 h (a GPU)"),
    ],
)
def test_gpu(make_evidence: Make, rule: TimingRule, no: dict[str, float], text: str) -> None:
    found = rule.judge(make_evidence({}, gpu=measured()))
    assert (found.verdict, found.text()) == ("reproduced", text)
    assert rule.judge(make_evidence({}, gpu=measured(**no))).verdict == "not reproduced"
    assert rule.judge(make_evidence({})).verdict == "not run at this scale"
