"""Learning curves in panels: what every figure of returns against env steps shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator
from numpy.typing import NDArray

from ngt.config import Config, load_model, method_label, method_rate, model_params
from ngt.errors import UserError
from ngt.results import final_scores
from ngt.runs import RunKey
from paper import style
from paper.style import Look, Note

if TYPE_CHECKING:
    import pandas as pd

SHOWN = (-0.1, 1.1)  # normalised returns that every panel shows
LIMIT = (-0.5, 1.5)  # and past these none does

AXES = ["env", "method", "mode", "rate", "demos", "seed"]  # columns that tell runs apart

EXPERT: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (4, 3))}
RANDOM: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (1, 2))}
DIVERGED: dict[str, Any] = {"color": style.ALERT, "marker": "x", "linestyle": "none"}
CROSS: dict[str, Any] = {"markersize": 4.5, "markeredgewidth": 1.2}

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


def usable(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows with a finite score: only a diverged run may have others."""
    finite = np.isfinite(runs["score"].to_numpy(float))
    bad = runs[~finite & (runs["status"] != "diverged").to_numpy()]
    if len(bad):
        raise UserError(
            f"run {_key(bad)}: its score at step {bad['step'].iloc[0]} is not finite; "
            f"check its eval.csv and the references in its run.json"
        )
    return runs[finite]


def unevaluated(
    runs: pd.DataFrame, keys: Iterable[RunKey], absent: Iterable[RunKey]
) -> list[RunKey]:
    """Those of `keys` that are not absent and yet have no row: diverged before an evaluation."""
    seen = set(runs[AXES].drop_duplicates().itertuples(index=False, name=None))
    gone = set(absent)
    return [
        key for key in keys
        if key not in gone and tuple(getattr(key, name) for name in AXES) not in seen
    ]  # fmt: skip


def _key(runs: pd.DataFrame) -> RunKey:
    row = runs.iloc[0]
    return RunKey(*(row[name] for name in AXES))


def offline(config: Config, method: str, env: str) -> bool:
    """Whether a method steps no env, as its class says."""
    model, _ = model_params(config, method, env)
    return bool(load_model(model, f"methods.{method}.model").offline)


