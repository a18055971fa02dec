"""The workflow in use: all jobs at scale `test`, and the triggers of each job."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngt.experience import demos
from ngt.experience.demos import Episode, assemble
from ngt.experience.envs import TASKS
from ngt.experience.reference import unscored
from ngt.runs.keys import resolve_key, run_table
from ngt.runs.receipt import receipt_hash
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.resolve import config_hash, resolve_expert
from paper.document import latex
from paper.drawing.table import from_json
from paper.register import FIGURES, GPU, TABLES

ROOT = Path(__file__).resolve().parents[2]
FIGURE = "results/main_figure.pdf"

# --dist loadfile runs this file in one process, so that its tests share the first build.
pytestmark = pytest.mark.slow

READINGS = {"report": 1} | ({} if latex.lacking() else {"paper": 1})
TRAINED = {"train": 40, "pack": 40, "run": 95}  # all jobs at scale `test`
EXPERT = ("expert", "trained", "record", "recorded")  # the rules that make an expert
# Scale `test` imitates a recorded file, so it has no figure of experts.
SHOWN = [name for name, figure in FIGURES.items() if not figure.experts]
TRAIN_EXPERT = "envs: {Pendulum-v1: {demos: ''}}"


def snakemake(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a checkout; return the process, with stdout and stderr merged."""
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *args],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=1800,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        },
    )


def jobs(output: str) -> dict[str, int]:
    """Return each rule's number of jobs, from the table that Snakemake prints."""
    return {
        name: int(count)
        for name, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)
        if name != "total"
    }


def dry_run(folder: Path, *args: str) -> dict[str, int]:
    done = snakemake(folder, "--dry-run", *args)
    assert done.returncode == 0, done.stdout
    return jobs(done.stdout)


def unstamped(content: bytes) -> bytes:
    """Return the content of a figure's file without its stamp, which is a hash of its inputs."""
    return re.sub(rb"drawn from [0-9a-f]{16}", b"", content)


def checkout(folder: Path) -> Path:
    """Copy the files that the workflow needs into a new folder; return the folder."""
    keep = (
        "Snakefile",
        "workflow",
        "ngt",
        "baselines",
        "paper",
        "data",
        "tests/data",
        "environment.yml",
    )
    (folder / "tests").mkdir(parents=True)
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
    """Return a new checkout in which one command has made every artefact of scale `test`."""
    folder = checkout(tmp_path_factory.mktemp("workflow") / "suite")
    done = snakemake(folder, "--config", "scale=test")
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {
        "settings": 1,
        **dict.fromkeys(EXPERT, 1),
        **TRAINED,
        "figure": len(SHOWN),
        "table": len(TABLES),
        **READINGS,
        "all": 1,
    }
    return folder


def test_everything_from_nothing(built: Path) -> None:
    for name in SHOWN:
        pdf = (built / f"results/{name}.pdf").read_bytes()
        assert pdf.startswith(b"%PDF") and len(pdf) > 5_000, name
        png = (built / f"results/{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG") and len(png) > 5_000, name
    for name in TABLES:
        table = from_json((built / f"results/{name}.json").read_text())
        assert table.rows and table.caption, name
        assert (built / f"results/{name}.csv").read_text().count("\n") > len(table.rows), name
        assert r"\toprule" in (built / f"results/{name}.tex").read_text(), name
    page = (built / "results/report.html").read_text()
    assert [name for name in (*SHOWN, *TABLES) if f'<h3 id="{name}">' not in page] == []


def test_scores_are_of_the_file_and_missing_where_the_expert_is_poor(built: Path) -> None:
    rows = from_json((built / "results/main_table.json").read_text()).rows
    assert all(row["mean"] is not None for row in rows)
    run = json.loads(
        (
            built / "results/test/runs/walker-walk/ngt/state-action-demos1-rate20/seed0/run.json"
        ).read_text()
    )
    assert unscored(run["reference"]), "an expert with 400 steps must be no better than random"
    assert "none on walker-walk: " in (built / "results/report.html").read_text()


def test_a_runs_folder_is_a_closed_set(built: Path) -> None:
    run = built / "results/test/runs/Pendulum-v1/ngt/state-action-demos2-rate20/seed1"
    receipts = {p.name for p in run.iterdir() if p.name.startswith("done.")}
    assert len(receipts) == 1
    assert {p.name for p in run.iterdir()} - receipts == {
        "config.json",
        "eval.csv",
        "train.csv",
        "policy.safetensors",
        "run.json",
    }


