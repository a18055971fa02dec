"""The text of a figure of learning curves: its legend, its reading guide and its warnings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ngt.runs.keys import RunKey
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config, FigureConfig
from ngt.settings.resolve import method_label
from paper.drawing import panels
from paper.drawing.panels import AUC, BANDS, RETURN, SCORE, Cut, Measure, Panel, Series
from paper.drawing.style import Note
from paper.numbers import curves, statistics, variants
from paper.words import ABSENT, listed, show

MEANING = {  # how to read the y axis
    SCORE: "0 is the return of a random policy, 1 the expert's.",
    RETURN: "Return: the env's own reward, summed over an episode and not normalised.",
    AUC: (
        "AUC: how often, in the batches of the last update, an expert's transition has a higher "
        "reward than one of the agent's (ties: one half); under 0.5 the reward is inverted."
    ),
}


def handles(
    config: Config, series: Iterable[Series], env: str, measures: Collection[Measure], crosses: bool
) -> list[Artist]:
    """Return the legend's entries for lines, reference returns and diverged runs.

    crosses: True if the figure has crosses, which mark diverged runs.
    """
    out: list[Artist] = []
    for one in series:
        look: dict[str, Any] = {**one.look.line, "marker": one.look.marker}
        out.append(Line2D([], [], **look, linewidth=one.width, label=one.label))
    lines: list[tuple[str, dict[str, Any]]] = []
    if {SCORE, RETURN} & set(measures):
        lines += [("expert", panels.EXPERT), ("random", panels.RANDOM)]
    if AUC in measures:
        lines.append(("AUC 0.5: no better than chance", panels.EVEN))
    out += [Line2D([], [], **style, label=label) for label, style in lines]
    if AUC in measures:
        out.append(Patch(**panels.INVERTED, label="inverted reward"))
    if crosses:
        out.append(Line2D([], [], **panels.DIVERGED, **panels.CROSS, label="diverged run"))
    return out


def reading(
    config: Config,
    series: Sequence[Series],
    env: str,
    seeds: Iterable[int],
    measures: Iterable[Measure],
    *,
    plan: FigureConfig,
    of: Sequence[str] = (),
    each: bool = False,
) -> Note:
    """Return a note that explains how to read lines and bands, and gives the number of seeds.

    of: texts on what all panels have in common.
    each: True if each thin line shows a single seed.
    """
    window, counts = config.window, sorted(set(seeds))
    n = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0] if counts else 0)
    word = "seed" if n == "1" else "seeds"
    flat = [one for one in series if curves.offline(config, one.method, env)]
    text = [
        ", ".join([f"Scale {config.scale}", *of, f"n~=~{n.replace(' ', '~')} {word} per curve."]),
        *(MEANING[measure] for measure in measures),
        _kept(config, series),
    ]
    if some := _elsewhere(plan, series):
        text.append(some)
    text += _repeats(config, plan, series)
    crowded = len(series) > BANDS
    ours = next((one.label for one in series if one.reference), "")
    if len(flat) < len(series):
        text.append(_lines(window, each, crowded, ours))
    if flat:
        names = ", ".join(one.label for one in flat)
        mean = f"mean over its last {window} evaluations" if window > 1 else "last evaluation"
        text.append(
            f"Horizontal line ({names}: no env steps): each run's {mean}, averaged over seeds."
        )
    if crowded and not ours:
        text.append("There are no bands, because they would hide the lines.")
    elif counts and counts[-1] > 1:
        alone = "; no band if n~=~1" if counts[0] == 1 else ""
        of_one = f" ({ours} only)" * crowded
        text.append(
            f"Band{of_one}: mean~±~1 standard deviation over seeds (sample, n~−~1) of the values "
            f"that the line averages{alone}."
        )
    else:
        text.append("One seed has no standard deviation, so there is no band.")
    return Note(" ".join(text).replace("~", "\u00a0"))  # a no-break space


def _lines(window: int, each: bool, crowded: bool, ours: str) -> str:
    """Explain the lines of methods that have a learning curve. ours: the label of the reference."""
    whose = f" ({ours} only)" * crowded
    one = "run's evaluations"
    if window > 1:
        one = f"run's running mean over {window} evaluations (fewer at the start)"
    if each:
        last = f"mean over its last {window} evaluations" if window > 1 else "last evaluation"
        text = f"Thin lines{whose}: each {one}; strong line: their mean over seeds."
        return f"{text} Final score: a run's {last}."
    if window > 1 and not crowded:
        return (
            f"Strong line: each {one}, averaged over seeds; "
            f"thin line: the evaluations themselves, averaged."
        )
    return f"Line: each {one}, averaged over seeds."


def _kept(config: Config, series: Sequence[Series]) -> str:
    """Say which transitions of a demonstration the methods receive."""
    rates = [one.rate for one in series]
    if len({one.method for one in series}) == 1 and len(rates) > 1:
        name = method_label(config, series[0].method)
        return (
            f"All lines are {name}; the legend says which transitions of a demonstration are kept."
        )
    most = max(rates, key=rates.count)
    others = [f"{one.label}: every {nth(one.rate)}" for one in series if one.rate != most]
    text = f"Every {nth(most)} transition of a demonstration is kept"
    return text + (f" ({'; '.join(others)})." if others else ".")


def _elsewhere(plan: FigureConfig, series: Iterable[Series]) -> str:
    """Say which methods run on some of the figure's envs only, or return an empty text."""
    found: dict[tuple[str, ...], list[str]] = {}
    for one in series:
        found.setdefault(tuple(plan.envs_of(one.method)), []).append(one.label)
    return " ".join(
        f"Only on {listed(envs)}: {'; '.join(labels)}."
        for envs, labels in found.items()
        if len(envs) < len(plan.envs)
    )


