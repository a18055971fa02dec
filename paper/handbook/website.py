"""Hooks for the docs site, which `make docs` builds: mkdocs.yml names them, and mkdocs calls them.

The hooks let a build print only warnings, each of which makes the build fail. They add generated
pages and pages from outside docs/. They also adapt each link to a file of the repository. If the
site has a page for the file, the link leads to this page; otherwise the link is replaced by the
file's name.
"""

from __future__ import annotations

import argparse
import logging
import posixpath
import re
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import ngt
from ngt import cli
from ngt.experience.demos import Demos
from paper import command

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100  # width of the help texts, in characters

# The site's files that come from outside docs/.
ELSEWHERE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "experts.md": "data/README.md",
    "curves.png": "data/curves.png",
}
API = """# Python API

This page documents the public names of `import ngt`, and the `Demos` class of demonstrations, which
these names accept and return. In shapes, `obs` and `act` are the sizes of a task's observations and
actions. `UserError` stands for `ngt.errors.UserError`; its message is one line that names the
field, the value and the fix. [The notebook](python.ipynb) shows these names in use.
`ngt.__version__` is the version of the suite."""
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
log = logging.getLogger("mkdocs.plugins.website")  # a warning in this log fails a strict build


def on_startup(command: str, dirty: bool) -> None:
    """Let a build print warnings but no progress.

    mkdocs's own option --quiet also hides warnings, and a strict build does not count hidden ones.
    """
    if command == "build":
        logging.getLogger("mkdocs").setLevel(logging.WARNING)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from outside docs/ and the generated pages."""
    for name, source in ELSEWHERE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    for name, text in {"reference.md": reference(), "api.md": api()}.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page's Markdown, with its links changed to lead to pages of the site."""
    return relink(markdown, source_of(page.file.src_uri), {source_of(f.src_uri) for f in files})


def source_of(name: str) -> str:
    """Return the path in the repository of the file from which a file of the site is made."""
    return ELSEWHERE.get(name, f"docs/{name}")


def relink(markdown: str, source: str, known: set[str]) -> str:
    """Return a page's Markdown, with its links changed to lead to pages of the site.

    source: the page's path in the repository.
    known: the paths in the repository of all files of the site.
    """
    names = {repository: name for name, repository in ELSEWHERE.items()}

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if ":" in target:
            return match[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if file in known:
            name = names.get(file) or posixpath.relpath(file, "docs")
            return f"[{text}]({name}{anchor})"
        if not (ROOT / file).exists():
            log.warning("%s: the link to %s leads nowhere", source, target)
        return f"`{file}`" if text.strip("`/") in file else f"{text} (`{file}`)"

    return LINK.sub(link, markdown)


def reference() -> str:
    """Return a page with the help texts of all `ngt` commands and of `python -m paper`."""
    parts = ["# Command reference\n\nThe help of each command, as `--help` prints it."]
    for name in cli.COMMANDS:
        parts.append(f"## ngt {name}\n\n{fenced(sub_parser(name))}")
    parts.append(f"## python -m paper\n\n{fenced(command.build_parser())}")
    return "\n\n".join(parts) + "\n"


def sub_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of an `ngt` command."""
    (commands,) = (
        action
        for action in cli.build_parser(name)._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    parser: argparse.ArgumentParser = commands.choices[name]
    return parser


def fenced(parser: argparse.ArgumentParser) -> str:
    """Return a parser's help text, with the same width on every terminal."""
    kind: Any = parser.formatter_class
    parser.formatter_class = partial(kind, width=WIDTH)
    return f"```text\n{parser.format_help()}```"


def api() -> str:
    """Return a page that lists every public name of `import ngt`.

    mkdocstrings inserts the documentation of each name.
    """
    names = vars(ngt)["__all__"]  # `ngt.__all__` would be an error for the type checker
    things = {f"ngt.{name}": getattr(ngt, name) for name in names if name != "__version__"}
    things["ngt.experience.demos.Demos"] = Demos
    parts = [f"## {name}\n\n::: {it.__module__}.{it.__name__}" for name, it in things.items()]
    return "\n\n".join([API, *parts])
