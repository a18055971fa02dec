"""Tests of `ngt runs`: its table, filters and watching."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ngt.runs.keys import RunKey, run_table
from ngt.settings.load import load

KEY = "Pendulum-v1/ngt/state-action-demos{}-rate20/seed{}"
SHORT = ["--scale", "test", "--set", "train.steps=40", "--set", "train.eval_every=20"]
SHORT += ["--set", "train.log_every=20", "--set", "train.eval_episodes=1"]
SHORT += ["--set", "envs.Pendulum-v1.demos=''"]  # use recorded demos, not those of scale `test`


def test_runs_counts(ngt: Any, demos_file: str) -> None:
    table = run_table(load({"scale": "test"}))
    said = ngt("runs", "--scale", "test")
    assert said[-1] == f"{len(table)} runs at scale test: {len(table)} missing"
    assert [line.split() for line in said[:-1]] == [["missing", str(key)] for key in table]

    done = str(next(key for key in table if key.method == "ngt"))
    own = ["--scale", "test", "--set", f"envs.Pendulum-v1.demos={demos_file}"]
    steps = [*own, "--set", "train.steps=40"]
    ngt("train", done, *steps)
    said = ngt("runs", *own)
    assert said[-1] == f"{len(table)} runs at scale test: 1 stale, {len(table) - 1} missing"
    assert sum(line.startswith("stale") for line in said) == 1
    assert ngt("runs", *steps, "--status", "finished", "--keys") == [done]
    assert ngt("runs", *steps, "--other-source", "--keys") == []
    missing = ngt("runs", *steps, "--status", "missing", "--keys")
    assert missing == [str(key) for key in table if str(key) != done]
    assert all(RunKey.parse(line) for line in missing), "`ngt train` must accept the printed keys"


def test_runs_of_a_figure(ngt: Any) -> None:
    common = ["runs", "--scale", "test", "--keys"]
    sets = ["--set", "figures.one.methods=[bc]", "--set", "figures.one.envs=[Reacher-v5]"]
    sets += ["--set", "figures.one.demos=[1]", "--set", "figures.one.seeds=[0, 1]"]
    one = ngt(*common, *sets, "--figure", "one")
    assert one == [f"Reacher-v5/bc/state-action-demos1-rate20/seed{s}" for s in (0, 1)]
    both = ngt(*common, *sets, "--figure", "one", "--figure", "main_figure")
    assert set(both) == set(one) | set(ngt(*common, "--figure", "main_figure"))


def test_runs_watched_until_all_are_complete(
    ngt: Any, demos_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check three reports with sleeps in between: for no runs, part of a run, and all runs."""
    keys = [KEY.format(1, seed) for seed in (0, 1)]
    own = [*SHORT, "--set", f"envs.Pendulum-v1.demos={demos_file}", "--set", "train.steps=80"]
    for name, value in (("methods", "[ngt]"), ("demos", "[1]"), ("seeds", "[0, 1]")):
        own += ["--set", f"figures.main_figure.{name}={value}"]
    part = Path("results/test/runs") / keys[1] / "eval.csv.part"

    def some() -> None:
        part.parent.mkdir(parents=True)
        part.write_text("step,episode,return,length\n20,0,-9.5,200\n")

    said: list[str] = []
    monkeypatch.setattr("ngt.commands.runs.say", lambda text: said.append(text))
    happens = iter([some, lambda: ngt("train", *keys, *own)])

    def sleep(seconds: float) -> None:
        assert seconds == 7
        said.append("slept")
        next(happens)()

    monkeypatch.setattr(time, "sleep", sleep)
    ngt("runs", *own, "--figure", "main_figure", "--watch", "7")
    looks = "\n".join(said).split("slept\n")
    assert [look.splitlines()[0][10:] for look in looks[:2]] == [
        "2 runs at scale test: 2 missing",
        "2 runs at scale test: 1 part, 1 missing",
    ]
    assert looks[1].splitlines()[1:] == [
        "  Pendulum-v1/ngt/state-action-rate20: 1 at step 20 of 80, 25%"
    ]
    assert said[-1].endswith("2 runs at scale test: 2 finished")


def test_the_papers_main_figure(ngt: Any) -> None:
    keys = ngt("runs", "--scale", "paper", "--figure", "main_figure", "--keys")
    assert sum(key.split("/")[1] in ("ngt", "bc", "bc-full") for key in keys) == 216


def test_former_results_are_removed_only_on_request(ngt: Any, refused: Any, tmp_path: Path) -> None:
    assert "add --former" in refused("runs", "--remove")
    assert "--former: takes only" in refused("runs", "--former", "--keys")
    work = tmp_path / "results/test"
    record = '{"key": {}, "status": "finished", "config_hash": "a"}'
    for state, text in (("finished", record), ("damaged", "{")):
        for key in ("env/m/state-action-demos1-rate20/seed0", "env/expert"):
            place = work / "former" / key / state
            place.mkdir(parents=True)
            (place / "eval.csv").touch()
            (place / "run.json").write_text(text)
    table = ngt("runs", "--former", "--scale", "test")
    assert [line.split()[:2] for line in table[:-1]] == [
        [state, key]
        for key in ("env/expert", "env/m/state-action-demos1-rate20/seed0")
        for state in ("damaged", "finished")
    ]
    said = ngt("runs", "--former", "--status", "damaged", "--remove", "--scale", "test")
    assert said[-1].startswith("2 former results") and said[-1].endswith("deleted")
    left = sorted(p.parent.name for p in work.rglob("run.json"))
    assert left == ["finished", "finished"]
