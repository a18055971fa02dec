"""Tests of the `ngt` command: help, stages run by hand, exit codes and required packages."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ngt.cli import build_parser, main
from ngt.experience import demos
from ngt.experience.envs import TASKS
from ngt.experience.reference import reference_of, unscored
from ngt.files import read_json
from ngt.runs.keys import RunKey
from ngt.settings.load import load
from ngt.settings.resolve import config_hash, resolve_expert

ROOT = Path(__file__).resolve().parents[2]
KEY = "Pendulum-v1/ngt/state-action-demos{}-rate20/seed{}"
SHORT = ["--scale", "test", "--set", "train.steps=40", "--set", "train.eval_every=20"]
SHORT += ["--set", "train.log_every=20", "--set", "train.eval_episodes=1"]
SHORT += ["--set", "envs.Pendulum-v1.demos=''"]  # use recorded demos, not those of scale `test`
COMMANDS = ["expert", "record", "import", "export", "ship", "train", "evaluate", "runs"]
COMMANDS += ["publish", "bench", "config"]


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
    assert build_parser(name).parse_args(words[1:]).command == name, "the example must parse"


# ---------------------------------------------------------------- from nothing to returns


def test_the_whole_way_by_hand(ngt: Any, tmp_path: Path) -> None:
    """Make an expert, demonstrations, a run and its returns in a folder that is not a checkout."""
    said = ngt("expert", "Pendulum-v1", *SHORT)
    assert re.fullmatch(
        r"expert Pendulum-v1: finished in \d+ s -> results/test/experts/Pendulum-v1", said[-1]
    )
    assert ngt("expert", "Pendulum-v1", *SHORT) == [
        "expert Pendulum-v1: finished already in results/test/experts/Pendulum-v1; "
        "to train it again, pass --fresh (in Python, move this folder away)"
    ]

    recorded = [*SHORT, "--set", "expert.episodes=2"]
    said = ngt("record", "Pendulum-v1", *recorded)
    number = r"-?\d+\.\d"
    assert re.fullmatch(
        rf"results/test/demos/Pendulum-v1\.npz: 2 episodes, return {number} "
        rf"\(from {number} to {number}\), random {number}",
        said[0],
    )
    data = demos.load(tmp_path / "results/test/demos/Pendulum-v1.npz", "Pendulum-v1")
    config = load(
        {
            "scale": "test",
            "train": {"steps": 40, "eval_every": 20, "log_every": 20, "eval_episodes": 1},
        }
    )
    assert data.source == config_hash(resolve_expert(config, "Pendulum-v1"))
    assert f"return {data.expert:.1f} " in said[0] and f"random {data.random:.1f}" in said[0]
    reason = unscored(reference_of(data))
    assert said[1:] == [f"warning: Pendulum-v1: no return can be normalised: {reason}"] * bool(
        reason
    )

    key = KEY.format(2, 1)
    said = ngt("train", key, *recorded)
    folder = f"results/test/runs/{key}"
    assert re.fullmatch(rf"run {key}: finished in \d+ s -> {folder}", said[-1])
    record = read_json(tmp_path / folder / "run.json")
    assert record["reference"] == reference_of(data)
    assert record["key"] == {"run": key, **dataclasses.asdict(RunKey.parse(key))}

    good = ROOT / "tests/data/Pendulum-v1.npz"  # from a policy that is better than a random one
    data = demos.load(good)
    said = ngt("evaluate", folder, "--episodes", "3", "--seed", "5", "--demos", str(good))
    episodes = [
        re.fullmatch(rf"episode {i}: return (-?[\d.]+), length 200", said[i]) for i in range(3)
    ]
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
    assert again == said[:4], "a policy's file must give the same returns as its folder"


# ---------------------------------------------------------------- a user's own env

MODULE = """
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from gymnasium.envs.registration import register as add
from ngt.experience.envs import Task, register

