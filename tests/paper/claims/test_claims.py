"""The list of claims: each can be reproduced or not, and each states its criterion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.keys import RunKey, run_table
from ngt.settings.config import Config
from ngt.settings.load import load
from paper.claims.claims import BASELINES, claims
from paper.claims.rules import STRONG
from paper.claims.timing import REPORTED, REPORTED_ENVS
from paper.claims.verdicts import Claim, Evidence
from paper.register import FIGURES, TABLES

Make = Callable[..., Any]

FAILING = (
    *("ngt-no-sn", "ngt-kaiming", "ngt-m8"),
    *("dac-r-no-penalty", "dac-r-sn", "wdac-no-penalty", "wdac-sn"),
)
PLAIN = {
    "ngt-huber": 0.1,
    "ngt-mse-softmax": 0.6,
    "ngt-l1": 0.1,
}  # the scores in `otherwise` on envs other than Humanoid-v4


def as_told(key: RunKey) -> float:
    """Return a final score that agrees with the paper's prose."""
    if key.method in FAILING or (key.method in PLAIN and key.env == "Humanoid-v4"):
        return 0.1
    if key.method.startswith("ngt"):
        return 0.97
    if key.env == "Humanoid-v4":
        if key.method == "diffail" or (key.method == "bc-full" and key.demos == 11):
            return 0.85
        return 0.2
    return 0.6


def otherwise(key: RunKey) -> float:
    """Return a final score that contradicts the paper's prose; NGT's scores vary between seeds."""
    if key.method in FAILING or key.method == "ngt-penalty":
        return 0.9
    if key.method in PLAIN:
        return 0.9 if key.env == "Humanoid-v4" else PLAIN[key.method]
    if key.method.startswith("ngt-"):
        return 0.1
    if key.method == "ngt":
        return 0.05 + 0.3 * (key.seed % 2)
    if key.env == "Humanoid-v4" and key.method in ("diffail", "bc-full"):
        return 0.3
    return 0.97


def evidence(
    make: Make, measured: Make, paper: Config, score: Callable[[RunKey], float], told: bool
) -> Evidence:
    """Return evidence with all of the paper's runs and with GPU measurements."""
    table = run_table(paper)
    timed = [key for key in table if key.method.startswith("speed-")]
    bases = {"dac": "dac-r", "red": "ngt"}
    paces = {}
    for key in timed:
        name = key.method.removeprefix("speed-")
        rate = REPORTED[bases.get(name, name)][REPORTED_ENVS.index(key.env)]
        end = float(rate) if told else 1e6 / rate * (2 if name == "red" else 1)
        end *= 1 + 0.001 * key.seed
        steady = (name != "diffail") == told
        whole = 1 if steady else 10 / (8 / 1.2 + 2)  # keeps the overall mean unchanged
        paces[key] = [end] * 10 if steady else [1.2 * end / whole] * 8 + [end / whole] * 2
    gpu = measured() if told else measured(speed=100.0, eager=90.0, memory=30.0)
    scores = {key: score(key) for key in table if key not in paces}
    record = {"device": "cuda:0", "machine": "m", "gpu": "RTX"}
    made: Evidence = make(scores, paces=paces, record=record, gpu=gpu)
    return made


@pytest.fixture(scope="module")
def every(paper_config: Config) -> list[Claim]:
    return claims(paper_config)


def test_the_paper_s_story_reproduces_every_claim(
    make_evidence: Make, measured: Make, paper_config: Config, every: list[Claim]
) -> None:
    e = evidence(make_evidence, measured, paper_config, as_told, told=True)
    found = {claim.key: claim.rule.judge(e).verdict for claim in every}
    assert found.pop("hlg_elsewhere") == "not comparable: settings not given"
    assert {key for key, verdict in found.items() if verdict != "reproduced"} == set()


