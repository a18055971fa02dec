"""The first setting that differs between a result and the config."""

from __future__ import annotations

from typing import Any

import pytest

from ngt.settings.difference import difference, flat


def test_flat() -> None:
    assert flat({"a": 1, "b": {"c": [2], "d": {"e": None}}, "f": {}}) == {
        "a": 1,
        "b.c": [2],
        "b.d.e": None,
    }


@pytest.mark.parametrize(
    ("made", "wanted", "said"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1}}, ""),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b is 1 in the records and 2 in the config"),
        ({"x": "on"}, {"x": True}, 'x is "on" in the records and true in the config'),
        ({}, {"new": 2}, "new is not set in the records and 2 in the config"),
        ({"old": 2}, {}, "old is 2 in the records and not set in the config"),
        ({"z": (1, 2)}, {"z": [1, 2]}, ""),
        (
            {"demos_source": "a", "z": 1},
            {"demos_source": "b", "z": 2},
            "z is 1 in the records and 2 in the config",
        ),
        (
            {"demos_source": "a", "z": 1},
            {"demos_source": "b", "z": 1},
            'demos_source is "a" in the records and "b" in the config',
        ),
    ],
)
def test_difference(made: dict[str, Any], wanted: dict[str, Any], said: str) -> None:
    assert difference(made, wanted, "the records") == said
