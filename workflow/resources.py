"""Estimate a training job's resources from the job's sizes and from measured speeds.

Time and memory are upper estimates. A job that reaches its time limit loses nothing: Slurm warns
the job in advance, the job writes a checkpoint, and Snakemake retries the job. A pack is a group of
runs that one job trains together.
"""

import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ngt.errors import UserError, suggest
from ngt.experience.envs import get_task
from ngt.experience.replay import peak_bytes
from ngt.settings.config import CellConfig, Config
from ngt.settings.resolve import load_model
from ngt.settings.schema import opt, parse

# All times are in milliseconds. Times on a CPU are for one thread of a 2-core AMD EPYC with torch
# 2.13 (docs/performance.md).
# Time of one iteration of a run: a constant, and the time per observation dimension. Both numbers
# are fitted to the slowest methods: 18.4 ms on HalfCheetah-v4 (17 dimensions), 21.1 ms on Ant-v4
# (111) and 33.3 ms on Humanoid-v4 (376). Only P2IL takes longer, 1.15 times as long on
# HalfCheetah-v4, which MARGIN covers.
UPDATE = (18.5, 0.04)
# Time of a gradient step of an offline method: a constant, and the time per observation dimension.
# Measured times are 1.3 to 2.4 ms on these envs.
FIT = (1.3, 0.0028)
# Time of one iteration of a pack on an H200: a constant, the time per run, and the time per run and
# observation dimension. Packs of 12 take 1.67 ms on Walker2d-v4 and 2.68 ms on Humanoid-v4
# (results/published/gpu.json), plus 0.7 ms for acting and storing.
GPU_UPDATE = (1.7, 0.05, 0.0002)
# Time of an env step: 1.5 times the time measured with a random policy, because the physics solver
# takes longer for a standing body. An env that is not listed is assumed to be as slow as the
# slowest env in the list.
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
ACT = 0.1  # time that the policy and bookkeeping take per env step
# With this number of env processes, envs are stepped as fast as without env processes, i.e. by the
# training thread. With 12 env processes, they are stepped 2.4 times as fast.
WORKERS = 5.0
# All times are multiplied by this factor, because speeds vary by a fifth on a shared machine and a
# different processor may be slower.
MARGIN = 1.5
START = 15.0  # minutes to start Snakemake and import packages twice on a slow file system

# All memory is in megabytes.
PROCESS = 1500  # the trainer (500), three Snakemake processes around it (250 each), 250 spare
GPU_PROCESS = 6000  # the same processes if the trainer uses CUDA's libraries and context
RUN = 50  # a run's nets, target nets, Adam moments and CUDA graphs; on Humanoid-v4, these take 40
ENV = 13  # a dm_control env; a Gymnasium env takes 1
WORKER = 150  # an env process; evaluations use the same number of further env processes
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
    """The cluster on which jobs run, from the `cluster` section of a user's config."""

    partition: str = opt("", "partition of every job; the cluster's default if empty")
    account: str = opt("", "account to charge; the user's default if empty")
    max_hours: float | None = opt(None, "time limit of a job; longer training takes several", 0.1)
    memory_gb: float | None = opt(None, "memory limit of a job; packs are split to fit", 1)
    gpu: GpuSite | None = None


class Job(NamedTuple):
    """The resources of one job, with the names that Snakemake and its Slurm executor use."""

    cpus_per_task: int
    mem_mb: int
    runtime: int  # minutes
    disk_mb: int  # size of the job's checkpoints, which are removed when it ends
    parts: int = 1  # number of consecutive jobs; above 1 if training takes more than max_hours
    device: str = "cpu"
    env_workers: int = 0
    gpu: int = 0
    gpu_model: str = ""
    gpu_mb: int = 0  # memory of the GPU
    slurm_partition: str = ""
    slurm_account: str = ""


def site_of(config: Mapping[str, Any]) -> Site:
    """Return the site that a user's config describes. Raise UserError if an entry is wrong.

    All top-level names in the config are checked, so that a misspelt `cluster` is found.
    """
    known = [*(field.name for field in fields(Config)), "cluster"]
    for name in config:
        if name not in known:
            raise UserError(f"{name}: unknown key; {suggest(str(name), known)}")
    return parse(Site, config.get("cluster", {}), "cluster")


def check_executor(name: str) -> None:
    """Check that Snakemake's executor can submit jobs."""
    if name == "slurm" and shutil.which("sbatch") is None:
        raise UserError(
            "executor: slurm, but this machine has no `sbatch`; run the command on a login node, "
            "or train here with --workflow-profile workflow/profiles/default"
        )


def training(cell: CellConfig, runs: int, site: Site) -> Job:
    """Return the resources for training `runs` runs, or an expert, in one job.

    cell: the settings that these runs share.
    """
    gpu = site.gpu
    needed = minutes(cell, runs, site)
    job = Job(
        cpus_per_task=1,
        mem_mb=_memory(host_mb(cell, runs, site), site),
        runtime=int(min(_up(needed, 10), _limit(site))),
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
        gpu_mb=math.ceil(gpu_mb(cell, runs)),
        slurm_partition=gpu.partition or site.partition,
    )


