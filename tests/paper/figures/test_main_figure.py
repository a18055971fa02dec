"""The main figure: its curves, its notes, and a layout without overlaps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ngt.errors import UserError
from ngt.runs.table import read_runs
from paper.drawing import marks, style
from paper.figures.curves import CURVE_FIGURES
from paper.tables import scores

Make = Callable[..., Any]


def draw(study: Any, *, allow_partial: bool = False) -> Figure:
    runs, absent = read_runs(study.layout, study.config, "main_figure", allow_partial=allow_partial)
    return CURVE_FIGURES["main_figure"].draw(runs, study.config, absent)


def words(figure: Figure) -> str:
    """Return the notes below the panels as one line."""
    return " ".join(t.get_text() for t in figure.texts).replace("\n", " ").replace("\u00a0", " ")


def above(axes: Axes) -> str:
    """Return the text above a panel."""
    text = " ".join(t.get_text() for t in axes.texts)
    return text.replace("\n", " ").replace("\u00a0", " ")


def strong(axes: Axes, method: str) -> Line2D:
    """Return a method's main line, which is drawn in front of its thin lines."""
    look = style.looks([method])[method]
    (line,) = (
        line
        for line in axes.lines
        if line.get_color() == look.color
        and line.get_zorder() > 400
        and line.get_linestyle() != "None"
    )
    return line


def thin(axes: Axes, method: str) -> list[Line2D]:
    color = style.looks([method])[method].color
    return [line for line in axes.lines if line.get_color() == color and line.get_alpha()]


def band(axes: Axes, method: str) -> np.ndarray | None:
    """Return the sorted heights of a method's band, or None if there is no band."""
    color = to_rgba(style.looks([method])[method].color, 0.13)
    for artist in axes.collections:  # the band of a curve
        if np.allclose(artist.get_facecolor(), color):
            return np.unique(artist.get_paths()[0].vertices[:, 1].round(9))
    for patch in axes.patches:  # the band of a horizontal line
        if np.allclose(patch.get_facecolor(), color):
            return np.array([patch.get_bbox().y0, patch.get_bbox().y1])
    return None


def crosses(axes: Axes) -> list[tuple[float, float]]:
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in axes.lines
        if line.get_marker() == "x"
    ]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_lines_and_bands_by_hand(make_study: Make) -> None:
    study = make_study(window=2, methods=["ngt", "bc"], demos=[1], seeds=[0, 1])
    study.write(study.key("ngt", seed=0), [0.0, 0.3, 0.6])
    study.write(study.key("ngt", seed=1), [0.2, 0.2, 0.8])
    study.write(study.key("bc", seed=0), [0.9, 0.4, 0.6])
    study.write(study.key("bc", seed=1), [0.9, 0.7, 0.9])
    (axes,) = draw(study).axes
    line = strong(axes, "ngt")
    np.testing.assert_array_equal(line.get_xdata(), [10_000, 20_000, 30_000])
    mean, std = np.array([0.1, 0.175, 0.475]), np.array([0.2, 0.05, 0.05]) / np.sqrt(2)
    np.testing.assert_allclose(line.get_ydata(), mean, atol=1e-12)
    (raw,) = thin(axes, "ngt")
    np.testing.assert_allclose(raw.get_ydata(), [0.1, 0.25, 0.7], atol=1e-12)
    heights = band(axes, "ngt")
    assert heights is not None
    for value in [*(mean - std), *(mean + std)]:
        assert np.isclose(heights, value, atol=1e-8).any()
    np.testing.assert_allclose(strong(axes, "bc").get_ydata(), [0.65, 0.65], atol=1e-12)
    assert thin(axes, "bc") == []
    spread = 0.3 / np.sqrt(2)
    flat = band(axes, "bc")
    assert flat is not None
    np.testing.assert_allclose(flat, [0.65 - spread, 0.65 + spread], atol=1e-12)


def test_rows_are_envs_and_columns_demonstrations(make_study: Make, fill: Make) -> None:
    study = make_study(envs=["Pendulum-v1", "Hopper-v4"], demos=[1, 4, 11], seeds=[0, 1])
    fill(study)
    for seed in (0, 1):
        study.write(study.key("ngt", demos=4, seed=seed, env="Hopper-v4"), [0.77] * 6)
    figure = draw(study)
    grid = np.array(figure.axes).reshape(2, 3)
    assert [a.get_title() for a in grid[0]] == [
        "1 demonstration",
        "4 demonstrations",
        "11 demonstrations",
    ]
    assert [a.get_title() for a in grid[1]] == ["", "", ""]
    assert [a.get_ylabel() for a in grid[:, 0]] == [
        "Pendulum-v1\nnormalised return",
        "Hopper-v4\nnormalised return",
    ]
    assert [a.get_xlabel() for a in grid.ravel()] == [""] * 3 + ["env steps (10³)"] * 3
    np.testing.assert_allclose(strong(grid[1, 1], "ngt").get_ydata(), 0.77)
    figure.draw_without_rendering()
    assert grid[1, 0].get_xticklabels()[-1].get_text() == "60"


