"""A fixture that makes the benchmark quick."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ngt.bench import cpu
from ngt.bench.cases import cell_of
from ngt.settings.config import CellConfig, SacConfig


@pytest.fixture
def small_nets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the measured learners small nets.

    Their widths are multiples of 32, so that a run of a pack has the bits of the same run alone.
    """

    def small(model: str, env: str) -> CellConfig:
        cell = cell_of(model, env)
        params = {**cell.params, "hidden": [32, 32]} if model == "NGT" else cell.params
        return replace(cell, params=params, sac=SacConfig(hidden=(32, 32)))

    monkeypatch.setattr(cpu, "cell_of", small)