def test_second_run_has_nothing_to_do(built: Path) -> None:
    done = snakemake(built, FIGURE, "--config", "scale=test")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout, done.stdout


def test_fresh_mtimes_train_nothing(built: Path) -> None:
    """Check that new modification times, as after a git checkout, repeat nothing but drawing."""
    time.sleep(0.1)
    for path in built.rglob("*"):
        if path.is_file() and path.relative_to(built).parts[0] not in ("results", ".snakemake"):
            path.touch()
    assert set(dry_run(built, FIGURE, "--config", "scale=test")) <= {"figure"}


def dry_run_with(folder: Path, differences: str) -> dict[str, int]:
    """Return the jobs of a dry run at scale `test` with these differences in a config file."""
    file = folder / "mine.yaml"
    file.write_text(differences)
    return dry_run(folder, FIGURE, "--configfile", file.name, "--config", "scale=test")


def test_changed_setting_retrains_what_uses_it(built: Path) -> None:
    planned = dry_run_with(built, "methods: {ngt: {params: {lr: 0.002}}}")
    assert planned == {"settings": 1, "train": 2, "pack": 2, "run": 8, "figure": 1}, (
        "only NGT and RED* must retrain"
    )


def test_lost_receipt_costs_no_training(built: Path) -> None:
    """Check that a finished run is not retrained if its job died before it wrote the receipt."""
    run = built / "results/test/runs/Pendulum-v1/bc/state-action-demos1-rate20/seed0"
    receipt = next(run.glob("done.*"))
    before = (run / "run.json").stat().st_mtime_ns
    receipt.unlink()
    done = snakemake(built, FIGURE, "--config", "scale=test")
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {"run": 1, "figure": 1}
    assert receipt.exists() and (run / "run.json").stat().st_mtime_ns == before


def test_removed_run_is_trained_again(built: Path) -> None:
    run = built / "results/test/runs/Pendulum-v1/bc/state-action-demos1-rate20/seed1"
    saved = built / "saved"
    shutil.move(run, saved)
    planned = dry_run(built, FIGURE, "--config", "scale=test")
    shutil.move(saved, run)
    assert planned == {"train": 1, "pack": 1, "run": 1, "figure": 1}


def test_a_figure_that_the_scale_has_not_says_so(built: Path) -> None:
    done = snakemake(built, "results/dmc_figure.pdf", "--config", "scale=quick")
    assert done.returncode != 0
    log = (built / "results/quick/logs/dmc_figure.log").read_text()
    assert log.startswith("dmc_figure: error: figures.dmc_figure: not drawn at scale quick;")


def test_new_measurements_of_a_gpu_are_judged_again(built: Path) -> None:
    (built / GPU).parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / GPU, built / GPU)
    planned = dry_run(built, "--config", "scale=test", "--", "results/claims_table.csv")
    (built / GPU).unlink()
    assert planned == {"table": 1}


def test_published_records_train_nothing(built: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "ngt", "publish", "--scale", "test"], cwd=built, check=True
    )
    published = ("--config", "scale=test", "records=published")
    planned = dry_run(built, "--forceall", *published)
    assert planned == {
        "settings": 1,
        "figure": len(SHOWN),
        "table": len(TABLES),
        **READINGS,
        "all": 1,
    }
    before = (built / FIGURE).read_bytes()
    done = snakemake(built, "--force", FIGURE, *published)
    assert done.returncode == 0, done.stdout
    after = (built / FIGURE).read_bytes()
    assert unstamped(after) == unstamped(before), "the same numbers must give the same picture"
    assert after != before, "the stamp must differ with the inputs"


def test_experts_that_do_not_ship_are_trained_and_shipped(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "suite")
    for env in [task.id for task in TASKS.values() if task.aim is not None][:2]:
        shutil.rmtree(folder / "data" / env)
    assert dry_run(folder, "--config", "scale=lite", "--", "experts") == {
        "settings": 1,
        **dict.fromkeys((*EXPERT, "ship"), 2),
        "experts_page": 1,
        "experts": 1,
    }


def test_a_mistake_that_an_input_function_finds_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("figures: {seeds_figure: {envs: [Reacher-v5]}}")
    args = ("--configfile", str(file), "--config", "scale=lite", "demos=shipped", "--")
    done = snakemake(ROOT, "--quiet", "host", "reason", "-n", *args, "results/seeds_figure.pdf")
    (line,) = [text for text in done.stdout.splitlines() if "error" in text]
    assert done.returncode == 2 and "Traceback" not in done.stdout
    assert line.startswith("snakemake: error: demos: shipped, but no expert of Reacher-v5 ships")


