"""The generated part of a page: only this part is replaced, and a page without it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngt.errors import UserError
from paper import pages

BEGIN, END = pages.markers("x")


def test_a_part_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    other = "".join(pages.markers("y"))
    page.write_text(f"a\n{BEGIN}old\n{END}{other}z\n")
    pages.write_into(page, "new\n", "x")
    assert page.read_text() == f"a\n{BEGIN}new\n{END}{other}z\n"
    assert pages.between(page.read_text(), "page", "x")[1] == "new\n"


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_a_page_without_both_lines_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(UserError, match=r"page\.md lacks the lines <!-- begin: paper\.x -->"):
        pages.write_into(page, "new", "x")
    assert page.read_text() == text


def test_a_missing_page_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.md: No such file"):
        pages.write_into(tmp_path / "none.md", "", "x")
