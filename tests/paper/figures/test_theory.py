"""The figure of the theorems: its lines are the study's numbers, its titles give verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper import command
from paper.drawing import style
from paper.figures import theory
from paper.tables.theory import statements
from paper.theory import bounds
from paper.theory.study import BINS, COINS, SIGMAS, SIZES, STEPS, Study


@pytest.fixture(scope="module")
def figure(theory_numbers: Study) -> Figure:
    with style.context():
        drawn = theory.draw(theory_numbers)
        drawn.draw_without_rendering()
    return drawn


def panel(figure: Figure, title: str) -> Axes:
    (axes,) = (a for a in figure.axes if a.get_title().startswith(title))
    return axes


def line(axes: Axes, look: dict[str, Any]) -> np.ndarray:
    """Return the y values of the only curve with this look."""
    (found,) = (
        line
        for line in axes.lines
        if line.get_color() == look["color"]
        and len(line.get_ydata()) > 2
        and line.get_linestyle() != "None"
        and line._unscaled_dash_pattern[1] == look.get("linestyle", (0, None))[1]
    )
    return np.asarray(found.get_ydata(), float)


def test_titles_have_the_papers_numbers(figure: Figure) -> None:
    assert [axes.get_title() for axes in figure.axes] == [
        "HL-Gauss: bounds, N = 21",
        "Th. 4.2 (sigma)",
        "Lemma H.3 (pmax)",
        "HL-Gauss: target, logits in ±5",
        "Th. 4.1 (hlip)",
        "Eq. 2 (emdeq)",
        "Th. F.2 (rewloss), n = 1",
        "Th. F.2 (rewloss), n = 20",
        "Th. F.2 (rewloss), h learned",
    ]


def test_the_notes_have_the_tables_verdicts(figure: Figure, theory_numbers: Study) -> None:
    v = {s.key: s.verdict for s in statements(theory_numbers)}
    text = " ".join(t.get_text() for t in figure.texts).replace("\n", " ")
    assert f"Verdicts of theory_table: a {v['pmax']}; b {v['sigma']}; c {v['lemma']}; " in text
    assert f"; h {v['corrected']}; i {v['learned']}." in text


def test_hl_gauss_panels(figure: Figure, theory_numbers: Study) -> None:
    g, row = theory_numbers.hlg, BINS.index(21)
    logits, target = panel(figure, "HL-Gauss: b"), panel(figure, "HL-Gauss: t")
    np.testing.assert_array_equal(line(logits, theory.EXACT), g.slope[row])
    np.testing.assert_array_equal(line(logits, theory.SOURCE), g.bound_sigma[row])
    ours = line(logits, theory.OURS)
    assert (ours >= g.slope[row]).all() and ours.max() <= 2**0.5
    np.testing.assert_array_equal(line(target, theory.EXACT), theory_numbers.target)
    np.testing.assert_array_equal(line(target, theory.SOURCE), g.bound_sigma[row])
    (shade,) = target.collections
    wrong = SIGMAS[theory_numbers.target > g.bound_sigma[row]]
    across = shade.get_paths()[0].vertices[:, 0]
    assert across.min() == wrong.min() and across.max() == wrong.max()
    for title, values in (("Th. 4.2", g.bound_sigma / g.slope), ("Lemma", g.mass / g.estimate)):
        axes = panel(figure, title)
        for n, look in theory.SHOWN.items():
            np.testing.assert_array_equal(line(axes, look), values[BINS.index(n)])
        assert [t.get_text() for t in axes.get_legend().get_texts()] == [
            "N = 2",
            "N = 5",
            "N = 21",
            "N = 101",
        ]


def test_potential_panels(figure: Figure, theory_numbers: Study) -> None:
    bound, dual = panel(figure, "Th. 4.1"), panel(figure, "Eq. 2")
    for pairing, t in theory_numbers.trainings.items():
        look = theory.PAIRED[pairing]
        dotted, dashed = (
            {**look, "linestyle": s} for s in (theory.DOTTED, theory.SOURCE["linestyle"])
        )
        np.testing.assert_array_equal(line(bound, look), t.gradient)
        np.testing.assert_array_equal(line(bound, dashed), t.product)
        np.testing.assert_array_equal(line(dual, look), t.dual)
        np.testing.assert_array_equal(line(dual, dotted), t.objective)
    assert tuple(dual.lines[0].get_ydata()) == (theory_numbers.emd,) * 2
    assert dual.get_xlim() == (0, STEPS[-1])


def test_concentration_panels(figure: Figure, theory_numbers: Study) -> None:
    coin = figure.axes[6]
    (shade,) = coin.collections
    broken = shade.get_paths()[0].vertices[:, 0]
    assert broken.max() == 1.0 and broken.min() == pytest.approx(np.log(2.0) ** 0.5, abs=0.006)
    coins = figure.axes[7]
    np.testing.assert_array_equal(line(coins, theory.EXACT), theory_numbers.coins)
    assert (theory_numbers.coins <= bounds.two_sided_bound(theory_numbers.epsilon, COINS)).all()
    learned = figure.axes[8]
    np.testing.assert_allclose(line(learned, theory.EXACT), theory_numbers.one_law.mean(axis=1))
    allowed = line(learned, theory.SOURCE)
    n = np.geomspace(SIZES[0], SIZES[-1], len(allowed))
    np.testing.assert_allclose(bounds.concentration_bound(allowed, n), 0.05)


def test_the_figure_says_how_to_read_it(figure: Figure) -> None:
    text = " ".join(t.get_text() for t in figure.texts).replace("\n", " ")
    for part in ("one seed", "64 transitions of HalfCheetah-v4", "100 000 trials", "10 draws"):
        assert part in text
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [
        "exact, or measured",
        "the paper's bound",
        "ours",
        "the bound is broken",
    ]


def test_nothing_overlaps(figure: Figure, tidy: Callable[[Figure], None]) -> None:
    width, height = figure.bbox.width, figure.bbox.height
    assert width == pytest.approx(style.TEXT_WIDTH * figure.dpi)
    assert height <= style.TEXT_HEIGHT * figure.dpi
    tidy(figure)


@pytest.mark.long
def test_command_and_the_same_bytes(
    theory_numbers: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(theory, "study", lambda: theory_numbers)
    for name in ("a", "b"):
        pdf, png = tmp_path / f"{name}.pdf", tmp_path / f"{name}.png"
        command.main(["theory_figure", "--out", str(pdf), "--png", str(png)])
        assert capsys.readouterr().out == f"{pdf}\n"
    for end in ("pdf", "png"):
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_an_unknown_scale_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["theory_figure", "--scale", "tiny"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("theory_figure: error: scale: 'tiny'")
