"""Functions that gather a scale's complete runs into published records (`ngt.runs.published`)."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ngt.errors import UserError
from ngt.files import atomic, sha256, write_json
from ngt.runs.folder import Folders, Record
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.published import COLUMNS, FORMAT, Published, expert_name, manifest_of
from ngt.runs.status import COMPLETE
from ngt.settings.config import Config
from ngt.settings.resolve import resolve_expert, to_json

if TYPE_CHECKING:
    import pandas as pd

# The fields of run.json that the manifest contains. The fields in OWN are stored for each run;
# those in SHARED are stored once for all runs in which they are equal.
OWN = (
    "config_hash",
    "status",
    "step",
    "tensor",
    "kept",
    "updates",
    "pack",
    "reference",
    "train_seconds",
    "wall_seconds",
    "steps_per_second",
)
SHARED = (
    "commit",
    "dirty",
    "source_hash",
    "python",
    "versions",
    "machine",
    "device",
    "threads",
)
GPU = "gpu"  # shared by runs as well; only runs on a GPU have this entry


def publish(
    layout: Layout,
    config: Config,
    *,
    sources: Sequence[Layout] = (),
    allow_partial: bool = False,
) -> dict[str, Any]:
    """Publish a scale's complete runs and their experts as records, and return the manifest.

    Runs and experts that were published before are kept if no results folder has them, provided
    that their settings are still the config's. Raise UserError if results contradict each other, or
    if a run is not complete and `allow_partial` is not set.

    sources: the results folders to read; by default, only the folder of `layout`.
    """
    import pandas as pd

    places, keys = [Folders(source, config) for source in sources or (layout,)], run_table(config)
    before = published_before(layout, config)
    gathered: dict[str, Record] = {}
    for key in keys:
        if found := complete(places, key):
            gathered[str(key)] = the_same(f"run {key}", found)
        elif before and before.status(key).status in COMPLETE:
            gathered[str(key)] = with_settings(before, str(key))
        elif not allow_partial:
            raise UserError(
                f"run {key}: {incomplete(places, key)}; train it first, or publish the complete "
                f"runs with --allow-partial"
            )
    check_demos(gathered)
    for env in sorted({RunKey.parse(name).env for name in gathered}):
        found = {
            str(place.layout.expert(env)): place.read_expert(env)
            for place in places
            if place.has_expert(env)
        }
        if found:
            gathered[expert_name(env)] = the_same(f"expert of {env}", found)
        elif before and expert_name(env) in before.frames and not before.of_expert(env):
            gathered[expert_name(env)] = with_settings(before, expert_name(env))
    if not gathered:
        raise UserError(f"no run of scale {config.scale} is complete; train them first")
    frames = (record.evaluations.assign(run=name) for name, record in gathered.items())
    content = to_parquet(pd.concat(frames, ignore_index=True))
    manifest = describe(config, gathered, content)
    with atomic(layout.published) as temporary:
        temporary.write_bytes(content)
    write_json(manifest_of(layout.published), manifest)
    return manifest


def published_before(layout: Layout, config: Config) -> Published | None:
    """Read the records that the next ones will replace. Return None if there are none."""
    file = layout.published
    return Published(file, config) if file.exists() and manifest_of(file).exists() else None


def with_settings(before: Published, name: str) -> Record:
    """Return the record of a published run or expert, with its settings as published."""
    record = before.record(name)
    return record._replace(run={**record.run, "config": before.settings(name)})


def complete(places: Sequence[Folders], key: RunKey) -> dict[str, Record]:
    """Read a run from each results folder in which it is complete. Return its records by folder."""
    return {
        str(place.layout.run(key)): place.read(key)
        for place in places
        if place.status(key).status in COMPLETE
    }


def incomplete(places: Sequence[Folders], key: RunKey) -> str:
    """Describe why a run is complete in none of the results folders.

    Describe the first folder in which the run has been started.
    """
    for place in places:
        found = place.status(key)
        if found.status != "missing":
            return f"{found.status} in {place.layout.root} ({found.note})"
    return "missing"


def the_same(name: str, found: dict[str, Record]) -> Record:
    """Return a run's record. Raise UserError if its records in different folders differ."""
    (first, record), *others = found.items()
    own = record.evaluations.drop(columns="seconds")  # the speed differs between machines
    for folder, other in others:
        if not own.equals(other.evaluations.drop(columns="seconds")):
            raise UserError(
                f"{name}: the results in {first} and {folder} differ; keep one, and move the other "
                f"out of its results folder"
            )
    return record


