"""Tests of `ngt watch`: looks at runs in training, which leave no trace in their results."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ngt.commands.views import watch
from ngt.files import checksum
from ngt.runs.keys import Layout, run_table
from ngt.settings.load import load
from ngt.views.events import Events
from ngt.views.progress import Progress
from ngt.views.sketch import draw

KEYS = [f"Pendulum-v1/ngt/state-action-demos1-rate20/seed{seed}" for seed in (0, 1)]
SHORT = ["--scale", "test", "--set", "train.steps=60", "--set", "train.eval_every=20"]
SHORT += ["--set", "train.log_every=20", "--set", "train.eval_episodes=1"]
for name, value in (("methods", "[ngt]"), ("demos", "[1]"), ("seeds", "[0, 1]")):
    SHORT += ["--set", f"figures.main_figure.{name}={value}"]
ONE = [*SHORT, "--figure", "main_figure"]


def part(folder: str = KEYS[1]) -> None:
    """Write the files of a run in training."""
    place = Path("results/test/runs") / folder
    place.mkdir(parents=True)
    (place / "config.json.part").write_text('{"train": {"steps": 60, "eval_episodes": 1}}')
    (place / "eval.csv.part").write_text("step,episode,return,length\n20,0,-900.5,200\n")
    (place / "train.csv.part").write_text("step,update,loss\n20,20,0.5\n")


def test_without_a_terminal_it_draws_once(ngt: Any) -> None:
    said, hint = ngt("watch", *ONE)
    assert said[10:] == "2 runs at scale test: 2 missing"
    assert f"none of these runs has been trained yet; to train one: `ngt train {KEYS[0]}" in hint
    part()
    head, env, line = ngt("watch", *ONE)
    assert head[10:] == "2 runs at scale test: 1 part, 1 missing"
    assert env.startswith("Pendulum-v1: mean score") and "1/2   17% |" in line


def test_a_terminal_shows_the_newest_look(ngt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a look replaces the former one, and that the command ends with the last run."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    looks: list[str] = []
    monkeypatch.setattr(watch, "say", looks.append)
    happens = iter([part, lambda: ngt("train", *KEYS, *SHORT)])

    def sleep(seconds: float) -> None:
        assert seconds == 7
        next(happens)()

    monkeypatch.setattr(watch, "time", SimpleNamespace(sleep=sleep, strftime=time.strftime))
    ngt("watch", *ONE, "--every", "7")
    assert [look.startswith("\x1b[H") for look in looks] == [True] * 3
    assert "2 missing" in looks[0] and "1 part, 1 missing" in looks[1]
    assert "2 finished" in looks[2] and "2/2  100%" in looks[2]


def test_event_files_grow_until_the_user_stops(
    ngt: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    part()

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "time", SimpleNamespace(sleep=stop, strftime=time.strftime))
    for added in ("2 rows", "no row"):
        with pytest.raises(SystemExit) as stopped:
            ngt("watch", *ONE, "--tensorboard", "results/tensorboard")
        assert stopped.value.code == 130
        hint, said = capsys.readouterr().out.splitlines()
        assert hint.endswith("another terminal: tensorboard --logdir results/tensorboard")
        assert said.endswith(f"1 part, 1 missing; {added} added to results/tensorboard")
    assert len(list(Path("results/tensorboard", KEYS[1]).iterdir())) == 1


def test_only_looks_that_find_something_new_print_a_line(
    ngt: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")

    def add(row: str) -> None:
        with open(Path("results/test/runs", KEYS[1], "eval.csv.part"), "a") as file:
            file.write(row)

    happens = iter([part, lambda: None, lambda: add("40,0,-800.5,200\n"), lambda: None])

    def sleep(seconds: float) -> None:
        happen = next(happens, None)
        if happen is None:
            raise KeyboardInterrupt
        happen()

    monkeypatch.setattr(watch, "time", SimpleNamespace(sleep=sleep, strftime=lambda _: "now"))
    with pytest.raises(SystemExit):
        ngt("watch", *ONE, "--tensorboard", "tb")
    _, first, hint, *rest = capsys.readouterr().out.splitlines()
    assert first == "now  2 runs at scale test: 2 missing; no row added to tb"
    assert "to train one: `ngt train" in hint
    assert rest == [
        f"now  2 runs at scale test: 1 part, 1 missing; {added} added to tb"
        for added in ("2 rows", "1 row")
    ]


def test_without_tensorboard_a_line_says_what_to_install(
    refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    line = refused("watch", "--scale", "test", "--tensorboard", "tb")
    assert "--tensorboard: needs the package tensorboard" in line
    assert "pip install tensorboard (the extra `tensorboard`)" in line and not Path("tb").exists()


def test_a_file_is_no_folder_for_tensorboard(refused: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    line = refused("watch", "--scale", "test", "--tensorboard", "mine.txt")
    assert "--tensorboard: mine.txt is not a folder; give another name" in line


@pytest.mark.slow
def test_training_gives_the_same_bytes_while_it_is_watched(ngt: Any, tmp_path: Path) -> None:
    """Train with and without a follower that looks many times a second."""
    pytest.importorskip("tensorboard")
    ngt("train", KEYS[0], *SHORT)
    runs = Path("results/test/runs")
    names = ("config.json", "eval.csv", "train.csv", "policy.safetensors")
    alone = {name: checksum(runs / KEYS[0] / name) for name in names}
    shutil.rmtree("results")

    config = load({"scale": "test"})
    progress = Progress(Layout.of(config), config, run_table(config, ["main_figure"]))
    follower, done, seen = Events(tmp_path / "tb"), threading.Event(), set()

    def follow() -> None:
        while not done.wait(0.05):
            begun = progress.look()
            seen.update(run.complete for run in begun if follower.write(run, progress))
            draw(progress, begun, "", 80, None)

    thread = threading.Thread(target=follow)
    thread.start()
    ngt("train", KEYS[0], *SHORT)
    done.set()
    thread.join()
    assert False in seen, "the follower must have seen rows of the unfinished run"
    assert {name: checksum(runs / KEYS[0] / name) for name in names} == alone
    assert {file.name for file in (runs / KEYS[0]).iterdir()} >= {*names, "run.json"}
