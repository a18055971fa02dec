"""Learning curves of every method, env and number of demonstrations (the paper's main figure).

python -m paper.main_figure --scale quick --out results/main_figure.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ngt.config import Config, FigureConfig, method_label
from ngt.errors import UserError
from ngt.runs import RunKey, run_table
from paper import cli, curves, style
from paper.curves import Panel

if TYPE_CHECKING:
    import pandas as pd

NAME = "main_figure"
WORDS = 5.5  # points, of what is said above a panel


@style.context()
def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """The figure: a row an env, a column a number of demonstrations.

    runs: rows of `ngt.results.read_runs`. absent: the keys that are not there.
    """
    plan, table = config.figures[NAME], run_table(config, [NAME])
    _check(plan)
    runs = curves.usable(runs)
    silent = curves.unevaluated(runs, table, absent)
    looks = style.looks(plan.methods)
    height = min(1.9, (style.TEXT_HEIGHT - 1.7) / len(plan.envs))
    figure = style.new_figure(style.TEXT_WIDTH, height * len(plan.envs) + 0.35)
    grid = figure.subplots(len(plan.envs), len(plan.demos), squeeze=False, sharey="row")
    rows = [
        [Panel(axes, config, env, k) for axes, k in zip(line, plan.demos, strict=True)]
        for env, line in zip(plan.envs, grid, strict=True)
    ]
    panels = [panel for row in rows for panel in row]
    for panel in panels:
        here = runs[(runs["env"] == panel.env) & (runs["demos"] == panel.demos)]
        for place, method in enumerate(plan.methods):
            cell = here[here["method"] == method]
            panel.add(cell, method, looks[method], place, len(plan.methods))
    cut = curves.finish(rows)
    _titles(figure, rows, config, absent, silent)
    env, seeds = plan.envs[0], [n for panel in panels for n in panel.seeds]
    style.footer(
        figure,
        curves.handles(config, plan.methods, looks, env, any(p.crosses for p in panels)),
        [
            curves.reading(config, plan.methods, env, seeds, plan.rates[0]),
            *curves.warnings(runs, len(table), silent, cut, absent),
        ],
    )
    return figure


def _check(plan: FigureConfig) -> None:
    for name, values in (("modes", plan.modes), ("rates", plan.rates)):
        if len(values) != 1:
            shown = ", ".join(map(str, values))
            raise UserError(f"figures.{NAME}.{name}: found [{shown}], this figure shows one")


def _titles(
    figure: Figure, rows: Sequence[Sequence[Panel]], config: Config,
    absent: Sequence[RunKey], silent: Sequence[RunKey],
) -> None:  # fmt: skip
    """Column titles and, above each panel, the runs that it lacks; the figure grows by those."""
    width = (style.TEXT_WIDTH - 0.6) / len(rows[0]) - 0.15
    line, grown = WORDS * 1.4, 0.0  # points
    for row in rows:
        words = [
            [
                part
                for title, keys in (("missing", absent), ("diverged, no evaluation", silent))
                for text in _lacking(panel, config, title, keys)
                for part in style.wrap(figure, text, width, WORDS)
            ]
            for panel in row
        ]
        room = max(len(w) for w in words) * line
        grown += room / 72
        for panel, lines in zip(row, words, strict=True):
            if row is rows[0]:
                title = f"{panel.demos} demonstration{'s' * (panel.demos != 1)}"
                panel.axes.set_title(title, pad=4 + room)
            if lines:
                panel.axes.annotate(
                    "\n".join(lines), (0, 1), (0, 2), xycoords="axes fraction", va="bottom",
                    textcoords="offset points", fontsize=WORDS, linespacing=1.15,
                    color=style.ALERT,
                )  # fmt: skip
    whole, height = figure.get_size_inches()
    figure.set_size_inches(whole, height + grown)


def _lacking(panel: Panel, config: Config, title: str, keys: Sequence[RunKey]) -> list[str]:
    plan = config.figures[NAME]
    here = [k for k in keys if (k.env, k.demos) == (panel.env, panel.demos)]
    if len(here) == len(plan.methods) * len(plan.seeds):
        return [f"{title}: all runs"]
    parts = []
    for method in plan.methods:
        seeds = sorted(k.seed for k in here if k.method == method)
        text = method_label(config, method)
        if seeds and len(seeds) < len(plan.seeds):
            text += f" seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
        parts += [text.replace(" ", "\u00a0")] * bool(seeds)
    return [f"{title}: {'; '.join(parts)}"] if parts else []


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
