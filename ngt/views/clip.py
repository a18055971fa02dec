"""Video clips of one policy or of several policies side by side, as GIF or mp4 files."""

from __future__ import annotations

import io
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ngt.errors import UserError
from ngt.foreign.extras import library

# Maximum size of a GIF in bytes, of one policy and of several side by side.
LARGEST, LARGEST_BESIDE = 300_000, 500_000

# The qualities of a GIF, from best to worst. Each consists of the width in pixels per policy, a
# number n to keep every n-th frame, and the number of colours.
QUALITY = (
    (320, 1, 64),
    (280, 1, 48),
    (240, 1, 32),
    (240, 1, 16),
    (200, 1, 16),
    (240, 2, 32),
    (160, 2, 32),
    (120, 2, 16),
)


# Steps of k-means after the choice of a palette, which otherwise loses the colour of a small body.
KMEANS = 3


class Clip(NamedTuple):
    """Frames of RGB bytes, and the number of seconds for which each frame is shown."""

    frames: list[NDArray[np.uint8]]
    seconds: float
    policies: int = 1  # number of policies that are shown side by side


def beside(clips: Mapping[str, Clip]) -> Clip:
    """Join clips from left to right into one clip, in which each clip's name is in a corner.

    A shorter clip shows its last frame until the longest clip ends.
    """
    named = [[_name(frame, name) for frame in clip.frames] for name, clip in clips.items()]
    frames = [
        np.concatenate([frames[min(i, len(frames) - 1)] for frames in named], axis=1)
        for i in range(max(map(len, named)))
    ]
    return Clip(frames, next(iter(clips.values())).seconds, len(named))


def _name(frame: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    """Write a name in the upper left corner of a frame."""
    image = Image.fromarray(frame)
    size = max(10, image.height // 18)
    draw = ImageDraw.Draw(image)
    draw.text(
        (size // 2, size // 2), name, "white", font_size=size, stroke_width=2, stroke_fill="black"
    )
    return np.asarray(image)


def gif(
    clip: Clip,
    comment: str,
    largest: int | None = None,
    quality: Sequence[tuple[int, int, int]] = QUALITY,
) -> bytes:
    """Encode a clip as a GIF in the best quality that is small enough.

    Raise UserError if even the lowest quality is too large.

    largest: the maximum number of bytes; None means LARGEST or LARGEST_BESIDE.
    quality: the qualities to try, best first.
    """
    limit = largest or (LARGEST if clip.policies == 1 else LARGEST_BESIDE)
    for width, every, colors in quality:
        content = encode(clip, width * clip.policies, every, colors, comment)
        if len(content) <= limit:
            return content
    raise UserError(
        f"--seconds: {len(content)} bytes at a GIF's lowest quality; film fewer seconds"
    )


def encode(clip: Clip, width: int, every: int, colors: int, comment: str) -> bytes:
    """Encode a clip as a GIF in real time.

    The frames share a palette, so unchanged parts take no bytes.
    """
    images = [Image.fromarray(frame) for frame in clip.frames[::every]]
    height = round(images[0].height * width / images[0].width)
    small = [image.resize((width, height), Image.Resampling.LANCZOS) for image in images]
    some = small[:: max(1, len(small) // 8)]
    strip = Image.new("RGB", (width, height * len(some)))
    for i, image in enumerate(some):
        strip.paste(image, (0, i * height))
    palette = strip.quantize(colors, kmeans=KMEANS, dither=Image.Dither.NONE)
    # Dithering is off, because its pattern would change from frame to frame and take bytes.
    first, *rest = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in small)
    out = io.BytesIO()
    first.save(
        out,
        "GIF",
        save_all=True,
        append_images=rest,
        loop=0,
        optimize=True,
        duration=durations(len(clip.frames), every, clip.seconds),
        comment=comment.encode(),
    )
    return out.getvalue()


def durations(frames: int, every: int, seconds: float) -> list[int]:
    """Return for how many milliseconds to show every n-th frame of a clip in a GIF.

    A GIF's times are whole hundredths of a second, so the times of frames may differ by 10 ms. The
    end of each frame is rounded, so that the errors do not add up.

    frames: the number of frames in the clip.
    every: the number n.
    seconds: the number of seconds for which the clip shows each frame.
    """
    ends = [round(100 * seconds * frame) for frame in (*range(0, frames, every), frames)]
    return [10 * (end - start) for start, end in itertools.pairwise(ends)]


def mp4(clip: Clip, comment: str) -> bytes:
    """Encode a clip as an mp4 file for any player, with all frames in full size."""
    av = library("av", "--out: an mp4 file", "video")
    height, width = (size - size % 2 for size in clip.frames[0].shape[:2])  # even, for H.264
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        container.metadata["comment"] = comment
        rate = Fraction(1 / clip.seconds).limit_denominator(1000)
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for frame in clip.frames:
            picture = np.ascontiguousarray(frame[:height, :width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return out.getvalue()


FORMATS: dict[str, Callable[[Clip, str], bytes]] = {".gif": gif, ".mp4": mp4}  # suffix -> encoder


def check_name(file: Path) -> None:
    """Raise UserError if a video can't be written to this file.

    Call this function before filming, which takes time.
    """
    if file.suffix.lower() not in FORMATS:
        raise UserError(f"--out: {file} is not a video; give a name that ends in .gif or .mp4")
    if file.suffix.lower() == ".mp4":
        library("av", f"--out: {file}", "video")
    if file.is_dir():
        raise UserError(f"--out: {file} is a folder; name a file in it")
    folder = next(place for place in file.absolute().parents if place.exists())
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(
            f"--out: {file}: can't write in {folder} ({error.strerror}); name a writable folder"
        ) from None
