"""Learning curves of every method, env and number of demonstrations (the paper's main figure).

python -m paper.main_figure --scale quick --out results/main_figure.pdf
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from ngt.config import Config, FigureConfig, load_model, method_label, model_params
from ngt.errors import UserError
from ngt.results import final_scores
from ngt.runs import RunKey, run_table
from paper import cli, style
from paper.style import Look, Note

if TYPE_CHECKING:
    import pandas as pd

NAME = "main_figure"

SHOWN = (-0.1, 1.1)  # normalised returns that every panel shows
LIMIT = (-0.5, 1.5)  # and past these none does

EXPERT = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (4, 3))}
RANDOM = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (1, 2))}
DIVERGED = {"color": style.ALERT, "marker": "x", "markersize": 4.5, "markeredgewidth": 1.2}

Array = NDArray[np.float64]


class Curve(NamedTuple):
    """A cell's learning curve: one value an evaluation, over its runs."""

    step: Array
    mean: Array  # of the runs' running means
    std: Array  # of the same, sample (n - 1); NaN for one run
    raw: Array  # mean of the evaluations themselves
    ends: list[tuple[float, float]]  # last step and running mean of each diverged run
    seeds: int


class Level(NamedTuple):
    """A cell's final score over its runs."""

    mean: float
    std: float  # sample (n - 1); NaN for one run
    ends: list[float]  # of each diverged run
    seeds: int


def curve(runs: pd.DataFrame, window: int) -> Curve:
    """The learning curve of one cell, its runs told apart by seed.

    A run's running mean is over its last `window` evaluations, fewer at the start. A diverged run
    counts with its last value from there on: leaving it out would show the survivors alone.
    """
    raw = runs.pivot(index="step", columns="seed", values="score").sort_index()
    smooth = raw.rolling(window, min_periods=1).mean().where(raw.notna())
    diverged = runs.loc[runs["status"] == "diverged", "seed"].unique()
    ends = []
    for seed in raw.columns:
        if seed in diverged:
            last = raw[seed].last_valid_index()
            ends.append((float(last), float(smooth.at[last, seed])))
        elif raw[seed].isna().any():
            step = raw.index[raw[seed].isna()][0]
            raise UserError(
                f"run {_key(runs[runs['seed'] == seed])}: no evaluation at step {step}, where "
                f"another seed has one; train it again"
            )
    filled = smooth.ffill()
    return Curve(
        step=raw.index.to_numpy(float),
        mean=filled.mean(axis=1).to_numpy(),
        std=filled.std(axis=1, ddof=1).to_numpy(),
        raw=raw.ffill().mean(axis=1).to_numpy(),
        ends=ends,
        seeds=raw.shape[1],
    )


def level(runs: pd.DataFrame, window: int) -> Level:
    """The final score of one cell."""
    scores = final_scores(runs, window).set_index("seed")["score"]
    diverged = runs.loc[runs["status"] == "diverged", "seed"].unique()
    return Level(
        float(scores.mean()), float(scores.std(ddof=1)), [float(scores[s]) for s in diverged],
        len(scores),
    )  # fmt: skip


def _key(runs: pd.DataFrame) -> RunKey:
    row = runs.iloc[0]
    return RunKey(*(row[name] for name in ("env", "method", "mode", "rate", "demos", "seed")))