class Panel:
    """Axes for one env and number of demonstrations, and what the notes must tell of them."""

    def __init__(self, axes: Axes, config: Config, env: str, demos: int) -> None:
        self.axes, self.config, self.env, self.demos = axes, config, env, demos
        self.last = 0.0  # the largest env step
        self.seeds: list[int] = []  # runs of each cell
        self.lines: list[tuple[Look, Array, Array]] = []  # (look, x, y) of all that is drawn,
        self.levels: list[tuple[Look, Array]] = []  # (look, y) where there is no x
        self.crosses: list[tuple[float | None, float]] = []  # no x: at the right edge

    def add(self, runs: pd.DataFrame, method: str, look: Look, place: int, of: int) -> None:
        """Draw one method's runs; the first of `of` lies on top, and markers are staggered."""
        if runs.empty:
            return
        if offline(self.config, method, self.env):
            self._add_level(level(runs, self.config.window), look, of - place)
        else:
            self._add_curve(curve(runs, self.config.window), look, place, of)

    def _add_curve(self, c: Curve, look: Look, place: int, of: int) -> None:
        front = of - place
        every = max(1, round(len(c.step) / 6))
        self.axes.plot(
            c.step, c.mean, **look.line, linewidth=1.5 if place == 0 else 1.1, zorder=400 + front,
            marker=look.marker, markevery=(place * every // of, every), markeredgecolor="white",
            markeredgewidth=0.3,
        )  # fmt: skip
        self.lines.append((look, c.step, c.mean))
        if self.config.window > 1:
            self.axes.plot(
                c.step, c.raw, color=look.color, linewidth=0.45, alpha=0.35, zorder=200 + front
            )
            self.lines.append((look, c.step, c.raw))
        if c.seeds > 1:
            low, high = c.mean - c.std, c.mean + c.std
            self.axes.fill_between(
                c.step, low, high, color=look.color, alpha=0.13, linewidth=0, zorder=front
            )
            self.lines += [(look, c.step, low), (look, c.step, high)]
        self.crosses += c.ends
        self.seeds.append(c.seeds)
        self.last = max(self.last, float(c.step[-1]))

    def _add_level(self, at: Level, look: Look, front: int) -> None:
        self.axes.axhline(at.mean, **look.line, linewidth=1.1, zorder=400 + front)
        band = at.mean + np.array([-1.0, 1.0]) * (at.std if at.seeds > 1 else 0.0)
        if at.seeds > 1:
            self.axes.axhspan(*band, color=look.color, alpha=0.13, linewidth=0, zorder=front)
        self.levels.append((look, band))
        self.crosses += [(None, end) for end in at.ends]
        self.seeds.append(at.seeds)

    def values(self) -> Array:
        """Every y that is drawn."""
        ys = [y for _, _, y in self.lines] + [y for _, y in self.levels]
        return np.concatenate([[0.0, 1.0], *ys])

    def finish(self, steps: float, low: float, high: float) -> list[float]:
        """Limits, references, crosses, and an arrow where a method is cut; the worst values cut."""
        self.axes.axhline(1, **EXPERT, zorder=300)
        self.axes.axhline(0, **RANDOM, zorder=300)
        self.axes.set(xlim=(0, steps), ylim=(low, high))
        for step, score in self.crosses:
            self.axes.plot(
                steps if step is None else step, np.clip(score, low, high), **DIVERGED, **CROSS,
                zorder=800, clip_on=False,
            )  # fmt: skip
        worst: dict[tuple[Look, bool], tuple[float, float]] = {}
        beside = [
            (look, np.full(2, steps * (0.95 - 0.05 * i)), y)
            for i, (look, y) in enumerate(self.levels)
        ]
        for look, x, y in [*self.lines, *beside]:
            for above, at in ((False, int(y.argmin())), (True, int(y.argmax()))):
                past = y[at] > high if above else y[at] < low
                if past and abs(y[at]) > abs(worst.get((look, above), (0.0, 0.0))[1]):
                    worst[look, above] = (float(x[at]), float(y[at]))
        for (look, above), (x_at, _) in worst.items():
            self.axes.plot(
                x_at, high if above else low, color=look.color, marker="^" if above else "v",
                markersize=4.5, linestyle="none", zorder=700, clip_on=False,
            )  # fmt: skip
        return [y for _, y in worst.values()]


def finish(rows: Sequence[Sequence[Panel]]) -> list[float]:
    """Limits, ticks and labels of panels in rows of one env each; the worst values cut."""
    cut: list[float] = []
    lasts = [max(panel.last for panel in row) for row in rows]
    longest = max(lasts) or 1.0
    scale, word = unit(longest)
    same = len(set(lasts) - {0.0}) <= 1
    for row, last in zip(rows, lasts, strict=True):
        values = np.concatenate([panel.values() for panel in row])
        low = max(min(SHOWN[0], values.min() - 0.02), LIMIT[0])
        high = min(max(SHOWN[1], values.max() + 0.02), LIMIT[1])
        for panel in row:
            cut += panel.finish(last or longest, low, high)
            panel.axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
            panel.axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / scale:g}"))
            panel.axes.yaxis.set_major_locator(MultipleLocator(0.5))
            if row is rows[-1]:
                panel.axes.set_xlabel(f"env steps{word}")
            elif same:
                panel.axes.tick_params(labelbottom=False)
        row[0].axes.set_ylabel(f"{row[0].env}\nnormalised return")
    return cut


def unit(steps: float) -> tuple[float, str]:
    """What an axis up to `steps` counts in, and how to write it."""
    for power, sign in ((6, "⁶"), (3, "³")):
        if steps >= 2 * 10**power:
            return 10.0**power, f" (10{sign})"
    return 1.0, ""


