"""Independent random streams, derived from a seed by naming the axes they may vary with.

No generator here is global: a run's numbers depend on its own key alone, so that it sees the same
draws alone and inside a pack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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
    moves it. `next()` gives views of shape (R, *draw.shape), overwritten by the next block.
    """

    BLOCK = 64  # iterations drawn at a time

    def __init__(
        self, seeds: Sequence[int], draws: Mapping[str, Draw], device: torch.device | str = "cpu"
    ) -> None:
        self.draws = dict(draws)
        self.generators = {name: [rng(seed, "draw", name) for seed in seeds] for name in self.draws}
        self.blocks = {
            name: torch.empty(
                (self.BLOCK, len(seeds), *draw.shape),
                dtype=torch.int64 if draw.kind == "index" else torch.float32,
                device=device,
            )
            for name, draw in self.draws.items()
        }
        self.cursor = self.BLOCK

    def next(self) -> dict[str, Tensor]:
        """The tensors of the next iteration, by name, each (R, *shape)."""
        if self.cursor == self.BLOCK:
            self._refill()
        at = self.cursor
        self.cursor += 1
        return {name: block[at] for name, block in self.blocks.items()}

    def _refill(self) -> None:
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
                self.blocks[name][:, run].copy_(torch.from_numpy(values))
        self.cursor = 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "cursor": self.cursor,
            "blocks": {name: block.cpu().clone() for name, block in self.blocks.items()},
            "generators": {
                name: [g.bit_generator.state for g in gs] for name, gs in self.generators.items()
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.cursor = state["cursor"]
        for name, block in state["blocks"].items():
            self.blocks[name].copy_(block)
        for name, states in state["generators"].items():
            for generator, saved in zip(self.generators[name], states, strict=True):
                generator.bit_generator.state = saved
