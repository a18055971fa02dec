"""The `ngt` command: every stage by hand, its output, what it skips, what it needs."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from ngt.agent import policy
from ngt.cli import build_parser, main
from ngt.experience import demos, shipped
from ngt.experience.envs import TASKS
from ngt.experience.reference import reference_of, unscored
from ngt.files import read_json
from ngt.runs.keys import RunKey, run_table
from ngt.settings import config as cfg
from ngt.settings import load as loading
from ngt.settings import resolve as resolving

ROOT = Path(__file__).resolve().parents[2]
ALREADY = "run {0}: finished already in results/test/runs/{0}; --fresh trains it again"
KEY = "Pendulum-v1/ngt/state-action-demos{}-rate20/seed{}"
SHORT = ["--scale", "test", "--set", "train.steps=40", "--set", "train.eval_every=20"]
SHORT += ["--set", "train.log_every=20", "--set", "train.eval_episodes=1"]
SHORT += ["--set", "envs.Pendulum-v1.demos=''"]  # what is recorded here, not what scale `test` has
COMMANDS = ["expert", "record", "ship", "train", "evaluate", "runs", "publish", "bench", "config"]


@pytest.fixture
def ngt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """ngt(*arguments): the lines that the command prints; it runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> list[str]:
        capsys.readouterr()
        main(arguments)
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def demos_file(tmp_path: Path) -> str:
    """Demonstrations of a toy policy, said to be much better than a random one."""

    def act(obs: torch.Tensor) -> torch.Tensor:
        return torch.tanh(obs[..., 1:2] - obs[..., 2:3])

    path = tmp_path / "toy.npz"
    data = demos.record("Pendulum-v1", act, 2, 0, source="toy", terminate_when_unhealthy=True)
    demos.save(path, dataclasses.replace(data, random_returns=data.returns - 1000.0))
    return str(path)


# ---------------------------------------------------------------- help


