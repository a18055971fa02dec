"""The style: the methods' looks, one style sheet, and complete, reproducible files."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from paper.drawing import style

TEN = [
    "ngt",
    "bc",
    "bc-full",
    "pwil",
    "dac-rplus",
    "dac-r",
    "wdac",
    "mmd-dac",
    "red",
    "diffail",
]


@style.context()
def small_figure() -> Figure:
    figure = style.new_figure(3.0, 1.5)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], **style.looks(["ngt"])["ngt"].line, label="α ≥ 1")
    axes.fill_between([0, 1], [0, 0], [1, 2], alpha=0.2)
    axes.set_title("A title")
    return figure


def test_the_ten_methods_differ_in_colour_and_in_grey() -> None:
    looks = style.looks(TEN)
    assert list(looks) == TEN
    for field in ("color", "dashes", "marker"):
        assert len({getattr(look, field) for look in looks.values()}) == 10


def test_lines_are_what_matplotlib_draws() -> None:
    drawn = {
        (line.get_color(), line.get_linestyle(), line._unscaled_dash_pattern)
        for line in (Line2D([], [], **look.line) for look in style.looks(TEN).values())
    }
    assert len(drawn) == 10


def test_another_method_changes_no_look() -> None:
    alone = style.looks(TEN)
    beside = style.looks([*TEN, "ngt-m8", "ngt-m16"])
    assert {name: beside[name] for name in TEN} == alone
    assert style.looks(["ngt-m8"])["ngt-m8"] == beside["ngt-m8"]


def test_variants_differ_from_each_other_and_from_the_ten() -> None:
    names = [*TEN, *(f"variant-{i}" for i in range(40))]
    looks = style.looks(names)
    assert len({look[:2] for look in looks.values()}) == len(names)
    assert style.looks(reversed(names)) == looks


def test_more_variants_than_looks_still_get_one() -> None:
    assert len(style.looks(f"variant-{i}" for i in range(200))) == 200


def test_a_figure_is_in_inches_and_known_to_no_window() -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    figure = small_figure()
    assert tuple(figure.get_size_inches()) == (3.0, 1.5)
    assert plt.get_fignums() == before


def test_save_writes_whole_files_and_lets_go(tmp_path: Path) -> None:
    figure = small_figure()
    style.save(figure, tmp_path / "deep" / "a.pdf", tmp_path / "a.png")
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["a.pdf", "a.png"]
    assert (tmp_path / "deep" / "a.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes == []


def test_png_is_a_choice(tmp_path: Path) -> None:
    style.save(small_figure(), tmp_path / "a.pdf")
    assert [p.name for p in tmp_path.iterdir()] == ["a.pdf"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").write_text("old")
    figure = small_figure()

    def fail(path: Path, **_: object) -> None:
        Path(path).write_text("half")
        raise RuntimeError

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(RuntimeError):
        style.save(figure, tmp_path / "a.pdf")
    assert [p.name for p in tmp_path.iterdir()] == ["a.pdf"]
    assert (tmp_path / "a.pdf").read_text() == "old"


def test_fonts_are_embedded_as_truetype(tmp_path: Path) -> None:
    style.save(small_figure(), tmp_path / "a.pdf")
    data = (tmp_path / "a.pdf").read_bytes()
    assert b"/CIDFontType2" in data
    assert b"/Type3" not in data
    assert b"CreationDate" not in data


def test_the_users_own_settings_change_nothing(tmp_path: Path) -> None:
    style.save(small_figure(), tmp_path / "a.pdf", tmp_path / "a.png")
    with matplotlib.rc_context({"lines.linewidth": 9.0, "pdf.fonttype": 3, "savefig.dpi": 30}):
        style.save(small_figure(), tmp_path / "b.pdf", tmp_path / "b.png")
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
    for end in ("pdf", "png"):
        assert (tmp_path / f"a.{end}").read_bytes() == (tmp_path / f"b.{end}").read_bytes()


def test_other_processes_write_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from paper.drawing import style\n"
        "with style.context():\n"
        "    f = style.new_figure(3, 2); a = f.subplots(); a.plot([0, 1], [0, 1], label='x')\n"
        "    a.fill_between([0, 1], [0, 1], [1, 2], alpha=0.3); a.set_title('Title (10³)')\n"
        "    style.footer(f, a.get_lines(), [style.Note('a note')])\n"
        "style.save(f, pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))\n"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / f"{seed}.pdf", tmp_path / f"{seed}.png"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).resolve().parents[3],
            check=True,
            timeout=120,
        )
    for end in ("pdf", "png"):
        assert (tmp_path / f"1.{end}").read_bytes() == (tmp_path / f"2.{end}").read_bytes()


@pytest.mark.parametrize("entries", [1, 6, 13, 40])
@style.context()
def test_footer_lies_below_the_panels_and_inside_the_figure(entries: int) -> None:
    figure = style.new_figure(style.TEXT_WIDTH, 2.0)
    axes = figure.subplots()
    axes.set_xlabel("env steps")
    handles = [Line2D([], [], label=f"method {i}") for i in range(entries)]
    notes = [style.Note("many words " * 40), style.Note("take heed " * 30, alert=True)]
    style.footer(figure, handles, notes)
    figure.draw_without_rendering()
    width, height = figure.bbox.width, figure.bbox.height
    assert width == pytest.approx(style.TEXT_WIDTH * figure.dpi)
    boxes = [axes.get_tightbbox(), figure.legends[0].get_window_extent()]
    boxes += [text.get_window_extent() for text in figure.texts]
    assert boxes[0].height > 1.0 * figure.dpi
    for upper, lower in itertools.pairwise(boxes):
        assert upper.y0 >= lower.y1
    assert all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= width and b.y1 <= height for b in boxes)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [
        f"method {i}" for i in range(entries)
    ]


@style.context()
def test_wrap_breaks_at_spaces_alone() -> None:
    figure = style.new_figure(2.0, 1.0)
    lines = style.wrap(figure, "some words, and n\u00a0=\u00a03 " * 5, 1.0, 7.0)
    assert len(lines) > 3
    assert all(line.count("\u00a0") % 2 == 0 for line in lines)
    assert " ".join(lines).split() == ("some words, and n\u00a0=\u00a03 " * 5).split()


def test_on_dark_a_colour_is_as_far_from_the_page_as_on_paper() -> None:
    assert style.on_dark("#000000") == "#ffffff"
    assert style.on_dark("#E69F00") == "#e69f00", "its contrast is high enough"
    dark = {name: style.on_dark(look.color) for name, look in style.LOOKS.items()}
    assert len(set(dark.values())) == len({look.color for look in style.LOOKS.values()})
    assert dark["ngt"] == "#3d94c4", "contrast with DARK 5.23; #0072b2 has 5.19 with white"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_a_ramp_goes_from_dark_to_light(count: int) -> None:
    looks = style.ramp(count)
    greys = [style._luminance(look.color) for look in looks]
    assert greys == sorted(greys) and len(set(greys)) == count
    assert len(set(looks)) == count
