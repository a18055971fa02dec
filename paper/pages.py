"""Generated parts of pages. Each part is between two marker lines that name its module."""

from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic


def markers(name: str) -> tuple[str, str]:
    """Return the marker lines before and after the part that module `paper.<name>` writes."""
    return f"<!-- begin: paper.{name} -->\n", f"<!-- end: paper.{name} -->\n"


def between(page: str, where: str, name: str) -> tuple[str, str, str]:
    """Split a page into the text before a module's part, the part itself, and the text after it."""
    begin, end = markers(name)
    head, found_begin, rest = page.partition(begin)
    part, found_end, tail = rest.partition(end)
    if not found_begin or not found_end:
        raise UserError(f"--into: {where} lacks the lines {begin.strip()} and {end.strip()}")
    return head + begin, part, end + tail


def write_into(path: Path, text: str, name: str) -> None:
    """Replace the part of a page that belongs to a module."""
    try:
        head, _, tail = between(path.read_text(encoding="utf-8"), str(path), name)
        with atomic(path) as temporary:
            temporary.write_text(head + text + tail, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--into: {path}: {error.strerror}") from None
