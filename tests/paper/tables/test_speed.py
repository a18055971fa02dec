"""Training speeds in the table and as curves, compared with numbers computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from ngt.errors import UserError
from paper.command import Options
from paper.drawing import style
from paper.drawing.table import Table
from paper.figures import speed as speed_figure
from paper.numbers import speed
from paper.register import FIGURES, TABLES
from paper.tables import speed as speed_table

METHODS = {
    "speed-ngt": {"label": "NGT", "like": "ngt"},
    "speed-dac": {"label": "DAC, R", "like": "dac-r"},
    "speed-red": {"label": "RED*", "like": "red"},
}
WHOLE = Options(TABLES["speed_table"], Path("t.csv"))
PARTIAL = replace(WHOLE, allow_partial=True)


def make_table(study: Any, options: Options) -> Table:
    made = speed_table.make(study.config, study.layout, options)
    assert isinstance(made.content, Table)
    return made.content


def make_figure(study: Any, options: Options) -> tuple[Figure, str]:
    options = replace(options, artefact=FIGURES["speed_figure"])
    made = speed_figure.make(study.config, study.layout, options)
    assert isinstance(made.content, Figure)
    return made.content, made.note


@pytest.fixture
def study(make_study: Callable[..., Any]) -> Any:
    """Return a study of runs with 10 000 steps and ten evaluations.

    All methods train at 100 steps/s for the first half. Then NGT stays at 100, DAC falls to 50 and
    RED* rises to 200.
    """
    made = make_study()
    plan = {"methods": list(METHODS), "envs": ["Pendulum-v1"], "demos": [4], "seeds": [0]}
    made.settings["methods"] |= METHODS
    made.settings["figures"] = {"speed_table": plan}
    made.settings["train"] = {"steps": 10_000, "eval_every": 1000}
    for method, slow in (("speed-ngt", 1.0), ("speed-dac", 2.0), ("speed-red", 0.5)):
        timing = [
            [i * 1000, i * 10.0 if i <= 5 else 50 + (i - 5) * 10.0 * slow] for i in range(1, 11)
        ]
        made.write(
            made.key(method, demos=4), [0.5] * 10, timing=timing, machine="a machine", device="cpu"
        )
    return made


def test_rates_by_hand() -> None:
    steps = np.arange(11) * 1000.0
    seconds = np.concatenate([np.arange(6) * 10.0, 50 + np.arange(1, 6) * 20.0])
    at, rate = speed.rates(steps, seconds)
    np.testing.assert_array_equal(at, steps[2:])
    np.testing.assert_allclose(rate, [100, 100, 100, 100, 2000 / 30, 50, 50, 50, 50])
    assert speed.rates(np.array([0.0, 400.0]), np.array([0.0, 2.0]))[1].tolist() == [200.0]


def test_the_table_has_ours_and_theirs(study: Any) -> None:
    table = make_table(study, WHOLE)
    rows = {row["method"]: row for row in table.rows}
    assert [rows[m]["Pendulum-v1 steps/s"] for m in ("NGT", "DAC, R", "RED*")] == (
        pytest.approx([100, 1e4 / 150, 1e4 / 75])
    )
    assert [rows[m]["Pendulum-v1 relative"] for m in ("NGT", "DAC, R", "RED*")] == (
        pytest.approx([1, 2 / 3, 4 / 3])
    )
    assert [rows[m]["Pendulum-v1 last"] for m in ("NGT", "DAC, R", "RED*")] == [100, 50, 200]
    assert rows["DAC, R"]["paper Humanoid-v4 steps/s"] == 741
    assert rows["DAC, R"]["paper Walker2d-v4 relative"] == pytest.approx(953 / 967)
    assert rows["RED*"]["paper Humanoid-v4 steps/s"] is None, (
        "the paper gives RED*'s speed only in words"
    )
    assert "own process on: a machine (cpu)" in table.notes[0] and "10,000 env" in table.notes[0]
    assert "RTX 4090" in table.notes[1] and "cannot be compared" in table.notes[1]


def test_repeats_are_averaged_and_drawn(study: Any) -> None:
    """Check the mean of two repeats, the second of which is slower."""
    study.settings["figures"]["speed_table"]["seeds"] = [0, 1]
    for method in METHODS:
        timing = [[i * 1000, i * 20.0] for i in range(1, 11)]
        key = study.key(method, demos=4, seed=1)
        study.write(key, [0.5] * 10, timing=timing, machine="a machine", device="cpu")
    table = make_table(study, WHOLE)
    assert table.rows[0]["Pendulum-v1 steps/s"] == table.rows[0]["Pendulum-v1 last"] == 75
    assert "2 repeats" in table.notes[0]
    figure, _ = make_figure(study, WHOLE)
    curves = [line for line in figure.axes[0].lines if line.get_linestyle() != "None"]
    assert len(curves) == 2 * len(METHODS)


def test_a_missing_run_leaves_a_gap_only_when_asked(study: Any) -> None:
    key = study.key("speed-ngt", demos=4)
    (study.layout.run(key) / "run.json").unlink()
    with pytest.raises(UserError, match=str(key)):
        make_table(study, WHOLE)
    table = make_table(study, PARTIAL)
    assert table.rows[0]["Pendulum-v1 steps/s"] is None
    assert all(row["Pendulum-v1 relative"] is None for row in table.rows)
    assert table.marks == ["PARTIAL: 1 runs are missing."]
    figure, note = make_figure(study, PARTIAL)
    assert note == ": partial, runs missing: 1"
    assert "PARTIAL: missing: Pendulum-v1 NGT" in " ".join(t.get_text() for t in figure.texts)


def test_curves_have_the_looks_of_what_they_time(study: Any) -> None:
    figure, note = make_figure(study, WHOLE)
    assert note == ""
    (axes,) = figure.axes
    curves = [line for line in axes.lines if line.get_linestyle() != "None"]
    colors = {line.get_color(): line for line in curves}
    assert set(colors) == {style.LOOKS[name].color for name in ("ngt", "dac-r", "red")}
    line = colors[style.LOOKS["dac-r"].color]
    assert line.get_xdata()[-1] == 10 and line.get_ydata()[-1] == pytest.approx(50)
    assert axes.get_ylabel() == "env steps per second" and axes.get_ylim()[0] == 0


def test_no_speed_where_all_diverged_at_once(study: Any) -> None:
    for method in ("speed-ngt", "speed-dac", "speed-red"):
        study.write(study.key(method, demos=4), [], diverged=True, machine="a", device="cpu")
    with pytest.raises(UserError, match="no run has an evaluation"):
        make_figure(study, WHOLE)


def test_a_run_without_times_is_named(study: Any) -> None:
    study.write(study.key("speed-ngt", demos=4), [0.5] * 10, machine="a", device="cpu")
    with pytest.raises(UserError, match="Pendulum-v1/speed-ngt: it recorded no times"):
        make_table(study, WHOLE)
