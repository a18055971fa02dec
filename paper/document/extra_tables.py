"""Tables of the LaTeX report besides the artefacts: the methods, and facts about the runs."""

from collections.abc import Iterator

from ngt.errors import UserError
from ngt.runs.table import Runs
from ngt.settings import resolve
from ngt.settings.config import Config
from paper.document import runs as report_runs
from paper.drawing.table import Cell, Column, Table
from paper.handbook import methods

MAIN = "main_figure"


def extra_tables(config: Config, runs: Runs) -> dict[str, Table]:
    """Return the tables, by the names that main.tex uses. Tables without rows are left out."""
    found = {"methods": methods_table(config), "glance": glance_table(config, runs)}
    found |= report_runs.tables(config, runs)
    found.pop("incomplete", None)  # may fill many pages; only the web report has this table
    return found


def methods_table(config: Config) -> Table:
    """Return a table of what each method learns and what its reward is, from the docstrings."""
    columns = {
        "method": Column("method", width=0.1),
        "what": Column("what it is", width=0.3),
        "learned": Column("learned", width=0.08),
        "formed": Column("reward formed", width=0.12),
        "reward": Column("reward", width=0.33),
    }
    note = "docs/methods.md has equations, sources, and deviations with their reasons."
    return Table("The methods", columns, list(_methods(config)), [note])


def _methods(config: Config) -> Iterator[dict[str, Cell]]:
    plan = config.figures.get(MAIN)
    for name in plan.methods if plan else resolve.distinct_methods(config):
        model = resolve.load_model(resolve.model_params(config, name, "")[0], name)
        facts = methods.facts(config, name, model)
        try:
            text = methods.text_of(model)
            what, reward = text.summary, text.labelled["Reward"]
        except UserError:  # a method that a user added may have a docstring without these parts
            what, reward = (model.__doc__ or "").partition("\n")[0], None
        yield {
            "method": resolve.method_label(config, name),
            "what": what.rstrip(".") or None,
            "learned": facts["learned"],
            "formed": facts["reward formed"],
            "reward": reward and reward.rstrip("."),
        }


def glance_table(config: Config, runs: Runs) -> Table:
    """Return a table of facts about the runs, one fact per row."""
    columns = {
        "what": Column("fact", width=0.12),
        "known": Column("value", width=0.84),
    }
    facts = report_runs.facts(config, runs)
    rows: list[dict[str, Cell]] = [{"what": fact.name, "known": fact.text} for fact in facts]
    return Table("The runs at a glance", columns, rows)
