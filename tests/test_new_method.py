"""docs/new-method.md, followed step by step: the page's files, config, commands and tests."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import baselines
from ngt import cli
from ngt.runs import provenance
from ngt.settings.resolve import load_model
from paper import command
from paper.drawing import style
from paper.handbook import methods
from tests.pages import ROOT, blocks, commands, read
from tests.workflow.checkouts import quick_snakemake

DOC = read("new-method.md")
README = (ROOT / "README.md").read_text()
NEW = ("flat", "blur", "blur-strong")


def files() -> dict[str, str]:
    """Return the contents of the reader's files by path, with the final `mine.yaml`."""
    flat, blur, _ = blocks(DOC, "python")
    return {
        "baselines/flat.py": flat,
        "baselines/blur.py": blur,
        "mine.yaml": blocks(DOC, "yaml")[-1],
    }


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the reader's folder; modules in its `baselines` can be imported from `baselines`."""
    (tmp_path / "baselines").mkdir()
    for name, text in files().items():
        assert f"`{name}`" in DOC
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    paths = [*baselines.__path__, str(tmp_path / "baselines")]
    monkeypatch.setattr(baselines, "__path__", paths)
    for name in ("flat", "blur"):
        monkeypatch.delitem(sys.modules, f"baselines.{name}", raising=False)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)  # a run records the hash of these files
    yield tmp_path
    provenance.source_hash.cache_clear()
    provenance.provenance.cache_clear()


def test_the_method_that_is_shown_is_the_one_that_runs() -> None:
    assert blocks(DOC, "python")[2] in (ROOT / "baselines" / "sqil.py").read_text()


def test_the_commands_train_and_draw(reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the page's commands in order: first with one method in the config, then with all."""
    drawn: list[set[str]] = []
    save = style.save

    def watched(figure: Any, *args: Any, **options: Any) -> None:
        drawn.append({t.get_text() for legend in figure.legends for t in legend.get_texts()})
        save(figure, *args, **options)

    monkeypatch.setattr(style, "save", watched)
    (reader / "mine.yaml").write_text(blocks(DOC, "yaml")[0])
    ran = 0
    for name, *arguments in commands(DOC):
        if name == "ngt":
            if "blur" in arguments[1]:
                (reader / "mine.yaml").write_text(files()["mine.yaml"])
            cli.main(arguments)
        elif arguments[:3] == ["-m", "paper", "main_figure"]:
            command.main(arguments[2:])
        else:
            continue
        ran += 1
    assert ran == 5
    assert "flat reward" in drawn[0] and {"blurred", "blurred, 0.5"} <= drawn[1]
    for name in ("flat.pdf", "blur.pdf"):
        assert (reader / "results" / name).read_bytes().startswith(b"%PDF")
    assert not (reader / "results/main_figure.pdf").exists(), "the main figure must not be redrawn"
    runs = reader / "results/test/runs/Pendulum-v1"
    for method in NEW:
        folder = runs / method / "state-action-demos1-rate20/seed0"
        assert (folder / "run.json").exists()
        columns = (folder / "train.csv").read_text().splitlines()[0].split(",")
        assert ("z_expert" in columns) == (method != "flat")
    both = [(runs / m / "state-action-demos1-rate20/seed0/train.csv").read_text() for m in NEW[1:]]
    assert both[0] != both[1], "the variant must train differently"


def test_the_learned_one_could_stay(reader: Path) -> None:
    """Check the docstring that docs/methods.md needs, and the settings of the method's variant."""
    cls = load_model("baselines.blur:Blur", "")
    assert set(methods.text_of(cls).labelled) == set(methods.LABELS)
    entry = yaml.safe_load(files()["mine.yaml"])["methods"]["blur-strong"]
    assert set(entry["params"]) <= set(vars(cls.Config()))


def checkout(folder: Path, *names: str) -> Path:
    """Copy the named parts of the source tree and add the new files; return the folder."""
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    for name, text in files().items():
        (folder / name).write_text(text)
    return folder


def test_the_workflow_plans_it(tmp_path: Path) -> None:
    """Plan the page's Snakemake command: settings, an expert and one pack for each method."""
    folder = checkout(
        tmp_path / "suite",
        "Snakefile",
        "workflow",
        "ngt",
        "baselines",
        "paper",
        "tests/data",
    )
    (command,) = (c for c in commands(DOC) if c[0] == "snakemake")
    done = quick_snakemake(folder, "--dry-run", *command[1:])
    shown = done.stdout
    assert done.returncode == 0, shown
    assert all(f"train {name} on Pendulum-v1" in shown for name in NEW)
    assert re.search(r"^train +4$", shown, re.MULTILINE) and "main_figure" in shown


@pytest.mark.long
def test_the_contract_tests_try_it(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """Run the contract tests with the page's entry in base.yaml."""
    folder = checkout(
        tmp_path / "suite",
        "workflow",
        "ngt",
        "baselines",
        "pyproject.toml",
        "tests/conftest.py",
        "tests/test_methods.py",
        "tests/data",
    )
    base = folder / "workflow/config/base.yaml"
    entry = files()["mine.yaml"].partition("figures:")[0].removeprefix("methods:\n")
    text = base.read_text()
    assert text.count("\nmethods:\n") == 1
    base.write_text(text.replace("\nmethods:\n", f"\nmethods:\n{entry}"))
    (command,) = (c for c in commands(DOC) if c[1:3] == ["-m", "pytest"])
    assert command[0] == "python"
    shown = run_python(folder, [*command[1:], "-q", "-p", "no:cacheprovider"])
    passed = re.search(r"(\d+) passed, (\d+) skipped", shown)
    assert passed and int(passed[1]) >= 45 and int(passed[2]) == 2, shown


def test_the_readme_links_the_page() -> None:
    assert "(docs/new-method.md)" in README
