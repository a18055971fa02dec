"""Each rule on both sides of its threshold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.keys import RunKey
from ngt.settings.load import load
from paper.claims import rules
from paper.claims.evidence import Cells, Finding, Part
from paper.claims.rules import (
    EXPERT,
    LEARNS,
    MARGIN,
    TIGHT,
    Judge,
    ahead,
    close,
    every,
    fails,
    falling,
    flat,
    most,
    on_par,
    order,
    reaches,
    tight,
    unsteady,
    worse,
)  # fmt: skip

Make = Callable[..., Any]
Score = Callable[[RunKey], float]

NGT = Cells("main_figure", ("ngt",), envs=("Ant-v4",))
PAIR = Cells("main_figure", ("ngt", "bc"), envs=("Ant-v4",))
VARIANT = Cells("ablation_init", ("ngt-kaiming", "ngt"))
HALF = 0.01  # of the spread between seeds, small against every threshold


def level(value: float, spread: float = HALF) -> Score:
    """Scores of four seeds around a value."""
    return lambda key: value + spread * (-1.5 + key.seed)


def minus(gap: float, of: str = "bc") -> Score:
    """A method a gap below the others, which are at 0.8."""
    return lambda key: 0.8 - gap * (key.method == of) + HALF * (-1.5 + key.seed)


def apart(gap: float) -> Score:
    """The variant a gap below NGT in the mean, its seeds far apart."""
    return lambda key: 0.8 - (gap + 0.3 * (key.seed - 1.5)) * (key.method != "ngt")


@pytest.fixture
def judged(make_evidence: Make, paper_config: Any) -> Callable[..., Finding]:
    """judged(judge, score, cells): what it finds of all the paper's runs of these cells."""

    def find(judge: Judge, score: Score, *cells: Cells) -> Finding:
        keys = {key for some in cells for key in some.keys(paper_config)}
        return judge(make_evidence({key: score(key) for key in sorted(keys)}))

    return find


@pytest.mark.parametrize(
    ("judge", "cells", "yes", "no"),
    [
        (reaches(EXPERT, NGT), NGT, level(EXPERT + 2 * HALF), level(EXPERT - 2 * HALF)),
        (reaches(EXPERT, NGT), NGT, level(0.97), level(0.97, spread=0.2)),  # mean is not enough
        (fails(LEARNS, NGT), NGT, level(LEARNS - 2 * HALF), level(LEARNS + 2 * HALF)),
        (fails(LEARNS, NGT), NGT, level(0.3), level(0.45, spread=0.2)),
        (tight(NGT), NGT, level(0.5, spread=0.05), level(0.5, spread=0.1)),
        (unsteady(NGT), NGT, level(1.0, spread=0.1), level(1.0, spread=0.05)),
        (unsteady(NGT), NGT, level(EXPERT - 2 * HALF), level(EXPERT + 2 * HALF)),
        (ahead(PAIR), PAIR, minus(0.1), minus(-0.1)),
        (ahead(PAIR), PAIR, minus(0.1), lambda key: 0.8),  # a tie
        (ahead(PAIR), PAIR, minus(0.1),  # the difference's sign is not enough
         lambda key: 0.8 + 0.3 * (key.seed - 1.4) * (key.method == "ngt")),
        (worse(0.0, VARIANT), VARIANT, minus(0.03, of="ngt-kaiming"), apart(0.05)),
        (close(VARIANT), VARIANT, minus(MARGIN - 0.03, of="ngt-kaiming"),
         minus(MARGIN + 0.03, of="ngt-kaiming")),
        (close(VARIANT), VARIANT, minus(0.05, of="ngt-kaiming"), apart(0.05)),
        (worse(0.0, VARIANT), VARIANT, minus(0.03, of="ngt-kaiming"),
         minus(0.0, of="ngt-kaiming")),
        (worse(MARGIN, VARIANT), VARIANT, minus(MARGIN + 0.03, of="ngt-kaiming"),
         minus(MARGIN - 0.03, of="ngt-kaiming")),
    ],
)  # fmt: skip
def test_both_sides_of_a_threshold(
    judged: Make, judge: Judge, cells: Cells, yes: Score, no: Score
) -> None:
    assert judged(judge, yes, cells).verdict == "reproduced"
    assert judged(judge, no, cells).verdict == "not reproduced"


