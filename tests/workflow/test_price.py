"""What a scale costs: sums by hand, and speeds that are those measured."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from ngt.experience.envs import get_task
from ngt.runs.keys import run_table
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.resolve import resolve
from workflow.price import EXPERTS, Price, by_method_and_env, growth, main, memory, table, total
from workflow.resources import GPU_UPDATE, GpuSite, Site, used_minutes

ROOT = Path(__file__).resolve().parents[2]
SITE = Site(gpu=GpuSite(env_workers=12))


@pytest.fixture(scope="module")
def paper() -> Config:
    return load({"scale": "paper"})


@pytest.fixture(scope="module")
def small(paper: Config) -> Config:
    """One artefact of the paper's: two methods, one env, two numbers of demonstrations, a seed."""
    figure = dataclasses.replace(
        paper.figures["main_figure"], methods=("ngt", "dac-r"), beside=(), envs=("Hopper-v4",),
        demos=(1, 4), seeds=(0,), modes=("state-action",), rates=(20,),
    )  # fmt: skip
    return dataclasses.replace(paper, figures={"main_figure": figure}, pack=2)


def test_sums_by_hand(small: Config) -> None:
    prices = table(small, SITE)
    assert {at: p.runs for at, p in prices.items()} == {
        ("NGT", "Hopper-v4"): 2, ("DAC, R", "Hopper-v4"): 2, (EXPERTS, "Hopper-v4"): 1,
    }  # fmt: skip
    cell = resolve(small, "Hopper-v4", "ngt", "state-action", 20)
    ngt = prices["NGT", "Hopper-v4"]
    assert ngt.gpu == used_minutes(cell, 2, SITE) / 60, "one job of two runs"
    assert ngt.beside == 9 * ngt.gpu, "8 processes, one an env, and the trainer"
    assert ngt.cores == 2 * used_minutes(cell, 1, Site()) / 60
    assert total(prices).gpu == pytest.approx(sum(p.gpu for p in prices.values()))
    lines = by_method_and_env(prices, lambda p: p.runs).splitlines()
    assert lines[0] == "| method | Hopper-v4 | all |" and lines[-1] == "| all | 5.0 | 5.0 |"


def test_every_run_of_the_paper_is_priced_once(paper: Config) -> None:
    prices = table(paper, SITE)
    runs = sum(p.runs for (method, _), p in prices.items() if method != EXPERTS)
    assert runs == len(run_table(paper))
    assert total(prices) == pytest.approx(
        [sum(getattr(p, name) for p in prices.values()) for name in Price._fields]
    )


def test_growth_and_memory(small: Config) -> None:
    rows = [re.split(r" *\| *", line)[1:-1] for line in growth(small, SITE).splitlines()[2:]]
    runs = {name: int(float(count)) for name, count, *_ in rows}
    assert runs == {
        "as it is": 5, "twice the seeds": 9, "twice the numbers of demonstrations": 9,
        "one seed": 5, "packs of 4": 5, "no packs": 5,
    }  # fmt: skip
    assert "| Hopper-v4 | 0.13 |" in memory(small, "ngt")


def test_the_gpus_speeds_are_those_that_ship() -> None:
    """Graphs of NGT, and 0.7 ms for acting and storing."""
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
        "GPU-hours:", "Core-hours without a GPU:", "How the sums grow:",
        "Memory of a run where it trains, GB:",
    ]  # fmt: skip