def test_an_expert_ships_and_is_imitated(tmp_path: Path) -> None:
    """Ship an expert by one target, then train a run without any job for an expert.

    With so few steps, the expert is no better than random and does not ship. So the test lowers the
    random returns in its recording.
    """
    folder = checkout(tmp_path / "suite")
    figure = "{methods: [bc], demos: [1], seeds: [0]}"
    (folder / "one.yaml").write_text(f"figures: {{main_figure: {figure}}}\n{TRAIN_EXPERT}\n")
    config = load({"scale": "test"})
    receipt = f"results/test/shipped/Pendulum-v1.done.{expert_hash(config)}"
    args = ("--configfile", "one.yaml", "--config", "scale=test")
    done = snakemake(folder, *args, "--", receipt)
    assert done.returncode == 1 and not (folder / "data/Pendulum-v1").exists(), done.stdout
    assert jobs(done.stdout) == {"settings": 1, **dict.fromkeys(EXPERT, 1), "ship": 1}
    log = folder / f"results/test/logs/ship/Pendulum-v1.{expert_hash(config)}.log"
    assert "is not above the random policy's" in log.read_text()
    file = folder / "results/test/demos/Pendulum-v1.npz"
    data = demos.load(file)
    demos.save(file, replace(data, random_returns=data.random_returns - 5000.0))
    done = snakemake(folder, *args, "--", receipt)
    assert done.returncode == 0 and jobs(done.stdout) == {"ship": 1}, done.stdout
    ships = {p.name for p in (folder / "data/Pendulum-v1").iterdir()}
    assert ships == {"policy.safetensors", "demos.npz", "curve.csv", "expert.json"}
    shutil.rmtree(folder / "results")
    done = snakemake(folder, *args, "demos=shipped", "--", FIGURE)
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {"settings": 1, "train": 1, "pack": 1, "run": 1, "figure": 1}
    experts = snakemake(folder, *args, "demos=shipped", "--", "results/expert_figure.pdf")
    assert experts.returncode == 0, experts.stdout
    again = snakemake(folder, *args, "demos=shipped", "--", FIGURE)
    assert "Nothing to be done" in again.stdout, again.stdout
    assert dry_run(folder, *args, "--", FIGURE)["expert"] == 1, (
        "without demos=shipped, an expert must be trained"
    )


def expert_hash(config: Config) -> str:
    return config_hash(resolve_expert(config, "Pendulum-v1"))


def test_lint() -> None:
    done = snakemake(ROOT, "--lint")
    assert done.returncode == 0, done.stdout


def test_wrong_setting_is_one_line() -> None:
    done = snakemake(ROOT, "--dry-run", FIGURE, "--config", "train={steps: 8}")
    assert done.returncode == 2 and len(done.stdout.strip().splitlines()) == 1
    assert "found text '8'; remove the quotes" in done.stdout and "use --configfile" in done.stdout


def test_a_users_text_passes_through_the_workflow(tmp_path: Path) -> None:
    """Use characters that are special to Snakemake and the shell in a label and in file names."""
    folder = checkout(tmp_path / "a {checkout} %s 'é' $HOME")
    label = r"NGT {ours}, $\sigma_{e}$ 100 % 'q' " + '"q"'
    figure = {"methods": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1], "seeds": [0]}
    own = {"methods": {"ngt": {"label": label}}, "figures": {"main_figure": figure}}
    (folder / "my {file}.json").write_text(json.dumps(own))
    args = ("--configfile", "my {file}.json", "--config", "scale=test", "--")
    assert dry_run(folder, *args, FIGURE)["train"] == 1
    done = snakemake(folder, *args, "results/hyperparameter_table.csv")
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_a_killed_grid_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    """Kill Snakemake and its jobs three times during 12 runs; then let Snakemake finish."""
    folder = checkout(tmp_path / "suite")
    grid = """
        pack: 2
        figures: {main_figure: {methods: [ngt, bc], demos: [1, 2], seeds: [0, 1, 2]}}
        train: {steps: 1200}
        checkpoint_every: 100
    """
    (folder / "grid.yaml").write_text(textwrap.dedent(grid))
    args = (FIGURE, "--configfile", "grid.yaml", "--config", "scale=test")
    seen: dict[Path, int] = {}
    instants = random.Random(0)
    for kill in range(3):
        process = begin(folder, *args)
        while process.poll() is None and len(finished(folder)) < 3 * kill + 1:
            time.sleep(0.05)
        time.sleep(instants.uniform(0, 3))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = finished(folder)
        assert {path: now[path] for path in seen} == seen, "finished runs must not change"
        seen = now
        assert snakemake(folder, *args, "--unlock").returncode == 0
    assert 0 < len(seen) < 12
    done = snakemake(folder, *args, "--rerun-incomplete")
    assert done.returncode == 0, done.stdout
    now = finished(folder)
    assert len(now) == 12 and {path: now[path] for path in seen} == seen
    assert (folder / FIGURE).exists()