def test_commands_are_listed(capsys: Any) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if not re.search(rf"^ +{name} +[A-Z]", out, re.M)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(name: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: ngt {name} ")
    for part in ("--scale", "--config", "--set KEY=VALUE", "--results"):
        assert part in out
    (example,) = re.findall(r"^example: (.+)$", out, re.M)
    words = example.split()
    assert words[:2] == ["ngt", name]
    assert build_parser(name).parse_args(words[1:]).command == name, "the example can be parsed"


# ---------------------------------------------------------------- from nothing to returns


def test_the_whole_way_by_hand(ngt: Any, tmp_path: Path) -> None:
    """Expert, demonstrations, a run, its returns; in a folder that is no checkout."""
    said = ngt("expert", "Pendulum-v1", *SHORT)
    assert re.fullmatch(
        r"expert Pendulum-v1: finished in \d+ s -> results/test/experts/Pendulum-v1", said[-1]
    )
    assert ngt("expert", "Pendulum-v1", *SHORT) == [
        "expert Pendulum-v1: finished already in results/test/experts/Pendulum-v1; "
        "--fresh trains it again"
    ]

    said = ngt("record", "Pendulum-v1", *SHORT, "--episodes", "2")
    number = r"-?\d+\.\d"
    assert re.fullmatch(
        rf"results/test/demos/Pendulum-v1\.npz: 2 episodes, return {number} "
        rf"\(from {number} to {number}\), random {number}",
        said[0],
    )
    data = demos.load(tmp_path / "results/test/demos/Pendulum-v1.npz", "Pendulum-v1")
    config = loading.load(
        {"scale": "test",
         "train": {"steps": 40, "eval_every": 20, "log_every": 20, "eval_episodes": 1}}
    )  # fmt: skip
    assert data.source == resolving.config_hash(resolving.resolve_expert(config, "Pendulum-v1"))
    assert f"return {data.expert:.1f} " in said[0] and f"random {data.random:.1f}" in said[0]
    reason = unscored(reference_of(data))
    assert said[1:] == [f"warning: Pendulum-v1: no return can be normalised: {reason}"] * bool(
        reason
    )

    key = KEY.format(2, 1)
    said = ngt("train", key, *SHORT)
    folder = f"results/test/runs/{key}"
    assert re.fullmatch(rf"run {key}: finished in \d+ s -> {folder}", said[-1])
    record = read_json(tmp_path / folder / "run.json")
    assert record["reference"] == reference_of(data)
    assert record["key"] == {"run": key, **dataclasses.asdict(RunKey.parse(key))}

    good = ROOT / "tests/data/Pendulum-v1.npz"  # of a policy that is better than a random one
    data = demos.load(good)
    said = ngt("evaluate", folder, "--episodes", "3", "--seed", "5", "--demos", str(good))
    episodes = [re.fullmatch(rf"episode {i}: return (-?[\d.]+), length 200", said[i])
                for i in range(3)]  # fmt: skip
    returns = [float(match[1]) for match in episodes if match]
    assert len(returns) == 3
    summary = re.fullmatch(
        r"Pendulum-v1: mean return (-?[\d.]+) \(std ([\d.]+)\) over 3 episodes", said[3]
    )
    assert summary and float(summary[1]) == pytest.approx(sum(returns) / 3, abs=0.02)
    score = (sum(returns) / 3 - data.random) / (data.expert - data.random)
    shown = re.fullmatch(
        rf"normalised return (-?[\d.]+) \(random {data.random:.2f}, expert {data.expert:.2f}\)",
        said[4],
    )
    assert shown and float(shown[1]) == pytest.approx(score, abs=0.002)
    again = ngt("evaluate", f"{folder}/policy.safetensors", "--episodes", "3", "--seed", "5")
    assert again == said[:4], "a file or its folder; the same seeds, the same returns"


def test_recording_ones_own_policy(ngt: Any, tmp_path: Path) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = cfg.SacConfig(hidden=(4,))
    policy.save(tmp_path / "mine", Policy(Actor(3, 1, sac, [0]), None).snapshot(0), "Pendulum-v1",
                sac)  # fmt: skip
    common = ["record", "Pendulum-v1", "--scale", "test", "--policy", "mine", "--episodes", "1"]
    ngt(*common, "--out", "a.npz")
    ngt(*common, "--out", "b.npz", "--seed", "1000")
    ngt(*common, "--out", "c.npz", "--seed", "3")
    a, b, c = (demos.load(tmp_path / f"{name}.npz") for name in "abc")
    assert a.source == "mine" and len(a.length) == 1
    assert a.checksum == b.checksum, "the expert's seed is the default"
    assert a.seeds[0] != c.seeds[0]
    assert not (tmp_path / "results").exists()


def test_strict_refuses_what_the_env_can_not_have_given(
    ngt: Any, demos_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    data = demos.load(Path(demos_file))
    odd = dataclasses.replace(data, terminated=np.array([False, True]))
    with pytest.warns(UserWarning, match="odd.npz: episode 1: terminated, but Pendulum-v1"):
        demos.save(tmp_path / "odd.npz", odd)
    command = ["train", KEY.format(1, 0), *SHORT, "--demos", str(tmp_path / "odd.npz")]
    with pytest.raises(SystemExit) as stopped:
        ngt(*command, "--strict")
    assert stopped.value.code == 2
    assert "odd.npz: episode 1: terminated, but Pendulum-v1 never" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
    with pytest.warns(UserWarning, match="episode 1: terminated"):
        ngt(*command)

    sac = cfg.SacConfig(hidden=(4,))
    policy.save(tmp_path / "p", Policy(Actor(3, 1, sac, [0]), None).snapshot(0), "Pendulum-v1", sac)
    monkeypatch.setattr(demos, "record", lambda *_, **__: odd)
    (tmp_path / "out.done.abc").touch()
    record = ["record", "Pendulum-v1", "--policy", "p", "--out", "out.npz"]
    with pytest.raises(SystemExit) as stopped:
        ngt(*record, "--strict")
    assert stopped.value.code == 2 and not (tmp_path / "out.npz").exists()
    assert (tmp_path / "out.done.abc").exists(), "nothing was replaced"
    with pytest.warns(UserWarning, match="episode 1: terminated"):
        ngt(*record)
    assert (tmp_path / "out.npz").exists()


def test_a_warning_is_one_line_and_comes_once(tmp_path: Path, demos_file: str) -> None:
    odd = dataclasses.replace(demos.load(Path(demos_file)), terminated=np.array([False, True]))
    with pytest.warns(UserWarning):
        demos.save(tmp_path / "odd.npz", odd)
    keys = [KEY.format(1, seed) for seed in (0, 1)]
    done = subprocess.run(
        [sys.executable, "-m", "ngt.cli", "train", *keys, *SHORT, "--set", "pack=1",
         "--demos", "odd.npz"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "odd.npz" in line]
    assert line.startswith("ngt: warning: demonstrations odd.npz: episode 1: terminated, but")


def test_recording_a_runs_folder(
    ngt: Any, demos_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = cfg.SacConfig(hidden=(4,))
    (tmp_path / "run").mkdir()
    policy.save(tmp_path / "run/policy.safetensors",
                Policy(Actor(3, 1, sac, [0]), None).snapshot(0), "Pendulum-v1", sac)  # fmt: skip
    data = demos.load(Path(demos_file))
    for name in ("out.done.abc", "out.done.abd", "other.done.abc"):
        (tmp_path / name).touch()
    for better, lines in ((1000.0, 1), (1.0, 2), (0.0, 2), (-1.0, 2)):
        made = dataclasses.replace(data, random_returns=np.full(2, data.expert - better))
        monkeypatch.setattr(demos, "record", lambda *_, made=made, **__: made)
        said = ngt("record", "Pendulum-v1", "--policy", "run", "--out", "out.npz")
        assert len(said) == lines and said[0].startswith("out.npz: 2 episodes, return ")
        assert all("no return can be normalised: the expert's mean" in x for x in said[1:])
    left = sorted(p.name for p in tmp_path.glob("*.done.*"))
    assert left == ["other.done.abc"], "the receipts of what was there before"


def test_evaluation_takes_the_settings(ngt: Any, tmp_path: Path) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = cfg.SacConfig(hidden=(4,))
    policy.save(tmp_path / "p", Policy(Actor(11, 3, sac, [0]), None).snapshot(0), "Hopper-v4", sac)
    falls = ngt("evaluate", "p", "--episodes", "1")
    goes_on = ngt("evaluate", "p", "--episodes", "1", "--set", "terminate_when_unhealthy=false")
    assert int(falls[0].split()[-1]) < 1000 == int(goes_on[0].split()[-1])


def test_a_run_is_evaluated_with_its_own_settings(ngt: Any, tmp_path: Path) -> None:
    from ngt.agent.policy import Policy
    from ngt.agent.sac import Actor

    sac = cfg.SacConfig(hidden=(4,))
    (tmp_path / "run").mkdir()
    tensors = Policy(Actor(11, 3, sac, [0]), None).snapshot(0)
    policy.save(tmp_path / "run" / "policy.safetensors", tensors, "Hopper-v4", sac)
    (tmp_path / "run" / "config.json").write_text('{"terminate_when_unhealthy": false}')
    own = ngt("evaluate", "run", "--episodes", "1")
    told = ngt("evaluate", "run", "--episodes", "1", "--set", "terminate_when_unhealthy=true")
    assert int(own[0].split()[-1]) == 1000 > int(told[0].split()[-1])


def test_a_damaged_policy_that_ships_is_not_evaluated(
    ngt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    shutil.copytree(shipped.DATA / "Pusher-v5", tmp_path / "data" / "Pusher-v5")
    monkeypatch.setattr(shipped, "DATA", tmp_path / "data")
    file = tmp_path / "data" / "Pusher-v5" / "policy.safetensors"
    assert len(ngt("evaluate", str(file), "--episodes", "1")) == 2
    whole = file.read_bytes()
    for damaged in (b"x" + whole[1:], whole[:-9] + b"x" + whole[-8:]):  # of the header, of the rest
        file.write_bytes(damaged)
        with pytest.raises(SystemExit):
            main(["evaluate", str(file), "--episodes", "1"])
        err = capsys.readouterr().err
        assert f"{file}" in err and "checksum" in err and err.count("\n") == 1


# ---------------------------------------------------------------- an env of one's own

MODULE = """
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from gymnasium.envs.registration import register as add
from ngt.experience.envs import Task, register

add("Mine-v0", lambda **kwargs: PendulumEnv(**kwargs), max_episode_steps=30)
register(Task("mine", "Mine-v0", obs=3, act=1, low=-2.0, high=2.0, time_limit=30))
"""


def test_an_env_of_ones_own(ngt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("ngt.experience.envs.TASKS", dict(TASKS))
    (tmp_path / "my_env_of_a_test.py").write_text(MODULE)
    (tmp_path / "mine.yaml").write_text("imports: [my_env_of_a_test]\n")
    more = [*SHORT, "--config", "mine.yaml"]
    with pytest.raises(SystemExit):
        main(["expert", "mine", *SHORT])
    ngt("expert", "mine", *more)
    ngt("record", "mine", *more)
    said = ngt("train", "mine/ngt/state-action-demos1-rate10/seed0", *more, "--env-workers", "1")
    assert "finished" in said[-1]
    assert ngt("evaluate", "results/test/experts/mine", "--episodes", "1", *more)[0].endswith("30")


def test_returns_that_cannot_be_normalised(ngt: Any, demos_file: str, tmp_path: Path) -> None:
    """Training does not need them to be: it warns."""
    data, key = demos.load(Path(demos_file)), KEY.format(1, 0)
    for i, worse in enumerate((0.0, 1.0, -1e-9)):
        file, root = tmp_path / "same.npz", ["--results", str(tmp_path / str(i))]
        demos.save(file, dataclasses.replace(data, returns=data.random_returns - worse))
        said = ngt("train", key, *SHORT, "--demos", str(file), *root)
        assert "no return can be normalised: the expert's mean return" in said[0]
        assert "finished" in said[-1]
        said = ngt("evaluate", str(tmp_path / f"{i}/test/runs/{key}"), "--episodes", "1",
                   "--demos", str(file))  # fmt: skip
        assert "no return can be normalised" in said[-1]
        assert not any(line.startswith("normalised return") for line in said)


def test_a_module_that_cannot_be_imported(ngt: Any, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["runs", "--set", "imports=[no_such_module]"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.count("\n") == 1
    assert said.startswith("ngt: error: imports: 'no_such_module' can't be imported (ModuleNotFou")


# ---------------------------------------------------------------- training


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


def refused(ngt: Any, capsys: Any, *arguments: str) -> str:
    """The line of a command's mistake."""
    with pytest.raises(SystemExit) as stopped:
        ngt(*arguments)
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return str(err)


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
    assert begun == ["bc", "ngt"], "nothing is left to do, so that it is no failure"


@pytest.mark.parametrize("command", ["train", "expert"])
def test_a_run_of_other_settings_is_replaced_only_on_request(
    ngt: Any, demos_file: str, tmp_path: Path, capsys: Any, command: str
) -> None:
    key = KEY.format(1, 0)
    what, name, folder = ["expert", "Pendulum-v1"], "expert Pendulum-v1", "experts/Pendulum-v1"
    if command == "train":
        what, name, folder = ["train", key, "--demos", demos_file], f"run {key}", f"runs/{key}"
    base = [*what, *SHORT]
    ngt(*base)
    run_json = tmp_path / "results/test" / folder / "run.json"
    former = {p.name: p.read_bytes() for p in run_json.parent.iterdir()}
    changed = [*base, "--set", "sac.gamma=0.5"]
    assert refused(ngt, capsys, *changed) == (
        f"ngt: error: {name}: trained with other settings in results/test/{folder}; "
        "--replace trains over it, --results DIR keeps both\n"
    )
    assert {p.name: p.read_bytes() for p in run_json.parent.iterdir()} == former
    ngt(*changed, "--results", "elsewhere")
    assert {p.name: p.read_bytes() for p in run_json.parent.iterdir()} == former
    assert len(ngt(*changed, "--replace")) == 1
    replaced = run_json.read_text()
    assert read_json(run_json.with_name("config.json"))["sac"]["gamma"] == 0.5
    assert "finished already" in ngt(*changed, "--replace")[0]
    assert run_json.read_text() == replaced, "the same settings: kept"
    assert " finished in " in ngt(*base, "--fresh")[0], "nothing more to ask for"
    assert read_json(run_json.with_name("config.json"))["sac"]["gamma"] != 0.5


def test_a_refused_member_of_a_pack_begins_nothing(
    ngt: Any, demos_file: str, tmp_path: Path, capsys: Any
) -> None:
    first, second = KEY.format(1, 0), KEY.format(2, 0)
    more = [*SHORT, "--demos", demos_file]
    ngt("train", second, *more)
    changed = ["train", first, second, *more, "--set", "sac.gamma=0.5"]
    assert f"run {second}: trained with other" in refused(ngt, capsys, *changed)
    assert not (tmp_path / "results/test/runs" / first).exists()
    assert len(ngt(*changed, "--replace")) == 2


def test_other_demonstrations_are_other_settings(
    ngt: Any, demos_file: str, tmp_path: Path, capsys: Any
) -> None:
    key = KEY.format(1, 0)
    command = ["train", key, *SHORT]
    cell = resolving.resolve_expert(
        loading.load({"scale": "test", "train": {"steps": 40, "eval_every": 20, "log_every": 20,
                                             "eval_episodes": 1}}), "Pendulum-v1"
    )  # fmt: skip
    own = dataclasses.replace(demos.load(Path(demos_file)), source=resolving.config_hash(cell))
    default = tmp_path / "results/test/demos/Pendulum-v1.npz"
    default.parent.mkdir(parents=True)
    demos.save(default, own)

    def status() -> str:
        return next(line for line in ngt("runs", *SHORT) if key in line).split()[0]

    def source() -> str:
        made = read_json(tmp_path / "results/test/runs" / key / "config.json")["demos_source"]
        return str(made)

    ngt(*command, "--demos", demos_file)
    assert source() == resolving.file_hash(Path(demos_file), "x") and status() == "stale"
    assert "trained with other settings" in refused(ngt, capsys, *command)
    ngt(*command, "--replace")
    assert source() == own.source and status() == "finished"
    assert "finished already" in ngt(*command, "--demos", str(default))[0], "the expert's own"
    demos.save(default, dataclasses.replace(own, source="toy"))
    expected = (
        f"field 'source': found toy, expected {own.source}: these settings have another expert"
    )
    assert expected in refused(ngt, capsys, *command, "--fresh")
    assert status() == "finished"


def test_packs_hold_the_runs_that_are_left(ngt: Any, demos_file: str, tmp_path: Path) -> None:
    keys = [KEY.format(1, seed) for seed in range(3)]
    bc = KEY.format(1, 0).replace("/ngt/", "/bc/")
    ngt("train", keys[1], *SHORT, "--demos", demos_file)
    said = ngt("train", *keys, bc, keys[0], *SHORT, "--demos", demos_file)
    assert len(said) == 4, "a key given twice is one run"
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
    assert record["demos_source"] == resolving.file_hash(Path(demos_file), "x")


def test_a_divergence_is_said_and_is_no_error(
    ngt: Any, demos_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ngt.potential import Potential

    monkeypatch.setattr(
        Potential, "reward", lambda self, batch: torch.full_like(batch.reward, torch.nan)
    )
    key = KEY.format(1, 0)
    own = [*SHORT, "--set", f"envs.Pendulum-v1.demos={demos_file}"]
    said = ngt("train", key, *own)
    assert said == [f"run {key}: diverged at step 8: agent.actor.net.layers.0.weight is not finite"]
    assert ngt("train", key, *own) == [ALREADY.format(key)], "that it diverged is its result"
    table = ngt("runs", *own, "--status", "diverged")
    assert table[0].split(maxsplit=2)[:2] == ["diverged", key]
    assert table[0].endswith("step 8: agent.actor.net.layers.0.weight is not finite")


# ---------------------------------------------------------------- settings


def test_config_prints_what_is_loaded(ngt: Any) -> None:
    said = json.loads("\n".join(ngt("config", "--scale", "lite")))
    config = loading.load({"scale": "lite"})
    assert said == json.loads(resolving.to_json(config))
    said = json.loads("\n".join(ngt("config", KEY.format(4, 0), "--scale", "lite")))
    cell = resolving.resolve(config, "Pendulum-v1", "ngt", "state-action", 20)
    assert said == json.loads(resolving.to_json(cell))
    assert json.loads("\n".join(ngt("config")))["scale"] == "quick", "where none is named"


def test_a_set_wins_over_a_file_and_a_scale_over_both(ngt: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("scale: lite\nsac: {gamma: 0.5, tau: 0.5}\ntrain: {batch: 5}\n")
    common = ["config", "--config", str(file)]

    def told(*more: str) -> dict[str, Any]:
        return json.loads("\n".join(ngt(*common, *more)))

    base = told()
    assert (base["scale"], base["sac"]["gamma"], base["train"]["batch"]) == ("lite", 0.5, 5)
    assert base["train"]["steps"] == 400_000, "of the scale"
    sets = ["--set", "sac.gamma=0.25", "--set", "sac.hidden=[8, 8]", "--set", "scale=test"]
    changed = told(*sets, "--set", "sac.gamma=0.125")
    assert changed["sac"]["gamma"] == 0.125, "the last one counts"
    assert (changed["sac"]["tau"], changed["sac"]["hidden"]) == (0.5, [8, 8])
    assert changed["scale"] == "test"
    assert told(*sets, "--scale", "paper")["scale"] == "paper"
    assert told("--set", "envs.Ant-v4.terminate_when_unhealthy=false")["envs"]["Ant-v4"][
        "terminate_when_unhealthy"
    ] is False  # fmt: skip


# ---------------------------------------------------------------- the run table


def test_runs_counts(ngt: Any, demos_file: str) -> None:
    table = run_table(loading.load({"scale": "test"}))
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
    assert all(RunKey.parse(line) for line in missing), "as `ngt train` takes them"


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
    """Nothing, then a run in part, then all: three looks, so two sleeps between them."""
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
        "2 runs at scale test: 2 missing", "2 runs at scale test: 1 part, 1 missing",
    ]  # fmt: skip
    assert looks[1].splitlines()[1:] == [
        "  Pendulum-v1/ngt/state-action-rate20: 1 at step 20 of 80, 25%"
    ]
    assert said[-1].endswith("2 runs at scale test: 2 finished")


def test_the_papers_main_figure(ngt: Any) -> None:
    keys = ngt("runs", "--scale", "paper", "--figure", "main_figure", "--keys")
    assert sum(key.split("/")[1] in ("ngt", "bc", "bc-full") for key in keys) == 216


# ---------------------------------------------------------------- ends that are no mistakes


def stopped(monkeypatch: pytest.MonkeyPatch, capsys: Any, error: BaseException) -> tuple[Any, str]:
    """Exit code and stderr when a command raises."""

    def fail(args: Any) -> None:
        raise error

    monkeypatch.setattr("ngt.commands.config.run", fail)
    with pytest.raises(SystemExit) as caught:
        main(["config"])
    return caught.value.code, capsys.readouterr().err


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert stopped(monkeypatch, capsys, KeyboardInterrupt()) == (130, "ngt: interrupted\n")


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    error = OSError(28, "No space left on device", "results/run.json")
    message = "ngt: error: results/run.json: No space left on device\n"
    assert stopped(monkeypatch, capsys, error) == (2, message)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 72.8 TiB for an array"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory:\n you tried 40 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    ],
)
def test_no_memory(monkeypatch: pytest.MonkeyPatch, capsys: Any, error: Exception) -> None:
    code, message = stopped(monkeypatch, capsys, error)
    assert code == 2 and message.startswith("ngt: error: not enough memory (")
    assert message.count("\n") == 1 and "lower train.buffer" in message
    with pytest.raises(RuntimeError, match="a bug"):
        stopped(monkeypatch, capsys, RuntimeError("a bug"))


def test_a_reader_that_has_gone() -> None:
    """`ngt runs | head`: no traceback."""
    command = f"{shlex.quote(sys.executable)} -m ngt.cli runs --scale paper --keys | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert RunKey.parse(done.stdout.strip())
    assert done.stderr == ""


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fail(args: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ngt.commands.config.run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["config"])


# ---------------------------------------------------------------- what a machine needs


HOOK = """
import sys
import time
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(f"{{name}} is not installed here")
sys.meta_path.insert(0, Block())
import {modules}
"""


def test_training_imports_little() -> None:
    """Import every module of ngt, but the GPU bench, where only what trains is installed."""
    blocked = "arch dm_control dm_env jsonschema matplotlib pandas pyarrow rliable safetensors"
    blocked += " scipy shimmy snakemake tqdm yaml"
    files = [file for file in (ROOT / "ngt").rglob("*.py") if file.stem not in ("__init__", "gpu")]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    code = HOOK.format(blocked=blocked.split(), modules=", ".join(sorted(names)))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("modules", "does"),
    [
        ("ngt.settings.options, ngt.settings.resolve, ngt.runs.keys",
         "print(len(ngt.runs.keys.run_table(ngt.settings.config.Config())))"),
        ("ngt.cli", "ngt.cli.main(['--help'])"),
        ("ngt.commands.runs, ngt.commands.publish, ngt.commands.config",
         "ngt.cli.main(['config', '--schema'])"),
    ],
)  # fmt: skip
def test_what_needs_no_torch(modules: str, does: str) -> None:
    """The workflow reads settings in its own process, for every job; help is shown at once."""
    blocked = ["torch", "pandas", "mujoco"]
    code = HOOK.format(blocked=blocked, modules=f"ngt.cli, {modules}") + does
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_the_shipped_settings_are_found_from_any_folder(ngt: Any, tmp_path: Path) -> None:
    shipped = yaml.safe_load((ROOT / "workflow/config/quick.yaml").read_text())
    said = json.loads("\n".join(ngt("config")))
    assert Path.cwd() == tmp_path
    assert said["train"]["steps"] == shipped["train"]["steps"]


def test_an_expert_of_other_settings_is_not_recorded(ngt: Any, capsys: Any) -> None:
    ngt("expert", "Pendulum-v1", *SHORT)
    said = refused(ngt, capsys, "record", "Pendulum-v1", *SHORT, "--set", "sac.gamma=0.5")
    assert "expert Pendulum-v1: trained with other settings" in said
    assert "`ngt expert Pendulum-v1 --replace`" in said


# ---------------------------------------------------------------- jobs of the workflow


def test_settings_in_a_file_named_by_their_hash(ngt: Any, tmp_path: Path, capsys: Any) -> None:
    config = loading.load({"scale": "test", "figures": {"main_figure": None}, "window": 3})
    file = tmp_path / f"{resolving.config_hash(config)}.json"
    file.write_text(loading.to_file(config))
    assert loading.load_file(file) == config, "nothing is merged in"
    assert json.loads("\n".join(ngt("config", "--planned", str(file))))["window"] == 3
    assert "--planned" in refused(ngt, capsys, "config", "--planned", str(file), "--scale", "test")
    file.write_text(file.read_text().replace('"window": 3', '"window": 4'))
    assert f"settings {file}: its content has" in refused(
        ngt, capsys, "config", "--planned", str(file)
    )
    file.write_text(file.read_text()[:500])
    assert "not valid JSON" in refused(ngt, capsys, "config", "--planned", str(file))


def test_a_refusal_leaves_its_reason_and_is_no_failure(
    ngt: Any, demos_file: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, out = KEY.format(1, 0), tmp_path / "deep" / "outcome"
    command = ["train", key, *SHORT, "--outcome", str(out), "--demos"]
    with pytest.raises(SystemExit) as stop:
        ngt(*command, "nowhere.npz")
    assert stop.value.code == 0
    reason = out.read_text()
    assert reason.startswith("ngt: error: demonstrations nowhere.npz") and reason.count("\n") == 1
    assert capsys.readouterr().err == reason
    ngt(*command, demos_file)
    assert out.read_text() == ""
    out.unlink()

    def fail(*args: Any, **named: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("ngt.commands.train.train_pack", fail)
    with pytest.raises(SystemExit) as stop:
        ngt(*command, demos_file)
    assert stop.value.code == 2 and not out.exists(), "it is tried again"


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
    other = demos.load(Path(demos_file))
    assert ngt("runs", *own, "--status", "stale")[0].startswith("0 runs")
    demos.save(Path(demos_file), dataclasses.replace(other, seeds=other.seeds + 1))
    assert key in ngt("runs", *own, "--status", "stale")[0], "other demonstrations"
