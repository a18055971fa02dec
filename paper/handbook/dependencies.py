"""Generate the tables of docs/dependencies.md: the installed packages' sizes, licences and reasons.

python -m paper.handbook.dependencies --into docs/dependencies.md

Sizes are measured in the environment that runs this command. The environment must have all extras.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ngt.errors import UserError
from ngt.settings.options import Parser
from paper import pages
from paper.command import one_line_errors
from paper.drawing.table import markdown
from paper.handbook.reasons import GROUPS, REASONS

NAME = "handbook.dependencies"
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
COPYLEFT = re.compile(r"GPL|MPL|EUPL|CDDL|EPL")

# Names of licences in packages' metadata -> their SPDX names.
SPDX = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "University of Illinois/NCSA Open Source License": "NCSA",
}

Packages = dict[str, metadata.Distribution]


def groups() -> dict[str, list[str]]:
    """Return the requirements of the core install, named "core", and of each extra."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return {"core": project["dependencies"], **project["optional-dependencies"]}


def needed(requirements: Iterable[str]) -> Packages:
    """Return the packages that requirements install, with everything that these packages need."""
    found: Packages = {}
    seen, left = set(), [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if (key := (name, frozenset(requirement.extras))) in seen:
            continue
        seen.add(key)
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise UserError(f"{name}: not installed; run `make setup`, then try again") from None
        for further in map(Requirement, found[name].requires or []):
            extras = ("", *requirement.extras)
            if not further.marker or any(further.marker.evaluate({"extra": e}) for e in extras):
                left.append(further)
    return found


def megabytes(packages: Iterable[metadata.Distribution]) -> float:
    """Return the size of all installed files, with compiled Python files, in 10^6 bytes."""
    files = [Path(str(file.locate())) for package in packages for file in package.files or []]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def licence(package: metadata.Distribution) -> str:
    """Return the licence that a package's metadata states."""
    stated = package.metadata
    if "License-Expression" in stated:
        return stated["License-Expression"]
    heads = [text.split(" :: ") for text in stated.get_all("Classifier") or []]
    named = [SPDX[head[-1]] for head in heads if head[0] == "License" and head[-1] in SPDX]
    own = [text.splitlines()[0] for text in stated.get_all("License") or ["not stated"]]
    return (named or own)[0]


def size(value: float) -> str:
    """Format a size with two or three digits, but without decimals of large sizes."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def summary(added: dict[str, Packages]) -> str:
    """Return a table of all groups with the packages that each group adds to the core install."""
    rows = [
        [name, GROUPS[name], str(len(packages)), size(megabytes(packages.values()))]
        for name, packages in added.items()
    ]
    return markdown([["install", "for", "packages added", "MB added"], *rows])


def conditions(packages: Packages) -> str:
    """Return a list of the packages whose licences are not permissive."""
    licences = {name: licence(package) for name, package in sorted(packages.items())}
    found = [f"- {name}: {text}" for name, text in licences.items() if COPYLEFT.search(text)]
    return "\n".join(found)


def direct(requirements: Sequence[str], core: Packages) -> str:
    """Return a table of a group's own requirements. `core` is empty for the core install itself."""
    rows = []
    for text in requirements:
        requirement, packages = Requirement(text), needed([text])
        name = canonicalize_name(requirement.name)
        shown = f"{name}[{','.join(sorted(requirement.extras))}]" if requirement.extras else name
        new = {other: package for other, package in packages.items() if other not in core}
        total = f"{size(megabytes(new.values()))} ({len(new)})" if new else "in the core install"
        own = size(megabytes([packages[name]]))
        rows.append([shown, licence(packages[name]), own, total, REASONS[shown]])
    heads = ["package", "licence", "MB", "MB with dependencies (packages)", "why this one"]
    return markdown([heads, *rows])


def page() -> str:
    """Return the generated part of docs/dependencies.md."""
    wanted = groups()
    installed = {group: needed(texts) for group, texts in wanted.items()}
    core = installed["core"]
    added = {
        group: {n: p for n, p in packages.items() if group == "core" or n not in core}
        for group, packages in installed.items()
    }
    everything = {name: p for packages in installed.values() for name, p in packages.items()}
    parts = [
        summary(added),
        f"These packages have a licence that is not permissive:\n\n{conditions(everything)}\n",
    ]
    for group, texts in wanted.items():
        title = "The core install" if group == "core" else f"The extra `{group}`"
        parts.append(f"## {title}\n\n{direct(texts, {} if group == 'core' else core)}")
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the generated part or, with --into, write it into the page."""
    about = (__doc__ or "").splitlines()[0]
    parser = Parser(prog=f"python -m paper.{NAME}", description=about)
    parser.add_argument("--into", type=Path, help="write between the markers of this page")

    def run() -> None:
        args = parser.parse_args(argv)
        if args.into is None:
            print(page(), end="")
        else:
            pages.write_into(args.into, page(), NAME)

    one_line_errors(NAME, run)


if __name__ == "__main__":
    main()
