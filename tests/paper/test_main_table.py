"""The table of final scores: by hand, and what it says of runs that are not whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ngt.config import load
from paper import main_table

CONFIG = load({
    "scale": "quick", "window": 2,
    "figures": {"main_figure": {"methods": ["ngt", "bc"], "demos": [1, 4], "seeds": [0, 1]}},
})  # fmt: skip


def runs() -> pd.DataFrame:
    """Scores rise by 0.1 an evaluation from seed / 2; bc has none with four demonstrations."""
    rows = [
        {"env": "Pendulum-v1", "method": method, "mode": "state-action", "rate": 20,
         "demos": demos, "seed": seed, "step": step, "score": seed / 2 + 0.1 * step,
         "status": "diverged" if (method, seed) == ("bc", 1) else "finished"}
        for method, demos in (("ngt", 1), ("ngt", 4), ("bc", 1))
        for seed in (0, 1) for step in (1, 2, 3)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_cells_are_means_of_the_window_by_hand() -> None:
    lines = main_table.table(runs(), CONFIG).splitlines()
    assert lines[0] == "| env | method | 1 demonstration | 4 demonstrations |"
    whole = "0.50 [0.25, 0.75] (0.25, 0.75)"
    assert lines[2:] == [
        f"| Pendulum-v1 | NGT | {whole} | {whole} |",
        f"| Pendulum-v1 | BC (1 diverged) | {whole} | no run |",
    ]


def test_the_interval_is_the_percentile_bootstrap() -> None:
    scores = np.random.default_rng(0).normal(1.0, 0.2, 200)
    low, high = main_table.interval(scores, "env", 1)
    half = 1.96 * scores.std() / np.sqrt(200)  # the normal approximation
    assert low == pytest.approx(scores.mean() - half, abs=0.006)
    assert high == pytest.approx(scores.mean() + half, abs=0.006)
    assert main_table.interval(scores, "env", 1) == (low, high), "seeded"
    assert main_table.interval(np.array([0.5]), "env") == (0.5, 0.5)


def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    with pytest.raises(SystemExit) as caught:
        main_table.main(["--results", str(tmp_path)])
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("main_table: error: run Pendulum-v1/") and len(err.splitlines()) == 1
