"""Stamps: hashes of the inputs of an artefact, written into each of the artefact's files.

An artefact is a figure, a table or a report of a scale's runs. A scale is a config in
workflow/config/. Published records are results that ship with the suite.

The code that draws is also an input, so an update of the suite redraws what it would change. The
workflow compares the stamp in a file with the stamp of the current inputs. Whether the file is up
to date therefore depends neither on time stamps nor on Snakemake's records of earlier jobs.
"""

import functools
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from ngt.errors import UserError
from ngt.experience import shipped
from ngt.files import CHECKOUT, checksum
from ngt.runs import published
from ngt.runs.keys import Layout, run_table
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash
from paper.register import FIGURES, TABLES, Artefact

PACKAGES = ("paper", "ngt", "baselines")  # what draws, what it reads runs with, and the methods
CODE = {".py", ".json", ".mplstyle", ".tex", ".bib", ".html", ".css", ".js"}


def sources(config: Config, layout: Layout, artefact: Artefact) -> Iterator[Path]:
    """Yield the files from which an artefact is made, besides the settings.

    Of each run, only run.json is needed, because run.json has checksums of the run's other files.
    """
    yield from map(Path, artefact.files)
    names = artefact.shown(config)
    if config.records == "published":
        if names:
            yield from (layout.published, layout.published.with_suffix(".json"))
        return
    for key in [] if artefact.experts else run_table(config, names, beside=True):
        yield layout.run(key) / "run.json"
    for env in artefact.experts_of(config):
        if config.demos == "shipped":
            yield shipped.DATA / env / shipped.EXPERT
        else:
            yield layout.expert(env) / "run.json"


def drawable(config: Config, layout: Layout) -> list[Artefact]:
    """Return the figures and tables of a scale that can be drawn.

    If the config uses published records, leave out artefacts whose runs are all unpublished.
    """
    every = [a for a in (*FIGURES.values(), *TABLES.values()) if a.at(config)]
    if config.records != "published":
        return every
    known = published.names(layout.published)
    return [a for a in every if not (needed := _names(config, a)) or needed & known]


def check_drawable(config: Config, layout: Layout, artefact: Artefact) -> None:
    """Raise UserError if a figure or table can't be drawn, since none of its runs is published."""
    if artefact.kind in ("figure", "table") and artefact not in drawable(config, layout):
        raise UserError(
            f"{layout.home / artefact.name}: none of its runs is published in {layout.published}; "
            f"write `records: trained` to train them"
        )


def _names(config: Config, artefact: Artefact) -> set[str]:
    """Return the names of the runs and experts that an artefact shows."""
    runs, envs = artefact.keys(config), artefact.experts_of(config)
    return {*map(str, runs), *map(published.expert_name, envs)}


def parts(config: Config, layout: Layout, picture: str) -> list[Path]:
    """Return the files of the figures and tables that a report shows.

    picture: the file format of figures, `png` or `pdf`.
    """
    return [
        layout.home / f"{a.name}.{picture if a.kind == 'figure' else 'json'}"
        for a in drawable(config, layout)
    ]


def stamp(config: Config, layout: Layout, artefact: Artefact, picture: str = "") -> str:
    """Return the stamp for an artefact's files, as text such as `drawn from 0123456789abcdef`.

    picture: for a report, the file format of its figures; empty for other artefacts.
    """
    digest = hashlib.sha256(f"{artefact.name} {config_hash(config)} {code_hash()}".encode())
    files = [*sources(config, layout, artefact)]
    files += parts(config, layout, picture) if picture else []
    for file in files:
        digest.update(f" {checksum(file) if file.exists() else 'missing'}".encode())
    return f"drawn from {digest.hexdigest()[:16]}"


@functools.cache
def code_hash(root: Path = CHECKOUT) -> str:
    """Return a hash of the packages' files that contain code, templates or styles."""
    every = itertools.chain.from_iterable((root / name).rglob("*") for name in PACKAGES)
    files = sorted(file for file in every if file.suffix in CODE)
    parts = (f"{file.relative_to(root).as_posix()} {checksum(file)}\n" for file in files)
    return checksum("".join(parts).encode())


def carries(file: Path, text: str) -> bool:
    """Return True if a file exists and has this stamp."""
    return file.exists() and text.encode() in file.read_bytes()
