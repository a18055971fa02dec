"""Read and replace the generated part of a Markdown page.

A generated part stands between two marker lines, which name the generating module.
"""

from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic


def markers(name: str) -> tuple[str, str]:
    """Return the marker lines before and after the part that module `paper.<name>` writes."""
    return f"<!-- begin: paper.{name} -->\n", f"<!-- end: paper.{name} -->\n"


def between(page: str, where: str, name: str) -> tuple[str, str, str]:
    """Split a page into the text before a generated part, the part, and the text after it.

    The texts before and after include the marker lines. Raise UserError if these are missing.

    where: the page's path, for the error message.
    name: the module `paper.<name>` that generates the part.
    """
    begin, end = markers(name)
    head, found_begin, rest = page.partition(begin)
    part, found_end, tail = rest.partition(end)
    if not found_begin or not found_end:
        raise UserError(f"--into: {where} lacks the lines {begin.strip()} and {end.strip()}")
    return head + begin, part, end + tail


def write_into(path: Path, text: str, name: str) -> None:
    """Replace the part of a page that the module `paper.<name>` generates."""
    try:
        head, _, tail = between(path.read_text(encoding="utf-8"), str(path), name)
        with atomic(path) as temporary:
            temporary.write_text(head + text + tail, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--into: {path}: {error.strerror}") from None
