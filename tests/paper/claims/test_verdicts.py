"""Verdicts: the runs that a claim covers, complete evidence, and verdicts of several checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ngt.experience.envs import get_task
from ngt.runs.keys import RunKey
from ngt.runs.table import Runs
from ngt.settings.config import FigureConfig
from ngt.settings.load import load
from paper.claims.checks import Check
from paper.claims.rules import bounded
from paper.claims.verdicts import Cells, Evidence, Outcome
from paper.numbers import speed

PAPER = load({"scale": "paper", "statistics": {"reps": 20}})
Make = Callable[..., Any]
MAIN = Cells("main_figure", ("ngt",))


def test_cells_are_chosen_by_every_axis() -> None:
    assert len(MAIN.keys(PAPER)) == 6 * 3 * 4
    assert len(Cells("main_figure", ("ngt", "bc-full")).keys(PAPER)) == 2 * 72, (
        "runs at all rates must be found"
    )
    one = Cells("main_figure", ("ngt",), envs=("Ant-v4",), demos=(4,)).keys(PAPER)
    assert one == [RunKey("Ant-v4", "ngt", "state-action", 20, 4, seed) for seed in range(4)]
    rest = Cells("main_figure", ("ngt",), without=("Ant-v4",)).keys(PAPER)
    assert len(rest) == 60 and "Ant-v4" not in {key.env for key in rest}
    states = Cells("grid_figure", ("ngt",), mode="state-state", rate=50).keys(PAPER)
    assert {(key.mode, key.rate) for key in states} == {("state-state", 50)} and len(states) == 12
    assert Cells("ablation_init", ("ngt-kaiming", "ngt")).keys(PAPER)[0].method == "ngt", (
        "methods drawn for comparison must be included"
    )
    assert Cells("dmc_figure", ("ngt",)).keys(load({"scale": "quick"})) == [], (
        "this scale lacks the figure"
    )


def test_what_is_whole(make_evidence: Make) -> None:
    evidence = make_evidence
    scores = dict.fromkeys(MAIN.keys(PAPER), 0.5)
    assert evidence(scores).decides(MAIN)
    assert not evidence(scores).decides(MAIN, Cells("main_figure", ("bc",)))
    gone = next(iter(scores))
    fewer = {key: score for key, score in scores.items() if key != gone}
    assert not evidence(fewer).decides(MAIN), "a run is missing"
    others = Cells("main_figure", ("ngt",), without=(gone.env,))
    assert evidence(fewer).decides(others), "these cells do not need the missing run"
    short = load({"scale": "paper", "train": {"steps": 9_999_999}})
    assert not evidence(scores, short).decides(MAIN), "fewer steps than in the paper"
    long = load({"scale": "paper", "train": {"steps": 10_000_001}})
    assert not evidence(scores, long).decides(MAIN), (
        "more steps must not decide either: other methods would have had fewer"
    )
    for other in ({"window": 1}, {"sac": {"gamma": 0.9}}, {"train": {"eval_episodes": 1}}):
        settings = load({"scale": "paper", **other})
        assert not evidence(scores, settings).decides(MAIN), other
    foreign = {"config_hash": "0" * 16}
    assert not evidence(scores, record=foreign).decides(MAIN), "the records have other settings"
    poor = {"reference": {"random": 300.0, "expert": -200.0, "demos": ""}}
    lost = evidence(scores, record=poor)
    assert not lost.decides(MAIN) and lost.scores == {}, "the expert is worse than random"
    assert lost.unscored(MAIN) == {key.env for key in scores}
    assert evidence(scores).unscored(MAIN) == frozenset()
    lite = load({"scale": "lite", "train": {"steps": 10_000_000}})
    there = dict.fromkeys(MAIN.keys(lite), 0.5)
    assert not evidence(there, lite).decides(MAIN), "the scale has three of six envs"


def test_groups_leave_out_tasks_that_lack_a_run(make_evidence: Make) -> None:
    evidence = make_evidence
    pair = Cells("ablation_init", ("ngt", "ngt-kaiming"), title="t")
    keys = pair.keys(PAPER)
    scores = {key: key.demos + key.seed / 10 + 100 * (key.method == "ngt") for key in keys}
    e = evidence(scores)
    names = [name for name, _ in e.groups(pair, "env")]
    assert names == ["t, HalfCheetah-v4", "t, Humanoid-v4"]
    ((name, every),) = e.groups(pair, "all")
    assert name == "t" and every.of["ngt"].shape == (4, 6)
    tasks = dict(e.groups(pair, "task"))
    assert next(iter(tasks)) == "t, HalfCheetah-v4, 1 demonstration" and len(tasks) == 6
    four = tasks["t, Humanoid-v4, 4 demonstrations"].of
    np.testing.assert_allclose(four["ngt"].ravel(), [104.0, 104.1, 104.2, 104.3])
    np.testing.assert_allclose(four["ngt-kaiming"].ravel(), [4.0, 4.1, 4.2, 4.3])
    gone = next(key for key in keys if (key.env, key.demos) == ("Humanoid-v4", 4))
    some = evidence({key: score for key, score in scores.items() if key != gone})
    assert len(dict(some.groups(pair, "task"))) == 5
    assert len(some.complete(pair)) == len(keys) - 8, "the task must be dropped for both methods"
    alone = evidence({key: s for key, s in scores.items() if key.method == "ngt"})
    assert list(alone.groups(pair, "env")) == [], "there is nothing to compare with"


def test_groups_leave_out_tasks_that_a_method_lacks(make_evidence: Make) -> None:
    only = {"dac-r": ["HalfCheetah-v4"]}
    config = load({"scale": "lite", "figures": {"main_figure": {"only": only}}})
    pair = Cells("main_figure", ("ngt", "dac-r"))
    e = make_evidence(dict.fromkeys(pair.keys(config), 0.5), config)
    assert [name for name, _ in e.groups(pair, "env")] == ["HalfCheetah-v4"]


def test_verdicts() -> None:
    yes, no, unknown = Check("a", "", 0.1), Check("b", "", -0.1), Check("c", "", math.nan)
    assert Outcome([yes, yes], True).verdict == "reproduced"
    assert Outcome([yes, no], True).verdict == "partly"
    assert Outcome([no, no], True).verdict == "not reproduced"
    for outcome in (Outcome([yes], False), Outcome([], True), Outcome([yes, unknown], True)):
        assert outcome.verdict == "not run at this scale"
    assert Outcome([yes], False, unpublished=True).verdict == "not published"
    assert Outcome([yes], True, unpublished=True).verdict == "reproduced"
    assert Check("", "", 0.0).holds is True and Check("", "", 0.0, strict=True).holds is False


def test_tendency_follows_values_without_their_intervals() -> None:
    near = Check("a", "", -0.1, lean=0.1)  # the interval crosses the threshold
    far, single = Check("b", "", -0.2, lean=-0.1), Check("c", "", math.nan, lean=0.1)
    none = Check("d", "", math.nan, lean=math.nan)
    for checks, tendency in (
        ([near], "agrees"),
        ([single, none], "agrees"),
        ([far, near, far], "contradicts"),
        ([far, near], "silent"),
        ([none], "silent"),
        ([], "silent"),
    ):
        for decides in (True, False):
            assert Outcome(checks, decides).tendency == tendency
    assert Outcome([near], True).verdict == "not reproduced", "a tendency must not decide"
    assert Outcome([near], True, instead="measured, not comparable").tendency == "silent"


def test_what_is_shown() -> None:
    a, b = Check("a", "1", 0.1), Check("b", "2", -0.1)
    c, unknown = Check("c", "3", 0.2), Check("d", "4", math.nan)
    assert Outcome([Check("", "1", 0.1)], True).text() == "1"
    assert Outcome([a, b, c], True).text() == "a: 1; b: 2; c: 3"
    assert Outcome([a, b, c, unknown], True).text() == "2 of 3 hold; fails by the most: b: 2"
    whole = Outcome([a, c, c, a._replace(margin=0.05)], True).text()
    assert whole == "4 of 4 hold; closest to failing: a: 1"
    assert Outcome([unknown] * 4, True).text() == "4 checks, each on a single seed"
    assert Outcome([a], True, ours="x", on="cpu").text() == "x (cpu)"
    assert Outcome([], False).text() is None
    assert Outcome([a], True, unscored=frozenset({"y", "x"})).text() == "a: 1 [no scores on x, y]"


def test_runs_and_seeds() -> None:
    keys = frozenset(MAIN.keys(PAPER))
    assert Outcome([], True, keys).seeds == "4"
    more = keys | {RunKey("Ant-v4", "ngt", "state-action", 20, 1, 9)}
    assert Outcome([], True, more).seeds == "4–5"
    assert Outcome([], True).seeds is None


@pytest.mark.parametrize(("evaluations", "expected"), [(10, [1, 1, 2, 2, 4]), (2, [1, 2])])
def test_rates_are_of_stretches_that_do_not_overlap(
    make_evidence: Make, evaluations: int, expected: list[float]
) -> None:
    """Check the speed in each stretch of a run, the last of which ends with the run."""
    timed, other = (
        RunKey("Humanoid-v4", "speed-ngt", "state-action", 20, 4, seed) for seed in (0, 1)
    )
    pace = np.repeat(expected, evaluations // len(expected))
    config = replace(
        PAPER,
        figures={
            "speed_table": FigureConfig(
                methods=("speed-ngt",), envs=("Humanoid-v4",), demos=(4,), seeds=(0, 1)
            )
        },
    )
    e = make_evidence({other: 1.0}, config, paces={timed: pace})
    found = e.clocks(Cells("speed_table", ("speed-ngt",)))
    assert set(found) == {timed}, "the other run has no times"
    np.testing.assert_allclose(speed.stretches(*found[timed]), expected)
    assert speed.mean_rate(*found[timed]) == pytest.approx(1 / np.mean(1 / np.array(pace)))
    assert Evidence(PAPER, PAPER, Runs(None, {}, {})).clocks(MAIN) == {}


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.89, "expert too weak"), (0.91, "reproduced"), (1.5, "reproduced")]
)
def test_an_expert_of_less_than_nine_tenths_is_too_weak(
    make_evidence: Make, share: float, verdict: str
) -> None:
    """Check that the share counts from the random return, since Pusher-v5 has negative returns."""
    for env in ("HalfCheetah-v4", "Pusher-v5"):
        cells = Cells("main_figure", ("ngt",), envs=(env,))
        task = get_task(env)
        low, high = task.published_random, task.published_expert
        assert low is not None and high is not None
        reference = {"random": low, "expert": low + share * (high - low), "demos": ""}
        scores = dict.fromkeys(cells.keys(PAPER), 0.95)
        found = bounded("mean", "≥", 0.9, cells).judge(
            make_evidence(scores, record={"reference": reference})
        )
        assert found.verdict == verdict
        assert ("89%" in str(found.text())) == (verdict == "expert too weak")


def test_an_env_without_a_published_return_is_exempt(make_evidence: Make) -> None:
    cells = Cells("dmc_figure", ("ngt",))
    found = bounded("mean", "≥", 0.9, cells).judge(
        make_evidence(dict.fromkeys(cells.keys(PAPER), 0.95))
    )
    assert found.verdict == "reproduced"
    assert "no published return to compare with on cheetah-run" in str(found.text())
