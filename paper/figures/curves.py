"""Figures of learning curves, with a row per env and a column per number of demonstrations."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.figure import Figure

from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config, FigureConfig
from paper.command import Made, Options, figure_of_runs
from paper.drawing import notes, panels, style
from paper.drawing.panels import (
    AUC,
    BANDS,
    RETURN,
    SCORE,
    Measure,
    Panel,
    Place,
    Series,
    demonstrations,
)
from paper.figures.series import (
    Remark,
    cost,
    inverted,
    methods,
    packs,
    rates,
    sizes,
    spread,
    variants,
)
from paper.numbers import curves
from paper.words import ABSENT

ACROSS = 3  # maximum number of panels per row in a figure with a single number of demonstrations


def _title(place: Place, plan: FigureConfig) -> str:
    """Return the title of a panel: its env, and its input mode if the figure has several modes."""
    return f"{place.env}, {place.mode}" if len(plan.modes) > 1 else place.env


@dataclass(frozen=True)
class Grid:
    """The panels of a figure, row by row: what each panel shows, and the texts around it."""

    rows: list[list[Place]]  # env, input mode, number of demonstrations and measure of each panel
    titles: list[list[str]]  # text above each panel, or ""
    labels: list[list[str]]  # label of each y axis, or ""
    shared: list[str]  # texts for the notes below the figure, on what all panels have in common


def grid(plan: FigureConfig, measures: Sequence[Measure]) -> Grid:
    """Arrange the panels of a figure.

    There is one row per env and input mode, and one column per number of demonstrations. In a
    figure with a single number of demonstrations, up to ACROSS envs share a row, unless a panel
    shows returns, which have no common unit. If there are several measures, each has a separate
    row of panels; in a figure with one column, they are side by side instead.
    """
    first = [Place(env, mode, k) for env in plan.envs for mode in plan.modes for k in plan.demos]
    across, packed = len(plan.demos), False
    if across == 1 and len(first) > 1 and RETURN not in measures:
        across, packed = -(-len(first) // -(-len(first) // ACROSS)), True
    out = Grid([], [], [], [demonstrations(plan.demos[0])] * packed)
    for start in range(0, len(first), across):
        places = first[start : start + across]
        name, blank = _title(places[0], plan), [""] * len(places)
        heads = [_title(p, plan) if packed else demonstrations(p.demos) for p in places]
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


# A function that returns the remark above a panel. Its arguments are the panel's place, the lines
# (each with the rows that it shows in this panel), and the config.
Remarks = Callable[[Place, Sequence[tuple[Series, "pd.DataFrame"]], Config], Remark]


@dataclass(frozen=True)
class CurveFigure:
    """The learning curves of an entry of the config's `figures`.

    name: the name of the entry.
    series: a function that returns the lines in a panel (methods, or settings of a method).
    measures: the quantities on the y axes; each has a separate row of panels.
    each: True to draw each seed as a thin line.
    remark: a function that returns the text above a panel. The rows that this function gets have
    the values of the panel's y axis in column `score`.
    note: a function that returns a note, given the lines and all rows.
    """

    name: str
    series: Callable[[Config, str], list[Series]] = methods
    measures: tuple[Measure, ...] = (SCORE,)
    each: bool = False
    remark: Remarks | None = None
    note: Callable[[Sequence[Series], pd.DataFrame], str] | None = None

    @style.context()
    def draw(self, runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
        """Draw and return the figure.

        runs: the rows of `ngt.runs.table.read_runs`.
        absent: the keys of missing runs.
        """
        plan, table = config.figures[self.name], run_table(config, [self.name], beside=True)
        shown, bare = _with_runs(plan, set(table).difference(absent))
        series, laid = self.series(config, self.name), grid(shown, self.measures)
        runs = curves.usable(runs)
        silent = curves.unevaluated(runs, table, absent)
        runs = curves.counted(runs, silent)
        figure, rows = _empty(config, laid, runs, len(series))
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
        said = self.note(series, runs) if self.note else ""
        env, crosses = plan.envs[0], any(panel.crosses for panel in every)
        style.footer(
            figure,
            notes.handles(config, _drawn(series, every), env, measures, crosses),
            [
                notes.reading(
                    config,
                    series,
                    env,
                    [n for panel in every for n in panel.seeds],
                    measures,
                    plan=plan,
                    of=laid.shared,
                    each=self.each,
                ),
                *([style.Note(said)] if said else []),
                *notes.warnings(
                    runs, len(table), silent, cut, absent, bare, ABSENT[config.records]
                ),
            ],
        )
        return figure

    def _say(
        self,
        panel: Panel,
        here: Sequence[tuple[Series, pd.DataFrame]],
        config: Config,
        absent: Sequence[RunKey],
        silent: Sequence[RunKey],
    ) -> None:
        """Add the texts above a panel: warnings, and the remark if the figure has one.

        Missing runs, and runs that diverged before an evaluation, are named only above panels of
        the first measure and of returns.

        here: each line, with the table rows that it shows in this panel.
        """
        plan, env = config.figures[self.name], panel.place.env
        series = [one for one, _ in here if env in plan.envs_of(one.method)]
        if not panel.scored:
            panel.remarks.append(("no scores: see below", style.ALERT))
        if panel.place.measure in (self.measures[0], RETURN):
            lack = ABSENT[config.records]
            for title, keys in ((lack, absent), ("diverged, no evaluation", silent)):
                if text := notes.lacking(panel, series, plan.seeds, title, keys):
                    panel.remarks.append((text, style.ALERT))
        if self.remark and (said := self.remark(panel.place, here, config)):
            panel.remarks.append(said)


def _with_runs(
    plan: FigureConfig, present: Collection[RunKey]
) -> tuple[FigureConfig, tuple[str, ...]]:
    """Leave out envs and numbers of demonstrations without any run, and return their names.

    If there is no run at all, leave out nothing.
    """
    if not present:
        return plan, ()
    envs = tuple(env for env in plan.envs if env in {key.env for key in present})
    demos = tuple(k for k in plan.demos if k in {key.demos for key in present})
    bare = [env for env in plan.envs if env not in envs]
    bare += [demonstrations(k) for k in plan.demos if k not in demos]
    return replace(plan, envs=envs, demos=demos), tuple(bare)


def _drawn(series: Sequence[Series], every: Sequence[Panel]) -> list[Series]:
    """Return the series that have a line in some panel."""
    looks = {mean.look for panel in every for mean in panel.means}
    return [one for one in series if one.look in looks]


def _empty(
    config: Config, laid: Grid, runs: pd.DataFrame, lines: int
) -> tuple[Figure, list[list[Panel]]]:
    """Return a figure and its empty panels, in rows.

    A figure with a single column of panels is as wide as a column of the paper's text, unless it
    has many lines. Panels with many lines are also higher if they fit on a page.
    """
    across, crowded = len(laid.rows[0]), lines > BANDS
    height = min(2.5 if crowded else 1.9, (style.TEXT_HEIGHT - 1.7) / len(laid.rows))
    width = style.TEXT_WIDTH if across > 1 or crowded else style.COLUMN_WIDTH
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


CURVE_FIGURES = {
    figure.name: figure
    for figure in (
        CurveFigure("main_figure"),
        CurveFigure("grid_figure", series=rates, measures=(RETURN,)),
        CurveFigure("seeds_figure", each=True, remark=spread),
        CurveFigure("ablation_mse_softmax", series=variants),
        CurveFigure("ablation_hlg_elsewhere", series=variants),
        CurveFigure("ablation_init", series=variants),
        CurveFigure("ablation_spectral_norm", series=variants),
        CurveFigure("ablation_embedding", series=sizes),
        CurveFigure("ablation_sigma", series=variants, measures=(SCORE, AUC), remark=inverted),
        CurveFigure("dmc_figure"),
        CurveFigure("pairing_figure"),
        CurveFigure("penalty_figure", remark=cost, note=packs),
        CurveFigure("controls_figure"),
        CurveFigure("readings_figure"),
        CurveFigure("beyond_figure"),
        CurveFigure("humanoid_figure"),
    )
}


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the runs of the requested figure, one of CURVE_FIGURES, and draw them."""
    return figure_of_runs(CURVE_FIGURES[options.artefact.name].draw, config, layout, options)