def test_a_killed_job_is_tried_again_and_resumes(tmp_path: Path) -> None:
    """Kill the training job once, under the default profile."""
    folder = checkout(tmp_path / "suite")
    process = begin_one_run(folder, 4000, "--workflow-profile", "workflow/profiles/default")
    wait_for_checkpoint(folder, process)
    files = Path(f"/proc/{process.pid}/task").glob("*/children")
    (trainer,) = (int(child) for file in files for child in file.read_text().split())
    os.kill(trainer, signal.SIGKILL)
    assert process.wait(600) == 0 and (folder / FIGURE).exists()
    (log,) = (folder / "results/test/logs/train").rglob("*.log")
    assert re.search(r"resumes from its checkpoint at step [1-9]", log.read_text())


@pytest.mark.parametrize("profile", [(), ("--workflow-profile", "workflow/profiles/default")])
def test_sigterm_to_the_whole_group_ends_it_and_the_last_job_leaves_a_checkpoint(
    tmp_path: Path, profile: tuple[str, ...]
) -> None:
    """Send the signal to the last job and to Snakemake at the same time."""
    folder = checkout(tmp_path / "suite")
    process = begin_one_run(folder, 400_000, *profile)
    try:
        wait_for_checkpoint(folder, process)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(120) != 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    (log,) = (folder / "results/test/logs/train").rglob("*.log")
    assert re.search(r"stopped at step [1-9]", log.read_text())
    assert not (folder / FIGURE).exists() and not finished(folder)


def begin_one_run(folder: Path, steps: int, *profile: str) -> subprocess.Popen[bytes]:
    """Start to make the main figure from one run with a checkpoint every 100 steps."""
    grid = f"""
        figures: {{main_figure: {{methods: [ngt], demos: [1], seeds: [0]}}}}
        train: {{steps: {steps}}}
        checkpoint_every: 100
    """
    (folder / "grid.yaml").write_text(textwrap.dedent(grid))
    return begin(folder, FIGURE, "--configfile", "grid.yaml", "--config", "scale=test", *profile)


def wait_for_checkpoint(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the run has a checkpoint or Snakemake has ended."""
    runs = folder / "results/test/runs"
    while process.poll() is None and not list(runs.rglob("checkpoint/step-*.json")):
        time.sleep(0.05)


def begin(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    """Start Snakemake in a checkout, in its own process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", *args],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        },
    )


def finished(folder: Path) -> dict[Path, int]:
    """Return the modification time of each finished run's record."""
    return {p: p.stat().st_mtime_ns for p in (folder / "results/test/runs").rglob("run.json")}


# ---------------------------------------------------------------- triggers by content

SMALL: dict[str, Any] = {
    "scale": "test",
    "figures": {
        "main_figure": {
            "methods": ["ngt"],
            "envs": ["Pendulum-v1"],
            "demos": [1],
            "seeds": [0, 1],
        }
    },
    "envs": {"Pendulum-v1": {"demos": "own.npz"}},
    "train": {"steps": 120, "eval_every": 40, "log_every": 40, "eval_episodes": 1},
}
OTHER = {**SMALL, "methods": {"ngt": {"params": {"m": 7}}}}
EVERY = {"settings": 1, "train": 1, "pack": 1, "run": 2, "figure": 1}
RUN = "results/test/runs/Pendulum-v1/ngt/state-action-demos1-rate20/seed{}"


def small(folder: Path) -> Path:
    """Return a checkout with two configs, each for two short runs that imitate a recorded file."""
    checkout(folder)
    rng = np.random.default_rng(0)
    steps = 200
    episode = Episode(
        rng.standard_normal((steps + 1, 3)), rng.uniform(-1, 1, (steps, 1)), -np.ones(steps), False
    )
    data = assemble("Pendulum-v1", [episode], np.array([-1200.0]), "drawn")
    demos.save(folder / "own.npz", data)
    for name, settings in (("base", SMALL), ("other", OTHER)):
        (folder / f"{name}.yaml").write_text(json.dumps(settings))
    return folder


