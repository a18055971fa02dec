"""Rules for scores: verdicts on both sides of each threshold, and texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.keys import RunKey
from ngt.settings.config import Config
from ngt.settings.load import load
from paper.claims.rules import (
    EXPERT,
    LEARNS,
    MARGIN,
    STRONG,
    TIGHT,
    Bound,
    ScoreRule,
    Together,
    bounded,
)
from paper.claims.verdicts import Cells, Outcome, Rule

Make = Callable[..., Any]
Score = Callable[[RunKey], float]

NGT = Cells("main_figure", ("ngt",), envs=("Ant-v4",))
PAIR = Cells("main_figure", ("ngt", "bc"), envs=("Ant-v4",))
VARIANT = Cells("ablation_init", ("ngt-kaiming", "ngt"))
TIGHT_NGT = bounded("std", "≤", TIGHT, NGT)
UNSTEADY_NGT = ScoreRule((Bound("std", ">", TIGHT), Bound("mean", "<", EXPERT)), (NGT,))
AHEAD = bounded("IQM", ">", 0, PAIR, by="all")
CLOSE = bounded("mean", "≥", -MARGIN, VARIANT, by="env")
WORSE = bounded("mean", "<", 0, VARIANT, by="env")
ALIKE = bounded("mean", "±", MARGIN, VARIANT, by="env")
MUCH_WORSE = bounded("mean", "<", -MARGIN, VARIANT, by="env")
HALF = 0.01  # step between seeds' scores, small compared with every threshold


def level(value: float, spread: float = HALF) -> Score:
    """Return a score function whose four seeds lie around a value."""
    return lambda key: value + spread * (-1.5 + key.seed)


def minus(gap: float, of: str = "bc") -> Score:
    """Return a score function that puts method `of` a gap below the others, which score 0.8."""
    return lambda key: 0.8 - gap * (key.method == of) + HALF * (-1.5 + key.seed)


def apart(gap: float) -> Score:
    """Return a score function: a variant's mean is a gap below NGT's, and its seeds vary a lot."""
    return lambda key: 0.8 - (gap + 0.3 * (key.seed - 1.5)) * (key.method != "ngt")


@pytest.fixture
def judged(make_evidence: Make, paper_config: Any) -> Callable[..., Outcome]:
    """Return judged(rule, score, cells), which applies a rule to the paper's runs in `cells`."""

    def find(rule: Rule, score: Score, *cells: Cells) -> Outcome:
        keys = {key for some in cells for key in some.keys(paper_config)}
        return rule.judge(make_evidence({key: score(key) for key in sorted(keys)}))

    return find


