"""The GPU benchmark's functions, run on a CPU with plain calls in place of graphs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ngt.bench import gpu, measure
from ngt.bench.cases import Contender, cell_of
from ngt.experience.replay import Replay
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.training import trainer
from paper.claims.gpu import FEWER, METHODS


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "DEVICE", "cpu")
    monkeypatch.setattr(gpu, "Graph", lambda step: step)
    monkeypatch.setattr(gpu, "FILLED", 300)
    monkeypatch.setattr(gpu, "REPEATS", 1)
    monkeypatch.setattr(gpu, "COUNTS", dict.fromkeys(gpu.COUNTS, 3))
    monkeypatch.setattr(gpu, "WHOLE", 100)
    monkeypatch.setattr(gpu, "TRAININGS", {1: 1100, 2: 1100})
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "none")
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 2_000_000_000)


def factors(contender: Contender) -> list[tuple[torch.Size, torch.Size]]:
    with measure.Products("cpu") as noted:
        contender.call()
    return [(a.shape, b.shape) for _, (a, b) in noted.calls]


def test_the_floor_has_the_products_of_an_update(on_a_cpu: None) -> None:
    """Count SAC's products by hand: five forward passes of three layers, and their gradients.

    The critic's loss passes forward through actor, target and critic. The actor's loss passes
    through actor and critic. The gradients need a product for each of these:
    - the critic's 3 weights and 2 inner inputs
    - the frozen critic's 3 inputs
    - the actor's 3 weights and 2 inner inputs
    """
    shapes = factors(gpu.floor("SAC", "Hopper-v4", 2))
    assert len(shapes) == 5 * 3 + 5 + 3 + 5
    assert ((2, 256, 11), (2, 11, 256)) in shapes, (
        "the products must include the actor's first layer"
    )
    assert ((4, 256, 14), (4, 14, 256)) in shapes, (
        "the products must include the twin critics' first layer"
    )
    assert all(a[0] == b[0] and a[2] == b[1] for a, b in shapes)


def test_rates_are_of_every_way_of_updating(
    on_a_cpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"floor": 1.0, "eager": 8.0, "graph": 2.0}

    def milliseconds(name: str, contender: Contender) -> float:
        contender.call()
        return times[name]

    monkeypatch.setattr(gpu, "milliseconds", milliseconds)
    row = gpu.rate("DAC", "Pendulum-v1", 2)
    assert [row[f"{name}_ms"] for name in times] == list(times.values())
    assert (row["eager_per_run"], row["graph_per_run"]) == (125.0, 500.0)
    assert row["memory_gb"] == 2.0 and 0 < row["buffer_gb"] < 0.01


def test_a_call_takes_the_median_rounds_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: object) -> dict[str, list[float]]:
        return {"": [100.0, 500.0, 200.0]}

    monkeypatch.setattr(measure, "measure", measured)
    assert gpu.milliseconds("graph", Contender(lambda: None)) == 5.0


def test_memory_is_measured_with_the_whole_buffer(
    on_a_cpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read the capacity of the buffer that the run makes, which is longer than the run."""
    made: list[Replay] = []

    class Noted(Replay):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    def small(*args: Any) -> CellConfig:
        cell = cell_of(*args)
        return replace(cell, train=replace(cell.train, batch=32, learning_starts=96))

    monkeypatch.setattr(trainer, "Replay", Noted)
    monkeypatch.setattr(gpu, "cell_of", small)
    row = gpu.memory("dac-r", "Pendulum-v1")
    (replay,) = made
    assert replay.capacity == row["buffer"] == TrainConfig().buffer
    assert replay.total == gpu.WHOLE < replay.capacity


def test_the_buffers_are_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a buffer is smaller for DiffAIL on Humanoid, and nowhere else."""
    found = {}

    class Stopped(Exception):
        pass

    def noted(model: str, env: str, train: TrainConfig) -> CellConfig:
        found[env] = train.buffer
        raise Stopped

    monkeypatch.setattr(gpu, "cell_of", noted)
    for method in gpu.METHODS:
        for env in ("Humanoid-v4", "Walker2d-v4"):
            with pytest.raises(Stopped):
                gpu.memory(method, env)
        less = 1_000_000 if method == "diffail" else 0
        assert found == {"Humanoid-v4": 4_000_000 - less, "Walker2d-v4": 4_000_000}
    assert gpu.FEWER == FEWER


@pytest.mark.slow
def test_everything_is_measured_and_the_file_is_what_the_claims_read(
    on_a_cpu: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agreement: Callable[..., list[dict]] = measure.agreement
    monkeypatch.setattr(measure, "agreement", lambda sides: agreement(sides, (1, 2)))

    def small(*args: Any) -> CellConfig:
        params = {"hidden": [16, 16], "m": 4}  # only NGT and RED use these
        cell = replace(cell_of(*args), sac=SacConfig(hidden=(16, 16)), params=params)
        random = 900 if cell.train.steps in gpu.TRAININGS.values() else 0  # steps without updates
        return replace(cell, train=replace(cell.train, batch=32, learning_starts=random))

    monkeypatch.setattr(gpu, "cell_of", small)
    path = tmp_path / "gpu.json"
    options = ["--packs", "1", "2", "--envs", "Pendulum-v1", "--models", "NGT", "--workers", "1"]
    gpu.main(["--json", str(path), *options])
    result = json.loads(path.read_text())
    shipped = json.loads(
        (Path(__file__).parents[3] / "results" / "published" / "gpu.json").read_text()
    )
    assert set(shipped) <= set(result)
    for kind in ("agreement", "rates", "training"):
        assert set(shipped[kind][0]) <= set(result[kind][0]), kind
    assert [(r["updates"], r["cpu_eager"], r["eager_graph"]) for r in result["agreement"]] == [
        (1, 0.0, 0.0),
        (2, 0.0, 0.0),
    ]
    assert [r["pack"] for r in result["rates"]] == [1, 2]
    trainings = [(r["pack"], r["workers"], r["graphs"]) for r in result["training"]]
    assert trainings == [(1, 0, True), (2, 1, True), (1, 0, False)]
    assert tuple(r["model"] for r in result["memory"]) == METHODS
    assert {(r["buffer"], r["memory_gb"]) for r in result["memory"]} == {(4_000_000, 2.0)}
    assert all(r["env_steps_per_second"] > 0 for r in result["training"])
    said = capsys.readouterr().out
    assert said.count("rates model=NGT env=Pendulum-v1") == 2 and "eager_graph=0" in said
