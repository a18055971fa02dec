"""A figure of each expert's learning curve, i.e. the return of the env's own reward over training.

The experts are the policies whose episodes the other methods imitate.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.runs.keys import Layout
from ngt.runs.published import Published, expert_name
from ngt.runs.table import source
from ngt.settings.config import Config
from ngt.settings.resolve import resolve_expert
from paper.command import Made, Options
from paper.drawing import style
from paper.drawing.panels import EXPERT
from paper.numbers import curves
from paper.register import FIGURES
from paper.words import ABSENT


class Expert(NamedTuple):
    """An expert's evaluations and the content of its run.json."""

    env: str
    evaluations: pd.DataFrame
    record: dict[str, Any]


def read(config: Config, layout: Layout, *, other_settings: bool = False) -> list[Expert]:
    """Read the experts of the main figure's envs. Raise UserError if an expert is not trained.

    If the config uses published records, leave out experts that are not among them.
    """
    records = source(layout, config, other_settings=other_settings)
    experts = []
    for env in FIGURES["expert_figure"].experts_of(config):
        if isinstance(records, Published) and expert_name(env) not in records.manifest["runs"]:
            continue
        record, evaluations = records.read_expert(env)
        if evaluations.empty:
            raise UserError(
                f"expert {env}: diverged at step {record.get('step')}, before its first "
                f"evaluation; there is nothing to draw"
            )
        experts.append(Expert(env, evaluations, record))
    return experts


@style.context()
def draw(experts: Sequence[Expert], config: Config) -> Figure:
    """Draw one panel per env: evaluations, their ranges, the kept policy, the published return."""
    if not experts:
        raise UserError(
            "figures.main_figure: no env has demonstrations by an expert of this suite, so "
            "there is no expert to draw"
        )
    columns = min(3, len(experts))
    lines = -(-len(experts) // columns)
    figure = style.new_figure(style.TEXT_WIDTH * (1 if columns > 1 else 0.6), 2.1 * lines)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    look = style.LOOKS["ngt"]
    published = {expert.env: get_task(expert.env).published_expert for expert in experts}
    for axes, expert in zip(panels, experts, strict=False):
        rows = expert.evaluations
        last = rows.iloc[-1]
        unit, sign = curves.unit(float(last["step"]))
        x = rows["step"] / unit
        axes.fill_between(x, rows["low"], rows["high"], color=look.color, alpha=0.2, linewidth=0)
        axes.plot(x, rows["return"], color=look.color)
        kept = expert.record.get("kept", last)
        axes.plot(kept["step"] / unit, kept["return"], color=style.ALERT, marker="o")
        if (theirs := published[expert.env]) is not None:
            axes.axhline(theirs, **EXPERT)
        axes.set(title=expert.env, xlabel=f"env steps{sign}", ylabel="return", xlim=(0, None))
    if len(experts) > 1:
        style.letters(panels[: len(experts)])
    for axes in panels[len(experts) :]:
        axes.set_axis_off()
    handles = [
        Line2D([], [], color=look.color, label="mean of an evaluation"),
        Patch(color=look.color, alpha=0.2, label="worst to best episode"),
        Line2D([], [], color=style.ALERT, marker="o", linestyle="none", label="policy kept"),
    ]
    if any(theirs is not None for theirs in published.values()):
        handles.append(Line2D([], [], **EXPERT, label="published with the authors' code"))
    episodes = "/".join(sorted({str(n) for e in experts for n in e.evaluations["episodes"]}))
    note = (
        f"Scale {config.scale}, one seed per env, {episodes} deterministic episodes per "
        f"evaluation. {which_policy(config, [expert.env for expert in experts])}"
    )
    notes, drawn = [style.Note(note)], {expert.env for expert in experts}
    if gone := [e for e in FIGURES["expert_figure"].experts_of(config) if e not in drawn]:
        text = f"PARTIAL: {ABSENT[config.records]}: {', '.join(gone)}."
        notes.append(style.Note(text, alert=True))
    style.footer(figure, handles, notes)
    return figure


def which_policy(config: Config, envs: Sequence[str]) -> str:
    """Return a sentence that says which policy of each env's training is kept."""
    best = [env for env in envs if resolve_expert(config, env).train.keep == "best"]
    if not best:
        return "The last policy is kept."
    if len(best) == len(envs):
        return "The policy with the best evaluation is kept, so its return is optimistic."
    return (
        f"The policy with the best evaluation is kept on {', '.join(best)}, where its return is "
        f"optimistic; elsewhere, the last policy is kept."
    )


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the experts of the scale and draw them."""
    return Made(draw(read(config, layout, other_settings=options.other_settings), config))
