"""Tables of the LaTeX report besides the artefacts: methods, settings, and facts about the runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ngt.errors import UserError
from ngt.runs.table import Runs
from ngt.settings import resolve
from ngt.settings.config import Config
from paper import register
from paper.claims.stated import BACKBONE, EXPERT
from paper.document import rewards
from paper.document import runs as report_runs
from paper.drawing.table import Cell, Column, Table
from paper.drawing.tex import escape
from paper.handbook import methods
from paper.numbers import variants
from paper.tables.settings import main_methods
from paper.words import listed

MAIN = "main_figure"

# The two parts of the table of settings: the columns of each, and their widths in relation to each
# other. A variant, and a method beyond the paper, has no printed value.
SETTINGS = "hyperparameter_table"
PARTS = {
    SETTINGS: {
        **{"method": 0.0, "like": 0.0, "setting": 0.15, "envs": 0.13, "printed": 0.13},
        **{"code": 0.16, "value": 0.11, "at_paper": 0.1, "agrees": 0.11, "meaning": 0.27},
    },
    "variant_settings": {
        **{"method": 0.17, "like": 0.1, "setting": 0.17, "envs": 0.14, "value": 0.17},
        **{"at_paper": 0.1, "meaning": 0.4},
    },
}
GAP = 8 / 488  # the space between two columns as a share of the line


def extra_tables(config: Config, runs: Runs) -> dict[str, Table]:
    """Return the tables, by the names that main.tex uses. Tables without rows are left out."""
    found = {"methods": methods_table(config), "glance": glance_table(config, runs)}
    found |= report_runs.tables(config, runs)
    found.pop("incomplete", None)  # may fill many pages; only the web report has this table
    return found


def methods_table(config: Config) -> Table:
    """Return a table of what each method learns and what its reward is.

    A method that has the class of an earlier one is described by the settings that differ.
    """
    columns = {
        "method": Column("method", width=0.11),
        "what": Column("what it is", width=0.31),
        "learned": Column("learned", width=0.08),
        "formed": Column("reward formed", width=0.11),
        "reward": Column("reward", width=0.32, latex=True),
    }
    note = "docs/methods.md has equations, sources, and deviations with their reasons."
    return Table("The methods", columns, list(_methods(config)), [note])


def _methods(config: Config) -> Iterator[dict[str, Cell]]:
    plan = config.figures.get(MAIN)
    before: dict[str, str] = {}  # the first method with each class
    for name in plan.methods if plan else resolve.distinct_methods(config):
        path, params = resolve.model_params(config, name, "")
        model = resolve.load_model(path, name)
        facts = methods.facts(config, name, model)
        try:
            text = methods.text_of(model)
            what, reward = text.summary, escape(text.labelled["Reward"])
        except UserError:  # a method that a user added may have a docstring without these parts
            what, reward = (model.__doc__ or "").partition("\n")[0], None
        first = before.setdefault(path, name)
        yield {
            "method": resolve.method_label(config, name),
            "what": _variant(config, first, name) if first != name else what.rstrip(".") or None,
            "learned": facts["learned"],
            "formed": facts["reward formed"],
            "reward": rewards.formula(path, params) or (reward and reward.rstrip(".")),
        }


def _variant(config: Config, first: str, name: str) -> str:
    """Return how a method differs from an earlier one with the same class."""
    changed = dict.fromkeys(
        (row.name.removeprefix("params."), *row.values)
        for row in variants.differences(config, first, name, register.envs(config))
    )
    parts = [f"{setting} {there} instead of {here}" for setting, here, there in changed]
    label = resolve.method_label(config, first)
    return f"as {label}, but with {listed(parts)}" if parts else f"as {label}"


def glance_table(config: Config, runs: Runs) -> Table:
    """Return a table of facts about the runs, one fact per row."""
    columns = {
        "what": Column("fact", width=0.12),
        "known": Column("value", width=0.84),
    }
    facts = report_runs.facts(config, runs)
    rows: list[dict[str, Cell]] = [{"what": fact.name, "known": fact.text} for fact in facts]
    return Table("The runs at a glance", columns, rows)


def settings_tables(table: Table) -> dict[str, Table]:
    """Split the table of settings into two parts, which take fewer pages than the whole.

    The first part has the backbone, the expert and the paper's methods; the second part has all
    other methods. Columns that say nothing in a part are left out of it.
    """
    known = {BACKBONE, EXPERT, *main_methods()}
    first, second = (
        [row for row in table.rows if (row["method"] in known) is inside]
        for inside in (True, False)
    )
    named = [
        {**row, "method": "", "like": ""} if row["method"] == before["method"] else dict(row)
        for before, row in zip([{"method": None}, *second], second, strict=False)
    ]
    caption = f"{table.caption} of variants, and of methods beyond the paper"
    parts = {
        SETTINGS: _part(table, SETTINGS, first, table.notes),
        "variant_settings": replace(_part(table, "variant_settings", named), caption=caption),
    }
    return {name: part for name, part in parts.items() if part.rows}


def _part(
    table: Table, name: str, rows: Sequence[Mapping[str, Cell]], notes: Sequence[str] = ()
) -> Table:
    """Return a part of the table of settings that is as wide as the line."""
    told = {key: {row[key] for row in rows} - {None, "all"} for key in table.columns}
    widths = {key: width for key, width in PARTS[name].items() if told.get(key)}
    wide = [width for width in widths.values() if width]
    share = (1 - GAP * (len(wide) - 1)) / sum(wide)
    columns = {
        key: replace(table.columns[key], width=round(width * share, 4) or None, group=not width)
        for key, width in widths.items()
    }
    return replace(
        table,
        columns=columns,
        rows=[{key: row[key] for key in columns} for row in rows],
        notes=notes,
    )
