"""Measure a CUDA device's agreement with the CPU, its update rates, and its memory use.

`make gpu-check` runs the tests that are marked `gpu`, then this module, which writes one JSON file.
The module needs torch, numpy, einops, gymnasium[mujoco], safetensors and tqdm; the tests also need
pytest. Neither the tests nor the module use the network.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from ngt.agent import kernels
from ngt.bench import measure
from ngt.bench.cases import MODELS, Contender, cell_of, members_of, pack_of
from ngt.bench.text import fields
from ngt.experience.replay import Batch
from ngt.files import read_json, write_json
from ngt.runs.provenance import source_hash
from ngt.settings.config import CellConfig, TrainConfig
from ngt.training.collector import Collector
from ngt.training.graphs import Graph
from ngt.training.trainer import Trainer

DEVICE = "cuda"
FILLED = 100_000  # number of transitions in a measured learner's buffer
REPEATS = 5
COUNTS = {"eager": 20, "graph": 128, "floor": 100}  # measurement -> number of updates per round
WHOLE = 2000  # number of env steps of a training run whose memory use is measured
METHODS = {  # every online method of the paper, except DAC with the reward R+
    "ngt": "ngt.potential:Potential",
    "pwil": "baselines.pwil:Pwil",
    "dac-r": "baselines.dac:Dac",
    "wdac": "baselines.wdac:Wdac",
    "mmd-dac": "baselines.mmd:MmdDac",
    "red": "baselines.red:Red",
    "diffail": "baselines.diffail:DiffAil",
}
# Transitions by which the paper makes a buffer smaller, so that training fits its GPU.
FEWER = {("diffail", "Humanoid-v4"): 1_000_000}
TRAININGS = {1: 6000, 12: 4000, 24: 4000}  # size of a pack -> number of env steps of each run


def agreement(model: str, env: str) -> list[dict[str, Any]]:
    """Return how much parameters differ between the CPU, eager CUDA and CUDA graphs.

    The CPU is compared with eager CUDA, and eager CUDA is compared with CUDA graphs.
    """
    sides = {
        name: [pack_of(cell_of(model, env), range(2), device, graphs=name == "graph", filled=5000)]
        for name, device in (("cpu", "cpu"), ("eager", DEVICE), ("graph", DEVICE))
    }
    return [{"model": model, "env": env, **row} for row in measure.agreement(sides)]


def floor(model: str, env: str, pack: int) -> Contender:
    """Return a function to time that makes only an update's matrix products, as a CUDA graph.

    The products are recorded on the CPU. oneDNN is switched off for this, since a CUDA device does
    not use oneDNN.
    """
    update = pack_of(cell_of(model, env), range(pack), filled=2000).update
    with mock.patch.object(kernels, "ONEDNN", False):
        update()
        return Contender(Graph(measure.floor(update, DEVICE)))


def milliseconds(name: str, contender: Contender) -> float:
    """Return the median time of one call in milliseconds.

    name: a key of COUNTS.
    """
    return 1000 / statistics.median(measure.measure({"": contender}, REPEATS, COUNTS[name])[""])


def rate(model: str, env: str, pack: int) -> dict[str, Any]:
    """Measure the time, rate and memory use of an update of a pack.

    A pack is a number of runs that are trained together. The update is timed in eager mode and as a
    CUDA graph. `floor_ms` is the time of the update's matrix products alone, which is a lower bound
    on the update's time.
    """
    row: dict[str, Any] = {"model": model, "env": env, "pack": pack}
    row["floor_ms"] = milliseconds("floor", floor(model, env, pack))
    for name in ("eager", "graph"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        made = pack_of(
            cell_of(model, env), range(pack), DEVICE, graphs=name == "graph", filled=FILLED
        )
        row[f"{name}_ms"] = milliseconds(name, Contender(made.update))
        row[f"{name}_per_run"] = 1000 / row[f"{name}_ms"]
        row["memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        kept = made.replay
        row["buffer_gb"] = sum(t.nbytes for t in (kept.rows, kept.after, kept.finals)) / 1e9
    return row


def train(
    cell: CellConfig, pack: int = 1, workers: int = 0, *, graphs: bool = True
) -> dict[str, Any]:
    """Train a pack of runs to the end, and return the contents of the first run's run.json."""
    with tempfile.TemporaryDirectory() as folder:
        members = members_of(cell, range(pack), Path(folder))
        Trainer(cell, members, device=DEVICE, env_workers=workers, graphs=graphs).run("gpu-check")
        run = read_json(members[0].folder / "run.json")
    assert run is not None
    return run


