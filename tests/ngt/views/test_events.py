"""TensorBoard event files, which follow the CSV files of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngt.runs.keys import RunKey
from ngt.views.events import FILES, Events
from ngt.views.progress import Progress

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return every value that TensorBoard finds in a run's folder, by tag, in order."""
    reader = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    reader.Reload()
    return {
        tag: [(event.step, event.value) for event in reader.Scalars(tag)]
        for tag in reader.Tags()["scalars"]
    }


def follow(events: Events, progress: Progress) -> int:
    return sum(events.write(run, progress) for run in progress.look())


def test_a_resumed_follow_has_every_value_once(
    tmp_path: Path, progress: Progress, keys: list[RunKey], begin: Any, finish: Any
) -> None:
    """Follow with a new process in the middle, and with a run that resumes from a checkpoint."""
    folder = tmp_path / "tb" / str(keys[0])
    events, writer = Events(tmp_path / "tb"), begin(keys[0])
    assert follow(events, progress) == 0
    writer.evaluation(20, [-0.1, -0.2], [10, 21])
    writer.training({"step": 20, "update": 7, "loss": float("nan")})
    assert (follow(events, progress), follow(events, progress)) == (2, 0)
    checkpoint = writer.state()
    writer.evaluation(40, [1e-9, 3e4], [10, 20])
    again = Events(tmp_path / "tb")
    assert (follow(again, progress), follow(again, progress)) == (1, 0)

    resumed = begin(keys[0])
    assert follow(again, progress) == 0
    resumed.restore(checkpoint)
    for step, returns in ((40, [1e-9, 3e4]), (60, [5.0, 6.0])):
        resumed.evaluation(step, returns, [10, 20])
        assert follow(Events(tmp_path / "tb"), progress) == int(step == 60)
    finish(resumed)
    assert follow(Events(tmp_path / "tb"), progress) == 0
    assert len(list(folder.glob(FILES))) == 3

    found = scalars(folder)
    means = {20: np.mean([-0.1, -0.2]), 40: np.mean([1e-9, 3e4]), 60: 5.5}
    assert found["eval/return"] == [(step, np.float32(mean)) for step, mean in means.items()]
    assert found["eval/length"] == [(20, 15.5), (40, 15.0), (60, 15.0)]
    assert found["train/update"] == [(20, 7.0)] and np.isnan(found["train/loss"][0][1])
    assert len(found) == 4, "one tag for each column besides step and episode"


def test_a_run_that_is_trained_anew_replaces_its_former_rows(
    tmp_path: Path, progress: Progress, keys: list[RunKey], begin: Any
) -> None:
    events = Events(tmp_path / "tb")
    for returns in ((1.0, 2.0), (3.0,)):
        writer = begin(keys[0])
        for step, value in zip((20, 40), returns, strict=False):
            writer.evaluation(step, [value, value], [5, 5])
        follow(events, progress)
    assert scalars(tmp_path / "tb" / str(keys[0]))["eval/return"] == [(20, 3.0)]
    assert follow(Events(tmp_path / "tb"), progress) == 0


def test_a_file_cut_off_by_a_kill(
    tmp_path: Path, progress: Progress, keys: list[RunKey], begin: Any
) -> None:
    begin(keys[0]).evaluation(20, [1.0, 2.0], [5, 5])
    follow(Events(tmp_path / "tb"), progress)
    (file,) = (tmp_path / "tb" / str(keys[0])).glob(FILES)
    file.write_bytes(file.read_bytes()[:-3])
    assert follow(Events(tmp_path / "tb"), progress) == 1
    assert scalars(file.parent)["eval/return"] == [(20, 1.5)]


def test_a_complete_run_drops_the_rows_of_a_longer_former_run(
    tmp_path: Path, progress: Progress, keys: list[RunKey], begin: Any, finish: Any
) -> None:
    """Train a run again with fewer steps. Its common rows are the same, since the seed is."""
    for steps in ((20, 40, 60), (20, 40)):
        writer = begin(keys[0])
        for step in steps:
            writer.evaluation(step, [float(step)] * 2, [5, 5])
            writer.training({"step": step, "update": step})
            if len(steps) == 2:  # in training, a run that resumes has fewer rows for a while
                assert follow(Events(tmp_path / "tb"), progress) == 0
        finish(writer)
        written = follow(Events(tmp_path / "tb"), progress)
        assert written == 2 * len(steps)
    found = scalars(tmp_path / "tb" / str(keys[0]))
    assert found["eval/return"] == found["train/update"] == [(20, 20.0), (40, 40.0)]
    assert follow(Events(tmp_path / "tb"), progress) == 0
