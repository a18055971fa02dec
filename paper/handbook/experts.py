"""A comparison of the shipped experts with published returns and with the suite's target returns.

python -m paper.handbook.experts
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ngt.experience import shipped
from ngt.experience.envs import TASKS, Task
from ngt.files import atomic
from ngt.runs.folder import read_shipped
from ngt.settings import load as loading
from ngt.settings.options import Parser
from paper import command, pages, register
from paper.drawing import style
from paper.drawing.table import Cell, Column, Table
from paper.figures import experts as expert_figure
from paper.figures.experts import Expert
from paper.numbers.statistics import share
from paper.register import VIDEOS

NAME = "experts"

COLUMNS = {
    "env": Column("env"),
    "mean": Column("return, mean", "{:.0f}"),
    "std": Column("std", "{:.0f}"),
    "worst": Column("worst", "{:.0f}"),
    "best": Column("best", "{:.0f}"),
    "random": Column("random", "{:.0f}"),
    "published": Column("published", "{:.0f}"),
    "share": Column("share of published"),
    "aim": Column("aim", "{:.0f}"),
    "met": Column("aim met"),
    "demos": Column("episodes recorded"),
    "steps": Column("env steps"),
    "updates": Column("updates"),
    "hours": Column("hours", "{:.1f}"),
    "video": Column("video"),
}


def tasks() -> list[Task]:
    """Return the tasks in workflow/config/paper.yaml, one per env."""
    return [TASKS[env] for env in register.envs(loading.load({"scale": "paper"}))]


def row(task: Task, video: bool) -> dict[str, Cell]:
    """Return the table's row for a task's shipped expert.

    video: whether there is a video of this expert.
    """
    expert = shipped.read(task.id)
    returns = np.array(expert["returns"])
    mean, published, aim = float(returns.mean()), task.published_expert, task.aim
    return {
        "env": task.id,
        "mean": mean,
        "std": float(returns.std(ddof=1)),
        "worst": float(returns.min()),
        "best": float(returns.max()),
        "random": expert["random"],
        "published": None if published is None else float(published),
        "share": None if published is None else f"{share(mean, expert['random'], published):.0%}",
        "aim": None if aim is None else float(aim),
        "met": None if aim is None else "yes" if mean >= aim else "**no**",
        "demos": expert["episodes"],
        "steps": _thousands(expert["step"]),
        "updates": _thousands(expert["updates"]),
        "hours": expert["wall_seconds"] / 3600,
        "video": f"[gif](../docs/experts/{task.id}.gif)" if video else None,
    }


def _thousands(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def table(videos: Path = VIDEOS) -> Table:
    """Return a table with one row per shipped expert.

    videos: the folder with the experts' videos, which are GIF files.
    """
    known = tasks()
    ships = [task for task in known if shipped.ships(task.id)]
    absent = ", ".join(task.id for task in known if task not in ships)
    return Table(
        "The shipped experts",
        COLUMNS,
        [row(task, (videos / f"{task.id}.gif").exists()) for task in ships],
        [
            "Return: mean, std (sample standard deviation), worst and best of 16 episodes of the "
            "deterministic policy; these episodes were not used to choose the policy. Random: the "
            "mean return of a uniform random policy over 16 episodes. Published: the mean return "
            "published with the authors' code, in which Ant has 27 observations and episodes never "
            "end early. Share of published: 0% is the random policy's return, 100% the published "
            "return. Aim: the return that this suite requires of the expert. Hours: training "
            "time on one core, with evaluations.",
            *([f"Tasks of the paper without a shipped expert: {absent}."] if absent else []),
        ],
    )


def page(videos: Path = VIDEOS) -> str:
    """Return the generated part of data/README.md: a table, the learning curves and the videos."""
    shown = table(videos)
    lines = [shown.markdown(), "![the experts' learning curves](curves.png)\n"]
    lines += [f"![{r['env']}](../docs/experts/{r['env']}.gif)" for r in shown.rows if r["video"]]
    return "\n".join(lines) + "\n"


def curves() -> Figure:
    """Draw the learning curve of every shipped expert."""
    experts = [
        Expert(task.id, evaluations, record)
        for task in tasks()
        if shipped.ships(task.id)
        for record, evaluations in [read_shipped(task.id)]
    ]
    return expert_figure.draw(experts, loading.load({"scale": "lite"}))


def draw(path: Path) -> None:
    """Write the experts' learning curves to a PNG file."""
    metadata: dict[str, Any] = {"Software": None}  # by default, this names matplotlib's version
    figure = curves()
    with style.context(), atomic(path) as temporary:
        figure.savefig(temporary, format="png", metadata=metadata)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the generated part of the page, and the learning curves to a PNG next to the page."""
    about = (__doc__ or "").splitlines()[0]
    parser = Parser(prog="python -m paper.handbook.experts", description=about)
    text = (
        "page to write into, between its markers; curves.png goes next to it (default: %(default)s)"
    )
    parser.add_argument("--into", type=Path, default=shipped.DATA / "README.md", help=text)

    def run() -> None:
        args = parser.parse_args(argv)
        pages.write_into(args.into, page(), NAME)
        draw(args.into.with_name("curves.png"))
        print(f"{args.into}, {args.into.with_name('curves.png')}")

    command.one_line_errors(NAME, run)


if __name__ == "__main__":
    main()
