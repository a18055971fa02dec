"""Tests of a run's provenance: which code its source hash covers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ngt.runs import provenance
from ngt.settings.load import load

FILES = {
    "ngt/__init__.py": "",
    "ngt/training/__init__.py": "",
    "ngt/training/trainer.py": "from ngt.deep import LIMIT\n\nSTEPS = LIMIT\n",
    "ngt/deep.py": '"""Text."""\n\nLIMIT = 3  # a reason\n',
    "ngt/potential.py": "",
    "ngt/reward.py": "",
    "ngt/command.py": "from ngt.training import trainer\n",
    "baselines/__init__.py": "",
    "baselines/one.py": "x = 1\n",
}


MODELS = sorted({m.model for m in load({"scale": "paper"}).methods.values()} - {""})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with a small package, whose code is hashed in place of the suite's."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    yield tmp_path
    provenance.source_hash.cache_clear()
    provenance.provenance.cache_clear()


def hashed(*models: str) -> str:
    """Return the source hash, computed anew from the files."""
    provenance.source_hash.cache_clear()
    return provenance.source_hash(*models)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ngt/deep.py", '"""Other text,\nlonger."""\nLIMIT   =   3\n# another reason\n'),
        ("ngt/command.py", "from ngt.training import trainer\n\nx = 1\n"),
        ("ngt/unused.py", "x = 1\n"),
        ("baselines/notes.txt", "not code"),
    ],
    ids=["wording", "importer", "unused", "text"],
)
def test_what_decides_no_number_leaves_the_source_hash(root: Path, name: str, text: str) -> None:
    before = hashed()
    (root / name).write_text(text)
    assert hashed() == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ngt/deep.py", '"""Text."""\n\nLIMIT = 4  # a reason\n'),
        ("ngt/reward.py", "x = 1\n"),
        ("baselines/one.py", "x = 2\n"),
        ("baselines/two.py", "x = 1\n"),
    ],
    ids=["import of an import", "model", "baseline", "new baseline"],
)
def test_what_may_decide_a_number_changes_the_source_hash(root: Path, name: str, text: str) -> None:
    before = hashed()
    (root / name).write_text(text)
    assert hashed() != before


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("ngt/deep.py", True),
        ("baselines/one.py", True),
        ("baselines/two.py", False),
        ("ngt/potential.py", False),
    ],
)
def test_a_runs_source_hash_leaves_out_other_models(root: Path, name: str, changes: bool) -> None:
    before = hashed("baselines.one:One")
    (root / name).write_text("x = 2\n")
    assert (hashed("baselines.one:One") != before) is changes


def test_the_source_hash_covers_the_trainer_its_imports_and_every_model() -> None:
    covered = set(provenance.sources(provenance.ROOT))
    assert {model.partition(":")[0] for model in MODELS} <= covered
    assert {"ngt.training.trainer", "ngt.agent.sac", "ngt.experience.replay"} <= covered
    assert not {"ngt.cli", "ngt.runs.published", "ngt.runs.table", "ngt.bench.cpu"} & covered


# A new process for each model would import torch each time, so one process forks for each.
LOAD = """
import os, sys
from importlib import import_module
import gymnasium, torch
for model in sys.argv[1:]:
    if not os.fork():
        import_module(model)
        import_module("ngt.training.trainer")
        print(model, *sys.modules, flush=True)
        os._exit(0)
    os.wait()
"""


def test_no_training_loads_a_module_that_its_source_hash_leaves_out() -> None:
    modules = [model.partition(":")[0] for model in MODELS]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *modules],
        cwd=provenance.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [model for model, *_ in lines] == modules
    for model, *names in lines:
        loaded = {m for m in names if m.split(".")[0] in ("ngt", "baselines")}
        assert {model, "ngt.training.trainer"} <= loaded
        assert loaded <= set(provenance.sources(provenance.ROOT, [f"{model}:"])), model


def test_a_folder_that_is_no_checkout_has_no_commit(root: Path) -> None:
    provenance.provenance.cache_clear()
    told = provenance.provenance()
    assert told["commit"] is None and told["dirty"] is None
