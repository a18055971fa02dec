"""`import ngt`: which packages it loads and needs; and the notebook docs/python.ipynb."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
import pytest

import ngt
from ngt import cli

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "python.ipynb"

WITHOUT = """
import sys
for name in ("yaml", "pandas", "minari", "h5py", "pyarrow"):
    sys.modules[name] = None  # importing it fails
import ngt
from pathlib import Path
from ngt.experience import demos
from ngt.experience.reference import reference_of
from ngt.settings.config import Config, MethodConfig, SacConfig, TrainConfig
from ngt.settings.resolve import resolve
from ngt.training import job
from ngt.training.learner import Member
data = demos.load(Path(sys.argv[1]))
train = TrainConfig(steps=20, eval_every=20, log_every=20, eval_episodes=1, batch=8)
method = MethodConfig(model="ngt.potential:Potential", params={"hidden": [32], "m": 8})
config = Config(methods={"ngt": method}, train=train, sac=SacConfig(hidden=(32,)))
cell = resolve(config, "Pendulum-v1", "ngt", "state-action", 20)
batch = demos.subsample(data, 1, 20, 0)
member = Member(Path("run"), {"run": "run"}, 0, 1, batch, reference_of(data))
job.train(
    cell, [member], "small", print,
    device="cpu", env_workers=0, checkpoint_every=0, fresh=False, restart=False,
)
assert Path("run/run.json").exists()
"""


def test_importing_loads_neither_torch_nor_pandas(tmp_path: Path) -> None:
    code = (
        "import sys, ngt; dir(ngt); ngt.__version__;"
        "print([m for m in ('torch', 'pandas', 'numpy', 'yaml', 'gymnasium') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_training_needs_neither_yaml_nor_pandas(
    tmp_path: Path, run_python: Callable[..., str]
) -> None:
    run_python(tmp_path, ["-c", WITHOUT, str(ROOT / "tests/data/Pendulum-v1.npz")])


def test_every_name_of_the_api_exists_and_has_a_type() -> None:
    assert all(getattr(ngt, name) is not None for name in ngt.__all__)
    assert set(ngt.__all__) <= set(dir(ngt))
    stub = ast.parse((ROOT / "ngt" / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {
        a.name for node in ast.walk(stub) if isinstance(node, ast.ImportFrom) for a in node.names
    }
    assert typed | {"__version__"} == set(ngt.__all__)
    assert (ROOT / "ngt" / "py.typed").exists()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ngt.nothing  # noqa: B018


def test_every_function_of_the_api_states_its_arguments_result_and_errors() -> None:
    things = [getattr(ngt, name) for name in ngt.__all__ if name != "__version__"]
    functions = [thing for thing in things if inspect.isfunction(thing)]
    assert len(functions) == 5
    for function in (*functions, ngt.Controller.predict):
        text = inspect.getdoc(function) or ""
        assert "\nReturns:\n" in text and "\nRaises:\n    UserError: " in text, function
        for name in inspect.signature(function).parameters:
            assert name == "self" or f"\n    {name}: " in text, f"{function.__name__}: {name}"


def test_the_version_is_the_installed_ones(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("9.8.7", None):

        def found(name: str, version: str | None = version) -> str:
            assert name == "ngt-suite"
            if version is None:
                raise metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr(metadata, "version", found)
        with pytest.raises(SystemExit) as stopped:
            cli.main(["--version"])
        assert stopped.value.code == 0
        assert capsys.readouterr().out == f"ngt {version or 'unknown'}\n"


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "results/published").symlink_to(ROOT / "results/published")
    monkeypatch.chdir(tmp_path / "docs")
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in book.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
            exec(compile(cell.source, NOTEBOOK.name, "exec"), names)
    assert "16 episodes" in capsys.readouterr().out
    assert (names["run"].folder / "run.json").exists()
    assert names["run"].folder.is_relative_to("../results/notebook")
    assert [*Path().iterdir()] == [], "the notebook must write nothing beside itself"
    for method, of_one in names["chosen"].groupby("method"):
        settings = of_one[["env", "demos", "mode", "rate"]].drop_duplicates()
        assert len(settings) == 1, f"{method}: a curve must not average runs of several settings"
        assert set(of_one["seed"]) == {0, 1, 2}, method
    curves = names["curves"]
    assert curves.index[-1] == 30_000 and len(curves.columns) == 4 and curves.notna().all(axis=None)
    assert curves["ngt"].iloc[-1] > 0.9 > curves["bc"].iloc[-1], "the last cells must show scores"
    assert names["action"].shape == (7,)


def test_every_link_of_the_notebook_leads_somewhere() -> None:
    text = "\n".join(c.source for c in nbformat.read(NOTEBOOK, as_version=4).cells)
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert targets and all((NOTEBOOK.parent / target).exists() for target in targets)
