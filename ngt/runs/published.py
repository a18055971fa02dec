"""Records that ship: a scale's complete runs in one Parquet file, and a manifest beside it.

<scale>.parquet   one row a (run, evaluation): run, step and what `ngt.runs.folder.VALUES` names; an
                  env's expert is the run `<env>/expert`
<scale>.json      checksum of the table; each run's status, references and speed; and, once for all
                  runs that share them, the complete settings of their cell and the code, versions
                  and machine that made them
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngt.errors import UserError
from ngt.files import atomic, read_json, write_json
from ngt.runs.folder import VALUES, Folders, Record
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.provenance import source_hash
from ngt.runs.state import Status
from ngt.settings.config import CellConfig, Config
from ngt.settings.resolve import load_model, own_file, resolve_expert, short, to_json
from ngt.settings.schema import parse

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 2
COLUMNS = ("run", "step", *VALUES)

# Of a run.json: what is said of each run, and what many runs share.
OWN = (
    "config_hash", "status", "step", "tensor", "kept", "updates", "pack", "reference",
    "train_seconds", "wall_seconds", "steps_per_second",
)  # fmt: skip
SHARED = (
    "commit", "dirty", "source_hash", "python", "versions", "machine", "device", "threads",
)  # fmt: skip


def expert_name(env: str) -> str:
    """What an env's expert is called among the runs."""
    return f"{env}/expert"


def publish(layout: Layout, config: Config, *, allow_partial: bool = False) -> dict[str, Any]:
    """Gather the scale's complete runs and their experts; the manifest that was written.

    Errors: a run that is not complete is a UserError naming it, unless `allow_partial`.
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
                f"run {key}: {status}; train it first, or publish what there is with "
                f"--allow-partial"
            )
    for env in sorted({RunKey.parse(name).env for name in gathered}):
        if folders.has_expert(env):
            gathered[expert_name(env)] = folders.read_expert(env)
    if not gathered:
        raise UserError(f"none of the {len(keys)} runs of scale {config.scale} is complete")
    frames = [record.evaluations.assign(run=name) for name, record in gathered.items()]
    content = to_parquet(pd.concat(frames, ignore_index=True))
    manifest = describe(config, gathered, content)
    with atomic(layout.published) as temporary:
        temporary.write_bytes(content)
    write_json(layout.published.with_suffix(".json"), manifest)
    return manifest


def to_parquet(frame: pd.DataFrame) -> bytes:
    """The table's file: the same rows give the same bytes under the same pyarrow."""
    frame = frame[list(COLUMNS)].astype({"run": "category", "step": "int64", "episodes": "int16"})
    out = io.BytesIO()
    frame.to_parquet(out, index=False, compression="zstd")
    return out.getvalue()


def describe(config: Config, gathered: dict[str, Record], content: bytes) -> dict[str, Any]:
    """The manifest."""
    made: list[dict[str, Any]] = []
    cells: list[dict[str, Any]] = []
    runs = {}
    for name, record in gathered.items():
        shared = {field: record.run.get(field) for field in SHARED}
        own = {field: record.run[field] for field in OWN if field in record.run}
        cell = made_with(config, name, record)
        runs[name] = {**own, "made": index(made, shared), "cell": index(cells, cell)}
    return {
        "format": FORMAT,
        "scale": config.scale,
        "sha256": hashlib.sha256(content).hexdigest(),
        "missing": sorted({str(key) for key in run_table(config)} - set(gathered)),
        "made": made,
        "cells": cells,
        "runs": runs,
    }


def index(known: list[dict[str, Any]], one: dict[str, Any]) -> int:
    """The place of a mapping in a list, at whose end it is put if it is not yet there."""
    if one not in known:
        known.append(one)
    return known.index(one)


def made_with(config: Config, name: str, record: Record) -> dict[str, Any]:
    """The complete settings of a run or an expert that was gathered.

    A shipped expert carries them. The others were found to have the config's.
    """
    if "config" in record.run:
        return dict(record.run["config"])
    env, _, kind = name.partition("/")
    expert = kind == "expert"
    cell = resolve_expert(config, env) if expert else resolve_key(config, RunKey.parse(name))
    return plain(cell)


# ---------------------------------------------------------------- settings


def plain(cell: CellConfig) -> dict[str, Any]:
    """A cell's settings as JSON has them."""
    return dict(json.loads(to_json(cell)))


