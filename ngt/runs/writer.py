"""A run's folder: a closed set of files, `run.json` last.

config.json   the key and the resolved settings
eval.csv      step, episode, return, length
train.csv     step, update and the metrics of the interval, one row a log
policy.safetensors
run.json      status, versions, source, times; written last and atomically, so that its presence
              means the run is complete
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import Tensor

from ngt.agent import policy
from ngt.files import write_json
from ngt.runs.state import PART, checksum
from ngt.settings.config import CellConfig, config_hash

PACKAGE = Path(__file__).resolve().parents[1]
EVAL_FIELDS = ("step", "episode", "return", "length")

# Modules of the package that no training imports: what they say of runs decides no number of one.
ASIDE = (
    "bench", "cli", "folders", "gpucheck", "publish", "reference", "results", "ship", "theory",
)  # fmt: skip


def drop_receipts(done: Path) -> None:
    """Remove the workflow's receipts `<done>.<hash>`: what they stood for is replaced."""
    for receipt in done.parent.glob(f"{done.name}.*"):
        receipt.unlink()


@functools.cache
def source_hash() -> str:
    """Hash of the code that decides a run's numbers: the package and the baselines beside it."""
    digest = hashlib.sha256()
    for folder in (PACKAGE, PACKAGE.parent / "baselines"):
        for file in sorted(folder.glob("*.py")):
            if folder == PACKAGE and file.stem in ASIDE:
                continue
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def provenance() -> dict[str, Any]:
    """Source, versions and machine, as every run.json states them."""

    def git(*args: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *args],
                cwd=PACKAGE,
                capture_output=True,
                encoding="utf-8",
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None  # not a checkout
        return done.stdout.strip()

    def version(name: str) -> str | None:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return None

    status = git("status", "--porcelain", "--", ".", "../baselines")
    libraries = ("torch", "numpy", "gymnasium", "mujoco", "dm-control", "shimmy")
    return {
        "commit": git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "source_hash": source_hash(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in libraries},
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "")


class RunWriter:
    """Writes one run's folder as it goes.

    Files have `.part` behind their names until the run is complete, so that a run that is trained
    again keeps its former result until then. so_far: `state` of a writer that was interrupted.
    """

    def __init__(
        self, folder: Path, key: Mapping[str, Any], cell: CellConfig,
        so_far: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.key, self.cell = folder, dict(key), cell
        folder.mkdir(parents=True, exist_ok=True)
        write_json(self._part("config.json"), {"key": self.key, **dataclasses.asdict(cell)})
        self._files: list[TextIO] = []
        self._eval = self._csv("eval.csv", so_far)
        if so_far is None:
            self._eval.writerow(EVAL_FIELDS)
        self._train = self._csv("train.csv", so_far)
        header = "" if so_far is None else so_far["train.csv"].partition("\n")[0]
        self._train_fields = header.split(",") if header else []
        self._clock = time.monotonic() - (0.0 if so_far is None else so_far["seconds"])
        self.provenance = provenance()  # of the code that runs, not of what it becomes meanwhile

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}{PART}"

    def _csv(self, name: str, so_far: Mapping[str, Any] | None) -> Any:
        file = open(self._part(name), "w", encoding="utf-8", newline="")  # noqa: SIM115 - closed by `finish`
        file.write("" if so_far is None else so_far[name])
        self._files.append(file)
        return csv.writer(file, lineterminator="\n")

    def state(self) -> dict[str, Any]:
        """The records so far and the seconds that they took, as plain data."""
        self._flush()
        texts = {
            name: self._part(name).read_text(encoding="utf-8") for name in ("eval.csv", "train.csv")
        }
        return {**texts, "seconds": round(time.monotonic() - self._clock, 1)}

    def evaluation(self, step: int, returns: Sequence[float], lengths: Sequence[int]) -> None:
        """One row an episode."""
        for episode, (value, length) in enumerate(zip(returns, lengths, strict=True)):
            self._eval.writerow([step, episode, repr(float(value)), int(length)])
        self._flush()

    def training(self, row: Mapping[str, float | int]) -> None:
        """One row of train.csv; the first row fixes the columns."""
        if not self._train_fields:
            self._train_fields = list(row)
            self._train.writerow(self._train_fields)
        values = (row[name] for name in self._train_fields)
        self._train.writerow([v if isinstance(v, int) else f"{v:.6g}" for v in values])
        self._flush()

    def _flush(self) -> None:
        for file in self._files:
            try:
                file.flush()
            except OSError as error:  # a full disk: the file's own errors do not name it
                raise OSError(error.errno, error.strerror, file.name) from None

    def finish(self, tensors: dict[str, Tensor], record: Mapping[str, Any]) -> None:
        """Put the run in place of what the folder held; run.json last.

        All that can fail for want of space is written before the former run is touched.
        """
        self._flush()
        for file in self._files:
            os.fsync(file.fileno())
            file.close()
        policy.save(self._part("policy.safetensors"), tensors, self.cell.env, self.cell.sac)
        names = ("config.json", "eval.csv", "train.csv", "policy.safetensors")
        write_json(
            self._part("run.json"),
            {
                "key": self.key,
                "config_hash": config_hash(self.cell),
                **record,
                "files": {name: checksum(self._part(name)) for name in names},
                "wall_seconds": round(time.monotonic() - self._clock, 1),
                "threads": torch.get_num_threads(),
                **self.provenance,
            },
        )
        drop_receipts(self.folder / "done")
        (self.folder / "run.json").unlink(missing_ok=True)  # from here on the former run is gone
        for name in (*names, "run.json"):
            self._part(name).replace(self.folder / name)
