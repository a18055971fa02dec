"""Tests of `ngt runs`: its table, filters and former results."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ngt.runs.keys import RunKey, run_table
from ngt.settings.load import load


def test_runs_counts(ngt: Any, demos_file: str) -> None:
    table = run_table(load({"scale": "test"}))
    said = ngt("runs", "--scale", "test")
    assert said[-2] == f"{len(table)} runs at scale test: {len(table)} missing"
    assert f"has been trained yet; to train one: `ngt train {table[0]} --scale test`" in said[-1]
    Path("own file.yaml").write_text("scale: test")
    options = ["--config", "own file.yaml", "--set", "train.steps=7"]
    hint = ngt("runs", *options, "--results", "elsewhere")[-1]
    assert f"{table[0]} {shlex.join(options)} --results elsewhere`" in hint
    assert [line.split() for line in said[:-2]] == [["missing", str(key)] for key in table]
    assert ngt("runs", "--scale", "test", "--status", "finished")[1:] == said[-1:]

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


def test_the_papers_main_figure(ngt: Any) -> None:
    keys = ngt("runs", "--scale", "paper", "--figure", "main_figure", "--keys")
    assert sum(key.split("/")[1] in ("ngt", "bc", "bc-full") for key in keys) == 216


def test_a_former_result_is_listed_with_what_differs(ngt: Any, demos_file: str) -> None:
    key = "Pendulum-v1/bc/state-action-demos1-rate20/seed0"
    for gamma in ("0.5", "0.9"):
        ngt("train", key, "--demos", demos_file, "--scale", "test", "--set", f"sac.gamma={gamma}")
    line, _ = ngt("runs", "--former", "--scale", "test")
    assert line.split()[1] == key and line.endswith(
        "; sac.gamma is 0.5 in the result and 0.99 in the config"
    )


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
