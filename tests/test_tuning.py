"""docs/tuning.md, followed step by step: the sweep over variants, and a stand-in for Optuna."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ngt import cli
from ngt.files import read_json
from paper import command
from tests.pages import ROOT, blocks, read

PAGE = read("tuning.md")


def block(language: str) -> str:
    (text,) = blocks(PAGE, language)
    return text


@pytest.mark.slow
def test_the_sweep_trains_and_draws_each_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(block("yaml"))
    for words in map(shlex.split, blocks(PAGE, "")[0].splitlines()):
        if words[0] == "ngt":
            cli.main(words[1:])
        else:
            assert words[:3] == ["python", "-m", "paper"]
            command.main(words[3:])
    assert Path("results/sweep.pdf").exists()
    runs = Path("results/sweep/test/runs/Pendulum-v1")
    settings = [
        read_json(runs / f"ngt-m{m}/state-action-demos1-rate20/seed0/config.json") for m in (12, 48)
    ]
    assert [s["params"]["m"] for s in settings] == [12, 48]


class Fixed:
    """A stand-in for an Optuna study: two trials with the first choice and the lower bound."""

    best_params, best_value = "best", 0.0

    def __init__(self, **_: Any) -> None:
        self.values: list[float] = []

    def optimize(self, objective: Callable[[Any], float], n_trials: int) -> None:
        for number in range(2):
            trial = SimpleNamespace(
                number=number,
                suggest_categorical=lambda _, choices: choices[0],
                suggest_float=lambda _, low, high, log: low,
            )
            self.values.append(objective(trial))


@pytest.mark.slow
def test_the_optuna_example_gives_each_trial_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests/data/Pendulum-v1.npz", "demos.npz")
    stand_in = SimpleNamespace(
        create_study=Fixed, samplers=SimpleNamespace(TPESampler=lambda seed: None)
    )
    monkeypatch.setitem(sys.modules, "optuna", stand_in)
    text = block("python").replace("steps=STEPS,", 'steps=40, scale="test",')
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(text, "docs/tuning.md", "exec"), names)
    first, second = names["study"].values
    assert first == second < 0.0
    for number in range(2):
        (config,) = Path(f"results/trial{number}").rglob("config.json")
        params = read_json(config)["params"]
        assert (params["m"], params["lr"]) == (8, 1e-5)
