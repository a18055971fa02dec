"""Figures of learning curves: panels in rows, lines in panels, each line some runs of one method.

What a figure shows is a plan of panels; everything else is the same for all: curves and bands,
references, limits, titles, the runs that a panel lacks, legend and notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from ngt.config import Config, FigureConfig, method_label, method_rate, resolve
from ngt.errors import UserError
from ngt.runs import RunKey
from paper import curves, style
from paper.curves import AXES, NORMALISED, Measure, Panel
from paper.style import Look, Note

if TYPE_CHECKING:
    import pandas as pd

WORDS = 5.5  # points, of what is said above a panel
PANEL = 1.9  # inches, the height of a row where they are few


@dataclass(frozen=True)
class Line:
    """Runs that are drawn as one line."""

    label: str
    look: Look
    method: str
    keys: tuple[RunKey, ...]


@dataclass(frozen=True)
class Spec:
    """A panel: its env, what stands above it and at its left, its lines."""

    env: str
    title: str
    lines: tuple[Line, ...]
    row: str = ""  # the env and what is measured, where empty
    measure: Measure = NORMALISED
    each_seed: bool = False  # a thin line of its own


Rows = Sequence[Sequence[Spec]]


def plan_of(config: Config, name: str, *, one: Iterable[str] = ("modes", "rates")) -> FigureConfig:
    """An artefact's entry; UserError where an axis has more than the one value that is shown."""
    plan = config.figures[name]
    for axis in one:
        values = getattr(plan, axis)
        if len(values) != 1:
            shown = ", ".join(map(str, values))
            raise UserError(f"figures.{name}.{axis}: found [{shown}], this figure shows one")
    return plan


def keys_of(
    config: Config, plan: FigureConfig, method: str, env: str, demos: int,
    mode: str | None = None, rate: int | None = None,
) -> tuple[RunKey, ...]:  # fmt: skip
    """The runs of one cell of an artefact, a seed each."""
    own = method_rate(config, method)
    chosen = own if own is not None else rate if rate is not None else plan.rates[0]
    return tuple(
        RunKey(env, method, mode or plan.modes[0], chosen, demos, seed)  # type: ignore[arg-type]
        for seed in plan.seeds
    )


def demonstrations(count: int) -> str:
    """A panel's title."""
    return f"{count} demonstration{'s' * (count != 1)}"


def by_method(
    config: Config, name: str, labels: dict[str, str] | None = None,
    looks: dict[str, Look] | None = None,
) -> list[list[Spec]]:  # fmt: skip
    """A row an env, a column a number of demonstrations, a line a method, those beside first."""
    plan = plan_of(config, name)
    methods = (*plan.beside, *plan.methods)
    looks = looks or style.looks(methods)
    labels = labels or {}

    def lines(env: str, k: int) -> tuple[Line, ...]:
        return tuple(
            Line(
                labels.get(method) or method_label(config, method), looks[method], method,
                keys_of(config, plan, method, env, k),
            )
            for method in methods
        )  # fmt: skip

    return [[Spec(env, demonstrations(k), lines(env, k)) for k in plan.demos] for env in plan.envs]


def compact(rows: Sequence[Sequence[Spec]], columns: int = 3) -> list[list[Spec]]:
    """Panels of one number of demonstrations, side by side, each named by its env."""
    flat = [
        Spec(spec.env, f"{spec.env}, {spec.title}", spec.lines, spec.measure.label, spec.measure)
        for row in rows
        for spec in row
    ]
    return [flat[i : i + columns] for i in range(0, len(flat), columns)]


def differing(config: Config, name: str) -> dict[str, str]:
    """The label of each method that is drawn beside: with what it has where the variants differ."""
    plan = plan_of(config, name)
    params = {
        method: [resolve(config, env, method, plan.modes[0], plan.rates[0]).params
                 for env in plan.envs]
        for method in (*plan.beside, *plan.methods)
    }  # fmt: skip
    out = {}
    for method in plan.beside:
        parts = []
        for key in params[method][0]:
            own = [p[key] for p in params[method]]
            others = [[p.get(key) for p in params[other]] for other in plan.methods]
            if any(own != other for other in others):
                values = list(dict.fromkeys(map(str, own)))
                parts.append(f"{key} = {' or '.join(values)}")
        label, has = method_label(config, method), ", ".join(parts)
        joined = f"{label[:-1]}; {has})" if label.endswith(")") else f"{label} ({has})"
        out[method] = joined if has else label
    return out


