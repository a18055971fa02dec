"""The lines that figures of learning curves show, and the remarks above the panels."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from ngt.settings.config import Config, FigureConfig
from ngt.settings.resolve import method_label, method_rate, resolve
from paper.drawing import style
from paper.drawing.labels import labels
from paper.drawing.notes import nth
from paper.drawing.panels import AUC, SCORE, Place, Series
from paper.numbers.curves import AXES
from paper.numbers.scores import final_scores
from paper.numbers.statistics import reference
from paper.register import embeddings, one_method, one_rate
from paper.words import show

# ---------------------------------------------------------------- lines


def methods(config: Config, name: str) -> list[Series]:
    """Return a line per method, with the config's label."""
    plan = one_rate(config, name)
    shown = (*plan.beside, *plan.methods)
    return _by_method(config, plan, {method: method_label(config, method) for method in shown})


def variants(config: Config, name: str) -> list[Series]:
    """Return a line per method, whose label names the settings in which the methods differ."""
    plan = one_rate(config, name)
    return _by_method(config, plan, labels(config, [*plan.beside, *plan.methods], plan.envs))


def _by_method(config: Config, plan: FigureConfig, named: dict[str, str]) -> list[Series]:
    """Return a line per method, with the reference first.

    The reference is the method with which the statistics compare all others. If the figure lacks
    this method, the first method is the reference.

    A line shows runs at the method's fixed subsampling rate or, without one, at the figure's rate.
    """
    looks, (rate,) = style.looks(named), plan.rates
    ours = reference(config)
    found = [
        Series(method, method_rate(config, method) or rate, named[method], looks[method])
        for method in sorted(named, key=lambda method: method != ours)
    ]
    return [found[0]._replace(reference=True), *found[1:]]


def sizes(config: Config, name: str) -> list[Series]:
    """Return a line per method, in order of embedding size. Larger embeddings are darker."""
    size = embeddings(config, name)
    ordered = sorted(variants(config, name), key=lambda one: size[one.method])
    looks = reversed(style.ramp(len(ordered)))
    return [one._replace(look=look) for one, look in zip(ordered, looks, strict=True)]


def rates(config: Config, name: str) -> list[Series]:
    """Return a line per subsampling rate of the figure's single method.

    The more transitions a rate keeps, the darker its line.
    """
    plan = one_method(config, name)
    (method,) = plan.methods
    ordered = sorted(plan.rates)
    return [
        Series(
            method, rate, f"every {nth(rate)} transition" if rate > 1 else "every transition", look
        )
        for rate, look in zip(ordered, style.ramp(len(ordered)), strict=True)
    ]


# ---------------------------------------------------------------- remarks

Remark = tuple[str, str] | None  # the text above a panel and its colour
Kind = tuple[int, str]  # of a pack: its size, and the machine and device that trained it


def spread(place: Place, here: Sequence[tuple[Series, pd.DataFrame]], config: Config) -> Remark:
    """Return the number, mean and spread of a panel's final scores."""
    parts = []
    for one, runs in here:
        scores = final_scores(runs, config.window)["score"]
        if len(scores):
            name = f"{one.label}, " if len(here) > 1 else ""
            mean, low, high = (show(float(x)) for x in (scores.mean(), scores.min(), scores.max()))
            std = show(float(scores.std(ddof=1))) if len(scores) > 1 else "none"
            what = "scores" if place.measure == SCORE else "returns"
            parts.append(
                f"{name}n~=~{len(scores)} final {what}: mean~{mean}, std~{std}, "
                f"min~{low}, max~{high}"
            )
    return ("; ".join(parts), style.GREY) if parts else None


def inverted(place: Place, here: Sequence[tuple[Series, pd.DataFrame]], _: Config) -> Remark:
    """Return the share of evaluations in which the reward's AUC is under 0.5."""
    if place.measure != AUC:
        return None
    if all(runs.empty for _, runs in here):
        return "no AUC was logged", style.GREY
    shares = [(one.label, float((runs["score"] < 0.5).mean())) for one, runs in here if len(runs)]
    parts = [f"{label.replace(' ', '~')} at~{_percent(x)}" for label, x in shares if x > 0]
    if not parts:
        return "the reward's AUC is never under 0.5", style.GREY
    return f"inverted: {'; '.join(parts)} of~evaluations", style.ALERT


def cost(place: Place, here: Sequence[tuple[Series, pd.DataFrame]], config: Config) -> Remark:
    """Return each line's mean milliseconds per run and update, without evaluations.

    A pack is a group of runs that one process trains in lockstep. The time per run depends on the
    pack's size, the machine and the device. A line gets a number only if all its packs have those
    that are most common in the panel; otherwise, it gets a dash.
    """
    known = {one: ends for one, runs in here if len(ends := _timed(runs))}
    if not known:
        return None
    kinds = {one: _kinds(ends) for one, ends in known.items()}
    most = Counter(kinds.values()).most_common(1)[0][0]
    parts = []
    for one, ends in known.items():
        number = "–"
        if kinds[one] == most and len(most) == 1:
            train = resolve(config, place.env, one.method, place.mode, one.rate).train
            steps = (ends["step"] - train.learning_starts).clip(lower=1) / train.num_envs
            per_run = ends["seconds"] / ends["pack"]
            number = f"{1e3 * (per_run / steps).mean() / train.updates_per_step:.1f}"
        parts.append(f"{one.label.replace(' ', '~')}~{number}")
    return f"ms per run and update: {'; '.join(parts)}", style.GREY


def packs(series: Sequence[Series], runs: pd.DataFrame) -> str:
    """Name the packs and machines with which each line's runs were trained, for `cost`."""
    found: dict[tuple[Kind, ...], list[str]] = {}
    for one in series:
        if kinds := _kinds(_timed(runs[runs["method"] == one.method])):
            found.setdefault(kinds, []).append(one.label)
    if not found:
        return ""
    several = len({machine for kinds in found for _, machine in kinds}) > 1

    def said(kind: Kind) -> str:
        return f"{kind[0]} on {kind[1]}" if several else str(kind[0])

    text = "Times include the effect of other work on the machine. "
    text += "Pack: runs that one process trains together. " + " ".join(
        f"In packs of {' or '.join(map(said, kinds))}: {'; '.join(names)}."
        for kinds, names in found.items()
    )
    dash = (
        " Dash: the packs' size or machine is not the same as that of most others, so times are "
        "not comparable."
    )
    return text + dash * (len(found) > 1)


def _timed(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the last row of each run whose time and pack are known."""
    last = runs.sort_values("step").groupby(AXES, observed=True).tail(1)
    return last.dropna(subset=["seconds", "pack"])


def _kinds(ends: pd.DataFrame) -> tuple[Kind, ...]:
    """Return the different kinds of packs."""
    pairs = zip(ends["pack"], ends["machine"], strict=True)
    return tuple(sorted({(int(size), str(machine)) for size, machine in pairs}))


def _percent(share: float) -> str:
    """Return a positive share as a whole percentage, never as 0%."""
    return f"{share:.0%}" if share >= 0.005 else "under~1%"
