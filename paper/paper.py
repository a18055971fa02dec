"""The scale's results as a report in LaTeX, results/paper.pdf; no number in it is typed.

python -m paper.paper --scale quick --out results/paper.pdf
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ngt.config import Config, method_label
from ngt.errors import UserError
from ngt.files import atomic
from ngt.records import provenance
from ngt.results import Runs, read_keys
from ngt.runs import Layout, run_table
from paper import cli
from paper.artefacts import FIGURES, TABLES
from paper.statistics import OURS, Estimate
from paper.tables import Table, from_json, tex

NAME = "paper"
MAIN = Path(__file__).with_name("main.tex")
LATEX = "latexmk"
INSTALL = "on Debian: apt-get install latexmk texlive-latex-recommended texlive-fonts-recommended"


def numbers(config: Config, runs: Runs, tables: Mapping[str, Table]) -> str:
    """LaTeX macros of every number and name in the text."""
    statuses = Counter(status.status for status in runs.statuses.values())
    absent = len(runs.statuses) - statuses["finished"] - statuses["diverged"]
    claims = Counter(_column(tables, "claims_table", "verdict"))
    known = ("reproduced", "not reproduced", "not run at this scale")
    other = sum(claims.values()) - sum(claims[verdict] for verdict in known)
    theory = Counter(_column(tables, "theory_table", "verdict"))
    made = provenance()
    versions = ", ".join(f"{name} {value}" for name, value in made["versions"].items() if value)
    macros = {
        "Scale": config.scale,
        "Window": config.window,
        "Runs": len(runs.statuses),
        "RunsFinished": statuses["finished"],
        "RunsDiverged": statuses["diverged"],
        "RunsMissing": f" ({absent} are missing)" if absent else "",
        "NgtIqm": _iqm(tables, method_label(config, OURS)),
        "Claims": sum(claims.values()),
        "ClaimsReproduced": claims["reproduced"],
        "ClaimsNot": claims["not reproduced"],
        "ClaimsNotRun": claims["not run at this scale"],
        "ClaimsOther": f" ({other} in part)" if other else "",
        "Statements": sum(theory.values()),
        "StatementsHold": theory["holds"],
        "StatementsLoose": theory["loose"],
        "StatementsFalse": theory["false"],
        "SourceHash": made["source_hash"],
        "Made": f"Python {made['python']}, {versions}",
    }
    lines = [rf"\newcommand{{\{name}}}{{{tex(str(value))}}}" for name, value in macros.items()]
    lines += [
        rf"\expandafter\def\csname title@{a.name}\endcsname{{{tex(a.title)}}}"
        for a in (*FIGURES.values(), *TABLES.values())
    ]
    return "\n".join(lines) + "\n"


def _column(tables: Mapping[str, Table], name: str, key: str) -> list[str]:
    """A column of a table that may not be there."""
    return [str(row[key]) for row in tables[name].rows] if name in tables else []


def _iqm(tables: Mapping[str, Table], label: str) -> str:
    """NGT's interquartile mean over all tasks, with its interval."""
    rows = tables["aggregate_table"].rows if "aggregate_table" in tables else ()
    for row in rows:
        if (row["demos"], row["method"]) == ("all", label) and row["iqm"] is not None:
            ends = (row["iqm"], row["iqm_low"], row["iqm_high"])
            return str(Estimate(*(float("nan") if x is None else float(x) for x in ends)))
    return "not known"


def gather(config: Config, layout: Layout, folder: Path, *, allow_partial: bool) -> None:
    """Put main.tex, numbers.tex and the scale's figures and tables into a folder."""
    found: dict[str, Table] = {}
    for artefacts, ending in ((FIGURES, "pdf"), (TABLES, "tex")):
        for artefact in artefacts.values():
            file = layout.root / f"{artefact.name}.{ending}"
            if not artefact.at(config):
                continue
            if not file.exists():
                if allow_partial:
                    continue
                raise UserError(
                    f"{file} is not there; make it with `snakemake --cores all {file} --config "
                    f"scale={config.scale}`, or leave it out with --allow-partial"
                )
            shutil.copy(file, folder)
            if ending == "tex":
                found[artefact.name] = from_json(file.with_suffix(".json").read_text())
    runs = read_keys(layout, config, run_table(config), "figures", allow_partial=allow_partial)
    (folder / "numbers.tex").write_text(numbers(config, runs, found))
    shutil.copy(MAIN, folder)


def build(folder: Path) -> Path:
    """Run LaTeX in a folder that `gather` filled; the PDF. UserError gives its first complaint."""
    if shutil.which(LATEX) is None:
        raise UserError(f"{LATEX} is not installed, and makes paper.pdf; {INSTALL}")
    head = r"\pdfinfoomitdate=1\pdftrailerid{}\pdfsuppressptexinfo=-1"  # the same bytes each time
    done = subprocess.run(
        [
            LATEX, "-pdf", "-interaction=nonstopmode", "-halt-on-error", "-silent",
            f"-usepretex={head}", "main.tex",
        ],
        cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, errors="replace",
        env=os.environ | {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"},
    )  # fmt: skip
    if done.returncode:
        log = folder / "main.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        first = next((line for line in lines if line.startswith("!")), done.stderr.strip()[-200:])
        raise UserError(f"LaTeX: {' '.join(first.split()) or 'it failed without a word'}")
    return folder / "main.pdf"


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = cli.build_parser(NAME, (__doc__ or "").splitlines()[0])

    def run() -> None:
        args = parser.parse_args(argv)
        config, layout = cli.settings(args)
        out = args.out or layout.root / f"{NAME}.pdf"
        with tempfile.TemporaryDirectory() as temporary:
            gather(config, layout, Path(temporary), allow_partial=args.allow_partial)
            pdf = build(Path(temporary)).read_bytes()
        try:
            with atomic(out) as path:
                path.write_bytes(pdf)
        except OSError as error:
            raise UserError(f"{out}: can't be written: {error.strerror}") from None
        print(out)

    cli.one_line_errors(NAME, run)


if __name__ == "__main__":
    main()
