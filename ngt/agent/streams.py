"""The random tensors that the runs of a pack consume, and torch's random generators.

A run's random numbers are the same whether the run trains alone or in a pack, i.e. together with
other runs in one process.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ngt.errors import UserError
from ngt.seeding import derive, rng
from ngt.state import State


def torch_generator(seed: int, *axes: str | int) -> torch.Generator:
    """Return a torch generator on the CPU with the seed that `derive` returns for the arguments."""
    return torch.Generator().manual_seed(derive(seed, *axes))


class Draw(NamedTuple):
    """The kind and shape of a random tensor that each run consumes in an iteration.

    Draws of the `index` kind are integers in [0, 2^48) that choose rows of a table. The number of
    rows is not known when an integer is drawn. When the integer is used, it is taken modulo the
    number of rows. Some rows are therefore more likely than other rows, but by a factor of less
    than 1 + 2e-8 for 4e6 rows.
    """

    kind: Literal["normal", "uniform", "index"]
    shape: tuple[int, ...]


# Maps each kind to a function that draws an array, given a generator and the array's shape.
DRAWN: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda generator, size: generator.standard_normal(size, dtype=np.float32),
    "uniform": lambda generator, size: generator.random(size, dtype=np.float32),
    "index": lambda generator, size: generator.integers(0, 1 << 48, size),
}


class Streams:
    """The random tensors of a pack of R runs, drawn in advance into fixed memory, block by block.

    Each run has a separate generator for each draw. The numbers of a draw therefore depend neither
    on other runs nor on other draws. `next()` returns views of shape (R, *draw.shape) into the
    current block. The next block overwrites the contents of these views. For a CUDA device, a
    thread draws the next block while the device uses the current block.
    """

    BLOCK = 64  # number of iterations in a block

    def __init__(
        self, seeds: Sequence[int], draws: Mapping[str, Draw], device: torch.device | str = "cpu"
    ) -> None:
        self.draws = dict(draws)
        for name, draw in self.draws.items():
            if draw.kind not in DRAWN:
                raise UserError(
                    f"draws(): {name!r} has the kind {draw.kind!r}; use one of {', '.join(DRAWN)}"
                )
        self.generators = {name: [rng(seed, "draw", name) for seed in seeds] for name in self.draws}
        cuda = torch.device(device).type == "cuda"
        self.host = {
            name: torch.empty(
                (self.BLOCK, len(seeds), *draw.shape),
                dtype=torch.int64 if draw.kind == "index" else torch.float32,
                pin_memory=cuda,
            )
            for name, draw in self.draws.items()
        }
        self.blocks = {n: t.to(device) for n, t in self.host.items()} if cuda else self.host
        self.cursor = self.BLOCK
        self.thread = ThreadPoolExecutor(1) if cuda else None
        self.ahead: Future[None] | None = None  # the thread's task, which draws the next block
        self.before = self.after = self._states()  # generator states before and after the block

    def next(self) -> dict[str, Tensor]:
        """Return the next iteration's tensors by name. Each has the shape (R, *draw.shape)."""
        if self.cursor == self.BLOCK:
            self._refill()
        self.cursor += 1
        return {name: block[self.cursor - 1] for name, block in self.blocks.items()}

    def _refill(self) -> None:
        if self.ahead is None:
            self._draw()
        else:
            self.ahead.result()
        self.before, self.after = self.after, self._states()
        if self.thread is not None:
            for name, block in self.blocks.items():
                # This copy must block: it reads self.host, which the thread then overwrites.
                block.copy_(self.host[name])
            self.ahead = self.thread.submit(self._draw)
        self.cursor = 0

    def _draw(self) -> None:
        for name, draw in self.draws.items():
            size = (self.BLOCK, *draw.shape)
            for run, generator in enumerate(self.generators[name]):
                values = DRAWN[draw.kind](generator, size)
                self.host[name][:, run].copy_(torch.from_numpy(values))

    def _states(self) -> dict[str, Any]:
        return {n: [g.bit_generator.state for g in gs] for n, gs in self.generators.items()}

    def state(self, run: int) -> State:
        """Return one run's generator states before the current block, and the position in it.

        The position (`cursor`) is the number of iterations of the block that have been used.
        """
        states = self.after if self.cursor == self.BLOCK else self.before
        generators = {name: each[run] for name, each in states.items()}
        return State(data={"cursor": self.cursor, "generators": generators})

    def restore(self, states: Sequence[State]) -> None:
        """Draw the saved block again and move to the saved position, which all runs share."""
        if self.ahead is not None:
            self.ahead.result()
            self.ahead = None
        for name, generators in self.generators.items():
            for generator, state in zip(generators, states, strict=True):
                generator.bit_generator.state = state.data["generators"][name]
        self.after, self.cursor = self._states(), self.BLOCK
        cursor = states[0].data["cursor"]
        if cursor < self.BLOCK:
            self._refill()
            self.cursor = cursor
