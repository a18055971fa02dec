"""Fixtures that several test files share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from torch import Tensor

from ngt.nets import PackedMLP
from ngt.replay import Batch

# The same examples every time, and no limit on their time: machines are busy.
settings.register_profile("ngt", derandomize=True, deadline=None)
settings.load_profile("ngt")

VECTORS = Path(__file__).parent / "data" / "vectors"  # README.md there says what they are


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Torch on one thread: tests run side by side, and sums keep one order."""
    torch.set_num_threads(1)


@pytest.fixture
def float64() -> Iterator[None]:
    """Nets and tensors are made in float64 during the test."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="session")
def vectors() -> Callable[[str], dict[str, Tensor]]:
    """The arrays of one file of test vectors by name: call it with the file's name."""

    def load(name: str) -> dict[str, Tensor]:
        with np.load(VECTORS / f"{name}.npz", allow_pickle=False) as file:
            return {key: torch.from_numpy(file[key]) for key in file.files}

    return load


@pytest.fixture(scope="session")
def load_layers() -> Callable[..., None]:
    """Copies (weight (out, in), bias) pairs into a net of one run, or into one of its twins."""

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
    """Makes random transitions of the given sizes, a third of them terminal."""

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
    """The transitions of one run, as a batch of one run."""
    return lambda batch, run: Batch(*(field[run : run + 1] for field in batch))
