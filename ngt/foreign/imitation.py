"""Trajectories that the package `imitation` saves: a folder of Arrow files, one row per episode.

They are read with pyarrow; `imitation` itself needs an older gymnasium.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.experience.demos import Episode
from ngt.experience.envs import get_task, never_terminates
from ngt.experience.examine import listed
from ngt.foreign.found import Found

COLUMNS = ("obs", "acts", "rews", "terminal")


def read(path: Path, env: str) -> Found:
    """Return the episodes of a folder."""
    where = f"imitation {path}"
    found = Found([])
    cut, limited = [], []
    for number, row in enumerate(_rows(path, where)):
        obs, action, reward = (_array(row[name]) for name in COLUMNS[:3])
        if not row["terminal"].as_py():
            cut.append(number)
            continue
        ended = _terminated(row.get("infos"), len(action), env)
        if not ended:
            limited.append(number)
        found.episodes.append(Episode(obs, action, reward.ravel(), ended))
    if cut:
        found.notes.append(f"{listed('episode', cut)}: cut off before the end, and left out")
    if limited:
        found.notes.append(
            f"{listed('episode', limited)}: ended by the time limit, so read as not terminated"
        )
    return found


def _rows(path: Path, where: str) -> list[dict[str, Any]]:
    """Return each row of every Arrow file that state.json lists, as Arrow scalars by column."""
    import pyarrow as pa

    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        names = [part["filename"] for part in state["_data_files"]]
        tables = []
        for name in names:
            with pa.memory_map(str(path / Path(name).name)) as source:
                tables.append(pa.ipc.open_stream(source).read_all())
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowInvalid) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{where}: not a folder of imitation's trajectories ({type(error).__name__}: {reason})"
        ) from None
    rows = []
    for table in tables:
        if missing := [name for name in COLUMNS if name not in table.column_names]:
            fix = "; save trajectories with rewards" if missing == ["rews"] else ""
            raise UserError(
                f"{where}: column {missing[0]!r} is missing; found "
                f"{', '.join(table.column_names)}{fix}"
            )
        rows += [{n: table[n][i] for n in table.column_names} for i in range(table.num_rows)]
    return rows


def _array(scalar: Any) -> NDArray[Any]:
    """Return a list, or a list of lists of one length, as an array."""
    values, length = scalar.values, len(scalar.values)
    while hasattr(values, "flatten") and hasattr(values.type, "value_type"):
        values = values.flatten()
    flat = values.to_numpy(zero_copy_only=False)
    return flat if len(flat) == length else flat.reshape(length, -1)


def _terminated(infos: Any, steps: int, env: str) -> bool:
    """Return True if the env itself ended the episode.

    `terminal` is also set at the time limit. The last info says so, if infos were saved.
    """
    if never_terminates(env) or steps >= get_task(env).time_limit:
        return False
    try:
        last = json.loads(infos.values[-1].as_py())
    except (AttributeError, IndexError, TypeError, ValueError):
        return True
    return not (isinstance(last, dict) and last.get("TimeLimit.truncated", False))
