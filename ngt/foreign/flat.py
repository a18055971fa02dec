"""Functions that read flat arrays of transitions from D4RL's HDF5 files and from NumPy archives.

Both formats use the same arrays. In every array, episodes follow one another, with one row per
step. An episode ends at a row in which `terminals` or `timeouts` is set. An episode's final
observation is in the `next_observations` array, which is optional.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.experience.demos import Episode
from ngt.experience.examine import numbers
from ngt.files import check_unpacked
from ngt.foreign.extras import library
from ngt.foreign.found import Found, reading

# Each array's name -> alternative names that a file may use.
NAMES = {
    "observations": ("obs",),
    "actions": ("acts", "action"),
    "rewards": ("rews", "reward"),
    "terminals": ("terminations", "terminated"),
    "timeouts": ("truncations", "truncated"),
    "next_observations": ("next_obs",),
}
OPTIONAL = "next_observations"
FLAGS = ("terminals", "timeouts")  # each marks the last row of an episode

Arrays = dict[str, NDArray[Any]]


def read_hdf5(path: Path, env: str) -> Found:
    """Read the episodes of a D4RL file."""
    where = f"d4rl {path}"
    h5py = library("h5py", where, "formats")
    with reading(where, "not a readable HDF5 file", path), h5py.File(path) as file:

        def get(name: str) -> Any:
            if not isinstance(file[name], h5py.Dataset):
                raise UserError(
                    f"{where}: {name}: found a group ({', '.join(file[name])}), expected one "
                    f"array; join the group's arrays into one"
                )
            return file[name][()]

        return split(_pick(file, get, where), where)


def read_npz(path: Path, env: str) -> Found:
    """Read the episodes of a NumPy archive, without unpickling anything."""
    where = f"npz {path}"
    with reading(where, "not a NumPy archive of numbers", path):
        with zipfile.ZipFile(path) as archive:
            check_unpacked(archive, where)
        with np.load(path, allow_pickle=False) as file:
            if {"meta", "random_returns"} <= set(file):
                raise UserError(
                    f"{where}: it is a demonstration file of the suite already; use it without an "
                    f"import, e.g. with --demos {path}"
                )
            return split(_pick(file, lambda name: file[name], where), where)


def _pick(names: Mapping[str, Any], get: Callable[[str], Any], where: str) -> Arrays:
    """Read a file's arrays, and return them under the names that are the keys of NAMES.

    The file may use the alternative names in NAMES.
    """
    found, arrays = sorted(names), {}
    for name, others in NAMES.items():
        chosen = [other for other in (name, *others) if other in found]
        if chosen:
            arrays[name] = numbers(get(chosen[0]), f"{where}: {chosen[0]}")
    if missing := [name for name in NAMES if name not in (*arrays, OPTIONAL)]:
        split_up = ", so the file can't be split into episodes" if {*FLAGS} & {*missing} else ""
        raise UserError(
            f"{where}: missing: {', '.join(missing)}{split_up}; found "
            f"{', '.join(found) or 'nothing'}"
        )
    return arrays


def split(arrays: Arrays, where: str) -> Found:
    """Split flat arrays into episodes, after each row in which `terminals` or `timeouts` is set."""
    rows = len(arrays["actions"]) if arrays["actions"].ndim else 0
    for name, array in arrays.items():
        dims = 2 if name in ("observations", "actions", OPTIONAL) else 1
        if dims == 1 and array.shape == (rows, 1):
            array = arrays[name] = array[:, 0]
        if array.ndim != dims or len(array) != rows:
            raise UserError(
                f"{where}: {name}: found shape {array.shape}, expected {rows} rows, as many as "
                f"actions, and {dims} dimensions"
            )
    terminal = arrays["terminals"].astype(bool)
    last = np.flatnonzero(terminal | arrays["timeouts"].astype(bool))
    if not len(last):
        raise UserError(
            f"{where}: neither terminals nor timeouts is ever set, so the file can't be split into "
            f"episodes; found {', '.join(sorted(arrays))}"
        )
    found = Found([])
    if rest := rows - int(last[-1]) - 1:
        found.notes.append(f"rows after the last flag, which were omitted: {rest}")
    whole = OPTIONAL in arrays
    if not whole:
        found.notes.append(
            "there are no next_observations, so the last step of each episode was omitted"
        )
    ends, short = last.tolist(), 0
    for first, end in zip([0, *(row + 1 for row in ends[:-1])], ends, strict=True):
        if whole:
            _check_joined(arrays, first, end, where)
            tail = arrays[OPTIONAL][end : end + 1]
            obs, steps = np.concatenate([arrays["observations"][first : end + 1], tail]), end + 1
        else:  # the final observation is unknown, so the last step is left out
            obs, steps = arrays["observations"][first : end + 1], end
        if steps > first:
            kept = slice(first, steps)
            ended = whole and bool(terminal[end])
            found.episodes.append(
                Episode(obs, arrays["actions"][kept], arrays["rewards"][kept], ended)
            )
        else:
            short += 1
    if short:
        found.notes.append(f"episodes of a single step, which were omitted: {short}")
    return found


def _check_joined(arrays: Arrays, first: int, end: int, where: str) -> None:
    """Check that, within an episode, each row's next observation is the next row's observation.

    first, end: the episode's first and last row.
    """
    after, before = arrays[OPTIONAL][first:end], arrays["observations"][first + 1 : end + 1]
    if after.shape[1:] != before.shape[1:]:
        raise UserError(
            f"{where}: {OPTIONAL}: found {after.shape[1:]} columns, expected {before.shape[1:]}"
        )
    apart = ~np.isclose(after, before, rtol=1e-4, atol=1e-4, equal_nan=True).all(axis=1)
    if apart.any():
        row = first + int(np.flatnonzero(apart)[0])
        raise UserError(
            f"{where}: row {row}: {OPTIONAL} differs from the observation of row {row + 1}, though "
            f"neither flag is set; the file can't be split into episodes by terminals and timeouts"
        )
