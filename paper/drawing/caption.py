"""The caption of a figure, in a file next to the picture: its title, and how to read the figure."""

from pathlib import Path

from matplotlib.figure import Figure

from ngt.files import atomic
from paper.drawing import style, tex


def text(figure: Figure, title: str) -> str:
    """Return the title and all notes of a figure, including warnings."""
    notes = (note.get_text() for note in style.texts_below(figure, alerts=True))
    return " ".join([f"{title.rstrip('.')}.", *(" ".join(note.split("\n")) for note in notes)])


def save(words: str, picture: Path, stamp: str = "") -> None:
    """Write <stem>.caption.md and <stem>.caption.tex next to a picture."""
    forms = {".md": f"{words}\n", ".tex": f"{tex.escape(words, breakable=True)}%\n"}
    if stamp:
        forms = {
            ".md": f"{forms['.md']}\n<!-- {stamp} -->\n",
            ".tex": f"{forms['.tex']}% {stamp}\n",
        }
    for ending, form in forms.items():
        with atomic(file(picture, ending)) as temporary:
            temporary.write_text(form, encoding="utf-8")


def file(picture: Path, ending: str) -> Path:
    """Return the file of a picture's caption. ending: `.md` or `.tex`."""
    return picture.with_suffix(f".caption{ending}")


def read(picture: Path) -> str:
    """Return the caption of a picture, or an empty text if the picture has no caption file."""
    source = file(picture, ".md")
    return source.read_text(encoding="utf-8").partition("\n")[0] if source.exists() else ""
