"""Tests of `ngt train`: which runs it skips, replaces, refuses and trains together (packs)."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ngt.experience import demos
from ngt.files import read_json
from ngt.settings.load import load
from ngt.settings.resolve import config_hash, file_hash, resolve_expert
from ngt.training.trainer import Trainer

ROOT = Path(__file__).resolve().parents[3]
ALREADY = (
    "run {0}: finished already in results/test/runs/{0}; to train it again, pass --fresh (in "
    "Python, move this folder away)"
)
KEY = "Pendulum-v1/ngt/state-action-demos{}-rate20/seed{}"
SHORT = ["--scale", "test", "--set", "train.steps=40", "--set", "train.eval_every=20"]
SHORT += ["--set", "train.log_every=20", "--set", "train.eval_episodes=1"]
SHORT += ["--set", "envs.Pendulum-v1.demos=''"]  # use recorded demos, not those of scale `test`


def test_a_warning_is_one_line_and_comes_once(tmp_path: Path, demos_file: str) -> None:
    odd = dataclasses.replace(demos.load(Path(demos_file)), terminated=np.array([False, True]))
    with pytest.warns(UserWarning):
        demos.save(tmp_path / "odd.npz", odd)
    keys = [KEY.format(1, seed) for seed in (0, 1)]
    args = [*keys, *SHORT, "--set", "pack=1", "--demos", "odd.npz"]
    done = subprocess.run(
        [sys.executable, "-m", "ngt.cli", "train", *args],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "odd.npz" in line]
    assert line.startswith("ngt: warning: demonstrations odd.npz: episode 1: terminated, but")


def test_returns_that_cannot_be_normalised(ngt: Any, demos_file: str, tmp_path: Path) -> None:
    """Check that training only warns if returns cannot be normalised."""
    data, key = demos.load(Path(demos_file)), KEY.format(1, 0)
    for i, worse in enumerate((0.0, 1.0, -1e-9)):
        file, root = tmp_path / "same.npz", ["--results", str(tmp_path / str(i))]
        demos.save(file, dataclasses.replace(data, returns=data.random_returns - worse))
        said = ngt("train", key, *SHORT, "--demos", str(file), *root)
        assert "no return can be normalised: the expert's mean return" in said[0]
        assert "finished" in said[-1]
        run = str(tmp_path / f"{i}/test/runs/{key}")
        said = ngt("evaluate", run, "--episodes", "1", "--demos", str(file))
        assert "no return can be normalised" in said[-1]
        assert not any(line.startswith("normalised return") for line in said)


def test_finished_runs_are_skipped_unless_fresh(ngt: Any, demos_file: str, tmp_path: Path) -> None:
    key, other = KEY.format(1, 0), KEY.format(2, 0)
    command = ["train", key, *SHORT, "--demos", demos_file]
    ngt(*command)
    run_json = tmp_path / "results/test/runs" / key / "run.json"
    text, written = run_json.read_text(), run_json.stat().st_mtime_ns
    assert ngt(*command) == [ALREADY.format(key)]
    assert run_json.stat().st_mtime_ns == written
    said = ngt("train", key, other, *SHORT, "--demos", demos_file)
    assert said[0] == ALREADY.format(key)
    assert len(said) == 2 and said[1].startswith(f"run {other}: finished in ")
    assert run_json.read_text() == text
    assert len(ngt(*command, "--fresh")) == 1
    assert run_json.stat().st_mtime_ns > written


def test_told_to_stop_in_a_packs_last_step_no_other_begins(
    ngt: Any, demos_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def train(cell: Any, members: Any, *args: Any, **kwargs: Any) -> bool:
        begun.append(cell.method)
        return True

    monkeypatch.setattr("ngt.training.job.train", train)
    monkeypatch.setattr("ngt.commands.train.report", lambda folder, name: None)
    both = [f"Pendulum-v1/{m}/state-action-demos1-rate20/seed0" for m in ("bc", "ngt")]
    with pytest.raises(SystemExit) as stop:
        ngt("train", *both, *SHORT, "--demos", demos_file)
    assert stop.value.code == os.EX_TEMPFAIL and begun == ["bc"]
    ngt("train", both[1], *SHORT, "--demos", demos_file)
    assert begun == ["bc", "ngt"], "the command must succeed, because no run remains"


def test_the_demonstrations_of_all_packs_are_read_before_training(
    ngt: Any, demos_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that no pack is trained if the demonstrations of a later pack do not suffice."""
    runs = [
        f"Pendulum-v1/{m}/state-action-demos{n}-rate20/seed0" for m, n in (("bc", 1), ("ngt", 9))
    ]
    with pytest.raises(SystemExit) as stop:
        ngt("train", *runs, *SHORT, "--demos", demos_file)
    assert stop.value.code == 2 and "requested 9, found 2 episodes" in capsys.readouterr().err
    assert not (tmp_path / "results/test/runs").exists()


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (["--fresh"], ", with only these runs,"),
        (["--fresh", "--restart"], ", without --restart and with only these runs,"),
    ],
)
def test_stopped_after_a_run_was_trained_again(
    ngt: Any,
    demos_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    change: str,
) -> None:
    """Check that the message names the runs with which --fresh trains no finished run again."""
    keys = [KEY.format(1, seed) for seed in (0, 1)]
    base = [*SHORT, "--set", "pack=1", "--demos", demos_file]
    ngt("train", *keys, *base)
    at: list[int] = []  # the seed of the run that is stopped
    save = Trainer._log_evaluate_save

    def stop(trainer: Trainer, stride: int) -> None:
        trainer.stop = trainer.step == 20 and trainer.members[0].seed in at
        save(trainer, stride)

    def records() -> list[str]:
        return [(tmp_path / f"results/test/runs/{key}/run.json").read_text() for key in keys]

    def stopped(seed: int) -> str:
        at[:] = [seed]
        with pytest.raises(SystemExit) as left:
            ngt("train", *keys, *base, *options)
        assert left.value.code == os.EX_TEMPFAIL
        return capsys.readouterr().err.splitlines()[-1]

    monkeypatch.setattr(Trainer, "_log_evaluate_save", stop)
    old = records()
    assert "only" not in stopped(0), "no run was trained again, so all must be named again"
    assert records() == old
    line, words = (
        stopped(1),
        f"ngt: stopped at step 20; the same command{change} resumes from there: ",
    )
    assert line == words + keys[1]
    new = records()
    assert new[0] != old[0] and new[1] == old[1]
    at.clear()
    said = ngt("train", *line.removeprefix(words).split(), *base, "--fresh")
    assert said[0].endswith("resumes from its checkpoint at step 20")
    assert said[1].startswith(f"run {keys[1]}: finished in ") and len(said) == 2
    assert records()[0] == new[0] and records()[1] != old[1]


