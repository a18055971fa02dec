"""A scale's figures, tables and runs as one web page that needs no network.

A scale is a config in workflow/config/. An artefact is a figure or a table of a scale's results.
Published records are results that ship with the suite.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ngt.errors import UserError
from ngt.files import read_json
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import Runs, read_keys
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper import command
from paper.document import curves as report_curves
from paper.document import findings, pictures
from paper.document import runs as report_runs
from paper.drawing import caption, stamps, style
from paper.drawing import table as tables
from paper.drawing.panels import BANDS
from paper.drawing.table import Cell, Table
from paper.register import (
    AGENTS,
    ARTEFACTS,
    CURVES,
    FIGURES,
    MAIN,
    REPORT,
    TABLES,
    VIDEOS,
    Artefact,
    envs,
)

LIMIT = 4_500_000  # bytes without videos, so that the page can be mailed and opens quickly
LIMIT_OF_VIDEOS = 4_000_000  # bytes of all videos
PAGE = Path(__file__).with_name("page")
TEMPLATES = Environment(
    loader=FileSystemLoader(PAGE),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

FIRST = (*MAIN, "claims_table")  # the artefacts at the start of the page
UNPUBLISHED = "none of its runs is published"
FORMS = {"pdf": "PDF", "png": "PNG", "csv": "CSV", "tex": "LaTeX", "json": "JSON"}

# The CSS class of a verdict's table cell; the page shows a mark for each class.
VERDICTS = {
    "reproduced": "good",
    "holds": "good",
    "not reproduced": "bad",
    "false": "bad",
    "partly": "mixed",
    "exceeds": "mixed",
    "loose": "mixed",
}


@dataclass(frozen=True)
class Item:
    """A figure or a table in the page.

    files: the form of each of the artefact's files, such as PDF, and its path relative to the page.
    about: a description of the figure for readers who cannot see it.
    gap: the reason why the artefact is missing, or empty if the artefact exists.
    command: the command that makes a missing artefact.
    """

    artefact: Artefact
    files: tuple[tuple[str, str], ...]
    about: str = ""
    caption: str = ""
    table: Table | None = None
    gap: str = ""
    command: str = ""

    @property
    def anchor(self) -> str:
        """Return the name of the artefact's anchor in the page."""
        return self.artefact.name


def target(config: Config, artefact: Artefact) -> str:
    """Return the command that makes an artefact."""
    ending = "pdf" if artefact.name in FIGURES else "csv"
    file = f"{Layout.of(config).home}/{artefact.name}.{ending}"
    choice = f" --config scale={config.scale}" * (config.scale != Config.scale)
    if config.study:  # the report does not know the name of the study's file
        return f"snakemake --cores all --configfile YOUR.yaml{choice} -- {file}"
    return f"snakemake --cores all {file}{choice}"


def items(
    config: Config, layout: Layout, out: Path, *, allow_partial: bool, picture: str = "png"
) -> list[Item]:
    """Return every figure and table of the scale.

    Raise UserError if a file is missing, unless `allow_partial` is True.

    picture: the file type of figures, png or pdf.
    """
    drawn = {artefact.name for artefact in stamps.drawable(config, layout)}
    return [
        _item(artefact, kind, config, layout, out, allow_partial)
        if artefact.name in drawn
        else Item(artefact, (), gap=UNPUBLISHED, command=target(config, artefact))
        for kind, artefacts in ((picture, FIGURES), ("json", TABLES))
        for artefact in artefacts.values()
        if artefact.at(config)
    ]


def _item(
    artefact: Artefact, kind: str, config: Config, layout: Layout, out: Path, allow_partial: bool
) -> Item:
    file = layout.home / f"{artefact.name}.{kind}"
    if not file.exists():
        why, command = f"{file} is missing", target(config, artefact)
        if not allow_partial:
            raise UserError(
                f"{why}; make it with `{command}`, or show the gap with --allow-partial"
            )
        return Item(artefact, (), gap=why, command=command)
    if (artefact.runs or artefact.everything) and not of_scale(file, config.scale):
        raise UserError(
            f"{file}: not of scale {config.scale}; make it again with `{target(config, artefact)}`"
        )
    endings = ("csv", "tex", "json") if kind == "json" else ("pdf", "png")
    paths = [(end, file.with_suffix(f".{end}")) for end in endings]
    files = tuple(
        (FORMS[end], os.path.relpath(path, out.parent)) for end, path in paths if path.exists()
    )
    if kind != "json":
        words, short = about(config, artefact)
        return Item(artefact, files, words, caption.read(file) or short)
    try:
        table = tables.from_json(file.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file}: not a table ({error}); make it again with `{target(config, artefact)}`"
        ) from None
    return Item(artefact, files, table=table)


def of_scale(file: Path, scale: str) -> bool:
    """Return True if the file of a figure or table says that its runs are of this scale."""
    if file.suffix == ".json":
        data = read_json(file)
        return not (isinstance(data, dict) and "rows" in data) or data.get("scale") == scale
    return style.made_of(scale).encode() in file.read_bytes()


def about(config: Config, artefact: Artefact) -> tuple[str, str]:
    """Return a figure's description, and a caption to use if the figure has no caption file."""
    names = [name for name in artefact.shown(config) if not artefact.experts]
    plans = [config.figures[name] for name in names]

    def join(axis: str) -> str:
        return ", ".join(dict.fromkeys(str(v) for plan in plans for v in getattr(plan, axis)))

    text, short = f"{artefact.title}.", artefact.title
    if names:
        methods = [m for plan in plans for m in (*plan.methods, *plan.beside)]
        labels = ", ".join(dict.fromkeys(method_label(config, m) for m in methods))
        what = "Learning curves" if artefact.name in CURVES else "Drawn from runs"
        text += f" {what} of {labels} on {join('envs')}; demonstrations: {join('demos')}."
        short += f": {len(run_table(config, names, beside=True))} runs of scale {config.scale}"
    return text, f"{short}."


