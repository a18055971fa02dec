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


class Measure(NamedTuple):
    """What the vertical axis shows, and how far."""

    column: str  # of read_runs
    label: str
    random: float
    expert: float
    shown: tuple[float, float]  # in every panel
    limit: tuple[float, float]  # past these nothing is
    tick: float | None  # between ticks; None: where they fit


NORMALISED = Measure("score", "normalised return", 0.0, 1.0, SHOWN, LIMIT, 0.5)
AUC = Measure("auc", "reward's AUC", 0.5, 1.0, (0.4, 1.02), (0.0, 1.05), 0.25)


def unnormalised(random: float, expert: float) -> Measure:
    """Returns as the env pays them; the axes reach as far as those of normalised ones."""

    def at(score: float) -> float:
        return random + score * (expert - random)

    shown, limit = (tuple(sorted(map(at, pair))) for pair in (SHOWN, LIMIT))
    return Measure("return", "return", random, expert, shown, limit, None)  # type: ignore[arg-type]


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
    """Axes of some lines on one env, and what the notes must tell of them."""

    def __init__(
        self, axes: Axes, config: Config, env: str, row: str = "", measure: Measure = NORMALISED
    ) -> None:
        self.axes, self.config, self.env, self.measure = axes, config, env, measure
        self.row = row or f"{env}\n{measure.label}"  # the label at the left
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

    def add_seeds(self, runs: pd.DataFrame, look: Look) -> None:
        """Each run's running mean, thin."""
        for _, run in runs.groupby("seed"):
            own = curve(run, self.config.window)
            self.axes.plot(
                own.step, own.mean, color=look.color, linewidth=0.5, alpha=0.55, zorder=250
            )
            self.lines.append((look, own.step, own.mean))

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
        return np.concatenate([[self.measure.random, self.measure.expert], *ys])

    def finish(self, steps: float, low: float, high: float) -> list[float]:
        """Limits, references, crosses, and an arrow where a method is cut; the worst values cut."""
        self.axes.axhline(self.measure.expert, **EXPERT, zorder=300)
        self.axes.axhline(self.measure.random, **RANDOM, zorder=300)
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
    """Limits, ticks and labels of panels in rows that share an axis; the worst values cut.

    The longest run of a row sets its steps; rows need not be of one length.
    """
    cut: list[float] = []
    lasts = [max(panel.last for panel in row) for row in rows]
    longest = max(lasts) or 1.0
    scale, word = unit(longest)
    same = len(set(lasts) - {0.0}) <= 1
    for i, (row, last) in enumerate(zip(rows, lasts, strict=True)):
        measure = row[0].measure
        values = np.concatenate([panel.values() for panel in row])
        pad = 0.02 * abs(measure.expert - measure.random)
        low = max(min(measure.shown[0], values.min() - pad), measure.limit[0])
        high = min(max(measure.shown[1], values.max() + pad), measure.limit[1])
        below = len(rows[i + 1]) if i + 1 < len(rows) else 0
        for at, panel in enumerate(row):
            cut += panel.finish(last or longest, low, high)
            panel.axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
            panel.axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / scale:g}"))
            if measure.tick is not None:
                panel.axes.yaxis.set_major_locator(MultipleLocator(measure.tick))
            if at >= below:  # nothing beneath it
                panel.axes.set_xlabel(f"env steps{word}")
            elif same:
                panel.axes.tick_params(labelbottom=False)
        row[0].axes.set_ylabel(row[0].row)
    return cut


def unit(steps: float) -> tuple[float, str]:
    """What an axis up to `steps` counts in, and how to write it."""
    for power, sign in ((6, "⁶"), (3, "³")):
        if steps >= 2 * 10**power:
            return 10.0**power, f" (10{sign})"
    return 1.0, ""


def handles(lines: Iterable[tuple[str, Look, bool]], crosses: bool) -> list[Artist]:
    """Legend entries: (label, look, whether it is level) of each line, references, crosses."""
    out: list[Artist] = [
        Line2D([], [], **look.line, marker="none" if level else look.marker, label=label)
        for label, look, level in lines
    ]
    out += [Line2D([], [], **EXPERT, label="expert"), Line2D([], [], **RANDOM, label="random")]
    if crosses:
        out.append(Line2D([], [], **DIVERGED, **CROSS, label="diverged run"))
    return out


def reading(
    config: Config, methods: Sequence[str], env: str, seeds: Iterable[int], rates: Sequence[int],
    measure: Measure = NORMALISED,
) -> Note:  # fmt: skip
    """How to read lines and bands, and of how many seeds. A no-break space is written ~."""
    window, counts = config.window, sorted(set(seeds))
    n = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0] if counts else 0)
    text = [f"Scale {config.scale}, n~=~{n.replace(' ', '~')} seed{'s' * (n != '1')} a curve."]
    if measure is NORMALISED:
        text.append("0 is the return of a random policy, 1 the expert's.")
    if len(rates) == 1:
        text.append(_kept(config, methods, rates[0]))
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
        f"{method_label(config, name)}: every {nth(fixed)}"
        for name, fixed in own.items()
        if fixed is not None and fixed != rate
    ]
    text = f"Every {nth(rate)} transition of a demonstration is kept"
    return text + (f" ({'; '.join(others)})." if others else ".")


def nth(n: int) -> str:
    """A number as an ordinal; `one` for 1."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10 if n % 100 not in (11, 12, 13) else 0, "th")
    return "one" if n == 1 else f"{n}{ending}"


def warnings(
    runs: pd.DataFrame, total: int, silent: Sequence[RunKey], cut: Sequence[float],
    absent: Sequence[RunKey], measure: Measure = NORMALISED,
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
        low, high = (f"{x:.4g}".replace("-", "−") for x in measure.limit)
        form = "{:.2g}" if measure is NORMALISED else "{:.0f}"
        ends = dict.fromkeys(form.format(x).replace("-", "−") for x in (min(cut), max(cut)))
        reach = " and ".join(ends)
        notes.append(Note(f"▼ ▲: cut, the axes end at {low} and {high}; the data reach {reach}."))
    if absent:
        text = f"PARTIAL: {len(absent)} of {total} runs are missing; each panel names its own."
        notes.append(Note(text, alert=True))
    return notes
