"""Tests of `ngt record` with a user's policy, with a run and with an expert."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngt.agent import policy
from ngt.commands import record
from ngt.experience import demos
from ngt.settings.config import SacConfig

KEY = "Pendulum-v1/ngt/state-action-demos{}-rate20/seed{}"
SHORT = ["--scale", "test", "--set", "train.steps=40", "--set", "train.eval_every=20"]
SHORT += ["--set", "train.log_every=20", "--set", "train.eval_episodes=1"]
SHORT += ["--set", "envs.Pendulum-v1.demos=''"]  # use recorded demos, not those of scale `test`


def test_recording_ones_own_policy(ngt: Any, tmp_path: Path) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = SacConfig(hidden=(4,))
    policy.save(
        tmp_path / "mine", Policy(Actor(3, 1, sac, [0]), None).snapshot(0), "Pendulum-v1", sac
    )
    common = ["record", "Pendulum-v1", "--scale", "test", "--policy", "mine", "--episodes", "1"]
    ngt(*common, "--out", "a.npz")
    ngt(*common, "--out", "b.npz", "--seed", "1000")
    ngt(*common, "--out", "c.npz", "--seed", "3")
    a, b, c = (demos.load(tmp_path / f"{name}.npz") for name in "abc")
    assert a.source == "mine" and len(a.length) == 1
    assert a.checksum == b.checksum, "the default must be the expert's seed"
    assert a.seeds[0] != c.seeds[0]
    assert not (tmp_path / "results").exists()


def test_a_recording_that_training_does_not_read_is_warned_of(ngt: Any, tmp_path: Path) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = SacConfig(hidden=(4,))
    tensors = Policy(Actor(3, 1, sac, [0]), None).snapshot(0)
    policy.save(tmp_path / "mine", tensors, "Pendulum-v1", sac)
    how = ["record", "Pendulum-v1", "--scale", "test", "--policy", "mine", "--episodes", "1"]
    usual = "results/test/demos/Pendulum-v1.npz"
    warned = [line for line in ngt(*how) if usual in line and line.startswith("warning")]
    assert len(warned) == 1 and "with these settings, `ngt train` reads " in warned[0]
    assert warned[0].endswith(
        f"set envs.Pendulum-v1.demos to this file, or pass --demos {usual} to `ngt train`"
    )
    said = ngt(*how, "--set", f"envs.Pendulum-v1.demos={usual}")
    assert not any("ngt train" in line for line in said)
    said = ngt(*how, "--set", "envs.Pendulum-v1.demos=''")
    assert any("field 'source': found mine" in line for line in said)


def test_strict_refuses_what_the_env_can_not_have_given(
    ngt: Any, demos_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    data = demos.load(Path(demos_file))
    odd = dataclasses.replace(data, terminated=np.array([False, True]))
    with pytest.warns(UserWarning, match="odd.npz: episode 1: terminated, but Pendulum-v1"):
        demos.save(tmp_path / "odd.npz", odd)
    command = ["train", KEY.format(1, 0), *SHORT, "--demos", str(tmp_path / "odd.npz")]
    with pytest.raises(SystemExit) as stopped:
        ngt(*command, "--strict")
    assert stopped.value.code == 2
    assert "odd.npz: episode 1: terminated, but Pendulum-v1 never" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
    with pytest.warns(UserWarning, match="episode 1: terminated"):
        ngt(*command)

    sac = SacConfig(hidden=(4,))
    policy.save(tmp_path / "p", Policy(Actor(3, 1, sac, [0]), None).snapshot(0), "Pendulum-v1", sac)
    monkeypatch.setattr(demos, "record", lambda *_, **__: odd)
    (tmp_path / "out.done.abc").touch()
    record = ["record", "Pendulum-v1", "--policy", "p", "--out", "out.npz"]
    with pytest.raises(SystemExit) as stopped:
        ngt(*record, "--strict")
    assert stopped.value.code == 2 and not (tmp_path / "out.npz").exists()
    assert (tmp_path / "out.done.abc").exists(), "a refused recording must remove no receipt"
    with pytest.warns(UserWarning, match="episode 1: terminated"):
        ngt(*record)
    assert (tmp_path / "out.npz").exists()


def test_recording_a_runs_folder(
    ngt: Any, demos_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = SacConfig(hidden=(4,))
    (tmp_path / "run").mkdir()
    policy.save(
        tmp_path / "run/policy.safetensors",
        Policy(Actor(3, 1, sac, [0]), None).snapshot(0),
        "Pendulum-v1",
        sac,
    )
    data = demos.load(Path(demos_file))
    for better, lines in ((1000.0, 1), (1.0, 2), (0.0, 2), (-1.0, 2)):
        made = dataclasses.replace(data, random_returns=np.full(2, data.expert - better))
        monkeypatch.setattr(demos, "record", lambda *_, made=made, **__: made)
        said = ngt("record", "Pendulum-v1", "--policy", "run", "--out", f"out{better}.npz")
        assert len(said) == lines and said[0].startswith(f"out{better}.npz: 2 episodes, return ")
        assert all("no return can be normalised: the expert's mean" in x for x in said[1:])


def test_only_the_usual_file_is_replaced_with_its_receipts(
    ngt: Any, refused: Any, demos_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demos, "record_random", lambda *_, **__: demos.load(Path(demos_file)))
    command = ["record", "Pendulum-v1", "--random"]
    (tmp_path / "out.npz").write_text("mine")
    (tmp_path / "folder").mkdir()
    for name in ("out.npz", "folder"):
        said = refused(*command, "--out", name)
        assert said == f"ngt: error: --out: {name} exists; remove it or give another name\n"
    assert (tmp_path / "out.npz").read_text() == "mine"

    (tmp_path / "out.npz").unlink()
    (tmp_path / "out.done.of").write_text("mine")
    ngt(*command, "--out", "out.npz")
    assert (tmp_path / "out.done.of").exists(), "only the workflow's file has receipts"

    usual = tmp_path / "results/quick/demos"
    usual.mkdir(parents=True)
    monkeypatch.setattr(record, "play", lambda *_: demos.load(Path(demos_file)))
    for name in ("Pendulum-v1.npz", "Pendulum-v1.done.abc", "Pendulum-v1.done.abd", "A.done.abc"):
        (usual / name).touch()
    ngt("record", "Pendulum-v1")
    left = sorted(path.name for path in usual.iterdir())
    assert left == ["A.done.abc", "Pendulum-v1.npz"], "receipts of a replaced file must go"


def test_an_expert_of_other_settings_is_not_recorded(ngt: Any, refused: Any) -> None:
    ngt("expert", "Pendulum-v1", *SHORT)
    said = refused("record", "Pendulum-v1", *SHORT, "--set", "sac.gamma=0.5")
    assert "expert Pendulum-v1 in results/test/experts/Pendulum-v1: trained with other" in said
    assert "sac.gamma is 0.99 in the result and 0.5 in the config" in said
    assert "`ngt expert Pendulum-v1`" in said
