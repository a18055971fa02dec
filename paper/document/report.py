"""A scale's figures, tables and runs as one web page that needs no network.

python -m paper.document.report --scale quick --out results/report.html
"""

from __future__ import annotations

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
from ngt.files import atomic, read_json
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import Runs, read_keys
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper import command
from paper.document import curves as report_curves
from paper.document import pictures
from paper.document import runs as report_runs
from paper.drawing import stamps, style
from paper.drawing import table as tables
from paper.drawing.table import Table
from paper.register import CURVES, FIGURES, REPORT, TABLES, Artefact

NAME = REPORT.name
LIMIT = 5_000_000  # bytes of the page, so that it can be mailed and opens at once
PAGE = Path(__file__).with_name("page")

FORMS = {"pdf": "PDF", "png": "PNG", "csv": "CSV", "tex": "LaTeX", "json": "JSON"}

# What a verdict is marked as, besides its own words.
VERDICTS = {
    "reproduced": "good",
    "holds": "good",
    "not reproduced": "bad",
    "false": "bad",
    "partly": "mixed",
    "loose": "mixed",
}


@dataclass(frozen=True)
class Item:
    """A figure or a table in the page."""

    artefact: Artefact
    files: tuple[tuple[str, str], ...]  # (form, link relative to the page)
    about: str = ""  # what a figure shows, for those who do not see it
    caption: str = ""  # of a figure
    table: Table | None = None
    gap: str = ""  # why it is not there,
    command: str = ""  # and what makes it

    @property
    def anchor(self) -> str:
        """Its name: file, module and anchor are one."""
        return self.artefact.name


def target(config: Config, artefact: Artefact) -> str:
    """The command that makes an artefact."""
    ending = "pdf" if artefact.name in FIGURES else "csv"
    choice = f" --config scale={config.scale}" * (config.scale != Config.scale)
    return f"snakemake --cores all results/{artefact.name}.{ending}{choice}"


def items(
    config: Config, layout: Layout, out: Path, *, allow_partial: bool, picture: str = "png"
) -> list[Item]:
    """Every artefact of the scale, tables read; UserError names a file that is not there.

    picture: the form of the figures that must be there, png or pdf.
    """
    return [
        _item(artefact, kind, config, layout, out, allow_partial)
        for kind, artefacts in ((picture, FIGURES), ("json", TABLES))
        for artefact in artefacts.values()
        if artefact.at(config)
    ]


def _item(
    artefact: Artefact, kind: str, config: Config, layout: Layout, out: Path, allow_partial: bool
) -> Item:
    file = layout.root / f"{artefact.name}.{kind}"
    if not file.exists():
        why, command = f"{file} is not there", target(config, artefact)
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
    beside = [(end, file.with_suffix(f".{end}")) for end in endings]
    files = tuple(
        (FORMS[end], os.path.relpath(path, out.parent)) for end, path in beside if path.exists()
    )
    if kind != "json":
        return Item(artefact, files, *about(config, artefact))
    try:
        table = tables.from_json(file.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file}: not a table ({error}); make it again with `{target(config, artefact)}`"
        ) from None
    return Item(artefact, files, table=table)


def of_scale(file: Path, scale: str) -> bool:
    """Whether a figure or table says that it was made of this scale's runs."""
    if file.suffix == ".json":
        data = read_json(file)
        return not (isinstance(data, dict) and "rows" in data) or data.get("scale") == scale
    return style.made_of(scale).encode() in file.read_bytes()


def about(config: Config, artefact: Artefact) -> tuple[str, str]:
    """What a figure shows, in words, and its caption: from the run table where it has runs."""
    names = [name for name in artefact.shown(config) if not artefact.experts]
    plans = [config.figures[name] for name in names]

    def join(axis: str) -> str:
        return ", ".join(dict.fromkeys(str(v) for plan in plans for v in getattr(plan, axis)))

    text, caption = f"{artefact.title}.", artefact.title
    if names:
        methods = [m for plan in plans for m in (*plan.methods, *plan.beside)]
        labels = ", ".join(dict.fromkeys(method_label(config, m) for m in methods))
        what = "Learning curves" if artefact.name in CURVES else "Drawn from runs"
        text += f" {what} of {labels} on {join('envs')}; demonstrations: {join('demos')}."
        caption += f": {len(run_table(config, names, beside=True))} runs of scale {config.scale}"
    return text, f"{caption}."


