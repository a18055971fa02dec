"""Seeds and random generators, each derived from a seed and from names and numbers (axes).

There is no global generator. A run's random numbers depend only on the run's own key, which names
its env, method, demonstrations and seed. This module imports no torch, so that commands which only
compare seeds start quickly.
"""

import hashlib

import numpy as np


def derive(seed: int, *axes: str | int) -> int:
    """Return a seed in [0, 2^63) that is determined by `seed` and all axes."""
    text = "\x1f".join([str(seed), *map(str, axes)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def rng(seed: int, *axes: str | int) -> np.random.Generator:
    """Return a NumPy generator with the seed that `derive` returns for the arguments."""
    return np.random.Generator(np.random.PCG64(derive(seed, *axes)))


def record_seeds(env: str, episodes: int, seed: int) -> list[int]:
    """Return the env seeds of the episodes that `ngt record` records."""
    return [derive(seed, "record", env, i) for i in range(episodes)]