def test_the_contrary_reproduces_none(
    make_evidence: Make, measured: Make, paper_config: Config, every: list[Claim]
) -> None:
    e = evidence(make_evidence, measured, paper_config, otherwise, told=False)
    found = {claim.key: claim.rule.judge(e).verdict for claim in every}
    assert found.pop("hlg_elsewhere") == "not comparable: settings not given"
    assert {key for key, verdict in found.items() if verdict != "not reproduced"} == set()


def test_hopper_is_shown_and_not_judged(
    make_evidence: Make, measured: Make, paper_config: Config, every: list[Claim]
) -> None:
    def score(key: RunKey) -> float:
        return -1.0 if key.env == "Hopper-v4" and key.method == "ngt" else as_told(key)

    e = evidence(make_evidence, measured, paper_config, score, told=True)
    rows = {claim.key: claim.rule for claim in every}
    for name in ("expert", "beats_bc"):
        found = rows[name].judge(e)
        assert found.verdict == "reproduced"
        assert "[not judged: Hopper" in str(found.text()) and "Hopper" in rows[name].text(e.paper)
        assert {key.env for key in found.keys} == {
            "Ant-v4", "HalfCheetah-v4", "Humanoid-v4", "Pusher-v5", "Walker2d-v4"
        }  # fmt: skip


def test_diffail_struggles_below_strong(
    make_evidence: Make, measured: Make, paper_config: Config, every: list[Claim]
) -> None:
    (rule,) = (claim.rule for claim in every if claim.key == "diffail_elsewhere")
    for level, verdict in ((STRONG - 0.01, "reproduced"), (STRONG + 0.01, "not reproduced")):
        scores = {key: level for key in run_table(paper_config, ["main_figure"])}
        assert rule.judge(make_evidence(scores)).verdict == verdict


def rule_of(every: list[Claim], key: str) -> Any:
    (rule,) = (claim.rule for claim in every if claim.key == key)
    return rule


@pytest.mark.parametrize(
    ("softmax", "verdict"), [(0.62, "reproduced"), (0.78, "reproduced"), (0.58, "not reproduced"),
                             (0.82, "not reproduced")],
)  # fmt: skip
def test_comparable_is_neither_worse_nor_better(
    make_evidence: Make, paper_config: Config, every: list[Claim], softmax: float, verdict: str
) -> None:
    """Check MSE-softmax scores around Huber's, which is 0.7; Humanoid-v4 is not judged."""
    levels = {"ngt-huber": 0.7, "ngt-mse-softmax": softmax}
    scores = {
        key: 0.0 if key.env == "Humanoid-v4" else levels.get(key.method, 0.7)
        for key in run_table(paper_config, ["pairing_figure"])
    }
    found = rule_of(every, "pairings_comparable").judge(make_evidence(scores))
    assert found.verdict == verdict
    assert {key.env for key in found.keys} == {
        "Ant-v4", "HalfCheetah-v4", "Pusher-v5", "Walker2d-v4"
    }  # fmt: skip
    assert "[not judged: Hopper-v4: " in str(found.text())


@pytest.mark.parametrize(
    ("penalised", "without", "verdict"),
    [
        (0.6, 0.4, "reproduced"),
        (0.6, 0.55, "not reproduced"),  # the method also learns without the penalty
        (0.4, 0.1, "not reproduced"),  # the method also fails with the penalty
    ],
)
@pytest.mark.parametrize(
    ("claim", "method", "variant"),
    [
        ("penalty_dac-r", "dac-r", "dac-r-no-penalty"),
        ("penalty_wdac", "wdac", "wdac-no-penalty"),
        ("spectral_norm_dac-r", "dac-r", "dac-r-sn"),
    ],
)
def test_a_penalty_is_needed_if_a_method_learns_with_it_alone(
    make_evidence: Make,
    paper_config: Config,
    every: list[Claim],
    penalised: float,
    without: float,
    verdict: str,
    claim: str,
    method: str,
    variant: str,
) -> None:
    levels = {method: penalised, variant: without}
    keys = run_table(paper_config, ["penalty_figure"], beside=True)
    scores = {key: levels[key.method] for key in keys if key.method in levels}
    rule = rule_of(every, claim)
    found = rule.judge(make_evidence(scores))
    assert found.verdict == verdict
    assert {key.env for key in found.keys} == {"HalfCheetah-v4", "Walker2d-v4"}
    assert str(found.text()).count("Hopper-v4: ") == 2, (
        "Hopper-v4 must appear with and without the penalty"
    )
    assert rule.text(paper_config).endswith("on each env; Hopper-v4 is shown but not judged")


