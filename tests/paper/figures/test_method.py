"""The method diagram: positions, numbers from the config, and reproducible files."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from ngt.errors import UserError
from ngt.potential import PotentialConfig
from ngt.settings.config import MethodConfig
from ngt.settings.load import load
from paper import command
from paper.drawing import style
from paper.drawing.diagram import BOXES, FLOWS, Box
from paper.drawing.labels import PAIRING
from paper.figures.method import arrows, boxes, draw, facts

CONFIGS: dict[str, dict[str, Any]] = {
    "paper": {"scale": "paper"},
    "quick": {"scale": "quick"},
    "hl_gauss": {"scale": "paper", "methods": {"ngt": {"params": {"pairing": "hl_gauss"}}}},
    "odd": {
        "scale": "paper",
        "sac": {"hidden": [400, 300], "activation": "silu"},
        "methods": {
            "ngt": {
                "params": {
                    "spectral_norm": False,
                    "squash": False,
                    "scaling": "percentile_offset",
                    "lr": 3e-5,
                    "penalty": 10.0,
                }
            }
        },
    },
}


def named(figure: Figure, kind: str) -> list[tuple[str, Any]]:
    """Return (name, artist) for each artist whose gid is `kind:name`."""
    (axes,) = figure.axes
    pairs = [(a.get_gid() or "", a) for a in (*axes.patches, *axes.texts, *axes.lines)]
    return [(gid.partition(":")[2], a) for gid, a in pairs if gid.partition(":")[0] == kind]


def extents(figure: Figure, kind: str) -> list[tuple[str, Bbox]]:
    """Return (name, bounding box in inches) for each artist of a kind."""
    scale = 1 / figure.dpi
    return [
        (name, Bbox(artist.get_window_extent().get_points() * scale))
        for name, artist in named(figure, kind)
    ]


def inside(inner: Bbox, outer: Bbox, margin: float) -> bool:
    return bool(
        inner.x0 >= outer.x0 + margin
        and inner.x1 <= outer.x1 - margin
        and inner.y0 >= outer.y0 + margin
        and inner.y1 <= outer.y1 - margin
    )


def drawn_boxes(name: str) -> dict[str, Box]:
    cell, params, _ = facts(load(CONFIGS[name]))
    return boxes(cell, params)


@pytest.mark.parametrize("name", CONFIGS)
@style.context()
def test_words_fit_and_nothing_overlaps(name: str) -> None:
    figure = draw(load(CONFIGS[name]))
    figure.draw_without_rendering()
    frames = dict(extents(figure, "box"))
    lines, words = extents(figure, "text"), extents(figure, "label")
    assert {n for n, _ in lines} == set(frames) and len(frames) == 11
    for box, text in lines:
        assert inside(text, frames[box], 0.04), box
    (legend,) = (axes.get_legend() for axes in figure.axes)
    below = [
        (n, Bbox(a.get_window_extent().get_points() / figure.dpi))
        for n, a in (("legend", legend), named(figure, "note")[0])
    ]
    things = [*frames.items(), *words, *below]
    for (one, a), (other, b) in itertools.combinations(things, 2):
        assert not a.overlaps(b), (one, other)
    page = Bbox([[0, 0], figure.get_size_inches()])
    assert all(inside(extent, page, 0.02) for _, extent in things)
    for label, text in words:
        for line, artist in named(figure, "arrow"):
            path = artist.get_path().transformed(artist.get_transform())
            crossed = path.intersects_bbox(Bbox(text.get_points() * figure.dpi), filled=False)
            assert not crossed, (label, line)


@pytest.mark.parametrize("name", CONFIGS)
def test_arrows_join_the_edges_of_boxes(name: str) -> None:
    box = drawn_boxes(name)

    def on_edge(point: tuple[float, float]) -> str:
        found = []
        for name, b in box.items():
            off = abs(point[0] - b.x) - b.width / 2, abs(point[1] - b.y) - b.height / 2
            if abs(max(off)) < 1e-9 and min(off) < -0.05:
                found.append(name)
        assert len(found) == 1
        return found[0]

    ends = [(a.flow, on_edge(a.points[0]), on_edge(a.points[-1])) for a in arrows(box)]
    assert sorted(ends) == sorted(
        [
            ("expert", "expert", "input"),
            ("agent", "buffer", "input"),
            ("plain", "input", "predictor"),
            ("plain", "input", "prior"),
            ("plain", "predictor", "potential"),
            ("plain", "prior", "potential"),
            ("expert", "potential", "loss"),
            ("agent", "potential", "loss"),
            ("gradient", "loss", "predictor"),
            ("agent", "potential", "reward"),
            ("agent", "reward", "scaled"),
            ("plain", "scaled", "sac"),
            ("plain", "sac", "env"),
            ("plain", "env", "sac"),
            ("plain", "env", "buffer"),
            ("agent", "buffer", "sac"),
        ]
    )
    for arrow in arrows(box):
        for (x0, y0), (x1, y1) in itertools.pairwise(arrow.points):
            assert x0 == x1 or y0 == y1, "lines must be horizontal or vertical"
            for b in box.values():
                middle = abs((x0 + x1) / 2 - b.x), abs((y0 + y1) / 2 - b.y)
                apart = (
                    middle[0] >= (abs(x1 - x0) + b.width) / 2 - 1e-9
                    or middle[1] >= (abs(y1 - y0) + b.height) / 2 - 1e-9
                )
                assert apart, "a line crosses a box"


def grey(color: str) -> float:
    return sum(w * v for w, v in zip((0.299, 0.587, 0.114), to_rgb(color), strict=True))


def test_frozen_and_trained_differ_in_grey() -> None:
    kinds = {name: box.kind for name, box in drawn_boxes("paper").items()}
    assert [n for n, kind in kinds.items() if kind == "frozen"] == ["prior"]
    assert [n for n, kind in kinds.items() if kind == "trained"] == ["predictor", "sac"]
    trained, frozen = BOXES["trained"], BOXES["frozen"]
    assert grey(trained["facecolor"]) - grey(frozen["facecolor"]) > 0.15
    assert frozen["linestyle"] == "--" and "linestyle" not in trained
    assert trained["linewidth"] >= 2 * BOXES["formula"]["linewidth"]
    assert len({str(look["linestyle"]) for look in FLOWS.values()}) == len(FLOWS)


def words(**differences: Any) -> str:
    figure = draw(load({"scale": "paper", **differences}))
    return "\n".join(text.get_text() for text in figure.axes[0].texts)


def test_numbers_are_the_configs() -> None:
    plain = words()
    for part in (
        r"5\,\tanh(\cdot) \in \mathbb{R}^{32}",
        "2 × 256, LeakyReLU 0.05",
        "(Adam, 0.001)",
        "minibatch of 256",
        "4,000,000",
        "4 in lockstep",
        "2 × 256, ReLU",
        "Huber on all but Humanoid-v4; HL-Gauss on Humanoid-v4",
    ):
        assert part in plain
    params = {
        "m": 7,
        "rescale": 2.5,
        "hidden": [9, 8],
        "leak": 0.1,
        "lr": 0.25,
        "spectral_norm": False,
    }
    other = words(
        methods={"ngt": {"params": params}},
        train={"batch": 31, "buffer": 1234, "num_envs": 3},
        sac={"hidden": [5, 5, 5]},
    )
    for part in (
        r"2.5\,\tanh(\cdot) \in \mathbb{R}^{7}",
        "9, 8, LeakyReLU 0.1",
        "(Adam, 0.25)",
        "minibatch of 31",
        "1,234",
        "3 in lockstep",
        "3 × 5, ReLU",
    ):
        assert part in other
    assert "spectral norm" in plain and "spectral norm" not in other
    assert "gradient penalty" not in plain and "gradient penalty" not in other
    assert "+ 10 × gradient penalty" in words(methods={"ngt": {"params": {"penalty": 10.0}}})


def test_outputs_of_hl_gauss() -> None:
    """Check the nets' labels: the predictor's logits are 5 tanh(.), the prior's outputs tanh(.)."""
    hlg = words(methods={"ngt": {"params": {"pairing": "hl_gauss"}}}).splitlines()
    assert r"$5\,\tanh(\cdot) \in \mathbb{R}^{32 \times 21}$" in hlg
    assert r"$\tanh(\cdot) \in \mathbb{R}^{32}$" in hlg
    literal = words(methods={"ngt": {"params": {"pairing": "hl_gauss", "hlg_target": "rescaled"}}})
    assert r"$5\,\tanh(\cdot) \in \mathbb{R}^{32}$" in literal and "tanh alone" not in literal


