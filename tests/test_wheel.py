"""The wheel: its content, and its commands in an environment without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ngt.runs.provenance import source_hash

ROOT = Path(__file__).resolve().parents[1]
BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "ngt", "baselines", "data")
BUILT_FROM += ("workflow", "paper", "tests/data/Pendulum-v1.npz")
SMALL = ["--scale", "test", "--set", "train.steps=40", "--set", "train.eval_every=20"]
SMALL += ["--set", "train.log_every=20", "--set", "train.eval_episodes=1"]
KEY = "Pendulum-v1/{}/state-action-demos1-rate20/seed0"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Build a wheel from a copy of the checkout and install it next to the locked packages."""
    folder = tmp_path_factory.mktemp("wheel")
    source, env, work = folder / "source", folder / "env", folder / "work"
    work.mkdir()
    for name in BUILT_FROM:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=skipped)
        else:
            shutil.copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", env], check=True)
    (site,) = env.glob("lib/python*/site-packages")
    pip = [env / "bin/python", "-m", "pip", "--disable-pip-version-check"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([*pip, "uninstall", "--yes", "setuptools"], **quiet)  # the locked one is newer
    locked = [path for path in sys.path if path.endswith("site-packages")]
    (site / "locked.pth").write_text("\n".join(locked) + "\n")
    before = {path.name for path in site.iterdir()}
    offline = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *offline, "--no-build-isolation", "-w", folder, source]
    subprocess.run(build, **quiet)
    (wheel,) = folder.glob("*.whl")
    install = [*pip, "install", *offline, "--ignore-installed", wheel]
    subprocess.run(install, **quiet)
    added = {path.name for path in site.iterdir()} - before
    return SimpleNamespace(env=env, work=work, wheel=wheel, site=site, added=added)


@pytest.fixture(scope="module")
def run(place: SimpleNamespace) -> Callable[..., str]:
    """Return run(program, *arguments, code=0), which runs a program and returns its output."""

    def call(program: str, *arguments: str, code: int = 0) -> str:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        done = subprocess.run(
            [place.env / "bin" / program, *arguments],
            cwd=place.work,
            env=clean
            | {"MINARI_DATASETS_PATH": str(place.work / "minari"), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    return call


def test_what_the_wheel_holds(place: SimpleNamespace) -> None:
    names = set(zipfile.ZipFile(place.wheel).namelist())
    tops = {name.split("/")[0] for name in names}
    assert tops == {"ngt", place.wheel.name.rsplit("-", 3)[0] + ".dist-info"} == place.added
    inside = {name.removeprefix("ngt/checkout/") for name in names if "/checkout/" in name}
    for shipped in ("baselines/dac.py", "workflow/config/base.yaml", "data/Pusher-v5/demos.npz"):
        assert shipped in inside
    assert {name.split("/")[0] for name in inside} == {"baselines", "data", "tests", "workflow"}
    assert {"ngt/py.typed", "ngt/__init__.pyi"} <= names


def test_python_finds_the_package_and_nothing_else(place: SimpleNamespace, run: Any) -> None:
    code = "import ngt; from ngt.runs import provenance as p; p.ROOT; "
    code += "print(ngt.__file__, ngt.__version__, p.source_hash(), p.provenance()['commit']); "
    code += "print(ngt.load_policy('Pusher-v5').predict([0.0] * 23).shape)"
    first, second = run("python", "-c", code).splitlines()[-2:]
    version = place.wheel.name.split("-")[1]
    assert first == f"{place.site / 'ngt/__init__.py'} {version} {source_hash()} None"
    assert second == "(7,)"
    for name in ("paper", "baselines", "workflow"):
        assert f"No module named '{name}'" in run("python", "-c", f"import {name}", code=1)


def test_the_commands_work_in_an_empty_folder(place: SimpleNamespace, run: Any) -> None:
    assert run("ngt", "--version") == f"ngt {place.wheel.name.split('-')[1]}\n"
    assert "finished in" in run("ngt", "expert", "Pendulum-v1", *SMALL)
    assert "episodes, return" in run("ngt", "record", "Pendulum-v1", *SMALL)
    run("ngt", "record", "Pendulum-v1", "--scale", "test", "--random", "--out", "random.npz")
    run("ngt", "export", "minari", "random.npz", "--id", "lab/random-v0")
    how = ["--env", "Pendulum-v1", "--actions", "env", "--scale", "test", "--out", "back.npz"]
    run("ngt", "import", "minari", "lab/random-v0", *how)
    for method in ("ngt", "dac-r"):  # dac-r is in baselines
        said = run("ngt", "train", KEY.format(method), *SMALL, "--demos", "back.npz")
        assert "finished in" in said
    folder = f"results/test/runs/{KEY.format('dac-r')}"
    assert "mean return" in run("ngt", "evaluate", folder, "--episodes", "1")
    assert "methods" in run("ngt", "config")


def test_what_needs_a_checkout_says_so(run: Any) -> None:
    assert "need a checkout" in " ".join(run("ngt", "--help").split())
    assert "ship with a checkout" in run("ngt", "ship", "Pendulum-v1", code=2)
    assert "No module named" in run("python", "-m", "paper.handbook.video", "Hopper-v4", code=1)
