"""A table of envs: their sizes, action bounds, step limits and reference returns.

For each env, the table compares the sizes that the paper prints, the sizes in the authors' code,
and the sizes here. The last are read from the env itself; the first two are in `paper.claims.envs`.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gymnasium.spaces import Box
from gymnasium.wrappers import RescaleAction

from ngt.experience import demos, envs
from ngt.experience.envs import REFUSED, TASKS, Task
from ngt.experience.shipped import DATA, DEMOS
from ngt.files import read_json
from ngt.runs.keys import Layout
from ngt.settings.config import CellConfig, Config
from ngt.settings.load import load
from paper import register
from paper.claims.envs import CODE_SIZES, PAPER_SIZES, SIXTH_SAID
from paper.claims.stated import AGREE, DIFFERS, SILENT
from paper.command import Made, Options
from paper.drawing.table import Cell, Column, Table
from paper.words import listed, yes_or_no

COLUMNS = {
    "paper_id": Column("id in\nthe paper"),
    "made": Column("made here as", width=0.115),
    "printed": Column("printed\nobs × act"),
    "code": Column("authors'\ncode"),
    "obs": Column("ours,\nobs"),
    "act": Column("ours,\nact"),
    "agrees": Column("printed\nand ours"),
    "bounds": Column("action\nbounds"),
    "limit": Column("step\nlimit"),
    "early": Column("ends\nearly"),
    "kept": Column(f"kept at\nrate {CellConfig.rate}"),
    "published_random": Column("authors'\nrandom", "{:.0f}"),
    "published_expert": Column("authors'\nexpert", "{:.0f}"),
    "own_random": Column("ours,\nrandom", "{:.0f}"),
    "own_expert": Column("ours,\nexpert", "{:.0f}"),
}


# The returns of the random policy and of the expert, by env.
References = Mapping[str, tuple[float, float]]


class Live(NamedTuple):
    """Facts that are read from an env."""

    obs: int  # number of observation dimensions
    act: int  # number of action dimensions
    low: float  # lower bound of actions, before they are rescaled to [-1, 1]
    high: float  # upper bound of actions, before they are rescaled
    limit: int  # maximum number of steps in an episode


def live(task: Task, terminate_when_unhealthy: bool) -> Live:
    """Make the env of a task and return the facts that it states about itself."""
    env = envs.make(task.id, terminate_when_unhealthy=terminate_when_unhealthy)
    try:
        assert isinstance(env, RescaleAction) and env.spec is not None
        obs, action, limit = env.observation_space, env.env.action_space, env.spec.max_episode_steps
        assert isinstance(obs, Box) and isinstance(action, Box) and limit is not None
        low, high = float(action.low.min()), float(action.high.max())
        return Live(obs.shape[0], action.shape[0], low, high, limit)
    finally:
        env.close()


def paper_id(task_id: str) -> str:
    """Return the paper's id for a task.

    This id differs from `task_id` if the suite refuses the paper's version of the env and has
    another version instead.
    """
    return next((old for old, (_, instead) in REFUSED.items() if instead == task_id), task_id)


def kept(limit: int, rate: int) -> int | str:
    """Return how many transitions of an episode of `limit` steps are kept at a subsampling rate.

    Subsampling keeps every `rate`-th transition, from a random offset between 0 and rate - 1. If
    the number depends on this offset, return a range as text.
    """
    least, most = ((limit - offset + rate - 1) // rate for offset in (rate - 1, 0))
    return most if least == most else f"{least} to {most}"


def bounds(low: float, high: float) -> str:
    """Return action bounds as text, such as `±2`."""
    return f"±{high:g}" if low == -high else f"[{low:g}, {high:g}]"


def sizes(both: tuple[int, int] | None) -> str | None:
    """Return the sizes of observations and actions as text, such as `17 × 6`.

    Return None if the sizes are unknown, i.e. if `both` is None.
    """
    return None if both is None else f"{both[0]} × {both[1]}"


def recorded(path: Path) -> References:
    """Return the returns of the random policy and of the expert in published records, by env.

    The result is empty if the manifest `path` of the records is missing.
    """
    manifest = read_json(path) or {"runs": {}}
    runs = manifest["runs"]
    found = {
        name.partition("/")[0]: run["reference"] for name, run in runs.items() if run["reference"]
    }
    return {env: (float(own["random"]), float(own["expert"])) for env, own in found.items()}


def row(
    task: Task, config: Config, data: Path, others: References = MappingProxyType({})
) -> dict[str, Cell]:
    """Return the table's row about a task.

    data: the folder of the shipped experts.
    others: the returns of the random policy and the expert on envs without a shipped expert.
    """
    facts, source = live(task, config.terminate_when_unhealthy), paper_id(task.id)
    ours, printed = (facts.obs, facts.act), PAPER_SIZES.get(source)
    file = data / task.id / DEMOS
    own = demos.load(file, task.id) if file.exists() else None
    random, expert = (own.random, own.expert) if own else others.get(task.id, (None, None))
    return {
        "paper_id": source,
        "made": ", ".join([task.gym_id, *(f"{k}={v}" for k, v in task.kwargs.items())]),
        "printed": sizes(printed) or SILENT,
        "code": sizes(CODE_SIZES.get(source)),
        "obs": facts.obs,
        "act": facts.act,
        "agrees": SILENT if printed is None else AGREE if printed == ours else DIFFERS,
        "bounds": bounds(facts.low, facts.high),
        "limit": facts.limit,
        "early": yes_or_no(task.can_terminate and config.terminate_when_unhealthy),
        "kept": kept(facts.limit, CellConfig.rate),
        "published_random": task.published_random,
        "published_expert": task.published_expert,
        "own_random": random,
        "own_expert": expert,
    }


def table(config: Config, data: Path = DATA, records: Path = Path(register.QUICK)) -> Table:
    """Return a table with one row for each env that scale `paper` or the config uses.

    data: the folder of the shipped experts.
    records: the manifest of published records, which have experts that are not shipped.
    """
    tasks = [TASKS[name] for name in register.envs(load({"scale": "paper"}), config)]
    others = recorded(records)
    rows = [row(task, config, data, others) for task in tasks]
    borrowed = [t.id for t in tasks if t.id in others and not (data / t.id / DEMOS).exists()]
    refused = [
        f"{source}: {REFUSED[source][0]}."
        for source in (paper_id(task.id) for task in tasks)
        if source in REFUSED
    ]
    unlisted = [row["paper_id"] for row in rows if row["printed"] == SILENT]
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("gymnasium", "mujoco"))
    return Table(
        "Environments",
        COLUMNS,
        rows,
        [
            f"Scale {config.scale}. Sizes, bounds and limits are read from the live envs "
            f"({versions}). The printed sizes are from the paper's appendix, which lists five "
            f"envs. The appendix gives no sizes for {listed(unlisted)}.",
            SIXTH_SAID,
            *refused,
            "Ends early: whether an unhealthy body ends the episode (terminate_when_unhealthy). "
            "Kept: number of transitions kept from a demonstration of full length; a demonstration "
            "that ends early has fewer.",
            "Authors': mean returns published with their code, in which no episode ends "
            "early. Ours: mean returns of the shipped expert in data/ and of a uniform-random "
            "policy."
            + f" On {listed(borrowed)}, the expert is that of the published records."
            * bool(borrowed),
        ],
    )


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the table, which needs no runs."""
    return Made(table(config))
