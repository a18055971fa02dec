"""Functions that gather a scale's complete runs into published records (`ngt.runs.published`)."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from ngt.errors import UserError
from ngt.files import atomic, sha256, write_json
from ngt.runs.folder import Folders, Record
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.published import COLUMNS, FORMAT, expert_name
from ngt.settings.config import Config
from ngt.settings.resolve import resolve_expert, to_json

if TYPE_CHECKING:
    import pandas as pd

# The fields of run.json that the manifest keeps: OWN for each run, SHARED once for many runs.
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


def publish(layout: Layout, config: Config, *, allow_partial: bool = False) -> dict[str, Any]:
    """Write a scale's complete runs and their experts as records; return the manifest.

    Raise UserError for an incomplete run, unless `allow_partial` is set.
    """
    import pandas as pd

    folders, keys = Folders(layout, config), run_table(config)
    gathered: dict[str, Record] = {}
    for key in keys:
        status = folders.status(key).status
        if status in ("finished", "diverged"):
            gathered[str(key)] = folders.read(key)
        elif not allow_partial:
            raise UserError(
                f"run {key}: {status}; train it first, or publish the complete runs with "
                f"--allow-partial"
            )
    for env in sorted({RunKey.parse(name).env for name in gathered}):
        if folders.has_expert(env):
            gathered[expert_name(env)] = folders.read_expert(env)
    if not gathered:
        raise UserError(
            f"none of the {len(keys)} runs of scale {config.scale} is complete; train them first"
        )
    frames = (record.evaluations.assign(run=name) for name, record in gathered.items())
    content = to_parquet(pd.concat(frames, ignore_index=True))
    manifest = describe(config, gathered, content)
    with atomic(layout.published) as temporary:
        temporary.write_bytes(content)
    write_json(layout.published.with_suffix(".json"), manifest)
    return manifest


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Return the table as Parquet. Equal rows give equal bytes with the same pyarrow version."""
    frame = frame[list(COLUMNS)].astype({"run": "category", "step": "int64", "episodes": "int16"})
    out = io.BytesIO()
    frame.to_parquet(out, index=False, compression="zstd")
    return out.getvalue()


def describe(config: Config, gathered: dict[str, Record], content: bytes) -> dict[str, Any]:
    """Return the manifest of these records."""
    made: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    runs = {}
    for name, record in gathered.items():
        runs[name] = {
            **{field: record.run[field] for field in OWN if field in record.run},
            "made": index(made, {field: record.run.get(field) for field in SHARED}),
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


def index(known: list[dict[str, Any]], one: dict[str, Any]) -> int:
    """Return the index of a mapping in a list, after appending it if it is new."""
    if one not in known:
        known.append(one)
    return known.index(one)


def made_with(config: Config, name: str, record: Record) -> dict[str, Any]:
    """Return the complete settings of a run or an expert.

    A shipped expert's record holds the expert's settings. All other records come from complete runs
    and experts, which have the config's settings.
    """
    if "config" in record.run:
        return dict(record.run["config"])
    env, _, kind = name.partition("/")
    expert = kind == "expert"
    cell = resolve_expert(config, env) if expert else resolve_key(config, RunKey.parse(name))
    return dict(json.loads(to_json(cell)))


def summary(manifest: dict[str, Any]) -> str:
    """Return a line that describes a manifest's runs and tells if their source hashes differ."""
    runs = manifest["runs"].values()
    statuses = sorted(Counter(run["status"] for run in runs).items())
    sources: dict[str, set[str]] = {}  # by model
    for run in runs:
        of_model = sources.setdefault(manifest["cells"][run["cell"]]["model"], set())
        of_model.add(manifest["made"][run["made"]]["source_hash"])
    mixed = [model for model, found in sorted(sources.items()) if len(found) > 1]
    text = f"{len(runs)} runs and experts ({', '.join(f'{n} {status}' for status, n in statuses)})"
    if manifest["missing"]:
        text += f", {len(manifest['missing'])} missing"
    if mixed:
        text += f"; made by more than one version of the code: {', '.join(mixed)}"
    return text
