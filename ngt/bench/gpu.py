"""What a CUDA device gives: agreement with the CPU, rates against the floor, memory.

`make gpu-check` runs the tests marked `gpu`, then this, and writes one JSON file. This needs torch,
numpy, einops, gymnasium[mujoco], safetensors and tqdm; the tests need pytest too. No network.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from ngt.bench.cpu import Products, ngt_params, pack_of, random_batch
from ngt.experience.envs import get_task
from ngt.experience.replay import Replay
from ngt.files import atomic
from ngt.runs.writer import source_hash
from ngt.settings.config import CellConfig, TrainConfig
from ngt.training.graphs import Graph
from ngt.training.learner import Learner, Member
from ngt.training.trainer import Trainer

MODELS = {
    "NGT": "ngt.potential:Potential",
    "DAC": "baselines.dac:Dac",
    "SAC": "ngt.reward:EnvReward",
}
FILLED = 100_000  # transitions in every buffer, random: their values change no cost


def cell_of(model: str, env: str, train: TrainConfig | None = None) -> CellConfig:
    """The paper's settings of a model on an env."""
    params = ngt_params(env) if model == "NGT" else {}
    return CellConfig(
        env=env, method="gpu-check", model=MODELS[model], params=params,
        train=train or TrainConfig(),
    )  # fmt: skip


def learner(
    model: str, env: str, pack: int, device: str, *, graphs: bool = True, filled: int = FILLED
) -> tuple[Learner, Replay]:
    """A pack of the model with a filled buffer."""
    return pack_of(cell_of(model, env), range(pack), device, graphs=graphs, filled=filled)


# ---------------------------------------------------------------- agreement


def parameters(made: Learner) -> Tensor:
    """All parameters of all runs, on the CPU."""
    nets = (made.agent, made.model)
    return torch.cat([p.detach().flatten().cpu().double() for n in nets for p in n.parameters()])


def agreement(model: str, env: str, updates: Sequence[int] = (1, 10, 100)) -> list[dict[str, Any]]:
    """Largest difference of any parameter: CPU against eager CUDA, eager against graph."""
    cpu, eager, graph = (
        learner(model, env, 2, device, graphs=graphs, filled=5000)
        for device, graphs in (("cpu", False), ("cuda", False), ("cuda", True))
    )
    rows = []
    for count in range(1, max(updates) + 1):
        for made, replay in (cpu, eager, graph):
            made.update(replay)
        if count in updates:
            c, e, g = (parameters(made) for made, _ in (cpu, eager, graph))
            rows.append({
                "model": model, "env": env, "updates": count,
                "cpu_eager": float((c - e).abs().max()), "eager_graph": float((e - g).abs().max()),
            })  # fmt: skip
    return rows


# ---------------------------------------------------------------- rates


def products(model: str, env: str, pack: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shapes of one update's matrix products, as a CUDA device makes them."""
    made, replay = learner(model, env, pack, "cpu", filled=2000)
    with mock.patch.object(kernels, "ONEDNN", False):
        made.update(replay)
        with Products() as noted:
            made.update(replay)
    return [(tuple(a.shape), tuple(b.shape)) for _, (*_, a, b) in noted.calls]


def timed(step: Callable[[], None], count: int, repeats: int = 5) -> float:
    """Median seconds of one step."""
    step()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


def floor(shapes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> float:
    """Seconds that one update's matrix products alone take, captured in one graph."""
    pairs = [(torch.randn(a, device="cuda"), torch.randn(b, device="cuda")) for a, b in shapes]
    outs = [a @ b for a, b in pairs]

    def step() -> None:
        for (a, b), out in zip(pairs, outs, strict=True):
            torch.matmul(a, b, out=out)

    graph = Graph(step)
    for _ in range(4):
        graph()
    return timed(graph, 100)


def rate(model: str, env: str, pack: int) -> dict[str, Any]:
    """Updates per second and run: eager, graph, and the floor of matrix products."""
    row: dict[str, Any] = {"model": model, "env": env, "pack": pack}
    row["floor_ms"] = 1e3 * floor(products(model, env, pack))
    for name, graphs in (("eager", False), ("graph", True)):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        made, replay = learner(model, env, pack, "cuda", graphs=graphs)
        for _ in range(5):
            made.update(replay)
        seconds = timed(lambda: made.update(replay), 128 if graphs else 20)  # noqa: B023
        row[f"{name}_ms"] = 1e3 * seconds
        row[f"{name}_per_run"] = 1 / seconds
        row["memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        row["buffer_gb"] = sum(t.nbytes for t in (replay.rows, replay.after, replay.finals)) / 1e9
    return row


def training(
    model: str, env: str, pack: int, steps: int, workers: int, device: str = "cuda"
) -> dict[str, Any]:  # fmt: skip
    """Env steps per second and run of whole training, evaluation left out."""
    task = get_task(env)
    train = TrainConfig(
        steps=steps, buffer=100_000, eval_every=steps, eval_episodes=1, log_every=1000
    )
    cell = cell_of(model, env, train)
    data = random_batch(1, 200, task.obs, task.act)
    with tempfile.TemporaryDirectory() as folder:
        members = [Member(Path(folder) / str(s), {}, s, 4, data) for s in range(pack)]
        trainer = Trainer(cell, members, device=device, env_workers=workers)
        trainer.run("gpu-check")
        run = json.loads((Path(folder) / "0" / "run.json").read_text(encoding="utf-8"))
    (a, start), (b, end) = run["timing"][0], run["timing"][-1]  # the first interval warms up
    return {
        "model": model, "env": env, "pack": pack, "workers": workers,
        "env_steps_per_second": round((b - a) / (end - start), 1),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything and write the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m ngt.bench.gpu", description=__doc__)
    parser.add_argument("--json", type=Path, required=True, help="where the figures go")
    parser.add_argument("--packs", type=int, nargs="+", default=[1, 4, 12, 24])
    parser.add_argument("--envs", nargs="+", default=["Walker2d-v4", "Humanoid-v4"])
    parser.add_argument("--models", nargs="+", default=["NGT", "DAC"], choices=list(MODELS))
    parser.add_argument(
        "--workers", type=int, default=max(0, min(12, (os.cpu_count() or 1) - 2)),
        help="env processes of trainings in packs (default: 12, or two less than cores)",
    )  # fmt: skip
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "cores": os.cpu_count(), "source": source_hash(),
        "agreement": [], "rates": [], "training": [],
    }  # fmt: skip

    def note(kind: str, rows: list[dict[str, Any]]) -> None:
        """Print the rows as they come, and keep the file whole at every moment."""
        result[kind] += rows
        for row in rows:
            shown = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in row.items()}
            print(kind, " ".join(f"{k}={v}" for k, v in shown.items()), flush=True)
        with atomic(args.json) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    for model in args.models:
        for env in args.envs:
            note("agreement", agreement(model, env))
    for env in args.envs:
        for model in args.models:
            for pack in args.packs:
                note("rates", [rate(model, env, pack)])
    for env in args.envs:
        note("training", [training(args.models[0], env, 1, 6000, 0)])
        for pack in (12, 24):
            note("training", [training(args.models[0], env, pack, 4000, args.workers)])


if __name__ == "__main__":
    main()
