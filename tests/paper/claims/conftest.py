"""GPU measurements in the format that `make gpu-check` writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.provenance import source_hash
from paper.claims.gpu import METHODS


def _measured(
    device: str = "NVIDIA GeForce RTX 4090",
    source: str | None = None,
    speed: float = 556.0,
    eager: float = 185.0,
    memory: float = 24.0,
    methods: tuple[str, ...] = METHODS,
    buffer: int = 4_000_000,
    fewer: int = 1_000_000,
) -> dict[str, Any]:
    """Return GPU measurements; those of packs are extreme, because no rule may use them."""
    rate = {"model": "NGT", "env": "Humanoid-v4", "pack": 1}
    row = {**rate, "eager_ms": 9.0, "graph_ms": 1.0, "memory_gb": 3.1, "buffer_gb": 0.3}
    return {
        "device": device,
        "source": source_hash() if source is None else source,
        "rates": [row, {**row, "pack": 4, "memory_gb": 99.0}],
        "training": [
            {**rate, "graphs": True, "env_steps_per_second": speed},
            {**rate, "graphs": False, "env_steps_per_second": eager},
            {**rate, "pack": 4, "graphs": True, "env_steps_per_second": 1e6},
        ],
        "memory": [
            {
                "model": m,
                "env": "Humanoid-v4",
                "buffer": buffer - fewer * (m == "diffail"),
                "memory_gb": memory,
            }
            for m in methods
        ],
    }


@pytest.fixture(scope="session")
def measured() -> Callable[..., dict[str, Any]]:
    """Return measured(device=..., ...), which returns measurements of the current code."""
    return _measured
