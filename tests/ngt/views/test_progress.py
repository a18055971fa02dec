"""The progress of runs, read from their folders while they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ngt.experience import demos
from ngt.runs.keys import Layout, RunKey
from ngt.runs.status import Status
from ngt.views import progress as views
from ngt.views.progress import Progress

ROOT = Path(__file__).resolve().parents[3]


def contents(root: Path) -> dict[Path, tuple[bytes, int]]:
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*") if p.is_file()}


def test_a_run_from_its_first_step_to_its_last(
    progress: Progress, layout: Layout, keys: list[RunKey], begin: Any, finish: Any
) -> None:
    first, second = keys
    assert progress.look() == [] and not progress.over
    assert set(progress.statuses.values()) == {"missing"}

    writer = begin(first)
    (run,) = progress.look()
    assert (run.name, run.curve) == (str(first), "ngt/state-action-demos1-rate20")
    assert (run.steps, run.episodes, run.complete) == (100, 2, False)
    assert progress.evaluations(run) == {} and views.training(run.train) == {}

    writer.evaluation(20, [-4.0, -2.0], [10, 20])
    writer.training({"step": 20, "update": 7, "loss": 0.25})
    before = contents(layout.root)
    (run,) = progress.look()
    assert progress.evaluations(run) == {20: {"return": -3.0, "length": 15.0}}
    assert views.training(run.train) == {20: {"step": 20.0, "update": 7.0, "loss": 0.25}}
    assert progress.statuses[first] == "part" and contents(layout.root) == before

    finish(writer)
    (run,) = progress.look()
    assert run.complete and progress.statuses == {first: "finished", second: "missing"}
    assert progress.evaluations(run) == {20: {"return": -3.0, "length": 15.0}}
    finish(begin(second), "diverged")
    progress.look()
    assert progress.over and progress.statuses[second] == "diverged"
    begin(second)  # as `ngt train --fresh` does
    assert [run.complete for run in progress.look()] == [True, False] and not progress.over


def test_a_complete_folder_is_checked_once(
    progress: Progress, keys: list[RunKey], begin: Any, finish: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in keys:
        finish(begin(key))
    progress.look()
    asked = []
    monkeypatch.setattr(
        views.Folders, "status", lambda _, key: asked.append(key) or Status("finished", "")
    )
    progress.look()
    assert asked == [] and progress.over
    finish(begin(keys[0]), "diverged")
    progress.look()
    assert asked == [keys[0]]


def test_stale_results_are_counted_but_not_shown(
    progress: Progress, keys: list[RunKey], begin: Any, finish: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(begin(keys[0]))
    monkeypatch.setattr(views.Folders, "status", lambda *_: Status("stale", ""))
    assert progress.look() == [] and progress.statuses[keys[0]] == "stale"


@pytest.mark.parametrize(
    ("rows", "known"),
    [
        ("", []),
        ("20,0,1.0,5\n", []),
        ("20,0,1.0,5\n20,1,3.0,5\n", [20]),
        ("20,0,1.0,5\n20,1,3.0,5\n40,0,1.0,5\n40,1,3", [20]),
        ("20,0,1.0,5\n20,1,3.0,5\n40,0,1.0,5\n\0\0\0\0\n40,1,3.0,5\n", [20]),
    ],
)
def test_rows_that_are_not_whole_yet_are_left_out(
    tmp_path: Path, rows: str, known: list[int]
) -> None:
    file = tmp_path / "eval.csv.part"
    file.write_text("step,episode,return,length\n" + rows)
    assert list(views.evaluations(file, 2)) == known
    assert list(views.evaluations(tmp_path / "missing", 2)) == []


def test_the_reference_comes_from_the_demonstrations(progress: Progress) -> None:
    data = demos.load(ROOT / "tests/data/Pendulum-v1.npz")
    progress.look()
    assert progress.reference("Pendulum-v1") == (data.random, data.expert)


def test_a_recording_to_be_replaced_is_no_reference(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.look()
    monkeypatch.setattr(views.Folders, "reference", lambda *_: {"demos": ""})
    assert progress.reference("Pendulum-v1") is None