@pytest.mark.parametrize("command", ["train", "expert"])
def test_settings_changed_and_changed_back_lose_no_run_and_train_none_twice(
    ngt: Any, demos_file: str, tmp_path: Path, command: str
) -> None:
    key = KEY.format(1, 0)
    what, folder, place = ["expert", "Pendulum-v1"], "experts/Pendulum-v1", "Pendulum-v1/expert"
    if command == "train":
        what, folder, place = ["train", key, "--demos", demos_file], f"runs/{key}", key
    base = [*what, *SHORT]
    changed = [*base, "--set", "sac.gamma=0.5"]
    work = tmp_path / "results/test"

    def content() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in (work / folder).iterdir()}

    ngt(*base)
    first = content()
    said = ngt(*changed)
    assert "trained with other settings" in said[0] and f"former/{place}" in said[0]
    assert " finished in " in said[1]
    second, record = content(), json.loads(first["run.json"])
    aside = work / "former" / place / f"{record['config_hash']}-{record['source_hash']}"
    assert {p.name: p.read_bytes() for p in aside.iterdir()} == first
    (line,) = ngt(*base)
    assert f"came back from {aside.relative_to(tmp_path)}" in line
    assert content() == first and not aside.exists()
    (line,) = ngt(*changed)
    assert "came back" in line and content() == second
    assert "finished already" in ngt(*changed)[0]
    assert len(list((work / "former").rglob("run.json"))) == 1
    assert " finished in " in ngt(*base, "--fresh")[-1], "--fresh must train in any case"
    assert len(list((work / "former").rglob("run.json"))) == 2
    table = ngt("runs", "--former", "--scale", "test")
    assert len(table) == 3 and all(place in line for line in table[:2])
    assert "2 former results" in table[2]
    assert "deleted" in ngt("runs", "--former", "--remove", "--scale", "test")[-1]
    assert list((work / "former").rglob("*")) == []


