"""Libraries of the package's extras."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ngt.errors import UserError
from ngt.foreign.extras import EXTRAS, library

ROOT = Path(__file__).resolve().parents[3]


def test_the_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert {*EXTRAS, "dev"} == extras.keys()
    for name in EXTRAS.keys() - {"formats"}:  # `formats` has a bound, and leaves out minari's own
        assert EXTRAS[name].replace("'", "").split() == extras[name]


def test_a_missing_library_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^x: needs the package nowhere .*pip install tensorboard"):
        library("nowhere.at_all", "x", "tensorboard")
    assert library("json", "x", "video").loads("1") == 1
