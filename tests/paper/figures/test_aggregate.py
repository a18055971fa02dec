"""The figure of aggregate scores, which draws the values of the table of aggregates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path as MarkerPath

from ngt.runs.table import read_runs
from paper import command
from paper.drawing import style
from paper.figures import aggregate
from paper.numbers import coverage
from paper.tables.aggregate import collect, table

Make = Callable[..., Any]


def draw(study: Any, *, allow_partial: bool = False) -> Figure:
    runs, absent = read_runs(study.layout, study.config, "main_figure", allow_partial=allow_partial)
    return aggregate.draw(runs, study.config, absent)


def words(figure: Figure) -> str:
    return " ".join(t.get_text() for t in figure.texts).replace("\n", " ")


def points(axes: Axes) -> dict[int, float]:
    """Return the x value of each row's marker."""
    lines = (line for line in axes.lines if isinstance(m := line.get_marker(), str) and m != "None")
    return {int(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in lines}


def marked(axes: Axes) -> list[Line2D]:
    """Return the arrows at the edges."""
    return [line for line in axes.lines if isinstance(line.get_marker(), MarkerPath)]


def bars(axes: Axes) -> dict[int, tuple[float, float]]:
    """Return the ends of each row's interval bar."""
    lines = (line for line in axes.lines if line.get_alpha())
    return {int(line.get_ydata()[0]): tuple(map(float, line.get_xdata())) for line in lines}


def test_rows_are_the_table_s(make_study: Make, fill: Make) -> None:
    study = make_study()
    fill(study)
    figure = draw(study)
    runs, _ = read_runs(study.layout, study.config, "main_figure")
    rows = table(collect(runs, study.config, [])).rows[:3]
    assert [row["demos"] for row in rows] == ["all"] * 3
    iqm, gap, better, _ = figure.axes
    assert [t.get_text() for t in iqm.get_yticklabels()] == ["NGT", "DAC (R)", "BC"]
    assert iqm.yaxis_inverted(), "the first row must be on top"
    for axes, key in ((iqm, "iqm"), (gap, "gap"), (better, "better")):
        shown = {i: row for i, row in enumerate(rows) if row[key] is not None}
        assert points(axes) == {i: row[key] for i, row in shown.items()}
        ends = {i: (row[f"{key}_low"], row[f"{key}_high"]) for i, row in shown.items()}
        assert bars(axes) == ends
    assert set(points(better)) == {1, 2}, "NGT must not be compared with itself"
    dashed = [line for line in better.lines if line.get_color() == style.GREY]
    assert [tuple(line.get_xdata()) for line in dashed] == [(0.5, 0.5)]


def test_profiles_by_hand(make_study: Make) -> None:
    study = make_study(methods=["ngt"], demos=[1], seeds=[0, 1, 2, 3])
    for seed, score in enumerate((0.2, 0.4, 0.6, 0.8)):
        study.write(study.key("ngt", seed=seed), [score])
    axes = draw(study).axes[-1]
    line, spots = (line for line in axes.lines if line.get_color() == style.LOOKS["ngt"].color)
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert line.get_drawstyle() == "steps-post"
    np.testing.assert_allclose(y, [1, 0.75, 0.5, 0.25, 0, 0])
    np.testing.assert_allclose(x, [-0.1, 0.2, 0.4, 0.6, 0.8, 1.1])  # drops at the scores themselves
    at, reached = np.asarray(spots.get_xdata()), np.asarray(spots.get_ydata())
    np.testing.assert_allclose(reached, [y[x <= spot][-1] for spot in at])
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() >= 0 and heights.max() <= 1


def test_axes_end_where_every_figure_s_do(make_study: Make) -> None:
    study = make_study(methods=["ngt"], demos=[1], seeds=[0, 1])
    study.write(study.key("ngt", seed=0), [-9.0])
    study.write(study.key("ngt", seed=1), [9.0])
    assert draw(study).axes[-1].get_xlim() == (-0.5, 1.5)


def test_an_extreme_score_is_cut_and_named(make_study: Make, tidy: Make) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1], seeds=[0, 1])
    for method, values in {"ngt": (0.8, 0.9), "bc": (-60.0, -40.0)}.items():
        for seed, value in enumerate(values):
            study.write(study.key(method, 1, seed), [value])
    figure = draw(study)
    iqm, gap = figure.axes[:2]
    assert iqm.get_xlim()[0] == -0.5 and gap.get_xlim() == (0, 1.5)
    arrows = [[(m.get_xdata()[0], m.get_ydata()[0]) for m in marked(axes)] for axes in (iqm, gap)]
    assert arrows == [[(-0.5, 1)], [(1.5, 1)]], "bc is cut on the left, its gap on the right"
    assert points(iqm)[1] == -0.5 and points(gap)[1] == 1.5, "its markers are at the edges"
    text = words(figure).replace("\u00a0", " ")
    assert "← →: cut. The axes of the top row end at −0.5 and 1.5; values reach −60 and " in text
    tidy(figure)


