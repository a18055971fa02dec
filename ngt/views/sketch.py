"""Learning curves as text. Each curve is a line of characters, one per block of training steps."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from ngt.views.progress import Progress, Started, curve_of

BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-:=+*#"  # characters for values from low to high
NARROWEST, WIDEST = 10, 60  # limits on the number of characters of a curve

Curve = dict[int, float]  # step -> mean return or score


class Line(NamedTuple):
    """A curve, with facts on the runs that it averages."""

    name: str
    begun: int  # number of runs that have begun
    runs: int  # number of all runs of the curve
    share: float  # fraction of all runs' training steps that are done
    curve: Curve  # at each step, the mean over the runs that have reached it
    last: float  # mean over the runs of the last evaluation's value
    steps: int
    over: bool


class Block(NamedTuple):
    """The curves of an env, and the values that the lowest and the highest character stand for."""

    env: str
    low: float
    high: float
    scored: bool
    lines: list[Line]


def draw(
    progress: Progress, begun: Sequence[Started], head: str, width: int, height: int | None
) -> list[str]:
    """Return lines of text: a summary, then each env's curves, first those in training.

    height: the maximum number of lines, or None for any number.
    """
    made = [block(progress, env, begun) for env in dict.fromkeys(run.env for run in begun)]
    made.sort(key=lambda b: all(line.over for line in b.lines))
    text = [f"{time.strftime('%H:%M:%S')}  {head}"]
    for b in made:
        text += show(b, width)
    if height is not None and len(text) > height:
        more = f"... {len(text) - height + 1} more lines; enlarge the terminal or choose --figure"
        text = [*text[: height - 1], more]
    return [line[:width] for line in text]


def block(progress: Progress, env: str, begun: Sequence[Started]) -> Block:
    """Return an env's curves: of scores if returns can be normalised, otherwise of returns."""
    reference = progress.reference(env)
    low, high = reference or (0.0, 1.0)
    total = Counter(curve_of(key) for key in progress.keys if key.env == env)
    groups: dict[str, list[Started]] = {}
    for run in begun:
        if run.env == env:
            groups.setdefault(run.curve, []).append(run)
    lines = []
    for name, runs in groups.items():
        rows = [progress.evaluations(run) for run in runs]
        scaled = [
            {
                step: (row["return"] - low) / (high - low)
                for step, row in some.items()
                if math.isfinite(row["return"])
            }
            for some in rows
        ]
        lines.append(line(name, max(1, total[name]), runs, scaled))
    lines.sort(key=lambda item: item.over)
    if reference:
        return Block(env, 0.0, 1.0, True, lines)
    values = [value for item in lines for value in item.curve.values()]
    return Block(env, min(values, default=0.0), max(values, default=1.0), False, lines)


def line(name: str, total: int, runs: Sequence[Started], curves: Sequence[Curve]) -> Line:
    """Return the line of a curve, given the curve of each of its runs."""
    steps = max(run.steps for run in runs)
    done = [
        1.0 if run.complete else max(curve, default=0) / run.steps
        for run, curve in zip(runs, curves, strict=True)
    ]
    reached = sorted({step for curve in curves for step in curve})
    mean = {step: fmean(curve[step] for curve in curves if step in curve) for step in reached}
    ends = [curve[max(curve)] for curve in curves if curve]
    over = len(runs) == total and all(run.complete for run in runs)
    last = fmean(ends) if ends else math.nan
    return Line(name, len(runs), total, sum(done) / total, mean, last, steps, over)


def show(block: Block, width: int) -> list[str]:
    """Return the lines of text for an env."""
    marks = BLOCKS if encodable(BLOCKS) else ASCII
    names = max(len(item.name) for item in block.lines)
    counts = max(len(f"{item.begun}/{item.runs}") for item in block.lines)
    space = max(NARROWEST, min(WIDEST, width - names - counts - 24))
    scale = f"return ({block.low:.5g} to {block.high:.5g})"
    if block.scored:
        scale = "score (0 = random policy, 1 = expert)"
    text = [f"{block.env}: mean {scale}"]
    for item in block.lines:
        curve = spark(item.curve, item.steps, block.low, block.high, space, marks)
        last = "" if math.isnan(item.last) else f"{item.last:.{3 if block.scored else 5}g}"
        runs = f"{item.begun}/{item.runs}"
        text.append(
            f"  {item.name:<{names}}  {runs:>{counts}}  {item.share:4.0%} |{curve}| {last}".rstrip()
        )
    return text


def encodable(text: str) -> bool:
    """Return True if the standard output can show all characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def spark(
    curve: Mapping[int, float], steps: int, low: float, high: float, width: int, marks: str
) -> str:
    """Return a curve as `width` characters, each for an equal number of training steps.

    A character shows the last evaluation up to the end of its steps. For steps that training has
    not reached yet, it is blank.
    """
    text, span = "", high - low or 1.0
    for i in range(width):
        known = [step for step in curve if step * width <= (i + 1) * steps]
        if not known or max(curve) * width <= i * steps:
            text += " "
        else:
            level = (curve[max(known)] - low) / span * len(marks)
            text += marks[min(len(marks) - 1, max(0, math.floor(level)))]
    return text
