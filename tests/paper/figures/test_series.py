"""Lines and remarks in figures of learning curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ngt.errors import UserError
from paper.drawing import style
from paper.figures.series import rates, sizes

Make = Callable[..., Any]
GRID, EMBEDDING, SIGMA = "grid_figure", "ablation_embedding", "ablation_sigma"
SEEDS = "seeds_figure"
PRINTED, EQUAL = "NGT (σ = 0.25 expert, 0.05 agent)", "NGT (σ = 0.1)"

# ---------------------------------------------------------------- rates


def test_returns_by_mode_and_rate(paper_study: Make, fill: Make, drawn: Make) -> None:
    study = paper_study(GRID, window=2, seeds=[0, 1], rates=[50, 1, 10])
    fill(study)
    for seed, score in enumerate((0.5, 0.7)):
        key = study.key("ngt", 11, seed, "Humanoid-v4", mode="state-state", rate=50)
        study.write(key, [score] * 6)
    seen = drawn(study, GRID)
    assert seen.legend == [
        "every transition",
        "every 10th transition",
        "every 50th transition",
        "expert",
        "random",
    ]
    panels = np.array(seen.figure.axes).reshape(2, 3)
    assert [axes.get_ylabel() for axes in panels[:, 0]] == [
        f"Humanoid-v4, {mode}\nreturn" for mode in ("state-action", "state-state")
    ]
    last = seen.strong(5)
    np.testing.assert_allclose(last[2].get_ydata(), -200 + 0.6 * 500)  # random -200, expert 300
    assert [line.get_color() for line in last] == [look.color for look in style.ramp(3)]
    for axes in panels.ravel():
        grey = {float(x.get_ydata()[0]) for x in axes.lines if x.get_color() == style.GREY}
        assert grey == {-200.0, 300.0}
        assert axes.get_ylim() == (-250.0, 350.0)
    assert "All lines are NGT" in seen.notes
    assert "not normalised" in seen.notes and "0 is the return" not in seen.notes


def test_cut_returns_are_told_in_their_own_unit(paper_study: Make, fill: Make, drawn: Make) -> None:
    study = paper_study(GRID, seeds=[0], demos=[1], rates=[20], modes=["state-action"])
    study.write(*study.table(), [0.0, -4.0, -4.0, -4.0])
    seen = drawn(study, GRID)
    assert seen.figure.axes[0].get_ylim()[0] == -450.0
    assert "cut. The returns on Humanoid-v4 reach −2,200." in seen.notes


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"methods": ["ngt", "bc"]}, r"methods: found \[ngt, bc\]; this figure needs one"),
        ({"methods": ["bc-full"]}, r"methods: bc-full has the fixed rate 1"),
        ({"beside": ["bc"]}, r"beside: found bc; this figure takes none"),
    ],
)
def test_one_method_of_any_rate(paper_study: Make, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=rf"figures\.grid_figure\.{text}"):
        rates(paper_study(GRID, **changes).config, GRID)


# ---------------------------------------------------------------- sizes of the embedding


def test_sizes_are_in_order_the_larger_the_darker(
    paper_study: Make, fill: Make, drawn: Make
) -> None:
    study = paper_study(EMBEDDING, seeds=[0], methods=["ngt-m64", "ngt-m8", "ngt-m16"])
    fill(study)
    seen = drawn(study, EMBEDDING)
    assert seen.legend[:4] == [f"NGT (m = {m})" for m in (8, 16, 32, 64)]
    colors = [line.get_color() for line in seen.strong(0)]
    assert colors == [look.color for look in reversed(style.ramp(4))]


def test_a_method_without_an_embedding_is_an_error(paper_study: Make) -> None:
    study = paper_study(EMBEDDING, methods=["ngt-m8", "bc"])
    with pytest.raises(UserError, match=r"figures\.ablation_embedding\.methods: bc has no"):
        sizes(study.config, EMBEDDING)


# ---------------------------------------------------------------- AUC under 0.5


@pytest.fixture
def draw_auc(paper_study: Make, drawn: Make) -> Make:
    """Return draw_auc(printed, equal), which draws two seeds of each method.

    printed: AUCs of NGT with the printed widths, one for each evaluation.
    equal: AUCs of NGT with equal widths.
    """

    def make(printed: Sequence[float], equal: Sequence[float], **axes: Any) -> Any:
        study = paper_study(SIGMA, window=2, seeds=[0, 1], **{"demos": [4], **axes})
        for key in study.table():
            study.write(key, [0.5] * 4, auc=printed if key.method == "ngt" else equal)
        return drawn(study, SIGMA)

    return make


def test_auc_is_drawn_beside_returns_and_what_is_inverted_is_marked(draw_auc: Make) -> None:
    seen = draw_auc([0.9, 0.7, 0.4, 0.2], [0.9, 0.9, 0.8, 0.8])
    returns, auc = seen.figure.axes
    assert seen.legend[:2] == [PRINTED, EQUAL]
    first, second = seen.strong(1)
    np.testing.assert_allclose(first.get_ydata(), [0.9, 0.8, 0.55, 0.3])
    np.testing.assert_allclose(second.get_ydata(), [0.9, 0.9, 0.85, 0.8])
    assert seen.above(1) == f"inverted: {PRINTED} at 50% of evaluations"
    assert {text.get_color() for text in auc.texts} == {style.ALERT}
    (shade,) = auc.patches
    assert shade.get_bbox().y1 == 0.5 and shade.get_bbox().y0 == auc.get_ylim()[0]
    assert not returns.patches and not returns.texts
    assert returns.get_ylim() == (-0.1, 1.1)
    assert auc.get_ylim() == pytest.approx((0.18, 1.02))
    assert {"AUC 0.5: no better than chance", "inverted reward"} < set(seen.legend)
    assert "under 0.5 the reward is inverted" in seen.notes


def test_nothing_is_inverted(draw_auc: Make) -> None:
    seen = draw_auc([0.5, 0.6, 0.7, 0.8], [0.9] * 4, demos=[1, 4])
    assert [seen.above(panel) for panel in range(4)] == [
        "",
        "",
        *["the reward's AUC is never under 0.5"] * 2,
    ]
    assert seen.figure.axes[2].get_ylim() == pytest.approx((0.4, 1.02))


def test_a_small_share_is_not_none(paper_study: Make, drawn: Make) -> None:
    study = paper_study(SIGMA, seeds=[0], demos=[4])
    for key in study.table():
        study.write(key, [0.5] * 300, auc=[0.4] + [0.9] * 299)
    parts = "; ".join(f"{label} at under 1%" for label in (PRINTED, EQUAL))
    assert drawn(study, SIGMA).above(1) == f"inverted: {parts} of evaluations"


def test_no_auc_is_said(draw_auc: Make) -> None:
    seen = draw_auc([], [])
    assert seen.above(1) == "no AUC was logged"
    assert seen.strong(1) == []


# ---------------------------------------------------------------- spread over seeds


@pytest.fixture
def ten_seeds(paper_study: Make) -> Any:
    """Return a study of ten seeds with scores from 0.1 to 1.0; one seed diverges half-way."""
    made = paper_study(SEEDS, window=2, demos=[1])
    for key in made.table():
        score = (key.seed + 1) / 10
        made.write(key, [score] * (3 if key.seed == 4 else 6), diverged=key.seed == 4)
    return made


def test_every_seed_has_its_line(ten_seeds: Any, drawn: Make) -> None:
    seen = drawn(ten_seeds, SEEDS)
    (mean,) = seen.strong(0)
    np.testing.assert_allclose(mean.get_ydata(), 0.55)
    thin = [line.get_ydata() for line in seen.figure.axes[0].lines if line.get_alpha()]
    np.testing.assert_allclose([y[0] for y in thin], np.arange(1, 11) / 10)
    assert [int(np.isfinite(y).sum()) for y in thin] == [6] * 4 + [3] + [6] * 5
    assert (
        "Thin lines: each run's running mean over 2 evaluations (fewer at the start)" in seen.notes
    )
    assert "n = 10 seeds per curve" in seen.notes


def test_the_spread_of_final_scores_is_said(ten_seeds: Any, drawn: Make) -> None:
    std = np.std(np.arange(1, 11) / 10, ddof=1)
    assert drawn(ten_seeds, SEEDS).above(0) == (
        f"n = 10 final scores: mean 0.55, std {std:.2f}, min 0.10, max 1.00"
    )


def test_one_seed_has_no_spread(paper_study: Make, drawn: Make) -> None:
    study = paper_study(SEEDS, demos=[1], seeds=[3])
    study.write(*study.table(), [-0.25] * 6)
    assert drawn(study, SEEDS).above(0) == (
        "n = 1 final scores: mean −0.25, std none, min −0.25, max −0.25"
    )