def test_other_demonstrations_are_other_settings(
    ngt: Any, demos_file: str, tmp_path: Path, refused: Any
) -> None:
    key = KEY.format(1, 0)
    settings = [*SHORT, "--set", "expert.seed=0", "--set", "expert.episodes=2"]  # as in toy_demos
    command = ["train", key, *settings]
    cell = resolve_expert(
        load(
            {
                "scale": "test",
                "train": {"steps": 40, "eval_every": 20, "log_every": 20, "eval_episodes": 1},
            }
        ),
        "Pendulum-v1",
    )
    own = dataclasses.replace(demos.load(Path(demos_file)), source=config_hash(cell))
    default = tmp_path / "results/test/demos/Pendulum-v1.npz"
    default.parent.mkdir(parents=True)
    demos.save(default, own)

    def status() -> str:
        return next(line for line in ngt("runs", *settings) if key in line).split()[0]

    def source() -> str:
        made = read_json(tmp_path / "results/test/runs" / key / "config.json")["demos_source"]
        return str(made)

    ngt(*command, "--demos", demos_file)
    assert source() == file_hash(Path(demos_file), "x") and status() == "stale"
    assert "trained with other settings" in ngt(*command)[0]
    assert source() == own.source and status() == "finished"
    assert "finished already" in ngt(*command, "--demos", str(default))[0], (
        "the file must be taken as the expert's recording"
    )
    demos.save(default, dataclasses.replace(own, source="toy"))
    expected = (
        f"field 'source': found toy, expected {own.source}: these settings need another expert"
    )
    assert expected in refused(*command, "--fresh")
    assert status() == "finished"


RECORDED = "results/test/demos/Pendulum-v1.npz"
BC = KEY.replace("/ngt/", "/bc/")


def imitate_recorded_expert(ngt: Any) -> Any:
    """Train an expert, record it, and train a run, and return a function of the run's status.

    Scale `test` records 3 episodes with seed 1000.
    """
    key = BC.format(1, 0)
    ngt("expert", "Pendulum-v1", *SHORT)
    ngt("record", "Pendulum-v1", *SHORT)
    ngt("train", key, *SHORT)

    def status(*settings: str) -> str:
        return next(line for line in ngt("runs", *SHORT, *settings) if key in line).split()[0]

    assert ngt("train", key, *SHORT) == [ALREADY.format(key)] and status() == "finished"
    return status


def test_another_expert_seed_needs_another_expert_and_recording(ngt: Any, refused: Any) -> None:
    status, key, other = imitate_recorded_expert(ngt), BC.format(1, 0), ["--set", "expert.seed=5"]
    said = refused("train", key, *SHORT, *other)
    assert f"demonstrations {RECORDED}: field 'seeds': found " in said
    assert "but expert.seed 5 gives " in said
    assert "run `ngt expert Pendulum-v1` and `ngt record Pendulum-v1` with these settings" in said
    assert f"or pass --demos {RECORDED} to use this file anyway" in said
    assert status(*other) == "stale" and status() == "finished"
    assert refused("record", "Pendulum-v1", *SHORT, *other) == (
        "ngt: error: expert Pendulum-v1 in results/test/experts/Pendulum-v1: trained with "
        "expert.seed 1000, not 5; run `ngt expert Pendulum-v1` with these settings, or name a "
        "policy with --policy\n"
    )
    assert ngt("train", key, *SHORT, *other, "--demos", RECORDED) == [ALREADY.format(key)]


