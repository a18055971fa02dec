"""Video clips of one policy, or of several side by side, as small GIFs and as mp4 files."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ngt.errors import UserError
from ngt.foreign.extras import library

LARGEST = 300_000  # maximum size of a GIF in bytes, for each policy that the GIF shows

# Qualities of a GIF, best first: width in pixels for each policy, n to keep every n-th frame,
# number of colours.
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


class Clip(NamedTuple):
    """Frames of RGB bytes, and the number of seconds for which each frame is shown."""

    frames: list[NDArray[np.uint8]]
    seconds: float
    policies: int = 1  # number of policies that are shown side by side


def beside(clips: Mapping[str, Clip]) -> Clip:
    """Join clips from left to right into one clip, with each clip's name in a corner of its part.

    A shorter clip shows its last frame until the longest clip ends.
    """
    named = [[_name(frame, name) for frame in clip.frames] for name, clip in clips.items()]
    frames = [
        np.concatenate([frames[min(i, len(frames) - 1)] for frames in named], axis=1)
        for i in range(max(map(len, named)))
    ]
    return Clip(frames, next(iter(clips.values())).seconds, len(named))


def _name(frame: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    """Return a frame with a name in its upper left corner."""
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
    largest: int = LARGEST,
    quality: Sequence[tuple[int, int, int]] = QUALITY,
) -> bytes:
    """Return a GIF of the best quality that is small enough. Raise UserError if none is.

    largest: the maximum number of bytes for each policy.
    quality: the qualities to try, best first.
    """
    for width, every, colors in quality:
        content = encode(clip, width * clip.policies, every, colors, comment)
        if len(content) <= largest * clip.policies:
            return content
    raise UserError(
        f"--seconds: {len(content)} bytes at a GIF's lowest quality; film fewer seconds"
    )


def encode(clip: Clip, width: int, every: int, colors: int, comment: str) -> bytes:
    """Return a GIF whose frames share a palette, so that parts that do not change take no bytes."""
    images = [Image.fromarray(frame) for frame in clip.frames[::every]]
    height = round(images[0].height * width / images[0].width)
    small = [image.resize((width, height), Image.Resampling.LANCZOS) for image in images]
    some = small[:: max(1, len(small) // 8)]
    strip = Image.new("RGB", (width, height * len(some)))
    for i, image in enumerate(some):
        strip.paste(image, (0, i * height))
    palette = strip.quantize(colors, dither=Image.Dither.NONE)
    # No dithering: its pattern would change from frame to frame and cost bytes.
    first, *rest = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in small)
    out = io.BytesIO()
    first.save(
        out,
        "GIF",
        save_all=True,
        append_images=rest,
        loop=0,
        optimize=True,
        duration=round(1000 * every * clip.seconds),
        comment=comment.encode(),
    )
    return out.getvalue()


def mp4(clip: Clip, comment: str) -> bytes:
    """Return an mp4 file with every frame in full size, for any player."""
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
    """Raise UserError if a video can't be written to this file. Call this before filming."""
    if file.suffix not in FORMATS:
        raise UserError(f"--out: {file} is not a video; give a name that ends in .gif or .mp4")
    if file.suffix == ".mp4":
        library("av", f"--out: {file}", "video")
