"""CONTRIBUTING.md, docs/which-file.md and the files for a forge: what they name exists.

A planted fault in each of five parts is caught by the test file that CONTRIBUTING.md names for it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FORGE = ROOT / ".github"

# For each code file in CONTRIBUTING.md: text that occurs once in it, and a wrong replacement.
FAULTS = {
    "ngt/potential.py": (".square().sum(dim=-1)", ".abs().sum(dim=-1)"),
    "ngt/training/learner.py": ('draws["sac_index"]', 'draws["agent_index"]'),
    "baselines/dac.py": ("F.softplus(z_agent).mean(", "F.softplus(-z_agent).mean("),
    "paper/numbers/scores.py": (".tail(window)", ".head(window)"),
    "workflow/plan.py": ('[receipt, f"{pack}.done", f"{pack}.outcome"]', "[receipt]"),
}


def rooms() -> dict[str, str]:
    """Return the test file of each code file in the table of CONTRIBUTING.md."""
    rows = re.findall(r"^\| [^|]+ \| `([^`|]+\.py)` \| `(tests/[^`|]+\.py)` \|$", GUIDE, re.M)
    return dict(rows)


def smoke_files() -> list[str]:
    match = re.search(r"^SMOKE := (.+?[^\\])$", MAKEFILE, re.M | re.S)
    assert match is not None
    return match[1].replace("\\\n", " ").split()


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.M))


def test_each_of_five_parts_has_a_test_file_that_smoke_runs() -> None:
    assert rooms().keys() == FAULTS.keys()
    assert len({file.split("/")[1] for file in rooms().values()}) >= 4
    assert set(rooms().values()) <= set(smoke_files())
    for file in (*rooms(), *smoke_files()):
        assert (ROOT / file).exists(), file


def test_the_guide_names_commands_that_exist() -> None:
    assert "smoke" in targets()
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", GUIDE, re.M)) <= targets()
    for target in re.findall(r"\]\(([^)#:]+)\)", GUIDE):
        assert (ROOT / target).exists(), target


def test_every_file_of_the_page_exists() -> None:
    page = (ROOT / "docs" / "which-file.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+\? \|(.+)\|$", page, re.M)
    files = [name for row in rows for name in row.split("`")[1::2] if "/" in name]
    assert len(files) > 30
    assert [name for name in files if not (ROOT / name).exists()] == []


def commands_of(data: Any) -> list[str]:
    """Return every `run` of a forge's jobs, and every `entry` of a hook, at any depth."""
    if isinstance(data, list):
        return [command for part in data for command in commands_of(part)]
    if not isinstance(data, dict):
        return []
    own = [value for key, value in data.items() if key in ("run", "entry")]
    return own + commands_of([v for k, v in data.items() if k not in ("run", "entry")])


@pytest.mark.parametrize("file", [".pre-commit-config.yaml", ".github/workflows/test.yml"])
def test_hooks_and_forge_call_the_same_commands(file: str) -> None:
    found = commands_of(yaml.safe_load((ROOT / file).read_text(encoding="utf-8")))
    assert len(found) >= 2
    for command in found:
        program, target = command.split()
        assert program == "make" and target in targets(), command


def test_the_issue_forms_are_complete() -> None:
    forms = [f for f in sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yml")) if f.stem != "config"]
    assert len(forms) == 3
    for file in forms:
        form = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= form.keys(), file.name
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids)) and all(
            part["attributes"]["label"] for part in form["body"]
        )


@pytest.mark.long
@pytest.mark.parametrize("file", FAULTS)
def test_a_planted_fault_is_caught_by_the_parts_test_file(tmp_path: Path, file: str) -> None:
    skipped = shutil.ignore_patterns("__pycache__")
    for name in ("ngt", "baselines", "paper", "workflow", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skipped)
    for name in ("docs", "data", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("pyproject.toml", "README.md", "Snakefile"):
        shutil.copy(ROOT / name, tmp_path)
    right, wrong = FAULTS[file]
    text = (ROOT / file).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (tmp_path / file).write_text(text.replace(right, wrong), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not slow and not long and not gpu", rooms()[file]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout[-2000:]
    assert "1 failed" in done.stdout
