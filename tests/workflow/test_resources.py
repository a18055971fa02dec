"""Resources of jobs: hand-computed sizes, and speeds compared with measured training runs.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.experience.envs import Task, get_task, register
from ngt.settings.config import CellConfig, Config
from ngt.settings.load import load
from ngt.settings.resolve import resolve, resolve_expert
from workflow.resources import (
    ACT,
    ENV,
    ENV_STEP,
    GPU_PROCESS,
    PROCESS,
    RUN,
    START,
    WORKER,
    GpuSite,
    Site,
    check_executor,
    device_mb,
    host_mb,
    minutes,
    pack_size,
    recording,
    site_of,
    training,
)

# Megabytes of Humanoid-v4's buffer: its rows, and one final observation for every 20 steps. The
# table of final observations has just grown from 2^17 to 2^18 places, and both copies still exist.
BUFFER = 4 * (4_000_004 * (376 + 17 + 3) + 4_000_000 + (2**18 + 2**17 + 2) * 376) / 1e6
HERE, GPU = Site(), Site(gpu=GpuSite())


@pytest.fixture(scope="module")
def paper() -> Config:
    return load({"scale": "paper"})


def cell(config: Config, env: str, method: str = "ngt", **train: Any) -> CellConfig:
    found = resolve(config, env, method, "state-action", 1 if method == "bc-full" else 20)
    return dataclasses.replace(found, train=dataclasses.replace(found.train, **train))


def test_a_pack_asks_for_its_buffers(paper: Config) -> None:
    """Count the buffers in memory: on a CPU, two for each run and one more.

    Training that resumes reads the saved buffers of all runs in addition to its own buffers.
    """
    humanoid = cell(paper, "Humanoid-v4")
    envs = 4 + 10  # for training and for evaluation
    assert host_mb(humanoid, 12, HERE) == PROCESS + 12 * (RUN + envs * ENV) + 25 * BUFFER
    assert host_mb(humanoid, 6, GPU) == GPU_PROCESS + 6 * (RUN + envs * ENV) + 7 * BUFFER
    assert training(humanoid, 12, HERE).mem_mb == 178_000
    assert training(humanoid, 12, HERE).disk_mb == 85_000  # 12 buffers of 6.9 GB, plus nets
    workers = Site(gpu=GpuSite(env_workers=3))
    assert host_mb(humanoid, 6, workers) - host_mb(humanoid, 6, GPU) == 6 * WORKER, (
        "evaluation must have its own workers"
    )


def test_a_run_of_the_largest_env_takes_7_gb_where_it_trains(paper: Config) -> None:
    humanoid = cell(paper, "Humanoid-v4")
    assert humanoid.train.buffer == 4_000_000
    assert 6900 < device_mb(humanoid) == BUFFER + RUN < 7000
    standing = dataclasses.replace(humanoid, terminate_when_unhealthy=False)
    assert device_mb(standing) < 6450, (
        "if episodes end only every 1000 steps, the buffer must be smaller"
    )


def test_a_short_run_fills_no_buffer(paper: Config) -> None:
    short = cell(paper, "Humanoid-v4", steps=996)
    assert host_mb(short, 1, HERE) - host_mb(cell(paper, "Hopper-v4", steps=996), 1, HERE) == (
        pytest.approx(3 * 4 * (1004 * (396 - 17) + 4097 * (376 - 11)) / 1e6)
    )


def test_what_is_stored_first_takes_room(paper: Config) -> None:
    plain, filled = (
        host_mb(cell(paper, "Hopper-v4", method, steps=400_000), 1, HERE)
        for method in ("pwil", "pwil-prefill")
    )
    assert filled - plain == pytest.approx(3 * 4 * 50_000 * (11 + 3 + 3 + 1) / 1e6, rel=0.2)


@pytest.mark.parametrize("method", ["bc", "bc-full"])
def test_a_method_without_env_has_no_buffer_and_no_env_processes(
    paper: Config, method: str
) -> None:
    offline = cell(paper, "Humanoid-v4", method)
    assert host_mb(offline, 12, HERE) == PROCESS + 12 * (RUN + 14 * ENV)
    job = training(offline, 12, Site(gpu=GpuSite(env_workers=12)))
    assert (job.cpus_per_task, job.env_workers, job.gpu) == (1, 0, 1)


@pytest.mark.parametrize(
    ("env", "runs", "gpu", "rate"),
    [  # rate: each run's env steps per second without evaluation, from docs/performance.md
        ("HalfCheetah-v4", 1, None, 185),
        ("Walker2d-v4", 1, GpuSite(), 1556),
        ("Walker2d-v4", 24, GpuSite(), 179),
        ("Humanoid-v4", 1, GpuSite(), 1218),
        ("Humanoid-v4", 24, GpuSite(), 95),
        ("Walker2d-v4", 12, GpuSite(env_workers=12), 772),
    ],
)
def test_a_training_gets_the_time_that_it_was_measured_to_take(
    paper: Config, env: str, runs: int, gpu: GpuSite | None, rate: int
) -> None:
    """Check that the time limit is 1.3 to 3 times the measured time."""
    settings = cell(paper, env, steps=1_000_000, eval_every=10**9)
    measured = 1_000_000 / rate / 60
    assert 1.3 < (minutes(settings, runs, Site(gpu=gpu)) - START) / measured < 3


def test_evaluations_take_time(paper: Config) -> None:
    """Check ten episodes of 1000 steps every 10 000 steps: evaluation doubles the env steps."""
    with_, without = (cell(paper, "Ant-v4", steps=10**6, eval_every=n) for n in (10**4, 10**9))
    steps = minutes(with_, 2, HERE) - minutes(without, 2, HERE)
    assert steps == pytest.approx(1.5 * 2 * 10**6 * (ENV_STEP["Ant-v4"] + ACT) / 60e3, rel=1e-4)


def test_an_env_that_was_not_measured_is_taken_to_be_slow(paper: Config) -> None:
    known = get_task("Humanoid-v4")
    register(Task("mine-v0", "Humanoid-v4", known.obs, known.act, -0.4, 0.4, 1000))
    other = dataclasses.replace(cell(paper, "Humanoid-v4"), env="mine-v0")
    assert minutes(other, 1, HERE) >= minutes(cell(paper, "Humanoid-v4"), 1, HERE)


@pytest.mark.parametrize(
    "site",
    [
        Site(memory_gb=150),
        Site(max_hours=200),
        Site(gpu=GpuSite(memory_gb=80)),
        Site(max_hours=48, gpu=GpuSite(memory_gb=60, env_workers=12)),
    ],
)
def test_a_pack_is_the_largest_that_fits(paper: Config, site: Site) -> None:
    humanoid = cell(paper, "Humanoid-v4")
    size = pack_size(humanoid, 12, site)
    assert 1 < size < 12

    def fits(runs: int) -> bool:
        device = 3000 + runs * (BUFFER + RUN) if site.gpu else 0
        room = 1000 * (site.gpu.memory_gb if site.gpu else 0)
        return (
            host_mb(humanoid, runs, site) <= 1000 * (site.memory_gb or 1e9)
            and minutes(humanoid, runs, site) <= 60 * (site.max_hours or 1e9)
            and device <= room
        )

    assert fits(size) and not fits(size + 1)
    assert pack_size(humanoid, 2, Site(memory_gb=200)) == 2, (
        "a pack must not exceed the config's pack size"
    )
    assert pack_size(humanoid, 12, Site(memory_gb=1)) == 1, "a single run must always be tried"


@pytest.mark.parametrize("hours", [2, 4, 8, 12, 24])
def test_a_short_time_limit_does_not_undo_packs_on_a_gpu(paper: Config, hours: float) -> None:
    """Compare the GPU time per run of all sizes that fit the memory."""
    site = Site(max_hours=hours, memory_gb=180, gpu=GpuSite(env_workers=12))
    for env, most in (("Humanoid-v4", 11), ("Hopper-v4", 12)):  # 80 GB hold 11 runs of Humanoid-v4
        settings = cell(paper, env)
        cost = {}
        for runs in range(1, most + 1):
            job = training(settings, runs, site)
            cost[runs] = job.parts * job.runtime / runs
        size = pack_size(settings, 12, site)
        assert cost[size] <= 1.02 * min(cost.values()) < 0.5 * cost[1], (env, size, cost)


@pytest.mark.parametrize("hours", [2, 12, 24])
def test_a_pack_on_a_cpu_takes_one_job(paper: Config, hours: float) -> None:
    humanoid = cell(paper, "Humanoid-v4")
    assert minutes(humanoid, 1, HERE) > 60 * hours
    assert pack_size(humanoid, 12, Site(max_hours=hours)) == 1


def test_no_job_requests_more_than_the_limits_because_of_rounding(paper: Config) -> None:
    humanoid = cell(paper, "Humanoid-v4")
    hours, memory = minutes(humanoid, 1, HERE) / 60, host_mb(humanoid, 1, HERE) / 1000
    job = training(humanoid, 1, Site(max_hours=hours + 0.01, memory_gb=memory + 0.01))
    assert job.parts == 1
    assert hours - 0.02 < job.runtime / 60 <= hours + 0.01
    assert memory <= job.mem_mb / 1000 <= memory + 0.01


def test_a_training_longer_than_any_job_is_several(paper: Config) -> None:
    humanoid = cell(paper, "Humanoid-v4")
    hours = minutes(humanoid, 1, HERE) / 60
    assert training(humanoid, 1, HERE).parts == 1
    assert training(humanoid, 1, Site(max_hours=hours / 2.5)).parts == 3
    assert training(humanoid, 1, Site(max_hours=10.51)).runtime == 630


def test_who_asks_what_where(paper: Config) -> None:
    site = Site("cpu", "me", gpu=GpuSite("fast", "h100", env_workers=7))
    job = training(resolve_expert(paper, "Hopper-v4"), 1, site)
    assert job.device == "cuda" and (job.gpu, job.gpu_model) == (1, "h100")
    assert (job.cpus_per_task, job.env_workers) == (5, 4), (
        "there must be at most one process per env"
    )
    assert training(cell(paper, "Hopper-v4"), 2, site).env_workers == 7
    assert (job.slurm_partition, job.slurm_account) == ("fast", "me")
    told = recording("Hopper-v4", 16, site)
    assert told.slurm_partition == "cpu" and (told.device, told.gpu) == ("cpu", 0)
    assert told.runtime == 20 and recording("Hopper-v4", 16, Site(max_hours=0.25)).runtime == 15
    here = training(resolve_expert(paper, "Hopper-v4"), 1, Site("cpu"))
    assert (here.device, here.gpu, here.cpus_per_task) == ("cpu", 0, 1)
    same = dataclasses.replace(site, gpu=GpuSite())
    assert training(cell(paper, "Hopper-v4"), 1, same).slurm_partition == "cpu"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"partion": "x"}, "cluster.partion: unknown key; did you mean partition"),
        ({"gpu": {"memory": 80}}, "cluster.gpu.memory: unknown key; did you mean memory_gb"),
        ({"max_hours": "24"}, "cluster.max_hours: expected a number, found text '24'"),
        ({"max_hours": 0}, "cluster.max_hours: must be at least 0.1, found 0"),
        ("cpu", "cluster: expected a mapping, found text 'cpu'"),
    ],
)
def test_a_wrong_site_is_one_line(section: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        site_of({"cluster": section, "scale": "paper"})
    assert "\n" not in str(error.value)


def test_a_missing_slurm_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for executor in ("dryrun", "local"):
        check_executor(executor)
    with pytest.raises(UserError, match="no `sbatch`") as error:
        check_executor("slurm")
    assert "\n" not in str(error.value)
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    check_executor("slurm")


def test_no_site_is_this_machine() -> None:
    assert site_of({"scale": "paper"}) == Site()
