"""The look of all figures: a style sheet, and a colour, dash and marker for each method.

The colours are Okabe and Ito's, with some of Tol's muted scheme for the remaining methods. Dashes
and markers differ too, so that a figure can be read in greyscale.
"""

import itertools
import re
import string
import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ngt.files import atomic

SHEET = Path(__file__).with_name("style.mplstyle")

# Sizes in inches, from the paper's document class, icml2026.
TEXT_WIDTH, COLUMN_WIDTH, TEXT_HEIGHT = 6.75, 3.25, 9.0

GREY = "#595959"  # colour of references and notes
ALERT = "#B00020"  # colour of warnings
DARK = "#16191d"  # background colour of a dark page
NOTE_SIZE = 6.5  # font size of notes, in points

# From light to dark in equal steps of greyscale: viridis without its palest third.
RAMP = ("#35B779", "#1F9E89", "#26828E", "#31688E", "#3E4989", "#482878")

Dashes = tuple[float, ...]


class Look(NamedTuple):
    """The look of a method's line. `dashes` are in line widths; a solid line has none."""

    color: str
    dashes: Dashes
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """Return the keywords for a line in matplotlib."""
        return {"color": self.color, "linestyle": (0, self.dashes) if self.dashes else "-"}


LOOKS: dict[str, Look] = {
    "ngt": Look("#0072B2", (), "o"),
    "bc": Look("#7A7A7A", (5, 1.5), "P"),
    "bc-full": Look("#000000", (6, 1.5, 1.5, 1.5), "h"),
    "pwil": Look("#CC79A7", (1.2, 1.2), "s"),
    "dac-rplus": Look("#D55E00", (4, 1.2), "^"),
    "dac-r": Look("#E69F00", (2.2, 1), "v"),
    "wdac": Look("#009E73", (5, 1.2, 1.2, 1.2), "D"),
    "mmd-dac": Look("#56B4E9", (6, 2.2), ">"),
    "red": Look("#7F7F1A", (1.2, 2.4), "p"),
    "diffail": Look("#882255", (4, 1, 1.2, 1, 1.2, 1), "<"),
    # Variants, which are compared only with ngt.
    "ngt-hlg": Look("#009E73", (6, 2.2), "D"),
    "ngt-mse-softmax": Look("#D55E00", (2.2, 1), "^"),
    "ngt-equal-sigma": Look("#7F7F1A", (5, 1.5), ">"),
    "ngt-kaiming": Look("#D55E00", (5, 1.5), "s"),
    "ngt-no-sn": Look("#882255", (6, 2.2), "P"),
    "ngt-hlg-rescaled": Look("#CC79A7", (5, 1.5), "p"),
    "ngt-hlg-agent": Look("#56B4E9", (2.2, 1), "<"),
    "ngt-huber": Look("#0072B2", (4, 1, 1.2, 1, 1.2, 1), "s"),
    "ngt-l1": Look("#CC79A7", (6, 1.5, 1.5, 1.5), "X"),
    "ngt-log-alpha": Look("#56B4E9", (1.2, 1.2), "s"),
    "ngt-lr-alpha": Look("#E69F00", (4, 1.2), "P"),
    "ngt-one-iteration": Look("#D55E00", (1.2, 2.4), "^"),
    "ngt-tanh-entropy": Look("#7A7A7A", (6, 1.5, 1.5, 1.5), "*"),
    "ngt-offset": Look("#000000", (2.2, 1), "X"),
    # Controls, i.e. variants that test a single cause: each has the colour of the modified method.
    "constant": Look("#000000", (1.2, 1.2), "h"),
    "ngt-no-termination": Look("#0072B2", (2.2, 1), "*"),
    "ngt-norm": Look("#0072B2", (6, 2.2), "s"),
    "ngt-penalty": Look("#0072B2", (4, 1, 1.2, 1, 1.2, 1), "^"),
    "dac-no-termination": Look("#E69F00", (6, 2.2), ">"),
    "dac-r-norm": Look("#E69F00", (), "X"),
    "dac-r-no-penalty": Look("#E69F00", (1.2, 2.4), "p"),
    "dac-r-sn": Look("#E69F00", (5, 1.2, 1.2, 1.2), "P"),
    "wdac-norm": Look("#009E73", (), "P"),
    "wdac-no-penalty": Look("#009E73", (1.2, 2.4), "X"),
    "wdac-sn": Look("#009E73", (2.2, 1), "s"),
    "diffail-norm": Look("#882255", (), "^"),
    # Methods beyond the paper; a variant of a method above has the colour of that method.
    "iq-learn": Look("#000000", (6, 2.2), "h"),
    "p2il": Look("#56B4E9", (4, 1, 1.2, 1, 1.2, 1), ">"),
    "ls-iq": Look("#7A7A7A", (1.2, 2.4), "X"),
    "sqil": Look("#D55E00", (5, 1.2, 1.2, 1.2), "^"),
    "red-original": Look("#7F7F1A", (6, 2.2), "p"),
    "fairl": Look("#009E73", (4, 1, 1.2, 1, 1.2, 1), "D"),
    "pwil-prefill": Look("#CC79A7", (5, 1.2, 1.2, 1.2), "s"),
    "dac-absorbing": Look("#E69F00", (4, 1, 1.2, 1, 1.2, 1), "<"),
}

