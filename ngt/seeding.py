"""Independent random streams, derived from a seed by naming the axes they may vary with.

No generator here is global: a run's numbers depend on its own key alone, so that it sees the same
draws alone and inside a pack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor


def derive(seed: int, *axes: str | int) -> int:
    """A seed in [0, 2^63) that depends on `seed` and on every axis, and on nothing else."""
    text = "\x1f".join([str(seed), *map(str, axes)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def rng(seed: int, *axes: str | int) -> np.random.Generator:
    """A NumPy generator of its own for these axes."""
    return np.random.Generator(np.random.PCG64(derive(seed, *axes)))


def torch_generator(seed: int, *axes: str | int) -> torch.Generator:
    """A CPU torch generator of its own for these axes (network initialisation)."""
    return torch.Generator().manual_seed(derive(seed, *axes))


class Draw(NamedTuple):
    """One random tensor that an iteration consumes, per run.

    `index` draws are integers in [0, 2^48), to be taken modulo a size known only when they are used
    (bias under 2e-8 for 4e6 rows).
    """

    kind: Literal["normal", "uniform", "index"]
    shape: tuple[int, ...]


class Streams:
    """Random tensors of a pack, drawn ahead per run, in blocks, into fixed storage.

    Each (run, name) has a generator of its own, so neither the pack's other runs nor another draw
    moves it. `next()` gives views of shape (R, *draw.shape), overwritten by the next block. For a
    CUDA device a thread draws the next block while the device works on this one.
    """

    BLOCK = 64  # iterations drawn at a time

    def __init__(
        self, seeds: Sequence[int], draws: Mapping[str, Draw], device: torch.device | str = "cpu"
    ) -> None:
        self.draws = dict(draws)
        self.generators = {name: [rng(seed, "draw", name) for seed in seeds] for name in self.draws}
        cuda = torch.device(device).type == "cuda"
        shapes = {n: (self.BLOCK, len(seeds), *draw.shape) for n, draw in self.draws.items()}
        dtypes = {"index": torch.int64, "normal": torch.float32, "uniform": torch.float32}
        self.host = {
            name: torch.empty(shape, dtype=dtypes[self.draws[name].kind], pin_memory=cuda)
            for name, shape in shapes.items()
        }
        self.blocks = {n: t.to(device) for n, t in self.host.items()} if cuda else self.host
        self.cursor = self.BLOCK
        self.thread = ThreadPoolExecutor(1) if cuda else None
        self.ahead: Future[None] | None = None  # drawing the block after this one
        self.before = self.after = self._states()  # of the generators, around this block

    def next(self) -> dict[str, Tensor]:
        """The tensors of the next iteration, by name, each (R, *shape)."""
        if self.cursor == self.BLOCK:
            self._refill()
        at = self.cursor
        self.cursor += 1
        return {name: block[at] for name, block in self.blocks.items()}

    def _refill(self) -> None:
        if self.ahead is None:
            self._draw()
        else:
            self.ahead.result()
        self.before, self.after = self.after, self._states()
        if self.thread is not None:
            for name, block in self.blocks.items():
                block.copy_(self.host[name])  # waits for the copy: the thread overwrites its source
            self.ahead = self.thread.submit(self._draw)
        self.cursor = 0

    def _draw(self) -> None:
        for name, draw in self.draws.items():
            size = (self.BLOCK, *draw.shape)
            for run, generator in enumerate(self.generators[name]):
                values: np.ndarray
                if draw.kind == "normal":
                    values = generator.standard_normal(size, dtype=np.float32)
                elif draw.kind == "uniform":
                    values = generator.random(size, dtype=np.float32)
                else:
                    values = generator.integers(0, 1 << 48, size)
                self.host[name][:, run].copy_(torch.from_numpy(values))

    def _states(self) -> dict[str, Any]:
        return {n: [g.bit_generator.state for g in gs] for n, gs in self.generators.items()}

    def state_of(self, run: int) -> dict[str, Any]:
        """Plain data: where one run's generators stood before this block, and the place in it."""
        over = self.cursor == self.BLOCK
        states = self.after if over else self.before
        return {"cursor": self.cursor, "generators": {n: each[run] for n, each in states.items()}}

    def restore(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Draw the same block again for runs that stood at one place, and go to it."""
        if self.ahead is not None:
            self.ahead.result()
            self.ahead = None
        for name, generators in self.generators.items():
            for generator, state in zip(generators, states, strict=True):
                generator.bit_generator.state = state["generators"][name]
        self.after, self.cursor = self._states(), self.BLOCK
        if states[0]["cursor"] < self.BLOCK:
            self._refill()
            self.cursor = states[0]["cursor"]
