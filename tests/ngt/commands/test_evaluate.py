"""Tests of `ngt evaluate`: the settings it uses and the policies it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ngt.agent import policy
from ngt.cli import main
from ngt.experience import shipped
from ngt.settings.config import SacConfig


def test_evaluation_takes_the_settings(ngt: Any, tmp_path: Path) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = SacConfig(hidden=(4,))
    policy.save(tmp_path / "p", Policy(Actor(11, 3, sac, [0]), None).snapshot(0), "Hopper-v4", sac)
    falls = ngt("evaluate", "p", "--episodes", "1")
    goes_on = ngt("evaluate", "p", "--episodes", "1", "--set", "terminate_when_unhealthy=false")
    assert int(falls[0].split()[-1]) < 1000 == int(goes_on[0].split()[-1])


def test_a_run_is_evaluated_with_its_own_settings(ngt: Any, tmp_path: Path) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = SacConfig(hidden=(4,))
    (tmp_path / "run").mkdir()
    tensors = Policy(Actor(11, 3, sac, [0]), None).snapshot(0)
    policy.save(tmp_path / "run" / "policy.safetensors", tensors, "Hopper-v4", sac)
    (tmp_path / "run" / "config.json").write_text('{"terminate_when_unhealthy": false}')
    own = ngt("evaluate", "run", "--episodes", "1")
    told = ngt("evaluate", "run", "--episodes", "1", "--set", "terminate_when_unhealthy=true")
    assert int(own[0].split()[-1]) == 1000 > int(told[0].split()[-1])


@pytest.mark.parametrize("command", [["evaluate", "p"], ["record", "Pendulum-v1", "--random"]])
def test_a_negative_seed_is_refused(refused: Any, command: list[str]) -> None:
    assert "--seed: must be at least 0, found -1" in refused(*command, "--seed", "-1")


def test_a_damaged_policy_that_ships_is_not_evaluated(
    ngt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    shutil.copytree(shipped.DATA / "Pusher-v5", tmp_path / "data" / "Pusher-v5")
    monkeypatch.setattr(shipped, "DATA", tmp_path / "data")
    file = tmp_path / "data" / "Pusher-v5" / "policy.safetensors"
    assert len(ngt("evaluate", str(file), "--episodes", "1")) == 2
    whole = file.read_bytes()
    # Damage the header, then a tensor.
    for damaged in (b"x" + whole[1:], whole[:-9] + b"x" + whole[-8:]):
        file.write_bytes(damaged)
        with pytest.raises(SystemExit):
            main(["evaluate", str(file), "--episodes", "1"])
        err = capsys.readouterr().err
        assert f"{file}" in err and "checksum" in err and err.count("\n") == 1
