"""Tests of a run's provenance: which code its source hash covers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ngt.errors import UserError
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


# A user's folder: a method in a file, and another method in a package. No module may be executed.
FAIL = "raise RuntimeError\n"
OWN = {
    "file_of_a_test.py": f"{FAIL}import torch, yaml, kit_of_a_test, bag_of_a_test.deep, ngt.deep\n",
    "kit_of_a_test.py": "SCALE = 1\n",
    "bag_of_a_test/deep.py": "x = 1\n",
    "other_of_a_test.py": "x = 1\n",
    "pack_of_a_test/__init__.py": FAIL,
    "pack_of_a_test/sub/__init__.py": "from ..far import x\n",
    "pack_of_a_test/sub/model.py": "import other_of_a_test\nfrom . import near\nfrom .. import up",
    "pack_of_a_test/sub/near.py": "from ....beyond import x\n",
    "pack_of_a_test/up.py": "from .last import x\n",
    "pack_of_a_test/last.py": "x = 1\n",
    "pack_of_a_test/far.py": "x = 1\n",
    "pack_of_a_test/unused.py": "x = 1\n",
}
IN_FILE, IN_PACKAGE = "file_of_a_test:Mine", "pack_of_a_test.sub.model:Mine"


@pytest.fixture
def own(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder outside the checkout, on Python's path, with the files of OWN."""
    folder = tmp_path / "own"
    for name, text in OWN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize(
    ("model", "covered"),
    [
        (IN_FILE, ["file_of_a_test.py", "kit_of_a_test.py", "bag_of_a_test/deep.py"]),
        (IN_PACKAGE, [n for n in OWN if n.startswith("pack") and "unused" not in n]),
    ],
    ids=["file", "package"],
)
def test_a_users_model_is_covered_with_what_it_imports_from_beside_it(
    root: Path, own: Path, model: str, covered: list[str]
) -> None:
    before, changes = hashed(model), []
    assert {"ngt.training.trainer", "ngt.deep"} <= set(provenance.sources(root, [model]))
    for name, text in OWN.items():
        (own / name).write_text(f"{text}\ny = 1\n")
        changes += [name] * (hashed(model) != before)
        (own / name).write_text(text)
    assert changes == covered


def test_a_models_source_hash_leaves_out_libraries(
    root: Path, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check a model that is installed as a file, next to the libraries that it imports."""
    assert not {"torch", "yaml"} & set(provenance.sources(root, [IN_FILE]))
    libraries = tmp_path / "site-packages"
    own.rename(libraries)
    monkeypatch.syspath_prepend(str(libraries))
    found = set(provenance.sources(root, [IN_FILE]))
    assert "file_of_a_test" in found and "kit_of_a_test" not in found


def test_a_model_in_a_script_is_covered(
    root: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ModuleType("script_of_a_test")  # without a spec, as __main__
    script.__file__ = str(own / "file_of_a_test.py")
    monkeypatch.setitem(sys.modules, script.__name__, script)
    before = hashed("script_of_a_test:Mine")
    (own / "kit_of_a_test.py").write_text("SCALE = 2\n")
    assert hashed("script_of_a_test:Mine") != before


@pytest.mark.parametrize("name", ["nowhere_of_a_test", "pack_of_a_test.none", "baselines.none"])
def test_a_model_whose_code_is_not_found_is_refused(own: Path, name: str) -> None:
    with pytest.raises(UserError, match=rf"^model: the code of '{name}' is not found; put .*"):
        hashed(f"{name}:Mine")


def test_code_that_cannot_be_parsed_is_named(own: Path) -> None:
    (own / "kit_of_a_test.py").write_text("x = (\n")
    with pytest.raises(UserError, match=r"kit_of_a_test.py: '\(' was never closed \(line 1\)"):
        hashed(IN_FILE)


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
