"""Clips as GIF and mp4: all frames, small files, and a comment on the policy."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ngt.errors import UserError
from ngt.views.clip import LARGEST, LARGEST_BESIDE, Clip, beside, check_name, encode, gif, mp4


@pytest.fixture(scope="module")
def clip() -> Clip:
    """Return a clip of a white square that moves over static noise."""
    ground = np.random.default_rng(0).integers(0, 200, (120, 160, 3), np.uint8)
    frames = []
    for i in range(10):
        frame = ground.copy()
        frame[40:80, 10 * i : 10 * i + 40] = 255
        frames.append(frame)
    return Clip(frames, 0.05)


def frames_of(content: bytes) -> list[np.ndarray]:
    with Image.open(io.BytesIO(content)) as image:
        out = []
        for i in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(i)
            out.append(np.asarray(image.convert("RGB"), float))
        return out


def test_a_gif_has_the_frames_their_time_and_its_words(clip: Clip) -> None:
    content = encode(clip, 160, 1, 64, "of mine")
    with Image.open(io.BytesIO(content)) as image:
        assert image.size == (160, 120) and image.info["duration"] == 50
        assert image.info["comment"] == b"of mine" and image.info["loop"] == 0
    shown = frames_of(content)
    assert len(shown) == 10
    for i, frame in enumerate(shown):
        assert frame[45:75, 10 * i + 5 : 10 * i + 35].mean() > 240, (
            "the square is in the wrong place"
        )
    still = [frame[:30] for frame in shown]
    assert all(np.array_equal(still[0], other) for other in still), "the background flickers"
    half = encode(clip, 80, 2, 16, "")
    with Image.open(io.BytesIO(half)) as image:
        assert image.size == (80, 60) and image.info["duration"] == 100
    assert len(frames_of(half)) == 5 and len(half) < len(content)


@pytest.mark.parametrize(("rate", "every"), [(30, 1), (1 / 0.045, 1), (24, 2), (7, 2)])
def test_a_gif_plays_in_real_time(clip: Clip, rate: float, every: int) -> None:
    frames = [np.roll(clip.frames[0], i, axis=1) for i in range(31)]
    with Image.open(io.BytesIO(encode(Clip(frames, 1 / rate), 40, every, 8, ""))) as image:
        end = 0.0
        for i in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(i)
            end += image.info["duration"]
            assert end == pytest.approx(1000 * min(31, every * (i + 1)) / rate, abs=5.1)


def test_a_small_body_keeps_its_colour_among_few_colours() -> None:
    """Draw a shaded orange body before a noisy grey floor and sky, which take most colours."""
    y, x = np.mgrid[:120, :160]
    sky = (40 + y / 3)[..., None] + [0, 10, 30]
    floor = ((x // 8 + y // 8) % 2 * 170)[..., None] * [1.0, 1.05, 1.0]
    noise = np.random.default_rng(0).normal(0, 12, (120, 160, 1))
    frame = np.clip(np.where((y < 60)[..., None], sky, floor) + noise, 0, 255).astype(np.uint8)
    frame[40:75, 77:83] = np.linspace(0.4, 1, 6)[:, None] * [205, 120, 60]
    (shown,) = frames_of(encode(Clip([frame], 0.05), 160, 1, 16, ""))
    red, _, blue = shown[45:70, 79:83].reshape(-1, 3).T
    assert (red > 2 * blue).all()


def test_the_best_quality_that_fits(clip: Clip) -> None:
    few = [(80, 1, 32), (60, 1, 16), (40, 2, 8)]
    sizes = [len(encode(clip, *quality, "")) for quality in few]
    assert len(gif(clip, "", sizes[0], few)) == sizes[0]
    limit = sizes[0] - 1
    first = next(size for size in sizes if size <= limit)
    assert len(gif(clip, "", limit, few)) == first
    with pytest.raises(UserError, match=r"--seconds: [0-9]+ bytes at a GIF"):
        gif(clip, "", min(sizes) - 1, few)


def test_policies_side_by_side(clip: Clip) -> None:
    both = beside({"first": clip, "second": Clip(clip.frames[:4], clip.seconds)})
    assert both.frames[0].shape == (120, 320, 3) and both[1:] == (0.05, 2)
    assert len(both.frames) == 10, "the shorter one must wait for the longer one"
    right = [frame[30:, 160:] for frame in both.frames]
    assert np.array_equal(right[3], right[9]) and not np.array_equal(right[2], right[3])
    for half in (both.frames[0][:, :160], both.frames[0][:, 160:]):
        changed = (half != clip.frames[0]).any(axis=2)
        assert changed[:30, :80].any() and not changed[30:].any(), "the name is at the top left"
    with Image.open(io.BytesIO(gif(both, ""))) as image:
        assert image.size == (640, 240)


def test_an_mp4_has_every_frame() -> None:
    av = pytest.importorskip("av")
    frames = [np.full((61, 81, 3), 20 * i, np.uint8) for i in range(8)]
    with av.open(io.BytesIO(mp4(Clip(frames, 0.05), "of mine"))) as file:
        stream = file.streams.video[0]
        assert file.metadata["comment"] == "of mine" and stream.average_rate == 20
        shown = [frame.to_ndarray(format="rgb24") for frame in file.decode(stream)]
    assert [frame.shape for frame in shown] == [(60, 80, 3)] * 8
    assert [round(frame.mean() / 20) for frame in shown] == list(range(8))


def test_without_the_encoder_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    check_name(Path("a.gif"))
    with pytest.raises(UserError, match=r"a\.mp4: needs the package av .*pip install av"):
        check_name(Path("a.mp4"))
    with pytest.raises(UserError, match=r"a\.avi is not a video"):
        check_name(Path("a.avi"))


def test_several_policies_share_a_limit_under_500_kb(clip: Clip) -> None:
    noise = [np.random.default_rng(i).integers(0, 255, (240, 320, 3), np.uint8) for i in range(10)]
    three = beside(dict.fromkeys("abc", Clip(noise, 0.05)))
    assert LARGEST < len(gif(three, "")) <= LARGEST_BESIDE == 500_000


def test_a_file_that_can_not_be_written_is_refused_before_filming(tmp_path: Path) -> None:
    check_name(tmp_path / "new" / "folders" / "a.gif")
    assert list(tmp_path.iterdir()) == [], "the check must leave nothing behind"
    (tmp_path / "file").touch()
    (tmp_path / "folder.gif").mkdir()
    for file, fault in (
        (Path("/proc/a.gif"), "--out: /proc/a.gif: can't write in /proc (.+); name a writable"),
        (Path("/proc/new/a.gif"), "--out: /proc/new/a.gif: can't write in /proc (.+); name a"),
        (tmp_path / "file" / "a.gif", "--out: .*a.gif: can't write in .*file (Not a directory); "),
        (tmp_path / "folder.gif", "--out: .*folder.gif is a folder; name a file in it"),
    ):
        with pytest.raises(UserError, match=fault.replace("(", r"\(").replace(")", r"\)")):
            check_name(file)
