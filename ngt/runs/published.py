"""Published records: a Parquet file and a manifest with the results of a scale's complete runs.

<scale>.parquet   one row per run and evaluation, with the columns run and step and the columns in
                  `ngt.runs.folder.VALUES`; the run `<env>/expert` is an env's expert
<scale>.json      the manifest: the checksum of the Parquet file; the status, reference and speed of
                  each run; the runs' settings (`cells`); and the runs' code, library versions and
                  machine (`made`). Runs with the same settings share an entry in `cells`, and runs
                  made in the same way share an entry in `made`.

`ngt.runs.shipping.gather` writes both files.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ngt.errors import UserError
from ngt.files import read_json, sha256
from ngt.runs.folder import VALUES, Record
from ngt.runs.keys import RunKey, resolve_key
from ngt.runs.provenance import source_hash
from ngt.runs.status import Status
from ngt.settings.config import CellConfig, Config
from ngt.settings.difference import difference as first_difference
from ngt.settings.resolve import expert_ships, own_file, recorded, resolve_expert, short

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 2
COLUMNS = ("run", "step", *VALUES)
LATER = ("rank_correlation",)  # columns that records of earlier versions lack


def expert_name(env: str) -> str:
    """Return the name under which the records list an env's expert among the runs."""
    return f"{env}/expert"


def manifest_of(path: Path) -> Path:
    """Return the path of the manifest of a file of records."""
    return path.with_suffix(".json")


def names(path: Path) -> frozenset[str]:
    """Return the names of the runs and experts in published records, without checking these."""
    beside = manifest_of(path)
    data = read_json(beside) if beside.exists() else None
    runs = data.get("runs") if isinstance(data, dict) else None
    return frozenset(runs if isinstance(runs, dict) else ())


# ---------------------------------------------------------------- settings


def settings_hash(settings: dict[str, Any]) -> str:
    """Return the `config_hash` of a run's settings, which are given as plain data.

    The settings are not parsed, since a different version of the suite may have written them.
    """
    return short(sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()))


def difference(made: CellConfig, wanted: CellConfig) -> str:
    """Describe the first setting that differs between the records and the config, or return ""."""
    return first_difference(dataclasses.asdict(made), dataclasses.asdict(wanted), "the records")


