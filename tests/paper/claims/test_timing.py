"""Rules for training speeds: verdicts on both sides of each threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.keys import RunKey
from paper.claims.timing import TimingRule, falling, flat, on_par, order

Make = Callable[..., Any]


REPEATS = (0, 1, 2)


def timed(method: str, env: str = "Humanoid-v4", seed: int = 0) -> RunKey:
    return RunKey(env, method, "state-action", 20, 4, seed)


RISING = {
    "speed-pwil": 1.0,
    "speed-diffail": 2.0,
    "speed-ngt": 3.0,
    "speed-dac": 4.0,
    "speed-mmd-dac": 5.0,
    "speed-wdac": 6.0,
}
GPU = {"device": "cuda:0", "machine": "m", "gpu": "RTX"}


def at(rates: dict[str, float], env: str = "Humanoid-v4") -> dict[RunKey, list[float]]:
    """Return ten speeds per method for each of three repeats, which are two per cent apart."""
    return {
        timed(method, env, seed): [rate * (0.98 + 0.02 * seed)] * 10
        for method, rate in rates.items()
        for seed in REPEATS
    }


def test_order(make_evidence: Make) -> None:
    def verdict(env: str, rates: dict[str, float], record: dict[str, str] = GPU) -> str:
        return order(env).judge(make_evidence({}, paces=at(rates, env), record=record)).verdict

    assert verdict("Humanoid-v4", RISING) == "reproduced"
    assert verdict("Walker2d-v4", RISING) == "reproduced", "NGT and DAC tie there in the paper"
    swapped = {**RISING, "speed-pwil": 2.0, "speed-diffail": 1.0}
    assert verdict("Humanoid-v4", swapped) == "reproduced", "the paper has DiffAIL 4.4 % above PWIL"
    assert verdict("Walker2d-v4", swapped) == "partly", "the paper has DiffAIL 24 % above PWIL"
    backwards = {method: 10 - rate for method, rate in RISING.items()}
    assert verdict("Humanoid-v4", backwards) == "not reproduced"
    assert verdict("Humanoid-v4", dict.fromkeys(RISING, 5.0)) == "not reproduced"
    near = {method: 1 + rate / 100 for method, rate in RISING.items()}
    assert verdict("Humanoid-v4", near) != "reproduced", "methods differ less than repeats"
    on_cpu = {"device": "cpu", "machine": "m"}
    assert verdict("Humanoid-v4", RISING, on_cpu) == "not run at this scale"
    fewer = {m: r for m, r in RISING.items() if m != "speed-dac"}
    assert verdict("Humanoid-v4", fewer) == "not run at this scale"
    e = make_evidence({}, paces=at(RISING), record=GPU)
    found = order("Humanoid-v4").judge(e)
    assert str(found.text()).startswith("PWIL 1 < DiffAIL 2 < NGT 3 < DAC, R 4")
    assert str(found.text()).endswith("10 of 10 pairs (m, RTX)")
    assert order("Walker2d-v4").judge(e).text() is None


def test_an_order_needs_repeats(make_evidence: Make) -> None:
    alone = {key: pace for key, pace in at(RISING).items() if key.seed == 0}
    found = order("Humanoid-v4").judge(make_evidence({}, paces=alone, record=GPU))
    assert found.verdict == "not run at this scale"
    assert {check.holds for check in found.checks} == {None}


def test_speed_is_the_mean_since_the_start(make_evidence: Make) -> None:
    """Slow down the end of a run, which hardly changes its overall mean."""
    paces = at(RISING)
    for seed in REPEATS:
        paces[timed("speed-wdac", seed=seed)] = [6.0] * 9 + [4.5]
    found = order("Humanoid-v4").judge(make_evidence({}, paces=paces, record=GPU))
    assert found.verdict == "reproduced"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"device": "cuda:1"}, "reproduced"),
        ({"machine": "another"}, "not run at this scale"),
        ({"gpu": "another"}, "not run at this scale"),
        ({"gpu": None}, "not run at this scale"),
    ],
)
def test_runs_on_different_machines_or_gpus_decide_nothing(
    make_evidence: Make, change: dict[str, Any], verdict: str
) -> None:
    e = make_evidence({}, paces=at(RISING), record=GPU)
    assert order("Humanoid-v4").judge(e).verdict == "reproduced"
    e.runs.records[timed("speed-ngt")] |= change
    assert order("Humanoid-v4").judge(e).verdict == verdict


def test_gpus_without_a_name_decide_nothing(make_evidence: Make) -> None:
    e = make_evidence({}, paces=at(RISING), record={"device": "cuda:0", "machine": "m"})
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
            timed("speed-ngt", env, seed): [rate for rate in paced for _ in range(2)]
            for env, paced in zip(envs, fifths, strict=True)
            for seed in REPEATS
        }
        return rule.judge(make_evidence({}, paces=paces, record=GPU)).verdict

    assert verdict(yes, yes) == "reproduced"
    assert verdict(no, no) == "not reproduced"
    assert verdict(yes, no) == "partly"


@pytest.mark.parametrize(
    ("record", "tendency"),
    [
        (GPU, "contradicts"),
        ({"device": "cpu", "machine": "m"}, "silent"),
        ({"device": "cuda:0", "machine": "m"}, "silent"),
    ],
)
def test_speeds_have_a_tendency_only_on_equal_gpus(
    make_evidence: Make, record: dict[str, str], tendency: str
) -> None:
    """Judge one run of each method, which decides nothing but shows a tendency."""
    rising = [1.0, 2.0, 3.0, 4.0, 5.0]
    rules = [(flat("ngt"), rising), (falling("ngt"), rising), (on_par("red", "ngt"), rising)]
    for rule, pace in rules:
        paces = {timed("speed-ngt"): pace, timed("speed-red"): [2 * rate for rate in pace]}
        found = rule.judge(make_evidence({}, paces=paces, record=record))
        assert (found.verdict, found.tendency) == ("not run at this scale", tendency)
        assert found.checks[0].text in str(found.text())


def test_a_run_too_short_for_a_trend(make_evidence: Make) -> None:
    e = make_evidence({}, paces={timed("speed-ngt"): [1.0, 2.0]}, record=GPU)
    assert flat("ngt").judge(e).checks[0].holds is None


@pytest.mark.parametrize(("red", "verdict"), [(1.04, "reproduced"), (0.94, "not reproduced")])
def test_on_par(make_evidence: Make, red: float, verdict: str) -> None:
    paces = {
        key: pace
        for env in ("Humanoid-v4", "Walker2d-v4")
        for key, pace in at({"speed-ngt": 1.0, "speed-red": red}, env).items()
    }
    found = on_par("red", "ngt").judge(make_evidence({}, paces=paces, record=GPU))
    assert found.verdict == verdict
    assert found.checks[0].text == ("+4.0 %" if red > 1 else "−6.0 %")