def test_the_shortfall_is_never_below_0(make_study: Make) -> None:
    study = make_study(methods=["ngt"], demos=[1], seeds=[0, 1])
    for seed, value in enumerate((0.8, 0.99)):
        study.write(study.key("ngt", 1, seed), [value])
    (low, high) = bars(draw(study).axes[1])[0]
    assert low == 0 < 0.105 < high


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
def test_it_says_how_to_read_it(make_study: Make, fill: Make, seeds: list[int]) -> None:
    study = make_study(seeds=seeds)
    fill(study)
    figure = draw(study)
    several = len(seeds) > 1
    assert ("Bars and bands: intervals. The coverage stated below" in words(figure)) == several
    stated = coverage.caution([2], "mean", "IQM", "P", tasks=2)
    assert (stated in words(figure).replace("\u00a0", " ")) == several
    assert "Scale quick: 2 tasks" in words(figure) and "PARTIAL" not in words(figure)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["NGT", "DAC (R)", "BC"]


def test_a_partial_figure_says_so(make_study: Make, fill: Make) -> None:
    study = make_study()
    fill(study, skip=[study.key("bc", 4, 1)])
    figure = draw(study, allow_partial=True)
    assert "PARTIAL: 1 run is missing" in words(figure)
    alert = next(text for text in figure.texts if "PARTIAL" in text.get_text())
    assert alert.get_color() == style.ALERT


def test_command(make_study: Make, fill: Make, as_scale: Make, capsys: Any) -> None:
    study = make_study(demos=[1], methods=["ngt", "bc"])
    fill(study)
    as_scale(study)
    command.main(["aggregate_figure", "--png", "a.png"])
    assert capsys.readouterr().out == "results/aggregate_figure.pdf\n"
    assert Path("a.png").exists() and Path("results/aggregate_figure.pdf").exists()
    with pytest.raises(SystemExit) as stop:
        command.main(["aggregate_figure", "--set", "figures.main_figure=null"])
    assert stop.value.code == 2
    assert "figures.main_figure: aggregate_figure has no runs at scale" in capsys.readouterr().err


def test_what_has_no_scores_is_said(poor_study: Make, tidy: Make) -> None:
    figure = draw(poor_study())
    assert points(figure.axes[0]) == {0: pytest.approx(0.9), 1: pytest.approx(0.5)}
    assert "No scores on Hopper-v4: the expert's" in words(figure)
    tidy(figure)


def test_without_any_score_it_is_drawn_empty(poor_study: Make, tidy: Make) -> None:
    figure = draw(poor_study(envs=["Hopper-v4"]))
    assert [[t.get_text() for t in axes.texts] for axes in figure.axes] == [["no scores"]] * 4
    assert "No scores on Hopper-v4: the expert's" in words(figure)
    tidy(figure)