def handles(
    config: Config, methods: Iterable[str], looks: dict[str, Look], env: str, crosses: bool
) -> list[Artist]:
    """Legend entries: the methods, the references and, where there are any, the crosses."""
    out: list[Artist] = []
    for name in methods:
        marker = "none" if offline(config, name, env) else looks[name].marker
        label = method_label(config, name)
        out.append(Line2D([], [], **looks[name].line, marker=marker, label=label))
    out += [Line2D([], [], **EXPERT, label="expert"), Line2D([], [], **RANDOM, label="random")]
    if crosses:
        out.append(Line2D([], [], **DIVERGED, **CROSS, label="diverged run"))
    return out


def reading(
    config: Config, methods: Sequence[str], env: str, seeds: Iterable[int], rate: int
) -> Note:
    """How to read lines and bands, and of how many seeds. A no-break space is written ~."""
    window, counts = config.window, sorted(set(seeds))
    n = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0] if counts else 0)
    text = [
        f"Scale {config.scale}, n~=~{n.replace(' ', '~')} seed{'s' * (n != '1')} a curve.",
        "0 is the return of a random policy, 1 the expert's.",
        _kept(config, methods, rate),
    ]
    flat = [name for name in methods if offline(config, name, env)]
    mean = f"mean over its last {window} evaluations" if window > 1 else "last evaluation"
    if set(methods) - set(flat):
        text.append(
            f"Strong line: each run's running mean over {window} evaluations, averaged over seeds; "
            f"thin line: the evaluations themselves, averaged."
            if window > 1
            else "Line: evaluations, averaged over seeds."
        )
    if flat:
        names = ", ".join(method_label(config, name) for name in flat)
        text.append(
            f"Horizontal line ({names}: no env steps): a run's {mean}, averaged over seeds."
        )
    if counts and counts[-1] > 1:
        alone = "; none where n~=~1" if counts[0] == 1 else ""
        text.append(
            f"Band: mean ±~1 standard deviation over seeds (sample, n~−~1) of what the line "
            f"averages{alone}."
        )
    else:
        text.append("One seed has no standard deviation, so there is no band.")
    return Note(" ".join(text).replace("~", "\u00a0"))


def _kept(config: Config, methods: Sequence[str], rate: int) -> str:
    """What methods are given of a demonstration."""
    own = {name: method_rate(config, name) for name in methods}
    others = [
        f"{method_label(config, name)}: every {_nth(fixed)}"
        for name, fixed in own.items()
        if fixed is not None and fixed != rate
    ]
    text = f"Every {_nth(rate)} transition of a demonstration is kept"
    return text + (f" ({'; '.join(others)})." if others else ".")


def _nth(n: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10 if n % 100 not in (11, 12, 13) else 0, "th")
    return "one" if n == 1 else f"{n}{ending}"


def warnings(
    runs: pd.DataFrame, total: int, silent: Sequence[RunKey], cut: Sequence[float],
    absent: Sequence[RunKey],
) -> list[Note]:  # fmt: skip
    """What went wrong with the runs or did not fit."""
    notes = []
    upside_down = sorted(runs.loc[runs["expert"] <= runs["random"], "env"].unique())
    if upside_down:
        envs = ", ".join(upside_down)
        text = f"The expert is no better than random on {envs}: scores there mean nothing."
        notes.append(Note(text, alert=True))
    diverged = len(runs.loc[runs["status"] == "diverged", AXES].drop_duplicates())
    if diverged or silent:
        early = f"; {len(silent)} of them had no evaluation yet and count nowhere" if silent else ""
        notes.append(
            Note(
                f"×: {diverged + len(silent)} of {total} runs diverged; from there on a run counts "
                f"with its last value{early}."
            )
        )
    if cut:
        low, high = (f"{x:g}".replace("-", "−") for x in LIMIT)
        reach = " and ".join(f"{x:.2g}".replace("-", "−") for x in sorted({min(cut), max(cut)}))
        notes.append(Note(f"▼ ▲: cut, the axes end at {low} and {high}; the data reach {reach}."))
    if absent:
        text = f"PARTIAL: {len(absent)} of {total} runs are missing; each panel names its own."
        notes.append(Note(text, alert=True))
    return notes
