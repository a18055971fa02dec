"""Tests of flat arrays of transitions: splitting, dropped steps and refused files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ngt.errors import UserError
from ngt.foreign.flat import read_hdf5, read_npz
from ngt.foreign.found import Found

ENDS = {3: "terminals", 7: "timeouts", 9: "terminals"}  # rows that end an episode
Array = np.ndarray[Any, Any]


def arrays(rows: int = 12, following: bool = True) -> dict[str, Array]:
    """Return rows whose observation counts up, and jumps by 100 after each end."""
    count = np.arange(rows, dtype=np.float64)
    for row in ENDS:
        count[row + 1 :] += 100
    flags = {name: np.zeros(rows, bool) for name in ("terminals", "timeouts")}
    for row, name in ENDS.items():
        flags[name][row] = True
    obs = np.stack([count, -count], axis=1)
    made = {"observations": obs, "actions": 0.1 * count[:, None], "rewards": count} | flags
    return made | ({"next_observations": obs + np.array([1, -1])} if following else {})


def written(folder: Path, format: str, data: dict[str, Array]) -> Found:
    if format == "npz":
        np.savez(folder / "a.npz", **data)
        return read_npz(folder / "a.npz", "any")
    with h5py.File(folder / "a.hdf5", "w") as file:
        for name, array in data.items():
            file[name] = array
        file["infos/qpos"] = np.zeros(3)
    return read_hdf5(folder / "a.hdf5", "any")


BOTH = pytest.mark.parametrize("format", ["npz", "hdf5"])


@BOTH
def test_episodes_are_split_at_both_flags(format: str, tmp_path: Path) -> None:
    found = written(tmp_path, format, arrays())
    firsts = [0.0, 104.0, 208.0]
    assert [e.obs[0, 0] for e in found.episodes] == firsts
    assert [len(e.action) for e in found.episodes] == [4, 4, 2]
    assert [e.terminated for e in found.episodes] == [True, False, True]
    for episode in found.episodes:
        assert (np.diff(episode.obs[:, 0]) == 1).all(), "no episode must cross an end"
        assert np.array_equal(episode.reward, episode.obs[:-1, 0])
        assert np.allclose(episode.action[:, 0], 0.1 * episode.obs[:-1, 0])
    (note,) = found.notes
    assert note == "rows after the last flag, which were omitted: 2"


@BOTH
def test_without_next_observations_the_last_step_of_each_is_left_out(
    format: str, tmp_path: Path
) -> None:
    found = written(tmp_path, format, arrays(10, following=False))
    assert [len(e.action) for e in found.episodes] == [3, 3, 1]
    assert [len(e.obs) for e in found.episodes] == [4, 4, 2]
    assert not any(e.terminated for e in found.episodes), "the terminating step must be left out"
    (note,) = found.notes
    assert "the last step of each episode was omitted" in note


def test_episodes_of_one_step_are_counted_when_they_are_left_out(tmp_path: Path) -> None:
    data = arrays(following=False)
    data["terminals"][[4, 8]] = True  # rows 4, 8 and 9 are episodes of one step
    found = written(tmp_path, "npz", data)
    assert [len(e.action) for e in found.episodes] == [3, 2]
    assert found.notes[-1] == "episodes of a single step, which were omitted: 3"


def test_a_group_instead_of_an_array_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for name, array in arrays().items():
            file[f"{name}/x" if name == "observations" else name] = array
    with pytest.raises(UserError, match=r"observations: found a group \(x\), expected one array"):
        read_hdf5(tmp_path / "a.hdf5", "any")


def test_names_of_gymnasium_are_known(tmp_path: Path) -> None:
    new = ("obs", "acts", "reward", "terminations", "truncations", "next_obs")
    data = dict(zip(new, arrays().values(), strict=True))
    assert len(written(tmp_path, "npz", data).episodes) == 3


@BOTH
@pytest.mark.parametrize("missing", ["timeouts", "terminals", "terminals, timeouts"])
def test_a_file_that_can_not_be_split_is_refused(format: str, missing: str, tmp_path: Path) -> None:
    """Check that all missing flags are named at once, with the names that were found."""
    data = {name: array for name, array in arrays().items() if name not in missing.split(", ")}
    said = rf"missing: {missing}, so the file can't be split into episodes; found .*observations"
    with pytest.raises(UserError, match=said) as caught:
        written(tmp_path, format, data)
    assert all(name in str(caught.value) for name in data)


@BOTH
def test_a_file_without_actions_and_rewards_is_refused(format: str, tmp_path: Path) -> None:
    data = {name: array for name, array in arrays().items() if name not in ("actions", "rewards")}
    with pytest.raises(UserError, match="missing: actions, rewards; found"):
        written(tmp_path, format, data)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"terminals": np.zeros(12), "timeouts": np.zeros(12)}, "neither terminals nor timeouts"),
        ({"terminals": np.zeros(12)}, "row 3: next_observations differs"),
        ({"rewards": np.zeros(11)}, r"rewards: found shape \(11,\)"),
        ({"observations": np.zeros(12)}, r"observations: found shape \(12,\)"),
        ({"next_observations": np.zeros((12, 3))}, "next_observations: found"),
        ({"actions": np.array([None] * 12)}, "NumPy archive of numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    changes: dict[str, Array], part: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=part):
        written(tmp_path, "npz", arrays() | changes)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    for name, read in (("a.npz", read_npz), ("a.hdf5", read_hdf5)):
        with pytest.raises(UserError, match=name):
            read(tmp_path / name, "any")
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(UserError, match=name):
            read(tmp_path / name, "any")