def choices() -> list[tuple[str, str]]:
    """Return each setting of NGT that has a fixed set of choices, with each of its choices."""
    kinds = get_type_hints(PotentialConfig).items()
    return [(name, one) for name, kind in kinds if get_origin(kind) is Literal
            for one in get_args(kind)]  # fmt: skip


@pytest.mark.parametrize(("name", "choice"), choices())
def test_every_choice_is_drawn_or_refused(name: str, choice: str) -> None:
    try:
        drawn = words(methods={"ngt": {"params": {name: choice}}})
    except UserError as error:
        assert name == "scaling" and repr(choice) in str(error)
        return
    if name == "pairing":
        assert f"Pairing loss ℓ: {PAIRING[choice]}" in drawn


def test_files_are_always_the_same(tmp_path: Path) -> None:
    first, again, png = (tmp_path / name for name in ("a.pdf", "b.pdf", "a.png"))
    command.main(["method_diagram", "--scale", "paper", "--out", str(first), "--png", str(png)])
    command.main(["method_diagram", "--out", str(again)])
    assert first.read_bytes().startswith(b"%PDF") and first.read_bytes() == again.read_bytes()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_scaling_that_it_can_not_show(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["method_diagram", "--set", "methods.ngt.params.scaling=ema_signed"])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("\n") == 1
    assert err.startswith(
        "method_diagram: error: methods.ngt.params.scaling: 'ema_signed' can't be drawn"
    )


def test_other_configs_that_it_can_not_show() -> None:
    config = load({"scale": "test"})
    other = {**config.methods, "ngt": MethodConfig(model="baselines.dac:Dac")}
    with pytest.raises(UserError, match=r"use ngt\.potential:Potential"):
        facts(dataclasses.replace(config, methods=other))
    with pytest.raises(UserError, match="figures: none names an env"):
        facts(dataclasses.replace(config, figures={}))
