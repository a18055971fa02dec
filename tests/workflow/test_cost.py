"""The resources that a dry run reports for its jobs, and the cost of all runs at a scale.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ngt.experience.envs import get_task
from ngt.runs.keys import run_table
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.resolve import resolve
from paper.register import FIGURES
from workflow.cost import (
    EXPERTS,
    Asked,
    Cost,
    Costs,
    added,
    by_method_and_env,
    costs_of,
    growth,
    main,
    memory,
)
from workflow.resources import GPU_UPDATE, GpuSite, Site, used_minutes

ROOT = Path(__file__).resolve().parents[2]
SITE_FILE = """
cluster:
  partition: cpu
  max_hours: 48
  memory_gb: 180
  gpu: {partition: fast, memory_gb: 80, env_workers: 12}
"""


def tell(handler: Asked, rule: str, **resources: Any) -> None:
    """Pass the handler a log record like the one that Snakemake emits for each job."""
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, "", None, None)
    record.rule_name, record.resources = rule, resources
    handler.handle(record)


def test_jobs_above_a_day_are_told_unless_the_site_has_a_limit() -> None:
    for limited, hours, told in ((False, 35, True), (True, 35, False), (False, 24, False)):
        asked = Asked(Site(max_hours=48 if limited else None))
        for each in (1, hours):
            tell(asked, "train", runtime=60 * each, mem_mb=1, disk_mb=1, cpus_per_task=1, parts=1)
        said = asked.too_long()
        assert bool(said) == told
        assert not told or said.startswith(
            "\nJobs that request more than 24 hours: 1, the longest 35 hours."
        )


def test_jobs_above_the_memory_limits_are_told_below_the_table() -> None:
    """Pass one small job and one job of 23 GB, which needs 9.9 GB of a GPU."""
    site = Site(memory_gb=8, gpu=GpuSite(memory_gb=4))
    for cluster, names in (
        (Site(), []),
        (Site(memory_gb=23, gpu=GpuSite(memory_gb=10)), []),
        (dataclasses.replace(site, gpu=None), ["memory_gb, which is 8 GB: 1, the largest 23.0 GB"]),
        (Site(gpu=site.gpu), ["gpu.memory_gb, which is 4 GB: 1, the largest 9.9 GB"]),
        (site, ["memory_gb, which is 8 GB", "gpu.memory_gb, which is 4 GB"]),
    ):
        asked = Asked(cluster)
        for mem, gpu in ((3500, 3100), (23000, 9900)):
            gpus = {"gpu": 1, "gpu_mb": gpu} if cluster.gpu else {}
            tell(asked, "train", runtime=1, mem_mb=mem, disk_mb=1, cpus_per_task=1, parts=1, **gpus)
        lines = asked.too_large().split("\n\n") if names else [asked.too_large()]
        for line, name in zip(lines, names or [""], strict=True):
            assert line.strip().startswith(name and f"Jobs that need more than cluster.{name}")


@pytest.mark.slow
def test_a_dry_run_tells_of_runs_that_do_not_fit(tmp_path: Path) -> None:
    """Plan training on Humanoid-v4 on a cluster whose nodes and GPUs are too small for one run."""
    (tmp_path / "small.yaml").write_text(
        "scale: paper\n"
        "cluster: {memory_gb: 8, gpu: {memory_gb: 4}}\n"
        "figures: {others: null, main_figure: {envs: [Humanoid-v4], methods: [ngt], seeds: [0]}}\n"
    )
    args = ("--quiet", "rules", "--configfile", f"{tmp_path}/small.yaml", "--executor", "dryrun")
    said = dry_run(*args, "--", "results/main_figure.pdf")
    below = said.rpartition("| total |")[2]
    assert "Jobs that need more than cluster.memory_gb, which is 8 GB: " in below, said
    assert "Jobs that need more than cluster.gpu.memory_gb, which is 4 GB: " in below, said


def test_what_jobs_ask_by_hand() -> None:
    asked = Asked(Site())
    tell(asked, "record", runtime=30, mem_mb=2000, disk_mb=500, cpus_per_task=1, parts=1)
    tell(asked, "figure", mem_mb=1000)  # figures run in Snakemake's own process
    for minutes, gpu, parts in ((90, 1, 1), (120, 2, 3)):
        tell(
            asked,
            "train",
            runtime=minutes,
            gpu=gpu,
            mem_mb=500 * minutes,
            disk_mb=4000,
            cpus_per_task=13,
            parts=parts,
        )
    head, line, *rows = (cells(row) for row in asked.table().splitlines())
    assert head == [
        "rule",
        "jobs",
        "CPU-hours",
        "GPU-hours",
        "hours per job",
        "memory per job",
        "disk",
    ]
    assert set(line) == {"---"}
    assert rows == [
        ["record", "1", "0", "0", "0.5 h", "2.0 GB", "0 GB"],
        ["train", "2", "98", "14", "1.5 to 2.0 h", "45.0 to 60.0 GB", "8 GB"],
        ["total", "3", "98", "14", "", "", "8 GB"],
    ]


def cells(row: str) -> list[str]:
    """Return the cells of a Markdown row."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def dry_run(*args: str, path: str = os.environ["PATH"]) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "snakemake",
            *["--dry-run", "--workflow-profile", "workflow/profiles/slurm"],
            *args,
        ],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def counts(table: str) -> dict[str, int]:
    """Return each rule's number of jobs, from Snakemake's table or ours."""
    found = re.findall(r"^(?:\| )?(\w+) +(?:\| )?(\d+)(?: .*)?$", table, re.MULTILINE)
    return {rule: int(n) for rule, n in found}