def test_legend_and_references(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "dac-r", "bc", "bc-full"])
    fill(study)
    figure = draw(study)
    assert legend(figure) == ["NGT", "DAC (R)", "BC", "BC(1)", "expert", "random"]
    for axes in figure.axes:
        references = {
            tuple(line.get_ydata()) for line in axes.lines if line.get_color() == style.GREY
        }
        assert references == {(0, 0), (1, 1)}
    pairs = {
        (line.get_color(), line._unscaled_dash_pattern) for line in figure.legends[0].get_lines()
    }
    assert len(pairs) == 6


def test_the_figure_says_how_to_read_it(make_study: Make, fill: Make) -> None:
    study = make_study(window=3)
    fill(study)
    text = words(draw(study))
    assert "Scale quick, n = 3 seeds per curve." in text
    assert "running mean over 3 evaluations (fewer at the start)" in text
    assert "Band: mean ± 1 standard deviation over seeds (sample, n − 1)" in text
    assert "Horizontal line (BC: no env steps)" in text
    assert "PARTIAL" not in text
    assert "×" not in text
    assert "↓" not in text


def test_one_seed_has_no_band(make_study: Make, fill: Make) -> None:
    study = make_study(seeds=[5])
    fill(study)
    figure = draw(study)
    assert all(band(axes, m) is None for axes in figure.axes for m in ("ngt", "dac-r", "bc"))
    assert "n = 1 seed per curve." in words(figure)
    assert "there is no band" in words(figure)
    assert "Band:" not in words(figure)


def test_without_a_window_there_is_one_line(make_study: Make, fill: Make) -> None:
    study = make_study(window=1)
    fill(study)
    figure = draw(study)
    assert thin(figure.axes[0], "ngt") == []
    assert "thin" not in words(figure)


def test_offline_methods_alone(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["bc", "bc-full"])
    fill(study)
    figure = draw(study)
    assert legend(figure) == ["BC", "BC(1)", "expert", "random"]
    assert "running mean" not in words(figure)


def test_a_missing_run_is_an_error_that_names_it(make_study: Make, fill: Make) -> None:
    study = make_study()
    gone = study.key("dac-r", demos=4, seed=1)
    fill(study, skip=[gone])
    with pytest.raises(UserError, match=f"run {gone}: missing"):
        draw(study)


def test_a_foreign_run_is_an_error(make_study: Make, fill: Make) -> None:
    study = make_study()
    fill(study)
    key = study.key("ngt", demos=4, seed=1)
    study.write(key, [0.0], key={"run": str(study.key("ngt", demos=1, seed=1))})
    with pytest.raises(UserError, match=f"run {key}: .*another run"):
        draw(study, allow_partial=True)


def test_a_partial_figure_names_what_is_missing(make_study: Make, fill: Make) -> None:
    study = make_study(demos=[1, 4, 11])
    gone = [study.key("dac-r", 1, 1), study.key("dac-r", 1, 2), study.key("bc", 1, 0)]
    gone += [study.key("ngt", 4, seed) for seed in (0, 1, 2)]
    gone += [key for key in study.table() if key.demos == 11]
    fill(study, skip=gone)
    figure = draw(study, allow_partial=True)
    first, second = figure.axes
    assert above(first) == "missing: DAC (R) seeds 1, 2; BC seed 0"
    assert above(second) == "missing: NGT"
    assert f"PARTIAL: {len(gone)} of 27 runs are missing" in words(figure)
    assert "so without panels: 11 demonstrations." in words(figure)
    assert "n = 1 to 3 seeds per curve" in words(figure)
    assert "no band if n = 1" in words(figure)
    assert legend(figure)[:3] == ["NGT", "DAC (R)", "BC"]


def test_diverged_runs_are_marked_and_counted(make_study: Make, fill: Make) -> None:
    study = make_study(window=2)
    fill(study)
    study.write(study.key("ngt", 4, 1), [0.2, 0.4, 0.6], diverged=True)
    study.write(study.key("bc", 1, 0), [0.3, 0.5], diverged=True)
    study.write(study.key("dac-r", 1, 2), [], diverged=True)
    figure = draw(study)
    first, second = figure.axes
    assert crosses(second) == [(30_000.0, pytest.approx(0.5))]
    assert crosses(first) == [(10_000.0, 0.0), (60_000.0, pytest.approx(0.4))]
    assert above(first) == "diverged, no evaluation: DAC (R) seed 2"
    assert legend(figure)[-1] == "diverged run"
    assert "×: 3 of 18 runs diverged" in words(figure)
    assert "1 of them had no evaluation yet and counts as a random policy" in words(figure)
    assert "n = 3 seeds" in words(figure)
    assert len(strong(second, "ngt").get_ydata()) == 6


