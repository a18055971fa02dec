"""A figure of learning curves: rows of envs, columns of demonstrations, lines of methods or rates.

Each module of `paper.register.CURVES` is one, and says what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ngt.runs.keys import RunKey, run_table
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config, FigureConfig
from ngt.settings.resolve import method_label, method_rate
from paper import command
from paper.drawing import notes, panels, style
from paper.drawing.labels import labels
from paper.drawing.panels import (
    AUC,
    RETURN,
    SCORE,
    Measure,
    Panel,
    Place,
    Series,
    demonstrations,
    plan_of,
)
from paper.numbers import curves

if TYPE_CHECKING:
    import pandas as pd

ACROSS = 3  # panels in a row where there is one number of demonstrations


def methods(config: Config, name: str) -> list[Series]:
    """A line a method, called as in the config."""
    plan = plan_of(config, name, one=["rates"])
    return by_method(
        config, plan, {m: method_label(config, m) for m in (*plan.methods, *plan.beside)}
    )


def variants(config: Config, name: str) -> list[Series]:
    """What is compared with, then the variants; each called by the settings that differ."""
    plan = plan_of(config, name, one=["rates"])
    return by_method(config, plan, labels(config, [*plan.beside, *plan.methods], plan.envs))


def by_method(config: Config, plan: FigureConfig, called: dict[str, str]) -> list[Series]:
    """A line a method at its own rate or the figure's; the first one stands out."""
    looks, (rate,) = style.looks(called), plan.rates
    found = [
        Series(method, method_rate(config, method) or rate, label, looks[method])
        for method, label in called.items()
    ]
    return [found[0]._replace(width=1.5), *found[1:]]


def called(place: Place, plan: FigureConfig) -> str:
    """The name of a place in a figure where others differ in env or input mode."""
    return f"{place.env}, {place.mode}" if len(plan.modes) > 1 else place.env


@dataclass(frozen=True)
class Grid:
    """The places of a figure's panels in rows, and what is written at these."""

    rows: list[list[Place]]
    titles: list[list[str]]
    labels: list[list[str]]  # of the vertical axes
    shared: list[str]  # what they have in common and none says