@style.context()
def draw(
    runs: pd.DataFrame, config: Config, absent: Sequence[RunKey], plan: Rows,
    notes: Sequence[Note] = (), rates: Sequence[int] = (),
) -> Figure:  # fmt: skip
    """The figure.

    runs: rows of `ngt.results.read_runs`. absent: the keys that are not there. notes: what this
    figure says besides. rates: the subsampling rate that its note explains, if it is one.
    """
    specs = [spec for row in plan for spec in row]
    measure = specs[0].measure
    runs = curves.usable(runs)
    columns = max(len(row) for row in plan)
    height = min(PANEL, (style.TEXT_HEIGHT - 1.7) / len(plan))
    width = style.TEXT_WIDTH if columns > 1 else 0.62 * style.TEXT_WIDTH
    figure = style.new_figure(width, height * len(plan) + 0.35)
    grid = figure.subplots(len(plan), columns, squeeze=False, sharey="row")
    cells = dict(tuple(runs.groupby(AXES, sort=False)))
    rows: list[list[Panel]] = []
    for row, axes_row in zip(plan, grid, strict=True):
        rows.append([])
        for spec, axes in zip(row, axes_row, strict=False):
            panel = Panel(axes, config, spec.env, spec.row, spec.measure)
            for place, line in enumerate(spec.lines):
                found = [cells[at] for key in line.keys if (at := _at(key)) in cells]
                if found:
                    cell = _shown(found, spec.measure)
                    panel.add(cell, line.method, line.look, place, len(spec.lines))
                    if spec.each_seed:
                        panel.add_seeds(cell, line.look)
            rows[-1].append(panel)
        for axes in axes_row[len(row) :]:
            axes.set_axis_off()
    cut = curves.finish(rows)
    table = list(dict.fromkeys(key for spec in specs for line in spec.lines for key in line.keys))
    silent = curves.unevaluated(runs, table, absent)
    _titles(figure, plan, rows, absent, silent)
    panels = [panel for row in rows for panel in row]
    shown = {(line.label, line.look): line.method for spec in specs for line in spec.lines}
    methods, env = list(dict.fromkeys(shown.values())), specs[0].env
    style.footer(
        figure,
        curves.handles(
            [(label, look, curves.offline(config, m, env)) for (label, look), m in shown.items()],
            any(panel.crosses for panel in panels),
        ),
        [
            curves.reading(
                config, methods, env, [n for panel in panels for n in panel.seeds], rates, measure
            ),
            *notes,
            *curves.warnings(runs, len(table), silent, cut, absent, measure),
        ],
    )
    return figure


def _at(key: RunKey) -> tuple[object, ...]:
    return tuple(getattr(key, name) for name in AXES)


def _shown(frames: Sequence[pd.DataFrame], measure: Measure) -> pd.DataFrame:
    """The rows of one line with what is measured as their score, where it was."""
    import pandas as pd

    rows = pd.concat(frames, ignore_index=True)
    return rows.assign(score=rows[measure.column]).dropna(subset="score")


def _titles(
    figure: Figure, plan: Rows, rows: Sequence[Sequence[Panel]],
    absent: Sequence[RunKey], silent: Sequence[RunKey],
) -> None:  # fmt: skip
    """Titles and, above each panel, the runs that it lacks; the figure grows by those."""
    whole, height = figure.get_size_inches()
    width = (whole - 0.6) / max(len(row) for row in plan) - 0.15
    line, grown = WORDS * 1.4, 0.0  # points
    former: list[str] = []
    for specs, panels in zip(plan, rows, strict=True):
        words = [
            [
                part
                for title, keys in (("missing", absent), ("diverged, no evaluation", silent))
                for text in _lacking(spec, title, set(keys))
                for part in style.wrap(figure, text, width, WORDS)
            ]
            for spec in specs
        ]
        room = max(len(w) for w in words) * line
        grown += room / 72
        titles = [spec.title for spec in specs]
        for spec, panel, lines in zip(specs, panels, words, strict=True):
            if titles != former:
                panel.axes.set_title(spec.title, pad=4 + room)
            if lines:
                panel.axes.annotate(
                    "\n".join(lines), (0, 1), (0, 2), xycoords="axes fraction", va="bottom",
                    textcoords="offset points", fontsize=WORDS, linespacing=1.15,
                    color=style.ALERT,
                )  # fmt: skip
        former = titles
    figure.set_size_inches(whole, height + grown)


def _lacking(spec: Spec, title: str, keys: set[RunKey]) -> list[str]:
    here = [[key for key in line.keys if key in keys] for line in spec.lines]
    if all(len(gone) == len(line.keys) for gone, line in zip(here, spec.lines, strict=True)):
        return [f"{title}: all runs"]
    parts = []
    for gone, line in zip(here, spec.lines, strict=True):
        text = line.label
        if gone and len(gone) < len(line.keys):
            seeds = ", ".join(str(key.seed) for key in sorted(gone))
            text += f" seed{'s' * (len(gone) > 1)} {seeds}"
        parts += [text.replace(" ", "\u00a0")] * bool(gone)
    return [f"{title}: {'; '.join(parts)}"] if parts else []


def ramp(count: int) -> list[Look]:
    """Looks in an order: from light to dark, dashes and markers apart."""
    colors = [style.RAMP[round(at)] for at in np.linspace(0, len(style.RAMP) - 1, count)]
    dashes = [(), (5, 1.5), (2.2, 1), (1.2, 1.2), (5, 1.2, 1.2, 1.2)]
    return [Look(color, dashes[i % len(dashes)], "osD^v"[i % 5]) for i, color in enumerate(colors)]
