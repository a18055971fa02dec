"""Fixtures that write runs in the trainer's format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.runs.keys import Layout, RunKey, resolve_key
from ngt.runs.writer import RunWriter
from ngt.settings.config import Config
from ngt.settings.load import load


@pytest.fixture
def settings() -> dict[str, Any]:
    """Return the settings of a study with one figure, `f`, that has two runs."""
    figure = {"methods": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1, 4], "seeds": [0]}
    return {
        "scale": "test",
        "expert": {"episodes": 4},
        "envs": {"Pendulum-v1": {"demos": ""}},  # use recorded demos, not those of scale `test`
        "figures": {"f": figure},
    }


@pytest.fixture
def config(settings: dict[str, Any]) -> Config:
    return load(settings)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout("test", tmp_path)


@pytest.fixture
def begin(layout: Layout) -> Callable[[Config, RunKey], RunWriter]:
    """Return a function that starts the run of a key and returns the run's writer."""
    return lambda config, key: RunWriter(layout.run(key), key.record, resolve_key(config, key))


@pytest.fixture
def complete() -> Callable[..., None]:
    """Return a function that writes the rest of a run.

    Its argument `returns` maps each step to the episodes' returns: {step: [return, ...]}.
    """

    def write(
        writer: RunWriter, cell: Any, returns: dict[int, list[float]], record: dict[str, Any]
    ) -> None:
        for step, values in returns.items():
            writer.evaluation(step, values, [200] * len(values))
        torch.manual_seed(0)
        tensors = Policy(Actor(3, 1, cell.sac, [0]), None).snapshot(0)
        writer.finish(tensors, {"steps_per_second": 50.0, **record})

    return write


@pytest.fixture
def train(
    begin: Callable[[Config, RunKey], RunWriter], complete: Callable[..., None]
) -> Callable[..., None]:
    """Return a function that writes a finished or diverged run."""

    def write(
        config: Config,
        key: RunKey,
        returns: dict[int, list[float]],
        diverged: bool = False,
        **more: Any,
    ) -> None:
        finished = {"status": "finished", "step": 400}
        record = {"status": "diverged", "step": 200, "tensor": "obs"} if diverged else finished
        record |= {"reference": {"random": -1000.0, "expert": -200.0}, **more}
        complete(begin(config, key), config, returns, record)

    return write