@pytest.mark.parametrize(("method", "others"), [("ngt", True), ("bc", True), ("ngt", False)])
def test_a_run_without_an_evaluation_counts_as_in_the_table(
    make_study: Make, method: str, others: bool
) -> None:
    study = make_study(window=1, methods=[method, "dac-r"], demos=[1], seeds=[0, 1])
    for seed in (0, 1):
        study.write(study.key("dac-r", seed=seed), [0.5] * 4)
        study.write(study.key(method, seed=seed), [0.6] * 4 * others, diverged=not others)
    study.write(study.key(method, seed=1), [], diverged=True)
    runs, absent = read_runs(study.layout, study.config, "main_figure")
    (axes,) = CURVE_FIGURES["main_figure"].draw(runs, study.config, absent).axes
    row = next(row for row in scores.rows(runs, study.config, absent))
    drawn = strong(axes, method).get_ydata()[-1]
    assert drawn == row["mean"] == pytest.approx(0.3 if others else 0.0)


def test_an_outlier_does_not_stretch_the_axes(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "dac-r", "red", "bc"])
    fill(study)
    for seed in (0, 1, 2):
        study.write(study.key("dac-r", 1, seed), [-40.0] * 6)
        study.write(study.key("bc", 1, seed), [-7.0] * 6)
        study.write(study.key("red", 4, seed), [3.0] * 6)
    figure = draw(study)
    first, second = figure.axes
    assert first.get_ylim() == second.get_ylim() == (-0.5, 1.5)
    arrows = {
        (line.get_color(), line.get_marker())
        for axes in figure.axes
        for line in axes.lines
        if line.get_zorder() == 700
    }
    looks = style.looks(["dac-r", "bc", "red"])
    assert arrows == {
        (looks["dac-r"].color, marks.DOWN),
        (looks["bc"].color, marks.DOWN),
        (looks["red"].color, marks.UP),
    }
    assert "The axes end at −0.5 and 1.5 (random 0, expert 1); the data reach −40 and 3." in words(
        figure
    )


def test_calm_data_show_random_and_expert(make_study: Make, fill: Make) -> None:
    study = make_study()
    fill(study)
    assert draw(study).axes[0].get_ylim() == (-0.1, 1.1)


def test_an_input_mode_has_a_row_of_its_own(make_study: Make, fill: Make) -> None:
    study = make_study(modes=["state-action", "state-only"], methods=["ngt"])
    fill(study)
    for seed in (0, 1, 2):
        study.write(study.key("ngt", 4, seed, mode="state-only"), [0.77] * 6)
    figure = draw(study)
    grid = np.array(figure.axes).reshape(2, 2)
    assert [a.get_ylabel() for a in grid[:, 0]] == [
        f"Pendulum-v1, {mode}\nnormalised return" for mode in ("state-action", "state-only")
    ]
    np.testing.assert_allclose(strong(grid[1, 1], "ngt").get_ydata(), 0.77)


def test_the_only_input_mode_is_named_where_it_is_another(make_study: Make, fill: Make) -> None:
    study = make_study(modes=["state-only"], demos=[1], envs=["Pendulum-v1", "Hopper-v4"])
    fill(study)
    figure = draw(study)
    assert [a.get_title() for a in figure.axes] == ["Pendulum-v1", "Hopper-v4"]
    assert "Scale quick, 1 demonstration, input state-only, n = 3 seeds per curve." in words(figure)


def test_the_same_runs_give_the_same_bytes(make_study: Make, fill: Make, tmp_path: Path) -> None:
    study = make_study()
    fill(study)
    for name in ("a", "b"):
        style.save(draw(study), tmp_path / f"{name}.pdf", tmp_path / f"{name}.png")
    for end in ("pdf", "png"):
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("partial", [False, True])
def test_nothing_overlaps(
    make_study: Make, fill: Make, tidy: Make, rows: int, partial: bool
) -> None:
    envs = ["Ant-v4", "HalfCheetah-v4", "Hopper-v4", "Humanoid-v4", "Pusher-v5", "Walker2d-v4"]
    study = make_study(
        envs=envs[:rows],
        demos=[1, 4, 11],
        seeds=[0, 1],
        steps=10_000_000,
        methods=["ngt", "dac-r", "red", "bc", "bc-full"],
    )
    fill(study, skip=study.table()[::4] if partial else [])
    with style.context():
        figure = draw(study, allow_partial=partial)
    tidy(figure)
    assert figure.bbox.width == pytest.approx(style.TEXT_WIDTH * figure.dpi)
    if not partial:
        assert figure.bbox.height <= style.TEXT_HEIGHT * figure.dpi