def test_another_number_of_episodes_needs_another_recording(ngt: Any, refused: Any) -> None:
    status, key, more = imitate_recorded_expert(ngt), BC.format(1, 0), BC.format(4, 0)
    longer = [*SHORT, "--set", "expert.episodes=4"]
    for episodes, wanted in ((4, more), (2, key)):
        said = refused("train", wanted, *SHORT, "--set", f"expert.episodes={episodes}")
        assert f"found 3 episodes, but expert.episodes is {episodes}; run `ngt record " in said
    assert status(*longer[-2:]) == "stale" and status() == "finished"
    line, *_, warned = ngt("record", "Pendulum-v1", *SHORT, "--episodes", "4")
    assert line.startswith(f"{RECORDED}: 4 episodes") and warned == (
        f"warning: {RECORDED}: field 'seeds': found 4 episodes, but expert.episodes is 3; run "
        f"`ngt record Pendulum-v1` with these settings, or pass --demos {RECORDED} to `ngt train`"
    )
    assert not any("field" in line for line in ngt("record", "Pendulum-v1", *longer))
    assert "finished in" in ngt("train", more, *longer)[-1]
    assert status() == "stale", "its recording was replaced"
    ngt("record", "Pendulum-v1", *SHORT)
    assert ngt("train", key, *SHORT) == [ALREADY.format(key)]


def test_packs_hold_the_runs_that_are_left(ngt: Any, demos_file: str, tmp_path: Path) -> None:
    keys = [KEY.format(1, seed) for seed in range(3)]
    bc = KEY.format(1, 0).replace("/ngt/", "/bc/")
    ngt("train", keys[1], *SHORT, "--demos", demos_file)
    said = ngt("train", *keys, bc, keys[0], *SHORT, "--demos", demos_file)
    assert len(said) == 4, "a key given twice must train one run"
    packed = {
        key: read_json(tmp_path / "results/test/runs" / key / "run.json")["pack"]
        for key in [*keys, bc]
    }
    assert packed == {keys[0]: 2, keys[1]: 1, keys[2]: 2, bc: 1}
    ngt("train", *keys, *SHORT, "--demos", demos_file, "--fresh", "--set", "pack=2")
    folder = tmp_path / "results/test/runs"
    assert [read_json(folder / key / "run.json")["pack"] for key in keys] == [2, 2, 1]


def test_ones_own_demonstrations_are_named_in_the_settings(
    ngt: Any, demos_file: str, tmp_path: Path
) -> None:
    key = KEY.format(1, 0)
    ngt("train", key, *SHORT, "--set", f"envs.Pendulum-v1.demos={demos_file}")
    record = read_json(tmp_path / "results/test/runs" / key / "config.json")
    assert record["demos_source"] == file_hash(Path(demos_file), "x")


def test_a_divergence_is_said_and_is_no_error(
    ngt: Any, demos_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ngt.potential import Potential

    monkeypatch.setattr(
        Potential, "reward", lambda self, batch: torch.full_like(batch.terminated, torch.nan)
    )
    key = KEY.format(1, 0)
    own = [*SHORT, "--set", f"envs.Pendulum-v1.demos={demos_file}"]
    said = ngt("train", key, *own)
    assert said == [f"run {key}: diverged at step 8: agent.actor.net.layers.0.weight is not finite"]
    assert ngt("train", key, *own) == [ALREADY.format(key)], "divergence must count as finished"
    table = ngt("runs", *own, "--status", "diverged")
    assert table[0].split(maxsplit=2)[:2] == ["diverged", key]
    assert table[0].endswith("step 8: agent.actor.net.layers.0.weight is not finite")


def test_a_damaged_run_is_trained_again_by_the_same_command(
    ngt: Any, demos_file: str, tmp_path: Path
) -> None:
    key = KEY.format(1, 0)
    own = [*SHORT, "--set", f"envs.Pendulum-v1.demos={demos_file}"]
    ngt("train", key, *own)
    file = tmp_path / "results/test/runs" / key / "eval.csv"
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    (line,) = ngt("runs", *own, "--status", "damaged")[:-1]
    assert key in line and "eval.csv" in line
    assert "damaged" in ngt("train", key, *own)[0]
    assert file.read_bytes() == whole
    (damaged,) = (tmp_path / "results/test/former" / key).glob("*/eval.csv")
    assert damaged.read_bytes() == whole[:-3]
    assert ngt("runs", "--former", "--status", "damaged", *own)[0].startswith("damaged")
    other = demos.load(Path(demos_file))
    assert ngt("runs", *own, "--status", "stale")[0].startswith("0 runs")
    demos.save(Path(demos_file), dataclasses.replace(other, seeds=other.seeds + 1))
    assert key in ngt("runs", *own, "--status", "stale")[0], (
        "changed demonstrations must make the run stale"
    )
