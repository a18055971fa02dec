"""Estimate a training job's resources from its sizes and measured speeds.

Time and memory are upper estimates. A job that reaches its time limit loses nothing, because it is
warned in advance, writes a checkpoint and is retried.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ngt.experience.envs import get_task
from ngt.experience.replay import peak_bytes
from ngt.settings.config import CellConfig
from ngt.settings.resolve import load_model
from ngt.settings.schema import opt, parse

# Times in milliseconds, on one thread of a 2-core AMD EPYC with torch 2.13 (docs/performance.md).
# (constant, per observation dim) of one iteration of a run, fitted to the slowest methods: 18.4 on
# HalfCheetah-v4 (17 dims), 21.1 on Ant-v4 (111 dims) and 33.3 on Humanoid-v4 (376 dims).
UPDATE = (18.5, 0.04)
# (constant, per observation dim) of an offline method's gradient step: 1.3 to 2.4 on these envs.
FIT = (1.3, 0.0028)
# (constant, per run, per run and observation dim) of one iteration on an H200. Packs of 12 take
# 1.67 on Walker2d-v4 and 2.68 on Humanoid-v4 (results/published/gpu.json), plus 0.7 for acting and
# storing.
GPU_UPDATE = (1.7, 0.05, 0.0002)
# 1.5 times the time of an env step with a random policy, because a standing body costs the solver
# more. An env that is not listed is assumed to be as slow as the slowest one.
ENV_STEP = {
    "Ant-v4": 0.32,
    "HalfCheetah-v4": 0.09,
    "Hopper-v4": 0.18,
    "Humanoid-v4": 0.33,
    "Pendulum-v1": 0.02,
    "Pusher-v5": 0.07,
    "Reacher-v5": 0.06,
    "Walker2d-v4": 0.2,
    "cheetah-run": 0.06,
    "finger-spin": 0.09,
    "walker-walk": 0.22,
}
ACT = 0.1  # time of the policy and bookkeeping per env step
# Number of env processes that are as fast as one thread; 12 processes are 2.4 times as fast.
WORKERS = 5.0
MARGIN = 1.5  # rates drift by a fifth on a shared machine, and other processors are slower
START = 15.0  # minutes to start Snakemake and import packages twice on a slow file system

# Memory in megabytes.
PROCESS = 1500  # the trainer (500) and the Snakemake processes around it (3 x 250)
GPU_PROCESS = 6000  # with CUDA's libraries and context
RUN = 50  # nets, targets, moments and graphs of a run; Humanoid-v4 needs 40
ENV = 13  # an env of dm_control; an env of Gymnasium takes 1
WORKER = 150  # an env process; evaluation doubles their number
CONTEXT = 3000  # CUDA's own memory on the device


@dataclass(frozen=True)
class GpuSite:
    """The GPUs that training jobs use."""

    partition: str = opt("", "partition of training jobs; if empty, that of the other jobs")
    model: str = opt("", "the cluster's name for the GPU model; any model if empty")
    memory_gb: float = opt(80.0, "memory of one GPU; packs are split to fit", 4)
    env_workers: int = opt(0, "number of processes that step the envs, one core each", 0)


@dataclass(frozen=True)
class Site:
    """The cluster on which jobs run, from the section `cluster` of a user's config."""

    partition: str = opt("", "partition of every job; the cluster's default if empty")
    account: str = opt("", "account to charge; the user's default if empty")
    max_hours: float | None = opt(None, "time limit of a job; packs are split to fit", 0.1)
    memory_gb: float | None = opt(None, "memory limit of a job; packs are split to fit", 1)
    gpu: GpuSite | None = None


class Job(NamedTuple):
    """The resources of one job, with the names that Snakemake and its Slurm executor use."""

    cpus_per_task: int
    mem_mb: int
    runtime: int  # minutes
    disk_mb: int  # size of the job's checkpoints, which are removed at its end
    parts: int = 1  # number of consecutive jobs; above 1 if a single job would exceed max_hours
    device: str = "cpu"
    env_workers: int = 0
    gpu: int = 0
    gpu_model: str = ""
    slurm_partition: str = ""
    slurm_account: str = ""


def site_of(config: Mapping[str, Any]) -> Site:
    """Return the site that a user's config describes. Raise UserError if an entry is wrong."""
    return parse(Site, config.get("cluster", {}), "cluster")


