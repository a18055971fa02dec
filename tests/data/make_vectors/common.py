"""Numbers, nets and files for the scripts that make the second set of vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

FOLDER = Path(__file__).parents[1] / "vectors" / "second"
Arrays = dict[str, object]
Net = list[tuple[Tensor, Tensor]]
Activation = Callable[[Tensor], Tensor]
RNG = np.random.default_rng(2024)


def write(name: str, arrays: Arrays, single: Sequence[str] = ()) -> None:
    """Write a file; round arrays to float32 if their names start with one of `single`."""
    out = {}
    for key, value in arrays.items():
        array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
        short = key.startswith(tuple(single)) and "64" not in key
        out[key] = array.astype(np.float32 if short else np.float64)
    np.savez_compressed(FOLDER / f"{name}.npz", **out)


def normal(*shape: int, scale: float = 1.0) -> Tensor:
    """Return normal float64 numbers that float32 represents exactly."""
    return torch.from_numpy(scale * RNG.normal(size=shape)).float().double()


def uniform(*shape: int) -> Tensor:
    return torch.from_numpy(RNG.uniform(size=shape)).float().double()


def make_net(*sizes: int, scale: float = 1.0) -> Net:
    """Return a random net: weights (out, in) and biases of each layer."""
    return [
        (normal(b, a, scale=scale * a**-0.5), normal(b, scale=0.1))
        for a, b in itertools.pairwise(sizes)
    ]


def run(net: Net, x: Tensor, activation: Activation, norms: Net = ()) -> Tensor:
    for i, (w, b) in enumerate(net):
        x = x @ w.T + b
        if i < len(net) - 1:
            if norms:
                mean, var = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
                x = (x - mean) / (var + 1e-5).sqrt() * norms[i][0] + norms[i][1]
            x = activation(x)
    return x


def named(net: Net, weight: str, bias: str, start: int = 1) -> Arrays:
    out: Arrays = {}
    for i, (w, b) in enumerate(net, start):
        out |= {f"{weight}{i}": w, f"{bias}{i}": b}
    return out
