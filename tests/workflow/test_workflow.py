"""The workflow in use: experts, mistakes, special characters and refusals."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ngt.experience import demos
from ngt.experience.envs import TASKS
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.resolve import config_hash, resolve_expert
from tests.workflow.checkouts import (
    EXPERT,
    FIGURE,
    ROOT,
    SMALL,
    checkout,
    dry_run,
    environment,
    jobs,
    quick_snakemake,
    run_small,
    small,
    snakemake,
)

pytestmark = pytest.mark.slow

TRAIN_EXPERT = "envs: {Pendulum-v1: {demos: ''}}"


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


def test_an_expert_that_is_lost_from_data_is_shipped_again(tmp_path: Path) -> None:
    """Check that receipts of an earlier shipping do not hide the loss."""
    folder, args = checkout(tmp_path / "suite"), ("--config", "scale=lite", "--", "experts")
    env = next(task.id for task in TASKS.values() if task.aim is not None)
    hash = config_hash(resolve_expert(load({"scale": "lite"}), env))
    work = folder / "results/lite"
    for name in (
        "experts/{}/done.{}",
        "demos/{}.done.{}",
        "shipped/{}.done.{}",
        "shipped/page.done",
    ):
        (work / name.format(env, hash)).parent.mkdir(parents=True, exist_ok=True)
        (work / name.format(env, hash)).touch()
    assert dry_run(folder, *args) == {}
    shutil.rmtree(folder / "data" / env)
    again = dry_run(folder, *args)
    assert {name: again[name] for name in ("ship", "experts_page")} == {
        "ship": 1,
        "experts_page": 1,
    }


def test_a_mistake_that_an_input_function_finds_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("figures: {seeds_figure: {envs: [Reacher-v5]}}")
    args = ("--configfile", str(file), "--config", "scale=lite", "demos=shipped", "--")
    done = quick_snakemake(
        ROOT, "--quiet", "host", "reason", "-n", *args, "results/seeds_figure.pdf"
    )
    (line,) = [text for text in done.stdout.splitlines() if "error" in text]
    assert done.returncode == 2 and "Traceback" not in done.stdout
    assert line.startswith("snakemake: error: demos: shipped, but no expert of Reacher-v5 ships")


@pytest.mark.long
def test_an_expert_ships_and_is_imitated(tmp_path: Path) -> None:
    """Ship an expert by one Snakemake target, then train a run without any job for an expert.

    With so few steps, the expert is no better than random and does not ship. So the test lowers the
    random returns in its recording.
    """
    folder = checkout(tmp_path / "suite")
    figure = "{methods: [bc], demos: [1], seeds: [0]}"
    (folder / "one.yaml").write_text(f"figures: {{main_figure: {figure}}}\n{TRAIN_EXPERT}\n")
    config = load({"scale": "test"})
    receipt = f"results/test/shipped/Pendulum-v1.done.{expert_hash(config)}"
    args = ("--configfile", "one.yaml", "--config", "scale=test")
    done = quick_snakemake(folder, *args, "--", receipt)
    assert done.returncode == 1 and not (folder / "data/Pendulum-v1").exists(), done.stdout
    assert jobs(done.stdout) == {"settings": 1, **dict.fromkeys(EXPERT, 1), "ship": 1}
    log = folder / f"results/test/logs/ship/Pendulum-v1.{expert_hash(config)}.log"
    assert "is not above the random policy's" in log.read_text()
    file = folder / "results/test/demos/Pendulum-v1.npz"
    data = demos.load(file)
    demos.save(file, replace(data, random_returns=data.random_returns - 5000.0))
    done = quick_snakemake(folder, *args, "--", receipt)
    assert done.returncode == 0 and jobs(done.stdout) == {"ship": 1}, done.stdout
    ships = {p.name for p in (folder / "data/Pendulum-v1").iterdir()}
    assert ships == {"policy.safetensors", "demos.npz", "curve.csv", "expert.json"}
    shutil.rmtree(folder / "results")
    done = quick_snakemake(folder, *args, "demos=shipped", "--", FIGURE)
    assert done.returncode == 0, done.stdout
    assert jobs(done.stdout) == {"settings": 1, "train": 1, "pack": 1, "run": 1, "figure": 1}
    experts = quick_snakemake(folder, *args, "demos=shipped", "--", "results/expert_figure.pdf")
    assert experts.returncode == 0, experts.stdout
    again = quick_snakemake(folder, *args, "demos=shipped", "--", FIGURE)
    assert "Nothing to be done" in again.stdout, again.stdout
    assert dry_run(folder, *args, "--", FIGURE)["expert"] == 1, (
        "without demos=shipped, an expert must be trained"
    )


def expert_hash(config: Config) -> str:
    return config_hash(resolve_expert(config, "Pendulum-v1"))


def test_lint() -> None:
    done = snakemake(ROOT, "--lint")
    assert done.returncode == 0, done.stdout


CONDA = """#!/bin/sh
case "$*" in
(info*) echo '{"conda_prefix": "/conda", "platform": "linux-64"}';;
(--version) echo conda 99.0.0;;
(config*) echo '{"get": {"channel_priority": "strict"}}';;
(env*) echo "$*" >> calls;;
esac
"""


@pytest.mark.long
def test_snakemake_makes_a_conda_environment_from_a_copy_that_stands_alone(tmp_path: Path) -> None:
    """Run Snakemake with a program `conda` that only logs how it is called."""
    folder = checkout(tmp_path / "suite")
    (folder / "bin").mkdir()
    (folder / "bin/conda").write_text(CONDA)
    (folder / "bin/conda").chmod(0o755)
    variables = {"PATH": f"{folder / 'bin'}:{environment()['PATH']}"}
    args = ("--software-deployment-method", "conda", "--conda-create-envs-only")
    done = snakemake(folder, *args, "--config", "scale=test", "--", FIGURE, **variables)
    assert done.returncode == 0, done.stdout
    (call,) = (folder / "calls").read_text().splitlines()
    (made,) = re.findall(r"--file (\S+)", call)
    assert Path(made).is_relative_to(folder / ".snakemake/conda")
    assert Path(made).read_text() == (ROOT / "workflow/envs/suite.yaml").read_text()


def test_wrong_setting_is_one_line() -> None:
    done = quick_snakemake(ROOT, "--dry-run", FIGURE, "--config", "train={steps: 8}")
    assert done.returncode == 2 and len(done.stdout.strip().splitlines()) == 1
    assert "found text '8'; remove the quotes" in done.stdout and "use --configfile" in done.stdout


def test_what_the_system_refuses_is_one_line(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "suite")
    (folder / FIGURE).mkdir(parents=True)
    done = quick_snakemake(folder, "--dry-run", "--quiet", "host", "reason", "--", FIGURE)
    (line,) = [text for text in done.stdout.splitlines() if "error" in text.lower()]
    assert done.returncode == 2 and line.startswith("snakemake: error: ")
    assert line.endswith("results/main_figure.pdf: Is a directory")


def test_only_a_setting_of_the_command_line_is_said_to_be_read_as_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text('records: publish\ntrain: {steps: "8"}')
    args = ("--dry-run", FIGURE, "--configfile", str(file), "--config")
    for own, hint in (("scale=test", False), ("train={steps: 8}", True)):
        records = "records=trained" if hint else "pack=2"
        done = quick_snakemake(ROOT, *args, own, records)
        assert done.returncode == 2 and "found text" in done.stdout
        assert ("use --configfile" in done.stdout) is hint, done.stdout


def test_a_users_text_passes_through_the_workflow(tmp_path: Path) -> None:
    """Use characters that are special to Snakemake and the shell in a label and in file names."""
    folder = checkout(tmp_path / "a {checkout} %s 'é' $HOME")
    label = r"NGT {ours}, $\sigma_{e}$ 100 % 'q' " + '"q"'
    figure = {"methods": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1], "seeds": [0]}
    own = {"methods": {"ngt": {"label": label}}, "figures": {"main_figure": figure}}
    (folder / "my {file}.json").write_text(json.dumps(own))
    args = ("--configfile", "my {file}.json", "--config", "scale=test", "--")
    assert dry_run(folder, *args, FIGURE)["train"] == 1
    done = quick_snakemake(folder, *args, "results/hyperparameter_table.csv")
    assert done.returncode == 0, done.stdout


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
    done = run_small(folder, "base", "--until", "pack")
    assert done.returncode == 0, "the former refusal must not remain"


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


def test_a_figure_that_the_scale_has_not_says_so(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "suite")
    done = quick_snakemake(folder, "-n", "results/dmc_figure.pdf", "--config", "scale=quick")
    said = "figures.dmc_figure: dmc_figure has no runs at scale quick;"
    assert done.returncode == 2 and said in done.stdout, done.stdout