def _usable(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows with a finite score: only a diverged run may have others."""
    finite = np.isfinite(runs["score"].to_numpy(float))
    bad = runs[~finite & (runs["status"] != "diverged").to_numpy()]
    if len(bad):
        raise UserError(
            f"run {_key(bad)}: its score at step {bad['step'].iloc[0]} is not finite; "
            f"check its eval.csv and the references in its run.json"
        )
    return runs[finite]


class Panel:
    """One env and number of demonstrations: what is drawn, and what had to be cut or marked."""

    def __init__(self, axes: Axes, config: Config, env: str, demos: int) -> None:
        self.axes, self.config, self.env, self.demos = axes, config, env, demos
        self.drawn: list[tuple[Look, Array, Array]] = []  # (look, x, y) of all that may be cut
        self.crosses: list[tuple[float, float]] = []  # NaN for x: at the right edge
        self.seeds: list[int] = []
        self.last = 0.0  # step
        self.levels: list[tuple[Look, Level]] = []

    def add(self, runs: pd.DataFrame, method: str, look: Look, place: int, of: int) -> None:
        """Draw one method's runs; `place` of `of` methods staggers the markers."""
        if runs.empty:
            return
        if _offline(self.config, method, self.env):
            self._add_level(level(runs, self.config.window), look, of - place)
        else:
            self._add_curve(curve(runs, self.config.window), look, place, of)

    def _add_curve(self, c: Curve, look: Look, place: int, of: int) -> None:
        front = of - place  # the first method lies on top
        every = max(1, round(len(c.step) / 6))
        first = (place * every) // of
        width = 1.5 if place == 0 else 1.1
        self.axes.plot(
            c.step, c.mean, **look.line, linewidth=width, zorder=40 + front,
            marker=look.marker, markevery=(first, every), markeredgecolor="white",
            markeredgewidth=0.3,
        )  # fmt: skip
        if self.config.window > 1:
            self.axes.plot(
                c.step, c.raw, color=look.color, linewidth=0.5, alpha=0.4, zorder=20 + front
            )
        if c.seeds > 1:
            low, high = c.mean - c.std, c.mean + c.std
            self.axes.fill_between(
                c.step, low, high, color=look.color, alpha=0.13, linewidth=0, zorder=front
            )
            self.drawn += [(look, c.step, low), (look, c.step, high)]
        self.drawn += [(look, c.step, c.mean), (look, c.step, c.raw)]
        self.crosses += c.ends
        self.seeds.append(c.seeds)
        self.last = max(self.last, float(c.step[-1]))

    def _add_level(self, at: Level, look: Look, front: int) -> None:
        self.axes.axhline(at.mean, **look.line, linewidth=1.1, zorder=40 + front)
        if at.seeds > 1:
            self.axes.axhspan(
                at.mean - at.std, at.mean + at.std, color=look.color, alpha=0.13, linewidth=0,
                zorder=front,
            )  # fmt: skip
        self.levels.append((look, at))
        self.crosses += [(np.nan, end) for end in at.ends]
        self.seeds.append(at.seeds)

    def finish(self, steps: float, low: float, high: float) -> list[float]:
        """Axes limits, crosses and arrows; the values that were cut."""
        axes = self.axes
        axes.axhline(1, **EXPERT, zorder=30)
        axes.axhline(0, **RANDOM, zorder=30)
        axes.set(xlim=(0, steps), ylim=(low, high))
        for x, y in self.crosses:
            axes.plot(
                steps if np.isnan(x) else x, np.clip(y, low, high), **DIVERGED, linestyle="none",
                zorder=80, clip_on=False,
            )  # fmt: skip
        return self._arrows(low, high)

    def values(self) -> Array:
        """All that is drawn, for the limits."""
        edges = [
            np.array([at.mean - np.nan_to_num(at.std), at.mean + np.nan_to_num(at.std)])
            for _, at in self.levels
        ]
        return np.concatenate([np.array(SHOWN), *(y for _, _, y in self.drawn), *edges])

    def _arrows(self, low: float, high: float) -> list[float]:
        """An arrow at the edge in the colour of each method that passes it."""
        steps = self.axes.get_xlim()[1]
        shown = self.drawn + [
            (look, np.full(2, steps * (0.97 - 0.05 * i)), at.mean + np.array([-1, 1]) * spread)
            for i, (look, at) in enumerate(self.levels)
            for spread in [np.nan_to_num(at.std)]
        ]
        worst: dict[tuple[Look, str], tuple[float, float]] = {}
        for look, x, y in shown:
            for marker, i in (("v", int(np.argmin(y))), ("^", int(np.argmax(y)))):
                past = y[i] < low if marker == "v" else y[i] > high
                known = worst.get((look, marker))
                if past and (known is None or abs(y[i]) > abs(known[1])):
                    worst[look, marker] = (float(x[i]), float(y[i]))
        for (look, marker), (x, _) in worst.items():
            self.axes.plot(
                x, low if marker == "v" else high, color=look.color, marker=marker, markersize=4.5,
                linestyle="none", zorder=70, clip_on=False,
            )  # fmt: skip
        return [y for _, y in worst.values()]

    def say(self, lines: Sequence[str]) -> None:
        """Words on the face of the panel."""
        if lines:
            self.axes.annotate(
                "\n".join(lines), (0.98, 0.03), xycoords="axes fraction", ha="right", va="bottom",
                fontsize=5.5, color=style.ALERT, zorder=90,
                bbox={"boxstyle": "square,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
            )  # fmt: skip


def _offline(config: Config, method: str, env: str) -> bool:
    model, _ = model_params(config, method, env)
    return bool(load_model(model, f"methods.{method}.model").offline)


@style.context()
def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """The figure: a row an env, a column a number of demonstrations.

    runs: rows of `ngt.results.read_runs`. absent: the keys that are not there.
    """
    plan = config.figures[NAME]
    _check_plan(plan)
    runs = _usable(runs)
    looks = style.looks(plan.methods)
    height = min(1.9, (style.TEXT_HEIGHT - 1.7) / len(plan.envs))
    figure = style.new_figure(style.TEXT_WIDTH, height * len(plan.envs) + 0.35)
    grid = figure.subplots(len(plan.envs), len(plan.demos), squeeze=False, sharey="row")
    rows = []
    for env, line in zip(plan.envs, grid, strict=True):
        panels = [Panel(a, config, env, k) for a, k in zip(line, plan.demos, strict=True)]
        for panel in panels:
            here = runs[(runs["env"] == env) & (runs["demos"] == panel.demos)]
            for place, method in enumerate(plan.methods):
                cell = here[here["method"] == method]
                panel.add(cell, method, looks[method], place, len(plan.methods))
        rows.append(panels)
    silent = _silent(runs, config, absent)
    cut = _finish_axes(rows)
    for panel in (p for row in rows for p in row):
        panel.say(_words(panel, config, absent, silent))
    notes = _notes(rows, runs, config, absent, silent, cut)
    crossed = any(panel.crosses for row in rows for panel in row)
    style.footer(figure, _handles(config, plan, looks, crossed), notes)
    return figure


def _check_plan(plan: FigureConfig) -> None:
    for name, values in (("modes", plan.modes), ("rates", plan.rates)):
        if len(values) != 1:
            shown = ", ".join(map(str, values))
            raise UserError(
                f"figures.{NAME}.{name}: this figure shows one, found [{shown}]; give one"
            )
    for name in ("envs", "demos", "methods", "seeds"):
        if not getattr(plan, name):
            raise UserError(f"figures.{NAME}.{name}: empty; give at least one")


def _silent(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey]) -> list[RunKey]:
    """Runs that are there without one finite evaluation: diverged before the first."""
    names = ["env", "method", "mode", "rate", "demos", "seed"]
    seen = set(runs[names].drop_duplicates().itertuples(index=False, name=None))
    gone = set(absent)
    return [
        key for key in run_table(config, [NAME])
        if key not in gone and tuple(getattr(key, n) for n in names) not in seen
    ]  # fmt: skip


def _finish_axes(rows: Sequence[Sequence[Panel]]) -> list[float]:
    """Limits, ticks and labels of all panels; the values that were cut."""
    cut: list[float] = []
    lasts = [max(p.last for p in row) for row in rows]
    longest = max(lasts) or 1.0
    unit, word = _unit(longest)
    same = len(set(lasts) - {0.0}) <= 1
    for i, (row, last) in enumerate(zip(rows, lasts, strict=True)):
        values = np.concatenate([panel.values() for panel in row])
        low, high = np.clip([values.min(), values.max()], *LIMIT)
        pad = 0.03 * (high - low)
        low, high = max(low - pad, LIMIT[0]), min(high + pad, LIMIT[1])
        for j, panel in enumerate(row):
            axes = panel.axes
            cut += panel.finish(last or longest, low, high)
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / unit:g}"))
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2.5, 5, 10]))
            if i == 0:
                axes.set_title(f"{panel.demos} demonstration{'s' * (panel.demos != 1)}")
            if i == len(rows) - 1:
                axes.set_xlabel(f"env steps{word}")
            elif same:
                axes.tick_params(labelbottom=False)
            if j == 0:
                axes.set_ylabel(f"{panel.env}\nnormalised return")
    return cut


