"""docs/new-env.md, followed step by step: the page's module, settings and commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ngt import cli
from ngt.experience import demos, envs
from paper import command
from tests.pages import ROOT, blocks, commands, read
from tests.workflow.checkouts import jobs, quick_snakemake

PAGE = read("new-env.md")
ENV = "Swimmer-v5"
MODULE, (CONFIG, ADDED) = blocks(PAGE, "python")[0], blocks(PAGE, "yaml")
KEY = f"{ENV}/{{}}/state-action-demos1-rate20/seed0"
# As short as possible: one evaluation, and one run for each method of the page's figure.
SHORT = """
scale: test
train: {steps: 40, eval_every: 40, eval_episodes: 1, log_every: 40, learning_starts: 20}
expert: {episodes: 1}
"""


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the reader's folder, with the page's module and the first version of `mine.yaml`."""
    assert "`my_envs.py`" in PAGE and "`mine.yaml`" in PAGE
    (tmp_path / "my_envs.py").write_text(MODULE)
    write(tmp_path, CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(envs, "TASKS", dict(envs.TASKS))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_envs", raising=False)
    return tmp_path


def write(folder: Path, text: str) -> None:
    """Write `mine.yaml`, with a figure of one run per method."""
    settings = yaml.safe_load(text) | yaml.safe_load(SHORT)
    settings["figures"]["main_figure"] |= {"demos": [1], "seeds": [0]}
    (folder / "mine.yaml").write_text(yaml.safe_dump(settings))


def of(name: str) -> list[list[str]]:
    """Return the arguments of each command on the page that runs this program, in order."""
    found = [words[1:] for words in commands(PAGE) if words[0] == name]
    assert found
    return found


def arrays(file: Path) -> None:
    """Write random demonstrations as plain arrays, which the page calls `arrays.npz`."""
    rng = np.random.default_rng(0)
    last = np.arange(1000) == 999
    np.savez(
        file,
        observations=rng.normal(size=(1000, 8)),
        actions=rng.uniform(-1, 1, (1000, 2)),
        rewards=np.ones(1000),
        terminals=np.zeros_like(last),
        timeouts=last,
    )


def test_every_block_of_the_page_is_followed() -> None:
    assert len(blocks(PAGE, "python")) == 1 and {words[0] for words in commands(PAGE)} == {
        "ngt",
        "snakemake",
    }
    assert len(re.findall("^```", PAGE, re.MULTILINE)) == 2 * 5


def test_a_module_in_the_working_folder_is_found(reader: Path) -> None:
    """Start the command as its script does, which does not put the working folder on the path."""
    start = "from ngt.__main__ import main; main()"
    words = [sys.executable, "-P", "-c", start, "config", "--config", "mine.yaml"]
    clean = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=reader, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["imports"] == ["my_envs"]


@pytest.mark.slow
def test_the_commands_train_an_expert_and_imitate_it(
    reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run the commands of `ngt`, and those that the page names as taking `--config mine.yaml`."""
    arrays(reader / "arrays.npz")
    expert, record, imports = of("ngt")
    assert [words[0] for words in (expert, record, imports)] == ["expert", "record", "import"]
    cli.main(expert)
    cli.main(record)
    named = (
        "`ngt train`, `ngt evaluate`, `ngt watch` and `ngt video` also take `--config mine.yaml`"
    )
    assert named in PAGE
    own = ["--config", "mine.yaml"]
    cli.main(["train", KEY.format("ngt"), KEY.format("bc"), *own])
    cli.main(["evaluate", f"results/test/runs/{KEY.format('ngt')}", "--episodes", "1", *own])
    capsys.readouterr()
    cli.main(["watch", *own, "--figure", "main_figure"])
    assert "2 runs at scale test: 2 finished" in capsys.readouterr().out
    command.main(["main_figure", *own])
    assert Path("results/main_figure.pdf").read_bytes().startswith(b"%PDF")

    cli.main(imports)
    assert demos.load(reader / "swimmer.npz", ENV).length.tolist() == [999], (
        "the last step is omitted"
    )
    write(reader, CONFIG + ADDED)
    capsys.readouterr()
    cli.main(["watch", *own, "--figure", "main_figure"])
    assert "2 runs at scale test: 2 stale" in capsys.readouterr().out, "other demonstrations"


@pytest.mark.slow
def test_the_workflow_plans_an_expert_only_without_demonstrations(
    reader: Path, tmp_path_factory: Any
) -> None:
    """Plan the page's Snakemake command before and after `swimmer.npz` is added."""
    folder = tmp_path_factory.mktemp("suite")
    for name in ("Snakefile", "workflow", "ngt", "baselines", "paper", "tests/data"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    arrays(reader / "arrays.npz")
    cli.main(of("ngt")[-1])
    for name in ("my_envs.py", "swimmer.npz"):
        shutil.copy(reader / name, folder)
    (words,) = of("snakemake")
    plans = []
    for text in (CONFIG, CONFIG + ADDED):
        write(folder, text)
        done = quick_snakemake(folder, "--dry-run", *words)
        assert done.returncode == 0, done.stdout
        plans.append(jobs(done.stdout))
    assert [plan.get("expert", 0) for plan in plans] == [1, 0]
    assert [(plan["train"], plan["figure"]) for plan in plans] == [(2, 1), (2, 1)]
