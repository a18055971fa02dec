"""Pictures embedded in a page: quality and size."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ngt.errors import UserError
from ngt.views.clip import LARGEST_BESIDE
from paper.document import pictures, report
from paper.register import AGENTS, VIDEOS


def decode(picture: pictures.Picture) -> Image.Image:
    kind, _, text = picture.uri.partition(";base64,")
    assert kind == "data:image/png"
    image = Image.open(io.BytesIO(base64.b64decode(text)))
    assert image.size == (picture.width, picture.height)
    return image.convert("RGB")


@pytest.fixture
def drawing(tmp_path: Path) -> Path:
    """Return a 1000 x 500 picture of three flat colours on a transparent background."""
    image = Image.new("RGBA", (1000, 500), (0, 0, 0, 0))
    for i, color in enumerate([(0, 114, 178, 255), (0, 0, 0, 255), (213, 94, 0, 255)]):
        image.paste(color, (200 * i, 100, 200 * i + 100, 400))
    image.save(tmp_path / "drawing.png")
    return tmp_path / "drawing.png"


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """Return a 1600 x 64 picture of noise, which does not compress."""
    pixels = np.random.default_rng(0).integers(0, 255, (64, 1600, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_flat_colours_stay_as_they_are_and_nothing_becomes_white(drawing: Path) -> None:
    picture = pictures.embed({"a": drawing}, 100_000)["a"]
    image = decode(picture)
    assert (image.width, picture.shown) == (1000, 700)
    assert [image.getpixel(at) for at in ((50, 200), (250, 200), (450, 200), (5, 5))] == [
        (0, 114, 178),
        (0, 0, 0),
        (213, 94, 0),
        (255, 255, 255),
    ]


def test_the_best_quality_that_fits_is_taken(photo: Path, drawing: Path) -> None:
    files = {"photo": photo, "drawing": drawing}
    best = pictures.embed(files, 10**9)
    assert decode(best["photo"]).size == (1350, 54)
    size = sum(len(p.uri) for p in best.values())
    assert pictures.embed(files, size) == best
    less = pictures.embed(files, size - 1)
    assert sum(len(p.uri) for p in less.values()) < size
    small = pictures.embed(files, size // 3)
    assert sum(len(p.uri) for p in small.values()) <= size // 3
    assert decode(small["photo"]).width < 1350
    assert small["photo"].shown == best["photo"].shown == 1120, (
        "the width on the page must not change"
    )


def test_a_budget_that_nothing_meets(photo: Path) -> None:
    with pytest.raises(UserError, match=r"the 1 figures take \d+ bytes .* 1000 are left"):
        pictures.embed({"photo": photo}, 1000)


def test_a_file_that_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("not one")
    with pytest.raises(UserError, match=r"a\.png: not a picture"):
        pictures.embed({"a": tmp_path / "a.png"}, 10**6)


def test_videos_are_embedded_until_the_budget_is_spent(tmp_path: Path) -> None:
    for name, size in (("a", 900), ("b", 3000), ("c", 300)):
        (tmp_path / f"{name}.gif").write_bytes(b"x" * size)
    files = [tmp_path / f"{name}.gif" for name in ("a", "b", "absent", "c")]
    found = pictures.videos(files, 2000)
    assert list(found) == ["a", "c"]
    kind, _, text = found["a"].partition(";base64,")
    assert kind == "data:image/gif" and base64.b64decode(text) == b"x" * 900
    assert sum(map(len, found.values())) <= 2000


def test_all_shipped_videos_fit_into_a_report() -> None:
    experts, agents = sorted(VIDEOS.glob("*.gif")), sorted(AGENTS.glob("*.gif"))
    assert len(experts) >= 7 and agents
    assert all(file.stat().st_size <= LARGEST_BESIDE for file in agents)
    filmed = {file.stem.split("-", 1)[1] for file in agents}
    files = agents + [file for file in experts if file.stem not in filmed]
    assert len(pictures.videos(files, report.LIMIT_OF_VIDEOS)) == len(files)
    assert report.LIMIT + report.LIMIT_OF_VIDEOS <= 8_500_000