def test_standard_deviations_by_hand(judged: Make) -> None:
    """Four seeds a step apart: 1.29 steps, by the sample."""
    found = judged(tight(NGT), level(0.5, spread=0.1), NGT)
    assert found.parts[0].text.startswith("std 0.13 [")
    assert judged(unsteady(NGT), level(1.0, spread=0.1), NGT).parts[0].margin == pytest.approx(
        0.1 * math.sqrt(5 / 3) - TIGHT
    )


def test_tight_asks_for_the_intervals_end_and_unsteady_for_the_value(judged: Make) -> None:
    """The standard deviation is 0.09, and its interval ends above TIGHT."""
    spread = 0.07
    assert spread * math.sqrt(5 / 3) < TIGHT < spread * math.sqrt(3)
    assert judged(tight(NGT), level(0.5, spread), NGT).verdict == "not reproduced"
    assert judged(unsteady(NGT), level(1.0, spread), NGT).verdict == "not reproduced"


def test_unsteady_asks_for_the_end_of_the_means_interval(judged: Make) -> None:
    """An interval around EXPERT is not below it."""
    found = judged(unsteady(NGT), level(EXPERT - 0.01, spread=0.05), NGT)
    assert found.verdict == "not reproduced"


def test_a_claim_of_many_parts_can_hold_in_some(judged: Make) -> None:
    cells = Cells("main_figure", ("ngt",))
    found = judged(
        reaches(EXPERT, cells), lambda key: 0.95 - 0.3 * ((key.env, key.demos) == ("Ant-v4", 4)),
        cells,
    )  # fmt: skip
    assert found.verdict == "partly"
    assert (
        found.text() == "17 of 18; by the least margin, Ant-v4, 4 demonstrations: 0.65 [0.65, 0.65]"
    )
    assert len(found.keys) == 72


def test_means_are_over_what_by_says(judged: Make) -> None:
    """One number of demonstrations fails; over all it does not show."""
    score = level(0.6)

    def one_low(key: RunKey) -> float:
        return score(key) - 0.15 * (key.demos == 1)

    assert judged(reaches(LEARNS, NGT), one_low, NGT).verdict == "partly"
    assert judged(reaches(LEARNS, NGT, by="env"), one_low, NGT).verdict == "reproduced"


def test_a_difference_is_written_out(judged: Make) -> None:
    found = judged(ahead(PAIR), minus(0.3), PAIR)
    (part,) = found.parts
    assert part.text.startswith("0.80 − 0.50 = 0.30 [")
    down = judged(worse(0.0, VARIANT), minus(0.3, of="ngt-kaiming"), VARIANT)
    assert down.parts[0].text.startswith("0.50 − 0.80 = −0.30 [")


def test_runs_that_never_had_a_score_are_neither_alike_nor_as_good(
    make_evidence: Make, paper_config: Any
) -> None:
    """Each counts as 0 elsewhere, so that here nothing would differ."""
    beside = dict.fromkeys(Cells("main_figure", ("bc",)).keys(paper_config), 0.5)
    found = tight(NGT)(make_evidence(beside, silent=NGT.keys(paper_config)))
    assert found.verdict == "not reproduced"
    assert found.parts[0].text == "4 diverged before an evaluation"
    keys = VARIANT.keys(paper_config)
    assert close(VARIANT)(make_evidence(beside, silent=keys)).verdict == "not reproduced"
    rest = {key: 0.8 + HALF * key.seed for key in keys[1:]}
    found = close(VARIANT)(make_evidence(rest, silent=keys[:1]))
    assert found.verdict == "partly", found.parts
    assert sum(part.text == "1 diverged before an evaluation" for part in found.parts) == 1
    failed = fails(LEARNS, NGT)(make_evidence(beside, silent=NGT.keys(paper_config)))
    assert failed.verdict == "reproduced", "where 0 is what counts"


