"""docs/new-artefact.md, followed step by step: the page's file, entry and commands."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, commands, read

DOC = read("new-artefact.md")
TREE = ("Snakefile", "workflow", "ngt", "baselines", "paper", "tests/data")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the source tree with the page's file and entry added."""
    folder = tmp_path_factory.mktemp("suite")
    for name in (*TREE, "results/published"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    file, entry = blocks(DOC, "python")
    assert "`paper/tables/best.py`" in DOC
    (folder / "paper/tables/best.py").write_text(file)
    register = folder / "paper/register.py"
    text = register.read_text()
    head, found, tail = text.partition("    for artefact in (\n")
    assert found
    register.write_text(head + found + textwrap.indent(f"{entry.rstrip()},\n", " " * 8) + tail)
    return folder


def arguments(number: int) -> list[str]:
    """Return the arguments that one of the page's commands passes to Python."""
    command = commands(DOC)[number]
    if command[0] == "snakemake":
        command = ["python", "-m", command[0], "--dry-run", *command[1:]]
    return command[1:]


def test_the_command_makes_the_table(checkout: Path, run_python: Callable[..., str]) -> None:
    shown = run_python(checkout, arguments(0), PYTHONPATH=str(checkout))
    assert shown.startswith("| env | demonstrations | best method | mean score |")
    assert shown.count("| Pendulum-v1 | ") == len({*re.findall(r"Pendulum-v1 \| (\d+)", shown)}) > 0
    assert shown.endswith("results/best.csv\n")
    for ending in ("csv", "tex", "json"):
        assert (checkout / f"results/best.{ending}").exists()


@pytest.mark.slow
def test_the_workflow_plans_it(checkout: Path, run_python: Callable[..., str]) -> None:
    shown = run_python(checkout, arguments(1), PYTHONPATH=str(checkout))
    assert "make best_table at scale quick" in shown
    assert not re.search(r"^train ", shown, re.MULTILINE)
