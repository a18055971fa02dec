"""The writer of a run's folder, which holds a fixed set of files.

config.json   the key and the resolved settings
eval.csv      one row per episode: step, episode, return, length
train.csv     one row per log interval: step, update and mean metrics
policy.safetensors
run.json      status, library versions, source hash and times; written last and atomically, so a
              run with this file is complete
"""

import csv
import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ngt.agent import policy
from ngt.files import checksum, write_json
from ngt.runs.former import set_aside
from ngt.runs.provenance import provenance
from ngt.runs.status import PART
from ngt.settings.config import CellConfig
from ngt.settings.resolve import config_hash
from ngt.state import State

EVAL_FIELDS = ("step", "episode", "return", "length")
ROWS = ("eval.csv", "train.csv")


class RunWriter:
    """The writer of one run's folder.

    While the run trains, the names of its files end in `.part`. An earlier result in the folder
    therefore stays until the new run is complete.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any], cell: CellConfig) -> None:
        self.folder, self.key, self.cell = folder, dict(key), cell
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob(".*.tmp"):  # a process that was killed left it (ngt.files.atomic)
            file.unlink()
        write_json(self._part("config.json"), {"key": self.key, **dataclasses.asdict(cell)})
        self._files = {  # closed by `finish`
            name: open(self._part(name), "w", encoding="utf-8", newline="")  # noqa: SIM115
            for name in ROWS
        }
        self._eval, self._train = (
            csv.writer(file, lineterminator="\n") for file in self._files.values()
        )
        self._eval.writerow(EVAL_FIELDS)
        self._train_fields: list[str] = []
        self._clock = time.monotonic()
        self.provenance = provenance(cell.model)  # read now, since the code may change during a run

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}{PART}"

    def state(self) -> State:
        """Return the rows that were written so far, and the seconds since the run started."""
        self._flush()
        texts = {name: self._part(name).read_text(encoding="utf-8") for name in ROWS}
        return State(data={**texts, "seconds": round(time.monotonic() - self._clock, 1)})

    def restore(self, state: State) -> None:
        """Replace the rows that were written so far with the rows of an interrupted run."""
        for name, file in self._files.items():
            file.seek(0)
            file.truncate()
            file.write(state.data[name])
        header = state.data["train.csv"].partition("\n")[0]
        self._train_fields = header.split(",") if header else []
        self._clock -= state.data["seconds"]

    def evaluation(self, step: int, returns: Sequence[float], lengths: Sequence[int]) -> None:
        """Write one row of eval.csv per episode."""
        for episode, (value, length) in enumerate(zip(returns, lengths, strict=True)):
            self._eval.writerow([step, episode, repr(float(value)), int(length)])
        self._flush()

    def training(self, row: Mapping[str, float | int]) -> None:
        """Write one row of train.csv; the first row fixes the columns."""
        if not self._train_fields:
            self._train_fields = list(row)
            self._train.writerow(self._train_fields)
        values = (row[name] for name in self._train_fields)
        self._train.writerow([v if isinstance(v, int) else f"{v:.6g}" for v in values])
        self._flush()

    def _flush(self) -> None:
        for file in self._files.values():
            try:
                file.flush()
            except OSError as error:  # on a full disk, the error does not name the file
                raise OSError(error.errno, error.strerror, file.name) from None

    def finish(self, tensors: dict[str, Tensor], record: Mapping[str, Any]) -> None:
        """Complete the run, and replace the folder's earlier result if there is one.

        run.json is replaced last. The earlier result becomes a former result (see ngt.runs.former).
        It is moved only after all files of the new run are written, so a full disk does not damage
        the earlier result.
        """
        self._flush()
        for file in self._files.values():
            os.fsync(file.fileno())
            file.close()
        policy.save(self._part("policy.safetensors"), tensors, self.cell.env, self.cell.sac)
        names = ("config.json", *ROWS, "policy.safetensors")
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
                **_gpu(str(record.get("device"))),
            },
        )
        set_aside(self.folder)
        for name in (*names, "run.json"):
            self._part(name).replace(self.folder / name)


def _gpu(device: str) -> dict[str, str]:
    """Return the entry of run.json with the name of a CUDA device, or no entry for other devices.

    The entry tells apart GPUs in machines whose entry `machine` is the same.
    """
    return {"gpu": torch.cuda.get_device_name(device)} if device.startswith("cuda") else {}