def training(
    model: str, env: str, pack: int, steps: int, workers: int, *, graphs: bool = True
) -> dict[str, Any]:
    """Measure the env steps per second of one run in whole training, without evaluations."""
    settings = TrainConfig(
        steps=steps, buffer=100_000, eval_every=steps, eval_episodes=1, log_every=1000
    )
    run = train(cell_of(model, env, settings), pack, workers, graphs=graphs)
    (a, start), (b, end) = run["timing"][0], run["timing"][-1]  # leaves out the warm-up interval
    return {
        "model": model,
        "env": env,
        "pack": pack,
        "workers": workers,
        "graphs": graphs,
        "env_steps_per_second": round((b - a) / (end - start), 1),
    }


class _WholeBuffer(Trainer):
    """A trainer whose buffer has the size in the settings, although the run never fills it."""

    def _collector(self, seeds: Sequence[int], first: Batch | None) -> Collector:
        run = self.cell
        self.cell = replace(run, train=replace(run.train, steps=run.train.buffer))
        made = super()._collector(seeds, first)
        self.cell = run
        return made


def memory(method: str, env: str) -> dict[str, Any]:
    """Measure the peak memory of training one of METHODS with a buffer of the paper's size.

    The table of final observations, which grows with the number of episodes, has its initial size.
    """
    settings = TrainConfig(
        steps=WHOLE,
        buffer=TrainConfig.buffer - FEWER.get((method, env), 0),
        eval_every=WHOLE,
        eval_episodes=1,
        log_every=WHOLE,
    )
    like = cell_of("NGT", env, settings)
    shares = method in ("ngt", "red")  # RED has NGT's pairing losses
    cell = replace(like, model=METHODS[method], params=like.params if shares else {})
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as folder:
        trainer = _WholeBuffer(cell, members_of(cell, [0], Path(folder)), device=DEVICE)
        trainer.run("gpu-check")
    assert trainer.collector is not None
    size = trainer.collector.replay.capacity
    peak = torch.cuda.max_memory_allocated() / 1e9
    return {"model": method, "env": env, "buffer": size, "memory_gb": peak}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all measurements and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m ngt.bench.gpu", description=__doc__)
    parser.add_argument("--json", type=Path, required=True, help="file for the results")
    parser.add_argument("--packs", type=int, nargs="+", default=[1, 4, 12, 24])
    parser.add_argument("--envs", nargs="+", default=["Walker2d-v4", "Humanoid-v4"])
    parser.add_argument("--models", nargs="+", default=["NGT", "DAC"], choices=list(MODELS))
    parser.add_argument(
        "--workers",
        type=int,
        default=max(0, min(12, (os.cpu_count() or 1) - 2)),
        help="number of env processes for a pack (default: 12, or the number of cores minus 2 if "
        "that is lower)",
    )
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "source": source_hash(),
        "agreement": [],
        "rates": [],
        "training": [],
        "memory": [],
    }

    def note(kind: str, *rows: dict[str, Any]) -> None:
        """Print new rows, and write all results so far to the file."""
        result[kind] += rows
        for row in rows:
            print(kind, fields(row), flush=True)
        write_json(args.json, result)

    for model, env in product(args.models, args.envs):
        note("agreement", *agreement(model, env))
    for env, model, pack in product(args.envs, args.models, args.packs):
        note("rates", rate(model, env, pack))
    for env in args.envs:
        for pack, steps in TRAININGS.items():
            workers = args.workers if pack > 1 else 0
            note("training", training(args.models[0], env, pack, steps, workers))
        for model in args.models:
            done = model == args.models[0]  # already measured with graphs above
            for graphs in (False,) if done else (True, False):
                note("training", training(model, env, 1, TRAININGS[1], 0, graphs=graphs))
        for method in METHODS:
            note("memory", memory(method, env))


if __name__ == "__main__":
    main()