@pytest.mark.long
def test_the_papers_grid_says_what_it_asks_without_slurm(tmp_path: Path) -> None:
    """Plan scale `paper` while PATH has none of Slurm's programs."""
    for name in ("which", "sh", "bash"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    (tmp_path / "site.yaml").write_text(SITE_FILE)
    args = ("--quiet", "rules", "--configfile", f"{tmp_path}/site.yaml", "--config", "scale=paper")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    plan, _, asked = dry_run(*args, path=f"{Path(sys.executable).parent}:{tmp_path}").rpartition(
        "What the"
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60, (
        "planning must take under 60 CPU seconds"
    )
    docs = (ROOT / "docs" / "cluster.md").read_text()
    assert asked.partition("\n\n")[2].strip() in docs, "docs/cluster.md must show this output"
    jobs, planned = counts(asked), counts(plan)
    figures = [figure for figure in FIGURES.values() if figure.at(load({"scale": "paper"}))]
    assert jobs == {r: planned[r] for r in ("expert", "record", "train")} | {"total": jobs["total"]}
    assert (planned["run"], planned["figure"]) == (1526, len(figures))
    assert jobs["expert"] == 9 and jobs["train"] > 116, (
        "there must be several packs per cell (method, env, mode and rate) on Humanoid-v4"
    )
    line = next(x for x in asked.splitlines() if x.startswith("| train"))
    cpu, gpu = map(int, cells(line)[2:4])
    assert 500 < gpu < 10_000, line
    assert 2 * gpu < cpu <= 13 * gpu, (
        "a GPU job must have 13 cores, or one if its method steps no env"
    )


@pytest.mark.long
def test_a_short_time_limit_costs_what_the_docs_say(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE_FILE.replace("max_hours: 48", "max_hours: 4"))
    args = ("--quiet", "rules", "--configfile", f"{tmp_path}/site.yaml", "--config", "scale=paper")
    asked = dry_run(*args, "--executor", "dryrun")
    row = next(line for line in asked.splitlines() if re.match(r"\| train \| .* GB \|", line))
    assert row in (ROOT / "docs" / "cluster.md").read_text(), row


# ---------------------------------------------------------------- the cost of a scale

SITE = Site(gpu=GpuSite(env_workers=12))


@pytest.fixture(scope="module")
def paper() -> Config:
    return load({"scale": "paper"})


@pytest.fixture(scope="module")
def small(paper: Config) -> Config:
    """Return a config with two methods, one env, two numbers of demonstrations and one seed."""
    figure = dataclasses.replace(
        paper.figures["main_figure"],
        methods=("ngt", "dac-r"),
        beside=(),
        envs=("Hopper-v4",),
        demos=(1, 4),
        seeds=(0,),
        modes=("state-action",),
        rates=(20,),
    )
    return dataclasses.replace(paper, figures={"main_figure": figure}, pack=2)


def test_what_a_scale_costs_by_hand(small: Config) -> None:
    costs = costs_of(small, SITE)
    assert {at: p.runs for at, p in costs.items()} == {
        ("NGT", "Hopper-v4"): 2,
        ("DAC, R", "Hopper-v4"): 2,
        (EXPERTS, "Hopper-v4"): 1,
    }
    cell = resolve(small, "Hopper-v4", "ngt", "state-action", 20)
    ngt = costs["NGT", "Hopper-v4"]
    assert ngt.gpu == used_minutes(cell, 2, SITE) / 60, "the two runs must be one job"
    assert ngt.beside == 9 * ngt.gpu, "there must be 8 processes, one per env, and the trainer"
    assert ngt.cores == 2 * used_minutes(cell, 1, Site()) / 60
    assert added(costs.values()).gpu == pytest.approx(sum(p.gpu for p in costs.values()))
    lines = by_method_and_env(costs, lambda p: p.runs).splitlines()
    assert lines[0] == "| method | Hopper-v4 | all |" and lines[-1] == "| all | 5.0 | 5.0 |"


def test_experts_that_are_not_trained_cost_nothing(small: Config) -> None:
    shipped = dataclasses.replace(small, demos="shipped")
    assert {method for method, _ in costs_of(shipped, SITE)} == {"NGT", "DAC, R"}


@pytest.fixture(scope="module")
def costs(paper: Config) -> Costs:
    """Return the cost of all of the paper's runs."""
    return costs_of(paper, SITE)


def test_every_run_of_the_paper_is_counted_once(paper: Config, costs: Costs) -> None:
    """Check the totals and the tables in docs/performance.md."""
    runs = sum(p.runs for (method, _), p in costs.items() if method != EXPERTS)
    assert runs == len(run_table(paper))
    assert added(costs.values()) == pytest.approx(
        [sum(getattr(p, name) for p in costs.values()) for name in Cost._fields]
    )
    text = (ROOT / "docs" / "performance.md").read_text()
    assert by_method_and_env(costs, lambda cost: cost.gpu) in text
    assert by_method_and_env(costs, lambda cost: cost.cores) in text
    whole = added(costs.values())
    numbers = [f"{value:.0f}" for value in (runs + 9, whole.gpu, whole.beside, whole.cores)]
    assert f"| unchanged | {' | '.join(numbers)} |" in text


def test_the_readme_says_what_the_large_scales_cost(costs: Costs) -> None:
    text = (ROOT / "README.md").read_text()
    for scale in (costs_of(load({"scale": "lite"}), SITE), costs):
        whole = added(scale.values())
        cores = f"{whole.cores:,.0f}".replace(",", " ")
        assert f"{cores} core-hours, or {whole.gpu:.0f} GPU-hours" in text


def test_growth_and_memory(small: Config) -> None:
    rows = [re.split(r" *\| *", line)[1:-1] for line in growth(small, SITE).splitlines()[2:]]
    runs = {name: int(float(count)) for name, count, *_ in rows}
    assert runs == {
        "unchanged": 5,
        "twice the seeds": 9,
        "twice the numbers of demonstrations": 9,
        "one seed": 5,
        "packs of 4": 5,
        "no packs": 5,
    }
    assert "| Hopper-v4 | 0.13 |" in memory(small, "ngt")


def test_the_gpus_speeds_are_those_that_ship() -> None:
    """Compare with NGT's shipped speeds with graphs, plus 0.7 ms for acting and storing."""
    told = json.loads((ROOT / "results" / "published" / "gpu.json").read_text())
    rows = [row for row in told["rates"] if row["model"] == "NGT"]
    assert len(rows) >= 8
    base, run, wide = GPU_UPDATE
    for row in rows:
        estimated = base + row["pack"] * (run + wide * get_task(row["env"]).obs)
        assert estimated == pytest.approx(row["graph_ms"] + 0.7, rel=0.2), row


def test_the_command_prints_every_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("cluster: {max_hours: 24}")
    main(["quick", "--site", str(site)])
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.endswith(":")] == [
        "GPU-hours:",
        "Core-hours without a GPU:",
        "Larger and smaller grids:",
        "Memory of a run on its training device, GB:",
    ]


def test_the_command_takes_the_users_settings_and_names_a_wrong_scale(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("figures: {main_figure: {methods: [dac-r, wdac]}, others: null}")
    main(["--config", str(mine)])
    assert "| unchanged | 13 |" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main([str(mine)])
    assert stopped.value.code == 2
    assert "scale: " in (said := capsys.readouterr().err) and said.count("\n") == 1


def test_a_site_file_with_other_settings_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("cluster: {max_hours: 24}\ntrain: {steps: 1000}")
    with pytest.raises(SystemExit) as stopped:
        main(["quick", "--site", str(site)])
    assert stopped.value.code == 2
    assert "site.yaml has the setting train, but only `cluster`" in capsys.readouterr().err