def test_iqm_not_mean_decides_who_is_ahead(judged: Make) -> None:
    """The worst fourth of the seeds is cut."""

    def score(key: RunKey) -> float:
        if key.method == "bc":
            return 0.7
        return -9.0 if key.seed == 0 and key.demos == 1 else 0.8

    found = judged(ahead(PAIR), score, PAIR)
    assert found.parts[0].text.startswith("0.80 − 0.70 = 0.10 [")


def test_what_the_scale_has_is_shown_without_a_verdict(
    make_evidence: Make, paper_config: Any
) -> None:
    quick = load({"scale": "quick", "statistics": {"reps": 20}})
    cells = Cells("main_figure", ("ngt", "bc"))
    scores = {key: minus(0.3)(key) for key in cells.keys(quick)}
    found = ahead(cells)(make_evidence(scores, quick))
    assert found.verdict == "not run at this scale" and len(found.keys) == 12
    text = found.text()
    assert text is not None and " = 0.30 [" in text and text.endswith("(Pendulum-v1)")
    by_task = reaches(EXPERT, Cells("main_figure", ("ngt",)))(make_evidence(scores, quick))
    assert "Pendulum-v1, 1 demonstration: 0.8" in str(by_task.text())
    assert ahead(cells)(make_evidence({}, quick)).text() is None


def fixed(*margins: float) -> Judge:
    parts = [Part(f"p{i}", f"t{i}", margin) for i, margin in enumerate(margins)]
    return lambda e: Finding(parts, whole=True)


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [((1, 1, -1), "reproduced"), ((1, -1), "not reproduced"), ((1, -1, -1), "not reproduced"),
     ((math.nan, 1, 1, -1), "reproduced"), ((), "not run at this scale")],
)  # fmt: skip
def test_most_is_more_than_half(
    make_evidence: Make, margins: tuple[float, ...], verdict: str
) -> None:
    assert most(fixed(*margins))(make_evidence({})).verdict == verdict


def test_every_part_or_none(make_evidence: Make) -> None:
    e = make_evidence({})
    assert every(fixed(1, 2), fixed(3))(e).verdict == "reproduced"
    found = every(fixed(1, 2), fixed(3, -1))(e)
    assert found.verdict == "not reproduced", "never partly"
    assert found.text() == "3 of 4; by the least margin, p1: t1"
    assert every(fixed(1), fixed(math.nan))(e).verdict == "not run at this scale"
    assert every(fixed())(e).verdict == "not run at this scale"


# --- speed


def timed(method: str, env: str = "Humanoid-v4") -> RunKey:
    return RunKey(env, method, "state-action", 20, 4, 0)


RISING = {
    "speed-pwil": 1, "speed-diffail": 2, "speed-ngt": 3, "speed-dac": 4, "speed-mmd-dac": 5,
    "speed-wdac": 6,
}  # fmt: skip
GPU = {"device": "cuda:0", "machine": "m"}


def at_end(rates: dict[str, float], env: str = "Humanoid-v4") -> dict[RunKey, list[float]]:
    """Ten evaluations, whose last fifth has this rate."""
    return {timed(method, env): [9.0] * 8 + [rate] * 2 for method, rate in rates.items()}