def grid(plan: FigureConfig, measures: Sequence[Measure]) -> Grid:
    """A row an env and input mode, a column a number of demonstrations.

    Where there is one such number, envs stand side by side, ACROSS in a row at most; not where
    they have no unit in common. The measures of a row stand below each other, or beside in a
    figure of one column.
    """
    first = [Place(env, mode, k) for env in plan.envs for mode in plan.modes for k in plan.demos]
    across, packed = len(plan.demos), False
    if across == 1 and len(first) > 1 and RETURN not in measures:
        across, packed = -(-len(first) // -(-len(first) // ACROSS)), True
    out = Grid([], [], [], [demonstrations(plan.demos[0])] * packed)
    for start in range(0, len(first), across):
        places = first[start : start + across]
        name, blank = called(places[0], plan), [""] * len(places)
        heads = [called(p, plan) if packed else demonstrations(p.demos) for p in places]
        for measure in measures:
            titled = measure == measures[0] if packed else not out.rows
            label = measure.label if packed else f"{name}\n{measure.label}"
            out.rows.append([place._replace(measure=measure) for place in places])
            out.titles.append(heads if titled else blank)
            out.labels.append([label, *blank[1:]])
        if across == 1 and len(measures) > 1:
            several = slice(-len(measures), None)
            out.rows[several] = [[row[0] for row in out.rows[several]]]
            out.titles[several] = [heads * len(measures)]
            out.labels[several] = [[name + "\n" + m.label for m in measures]]
    if len(plan.modes) == 1 and plan.modes != FigureConfig.modes:
        out.shared.append(f"input {plan.modes[0]}")
    return out


Remark = tuple[str, str] | None  # what is said above a panel, and its colour
# (place, each series with its rows there, config)
Remarks = Callable[[Place, Sequence[tuple[Series, "pd.DataFrame"]], Config], Remark]


@dataclass(frozen=True)
class CurveFigure:
    """A figure of the config's `figures`.

    measures: a row of panels each. each: the thin lines are the seeds. remark: of a panel's rows,
    which have its measure as `score`.
    """

    name: str
    about: str | None  # its module's docstring
    series: Callable[[Config, str], list[Series]] = methods
    measures: tuple[Measure, ...] = (SCORE,)
    each: bool = False
    remark: Remarks | None = None

    @style.context()
    def draw(self, runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
        """The figure.

        runs: rows of `ngt.runs.table.read_runs`. absent: the keys that are not there.
        """
        plan, table = config.figures[self.name], run_table(config, [self.name], beside=True)
        series, laid = self.series(config, self.name), grid(plan, self.measures)
        runs = curves.usable(runs)
        silent = curves.unevaluated(runs, table, absent)
        figure, rows = _empty(config, laid, runs)
        every = [panel for row in rows for panel in row]
        measures = list(dict.fromkeys(panel.place.measure for panel in every))
        for measure in measures:
            rated = runs.assign(score=runs[measure.column]).dropna(subset=["score"])
            cells = dict(iter(rated.groupby(curves.CELL)))
            for panel in (panel for panel in every if panel.place.measure == measure):
                here = [(one, cells.get(panel.place.cell(one), rated[:0])) for one in series]
                for place, (one, rows_of) in enumerate(here):
                    panel.add(rows_of, one, place, len(series), each=self.each)
                self._say(panel, here, config, absent, silent)
        cut = panels.finish(rows)
        panels.headings(figure, rows, laid.titles)
        env, crosses = plan.envs[0], any(panel.crosses for panel in every)
        style.footer(
            figure,
            notes.handles(config, series, env, measures, crosses),
            [
                notes.reading(
                    config, series, env, [n for panel in every for n in panel.seeds],
                    measures, of=laid.shared, each=self.each,
                ),
                *notes.warnings(runs, len(table), silent, cut, absent),
            ],
        )  # fmt: skip
        return figure

    def _say(
        self, panel: Panel, here: Sequence[tuple[Series, pd.DataFrame]], config: Config,
        absent: Sequence[RunKey], silent: Sequence[RunKey],
    ) -> None:  # fmt: skip
        """What stands above a panel; the first measure's names the runs that there are not."""
        seeds, series = config.figures[self.name].seeds, [one for one, _ in here]
        if not panel.scored:
            panel.remarks.append(("no scores: see below", style.ALERT))
        if panel.place.measure in (self.measures[0], RETURN):
            for title, keys in (("missing", absent), ("diverged, no evaluation", silent)):
                if text := notes.lacking(panel, series, seeds, title, keys):
                    panel.remarks.append((text, style.ALERT))
        if self.remark and (said := self.remark(panel.place, here, config)):
            panel.remarks.append(said)

    def main(self, argv: Sequence[str] | None = None) -> None:
        """The command."""
        command.main(self.name, (self.about or "").splitlines()[0], self.draw, argv)


def _empty(config: Config, laid: Grid, runs: pd.DataFrame) -> tuple[Figure, list[list[Panel]]]:
    """Panels without a line; one column of them is a column of the paper."""
    across = len(laid.rows[0])
    height = min(1.9, (style.TEXT_HEIGHT - 1.7) / len(laid.rows))
    width = style.TEXT_WIDTH if across > 1 else style.COLUMN_WIDTH
    figure = style.new_figure(width, height * len(laid.rows) + 0.35)
    drawn = figure.subplots(len(laid.rows), across, squeeze=False)
    lack = unscored_envs(runs)
    rows = []
    for line, places, names in zip(drawn, laid.rows, laid.labels, strict=True):
        for axes in line[len(places) :]:
            axes.remove()
        row: list[Panel] = []
        for axes, place, name in zip(line, places, names, strict=False):
            scored = place.env not in lack or place.measure == AUC
            if place.measure == SCORE and not scored:
                place = place._replace(measure=RETURN)
                name = name.replace(SCORE.label, RETURN.label)
            own = curves.reference(runs, place.env) if place.measure == RETURN else None
            ends = (0.0, 1.0) if place.measure == SCORE else own
            panel = Panel(axes, config, place, ends, scored=scored)
            alone = panel.unit not in [other.unit for other in row]
            axes.set_ylabel(name or place.measure.label * alone)
            row.append(panel)
        rows.append(row)
    return figure, rows
