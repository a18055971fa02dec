"""Figures as PNGs, and videos as GIFs, embedded in a page within a budget of bytes."""

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, UnidentifiedImageError

from ngt.errors import UserError
from paper.drawing.style import HEIGHT_OF_NOTES

# (maximum width in pixels, number of colours), best first. A figure as wide as the text of the
# paper is 1350 pixels wide.
QUALITY = ((1350, 256), (1350, 64), (1100, 48), (900, 32), (700, 24), (500, 16))
SHOWN = 0.7  # CSS pixels per pixel of the PNG; a figure as wide as the text takes 945 CSS pixels


class Picture(NamedTuple):
    """An image for HTML."""

    uri: str
    width: int  # of the image, in pixels
    height: int  # of the image, in pixels
    shown: int  # width in the page, in CSS pixels; the same at every quality


def embed(files: Mapping[str, Path], budget: int) -> dict[str, Picture]:
    """Return all pictures at the best quality at which they fit into `budget` bytes together.

    Raise UserError if a file is not a picture, or if no quality fits.
    """
    images = {name: _open(path) for name, path in files.items()}
    for width, colors in QUALITY:
        pictures = {name: _encode(image, width, colors) for name, image in images.items()}
        size = sum(len(picture.uri) for picture in pictures.values())
        if size <= budget:
            return pictures
    raise UserError(
        f"the {len(files)} figures take {size} bytes at the lowest quality, but only {budget} are "
        f"left for them; leave some out (`figures: {{NAME: null}}`)"
    )


def videos(files: Sequence[Path], budget: int) -> dict[str, str]:
    """Return GIFs as data for HTML, by file name without ending.

    Files that are missing, and those that no longer fit into `budget` bytes together, are left out.
    """
    found: dict[str, str] = {}
    for file in files:
        if file.exists():
            uri = f"data:image/gif;base64,{base64.b64encode(file.read_bytes()).decode()}"
            if len(uri) <= budget:
                found[file.stem], budget = uri, budget - len(uri)
    return found


def _open(path: Path) -> Image.Image:
    """Return a picture in RGB on white, without its notes, which the page shows as text."""
    try:
        with Image.open(path) as file:
            notes = int(file.info.get(HEIGHT_OF_NOTES, 0))
            image = file.convert("RGBA").crop((0, 0, file.width, file.height - notes))
    except (UnidentifiedImageError, OSError) as error:
        raise UserError(f"{path}: not a picture ({error}); make it again") from None
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


def _encode(image: Image.Image, width: int, colors: int) -> Picture:
    across = min(width, image.width)
    size = (across, round(image.height * across / image.width))
    small = image.resize(size, Image.Resampling.LANCZOS)  # a copy if the size is unchanged
    out = io.BytesIO()
    # No dithering: its noise on flat colours would cost bytes.
    small.quantize(colors, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    text = base64.b64encode(out.getvalue()).decode()
    return Picture(
        f"data:image/png;base64,{text}", small.width, small.height, round(SHOWN * image.width)
    )
