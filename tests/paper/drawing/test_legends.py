"""Legends as a reader sees them: each pair of handles differs in colour, grey and deuteranopia."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ngt.settings.load import load
from paper.drawing import notes, style
from paper.drawing.panels import SCORE
from paper.figures.curves import CURVE_FIGURES

Array = np.ndarray
DPI = 200  # of the pictures
# Smallest difference of two handles, as a share of the contrast of their ink with the page. The
# closest handles of all figures have 0.22; two that differed in their markers only had 0.13.
APART = 0.18

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
DEUTERANOPIA = np.array(
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
)


def grey(rgb: Array) -> Array:
    return np.repeat(rgb @ np.array([[0.299], [0.587], [0.114]]), 3, axis=2)


def deuteranopia(rgb: Array) -> Array:
    seen: Array = np.clip((rgb**2.2) @ DEUTERANOPIA.T, 0.0, 1.0) ** (1 / 2.2)
    return seen


VIEWS: dict[str, Callable[[Array], Array]] = {
    "colour": lambda rgb: rgb,
    "grey": grey,
    "deuteranopia": deuteranopia,
}


@style.context()
def rasters(figure: Figure) -> dict[str, tuple[Line2D, Array]]:
    """Return each line of a figure's legend, and its handle's pixels, by label."""
    figure.set_dpi(DPI)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255.0  # type: ignore[attr-defined]
    (legend,) = figure.legends
    boxes = [line.get_window_extent() for line in legend.get_lines()]
    out = {}
    for line, text, box in zip(legend.get_lines(), legend.get_texts(), boxes, strict=True):
        middle, half = round(len(pixels) - (box.y0 + box.y1) / 2), 9
        left = round(min(b.x0 for b in boxes if abs(b.x0 - box.x0) < DPI / 10))
        part = pixels[middle - half : middle + half, left - 2 : left + round(0.46 * DPI)]
        out[text.get_text()] = (line, part)
    return out


def legend_of(name: str, scale: str) -> Figure:
    config = load({"scale": scale})
    drawn, plan = CURVE_FIGURES[name], config.figures[name]
    with style.context():
        figure = style.new_figure(style.TEXT_WIDTH, 0.5)
        series = drawn.series(config, name)
        handles = notes.handles(config, series, plan.envs[0], [SCORE], crosses=False)
        style.footer(figure, handles, [])
    return figure


def gaps(handle: Array) -> list[float]:
    """Return the middle of each gap between dashes, as a share of the handle's width."""
    dark = handle[len(handle) // 2 - 1 : len(handle) // 2 + 1].min(axis=(0, 2)) < 0.8
    edges = np.flatnonzero(np.diff(dark.astype(int)))
    ends, starts = (edges[dark[edges]], edges[~dark[edges]])
    return [
        float(end + start) / 2 / len(dark) for end in ends for start in starts[starts > end][:1]
    ]


@pytest.mark.parametrize("name", CURVE_FIGURES)
def test_handles_differ_in_every_view_and_dashes_show(name: str) -> None:
    scale = "lite" if name == "humanoid_figure" else "paper"
    shown = rasters(legend_of(name, scale))
    assert len(shown) > 2
    for label, (line, handle) in shown.items():
        if line._unscaled_dash_pattern[1]:
            middles = gaps(handle)
            assert min(middles, default=1.0) < 0.45 and max(middles) > 0.55, f"{label}: looks solid"
    for view, seen in VIEWS.items():
        for (a, (_, one)), (b, (_, other)) in itertools.combinations(shown.items(), 2):
            ink = (one.min(axis=2) < 0.95) | (other.min(axis=2) < 0.95)
            found = [seen(one)[ink], seen(other)[ink]]
            contrast = (1 - np.minimum(*found)).max(axis=1).sum()
            apart = np.abs(found[0] - found[1]).max(axis=1).sum() / contrast
            assert apart > APART, f"{a} and {b} look alike in {view}: {apart:.2f}"
