"""The commands in README and docs: each parses, and all targets and files in it exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from ngt import cli
from ngt.runs.keys import RunKey
from paper import command, register

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "data" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = ("ngt", "python", "snakemake", "make", "pytest")
ARTEFACTS = {*register.ARTEFACTS, "best_table"}  # docs/new-artefact.md adds best_table


def blocks(page: Path) -> Iterator[str]:
    """Yield the fenced blocks of a page that name no language."""
    inside, language, lines = False, "", []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            if inside and not language:
                yield "\n".join(lines)
            inside, language, lines = not inside, line[3:].strip(), []
        elif inside:
            lines.append(line)


def commands() -> list[str]:
    """Return each of the suite's commands on the pages once, without its comment."""
    found = {}
    for page in PAGES:
        for block in blocks(page):
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                for part in re.split(r"\s&&\s|\s\|\s|;\s|\$\(|\)", line.split("  #")[0]):
                    words = part.split()
                    if words and words[0] in PROGRAMS:
                        found[" ".join(words)] = page.name
    return list(found)


COMMANDS = commands()


def of(*start: str) -> list[list[str]]:
    """Return the remaining words of each command that begins with `start`."""
    split = [[w for w in shlex.split(c) if not w.startswith("$")] for c in COMMANDS]
    return [words[len(start) :] for words in split if words[: len(start)] == list(start)]


def test_the_pages_have_commands() -> None:
    assert len(of("ngt")) > 15 and len(of("python", "-m", "paper")) > 3
    assert len(of("snakemake")) > 8 and len(of("make")) > 3


@pytest.mark.parametrize("words", of("ngt"), ids=" ".join)
def test_an_ngt_command_parses(words: list[str]) -> None:
    if words[0] in ("expert", "record", "ship") and len(words) == 3:
        words = [words[0], "Ant-v4", *words[1:]]  # instead of a shell variable
    args = cli.build_parser(words[0]).parse_args(words)
    for key in args.keys if words[0] == "train" else ():
        if "{" not in key:
            RunKey.parse(key)
    if getattr(args, "scale", None):
        assert (ROOT / "workflow" / "config" / f"{args.scale}.yaml").exists()


@pytest.mark.parametrize("words", of("python", "-m", "paper"), ids=" ".join)
def test_a_paper_command_parses(words: list[str]) -> None:
    if words:
        args = command.build_parser().parse_args(words)
        assert args.artefact in ARTEFACTS
        for file in (*args.config, args.records):
            assert file is None or file.exists() or file.name == "mine.yaml"


def test_what_a_page_has_written_is_ignored_by_git_or_kept_on_purpose() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    files = re.findall(r"--(?:out|json) ([^\s`]+)", text)
    assert len(files) > 6
    kept = ("docs/", "data/", "results/published/")
    assert "/*.npz" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    lost = {name for name in files if not name.startswith((*kept, "results/", "PATH"))}
    lost = {name for name in lost if "/" in name or not name.endswith(".npz")}
    assert not lost, "these files would make a clean checkout dirty"


def test_a_page_that_uses_scale_test_says_that_its_experts_are_bad() -> None:
    used = [page for page in PAGES if any(re.search(r"scale[ =]test", b) for b in blocks(page))]
    assert len(used) > 3
    for page in used:
        words = " ".join(page.read_text(encoding="utf-8").split())
        assert re.search("(worse than|below) a random policy", words), page.name


@pytest.mark.parametrize("words", of("snakemake"), ids=" ".join)
def test_a_snakemake_command_parses(words: list[str]) -> None:
    args = get_argument_parser().parse_args(words)
    for target in args.targets:
        name = Path(target).stem
        assert target == "all" or name in ARTEFACTS, target


@pytest.mark.parametrize("words", of("make"), ids=" ".join)
def test_a_make_command_has_its_target(words: list[str]) -> None:
    done = subprocess.run(
        ["make", "-n", *words, f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_module_that_a_page_runs_exists() -> None:
    for words in of("python", "-m"):
        if words[0] not in ("paper", "pytest"):
            file = ROOT.joinpath(*words[0].split("."))
            assert file.with_suffix(".py").exists() or (file / "__main__.py").exists(), words[0]


def test_every_link_to_a_file_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