def verdict_column(table: Table) -> str | None:
    """Return the key of the column of verdicts, or None if the table has none."""
    return next((k for k, c in table.columns.items() if c.head.lower() == "verdict"), None)


def verdicts(found: Sequence[Item]) -> Iterator[tuple[Item, str]]:
    """Yield each table of verdicts, with a text that counts them, such as "2 reproduced"."""
    for item in found:
        column = None if item.table is None else verdict_column(item.table)
        if item.table is not None and column is not None:
            tally = Counter(str(row[column]) for row in item.table.rows)
            yield item, ", ".join(f"{n} {word}" for word, n in tally.most_common())


def _rows(found: Sequence[Item], name: str) -> Sequence[Mapping[str, Cell]]:
    """Return the rows of a table, or none if the table is missing or lacks a column."""
    tables = (item.table for item in found if item.anchor == name and item.table is not None)
    return next((t.rows for t in tables if findings.COLUMNS[name] <= set(t.columns)), ())


def redraw(config: Config) -> str:
    """Return the command that draws the main figure again."""
    if config.study:
        return target(config, ARTEFACTS["main_figure"])
    chosen = [f"SCALE={config.scale}"] * (config.scale != Config.scale)
    chosen += ["RECORDS=published"] * (config.records == "published")
    return " ".join(["make figure", *chosen])


def title(config: Config) -> str:
    """Return the page's title, which names the study if the config has one."""
    of = f"Study {config.study}" if config.study else "Noise-Guided Transport"
    return f"{of}: the runs of scale {config.scale}"


def _content(config: Config, found: Sequence[Item], runs: Runs) -> dict[str, Any]:
    """Return the variables of the page's template, without the pictures."""
    tables = {f"runs-{name}": table for name, table in report_runs.tables(config, runs).items()}
    rest = [item for item in found if item.anchor not in FIRST]
    gaps = sum(bool(item.gap) for item in found)
    aggregates, claims = (_rows(found, name) for name in ("aggregate_table", "claims_table"))
    return {
        "config": config,
        "title": title(config),
        "facts": report_runs.facts(config, runs),
        "verdicts": list(verdicts(found)),
        "gaps": gaps,
        "sentences": list(findings.sentences(config, runs, aggregates, claims, gaps)),
        "redraw": redraw(config),
        "first": [item for item in found if item.anchor in FIRST],
        "figures": [item for item in rest if item.artefact.name in FIGURES],
        "tables": [item for item in rest if item.artefact.name in TABLES],
        "of_runs": tables,
        "partial": len(runs.absent),
        "curves": _script(report_curves.payload(runs.rows, config, runs.records)),
        "points": report_curves.POINTS,
        "bands": BANDS,
        "mark": lambda text: VERDICTS.get(str(text).lower(), "none"),
        "verdict_column": verdict_column,
        "dark": style.DARK,
        "read": lambda name: Markup((PAGE / name).read_text(encoding="utf-8")),
    }


def _script(data: Any) -> Markup:
    """Return data as JSON that is safe inside a <script> element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def page(
    config: Config,
    layout: Layout,
    out: Path,
    *,
    allow_partial: bool = False,
    other_settings: bool = False,
) -> str:
    """Return the web page, with pictures compressed so that the page fits into LIMIT bytes.

    The page also has as many videos as fit into LIMIT_OF_VIDEOS bytes: first the repository's, of
    runs beside their expert or else of the expert alone, then the GIFs in the folder videos/ next
    to the scale's figures.

    Raise UserError if a run or file is missing, unless `allow_partial` is True, or if the settings
    of published records differ from the config's, unless `other_settings` is True.

    out: the file that the page will be written to; links in the page are relative to this file.
    """
    stamp = stamps.stamp(config, layout, REPORT, "png")  # before the runs and figures are read
    found = items(config, layout, out, allow_partial=allow_partial)
    runs = read_keys(
        layout,
        config,
        run_table(config),
        "figures",
        allow_partial=allow_partial,
        other_settings=other_settings,
    )
    content = _content(config, found, runs)
    content["stamp"] = stamp
    content["other_settings"] = command.other_settings(REPORT, config, layout)
    files = {
        item.anchor: layout.home / f"{item.anchor}.png"
        for item in found
        if item.table is None and not item.gap
    }
    template, blank = TEMPLATES.get_template("page.html"), pictures.Picture("", 9999, 9999, 9999)
    rest = len(template.render(content, pictures=dict.fromkeys(files, blank), videos={}).encode())
    embedded = pictures.embed(files, LIMIT - rest)
    films: list[Path] = []
    for env in envs(config):
        films += sorted(AGENTS.glob(f"*-{env}.gif")) or [VIDEOS / f"{env}.gif"]
    films += sorted((layout.home / "videos").glob("*.gif"))
    videos = pictures.videos(films, LIMIT_OF_VIDEOS)
    return template.render(content, pictures=embedded, videos=videos)


def make(config: Config, layout: Layout, options: command.Options) -> command.Made:
    """Make the web page."""
    text = page(
        config,
        layout,
        options.out,
        allow_partial=options.allow_partial,
        other_settings=options.other_settings,
    ).encode()
    return command.Made(text, f": {len(text) / 1000:.0f} kB")
