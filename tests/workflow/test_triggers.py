"""What the workflow makes again after a change, and what it keeps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ngt.runs.keys import resolve_key, run_table
from ngt.runs.receipt import receipt_hash
from ngt.settings.load import load
from ngt.settings.resolve import config_hash
from tests.workflow.checkouts import (
    EVERY,
    FIGURE,
    OTHER,
    RUN,
    SMALL,
    begin,
    checkout,
    jobs,
    planned_small,
    quick_snakemake,
    run_small,
    small,
    snakemake,
    unstamped,
)

# --dist loadfile runs this file in one process, so that its tests share the first figure.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = small(tmp_path_factory.mktemp("content") / "suite")
    done = snakemake(folder, "--configfile", "base.yaml", "--", FIGURE)
    assert done.returncode == 0 and jobs(done.stdout) == EVERY, done.stdout
    return folder


def copied(drawn: Path, tmp_path: Path) -> Path:
    """Return a copy of the checkout without Snakemake's metadata, as in another clone."""
    folder = tmp_path / "clone"
    shutil.copytree(drawn, folder, ignore=shutil.ignore_patterns(".snakemake"))
    return folder


def whole_copy(drawn: Path, tmp_path: Path) -> Path:
    """Return a copy of the checkout with Snakemake's metadata."""
    folder = tmp_path / "suite"
    shutil.copytree(drawn, folder)
    return folder


@pytest.mark.parametrize("lost", ["copied", "touch", "cleanup", "mtime"])
def test_changed_settings_are_planned_however_the_trigger_is_lost(
    drawn: Path, tmp_path: Path, lost: str
) -> None:
    folder = whole_copy(drawn, tmp_path)
    more: tuple[str, ...] = ()
    if lost == "copied":
        shutil.rmtree(folder / ".snakemake")
    elif lost == "touch":
        run_small(folder, "other", "--touch")
    elif lost == "cleanup":
        file = RUN.format(0)
        receipt = next((folder / file).glob("done.*")).relative_to(folder)
        files = (FIGURE, str(receipt))
        quick_snakemake(folder, "--configfile", "base.yaml", "--cleanup-metadata", *files)
    else:
        more = ("--rerun-triggers", "mtime")
    assert planned_small(folder, "other", *more) == EVERY


@pytest.mark.long
def test_there_and_back_and_a_false_receipt(drawn: Path, tmp_path: Path) -> None:
    """Use the settings A, B and A again; check which jobs run or are planned each time."""
    folder, mtime = copied(drawn, tmp_path), ("--rerun-triggers", "mtime")
    first = (folder / FIGURE).read_bytes()
    config = load(other_at(folder))
    for seed in (0, 1):  # a fault may leave such receipts
        key = run_table(config)[seed]
        (
            folder
            / RUN.format(seed)
            / f"done.{receipt_hash(str(key), config_hash(resolve_key(config, key)))}"
        ).touch()
    done = run_small(folder, "other", *mtime)
    assert done.returncode == 0 and jobs(done.stdout) == EVERY, done.stdout
    for seed in (0, 1):
        made = json.loads((folder / RUN.format(seed) / "config.json").read_text())
        assert made["params"]["m"] == 7
        assert len(list((folder / RUN.format(seed)).glob("done.*"))) == 1
    second = (folder / FIGURE).read_bytes()
    assert first != second
    shutil.copy(
        drawn / FIGURE, folder / FIGURE
    )  # drawn with the former settings, but now the newest file
    assert planned_small(folder, "other", *mtime) == {"figure": 1}
    back = {"run": 2, "figure": 1}
    before = state(folder / "results/test")
    assert planned_small(folder, "base", *mtime) == back, "former runs must come back untrained"
    assert state(folder / "results/test") == before, "a dry run must move nothing"
    done = run_small(folder, "base", *mtime)
    assert done.returncode == 0 and jobs(done.stdout) == back, done.stdout
    assert done.stdout.count("came back from results/test/former/") == 2
    for seed in (0, 1):
        file = f"{RUN.format(seed)}/run.json"
        assert (folder / file).read_bytes() == (drawn / file).read_bytes()
    others = (folder / "results/test/former").rglob("config.json")
    assert [json.loads(file.read_text())["params"]["m"] for file in others] == [7, 7]
    assert unstamped((folder / FIGURE).read_bytes()) == unstamped(first)


def state(folder: Path) -> dict[Path, int]:
    """Return the modification time of every file of the runs and the former runs."""
    parts = (folder / "runs", folder / "former")
    return {p: p.stat().st_mtime_ns for part in parts for p in part.rglob("*")}