def verdict_column(table: Table) -> str | None:
    """The column whose cells are verdicts, if there is one."""
    return next((k for k, c in table.columns.items() if c.head.lower() == "verdict"), None)


def verdicts(found: Sequence[Item]) -> Iterator[tuple[Item, str]]:
    """Each table of verdicts, with how often it says what."""
    for item in found:
        column = None if item.table is None else verdict_column(item.table)
        if item.table is not None and column is not None:
            tally = Counter(str(row[column]) for row in item.table.rows)
            yield item, ", ".join(f"{n} {word}" for word, n in tally.most_common())


def render(
    config: Config,
    found: Sequence[Item],
    runs: Runs,
    embedded: Mapping[str, pictures.Picture],
    stamp: str,
    other_settings: str = "",
) -> str:
    """Return the page. stamp, other_settings: as `stamps.stamp` and `command.other_settings`."""
    environment = Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    of_runs = {
        "runs-counts": report_runs.counts(config, runs.statuses),
        "runs-incomplete": report_runs.incomplete(runs.statuses),
        "runs-sources": report_runs.sources(runs.records),
        "runs-machines": report_runs.machines(runs.records),
        "runs-times": report_runs.times(config, runs.records),
    }
    return environment.get_template("page.html").render(
        config=config,
        stamp=stamp,
        facts=report_runs.facts(config, runs),
        verdicts=list(verdicts(found)),
        figures=[item for item in found if item.artefact.name in FIGURES],
        tables=[item for item in found if item.artefact.name in TABLES],
        pictures=embedded,
        of_runs={name: table for name, table in of_runs.items() if table and table.rows},
        partial=len(runs.absent),
        other_settings=other_settings,
        curves=_script(report_curves.payload(runs.rows, config)),
        points=report_curves.POINTS,
        mark=lambda text: VERDICTS.get(str(text).lower(), "none"),
        verdict_column=verdict_column,
        numeric=lambda table, key: not any(isinstance(row[key], str) for row in table.rows),
        dark=style.DARK,
        read=lambda name: Markup((PAGE / name).read_text(encoding="utf-8")),
    )


def _script(data: Any) -> Markup:
    """JSON that stands inside a <script>: nothing in it ends the element."""
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
    """The page at `out`, of at most LIMIT bytes: what the pictures may take is what is left.

    Errors: a run or a file that is not there is a UserError, unless `allow_partial`; published
    records of other settings are one, unless `other_settings`.
    """
    found = items(config, layout, out, allow_partial=allow_partial)
    runs = read_keys(
        layout,
        config,
        run_table(config),
        "figures",
        allow_partial=allow_partial,
        other_settings=other_settings,
    )
    mark = command.other_settings(NAME, config, layout)
    files = {
        item.anchor: layout.root / f"{item.anchor}.png"
        for item in found
        if item.artefact.name in FIGURES and not item.gap
    }
    blank = {name: pictures.Picture("", 9999, 9999, 9999) for name in files}
    drawn_from = stamps.stamp(config, layout, REPORT, "png")
    rest = len(render(config, found, runs, blank, drawn_from, mark).encode())
    return render(config, found, runs, pictures.embed(files, LIMIT - rest), drawn_from, mark)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = command.build_parser(NAME, (__doc__ or "").splitlines()[0], ending="html")

    def run() -> None:
        args = parser.parse_args(argv)
        config, layout = command.settings(args)
        out = args.out or layout.root / f"{NAME}.html"
        text = page(
            config,
            layout,
            out,
            allow_partial=args.allow_partial,
            other_settings=args.other_settings,
        )
        try:
            with atomic(out) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{out}: can't be written: {error.strerror}") from None
        print(f"{out}: {len(text.encode()) / 1000:.0f} kB")

    command.one_line_errors(NAME, run)


if __name__ == "__main__":
    main()