class Published:
    """The runs in published records.

    other_settings: True to count a run as complete even if its settings differ from the config's.
    By default, such a run is stale.
    """

    def __init__(self, path: Path, config: Config, *, other_settings: bool = False) -> None:
        self.path, self.config, self.other_settings = path, config, other_settings
        self.manifest = self._manifest()
        self.frames = self._frames()
        self._differences: dict[Hashable, str] = {}

    @property
    def _command(self) -> str:
        """Return the command that writes these records. A study also needs its config file."""
        file = " --config YOUR.yaml" if self.config.study else ""
        return f"ngt publish --scale {self.config.scale}{file}"

    def _fail(self, what: str) -> UserError:
        return UserError(
            f"records {self.path}: {what}; restore them, or delete them and gather the "
            f"runs again with `{self._command}`"
        )

    def _manifest(self) -> dict[str, Any]:
        beside = manifest_of(self.path)
        for file in (self.path, beside):
            if not file.exists():
                raise UserError(
                    f"records: published, but {file} is missing; write `records: trained`, or "
                    f"gather the runs of scale {self.config.scale} with `{self._command}`"
                )
        data = read_json(beside)
        if not isinstance(data, dict) or "format" not in data:
            raise self._fail(f"{beside.name} is not a manifest")
        if data["format"] != FORMAT:
            raise self._fail(f"found format {data['format']}, expected {FORMAT}")
        if not {"sha256", "made", "cells", "runs"} <= data.keys():
            raise self._fail(f"{beside.name} is not a manifest")
        if data.get("scale") != self.config.scale:
            raise UserError(
                f"records {self.path}: their scale is {data.get('scale')}, but the config's is "
                f"{self.config.scale}; choose the records' scale with --scale or --config"
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
                raise self._fail(f"{beside.name}: run {name} has no valid provenance")
            if at[1] not in range(len(hashes)) or own.get("config_hash") != hashes[at[1]]:
                raise self._fail(f"{beside.name}: run {name} has no valid settings")
        return data

    def settings(self, name: str) -> dict[str, Any]:
        """Return the settings that a run or expert has in the records, as plain data."""
        return dict(self.manifest["cells"][self.manifest["runs"][name]["cell"]])

    def _cell(self, name: str) -> CellConfig:
        """Return the settings that a run has in the records."""
        try:
            return recorded(self.settings(name), f"cells[{self.manifest['runs'][name]['cell']}]")
        except UserError as error:
            raise self._fail(f"run {name}: its settings do not fit this version: {error}") from None

    def _frames(self) -> dict[str, pd.DataFrame]:
        """Return each run's evaluations, keyed by run name.

        The file's checksum is compared last, since each of the other checks names the faulty run.
        """
        import pandas as pd

        content = self.path.read_bytes()
        try:
            table = pd.read_parquet(io.BytesIO(content))
            later = {c: float("nan") for c in LATER if c not in table}
            table = table.assign(**later)[list(COLUMNS)]
        except Exception as error:  # pyarrow may raise any exception on a damaged file
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
            if known[name].get("status") != "diverged":  # a diverged run may have no evaluation
                raise self._fail(f"run {name} has no rows")
            frames[name] = table.iloc[:0].drop(columns="run")
        if sha256(content) != self.manifest["sha256"]:
            raise self._fail("its checksum differs from the manifest's")
        return frames

    def record(self, name: str) -> Record:
        """Return the record of a run or expert, whatever its settings."""
        own = self.manifest["runs"][name]
        return Record({**own, **self.manifest["made"][own["made"]]}, self.frames[name])

    def difference(self, key: RunKey) -> str:
        """Describe the first of a run's settings that differs from the config, or return ""."""
        if (own := self.manifest["runs"].get(str(key))) is None:
            return ""
        place = (key.cell, own["cell"])
        if place not in self._differences:
            found = difference(self._cell(str(key)), resolve_key(self.config, key))
            if found.startswith("demos_source "):
                if of_expert := self.of_expert(key.env):
                    found = f"its expert's {of_expert}"
                elif self._imitates_the_shipped_expert(key):
                    found = ""
            self._differences[place] = found
        return self._differences[place]

    def _imitates_the_shipped_expert(self, key: RunKey) -> bool:
        """Return True if a run differs from the config only in that the suite ships its expert.

        The shipped expert must have the settings of the expert that the config trains.
        """
        ships = dataclasses.replace(self.config, demos="shipped")
        return expert_ships(self.config, key.env) and not difference(
            self._cell(str(key)), resolve_key(ships, key)
        )

    def of_expert(self, env: str) -> str:
        """Describe the first setting of an env's expert that differs from the config, or return "".

        Also return "" if the config does not train an expert on the env.
        """
        name = expert_name(env)
        trained = self.config.demos == "trained" and not own_file(self.config, env)
        if name not in self.manifest["runs"] or not trained:
            return ""
        return difference(self._cell(name), resolve_expert(self.config, env))

    def differences(self, keys: Sequence[RunKey], envs: Sequence[str] = ()) -> dict[str, str]:
        """Describe, for runs and experts, the first setting that differs from the config.

        The result maps names, such as "expert <env>", to descriptions. Runs and experts whose
        settings do not differ are left out.

        keys: the runs that are compared.
        envs: the envs whose experts are compared.
        """
        found = {f"run {key}": self.difference(key) for key in keys}
        found |= {f"expert {env}": self.of_expert(env) for env in envs}
        return {name: differs for name, differs in found.items() if differs}

    def check(self, keys: Sequence[RunKey], envs: Sequence[str] = ()) -> None:
        """Raise UserError if settings differ from the config's, unless `other_settings` is set."""
        for name, differs in self.differences(keys, envs).items():
            if not self.other_settings:
                raise UserError(
                    f"records {self.path}: {name}: {differs}; change the config, train these runs "
                    f"(`records: trained`), or draw the records anyway with --other-settings"
                )

    def status(self, key: RunKey) -> Status:
        """Return a run's status.

        The run is stale if its settings differ from the config's, unless `other_settings` is set.
        """
        if (own := self.manifest["runs"].get(str(key))) is None:
            return Status("missing", "not among the published records")
        differs = self.difference(key)  # this refuses records whose model can't be loaded
        model = self.manifest["cells"][own["cell"]].get("model", "")
        other = self.manifest["made"][own["made"]].get("source_hash") != source_hash(model)
        note = f"step {own.get('step')}" + f", other settings: {differs}" * bool(differs)
        status = "stale" if differs and not self.other_settings else own.get("status", "part")
        return Status(status, note + ", other source" * other, other)

    def read(self, key: RunKey) -> Record:
        """Return a run's record. Raise UserError in the same cases as `check`."""
        self.check([key])
        return self.record(str(key))

    def read_expert(self, env: str) -> Record:
        """Return an expert's record. Raise UserError in the same cases as `check`."""
        if expert_name(env) not in self.manifest["runs"]:
            raise self._fail(f"expert {env} is missing")
        self.check([], [env])
        return self.record(expert_name(env))