@pytest.mark.long
def test_two_studies_at_one_scale_side_by_side(drawn: Path, tmp_path: Path) -> None:
    """Run two studies at the same time in a checkout that already has other runs."""
    folder = copied(drawn, tmp_path)
    before = state(folder / "results/test")
    studies = {"one": SMALL, "two": OTHER}
    running = []
    for name, settings in studies.items():
        figure = {**settings["figures"]["main_figure"], "seeds": [0]}
        own = {**settings, "study": name, "figures": {"main_figure": figure}}
        (folder / f"{name}.json").write_text(json.dumps(own))
        args = ("--configfile", f"{name}.json", "--", f"results/{name}/main_figure.pdf")
        running.append(begin(folder, *args))
    assert [process.wait(600) for process in running] == [0, 0]
    for name, m in (("one", 4), ("two", 7)):
        run = folder / RUN.format(0).replace("results/", f"results/{name}/")
        assert json.loads((run / "config.json").read_text())["params"]["m"] == m
        assert (folder / f"results/{name}/main_figure.pdf").read_bytes().startswith(b"%PDF")
    assert state(folder / "results/test") == before, "the other runs must not change"
    assert (folder / FIGURE).read_bytes() == (drawn / FIGURE).read_bytes()


def other_at(folder: Path) -> dict[str, Any]:
    return {**OTHER, "envs": {"Pendulum-v1": {"demos": str(folder / "own.npz")}}}


def test_a_damaged_run_and_settings_file_are_made_again(drawn: Path, tmp_path: Path) -> None:
    folder = copied(drawn, tmp_path)
    (settings,) = (folder / "results/test/settings").iterdir()
    policy = folder / RUN.format(1) / "policy.safetensors"
    whole = {file: file.read_bytes() for file in (policy, settings)}
    for file, content in whole.items():
        file.write_bytes(content[:-9])
    mtime = ("--rerun-triggers", "mtime")
    assert planned_small(folder, "base", *mtime) == {**EVERY, "run": 1}
    done = run_small(folder, "base", *mtime, "--until", "run")
    assert done.returncode == 0, done.stdout
    assert {file: file.read_bytes() for file in whole} == whole
    (damaged,) = (folder / "results/test/former").rglob("policy.safetensors")
    assert damaged.read_bytes() == whole[policy][:-9]


def test_second_run_has_nothing_to_do(drawn: Path) -> None:
    done = run_small(drawn, "base")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout, done.stdout


def test_fresh_mtimes_train_nothing(drawn: Path, tmp_path: Path) -> None:
    """Check that new modification times, as after a git checkout, repeat nothing but drawing."""
    folder = whole_copy(drawn, tmp_path)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).parts[0] not in ("results", ".snakemake"):
            path.touch()
    assert set(planned_small(folder, "base")) <= {"figure"}


def test_lost_receipt_costs_no_training(drawn: Path, tmp_path: Path) -> None:
    """Check that a finished run is not retrained if its job died before it wrote the receipt."""
    folder = whole_copy(drawn, tmp_path)
    run = folder / RUN.format(0)
    receipt = next(run.glob("done.*"))
    before = (run / "run.json").stat().st_mtime_ns
    receipt.unlink()
    assert planned_small(folder, "base") == {"run": 1, "figure": 1}
    done = run_small(folder, "base", "--until", "run")
    assert done.returncode == 0, done.stdout
    assert receipt.exists() and (run / "run.json").stat().st_mtime_ns == before


def test_removed_run_is_trained_again(drawn: Path, tmp_path: Path) -> None:
    folder = whole_copy(drawn, tmp_path)
    shutil.rmtree(folder / RUN.format(1))
    assert planned_small(folder, "base") == {"train": 1, "pack": 1, "run": 1, "figure": 1}


@pytest.mark.long
def test_another_expert_seed_and_more_episodes_are_recorded(tmp_path: Path) -> None:
    """Change two settings that are not part of the hash in the names of receipts, and change back.

    Check which jobs run each time, and that nothing is left to do afterwards.
    """
    folder = checkout(tmp_path / "suite")
    figure = {**SMALL["figures"]["main_figure"], "methods": ["bc"], "seeds": [0]}
    base = {**SMALL, "figures": {"main_figure": figure}, "envs": {"Pendulum-v1": {"demos": ""}}}
    runs = {"train": 1, "pack": 1, "run": 1}
    recording = {"record": 1, "recorded": 1, **runs}
    every = {"expert": 1, "trained": 1, **recording}
    file = folder / RUN.format(0).replace("/ngt/", "/bc/") / "run.json"
    made: dict[str, str] = {}
    for expert, expected in (
        ({}, {"settings": 1, **every}),
        ({"episodes": 4}, {"settings": 1, **recording}),
        ({"seed": 5}, {"settings": 1, **every}),
        ({}, every),
    ):
        (folder / "base.yaml").write_text(json.dumps({**base, "expert": expert}))
        done = run_small(folder, "base", "--until", "run")
        assert done.returncode == 0 and jobs(done.stdout) == expected, done.stdout
        assert planned_small(folder, "base", "--until", "run") == {}, "all is up to date"
        reference = json.loads(file.read_text())["reference"]["demos"]
        assert made.setdefault(str(expert), reference) == reference
    assert len(set(made.values())) == 3
    trained = json.loads((folder / "results/test/experts/Pendulum-v1/run.json").read_text())
    assert trained["key"]["seed"] == 1000
