"""Tables that the LaTeX report alone shows: the methods, and what is known of the runs."""

from __future__ import annotations

from collections.abc import Iterator

from ngt.errors import UserError
from ngt.runs.table import Runs
from ngt.settings import resolve as resolving
from ngt.settings.config import Config
from paper.document import runs as report_runs
from paper.drawing.table import Cell, Column, Table
from paper.handbook import methods

MAIN = "main_figure"


def asides(config: Config, runs: Runs) -> dict[str, Table]:
    """All of them that have rows, by the names that main.tex knows them by."""
    found = {
        "methods": of_methods(config),
        "glance": glance(config, runs),
        "counts": report_runs.counts(config, runs.statuses),
        "sources": report_runs.sources(runs.records),
        "machines": report_runs.machines(runs.records),
        "times": report_runs.times(config, runs.records),
    }
    return {name: table for name, table in found.items() if table.rows}


def of_methods(config: Config) -> Table:
    """What each method learns and rewards, from its own docstring."""
    columns = {
        "method": Column("method", width=0.1),
        "what": Column("what it is", width=0.3),
        "learned": Column("learned", width=0.08),
        "formed": Column("reward formed", width=0.12),
        "reward": Column("reward", width=0.33),
    }
    note = "Equations, deviations and their reasons, and sources: docs/methods.md."
    return Table("The methods", columns, list(_methods(config)), [note])


def _methods(config: Config) -> Iterator[dict[str, Cell]]:
    plan = config.figures.get(MAIN)
    for name in plan.methods if plan else resolving.distinct_methods(config):
        model = resolving.load_model(resolving.model_params(config, name, "")[0], name)
        facts = methods.facts(config, name, model)
        try:
            text = methods.text_of(model)
            what, reward = text.summary, text.labelled["Reward"]
        except UserError:  # a method of the user's own owes no such docstring
            what, reward = (model.__doc__ or "").partition("\n")[0], None
        yield {
            "method": resolving.method_label(config, name),
            "what": what.rstrip(".") or None,
            "learned": facts["learned"],
            "formed": facts["reward formed"],
            "reward": reward and reward.rstrip("."),
        }


def glance(config: Config, runs: Runs) -> Table:
    """The runs in a few lines."""
    columns = {
        "what": Column("of the runs", width=0.12),
        "known": Column("what is known", width=0.84),
    }
    rows = [{"what": name, "known": text} for name, text, _ in report_runs.facts(config, runs)]
    return Table("The runs at a glance", columns, rows)
