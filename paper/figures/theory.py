"""A figure of the paper's theorems, computed: each bound next to the value that it bounds."""

import math
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ngt.runs.keys import Layout
from ngt.settings.config import Config
from paper.command import Made, Options
from paper.drawing import style
from paper.source import cite
from paper.tables.theory import LABELS, statements
from paper.theory import bounds
from paper.theory.bounds import Verdict
from paper.theory.study import (
    BINS,
    COINS,
    DRAWS,
    SAMPLES,
    SIGMAS,
    SIZES,
    STEPS,
    TRIALS,
    Study,
    study,
)

Look = dict[str, Any]
# The look of a line shows its meaning, and is the same in every panel.
EXACT: Look = {"color": "#000000"}
SOURCE: Look = {"color": "#D55E00", "linestyle": (0, (4, 1.2))}
OURS: Look = {"color": "#0072B2", "linestyle": (0, (5, 1.2, 1.2, 1.2))}
LEVEL: Look = {"color": style.GREY, "linewidth": 0.8, "zorder": 1}
BROKEN: Look = {"color": style.ALERT, "alpha": 0.13, "linewidth": 0, "zorder": 0}
DOTTED = (0, (1.2, 1.2))
SHOWN: dict[int, Look] = {  # looks by number of bins
    2: {"color": "#56B4E9"},
    5: {"color": "#CC79A7", "linestyle": (0, (4, 1.2))},
    21: {"color": "#009E73", "linestyle": DOTTED},
    101: {"color": "#7F7F1A", "linestyle": (0, (5, 1.2, 1.2, 1.2))},
}
PAIRED: dict[str, Look] = {
    "huber": {"color": "#56B4E9", "marker": "o", "markersize": 2.2, "clip_on": False},
    "mse_softmax": {"color": "#CC79A7", "marker": "s", "markersize": 2.2, "clip_on": False},
    "hl_gauss": {"color": "#009E73", "marker": "^", "markersize": 2.2, "clip_on": False},
}
P_MAX = r"$p_\mathrm{max}$"
LEGEND = 5.8  # font size in points
CONFIDENCE = 0.05  # probability with which a deviation may exceed the bounds

Verdicts = dict[str, Verdict]


@style.context()
def draw(s: Study) -> Figure:
    """Draw nine panels. The notes have the verdicts of theory_table."""
    figure = style.new_figure(style.TEXT_WIDTH, 5.6)
    panels = (_logits, _sigma, _mass, _target, _potential, _dual, _coin, _coins, _learned)
    verdicts: Verdicts = {statement.key: statement.verdict for statement in statements(s)}
    axes_of = list(figure.subplots(3, 3).flat)
    for axes, panel in zip(axes_of, panels, strict=True):
        panel(axes, s)
    style.letters(axes_of)
    style.footer(figure, handles(), [style.Note(cite(text)) for text in notes(s, verdicts)])
    return figure


def handles() -> list[Artist]:
    """Return the legend that all panels share."""
    return [
        Line2D([], [], **EXACT, label="exact, or measured"),
        Line2D([], [], **SOURCE, label="the paper's bound"),
        Line2D([], [], **OURS, label="ours"),
        Patch(**{**BROKEN, "alpha": 0.3}, label="the bound is broken"),
    ]


def judged(s: Study, verdicts: Verdicts) -> str:
    """Return the verdicts of theory_table on the statements that the panels show, as text."""
    bound = ", ".join(sorted({verdicts[f"hlip_{pairing}"] for pairing in s.trainings}))
    keys = ("pmax", "sigma", "lemma", "pair", "", "reached", "two_sided", "corrected", "learned")
    each = (verdicts[key] if key else f"{bound} as a bound" for key in keys)
    return "; ".join(
        f"{letter} {verdict}" for letter, verdict in zip("abcdefghi", each, strict=True)
    )