def test_a_smaller_scale_shows_its_runs_without_a_verdict(
    make_evidence: Make, every: list[Claim]
) -> None:
    lite = load({"scale": "lite", "statistics": {"reps": 20}})
    keys = run_table(lite, ["pairing_figure", "penalty_figure"], beside=True)
    e = make_evidence({key: as_told(key) for key in keys}, lite)
    rows = {claim.key: claim.rule.judge(e) for claim in every}
    for key in ("pairings_comparable", "pairings_elsewhere", "penalty_ngt", "spectral_norm_ngt",
                "penalty_dac-r", "penalty_wdac", "spectral_norm_dac-r"):  # fmt: skip
        assert rows[key].verdict == "not run at this scale"
        assert "Hopper-v4" in str(rows[key].text())
    assert rows["pairings_humanoid"].text() is None, "this scale has no Humanoid-v4"


def test_rules_on_pairing_losses_leave_hl_gauss_out(every: list[Claim]) -> None:
    """Check that no rule on pairing losses uses HL-Gauss.

    Its only claim beyond Humanoid-v4 is not comparable.
    """
    keys = [claim.key for claim in every if claim.rule.artefact == "pairing_figure"]
    cells = [some for key in keys for some in rule_of(every, key).cells]
    named = {method for some in cells for method in some.methods}
    assert named == set(PLAIN)


def test_without_runs_there_is_no_verdict(make_evidence: Make, every: list[Claim]) -> None:
    e = make_evidence({})
    for claim in every:
        outcome = claim.rule.judge(e)
        assert (outcome.verdict, outcome.text()) == ("not run at this scale", None), claim.key


def test_claims_say_where_they_come_from(paper_config: Config, every: list[Claim]) -> None:
    assert len({claim.key for claim in every}) == len(every) == 45
    artefacts = {**FIGURES, **TABLES}
    for claim in every:
        assert claim.text and claim.where and claim.source and claim.rule.text(paper_config)
        assert not claim.rule.artefact or claim.rule.artefact in artefacts
    named = {claim.rule.artefact for claim in every} - {""}
    unclaimed = {"ablation_sigma", "controls_figure", "readings_figure", "beyond_figure"}
    assert named == set(paper_config.figures) - unclaimed
    for name in (*unclaimed, "reward_figure"):
        assert artefacts[name].title.endswith("(not in the paper)")


def test_every_baseline_of_the_main_figure_has_a_claim(paper_config: Config) -> None:
    assert set(BASELINES) == set(paper_config.figures["main_figure"].methods) - {"ngt"}
    rows = {claim.key: claim for claim in claims(paper_config)}
    assert rows["beats_dac-rplus"].text == "NGT outperforms DAC, R+"


def test_the_source_s_speeds(every: list[Claim]) -> None:
    rows = {claim.key: claim for claim in every}
    assert rows["speed_Humanoid-v4"].source == "631 < 659 < 712 < 741 < 749 < 763 steps/s"
    assert rows["speed_Walker2d-v4"].source == "749 < 929 < 953 < 967 < 977 < 978 steps/s"
    assert rows["speed_Walker2d-v4"].text.endswith(
        "PWIL < DiffAIL < DAC, R < NGT < MMD-DAC < W-DAC"
    )
