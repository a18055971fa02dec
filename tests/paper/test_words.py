"""Values written as text for readers."""

from __future__ import annotations

import pytest

from paper.words import listed, show, yes_or_no


@pytest.mark.parametrize(
    ("values", "text"),
    [([], ""), ([1], "1"), ([1, 1, 2], "1 and 2"), (["a, b", "c", "d"], "a, b, c and d")],
)
def test_lists_read_as_prose(values: list[object], text: str) -> None:
    assert listed(values) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (-0.126, "−0.13"), (-3, "−3"), ("-x", "-x")],
)
def test_values_have_a_real_minus_sign_or_a_dash(value: str | float | None, text: str) -> None:
    assert show(value) == text
    assert show(-1.26, "{:.1f}") == "−1.3"
    assert (show(-0.004), show(-0.0, "{:.1f}"), show(-1e-9, "{:g}")) == ("0.00", "0.0", "−1e-09")


def test_truth_in_words() -> None:
    assert (yes_or_no(True), yes_or_no(False)) == ("yes", "no")
