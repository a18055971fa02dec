"""The generated part of docs/dependencies.md, and how sizes and licences are found."""

from __future__ import annotations

import re
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from paper import pages
from paper.handbook import dependencies
from paper.handbook.reasons import GROUPS, REASONS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "dependencies.md"
SIZES = re.compile(r"\| (?:[\d.]+(?: \(\d+\))?|in the core install) (?=\|)")


class Package:
    """A package that is not installed, with the parts of a distribution that the code reads."""

    def __init__(self, *files: Path, requires: tuple[str, ...] = (), **stated: str) -> None:
        self.files, self.requires, self.metadata = [Located(f) for f in files], requires, Message()
        for name, text in stated.items():
            self.metadata[name.replace("_", "-")] = text


class Located:
    """A file of a package, as importlib.metadata lists it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def locate(self) -> Path:
        return self.path


def test_needed_follows_requirements_and_extras_once(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: dict[str, Any] = {
        "first": Package(requires=("second[more]>=1", "absent; python_version < '3'")),
        "second": Package(requires=("first", "third; extra == 'more'", "absent; extra == 'most'")),
        "third": Package(),
    }

    def find(name: str) -> Any:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "distribution", find)
    assert dependencies.needed(["First"]).keys() == {"first", "second", "third"}
    assert dependencies.needed(["second"]).keys() >= {"first", "second"}
    with pytest.raises(UserError, match="absent: not installed; run `make setup`"):
        dependencies.needed(["absent"])


def test_sizes_are_those_of_the_files_that_exist(tmp_path: Path) -> None:
    for name, length in (("a", 1_500_000), ("b.pyc", 500_000)):
        (tmp_path / name).write_bytes(bytes(length))
    packages: list[Any] = [Package(tmp_path / "a", tmp_path / "gone"), Package(tmp_path / "b.pyc")]
    assert dependencies.megabytes(packages) == 2.0
    assert [dependencies.size(value) for value in (0.04, 9.94, 10.4, 1869.7)] == [
        "0.0",
        "9.9",
        "10",
        "1870",
    ]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"License_Expression": "MIT", "License": "other"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: MIT License", "License": "x"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: Odd", "License": "LGPL v2.1"}, "LGPL v2.1"),
        ({"License": "Apache 2.0\n\ntext"}, "Apache 2.0"),
        ({}, "not stated"),
    ],
)
def test_the_licence_that_a_package_states(stated: dict[str, str], expected: str) -> None:
    package: Any = Package(**stated)
    assert dependencies.licence(package) == expected


def test_the_page_shows_what_is_installed() -> None:
    """Compare packages, licences and reasons, but not sizes, which depend on the platform.

    `python -m paper.handbook.dependencies --into docs/dependencies.md` updates the page.
    """
    _, written, _ = pages.between(PAGE.read_text(encoding="utf-8"), "", dependencies.NAME)
    made = dependencies.page()
    assert SIZES.sub("| ", written) == SIZES.sub("| ", made)
    assert len(SIZES.findall(made)) == 2 * (len(GROUPS) + len(REASONS))
    assert "- pygame-ce: LGPL v2.1\n" in made


def test_every_package_has_a_reason_and_no_reason_is_left_over() -> None:
    wanted = [text for texts in dependencies.groups().values() for text in texts]
    names = {re.split(r"[<>=]", text)[0].lower() for text in wanted}
    assert names == REASONS.keys()
    assert dependencies.groups().keys() == GROUPS.keys()


def test_the_command_writes_between_the_markers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dependencies, "page", lambda: "tables\n")
    dependencies.main([])
    assert capsys.readouterr().out == "tables\n"
    page = tmp_path / "page.md"
    begin, end = pages.markers(dependencies.NAME)
    page.write_text(f"head\n{begin}old\n{end}tail\n")
    dependencies.main(["--into", str(page)])
    assert page.read_text() == f"head\n{begin}tables\n{end}tail\n"