def test_order(make_evidence: Make) -> None:
    def verdict(env: str, rates: dict[str, float], record: dict[str, str] = GPU) -> str:
        return order(env)(make_evidence({}, paces=at_end(rates, env), record=record)).verdict

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
    assert str(order("Humanoid-v4")(e).text()).startswith("PWIL 1 < DiffAIL 2 < NGT 3 < DAC, R 4")
    assert order("Humanoid-v4")(e).text().endswith("(m, cuda:0)")
    assert order("Walker2d-v4")(e).text() is None


def test_runs_on_several_machines_decide_nothing(make_evidence: Make) -> None:
    e = make_evidence({}, paces=at_end(RISING), record=GPU)
    assert order("Humanoid-v4")(e).verdict == "reproduced"
    e.runs.records[timed("speed-ngt")] |= {"machine": "another"}
    assert order("Humanoid-v4")(e).verdict == "not run at this scale"


@pytest.mark.parametrize(
    ("judge", "yes", "no"),
    [
        (flat("ngt"), [1, 2, 3, 4, 4.19], [1, 2, 3, 4, 4.21]),
        (flat("ngt"), [1, 2, 3, 4, 3.81], [4, 4, 4, 4, 3.79]),
        (falling("ngt"), [1, 4, 3, 4, 3.79], [9, 4, 3, 4, 3.81]),
    ],
)
def test_curves(make_evidence: Make, judge: Judge, yes: list[float], no: list[float]) -> None:
    def verdict(*fifths: list[float]) -> str:
        envs = ("Humanoid-v4", "Walker2d-v4")
        paces = {
            timed("speed-ngt", env): [rate for rate in paced for _ in range(2)]
            for env, paced in zip(envs, fifths, strict=True)
        }
        return judge(make_evidence({}, paces=paces, record=GPU)).verdict

    assert verdict(yes, yes) == "reproduced"
    assert verdict(no, no) == "not reproduced"
    assert verdict(yes, no) == "partly"


def test_a_run_too_short_for_a_trend(make_evidence: Make) -> None:
    e = make_evidence({}, paces={timed("speed-ngt"): [1.0, 2.0]}, record=GPU)
    assert flat("ngt")(e).parts[0].holds is None


@pytest.mark.parametrize(("red", "verdict"), [(1.04, "reproduced"), (0.94, "not reproduced")])
def test_on_par(make_evidence: Make, red: float, verdict: str) -> None:
    paces = {
        key: pace
        for env in ("Humanoid-v4", "Walker2d-v4")
        for key, pace in at_end({"speed-ngt": 1.0, "speed-red": red}, env).items()
    }
    found = on_par("red", "ngt")(make_evidence({}, paces=paces, record=GPU))
    assert found.verdict == verdict
    assert found.parts[0].text == ("+4.0 %" if red > 1 else "−6.0 %")


# --- what a GPU gives


def measured(**changes: Any) -> dict[str, Any]:
    row = {
        "model": "NGT", "env": "Humanoid-v4", "pack": 1, "eager_ms": 9.0, "graph_ms": 3.0,
        "memory_gb": 17.35, "buffer_gb": 0.3,
    }  # fmt: skip
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
    ("judge", "no", "text"),
    [
        (rules.graphs, {"graph_ms": 3.01}, "NGT on Humanoid-v4: 3.0 times (a GPU)"),
        # 17.35 - 0.3, 4e6 rows of 4 x (376 + 17 + 4) bytes, and 4 x 376 for 2^18 + 2^17 ends
        (rules.memory, {"memory_gb": 17.36}, "NGT on Humanoid-v4: 24.0 GB (a GPU)"),
        (rules.hours, {"env_steps_per_second": 555.0}, "5.0 h (a GPU)"),
    ],
)
def test_gpu(make_evidence: Make, judge: Judge, no: dict[str, float], text: str) -> None:
    found = judge(make_evidence({}, gpu=measured()))
    assert (found.verdict, found.text()) == ("reproduced", text)
    assert judge(make_evidence({}, gpu=measured(**no))).verdict == "not reproduced"
    assert judge(make_evidence({})).verdict == "not run at this scale"