def notes(s: Study, verdicts: Verdicts) -> list[str]:
    """Return notes that explain how to read the figure."""
    return [
        f"Verdicts of theory_table: {judged(s, verdicts)}. HL-Gauss on [−1, 1]. "
        f"Th. hlip and Eq. emdeq: one potential per pairing (one seed) trained on L over {SAMPLES} "
        f"transitions of HalfCheetah-v4 demonstrations and {SAMPLES} with noisy states and uniform "
        "actions. Th. hlip: largest |∇h| on the samples and between them (solid) and the product "
        "(dashed). Eq. emdeq: the value of h/Λ(h), Λ on the samples (solid), and −L (dotted). "
        f"Th. rewloss, n = {COINS}: exact for fair coins (steps), {TRIALS // 1000} 000 trials of "
        "uniform laws on [0, 1] (dots). h learned: the deviation that the best 1-Lipschitz h "
        f"reaches if both sides have one law (uniform on a {s.inputs}-dimensional cube of "
        f"diameter 1), mean and range of {DRAWS} draws; the bounds allow more with probability "
        f"{CONFIDENCE:g}."
    ]


def _ticks(axis: Axis, *values: float) -> None:
    """Put ticks at these values, and nowhere else."""
    axis.set_ticks(values, [str(value) for value in values])
    axis.axes.minorticks_off()


def _bins(axes: Axes, values: Any) -> None:
    """Draw a line over sigma for each number of bins in SHOWN."""
    for n, look in SHOWN.items():
        axes.plot(SIGMAS, values[BINS.index(n)], **look, label=f"N = {n}")


def _over_sigma(axes: Axes) -> None:
    axes.set(xscale="log", xlim=(SIGMAS[0], SIGMAS[-1]), xlabel="σ")


def _logits(axes: Axes, s: Study) -> None:
    row, g = BINS.index(s.config.bins), s.hlg
    axes.plot(SIGMAS, g.bound_p_max[row], **{**SOURCE, "linestyle": DOTTED}, label=cite("Th. pmax"))
    axes.plot(SIGMAS, g.bound_sigma[row], **SOURCE, label=cite("Th. sigma"))
    axes.plot(SIGMAS, list(map(bounds.bound_mass, g.mass[row])), **OURS, label=f"√(1 + {P_MAX})")
    axes.plot(SIGMAS, g.slope[row], **EXACT)
    axes.axhline(math.sqrt(2.0), **LEVEL)
    axes.annotate(
        "√2",
        (SIGMAS[-1], math.sqrt(2.0)),
        (-2, 2),
        textcoords="offset points",
        ha="right",
        fontsize=LEGEND,
        color=style.GREY,
    )
    _over_sigma(axes)
    axes.set(
        yscale="log",
        ylim=(0.9, 20.0),
        ylabel="Λ in the logits",
        title=f"HL-Gauss: bounds, N = {s.config.bins}",
    )
    _ticks(axes.yaxis, 1, 2, 5, 10, 20)
    axes.legend(fontsize=LEGEND, loc="upper right")


def _sigma(axes: Axes, s: Study) -> None:
    axes.axhspan(0.0, 1.0, **BROKEN)
    axes.axhline(1.0, **LEVEL)
    _bins(axes, s.hlg.bound_sigma / s.hlg.slope)
    _over_sigma(axes)
    axes.set(ylim=(0.9, 1.8), ylabel="bound / exact Λ", title=cite("Th. sigma"))
    axes.legend(fontsize=LEGEND, loc="upper right")


def _mass(axes: Axes, s: Study) -> None:
    for level in (1.0, 2.0):
        axes.axhline(level, **LEVEL)
    _bins(axes, s.hlg.mass / s.hlg.estimate)
    _over_sigma(axes)
    axes.set(yscale="log", ylabel=f"exact {P_MAX} / estimate", title=cite("Lemma pmax"))
    _ticks(axes.yaxis, 0.1, 1, 2, 10)
    axes.legend(fontsize=LEGEND, loc="lower right")


def _target(axes: Axes, s: Study) -> None:
    row, c = BINS.index(s.config.bins), s.config
    ours = [bounds.hlg_target_slope(sigma, c.rescale) for sigma in SIGMAS]
    bound = s.hlg.bound_sigma[row]
    axes.fill_between(SIGMAS, bound, s.target, where=list(s.target > bound), **BROKEN)
    axes.plot(SIGMAS, bound, **SOURCE)
    axes.plot(SIGMAS, s.target, **EXACT)
    axes.plot(SIGMAS, ours, **OURS)
    axes.plot(c.sigma_agent, s.target_agent, "o", **EXACT)
    axes.annotate(
        f"σ = {c.sigma_agent:g}",
        (c.sigma_agent, s.target_agent),
        (5, 1),
        textcoords="offset points",
        fontsize=LEGEND,
    )
    _over_sigma(axes)
    axes.set(
        yscale="log",
        ylabel="Λ in the target",
        title=f"HL-Gauss: target, logits in ±{c.rescale:g}",
    )