@pytest.mark.parametrize(
    ("rule", "cells", "yes", "no"),
    [
        (
            bounded("mean", "≥", EXPERT, NGT),
            NGT,
            level(EXPERT + 3 * HALF),
            level(EXPERT - 3 * HALF),
        ),
        (
            bounded("mean", "≥", EXPERT, NGT),
            NGT,
            level(0.97),
            level(0.97, spread=0.2),
        ),  # a high mean is not enough
        (
            bounded("mean", "<", LEARNS, NGT),
            NGT,
            level(LEARNS - 3 * HALF),
            level(LEARNS + 3 * HALF),
        ),
        (bounded("mean", "<", LEARNS, NGT), NGT, level(0.3), level(0.45, spread=0.2)),
        (TIGHT_NGT, NGT, level(0.5, spread=0.02), level(0.5, spread=0.05)),
        (UNSTEADY_NGT, NGT, level(1.0, spread=0.2), level(1.0, spread=0.1)),
        (UNSTEADY_NGT, NGT, level(EXPERT - 3 * HALF), level(EXPERT + 3 * HALF)),
        (AHEAD, PAIR, minus(0.1), minus(-0.1)),
        (AHEAD, PAIR, minus(0.1), lambda key: 0.8),  # a tie
        (
            AHEAD,
            PAIR,
            minus(0.1),  # a positive difference is not enough
            lambda key: 0.8 + 0.3 * (key.seed - 1.4) * (key.method == "ngt"),
        ),
        (WORSE, VARIANT, minus(0.03, of="ngt-kaiming"), apart(0.05)),
        (
            CLOSE,
            VARIANT,
            minus(MARGIN - 0.03, of="ngt-kaiming"),
            minus(MARGIN + 0.03, of="ngt-kaiming"),
        ),
        (CLOSE, VARIANT, minus(0.05, of="ngt-kaiming"), apart(0.05)),
        (
            ALIKE,
            VARIANT,
            minus(MARGIN - 0.03, of="ngt-kaiming"),
            minus(MARGIN + 0.03, of="ngt-kaiming"),
        ),
        (
            ALIKE,
            VARIANT,
            minus(0.03 - MARGIN, of="ngt-kaiming"),
            minus(-0.03 - MARGIN, of="ngt-kaiming"),
        ),
        (ALIKE, VARIANT, minus(0.0, of="ngt-kaiming"), apart(0.0)),  # equal means are not enough
        (WORSE, VARIANT, minus(0.03, of="ngt-kaiming"), minus(0.0, of="ngt-kaiming")),
        (
            MUCH_WORSE,
            VARIANT,
            minus(MARGIN + 0.03, of="ngt-kaiming"),
            minus(MARGIN - 0.03, of="ngt-kaiming"),
        ),
    ],
)
def test_both_sides_of_a_threshold(
    judged: Make, rule: Rule, cells: Cells, yes: Score, no: Score
) -> None:
    assert judged(rule, yes, cells).verdict == "reproduced"
    assert judged(rule, no, cells).verdict == "not reproduced"


def test_standard_deviations_by_hand(judged: Make) -> None:
    """Check the std over four seeds whose scores are equally spaced.

    It is 1.29 steps, and its confidence bounds are 0.62 and 2.92 times the std.
    """
    std = 0.1 * math.sqrt(5 / 3)
    tight = judged(TIGHT_NGT, level(0.5, spread=0.1), NGT).checks[0]
    assert tight.text.startswith("std 0.13 [0.08, 0.38]")
    assert tight.margin == pytest.approx(TIGHT - std * math.sqrt(3 / 0.35185), rel=1e-4)
    unsteady = judged(UNSTEADY_NGT, level(1.0, spread=0.1), NGT).checks[0]
    assert unsteady.margin == pytest.approx(std * math.sqrt(3 / 7.81473) - TIGHT, rel=1e-4)


def test_a_spread_can_be_neither_tight_nor_wide(judged: Make) -> None:
    """Check that a middling spread over four seeds counts as neither tight nor unsteady.

    Each rule compares the confidence bound on its own side with the threshold.
    """
    for spread in (0.03, 0.1):
        assert judged(TIGHT_NGT, level(0.5, spread), NGT).verdict == "not reproduced"
        assert judged(UNSTEADY_NGT, level(1.0 + spread, spread), NGT).verdict == "not reproduced"


def test_unsteady_asks_for_the_end_of_the_means_interval(judged: Make) -> None:
    """Check that an interval that contains EXPERT does not count as below EXPERT."""
    found = judged(UNSTEADY_NGT, level(EXPERT - 0.01, spread=0.05), NGT)
    assert found.verdict == "not reproduced"


def test_a_claim_of_many_parts_can_hold_in_some(judged: Make) -> None:
    cells = Cells("main_figure", ("ngt",))
    found = judged(
        bounded("mean", "≥", EXPERT, cells),
        lambda key: 0.95 - 0.3 * ((key.env, key.demos) == ("Ant-v4", 4)),
        cells,
    )
    assert found.verdict == "partly"
    assert (
        found.text()
        == "17 of 18 hold; fails by the most: Ant-v4, 4 demonstrations: 0.65 [0.65, 0.65]"
    )
    assert len(found.keys) == 72


def test_means_are_over_what_by_says(judged: Make) -> None:
    """Check that a low score with one number of demonstrations does not fail the mean over all."""
    score = level(0.6)

    def one_low(key: RunKey) -> float:
        return score(key) - 0.15 * (key.demos == 1)

    assert judged(bounded("mean", "≥", LEARNS, NGT), one_low, NGT).verdict == "partly"
    assert judged(bounded("mean", "≥", LEARNS, NGT, by="env"), one_low, NGT).verdict == "reproduced"


