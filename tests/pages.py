"""The code blocks of a documentation page, for tests that follow the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def read(name: str) -> str:
    """Return the text of a page in docs/."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def every_block(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each code block on a page, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """Return a page's code blocks in a language, in order. Blocks of commands name no language."""
    return [block for name, block in every_block(page) if name == language]


def commands(page: str) -> list[list[str]]:
    """Return the words of each command on a page, in order, without comments."""
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]