def check_demos(gathered: dict[str, Record]) -> None:
    """Check that all runs on an env imitate the same demonstrations.

    Otherwise, their scores could not be compared.
    """
    first: dict[str, tuple[str, str]] = {}
    for name, record in gathered.items():
        demos = record.run["reference"]["demos"]
        other, known = first.setdefault(RunKey.parse(name).env, (name, demos))
        if demos != known:
            raise UserError(
                f"run {name}: its demonstrations are not those of run {other}; train both with the "
                f"same file, which `ngt train --demos` or the config names"
            )


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Encode a table as Parquet. With the same pyarrow version, equal rows give equal bytes."""
    frame = frame[list(COLUMNS)].astype({"run": "category", "step": "int64", "episodes": "int16"})
    out = io.BytesIO()
    frame.to_parquet(out, index=False, compression="zstd")
    return out.getvalue()


def describe(config: Config, gathered: dict[str, Record], content: bytes) -> dict[str, Any]:
    """Return the manifest of gathered records.

    content: the bytes of the records' Parquet file.
    """
    made: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    runs = {}
    for name, record in gathered.items():
        runs[name] = {
            **{field: record.run[field] for field in OWN if field in record.run},
            "made": index(made, shared(record.run)),
            "cell": index(cells, made_with(config, name, record)),
        }
    return {
        "format": FORMAT,
        "scale": config.scale,
        "sha256": sha256(content),
        "missing": sorted({str(key) for key in run_table(config)} - set(gathered)),
        "made": made,
        "cells": cells,
        "runs": runs,
    }


def shared(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a run's record about the code, the library versions and the machine."""
    return {field: run.get(field) for field in SHARED} | ({GPU: run[GPU]} if GPU in run else {})


def index(known: list[dict[str, Any]], one: dict[str, Any]) -> int:
    """Return the index of the mapping `one` in a list, after appending the mapping if it is new."""
    if one not in known:
        known.append(one)
    return known.index(one)


def made_with(config: Config, name: str, record: Record) -> dict[str, Any]:
    """Return the complete settings of a run or an expert.

    The record of a shipped expert, or of a run published before, contains the settings. All other
    records belong to complete runs and experts, whose settings are the config's.
    """
    if "config" in record.run:
        return dict(record.run["config"])
    env, _, kind = name.partition("/")
    expert = kind == "expert"
    cell = resolve_expert(config, env) if expert else resolve_key(config, RunKey.parse(name))
    return dict(json.loads(to_json(cell)))


def summary(manifest: dict[str, Any]) -> str:
    """Return a line about a manifest's runs.

    The line states the numbers of runs, and the models whose runs were made by several versions of
    the code.
    """
    runs = manifest["runs"].values()
    statuses = sorted(Counter(run["status"] for run in runs).items())
    sources: dict[str, set[str]] = {}  # by model
    for run in runs:
        of_model = sources.setdefault(manifest["cells"][run["cell"]]["model"], set())
        of_model.add(manifest["made"][run["made"]]["source_hash"])
    mixed = [model for model, found in sorted(sources.items()) if len(found) > 1]
    if manifest["missing"]:
        statuses.append(("missing", len(manifest["missing"])))
    text = f"runs and experts: {', '.join(f'{n} {status}' for status, n in statuses)}"
    if mixed:
        text += f"; made by more than one version of the code: {', '.join(mixed)}"
    return text