def test_a_difference_is_written_out(judged: Make) -> None:
    found = judged(AHEAD, minus(0.3), PAIR)
    (check,) = found.checks
    assert check.text.startswith("0.80 − 0.50 = 0.30 [")
    down = judged(WORSE, minus(0.3, of="ngt-kaiming"), VARIANT)
    assert down.checks[0].text.startswith("0.50 − 0.80 = −0.30 [")
    lost = judged(AHEAD, lambda key: minus(0.3)(key) - 0.8, PAIR).checks[0]
    assert lost.text.startswith("0.00 − (−0.30) = 0.30 [")


def test_runs_that_never_had_a_score_are_neither_alike_nor_as_good(
    make_evidence: Make, paper_config: Any
) -> None:
    """Check runs without any score.

    Other rules count each such run as 0. In these rules, that would hide every difference.
    """
    beside = dict.fromkeys(Cells("main_figure", ("bc",)).keys(paper_config), 0.5)
    found = TIGHT_NGT.judge(make_evidence(beside, silent=NGT.keys(paper_config)))
    assert found.verdict == "not reproduced"
    assert found.checks[0].text == "4 diverged before an evaluation"
    keys = VARIANT.keys(paper_config)
    assert CLOSE.judge(make_evidence(beside, silent=keys)).verdict == "not reproduced"
    rest = {key: 0.8 + HALF * key.seed for key in keys[1:]}
    found = CLOSE.judge(make_evidence(rest, silent=keys[:1]))
    assert found.verdict == "partly", found.checks
    assert sum(check.text == "1 diverged before an evaluation" for check in found.checks) == 1
    failed = bounded("mean", "<", LEARNS, NGT).judge(
        make_evidence(beside, silent=NGT.keys(paper_config))
    )
    assert failed.verdict == "reproduced", "this rule must count runs without a score as 0"


def test_iqm_not_mean_decides_who_is_ahead(judged: Make) -> None:
    """Check that one bad seed does not decide: the IQM leaves out the worst quarter of scores."""

    def score(key: RunKey) -> float:
        if key.method == "bc":
            return 0.7
        return -9.0 if key.seed == 0 and key.demos == 1 else 0.8

    found = judged(AHEAD, score, PAIR)
    assert found.checks[0].text.startswith("0.80 − 0.70 = 0.10 [")


def test_what_the_scale_has_is_shown_without_a_verdict(
    make_evidence: Make, paper_config: Any
) -> None:
    quick = load({"scale": "quick", "statistics": {"reps": 20}})
    cells = Cells("main_figure", ("ngt", "bc"))
    scores = {key: minus(0.3)(key) for key in cells.keys(quick)}
    found = bounded("IQM", ">", 0, cells, by="all").judge(make_evidence(scores, quick))
    assert found.verdict == "not run at this scale" and len(found.keys) == 12
    text = found.text()
    assert text is not None and " = 0.30 [" in text and text.endswith("(Pendulum-v1)")
    by_task = bounded("mean", "≥", EXPERT, Cells("main_figure", ("ngt",))).judge(
        make_evidence(scores, quick)
    )
    assert "Pendulum-v1, 1 demonstration: 0.8" in str(by_task.text())
    assert bounded("IQM", ">", 0, cells, by="all").judge(make_evidence({}, quick)).text() is None


def test_a_tendency_needs_the_paper_s_env_and_every_part(make_evidence: Make) -> None:
    quick = load({"scale": "quick", "statistics": {"reps": 20}})
    many = Cells("main_figure", ("ngt",))
    one = Cells("grid_figure", ("ngt",), demos=(1,), mode="state-action", rate=50)
    scores = {key: 0.8 for cells in (many, one) for key in cells.keys(quick)}
    e = make_evidence(scores, quick)
    assert bounded("mean", "≥", LEARNS, many).judge(e).tendency == "agrees"
    assert bounded("mean", "<", LEARNS, many).judge(e).tendency == "contradicts"
    assert bounded("mean", "≥", LEARNS, one).judge(e).tendency == "silent", "only on Humanoid"
    none = bounded("mean", "<", LEARNS, Cells("main_figure", ("bc",)))
    both = Together((bounded("mean", "≥", LEARNS, many), none))
    assert both.judge(e).tendency == "silent", "a part has no runs"