def training(cell: CellConfig, runs: int, site: Site) -> Job:
    """Return the resources to train a pack of a cell, or an expert."""
    gpu = site.gpu
    needed = minutes(cell, runs, site)
    job = Job(
        cpus_per_task=1,
        mem_mb=_up(host_mb(cell, runs, site), 500),
        runtime=_up(needed, 10) if needed <= _limit(site) else math.floor(_limit(site)),
        disk_mb=_up(runs * (device_mb(cell) + RUN), 500),
        parts=max(1, math.ceil(needed / _limit(site))),
        slurm_partition=site.partition,
        slurm_account=site.account,
    )
    if gpu is None:
        return job
    workers = env_workers(cell, runs, gpu)
    return job._replace(
        cpus_per_task=1 + workers,
        device="cuda",
        env_workers=workers,
        gpu=1,
        gpu_model=gpu.model,
        slurm_partition=gpu.partition or site.partition,
    )


def recording(env: str, episodes: int, site: Site) -> Job:
    """Return the resources to record episodes of an expert and of a random policy."""
    steps = 2 * episodes * get_task(env).time_limit
    needed = _up(START + MARGIN * steps * _env_step(env) / 60e3, 10)
    return Job(
        cpus_per_task=1,
        mem_mb=_up(PROCESS + episodes * ENV, 500),
        runtime=int(min(needed, _limit(site))),
        disk_mb=500,
        slurm_partition=site.partition,
        slurm_account=site.account,
    )


def pack_size(cell: CellConfig, most: int, site: Site) -> int:
    """Return the largest pack size, from 1 to `most`, that fits the site's memory and time."""
    for runs in range(most, 1, -1):
        fits = host_mb(cell, runs, site) <= 1000 * (site.memory_gb or math.inf)
        if site.gpu is not None:
            fits &= CONTEXT + runs * device_mb(cell) <= 1000 * site.gpu.memory_gb
        if fits and minutes(cell, runs, site) <= _limit(site):
            return runs
    return 1


def _limit(site: Site) -> float:
    return 60 * (site.max_hours or math.inf)


def minutes(cell: CellConfig, runs: int, site: Site) -> float:
    """Return the wall time to request for a whole training run, in minutes."""
    return START + MARGIN * used_minutes(cell, runs, site)


def used_minutes(cell: CellConfig, runs: int, site: Site) -> float:
    """Return the minutes that iterations, env steps and evaluations take, without a margin."""
    train, task, gpu = cell.train, get_task(cell.env), site.gpu
    offline = _offline(cell)
    if gpu is not None:
        base, run, wide = GPU_UPDATE
        update = base + runs * (run + wide * task.obs)
    else:
        base, wide = FIT if offline else UPDATE
        update = runs * (base + wide * task.obs)
    vector_steps = train.steps / train.num_envs
    updates = train.steps if offline else vector_steps * train.updates_per_step
    evaluated = train.steps / train.eval_every * train.eval_episodes * task.time_limit
    workers = max(1.0, env_workers(cell, runs, gpu) / WORKERS) if gpu else 1.0
    env_steps = runs * ((0.0 if offline else train.steps) + evaluated) / workers
    return (updates * update + env_steps * _env_step(cell.env)) / 60e3


def host_mb(cell: CellConfig, runs: int, site: Site) -> float:
    """Return the memory on the host, including the buffers that a resuming job reads."""
    buffer = _buffer_mb(cell)
    read = (runs + 1) * buffer  # the buffers of all runs, and a copy of one while it is assembled
    own = runs * (RUN + ENV * (cell.train.eval_episodes + cell.train.num_envs))
    if site.gpu is None:
        return PROCESS + own + runs * buffer + read
    return GPU_PROCESS + own + 2 * env_workers(cell, runs, site.gpu) * WORKER + read


def device_mb(cell: CellConfig) -> float:
    """Return the memory of a run's buffer and nets on its training device."""
    return _buffer_mb(cell) + RUN


def _buffer_mb(cell: CellConfig) -> float:
    """Return the maximum size of a run's buffer, reached with a policy that always falls."""
    task, train = get_task(cell.env), cell.train
    if _offline(cell):
        return 0.0
    model = load_model(cell.model, cell.method)
    stored = model.prefilled(parse(model.Config, cell.params, "params"))
    stored = _up(stored, train.num_envs)  # whole vector steps
    rows = min(train.buffer, stored + train.steps + train.num_envs)
    ends = rows // task.least_episode(cell.terminate_when_unhealthy)
    return peak_bytes(rows, task.obs, task.act, ends, train.num_envs) / 1e6


def env_workers(cell: CellConfig, runs: int, gpu: GpuSite) -> int:
    """Return the number of processes that step a pack's envs, at most one per env."""
    return 0 if _offline(cell) else min(gpu.env_workers, runs * cell.train.num_envs)


def _offline(cell: CellConfig) -> bool:
    return bool(load_model(cell.model, cell.method).offline)


def _env_step(env: str) -> float:
    return ENV_STEP.get(env, max(ENV_STEP.values())) + ACT


def _up(value: float, unit: int) -> int:
    return unit * math.ceil(value / unit)
