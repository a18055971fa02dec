"""Tests of `ngt import`: its required options, written files and messages."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector.episode_buffer import EpisodeBuffer

from ngt.experience import demos

ROOT = Path(__file__).resolve().parents[4]
HOPPER = str(ROOT / "tests/data/imitation-hopper")
HOW = ["--env", "Hopper-v4", "--scale", "test", "--out", "new.npz"]


def test_an_import_says_what_it_did(ngt: Any, tmp_path: Path) -> None:
    said = ngt("import", "imitation", HOPPER, *HOW, "--actions", "env", "--episodes", "1")
    data = demos.load(tmp_path / "new.npz", "Hopper-v4")
    assert data.length.tolist() == [26] and data.source == "imitation imitation-hopper"
    assert said[0].startswith(f"{HOPPER}: episode 2: cut off")
    assert said[1].startswith("new.npz: 1 episode, return ")
    assert "no return can be normalised" in said[2], "the file is of a random policy"

    ngt("record", "Hopper-v4", "--scale", "test", "--random", "--out", "random.npz")
    played = demos.load(tmp_path / "random.npz").returns
    assert np.array_equal(data.random_returns, played), (
        "import and record must use the same random episodes"
    )


def test_the_unit_is_asked_for_and_nothing_is_replaced(
    ngt: Any, refused: Any, tmp_path: Path
) -> None:
    said = refused("import", "imitation", HOPPER, *HOW)
    assert "--actions" in said
    (tmp_path / "new.npz").write_text("mine")
    said = refused("import", "imitation", HOPPER, *HOW, "--actions", "env")
    assert "--out: new.npz exists" in said
    assert (tmp_path / "new.npz").read_text() == "mine"


def test_more_episodes_than_the_source_has_are_refused(refused: Any, tmp_path: Path) -> None:
    said = refused("import", "imitation", HOPPER, *HOW, "--actions", "env", "--episodes", "99")
    assert f"--episodes: found 99, but {HOPPER} has 2 episodes to import; pass at most 2" in said
    assert not (tmp_path / "new.npz").exists()


def test_a_file_of_the_suite_needs_no_import(refused: Any) -> None:
    file = str(ROOT / "tests/data/Pendulum-v1.npz")
    how = ["--env", "Pendulum-v1", "--actions", "unit", "--out", "new.npz"]
    said = refused("import", "npz", file, *how)
    assert "it is a demonstration file of the suite already; use it without an import" in said


def test_episodes_of_stable_baselines3_are_imported(ngt: Any, tmp_path: Path, capsys: Any) -> None:
    """Import episodes of stable-baselines3; --demos must refuse their file before the import."""
    from stable_baselines3 import SAC

    env = gym.make("Pendulum-v1")
    model = SAC("MlpPolicy", env, seed=0, policy_kwargs={"net_arch": [8]}, buffer_size=10)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("obs", "acts", "rews", "terminated", "truncated", "next_obs")
    }
    for seed in range(2):
        obs, ended = env.reset(seed=seed)[0], False
        while not ended:
            action, _ = model.predict(obs, deterministic=True)
            after, reward, terminated, truncated, _ = env.step(action)
            for name, value in zip(
                rows, (obs, action, reward, terminated, truncated, after), strict=True
            ):
                rows[name].append(value)
            obs, ended = after, terminated or truncated
    env.close()
    np.savez(tmp_path / "sb3.npz", **{name: np.array(values) for name, values in rows.items()})
    how = ["--env", "Pendulum-v1", "--scale", "test", "--actions", "env"]
    ngt("import", "npz", "sb3.npz", *how, "--out", "new.npz")
    data = demos.load(tmp_path / "new.npz", "Pendulum-v1")
    assert data.length.tolist() == [200, 200] and not data.terminated.any()
    assert np.allclose(data.action, np.array(rows["acts"]) / 2.0)
    assert np.allclose(data.reward, rows["rews"], rtol=1e-5)

    with pytest.raises(SystemExit):
        ngt("train", "Pendulum-v1/bc/state-action-demos1-rate20/seed0", "--demos", "sb3.npz")
    said = capsys.readouterr().err
    assert "`ngt import npz sb3.npz --env Pendulum-v1 --actions env" in said


def test_a_file_of_another_env_is_refused_before_its_units(refused: Any, tmp_path: Path) -> None:
    """Write Pusher's shapes and actions up to 2, which are outside Hopper's bounds as well."""
    obs, acts, last = np.zeros((101, 23)), np.full((100, 7), 2.0), np.arange(100) == 99
    arrays = {
        "observations": obs[:-1],
        "actions": acts,
        "rewards": np.zeros(100),
        "terminals": np.zeros(100, bool),
        "timeouts": last,
        "next_observations": obs[1:],
    }
    np.savez(tmp_path / "a.npz", **arrays)
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    env = gym.make("Pusher-v5")
    buffer = EpisodeBuffer(
        None, 0, None, obs, acts.astype(np.float32), [0.0] * 100, ~last & last, last
    )
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
        minari.create_dataset_from_buffers("a-v0", [buffer], env=env)
    env.close()
    for kind, source, other, here, there in (
        ("npz", "a.npz", "Hopper-v4", "(23,) and actions of shape (7,)", "(11,) and (3,)"),
        ("d4rl", "a.hdf5", "Hopper-v4", "(23,) and actions of shape (7,)", "(11,) and (3,)"),
        ("minari", "a-v0", "Hopper-v4", "(23,) and actions of shape (7,)", "(11,) and (3,)"),
        ("imitation", HOPPER, "Pusher-v5", "(11,) and actions of shape (3,)", "(23,) and (7,)"),
    ):
        right = "Pusher-v5" if other == "Hopper-v4" else "Hopper-v4"
        how = ["--env", other, "--actions", "env", "--out", "new.npz"]
        said = refused("import", kind, source, *how)
        assert f"{kind} {source}: found observations of shape {here}, expected {there} on" in said
        assert said.endswith(f"; pass --env {right}\n") and "clip" not in said
        assert ("it was recorded on Pusher-v5, not on" in said) == (kind == "minari")


@pytest.mark.parametrize("kind", ["npz", "d4rl", "imitation"])
def test_a_mistyped_path_is_named_as_such(refused: Any, tmp_path: Path, kind: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for lost in ("lost", "file/lost"):
        said = refused("import", kind, lost, *HOW, "--actions", "env")
        assert said == f"ngt: error: {kind} {lost}: no such file or folder\n"
    said = refused("import", kind, "folder", *HOW, "--actions", "env")
    if kind != "imitation":
        assert said == f"ngt: error: {kind} folder: it is a folder; name the file in it\n"
    else:
        assert "not a readable folder of imitation's trajectories" in said
