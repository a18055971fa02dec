"""Generated parts of the pages in docs/: each stands between two lines that name its module."""

from __future__ import annotations

from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic


def markers(name: str) -> tuple[str, str]:
    """The lines around what the module `name` of this package writes."""
    return f"<!-- begin: paper.{name} -->\n", f"<!-- end: paper.{name} -->\n"


def between(page: str, where: str, name: str) -> tuple[str, str, str]:
    """A page up to its generated part, that part, and what follows."""
    begin, end = markers(name)
    head, found_begin, rest = page.partition(begin)
    part, found_end, tail = rest.partition(end)
    if not found_begin or not found_end:
        raise UserError(f"--into: {where} lacks the lines {begin.strip()} and {end.strip()}")
    return head + begin, part, end + tail


def write_into(path: Path, text: str, name: str) -> None:
    """Put the text where the page has the module's lines."""
    try:
        head, _, tail = between(path.read_text(encoding="utf-8"), str(path), name)
        with atomic(path) as temporary:
            temporary.write_text(head + text + tail, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--into: {path}: {error.strerror}") from None