@pytest.mark.parametrize(
    ("low", "verdict"),
    [
        ((1,), "reproduced"),
        ((1, 4), "not reproduced"),
        ((), "reproduced"),
        ((1, 4, 11), "not reproduced"),
    ],
)
def test_most_is_more_than_half(judged: Make, low: tuple[int, ...], verdict: str) -> None:
    rule = bounded("mean", "≥", LEARNS, NGT, most=True)
    found = judged(rule, lambda key: 0.4 if key.demos in low else 0.6, NGT)
    assert found.verdict == verdict
    assert found.text() == f"{3 - len(low)} of 3"


def test_half_is_not_most(judged: Make) -> None:
    cells = Cells("main_figure", ("ngt",), envs=("Ant-v4", "Hopper-v4"))
    rule = bounded("mean", "≥", LEARNS, cells, by="env", most=True)
    found = judged(rule, lambda key: 0.4 if key.env == "Ant-v4" else 0.6, cells)
    assert (found.verdict, found.text()) == ("not reproduced", "1 of 2")


def test_most_of_nothing_is_unknown(make_evidence: Make) -> None:
    found = bounded("mean", "≥", LEARNS, NGT, most=True).judge(make_evidence({}))
    assert (found.verdict, found.text()) == ("not run at this scale", None)


def test_all_checks_of_several_rules_or_none(judged: Make, make_evidence: Make) -> None:
    bc = Cells("main_figure", ("bc",), envs=("Ant-v4",))
    rule = Together((bounded("mean", "≥", LEARNS, NGT), bounded("mean", "<", LEARNS, bc)))

    def score(key: RunKey) -> float:
        return 0.8 if key.method == "ngt" else 0.2

    found = judged(rule, score, NGT, bc)
    assert found.verdict == "reproduced" and len(found.keys) == 24
    found = judged(rule, lambda key: 0.2 if key.demos == 1 else score(key), NGT, bc)
    assert found.verdict == "not reproduced", "a joint rule must not hold partly"
    name = "Ant-v4, 1 demonstration: 0.20 [0.20, 0.20]"
    assert found.text() == f"5 of 6 hold; fails by the most: {name}"
    assert judged(rule, score, NGT).verdict == "not run at this scale", "one rule has no runs"
    assert rule.judge(make_evidence({})).verdict == "not run at this scale"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (AHEAD, "difference of the IQMs > 0"),
        (bounded("mean", "≥", STRONG, NGT), "mean ≥ 0.75 with each number of demonstrations"),
        (bounded("mean", "≥", 0.5, NGT, by="env"), "mean over demonstrations ≥ 0.5"),
        (bounded("std", "≤", TIGHT, VARIANT), "standard deviation over seeds ≤ 0.1 on each task"),
        (WORSE, "mean over demonstrations − NGT's < 0 on each env"),
        (ALIKE, "mean over demonstrations − NGT's within ±0.1 on each env"),
        (
            bounded("mean", "<", 0, VARIANT, VARIANT, by="env"),
            "mean over demonstrations − NGT's < 0 for each on each env",
        ),
        (bounded("mean", "<", -0.2, VARIANT), "mean − NGT's < −0.2 on each task"),
        (
            bounded("mean", "≥", LEARNS, Cells("main_figure", ("ngt",)), by="env", most=True),
            "mean over demonstrations ≥ 0.5 on more than half",
        ),
        (
            UNSTEADY_NGT,
            "standard deviation over seeds > 0.1, or mean < 0.9, "
            "with each number of demonstrations",
        ),
        (bounded("IQM", ">", 0, PAIR, PAIR, by="all"), "difference of the IQMs > 0 for each"),
    ],
)
def test_words_follow_the_data(paper_config: Config, rule: Rule, words: str) -> None:
    assert rule.text(paper_config) == words