def flat(settings: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Settings by dotted name."""
    out: dict[str, Any] = {}
    for name, value in settings.items():
        out |= flat(value, f"{where}{name}.") if isinstance(value, dict) else {where + name: value}
    return out


def settings_hash(settings: dict[str, Any]) -> str:
    """The `config_hash` of the cell whose settings these are, known to this version or not."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return short(hashlib.sha256(text.encode()).hexdigest())


def complete(cell: CellConfig) -> CellConfig:
    """The cell with the defaults of those parameters of its model that it does not name."""
    params = parse(load_model(cell.model, "model").Config, cell.params, "params")
    return dataclasses.replace(cell, params=dataclasses.asdict(params))


def difference(made: CellConfig, wanted: CellConfig) -> str:
    """The first setting in which records differ from the config, or empty.

    `demos_source` is the last one, since a hash tells a reader little.
    """
    theirs, ours = flat(plain(made)), flat(plain(wanted))
    names = sorted(ours | theirs, key=lambda name: name == "demos_source")
    for name in names:
        there, here = (json.dumps(side[name]) if name in side else "-" for side in (theirs, ours))
        if there != here:
            return f"{name} is {there} in the records and {here} in the config"
    return ""


class Published:
    """Runs out of the records that ship.

    other_settings: runs whose settings are not the config's are complete, too, and not stale.
    """

    def __init__(self, path: Path, config: Config, *, other_settings: bool = False) -> None:
        self.path, self.config, self.other_settings = path, config, other_settings
        self.manifest = self._manifest()
        self.frames = self._frames()
        self._differences: dict[Hashable, str] = {}

    def _fail(self, what: str) -> UserError:
        return UserError(f"records {self.path}: {what}; write them again with `ngt publish`")

    def _manifest(self) -> dict[str, Any]:
        beside = self.path.with_suffix(".json")
        for file in (self.path, beside):
            if not file.exists():
                raise UserError(
                    f"records: published, and {file} is not there; write `records: trained`, or "
                    f"gather the runs of scale {self.config.scale} with `ngt publish`"
                )
        data = read_json(beside)
        if not isinstance(data, dict) or "format" not in data:
            raise self._fail(f"{beside.name} is not a manifest")
        if data["format"] != FORMAT:
            raise self._fail(f"format {data['format']} is not {FORMAT}")
        if not {"sha256", "made", "cells", "runs"} <= data.keys():
            raise self._fail(f"{beside.name} is not a manifest")
        if data.get("scale") != self.config.scale:
            raise UserError(
                f"records {self.path}: of scale {data.get('scale')}, asked for scale "
                f"{self.config.scale}; choose that one with --scale or --config"
            )
        for name in ("made", "cells"):
            if not (isinstance(data[name], list) and all(isinstance(m, dict) for m in data[name])):
                raise self._fail(f"{beside.name}: {name} is not a list of mappings")
        if not isinstance(data["runs"], dict):
            raise self._fail(f"{beside.name}: runs is not a mapping")
        hashes = [settings_hash(cell) for cell in data["cells"]]
        for name, own in data["runs"].items():
            at: list[Any] = [
                own.get(of) if isinstance(own, dict) else None for of in ("made", "cell")
            ]
            if any(type(i) is not int for i in at) or at[0] not in range(len(data["made"])):
                raise self._fail(f"{beside.name}: run {name} does not say what made it")
            if at[1] not in range(len(hashes)) or own.get("config_hash") != hashes[at[1]]:
                raise self._fail(f"{beside.name}: run {name} does not say its settings")
        return data

    def _cell(self, name: str) -> CellConfig:
        """A run's settings; one that is newer than the records has its default."""
        at = self.manifest["runs"][name]["cell"]
        try:
            return complete(parse(CellConfig, self.manifest["cells"][at], f"cells[{at}]"))
        except UserError as error:
            raise self._fail(f"run {name}: its settings are not this version's: {error}") from None

    def _frames(self) -> dict[str, pd.DataFrame]:
        """Evaluations by run; keys are checked before the checksum, so that they are named."""
        import pandas as pd

        content = self.path.read_bytes()
        try:
            table = pd.read_parquet(io.BytesIO(content))
            table = table[list(COLUMNS)]
        except Exception as error:  # pyarrow raises all sorts on a damaged file
            raise self._fail(" ".join(str(error).split())) from None
        twice = table[table.duplicated(["run", "step"])]
        if len(twice):
            row = twice.iloc[0]
            raise self._fail(f"run {row['run']} has step {row['step']} twice")
        frames = {
            str(name): frame.drop(columns="run").sort_values("step", ignore_index=True)
            for name, frame in table.groupby("run", observed=True)
        }
        known = self.manifest["runs"]
        for name in sorted(frames.keys() - known.keys()):
            raise self._fail(f"run {name} is not in the manifest")
        for name in sorted(known.keys() - frames.keys()):
            if known[name].get("status") != "diverged":  # it may have no evaluation
                raise self._fail(f"run {name} has no rows")
            frames[name] = table.iloc[:0].drop(columns="run")
        if hashlib.sha256(content).hexdigest() != self.manifest["sha256"]:
            raise self._fail("its checksum is not the manifest's")
        return frames

    def _record(self, name: str) -> Record:
        own = self.manifest["runs"][name]
        run = {**own, **self.manifest["made"][own["made"]]}
        return Record(run, self.frames[name])

    def difference(self, key: RunKey) -> str:
        """The first setting in which a run differs from the config, or empty."""
        own = self.manifest["runs"].get(str(key))
        if own is None:
            return ""
        place = (key.cell, own["cell"])
        if place not in self._differences:
            found = difference(self._cell(str(key)), resolve_key(self.config, key))
            if found.startswith("demos_source ") and (of_expert := self.of_expert(key.env)):
                found = f"its expert's {of_expert}"
            self._differences[place] = found
        return self._differences[place]

    def of_expert(self, env: str) -> str:
        """As `difference`, of an expert that the config would train."""
        name = expert_name(env)
        trained = self.config.demos == "trained" and not own_file(self.config, env)
        if name not in self.manifest["runs"] or not trained:
            return ""
        return difference(self._cell(name), resolve_expert(self.config, env))

    def differences(self, keys: Sequence[RunKey], envs: Sequence[str] = ()) -> dict[str, str]:
        """What differs, for each of these runs and experts that has other settings."""
        found = {f"run {key}": self.difference(key) for key in keys}
        found |= {f"expert {env}": self.of_expert(env) for env in envs}
        return {name: differs for name, differs in found.items() if differs}

    def check(self, keys: Sequence[RunKey], envs: Sequence[str] = ()) -> None:
        """UserError for the first of these runs and experts that has other settings."""
        for name, differs in self.differences(keys, envs).items():
            if not self.other_settings:
                raise UserError(
                    f"records {self.path}: {name}: {differs}; change the config, train such runs "
                    f"(`records: trained`), or draw these by hand with --other-settings"
                )

    def status(self, key: RunKey) -> Status:
        """Complete, missing, or stale where the settings are not the config's."""
        own = self.manifest["runs"].get(str(key))
        if own is None:
            return Status("missing", "not among the published records")
        other = self.manifest["made"][own["made"]].get("source_hash") != source_hash()
        differs = self.difference(key)
        note = f"step {own.get('step')}" + f", other settings: {differs}" * bool(differs)
        stale = bool(differs) and not self.other_settings
        status = "stale" if stale else own.get("status", "part")
        return Status(status, note + ", other source" * other, other)

    def read(self, key: RunKey) -> Record:
        """A run's record."""
        self.check([key])
        return self._record(str(key))

    def read_expert(self, env: str) -> Record:
        """An expert's record."""
        if expert_name(env) not in self.manifest["runs"]:
            raise self._fail(f"expert {env} is not among them")
        self.check([], [env])
        return self._record(expert_name(env))

    def strays(self, keys: Sequence[RunKey]) -> list[str]:
        """Runs of these keys' cells that no artefact names."""
        known = {str(key) for key in run_table(self.config)}
        cells = {str(key).rpartition("/")[0] for key in keys}
        return sorted(
            name for name in self.manifest["runs"]
            if name not in known and name.rpartition("/")[0] in cells
        )  # fmt: skip


def summary(manifest: dict[str, Any]) -> str:
    """What was gathered, in one line, and runs of mixed sources."""
    statuses = Counter(run["status"] for run in manifest["runs"].values())
    counts = ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
    sources = Counter(
        manifest["made"][run["made"]]["source_hash"] for run in manifest["runs"].values()
    )
    text = f"{len(manifest['runs'])} runs and experts ({counts})"
    if manifest["missing"]:
        text += f", {len(manifest['missing'])} missing"
    if len(sources) > 1:
        mixed = ", ".join(f"{name} ({n})" for name, n in sources.most_common())
        text += f"; of mixed sources: {mixed}"
    return text
