"""Stamps: hashes of what a figure, table or report was made from, written into each of its files.

The workflow compares the stamp in a file with the stamp of the current inputs. Whether the file is
up to date therefore depends neither on time stamps nor on Snakemake's records.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ngt.experience import shipped
from ngt.files import checksum
from ngt.runs.keys import Layout, run_table
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash
from paper.register import FIGURES, TABLES, Artefact


def sources(config: Config, layout: Layout, artefact: Artefact) -> Iterator[Path]:
    """Yield the files from which an artefact is made, besides the settings.

    Of each run, only run.json is needed, because it holds the checksums of the run's other files.
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


def parts(config: Config, layout: Layout, picture: str) -> list[Path]:
    """Return the files of the figures and tables that a report shows.

    picture: the file format of figures, `png` or `pdf`.
    """
    return [
        layout.home / f"{a.name}.{ending}"
        for artefacts, ending in ((FIGURES, picture), (TABLES, "json"))
        for a in artefacts.values()
        if a.at(config)
    ]


def stamp(config: Config, layout: Layout, artefact: Artefact, picture: str = "") -> str:
    """Return the stamp for an artefact's files, as text such as `drawn from 0123456789abcdef`.

    picture: for a report, the file format of its figures; empty for other artefacts.
    """
    digest = hashlib.sha256(f"{artefact.name} {config_hash(config)}".encode())
    files = [*sources(config, layout, artefact)]
    files += parts(config, layout, picture) if picture else []
    for file in files:
        digest.update(f" {checksum(file) if file.exists() else 'missing'}".encode())
    return f"drawn from {digest.hexdigest()[:16]}"


def carries(file: Path, text: str) -> bool:
    """Return True if a file exists and has this stamp."""
    return file.exists() and text.encode() in file.read_bytes()
