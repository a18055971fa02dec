"""Rules for GPU measurements: verdicts on both sides of each threshold and on other cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paper.claims.gpu import GRAPHS_RULE, HOURS_RULE, MEMORY_RULE, METHODS
from paper.claims.timing import TimingRule

Make = Callable[..., Any]
OTHER_CARD = "NVIDIA H200"


@pytest.mark.parametrize(
    ("rule", "changes", "verdict"),
    [
        (GRAPHS_RULE, {}, "reproduced"),
        (GRAPHS_RULE, {"eager": 556 / 2.51}, "reproduced"),
        (GRAPHS_RULE, {"eager": 556 / 2.49}, "not reproduced"),
        (GRAPHS_RULE, {"eager": 556 / 3.49}, "reproduced"),
        (GRAPHS_RULE, {"eager": 556 / 3.51}, "exceeds"),
        (GRAPHS_RULE, {"device": OTHER_CARD}, "reproduced"),
        (MEMORY_RULE, {}, "reproduced"),
        (MEMORY_RULE, {"memory": 25.7}, "reproduced"),  # 24 GiB are 25.8 GB
        (MEMORY_RULE, {"memory": 25.8}, "not reproduced"),
        (MEMORY_RULE, {"memory": 25.8, "device": OTHER_CARD}, "measured, not comparable"),
        (MEMORY_RULE, {"fewer": 0}, "not run at this scale"),
        (MEMORY_RULE, {"methods": METHODS[1:]}, "not run at this scale"),
        (MEMORY_RULE, {"buffer": 3_000_000}, "not run at this scale"),
        (HOURS_RULE, {}, "reproduced"),
        (HOURS_RULE, {"speed": 555.0}, "not reproduced"),
        (HOURS_RULE, {"device": OTHER_CARD}, "measured, not comparable"),
    ],
)
def test_verdicts(
    make_evidence: Make, measured: Make, rule: TimingRule, changes: dict[str, Any], verdict: str
) -> None:
    assert rule.judge(make_evidence({}, gpu=measured(**changes))).verdict == verdict
    assert rule.judge(make_evidence({})).verdict == "not run at this scale"


@pytest.mark.parametrize("rule", [GRAPHS_RULE, MEMORY_RULE, HOURS_RULE])
def test_other_code_gives_no_verdict_and_shows_its_hash(
    make_evidence: Make, measured: Make, rule: TimingRule
) -> None:
    found = rule.judge(make_evidence({}, gpu=measured(source="0123456789abcdef")))
    assert found.verdict == "no verdict"
    assert "0123456789abcdef" in str(found.text())


def test_memory_names_the_methods_that_lack(make_evidence: Make, measured: Make) -> None:
    found = MEMORY_RULE.judge(make_evidence({}, gpu=measured(methods=("ngt", "red"))))
    assert "the paper's buffer: pwil, dac-r, wdac, mmd-dac, diffail" in str(found.text())


def test_diffail_on_humanoid_need_not_fit_with_the_whole_buffer(
    make_evidence: Make, measured: Make
) -> None:
    gpu = measured()
    row = {"model": "diffail", "env": "Humanoid-v4", "buffer": 4_000_000, "memory_gb": 30.0}
    found = MEMORY_RULE.judge(make_evidence({}, gpu={**gpu, "memory": [*gpu["memory"], row]}))
    assert found.verdict == "reproduced"
    gpu["memory"] = [{**row, "env": "Walker2d-v4"} for row in gpu["memory"]]
    found = MEMORY_RULE.judge(make_evidence({}, gpu=gpu))
    assert found.verdict == "not run at this scale", "Humanoid must be measured"


def test_single_updates_do_not_decide_on_graphs(make_evidence: Make, measured: Make) -> None:
    gpu = measured()
    gpu["training"] = [row for row in gpu["training"] if row["graphs"]]
    found = GRAPHS_RULE.judge(make_evidence({}, gpu=gpu))
    assert found.verdict == "not run at this scale"
    assert "single updates: 9.0 to 9.0 times" in str(found.text())
