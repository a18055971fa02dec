"""TensorBoard event files of training runs, in one folder per run.

Each evaluation becomes one event with `eval/<column>` tags, whose values are means over the
evaluation's episodes. Each row of train.csv becomes one event with `train/<column>` tags. Values
are stored in single precision. Rows that a run's event files already contain are not written again.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ngt.foreign.extras import library
from ngt.views.progress import Progress, Stamp, Started, stamp, training

FILES = "events.out.tfevents.*"  # TensorBoard and other readers recognise this name
VERSION = "brain.Event:2"  # version of the format, which a file's first event states

Written = dict[tuple[str, int], int]  # ("eval" or "train", step) -> hash of the row


class Events:
    """The TensorBoard event files in a folder, with methods that append events to them."""

    def __init__(self, folder: Path) -> None:
        where, extra = "--tensorboard", "tensorboard"
        self.folder = folder
        proto = "tensorboard.compat.proto"
        self.event = library(f"{proto}.event_pb2", where, extra)
        self.summary = library(f"{proto}.summary_pb2", where, extra).Summary
        self.record = library("tensorboard.summary.writer.record_writer", where, extra).RecordWriter
        loading = library("tensorboard.backend.event_processing.event_file_loader", where, extra)
        self.load = loading.LegacyEventFileLoader
        self._written: dict[str, Written] = {}
        self._stamps: dict[str, tuple[Stamp, Stamp]] = {}
        self._files: dict[str, Path] = {}

    def write(self, run: Started, progress: Progress) -> int:
        """Write a run's new rows, and return the number of new rows.

        If a row that was written before has changed, or if a complete run lacks it, the run has
        been trained again. In that case, write an event that tells readers to drop the earlier
        rows, and write all rows again. A run in training may lack rows for a while, since it writes
        its files again from a checkpoint when it resumes.
        """
        stamps = stamp(run.eval), stamp(run.train)
        if self._stamps.get(run.name) == stamps:
            return 0
        kinds = {"eval": progress.evaluations(run), "train": training(run.train)}
        rows = {
            (kind, step): {f"{kind}/{name}": value for name, value in row.items() if name != "step"}
            for kind, table in kinds.items()
            for step, row in table.items()
        }
        if run.name not in self._written:
            self._written[run.name] = self.read(run.name)
        written = self._written[run.name]
        content = []
        changed = any(written.get(key, digest(row)) != digest(row) for key, row in rows.items())
        if changed or (run.complete and written.keys() - rows.keys()):
            written.clear()
            start = self.event.SessionLog(status=self.event.SessionLog.START)
            content.append(self.event.Event(wall_time=time.time(), step=0, session_log=start))
        new = sorted(rows.keys() - written.keys(), key=lambda key: (key[1], key[0]))
        content += [self._event(step, rows[kind, step]) for kind, step in new]
        if content:
            self._append(run.name, content)
        written |= {key: digest(rows[key]) for key in new}
        self._stamps[run.name] = stamps
        return len(new)

    def _event(self, step: int, row: Mapping[str, float]) -> Any:
        values = [self.summary.Value(tag=tag, simple_value=value) for tag, value in row.items()]
        return self.event.Event(
            wall_time=time.time(), step=step, summary=self.summary(value=values)
        )

    def _append(self, name: str, content: list[Any]) -> None:
        """Append events to the event file that this process writes for a run.

        Each process starts a new file.
        """
        if name not in self._files:
            now = time.time()
            title = FILES.replace("*", f"{now:.6f}.{socket.gethostname()}.{os.getpid()}")
            self._files[name] = self.folder / name / title
            self._files[name].parent.mkdir(parents=True, exist_ok=True)
            content = [self.event.Event(wall_time=now, file_version=VERSION), *content]
        with open(self._files[name], "ab") as file:
            writer = self.record(file)
            for event in content:
                writer.write(event.SerializeToString())

    def read(self, name: str) -> Written:
        """Read a run's event files, and return the hashes of the rows in these files."""
        found: Written = {}
        for event in self._events(name):
            if event.HasField("session_log"):
                found.clear()
            row = {value.tag: value.simple_value for value in event.summary.value}
            if row:
                found[next(iter(row)).partition("/")[0], event.step] = digest(row)
        return found

    def _events(self, name: str) -> Iterator[Any]:
        for file in sorted((self.folder / name).glob(FILES)):
            yield from self.load(str(file)).Load()


def digest(row: Mapping[str, float]) -> int:
    """Return a hash of a row's names and its values in single precision."""
    return hash((*row, np.array(list(row.values()), np.float32).tobytes()))