def _over_updates(axes: Axes) -> None:
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.4)
    axes.set(xlim=(0, STEPS[-1]), xlabel="updates")
    _ticks(axes.xaxis, 0, 1, 10, 100)


def _potential(axes: Axes, s: Study) -> None:
    for pairing, t in s.trainings.items():
        axes.plot(STEPS, t.gradient, **PAIRED[pairing], label=LABELS[pairing])
        axes.plot(STEPS, t.product, **PAIRED[pairing], linestyle=SOURCE["linestyle"])
    _over_updates(axes)
    axes.set(yscale="log", ylim=(0.04, 60.0), ylabel="Λ(h)")
    axes.set_title(cite("Th. hlip"))
    axes.legend(fontsize=LEGEND, loc="upper left", ncols=2, handlelength=2.4)


def _dual(axes: Axes, s: Study) -> None:
    axes.axhline(s.emd, **EXACT)
    axes.annotate(
        "EMD",
        (STEPS[-1], s.emd),
        (-2, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=LEGEND,
    )
    for pairing, t in s.trainings.items():
        axes.plot(STEPS, t.dual, **PAIRED[pairing])
        axes.plot(STEPS, t.objective, **PAIRED[pairing], linestyle=DOTTED)
    _over_updates(axes)
    axes.set(
        ylim=(-2.0, s.emd * 1.15),
        ylabel="dual value",
        title=cite("Eq. emdeq"),
    )


def _coin(axes: Axes, _: Study) -> None:
    epsilon = np.linspace(0.0, 1.3, 261)
    exact = np.where(epsilon <= 1.0, bounds.coin_deviation(1, 1), 0.0)
    bound = bounds.concentration_bound(epsilon, 1)
    axes.fill_between(epsilon, bound, exact, where=list(exact > bound), **BROKEN)
    axes.plot(epsilon, bound, **SOURCE)
    axes.plot(epsilon, bounds.two_sided_bound(epsilon, 1), **OURS)
    axes.plot([0.0, 1.0, 1.0, 1.3], [0.5, 0.5, 0.0, 0.0], **EXACT)
    axes.set(
        xlim=(0.0, 1.3),
        ylim=(-0.03, 1.05),
        xlabel="ε",
        ylabel="P($|L_n − L|$ ≥ ε)",
        title=cite("Th. rewloss, n = 1"),
    )


def _coins(axes: Axes, s: Study) -> None:
    grid = np.linspace(0.0, 1.0, 201)
    axes.plot(grid, bounds.concentration_bound(grid, COINS), **SOURCE)
    axes.plot(grid, bounds.two_sided_bound(grid, COINS), **OURS)
    axes.step(s.epsilon, s.coins, where="pre", **EXACT)
    seen = s.uniform > 0
    axes.plot(s.epsilon[seen], s.uniform[seen], "o", **EXACT, markersize=2.2)
    axes.set(
        yscale="log",
        xlim=(0.0, 0.8),
        ylim=(1e-6, 2.0),
        xlabel="ε",
        ylabel="P($|L_n − L|$ ≥ ε)",
        title=cite(f"Th. rewloss, n = {COINS}"),
    )


def _learned(axes: Axes, s: Study) -> None:
    n = np.geomspace(SIZES[0], SIZES[-1], 50)
    once = np.sqrt(np.log(1.0 / CONFIDENCE) / n)  # exp(-eps^2 n) = CONFIDENCE
    mean = s.one_law.mean(axis=1)
    reached = np.interp(np.log(n), np.log(SIZES), mean)
    axes.fill_between(n, once, reached, where=list(reached > once), **BROKEN)
    axes.plot(n, once, **SOURCE)
    axes.plot(n, np.sqrt(np.log(2.0 / CONFIDENCE) / n), **OURS)
    spread = [mean - s.one_law.min(axis=1), s.one_law.max(axis=1) - mean]
    axes.errorbar(SIZES, mean, spread, **EXACT, marker="o", markersize=2.2, capsize=1.5)
    axes.set(
        xscale="log",
        ylim=(0.0, 0.9),
        xlabel="n, samples per side",
        ylabel="$|L_n − L|$",
        title=cite("Th. rewloss, h learned"),
    )
    _ticks(axes.xaxis, *SIZES)


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the figure, which is the same at every scale."""
    return Made(draw(study()))
