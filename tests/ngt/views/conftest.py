"""A small study, and a function that starts one of its runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ngt.runs.folder import Folders
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.writer import RunWriter
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.views.progress import Progress


@pytest.fixture(scope="session")
def config() -> Config:
    """Return the settings of two runs of one curve, with demonstrations that exist."""
    figure = {"methods": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1], "seeds": [0, 1]}
    train = {"steps": 100, "eval_every": 20, "eval_episodes": 2}
    return load({"scale": "test", "train": train, "figures": {"f": figure}})


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout("test", tmp_path / "results")


@pytest.fixture
def keys(config: Config) -> list[RunKey]:
    return run_table(config, ["f"])


@pytest.fixture
def progress(layout: Layout, config: Config, keys: list[RunKey]) -> Progress:
    return Progress(layout, config, keys)


@pytest.fixture
def begin(layout: Layout, config: Config) -> Callable[[RunKey], RunWriter]:
    """Return a function that starts the run of a key and returns the run's writer."""
    return lambda key: RunWriter(layout.run(key), key.record, resolve_key(config, key))


@pytest.fixture
def finish(layout: Layout, config: Config) -> Callable[..., None]:
    """Return a function that completes a run."""
    reference = Folders(layout, config).reference("Pendulum-v1")

    def complete(writer: RunWriter, status: str = "finished") -> None:
        record = {"status": status, "step": 100, "steps_per_second": 1.0, "reference": reference}
        writer.finish({}, record)

    return complete
