"""Functions that read trajectories saved by the `imitation` package.

The trajectories are a folder of Arrow files with one row per episode. The files are read with
pyarrow, since `imitation` itself needs an older version of gymnasium.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.experience.demos import Episode
from ngt.experience.envs import get_task, never_terminates
from ngt.experience.examine import listed
from ngt.foreign.found import Found, reading

COLUMNS = ("obs", "acts", "rews", "terminal")


def read(path: Path, env: str) -> Found:
    """Read the episodes in a folder of trajectories."""
    where = f"imitation {path}"
    with reading(where, "not a readable folder of imitation's trajectories", path):
        return _read(path, env, where)


def _read(path: Path, env: str, where: str) -> Found:
    found = Found([])
    cut, limited = [], []
    for number, row in enumerate(_rows(path, where)):
        if not row["terminal"].as_py():
            cut.append(number)
            continue
        obs, action, reward = (_flat(row[name]) for name in COLUMNS[:3])
        steps = len(row["acts"].values)
        ended = _terminated(row.get("infos"), steps, env)
        if not ended:
            limited.append(number)
        rows = obs.reshape(steps + 1, -1), action.reshape(steps, -1)
        found.episodes.append(Episode(*rows, reward, ended))
    if cut:
        found.notes.append(f"{listed('episode', cut)}: cut off before the end, and omitted")
    if limited:
        found.notes.append(
            f"{listed('episode', limited)}: ended by the time limit, so read as not terminated"
        )
    return found


def _rows(path: Path, where: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of all Arrow files that state.json lists, as Arrow scalars by column name."""
    import pyarrow as pa

    state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    for part in state["_data_files"]:
        with pa.memory_map(str(path / Path(part["filename"]).name)) as source:
            table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)  # otherwise a damaged file may crash the process
        if missing := [name for name in COLUMNS if name not in table.column_names]:
            fix = "; save trajectories with rewards" if missing == ["rews"] else ""
            raise UserError(
                f"{where}: column {missing[0]!r} is missing; found "
                f"{', '.join(table.column_names)}{fix}"
            )
        for row in range(table.num_rows):
            yield {name: table[name][row] for name in table.column_names}


def _flat(scalar: Any) -> NDArray[Any]:
    """Return the numbers in an Arrow list, which may contain lists, as one flat array."""
    values = scalar.values
    while hasattr(values, "flatten") and hasattr(values.type, "value_type"):
        values = values.flatten()
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def _terminated(infos: Any, steps: int, env: str) -> bool:
    """Return True if the env itself ended the episode.

    The file's `terminal` field does not show this, since the field is also set at the time limit.
    If the env's info dicts were saved, `TimeLimit.truncated` in the episode's last info dict shows
    whether the time limit ended the episode.
    """
    if never_terminates(env) or steps >= get_task(env).time_limit:
        return False
    try:
        last = json.loads(infos.values[-1].as_py())
    except (AttributeError, IndexError, TypeError, ValueError):
        return True
    return not (isinstance(last, dict) and last.get("TimeLimit.truncated", False))
