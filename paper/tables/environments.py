"""Sizes of envs: as printed, in the authors' code, and ours; bounds, limits, reference returns.

Ours are read from the live envs; `paper.claims.stated` has the others.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import NamedTuple

from gymnasium.spaces import Box
from gymnasium.wrappers import RescaleAction

from ngt.experience import demos, envs
from ngt.experience.envs import REFUSED, TASKS, Task
from ngt.experience.shipped import DATA, DEMOS
from ngt.runs.keys import Layout
from ngt.settings.config import CellConfig, Config
from ngt.settings.load import load
from paper import register
from paper.claims.rules import SIXTH
from paper.claims.stated import AGREE, CODE_SIZES, DIFFERS, PAPER_SIZES, SILENT
from paper.command import Made, Options
from paper.drawing.table import Cell, Column, Table
from paper.words import listed, yes_or_no

# The grid of the main figure. The paper gives the number of its runs, 720, without its make-up.
SIXTH_SAID = (
    f"The sixth env, {SIXTH}, is our accounting of the paper's 720 runs (10 methods × 6 envs × 3 "
    f"numbers of demonstrations × 4 seeds): the paper lists five envs, and {SIXTH} is among those "
    f"of its authors' code. 12 × 5 × 3 × 4 would fit too."
)

COLUMNS = {
    "paper_id": Column("id in\nthe paper"),
    "made": Column("made here as", width=0.17),
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


class Live(NamedTuple):
    """What an env says of itself; bounds as its own actions have them, before any rescaling."""

    obs: int
    act: int
    low: float
    high: float
    limit: int  # steps


def live(task: Task, terminate_when_unhealthy: bool) -> Live:
    """Make the env and read its spaces."""
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
    """The id that the paper has for a task: another one where that is refused here."""
    return next((old for old, (_, instead) in REFUSED.items() if instead == task_id), task_id)


def kept(limit: int, rate: int) -> int | str:
    """Transitions of an episode of `limit` steps after subsampling, over the offsets < rate."""
    least, most = ((limit - offset + rate - 1) // rate for offset in (rate - 1, 0))
    return most if least == most else f"{least} to {most}"


def bounds(low: float, high: float) -> str:
    """Action bounds, as they are written."""
    return f"±{high:g}" if low == -high else f"[{low:g}, {high:g}]"


def sizes(both: tuple[int, int] | None) -> str | None:
    """Return the dimensions of observations and actions, as they are written."""
    return None if both is None else f"{both[0]} × {both[1]}"


def row(task: Task, config: Config, data: Path) -> dict[str, Cell]:
    """A task's cells; data: folder of the recorded experts that ship."""
    facts, source = live(task, config.terminate_when_unhealthy), paper_id(task.id)
    ours, printed = (facts.obs, facts.act), PAPER_SIZES.get(source)
    file = data / task.id / DEMOS
    own = demos.load(file, task.id) if file.exists() else None
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
        "own_random": own.random if own else None,
        "own_expert": own.expert if own else None,
    }


def table(config: Config, data: Path = DATA) -> Table:
    """A row an env of the paper's run table, and of the scale's where it has others."""
    tasks = [TASKS[name] for name in register.envs(load({"scale": "paper"}), config)]
    rows = [row(task, config, data) for task in tasks]
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
            f"({versions}); the printed sizes are those of the paper's appendix, which lists five "
            f"envs. On the sizes of {listed(unlisted)} it is silent.",
            SIXTH_SAID,
            *refused,
            "Ends early: by terminate_when_unhealthy, where the env has it. Kept: transitions that "
            "a demonstration of full length leaves; one that ends early leaves fewer.",
            "Authors': mean returns published with their code, where no episode ends "
            "early. Ours: mean returns of the expert that ships in data/ and of a "
            "uniform-random policy.",
        ],
    )


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the table, which needs no runs."""
    return Made(table(config))
