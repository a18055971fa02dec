"""Fixtures that run the `ngt` command, and a file of demonstrations."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from ngt.cli import main
from ngt.experience import demos


@pytest.fixture
def ngt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """Return a function that runs `ngt` in an empty folder and returns the printed lines."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> list[str]:
        capsys.readouterr()
        main(arguments)
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture(scope="session")
def toy_demos() -> demos.Demos:
    """Return demonstrations whose returns are far above the random policy's."""

    def act(obs: torch.Tensor) -> torch.Tensor:
        return torch.tanh(obs[..., 1:2] - obs[..., 2:3])

    data = demos.record("Pendulum-v1", act, 2, 0, source="toy", terminate_when_unhealthy=True)
    return dataclasses.replace(data, random_returns=data.returns - 1000.0)


@pytest.fixture
def demos_file(tmp_path: Path, toy_demos: demos.Demos) -> str:
    """Return the path of a file of demonstrations that the test may change."""
    path = tmp_path / "toy.npz"
    demos.save(path, toy_demos)
    return str(path)


@pytest.fixture
def refused(ngt: Any, capsys: Any) -> Any:
    """Return a function that runs `ngt`, checks for exit code 2 and returns its error line.

    Before the error, a command may print one line that says what it begins to do.
    """

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            ngt(*arguments)
        assert stopped.value.code == 2
        out, err = capsys.readouterr()
        *begun, line = err.splitlines(keepends=True)
        assert out == "" and len(begun) <= 1 and not any(text.startswith("ngt") for text in begun)
        return str(line)

    return run