# Dashes and markers for the values of an ordered setting, whose colours are from RAMP.
STEPS: tuple[tuple[Dashes, str], ...] = (
    ((), "o"),
    ((5, 1.8), "s"),
    ((3.5, 1.2), "^"),
    ((1.4, 1.2), "D"),
)


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return the look of each method.

    A method that is not in LOOKS gets an unused pair of colour and dashes. The search for a pair
    starts at a checksum of the method's name, so that the look depends little on other methods.
    """
    names = list(methods)
    colors, dashes, markers = (
        list(dict.fromkeys(column)) for column in zip(*LOOKS.values(), strict=True)
    )
    taken = {look[:2] for look in LOOKS.values()}
    pairs = [pair for pair in itertools.product(colors, dashes) if pair not in taken]
    out: dict[str, Look] = {}
    for name in sorted(set(names) - LOOKS.keys()):
        start = zlib.crc32(name.encode())
        turn = (pairs[(start + i) % len(pairs)] for i in range(len(pairs)))
        pair = next((p for p in turn if p not in taken), pairs[start % len(pairs)])
        taken.add(pair)
        out[name] = Look(*pair, markers[start % len(markers)])
    return {name: LOOKS[name] if name in LOOKS else out[name] for name in names}


def ramp(count: int) -> list[Look]:
    """Return looks for the values of an ordered setting, from dark to light, also in greyscale."""
    shades = np.linspace(len(RAMP) - 1, 0, count).round().astype(int)
    return [Look(RAMP[shade], *STEPS[place % len(STEPS)]) for place, shade in enumerate(shades)]


def on_dark(color: str) -> str:
    """Lighten a colour until its contrast with DARK is that of the given colour with white."""
    goal, white = _contrast(color, "white"), 0.0
    mixed = to_hex(color)
    while white < 1.0 and _contrast(mixed, DARK) < goal:
        white += 0.02
        red, green, blue = (min(1.0, (1 - white) * part + white) for part in to_rgb(color))
        mixed = to_hex((red, green, blue))
    return mixed


def _contrast(a: str, b: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2)."""
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    """Return the relative luminance of an sRGB colour (WCAG 2.2)."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


# Apply the style sheet to matplotlib's defaults and ignore the user's style. `context` is also a
# decorator.
context = partial(matplotlib.style.context, ["default", str(SHEET)])


def new_figure(width: float, height: float) -> Figure:
    """Return a figure with a size in inches, without using pyplot."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def letter(axes: Axes, number: int, pad: float | None = None) -> None:
    """Write a panel's letter in bold, left of its title.

    pad: the distance of the title from the axes, in points.
    """
    name = "".join(string.ascii_lowercase[i] for i in (number // 26 - 1, number % 26) if i >= 0)
    axes.set_title(f"{name} ", loc="left", x=0.0, ha="right", fontweight="bold", pad=pad)


def letters(panels: Iterable[Axes]) -> None:
    """Write the letter of each panel."""
    for number, axes in enumerate(panels):
        letter(axes, number)


class Note(NamedTuple):
    """Text below the panels."""

    text: str
    alert: bool = False  # True for a warning


NOTE, WARNING = "note", "warning"  # gids of the texts below the panels
HEIGHT_OF_NOTES = "Notes"  # key in a PNG's metadata; the value is the notes' height in pixels


def footer(figure: Figure, handles: Sequence[Artist], notes: Sequence[Note]) -> None:
    """Put legend, warnings and notes below the panels, and enlarge the figure to make room."""
    width, height = figure.get_size_inches()
    space, margin = 0.08, 0.06  # inches
    legend = _legend(figure, handles, width - 2 * margin)
    texts = []
    for note in sorted(notes, key=lambda note: not note.alert):
        weight = "bold" if note.alert else "normal"
        lines = wrap(figure, note.text, width - 2 * margin, NOTE_SIZE, weight)
        color = ALERT if note.alert else GREY
        text = figure.text(0, 0, "\n".join(lines), va="top", fontsize=NOTE_SIZE, color=color)
        text.set(fontweight=weight, linespacing=1.25, gid=WARNING if note.alert else NOTE)
        texts.append(text)
    parts = [legend, *texts]
    sizes = [part.get_window_extent().height / figure.dpi for part in parts]
    gaps = [space, space] + [0.03] * (len(texts) - 1)
    strip = sum(sizes) + sum(gaps[: len(parts)]) + margin
    total = height + strip
    figure.set_size_inches(width, total)
    top = strip
    for part, size, gap in zip(parts, sizes, gaps, strict=False):
        top -= gap
        if part is legend:
            legend.set_bbox_to_anchor((0.5, top / total), figure.transFigure)
        else:
            part.set_position((margin / width, top / total))
        top -= size
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, strip / total, 1, 1 - strip / total))