def run_small(folder: Path, name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return snakemake(folder, "--configfile", f"{name}.yaml", *args, "--", FIGURE)


def planned_small(folder: Path, name: str, *args: str) -> dict[str, int]:
    done = run_small(folder, name, "--dry-run", *args)
    assert done.returncode == 0, done.stdout
    return jobs(done.stdout)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = small(tmp_path_factory.mktemp("content") / "suite")
    done = run_small(folder, "base")
    assert done.returncode == 0 and jobs(done.stdout) == EVERY, done.stdout
    return folder


def copied(drawn: Path, tmp_path: Path) -> Path:
    """Return a copy of the checkout without Snakemake's metadata, as in another clone."""
    folder = tmp_path / "clone"
    shutil.copytree(drawn, folder, ignore=shutil.ignore_patterns(".snakemake"))
    return folder


@pytest.mark.parametrize("lost", ["copied", "touch", "cleanup", "mtime"])
def test_changed_settings_are_planned_however_the_trigger_is_lost(
    drawn: Path, tmp_path: Path, lost: str
) -> None:
    folder = tmp_path / "suite"
    shutil.copytree(drawn, folder)
    more: tuple[str, ...] = ()
    if lost == "copied":
        shutil.rmtree(folder / ".snakemake")
    elif lost == "touch":
        run_small(folder, "other", "--touch")
    elif lost == "cleanup":
        file = RUN.format(0)
        receipt = next((folder / file).glob("done.*")).relative_to(folder)
        snakemake(folder, "--configfile", "base.yaml", "--cleanup-metadata", FIGURE, str(receipt))
    else:
        more = ("--rerun-triggers", "mtime")
    assert planned_small(folder, "other", *more) == EVERY


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
    assert planned_small(folder, "base", *mtime) == back, "former runs are not trained again"
    assert state(folder / "results/test") == before, "a dry run moves nothing"
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
    """Return the time of each run's and each former run's file."""
    parts = (folder / "runs", folder / "former")
    return {p: p.stat().st_mtime_ns for part in parts for p in part.rglob("*")}


def test_two_studies_at_one_scale_side_by_side(drawn: Path, tmp_path: Path) -> None:
    """Run two studies at the same time in a checkout that has runs of its own."""
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
    assert state(folder / "results/test") == before, "the checkout's own runs stay as they were"
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
    done = run_small(folder, "base", "--rerun-triggers", "mtime")
    assert done.returncode == 0 and jobs(done.stdout) == {**EVERY, "run": 1}, done.stdout
    assert {file: file.read_bytes() for file in whole} == whole
    (damaged,) = (folder / "results/test/former").rglob("policy.safetensors")
    assert damaged.read_bytes() == whole[policy][:-9]


# ---------------------------------------------------------------- refusals


def test_a_refused_training_says_why_once_and_is_not_tried_again(tmp_path: Path) -> None:
    folder = small(tmp_path / "suite")
    (folder / "base.yaml").write_text(
        json.dumps(
            {
                **SMALL,
                "figures": {"main_figure": {**SMALL["figures"]["main_figure"], "demos": [3]}},
            }
        )
    )
    done = run_small(folder, "base")
    assert done.returncode != 0
    said = done.stdout
    assert said.count("requested 3, found 1 episodes") == 1, said
    assert "Trying to restart" not in said
    (folder / "base.yaml").write_text(json.dumps(SMALL))
    assert run_small(folder, "base").returncode == 0, "the former refusal must not remain"


DISCRETE = """
import gymnasium as gym
from ngt.experience.envs import Task, register
register(Task("CartPole-v1", "CartPole-v1", 4, 1, -1.0, 1.0, 500))
"""


def test_an_env_that_the_agent_cannot_handle_is_refused_in_the_dry_run(tmp_path: Path) -> None:
    folder = small(tmp_path / "suite")
    (folder / "mytask.py").write_text(DISCRETE)
    figure = {**SMALL["figures"]["main_figure"], "envs": ["CartPole-v1"]}
    settings = {**SMALL, "imports": ["mytask"], "figures": {"main_figure": figure}, "envs": {}}
    (folder / "base.yaml").write_text(json.dumps(settings))
    done = run_small(folder, "base", "--dry-run")
    assert done.returncode == 2 and "is not continuous" in done.stdout, done.stdout