add("Mine-v0", lambda **kwargs: PendulumEnv(**kwargs), max_episode_steps=30)
register(Task("mine", "Mine-v0", obs=3, act=1, low=-2.0, high=2.0, time_limit=30))
"""


def test_a_command_says_at_once_what_it_begins_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Check that the line is on stderr, and is the first line of the command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    short = [*SHORT, "--set", "expert.train.steps=40"]
    random = ["--random", "--out", "random.npz"]
    of_dataset = ["--env", "Pendulum-v1", "--actions", "env", "--out", "new.npz"]
    for arguments, begun in (
        (["expert", "Pendulum-v1"], "expert Pendulum-v1: trains to env step 40; progress, wit"),
        (["record", "Pendulum-v1"], "record: plays 3 episodes of the policy and as many of a ra"),
        (["record", "Pendulum-v1", *random], "record: plays 3 episodes of a random policy on Pe"),
        (["export", "minari", "random.npz", "--id", "a-v0"], "export: reads random.npz and writ"),
        (["import", "minari", "a-v0", *of_dataset], "import: reads minari a-v0, then plays 3 ep"),
        (["train", KEY.format(1, 0), "--demos", "new.npz"], "ngt Pendulum-v1: trains to env ste"),
        (["evaluate", "results/test/experts/Pendulum-v1"], "evaluate: plays 16 episodes of resu"),
    ):
        main([*arguments, *short])
        out, err = capsys.readouterr()
        assert err.startswith(begun) and out, arguments
        assert begun not in out


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


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, "ModuleNotFoundError: No module named 'mine'); put it where Python finds it, e.g. "),
        (
            "import no",
            "ModuleNotFoundError: No module named 'no'; {file}, line 1); fix it",
        ),
        ("x", "NameError: name 'x' is not defined; {file}, line 1); fix it"),
        (
            "from ngt.errors import UserError\nraise UserError('task id taken')",
            "UserError: task id taken; {file}, line 2); fix it",
        ),
    ],
)
def test_a_module_that_cannot_be_imported(
    ngt: Any, tmp_path: Path, capsys: Any, monkeypatch: Any, code: str | None, said: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    if code:
        (tmp_path / "mine.py").write_text(code)
    with pytest.raises(SystemExit) as stop:
        main(["runs", "--set", "imports=[mine]"])
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1
    said = said.replace("{file}", str(tmp_path / "mine.py"))
    assert error.startswith("ngt: error: imports: 'mine' can't be imported (" + said)


# ---------------------------------------------------------------- exits other than errors


def stopped(monkeypatch: pytest.MonkeyPatch, capsys: Any, error: BaseException) -> tuple[Any, str]:
    """Return the exit code and stderr of a command that raises `error`."""

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
    """Check that `ngt runs | head` gives no traceback."""
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


def test_an_import_that_fails_elsewhere_than_in_torch_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ngt.commands.config", None)
    with pytest.raises(ModuleNotFoundError):
        main(["config"])


# ---------------------------------------------------------------- requirements


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
    """Import every ngt module except the GPU bench with only the training dependencies."""
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
        (
            "ngt.settings.options, ngt.settings.resolve, ngt.runs.keys",
            "print(len(ngt.runs.keys.run_table(ngt.settings.config.Config())))",
        ),
        ("ngt.cli", "ngt.cli.main(['--help'])"),
        (
            "ngt.commands.runs, ngt.commands.publish, ngt.commands.config",
            "ngt.cli.main(['config', '--schema'])",
        ),
        (
            "ngt.settings.recording as recording, ngt.settings.config as config",
            "print(recording.other_episodes(config.Config(), 'Ant-v4', []))",
        ),
    ],
)
def test_what_needs_no_torch(modules: str, does: str) -> None:
    """Check that settings and help load without torch, because both must be fast."""
    blocked = ["torch", "pandas", "mujoco"]
    code = HOOK.format(blocked=blocked, modules=f"ngt.cli, {modules}") + does
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


# ---------------------------------------------------------------- jobs of the workflow


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

    monkeypatch.setattr("ngt.commands.train.member_of", fail)
    with pytest.raises(SystemExit) as stop:
        ngt(*command, demos_file)
    assert stop.value.code == 2 and not out.exists(), "the workflow retries only without an outcome"