def texts_below(figure: Figure, *, alerts: bool = False) -> list[Text]:
    """Return the notes of a figure. alerts: also return the warnings."""
    kinds = (NOTE, WARNING) if alerts else (NOTE,)
    found = figure.findobj(lambda artist: artist.get_gid() in kinds)
    return [text for text in found if isinstance(text, Text)]


def _above_notes(figure: Figure) -> Bbox | None:
    """Return the part of a figure above its notes, in inches, or None if it has no notes."""
    tops = [note.get_window_extent().y1 / figure.dpi for note in texts_below(figure)]
    width, height = figure.get_size_inches()
    return Bbox([[0, max(tops)], [width, height]]) if tops else None


@context()
def head(figure: Figure, text: str) -> None:
    """Put a warning above the panels of a finished figure. The panels shrink to make room."""
    width = figure.get_size_inches()[0] - 0.12
    lines = wrap(figure, text, width, NOTE_SIZE, "bold")
    figure.suptitle("\n".join(lines), fontsize=NOTE_SIZE, fontweight="bold", color=ALERT)


def _legend(figure: Figure, handles: Sequence[Artist], width: float) -> Any:
    """Return a centred legend in as few rows as fit, with columns of equal length."""
    for rows in range(1, len(handles) + 1):
        legend = figure.legend(
            handles=list(handles),
            ncols=-(-len(handles) // rows),
            loc="upper center",
            bbox_to_anchor=(0.5, 0.5),
        )
        legend.set_in_layout(False)
        if legend.get_window_extent().width <= width * figure.dpi or rows == len(handles):
            break
        legend.remove()
    return legend


def wrap(figure: Figure, text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Break a text into lines of at most `width` inches at a font size in points."""
    probe = figure.text(0, 0, "", fontsize=size, fontweight=weight)
    lines = [""]
    for word in re.findall(r"(?:\$[^$]*\$|[^ ])+", text) or [""]:  # no break inside mathematics
        longer = f"{lines[-1]} {word}".lstrip()
        probe.set_text(longer)
        if lines[-1] and probe.get_window_extent().width > width * figure.dpi:
            lines.append(word)
        else:
            lines[-1] = longer
    probe.remove()
    return lines


def made_of(scale: str) -> str:
    """Return the text that names the scale in the metadata of a file.

    The text of one scale never begins with the text of another scale.
    """
    return f"scale {scale}, Noise-Guided Transport"


def save(
    figure: Figure,
    pdf: Path,
    png: Path | None = None,
    scale: str = "",
    stamp: str = "",
    *,
    notes: bool = True,
) -> None:
    """Write the figure atomically, with the same bytes each time, then clear it.

    The metadata of both files contain `scale` and `stamp`. The metadata of the PNG also contain the
    height of the notes.

    scale: the scale of the figure's runs.
    stamp: the text from `stamps.stamp`.
    notes: False leaves the notes out of the PDF. The PNG, which is for the screen, keeps them.
    """
    about = {"Title": made_of(scale)} if scale else {}
    about |= {"Keywords": stamp} if stamp else {}
    with context():
        figure.draw_without_rendering()
        above = _above_notes(figure)
        if png is not None:
            below = (
                {HEIGHT_OF_NOTES: str(round(above.y0 * rcParams["savefig.dpi"]))}
                if above is not None
                else {}
            )
            with atomic(png) as path:
                figure.savefig(path, format="png", metadata=about | below)
        for note in [] if notes else texts_below(figure):
            note.set_visible(False)
        with atomic(pdf) as path:
            part = None if notes else above
            data = {"CreationDate": None, **about}
            figure.savefig(path, format="pdf", metadata=data, bbox_inches=part)
    figure.clear()