def recording(env: str, episodes: int, site: Site) -> Job:
    """Return the resources for recording episodes of an expert and of a random policy."""
    steps = 2 * episodes * get_task(env).time_limit
    needed = _up(START + MARGIN * steps * _env_step(env) / 60e3, 10)
    return Job(
        cpus_per_task=1,
        mem_mb=_memory(PROCESS + episodes * ENV, site),
        runtime=int(min(needed, _limit(site))),
        disk_mb=500,
        slurm_partition=site.partition,
        slurm_account=site.account,
    )


def pack_size(cell: CellConfig, most: int, site: Site) -> int:
    """Return how many runs, at most `most`, a job trains together.

    This is the number with the fewest requested hours per run, among those that fit the memory. On
    a GPU, the training may take several consecutive jobs. On a CPU, several runs must fit into one
    job, because training them together is assumed to take as long as one after another. Return 1
    even if a single run does not fit.
    """
    sizes = [runs for runs in range(most, 1, -1) if _fits(cell, runs, site)]
    return min((*sizes, 1), key=lambda runs: _requested(cell, runs, site) / runs)


def _fits(cell: CellConfig, runs: int, site: Site) -> bool:
    """Return True if a pack fits the site's memory and, on a CPU, into one job."""
    if host_mb(cell, runs, site) > 1000 * (site.memory_gb or math.inf):
        return False
    if site.gpu is None:
        return minutes(cell, runs, site) <= _limit(site)
    return gpu_mb(cell, runs) <= 1000 * site.gpu.memory_gb


def _requested(cell: CellConfig, runs: int, site: Site) -> float:
    """Return the minutes that all consecutive jobs of a pack request together."""
    needed = minutes(cell, runs, site)
    parts = math.ceil(needed / _limit(site))
    return needed if parts <= 1 else parts * _limit(site)


def _memory(needed: float, site: Site) -> int:
    """Return the memory to request, which exceeds the site's limit only if `needed` does."""
    limit, rounded = 1000 * (site.memory_gb or math.inf), _up(needed, 500)
    return int(limit) if needed <= limit < rounded else rounded


def _limit(site: Site) -> float:
    return 60 * (site.max_hours or math.inf)


def minutes(cell: CellConfig, runs: int, site: Site) -> float:
    """Return the wall time, in minutes, to request for the whole training of a pack."""
    return START + MARGIN * used_minutes(cell, runs, site)


def used_minutes(cell: CellConfig, runs: int, site: Site) -> float:
    """Return the minutes that the training of a pack takes, without a margin.

    The time consists of iterations, env steps and evaluations.
    """
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
    """Return a job's memory on the host, including the buffers that a resumed job reads."""
    buffer = _buffer_mb(cell)
    read = (runs + 1) * buffer  # all runs' buffers, and a copy of the buffer being assembled
    own = runs * (RUN + ENV * (cell.train.eval_episodes + cell.train.num_envs))
    if site.gpu is None:
        return PROCESS + own + runs * buffer + read
    return GPU_PROCESS + own + 2 * env_workers(cell, runs, site.gpu) * WORKER + read


def gpu_mb(cell: CellConfig, runs: int) -> float:
    """Return the memory of a GPU that a pack needs."""
    return CONTEXT + runs * device_mb(cell)


def device_mb(cell: CellConfig) -> float:
    """Return the memory of a run's buffer and nets on the device that trains the run."""
    return _buffer_mb(cell) + RUN


def _buffer_mb(cell: CellConfig) -> float:
    """Return the maximum size of a run's replay buffer.

    A policy that always falls reaches this size, because the buffer also holds the last observation
    of each episode.
    """
    task, train = get_task(cell.env), cell.train
    if _offline(cell):
        return 0.0
    model = load_model(cell.model, cell.method)
    stored = model.prefilled(parse(model.Config, cell.params, "params"))
    stored = _up(stored, train.num_envs)  # a vector step stores one row per env
    rows = min(train.buffer, stored + train.steps + train.num_envs)
    ends = rows // task.least_episode(cell.terminate_when_unhealthy)
    return peak_bytes(rows, task.obs, task.act, ends, train.num_envs) / 1e6


def env_workers(cell: CellConfig, runs: int, gpu: GpuSite) -> int:
    """Return how many processes step the envs of a pack, which is at most one process per env."""
    return 0 if _offline(cell) else min(gpu.env_workers, runs * cell.train.num_envs)


def _offline(cell: CellConfig) -> bool:
    return bool(load_model(cell.model, cell.method).offline)


def _env_step(env: str) -> float:
    return ENV_STEP.get(env, max(ENV_STEP.values())) + ACT


def _up(value: float, unit: int) -> int:
    return unit * math.ceil(value / unit)