def _unit(steps: float) -> tuple[float, str]:
    for power, sign in ((6, "⁶"), (3, "³")):
        if steps >= 2 * 10**power:
            return 10.0**power, f" (10{sign})"
    return 1.0, ""


def _words(
    panel: Panel, config: Config, absent: Sequence[RunKey], silent: Sequence[RunKey]
) -> list[str]:
    """What is missing in a panel."""
    plan = config.figures[NAME]
    lines = []
    for title, keys in (("missing", absent), ("diverged before an evaluation", silent)):
        here = [k for k in keys if (k.env, k.demos) == (panel.env, panel.demos)]
        if len(here) == len(plan.methods) * len(plan.seeds):
            lines.append(f"{title}: all runs")
            continue
        parts = []
        for method in plan.methods:
            seeds = sorted(k.seed for k in here if k.method == method)
            if len(seeds) == len(plan.seeds):
                parts.append(method_label(config, method))
            elif seeds:
                shown = ", ".join(map(str, seeds))
                parts.append(f"{method_label(config, method)} seed{'s' * (len(seeds) > 1)} {shown}")
        if parts:
            lines += _fold(f"{title}: " + "; ".join(parts), 170 // len(plan.demos))
    return lines


def _fold(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 20), break_long_words=False)


def _notes(
    rows: Sequence[Sequence[Panel]], runs: pd.DataFrame, config: Config,
    absent: Sequence[RunKey], silent: Sequence[RunKey], cut: Sequence[float],
) -> list[Note]:  # fmt: skip
    """What a reader must know, in sentences."""
    plan, window = config.figures[NAME], config.window
    total = len(run_table(config, [NAME]))
    offline = [m for m in plan.methods if _offline(config, m, plan.envs[0])]
    online = [m for m in plan.methods if m not in offline]
    text = [f"Scale {config.scale}, {_count(rows)}."]
    if online:
        text.append(
            f"Strong line: mean over seeds of each run's mean over its last {window} evaluations; "
            f"thin line: mean of the evaluations themselves."
            if window > 1
            else "Line: mean over seeds."
        )
    if offline:
        names = ", ".join(method_label(config, m) for m in offline)
        text.append(
            f"Horizontal line: {names}, trained without an env; final score, the mean over the "
            f"last {window} evaluations."
        )
    text.append("Band: ± 1 standard deviation over seeds (sample, n − 1), of the strong line.")
    notes = [Note(" ".join(text))]
    diverged = runs.loc[runs["status"] == "diverged"].groupby(
        ["env", "method", "mode", "rate", "demos", "seed"]
    )
    if diverged.ngroups or silent:
        early = f", {len(silent)} of them before an evaluation" if silent else ""
        notes.append(
            Note(
                f"×: {diverged.ngroups + len(silent)} of {total} runs diverged{early}; each counts "
                f"with its last value from there on."
            )
        )
    if cut:
        notes.append(
            Note(
                f"▼ ▲: cut at {LIMIT[0]:g} and {LIMIT[1]:g} ({len(cut)} times; drawn values reach "
                f"from {min(cut):.2g} to {max(cut):.2g}).".replace("-", "−")
            )
        )
    if absent:
        notes.append(
            Note(
                f"PARTIAL: {len(absent)} of {total} runs are missing; each panel names its own.",
                alert=True,
            )
        )
    return notes


def _count(rows: Iterable[Iterable[Panel]]) -> str:
    counts = sorted({n for row in rows for panel in row for n in panel.seeds})
    if not counts:
        return "no evaluation"
    if counts == [1]:
        return "n = 1 seed, so no band"
    if len(counts) == 1:
        return f"n = {counts[0]} seeds"
    return f"n = {counts[0]} to {counts[-1]} seeds" + (", no band for one" * (counts[0] == 1))


def _handles(
    config: Config, plan: FigureConfig, looks: dict[str, Look], crossed: bool
) -> list[Artist]:
    handles: list[Artist] = []
    for method in plan.methods:
        offline = _offline(config, method, plan.envs[0])
        marker: dict[str, Any] = {} if offline else {"marker": looks[method].marker}
        handles.append(
            Line2D([], [], **looks[method].line, **marker, label=method_label(config, method))
        )
    handles += [Line2D([], [], **EXPERT, label="expert"), Line2D([], [], **RANDOM, label="random")]
    if crossed:
        handles.append(Line2D([], [], **DIVERGED, linestyle="none", label="diverged run"))
    return handles


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