def _repeats(config: Config, plan: FigureConfig, series: Sequence[Series]) -> Iterator[str]:
    """Say which variants have the settings of their base method, which the figure does not show."""
    for one in series:
        base, envs = config.methods[one.method].like, plan.envs_of(one.method)
        if not base or any(other.method == base for other in series):
            continue
        if not variants.differences(config, base, one.method, envs):
            yield (
                f"{one.label} repeats {method_label(config, base)} with other random numbers; "
                f"their settings are the same here."
            )


def nth(n: int) -> str:
    """Return the word that follows "every", such as one, 2nd or 10th."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10 if n % 100 not in (11, 12, 13) else 0, "th")
    return "one" if n == 1 else f"{n}{ending}"


def lacking(
    panel: Panel,
    series: Sequence[Series],
    seeds: Collection[int],
    title: str,
    keys: Iterable[RunKey],
) -> str | None:
    """Return a text that names the runs among `keys` that belong to a panel, or None if none does.

    title: the words at the start of the text.
    series: the lines whose methods run on the panel's env.
    """
    here = [key for key in keys if panel.place.holds(key)]
    if len(here) == len(series) * len(seeds):
        return f"{title}: all runs"
    parts = []
    for one in series:
        gone = sorted(k.seed for k in here if (k.method, k.rate) == (one.method, one.rate))
        text = one.label
        if gone and len(gone) < len(seeds):
            text += f" seed{'s' * (len(gone) > 1)} {', '.join(map(str, gone))}"
        parts += [text.replace(" ", "\u00a0")] * bool(gone)
    return f"{title}: {'; '.join(parts)}" if parts else None


def warnings(
    runs: pd.DataFrame,
    total: int,
    silent: Sequence[RunKey],
    cut: Sequence[Cut],
    absent: Sequence[RunKey],
    bare: Sequence[str] = (),
    lack: str = ABSENT["trained"],
) -> list[Note]:
    """Return notes on envs without scores, diverged runs, values beyond the axes and missing runs.

    total: the number of runs that the figure should show.
    silent: diverged runs without an evaluation.
    cut: values beyond the axes.
    absent: the keys of missing runs.
    bare: envs and numbers of demonstrations that have no panels, since all of their runs are
    missing.
    lack: the word for missing runs, from ABSENT.
    """
    notes = []
    if unscored_envs(runs):
        text = " ".join(statistics.unscored(runs))
        notes.append(Note(f"{text} Panels there show returns.", alert=True))
    rows = runs.loc[runs["status"] == "diverged", curves.AXES].drop_duplicates()
    known = {RunKey(*row) for row in rows.itertuples(index=False, name=None)}
    diverged = len(known.union(silent))
    if diverged:
        counts = "counts" if len(silent) == 1 else "count"
        early = f"; {len(silent)} of them had no evaluation yet and {counts} as a random policy"
        notes.append(
            Note(
                f"×: {diverged} of {total} runs diverged; after that, a run counts "
                f"with its last value{early * bool(silent)}."
            )
        )
    if cut:
        notes.append(Note(f"↓ ↑: cut. {' '.join(_reach(cut))}"))
    if absent:
        text = f"PARTIAL: {len(absent)} of {total} runs are {lack}; see the texts above the panels."
        if bare:
            text += f" Without any run, and so without panels: {', '.join(bare)}."
        notes.append(Note(text, alert=True))
    return notes


def _reach(cut: Sequence[Cut]) -> Iterator[str]:
    """Yield a sentence for each unit of the y axes that says how far the data reach."""
    groups: dict[tuple[Measure, str], list[Cut]] = {}
    for one in cut:
        env = one.place.env if one.place.measure == RETURN else ""
        groups.setdefault((one.place.measure, env), []).append(one)
    for (measure, env), cuts in groups.items():
        number = "{:,.0f}" if measure == RETURN else "{:.2g}"
        below, above = ([c.value for c in cuts if c.above == side] for side in (False, True))
        ends = [*([min(below)] if below else []), *([max(above)] if above else [])]
        reach = " and ".join(show(float(x), number) for x in ends)
        if measure == RETURN:
            yield f"The returns on {env} reach {reach}."
        else:
            low, high = (show(x, "{:g}") for x in panels.LIMIT)
            yield (
                f"The axes end at {low} and {high} (random 0, expert 1); the data reach {reach}."
            )
