"""The workflow as users run it: the whole DAG at scale `test`, and what triggers what."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIGURE = "results/main_figure.pdf"

pytestmark = pytest.mark.slow


def snakemake(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a checkout; stdout and stderr together."""
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *args],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        env=os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
        },
    )  # fmt: skip


def jobs(output: str) -> dict[str, int]:
    """Rule -> number of jobs, from the table that Snakemake prints."""
    return {
        name: int(count)
        for name, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)
        if name != "total"
    }


def dry_run(folder: Path, *args: str) -> dict[str, int]:
    done = snakemake(folder, "--dry-run", *args)
    assert done.returncode == 0, done.stdout
    return jobs(done.stdout)


def checkout(folder: Path) -> Path:
    """A copy of the tracked tree as it stands."""
    keep = ("Snakefile", "workflow", "ngt", "baselines", "paper", "environment.yml")
    folder.mkdir()
    for name in keep:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
        else:
            shutil.copy(source, folder / name)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the main figure of scale `test` made from nothing."""
    folder = checkout(tmp_path_factory.mktemp("workflow") / "suite")
    done = snakemake(folder, FIGURE, "--config", "scale=test")
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {
        "settings": 1, "expert": 1, "record": 1, "train": 10, "run": 40, "main_figure": 1,
    }  # fmt: skip
    return folder


def test_figure_from_nothing(built: Path) -> None:
    pdf = (built / FIGURE).read_bytes()
    assert pdf.startswith(b"%PDF") and len(pdf) > 5_000
    assert (built / "results/main_figure.png").read_bytes().startswith(b"\x89PNG")
    run = built / "results/test/runs/Pendulum-v1/ngt/state-action-demos2-rate20/seed1"
    receipts = {p.name for p in run.iterdir() if p.name.startswith("done.")}
    assert len(receipts) == 1
    assert {p.name for p in run.iterdir()} - receipts == {
        "config.json", "eval.csv", "train.csv", "policy.safetensors", "run.json",
    }  # fmt: skip


def test_second_run_has_nothing_to_do(built: Path) -> None:
    done = snakemake(built, FIGURE, "--config", "scale=test")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout, done.stdout


def test_fresh_mtimes_train_nothing(built: Path) -> None:
    """A checkout touches every file; at most drawing is repeated."""
    time.sleep(0.1)
    for path in built.rglob("*"):
        if path.is_file() and path.relative_to(built).parts[0] not in ("results", ".snakemake"):
            path.touch()
    assert set(dry_run(built, FIGURE, "--config", "scale=test")) <= {"main_figure"}


@pytest.mark.parametrize("pack", [1, 3])
def test_pack_size_trains_nothing(built: Path, pack: int) -> None:
    planned = dry_run(built, FIGURE, "--config", "scale=test", f"pack={pack}")
    assert set(planned) <= {"settings", "main_figure"}, planned


def dry_run_with(folder: Path, differences: str) -> dict[str, int]:
    """A dry run at scale `test` with a file of differences."""
    file = folder / "mine.yaml"
    file.write_text(differences)
    return dry_run(folder, FIGURE, "--configfile", file.name, "--config", "scale=test")


def test_changed_setting_retrains_what_uses_it(built: Path) -> None:
    planned = dry_run_with(built, "methods: {ngt: {params: {lr: 0.002}}}")
    assert planned == {"settings": 1, "train": 2, "run": 8, "main_figure": 1}, "ngt, and red"


def test_changed_agent_retrains_everything(built: Path) -> None:
    planned = dry_run_with(built, "sac: {gamma: 0.98}")
    assert planned == {
        "settings": 1, "expert": 1, "record": 1, "train": 10, "run": 40, "main_figure": 1,
    }  # fmt: skip


def test_added_seed_leaves_finished_runs_alone(built: Path) -> None:
    planned = dry_run_with(built, "figures: {main_figure: {seeds: [0, 1, 2]}}")
    assert planned == {"settings": 1, "train": 10, "run": 20, "main_figure": 1}


def test_lost_receipt_costs_no_training(built: Path) -> None:
    """A job that died after its runs were finished: they are found and not trained again."""
    run = built / "results/test/runs/Pendulum-v1/bc/state-action-demos1-rate20/seed0"
    receipt = next(run.glob("done.*"))
    before = (run / "run.json").stat().st_mtime_ns
    receipt.unlink()
    done = snakemake(built, FIGURE, "--config", "scale=test")
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {"train": 1, "run": 1, "main_figure": 1}
    assert receipt.exists() and (run / "run.json").stat().st_mtime_ns == before


def test_removed_run_is_trained_again(built: Path) -> None:
    run = built / "results/test/runs/Pendulum-v1/bc/state-action-demos1-rate20/seed1"
    saved = built / "saved"
    shutil.move(run, saved)
    planned = dry_run(built, FIGURE, "--config", "scale=test")
    shutil.move(saved, run)
    assert planned == {"train": 1, "run": 1, "main_figure": 1}


def test_paper_scale_counts() -> None:
    """Methods x envs x demonstrations x seeds runs, in packs of a cell."""
    planned = dry_run(ROOT, FIGURE, "--config", "scale=paper")
    assert planned == {
        "settings": 1, "expert": 6, "record": 6, "train": 10 * 6, "run": 720,
        "main_figure": 1,
    }  # fmt: skip


def test_default_target_is_every_figure(built: Path) -> None:
    planned = dry_run(built, "--config", "scale=test")
    assert planned["expert_figure"] == 1 and "train" not in planned


def test_lint() -> None:
    done = snakemake(ROOT, "--lint")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("scal=test", "scal: unknown key; did you mean scale"),
        ("scale=tiny", "scale: 'tiny' is not known"),
        ("train={steps: 8}", "found text '8'; remove the quotes"),
        ("train={steps: 8}", "use --configfile"),
    ],
)
def test_wrong_setting_is_one_line(setting: str, message: str) -> None:
    done = snakemake(ROOT, "--dry-run", FIGURE, "--config", setting)
    assert done.returncode == 2
    assert message in done.stdout and len(done.stdout.strip().splitlines()) == 1
