"""Tests of trajectories of the package imitation, as Hugging Face's `datasets` writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ngt.errors import UserError
from ngt.experience import envs
from ngt.foreign.imitation import read

FOLDER = Path(__file__).resolve().parents[2] / "data" / "imitation-hopper"


def test_whole_episodes_are_read_as_they_were_played() -> None:
    found = read(FOLDER, "Hopper-v4")
    (note,) = found.notes
    assert note.startswith("episode 2: cut off before the end")
    assert [e.terminated for e in found.episodes] == [True, True]
    rng, env = np.random.default_rng(0), envs.make("Hopper-v4")
    for seed, episode in enumerate(found.episodes):
        obs, steps = [env.reset(seed=seed)[0]], 0
        for action, reward in zip(episode.action, episode.reward, strict=True):
            assert np.array_equal(action, rng.uniform(-1, 1, 3).astype(np.float32))
            after, gained, *_ = env.step(action)
            assert float(gained) == pytest.approx(reward)
            obs.append(after)
            steps += 1
        assert np.allclose(episode.obs, obs, atol=1e-4) and steps == len(episode.action) > 20
    env.close()


def folder(place: Path, **columns: Any) -> Path:
    """Write a folder with one trajectory of three steps; `columns` replaces some columns."""
    row = {
        "obs": [np.zeros((4, 11)).tolist()],
        "acts": [np.zeros((3, 3)).tolist()],
        "infos": [["{}"] * 3],
        "terminal": [True],
        "rews": [[1.0, 2.0, 3.0]],
    } | columns
    table = pa.table({name: value for name, value in row.items() if value is not None})
    with (
        pa.OSFile(str(place / "data.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as stream,
    ):
        stream.write_table(table)
    (place / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    return place


@pytest.mark.parametrize(
    ("last", "terminated"),
    [
        ({}, True),
        ({"TimeLimit.truncated": False}, True),
        ({"TimeLimit.truncated": True}, False),
        ({"terminal_observation": {"py/object": "numpy.ndarray"}}, True),
    ],
)
def test_an_end_at_the_time_limit_is_no_termination(
    last: dict[str, Any], terminated: bool, tmp_path: Path
) -> None:
    infos = ["{}", "{}", json.dumps(last)]
    found = read(folder(tmp_path, infos=[infos]), "Hopper-v4")
    assert [e.terminated for e in found.episodes] == [terminated]
    assert [n for n in found.notes if "time limit" in n] == found.notes
    assert bool(found.notes) != terminated


def test_an_env_that_never_terminates_has_no_termination(tmp_path: Path) -> None:
    one = {"obs": [np.zeros((4, 3)).tolist()], "acts": [[[0.5]] * 3]}
    (episode,) = read(folder(tmp_path, **one), "Pendulum-v1").episodes
    assert episode.obs.shape == (4, 3) and episode.action.tolist() == [[0.5]] * 3
    assert not episode.terminated and episode.reward.tolist() == [1.0, 2.0, 3.0]


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"column 'rews' is missing; found obs, .*with rewards"):
        read(folder(tmp_path, rews=None), "Hopper-v4")
    for odd in ({"obs": [[[0.0], [0.0, 0.0]]]}, {"acts": [None]}):
        with pytest.raises(UserError, match="not a readable folder"):
            read(folder(tmp_path, **odd), "Hopper-v4")
    (tmp_path / "data.arrow").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="not a readable folder of imitation's trajectories"):
        read(tmp_path, "Hopper-v4")
    shutil.rmtree(tmp_path)
    with pytest.raises(UserError, match="no such file or folder"):
        read(tmp_path, "Hopper-v4")
