"""The picture of NGT's potential and its animation in the docs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ngt.files import CHECKOUT
from paper.handbook import picture
from paper.numbers import potential
from paper.numbers.potential import Maps
from paper.register import POTENTIAL


@pytest.fixture(scope="module")
def maps() -> Maps:
    """Return the first and the last of the shipped maps."""
    every = potential.load(Path(POTENTIAL))
    ends = slice(None, None, 3)
    return Maps(every.step[ends], every.potential[ends], every.expert, every.agent[ends])


def test_the_animation_has_a_frame_per_map_and_is_small(maps: Maps, tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(picture.animation(maps))
    with Image.open(tmp_path / "a.gif") as made:
        assert made.n_frames == 2 and made.info["duration"] == 1000 * picture.EACH
        red, green, blue = np.moveaxis(np.asarray(made.convert("RGB")).astype(int), -1, 0)
    assert ((red - green > 50) & (blue < 100)).sum() > 100, "the agent's dots are orange"
    assert picture.LARGEST == 500_000


def test_the_picture_has_a_panel_per_map(maps: Maps) -> None:
    titles = [axes.get_title() for axes in picture.still(maps).axes]
    assert titles[:2] == ["1,000 env steps", "20,000 env steps"]


def test_the_page_shows_both_files_in_few_lines() -> None:
    text = (CHECKOUT / "docs" / "ngt-in-one-picture.md").read_text()
    assert len(text.splitlines()) <= 25 and "ngt-in-one-picture.md" in (
        CHECKOUT / "mkdocs.yml"
    ).read_text(encoding="utf-8")
    for name in ("potential.png", "potential.gif"):
        assert name in text
        assert (CHECKOUT / "docs" / name).stat().st_size < 500_000
