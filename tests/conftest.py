"""Fixtures that several test files share.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import copy
import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import settings
from torch import Tensor

from ngt.agent.nets import PackedMLP
from ngt.agent.streams import Draw, Streams
from ngt.experience.replay import Batch
from ngt.reward import RewardModel
from ngt.settings.load import CONFIG_DIR

# Draw the same examples every time. Set no time limit, because the machine may be busy.
settings.register_profile("ngt", derandomize=True, deadline=None)
settings.load_profile("ngt")

VECTORS = Path(__file__).parent / "data" / "vectors"  # described in the README.md there


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no worker ends long after the others.

    A slow test counts as much as 25 others.
    """
    weight: Counter[Path] = Counter()
    for item in items:
        weight[item.path] += 25 if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weight[item.path])


def pytest_collection_finish() -> None:
    """Exempt all that is loaded by now from garbage collection, which would visit it repeatedly."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Use one torch thread: tests run in parallel, and sums must always have the same order."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """Do not flush files to the disk: it takes long, and matters only if the machine fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def shipped_configs_are_parsed_once() -> Iterator[None]:
    """Parse the YAML of each shipped config once: hundreds of tests load the same files."""
    texts = {file.read_text(encoding="utf-8") for file in CONFIG_DIR.glob("*.yaml")}
    parse, parsed = yaml.load, {}

    def load(stream: Any, Loader: Any) -> Any:
        if not isinstance(stream, str) or stream not in texts:
            return parse(stream, Loader)
        key = (stream, Loader.__name__)
        if key not in parsed:
            parsed[key] = parse(stream, Loader)
        return copy.deepcopy(parsed[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "load", load)
        yield


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """Return run(folder, args, **variables), which runs Python in a folder and returns its output.

    The function adds the variables to the environment and requires exit code 0.
    """

    def run(folder: Path, args: Sequence[str], **variables: str) -> str:
        done = subprocess.run(
            [sys.executable, *args],
            cwd=folder,
            text=True,
            timeout=300,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | variables,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture
def float64() -> Iterator[None]:
    """Create nets and tensors in float64 during the test."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="session", params=[".", "second"], ids=["first", "second"])
def vectors(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Tensor]]:
    """Return a function that loads a named vector file and returns its arrays by name.

    Each test runs on both sets of vectors, so it must take every size from the file.
    """

    def load(name: str) -> dict[str, Tensor]:
        with np.load(VECTORS / request.param / f"{name}.npz", allow_pickle=False) as file:
            return {key: torch.from_numpy(file[key]) for key in file.files}

    return load


@pytest.fixture(scope="session")
def load_layers() -> Callable[..., None]:
    """Return a function that copies (weight (out, in), bias) pairs into a net with one run.

    If the net holds twin critics, the argument `twin` selects one.
    """

    def load(
        net: PackedMLP, pairs: Sequence[tuple[Tensor, Tensor]], twin: int | None = None
    ) -> None:
        at = (0,) if twin is None else (0, twin)
        for layer, pair in zip(net.layers, pairs, strict=True):
            for parameter, value in zip((layer.weight, layer.bias), pair, strict=True):
                assert isinstance(parameter, Tensor)
                parameter.data[at] = value.t().to(parameter.dtype)

    return load


@pytest.fixture(scope="session")
def make_batch() -> Callable[..., Batch]:
    """Return a function that makes random transitions, about a third of them terminal."""

    def make(runs: int, size: int, obs: int, act: int, seed: int = 0, scale: float = 1.0) -> Batch:
        g = torch.Generator().manual_seed(seed)
        return Batch(
            obs=scale * torch.randn(runs, size, obs, generator=g),
            action=2.0 * torch.rand(runs, size, act, generator=g) - 1.0,
            next_obs=scale * torch.randn(runs, size, obs, generator=g),
            reward=torch.randn(runs, size, generator=g),
            terminated=(torch.rand(runs, size, generator=g) < 1 / 3).to(torch.get_default_dtype()),
        )

    return make


@pytest.fixture(scope="session")
def of_run() -> Callable[[Batch, int], Batch]:
    """Return a function that extracts one run's transitions as a batch of one run."""
    return lambda batch, run: Batch(*(field[run : run + 1] for field in batch))


@pytest.fixture(scope="session")
def broken_run_stays_alone(make_batch: Callable[..., Batch]) -> Callable[..., None]:
    """Return a function that checks that one run's broken data changes no other run of a pack."""

    def check(
        build: Callable[[], RewardModel], batch: int, obs: int, act: int, poison: float
    ) -> None:
        models, rewards = [build() for _ in range(2)], []
        for model, broken in zip(models, (False, True), strict=True):
            for step in range(3):
                agent, expert = (make_batch(3, batch, obs, act, seed=s) for s in (step, step + 50))
                for field in (*agent, *expert) if broken else ():
                    field[1] = poison
                model.update(agent, expert)
            rewards.append(model.reward(agent))
        for (name, p), q in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
            assert torch.equal(p[[0, 2]], q[[0, 2]]), name
        assert torch.equal(rewards[0][[0, 2]], rewards[1][[0, 2]])

    return check


@pytest.fixture(scope="session")
def raw_inputs_stay_finite(make_batch: Callable[..., Batch]) -> Callable[..., None]:
    """Return a function that checks that training and rewards stay finite on raw observations.

    It trains a pack of two runs. The observations are as large as Humanoid's: they reach 5000, and
    half the rows exceed 100.
    """

    def check(model: RewardModel, batch: int, obs: int, act: int) -> None:
        for step in range(30):
            sides = (make_batch(2, batch, obs, act, s, scale=1000.0) for s in (step, step + 99))
            agent, expert = sides
            expert = expert._replace(obs=expert.obs.clamp(-5000.0, 5000.0) + 100.0)
            model.update(agent, expert)
            assert model.reward(agent).isfinite().all()
            assert model.metrics["reward_loss"].isfinite().all()
        assert all(p.isfinite().all() for p in model.parameters())

    return check


@pytest.fixture(scope="session")
def train_on_own_data() -> Callable[..., RewardModel]:
    """Return a function that trains each run on its own data, with some terminal transitions."""

    def train(model: RewardModel, updates: int, dtype: torch.dtype) -> RewardModel:
        obs, act, batch, seeds = (getattr(model.spec, f) for f in ("obs", "act", "batch", "seeds"))
        streams = Streams(seeds, {**model.draws(), "index": Draw("index", (batch,))})
        data = []
        for i in (0, 1):
            parts = []
            for seed in seeds:
                g = torch.Generator().manual_seed(9 * seed + i)
                parts.append(torch.randn(1, 40, obs + act, generator=g))
            x = torch.cat(parts).to(dtype) + i
            ended = (x[..., 0] > 0.5).to(dtype)
            data.append(Batch(x[..., :obs], x[..., obs:], x[..., :obs], 0.0 * x[..., 0], ended))
        run = torch.arange(len(seeds))[:, None]
        for _ in range(updates):
            model.noise = streams.next()
            row = model.noise["index"] % 40
            agent, expert = (Batch(*(f[run, row] for f in side)) for side in data)
            model.update(agent, expert)
        model.reward(agent)
        return model

    return train
