"""The types that settings can have. test_config.py has the tests of parsing and of the schema."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import pytest

from ngt.errors import UserError
from ngt.settings.schema import check_types


def with_type(hint: Any) -> type:
    return dataclasses.make_dataclass("Config", [("odd", hint)])


GOOD = [
    bool,
    int,
    float,
    str,
    Any,
    Literal["a", "b"],
    int | None,
    tuple[int, ...],
    tuple[Literal["a"], ...],
    dict[str, Any],
    dict[str, dict[str, float]],
    with_type(float | None),
]
BAD = [
    (set[int], "set[int]"),
    (list[int], "list[int]"),
    (tuple, "tuple"),
    (tuple[int, str], "tuple[int, str]"),
    (dict, "dict"),
    (dict[int, str], "dict[int, str]"),
    (int | str, "int | str"),
    (complex, "complex"),
    (tuple[set[int], ...], "tuple[set[int], ...]"),
    (with_type(bytes), "Config"),
]


@pytest.mark.parametrize("hint", GOOD)
def test_settings_can_have_these_types(hint: Any) -> None:
    check_types(with_type(hint), "mine")


@pytest.mark.parametrize(("hint", "name"), BAD)
def test_other_types_are_refused_with_the_field(hint: Any, name: str) -> None:
    with pytest.raises(UserError) as error:
        check_types(with_type(hint), "mine")
    assert str(error.value) == (
        f"mine.odd: a setting can't have the type {name}; use bool, int, float, str, Literal, "
        f"tuple[T, ...], dict[str, T] or T | None"
    )
