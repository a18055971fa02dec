"""Former results: how they are set aside and brought back, also after interrupted moves."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ngt.files import checksum, read_json, write_json
from ngt.runs import former
from ngt.runs.former import FILES, bring_back, find, former_of, set_aside
from ngt.runs.keys import Layout, RunKey
from ngt.runs.status import COMPLETE, status_of

KEY = RunKey("Pendulum-v1", "bc", "state-action", 20, 1, 0)
LAYOUT = Layout("test")


def write(folder: Path, config: str, source: str = "s", text: str = "") -> Path:
    """Write a complete run with these config and source hashes, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES[:-1]:
        (folder / name).write_text(f"{name} {config} {source} {text}")
    files = {name: checksum(folder / name) for name in FILES[:-1]}
    record: dict[str, Any] = {"key": KEY.record, "config_hash": config, "source_hash": source}
    write_json(folder / "run.json", {**record, "status": "finished", "files": files})
    return folder


def fits(config: str) -> Any:
    return lambda place: status_of(place, KEY.record, config).status in COMPLETE


def settings(folder: Path) -> Any:
    assert status_of(folder, KEY.record, read_json(folder / "run.json")["config_hash"])[0] in (
        COMPLETE
    )
    return read_json(folder / "run.json")["config_hash"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Layout("test", tmp_path / "results").run(KEY)


def test_a_result_goes_and_comes_back_in_place_of_another(run: Path, tmp_path: Path) -> None:
    write(run, "a")
    (run / "done.0").touch()
    place = set_aside(run)
    assert place == tmp_path / "results/test/former" / str(KEY) / "a-s"
    assert list(run.iterdir()) == [] and settings(place) == "a"
    assert set_aside(run) is None, "nothing is left to move"
    write(run, "b")
    assert find(run, fits("b")) is None and find(run, fits("a")) == place
    assert bring_back(run, place) == place.with_name("b-s")
    assert settings(run) == "a" and not place.exists()
    assert bring_back(run, place.with_name("b-s")) == place and settings(run) == "b"


@pytest.mark.parametrize("root", ["results", "runs/results", "experts", "runs/a/b/c"])
@pytest.mark.parametrize("method", ["bc", "runs", "experts"])
def test_names_of_folders_do_not_matter(tmp_path: Path, root: str, method: str) -> None:
    """Check methods and folders above the results that have the same name as a folder of runs."""
    layout, key = Layout("test", tmp_path / root), replace(KEY, method=method)
    place = set_aside(write(layout.run(key), "a"))
    assert place == layout.work / "former" / str(key) / "a-s"
    place = set_aside(write(layout.expert(key.env), "a"))
    assert place == layout.work / "former" / key.env / "expert" / "a-s"
    assert {found.name for found in former.listed(layout.work)} == {str(key), f"{key.env}/expert"}
    assert former_of(Path("elsewhere")) == Path("elsewhere/former")


def test_equal_settings_and_code_keep_both_results(run: Path) -> None:
    for text in ("first", "second", "third"):
        write(run, "a", text=text)
        set_aside(run)
    texts = {p.name: (p / "eval.csv").read_text() for p in former_of(run).iterdir()}
    assert {name: text.split()[-1] for name, text in texts.items()} == {
        "a-s": "first",
        "a-s-2": "second",
        "a-s-3": "third",
    }
    assert find(run, fits("a")) == former_of(run) / "a-s-3", "the newest result must be found"


@pytest.mark.parametrize("content", ["{", "[]", '{"config_hash": "../..", "source_hash": 3}'])
def test_a_damaged_record_is_kept_but_never_comes_back(run: Path, content: str) -> None:
    write(run, "a")
    (run / "run.json").write_text(content)
    place = set_aside(run)
    assert place == former_of(run) / "unknown-unknown"
    assert find(run, fits("a")) is None
    (one,) = former.listed(run.parents[4])
    assert (one.name, one.folder, one.status.status) == (str(KEY), place, "damaged")


@pytest.mark.parametrize("done", range(2 * len(FILES)))
def test_an_interrupted_move_leaves_a_complete_result(
    run: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    """Stop a move before each file is copied or deleted; check that the result can still be used.

    It must be found at once, since a run is trained again if no complete result of it is found.
    """
    replace, unlink = os.replace, Path.unlink

    def count() -> None:
        if next(calls) == done:
            raise KeyboardInterrupt

    def replacing(source: Path, target: Path) -> None:
        count()
        replace(source, target)

    def unlinking(self: Path, missing_ok: bool = False) -> None:
        if self.name in FILES:
            count()
        unlink(self, missing_ok)

    write(run, "a")
    for step in ("aside", "back"):
        calls = itertools.count()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, "replace", replacing)
            patch.setattr(Path, "unlink", unlinking)
            set_aside(run) if step == "aside" else bring_back(run, former_of(run) / "a-s")
        if not fits("a")(run):
            place = find(run, fits("a"))
            assert place == former_of(run) / "a-s"
            bring_back(run, place)
        assert settings(run) == "a"
        assert set_aside(run) == former_of(run) / "a-s", "the result must not be kept twice"
        assert len(list(former_of(run).rglob("run.json"))) == 1


def test_an_expert_has_its_own_place(tmp_path: Path) -> None:
    layout = Layout("test", tmp_path, study="mine")
    write(layout.expert("Pendulum-v1"), "a")
    place = set_aside(layout.expert("Pendulum-v1"))
    assert place == tmp_path / "mine/test/former/Pendulum-v1/expert/a-s"
