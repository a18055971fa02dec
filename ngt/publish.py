"""Records that ship: a scale's complete runs in one Parquet file, and a manifest beside it.

<scale>.parquet   one row a (run, evaluation): run, step and what `ngt.folders.VALUES` names; an
                  env's expert is the run `<env>/expert`
<scale>.json      checksum of the table; each run's status, settings, references and speed; and,
                  once for all runs that share it, the code, versions and machine that made it
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngt.config import Config, config_hash
from ngt.errors import UserError
from ngt.files import atomic, read_json, write_json
from ngt.folders import VALUES, Folders, Record
from ngt.records import source_hash
from ngt.runs import Layout, RunKey, resolve_key, run_table
from ngt.states import Status

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
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
    runs = {}
    for name, record in gathered.items():
        shared = {field: record.run.get(field) for field in SHARED}
        if shared not in made:
            made.append(shared)
        own = {field: record.run[field] for field in OWN if field in record.run}
        runs[name] = {**own, "made": made.index(shared)}
    return {
        "format": FORMAT,
        "scale": config.scale,
        "sha256": hashlib.sha256(content).hexdigest(),
        "missing": sorted({str(key) for key in run_table(config)} - set(gathered)),
        "made": made,
        "runs": runs,
    }


class Published:
    """Runs out of the records that ship."""

    def __init__(self, path: Path, config: Config) -> None:
        self.path, self.config = path, config
        self.manifest = self._manifest()
        self.frames = self._frames()

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
        if not isinstance(data, dict) or not {"format", "sha256", "made", "runs"} <= data.keys():
            raise self._fail(f"{beside.name} is not a manifest")
        if data["format"] != FORMAT:
            raise self._fail(f"format {data['format']} is not {FORMAT}")
        if data.get("scale") != self.config.scale:
            raise UserError(
                f"records {self.path}: of scale {data.get('scale')}, asked for scale "
                f"{self.config.scale}; choose that one with --scale or --config"
            )
        made, runs = data["made"], data["runs"]
        if not (isinstance(made, list) and all(isinstance(m, dict) for m in made)):
            raise self._fail(f"{beside.name}: made is not a list of mappings")
        if not isinstance(runs, dict):
            raise self._fail(f"{beside.name}: runs is not a mapping")
        for name, own in runs.items():
            at = own.get("made") if isinstance(own, dict) else None
            if type(at) is not int or at not in range(len(made)):
                raise self._fail(f"{beside.name}: run {name} does not say what made it")
        return data

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

    def status(self, key: RunKey) -> Status:
        """Complete, or missing; other settings than the config's are said, not refused."""
        own = self.manifest["runs"].get(str(key))
        if own is None:
            return Status("missing", "not among the published records")
        other = self.manifest["made"][own["made"]].get("source_hash") != source_hash()
        same = own.get("config_hash") == config_hash(resolve_key(self.config, key))
        note = f"step {own.get('step')}" + ", other settings" * (not same)
        return Status(own.get("status", "part"), note + ", other source" * other, other)

    def read(self, key: RunKey) -> Record:
        """A run's record."""
        return self._record(str(key))

    def read_expert(self, env: str) -> Record:
        """An expert's record."""
        if expert_name(env) not in self.manifest["runs"]:
            raise self._fail(f"expert {env} is not among them")
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
