"""Tests of checkpoints: they are complete or absent, and training resumes as if never stopped.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from ngt import files
from ngt.bench.cases import random_batch
from ngt.errors import Interrupted, UserError
from ngt.experience.envs import get_task
from ngt.runs.provenance import source_hash
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.state import Ring, State
from ngt.training import checkpoint
from ngt.training.learner import Member
from ngt.training.trainer import Trainer, made_with

FILES = ("eval.csv", "train.csv", "policy.safetensors")
METHODS = {
    "ngt.potential:Potential": {"hidden": [16, 16], "m": 4},
    "baselines.dac:Dac": {"hidden": [16, 16]},
    "baselines.bc:Bc": {},
    "baselines.pwil:Pwil": {},
    "ngt.reward:EnvReward": {},
}

OWN_METHOD = """
from ngt.reward import Constant


class Mine(Constant):
    def reward(self, batch):
        return 1.0 * super().reward(batch)
"""


def cell_of(model: str, env: str = "Hopper-v4", **train: object) -> CellConfig:
    settings = {
        "steps": 400,
        "batch": 16,
        "buffer": 300,
        "eval_every": 200,
        "eval_episodes": 2,
        "log_every": 80,
        "keep": "best",
        **train,
    }
    return CellConfig(
        env=env,
        method="m",
        model=model,
        params=METHODS[model],
        normalise_obs=True,
        sac=SacConfig(hidden=(16, 16)),
        train=TrainConfig(**settings),
    )


def members_of(cell: CellConfig, root: Path, seeds: Sequence[int] = (0, 1)) -> list[Member]:
    task = get_task(cell.env)
    return [
        Member(root / str(s), {"seed": s}, s, 1, random_batch(1, 30 + s, task.obs, task.act))
        for s in seeds
    ]


class Stopped(Trainer):
    """A trainer that stops at step `at`."""

    at = 0

    def _log_evaluate_save(self, stride: int) -> None:
        self.stop = self.step >= self.at
        super()._log_evaluate_save(stride)


def train(
    cell: CellConfig,
    members: Sequence[Member],
    resume: int | None = None,
    at: int = 10**9,
    every: int = 0,
    workers: int = 0,
) -> bool:
    """Train, and return whether training reached its end."""
    trainer = Stopped(cell, members, checkpoint_every=every, env_workers=workers)
    trainer.at = at
    try:
        trainer.run("test", resume)
    except Interrupted:
        return False
    return True


def quiet(text: str) -> None:
    raise AssertionError(text)


def usable(cell: CellConfig, member: Member, say: Callable[[str], None] = quiet) -> list[int]:
    return checkpoint.usable(member.folder, made_with(cell, member), say)


def same(a: Sequence[Member], b: Sequence[Member]) -> bool:
    pairs = [(x.folder / f, y.folder / f) for x, y in zip(a, b, strict=True) for f in FILES]
    return all(x.read_bytes() == y.read_bytes() for x, y in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("model", METHODS)
def test_interrupted_four_times_is_byte_identical(tmp_path: Path, model: str) -> None:
    """Interrupt within a block of draws, at its end, again in the same log interval, and later.

    At the last interruption, the buffer is full.
    """
    cell = cell_of(model)
    whole, parts = members_of(cell, tmp_path / "a"), members_of(cell, tmp_path / "b")
    assert train(cell, whole)
    resume = None
    for at in (56, 256, 260, 340):
        assert not train(cell, parts, resume, at, every=200)
        found = [usable(cell, m) for m in parts]
        assert found[0] == found[1] and found[0][0] == at and len(found[0]) <= 2
        resume = at
    assert train(cell, parts, resume)
    assert same(whole, parts)
    assert not checkpoint.folder_of(parts[0].folder).exists(), (
        "a finished run must keep no checkpoint"
    )
    assert len({m.folder.joinpath("eval.csv").read_bytes() for m in whole}) == 2


def test_the_older_of_two_serves_as_well(tmp_path: Path) -> None:
    cell = cell_of("ngt.potential:Potential", steps=320)
    whole, parts = members_of(cell, tmp_path / "a"), members_of(cell, tmp_path / "b")
    assert train(cell, whole)
    assert not train(cell, parts, None, at=240, every=100)
    assert usable(cell, parts[0]) == [240, 200]
    for member in parts:
        checkpoint.drop_after(member.folder, 200)
        assert usable(cell, member) == [200]
    assert not train(cell, parts, 200, at=280, every=100)
    assert usable(cell, parts[0]) == [280, 200]
    assert train(cell, parts, 280)
    assert same(whole, parts)


@pytest.mark.parametrize("model", ["ngt.reward:EnvReward", "baselines.pwil:Pwil"])
@pytest.mark.parametrize("run", [0, 1])
def test_a_member_goes_on_alone(tmp_path: Path, model: str, run: int) -> None:
    """Check that the runs of a pack are stored separately, so that one can resume alone.

    The runs have 30 and 31 expert transitions.
    """
    cell = cell_of(model, steps=240)
    members = members_of(cell, tmp_path)
    assert not train(cell, members, None, at=120)
    assert train(cell, [members[run]], 120)
    assert (members[run].folder / "run.json").exists()
    assert not (members[1 - run].folder / "run.json").exists()
    assert usable(cell, members[1 - run]) == [120]


def test_runs_that_were_stopped_alone_go_on_together(tmp_path: Path) -> None:
    cell = cell_of("baselines.pwil:Pwil", steps=240)
    members = members_of(cell, tmp_path)
    for member in members:
        assert not train(cell, [member], None, at=120)
    assert train(cell, members, 120)
    assert all((member.folder / "run.json").exists() for member in members)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run that was interrupted at step 240."""
    root = tmp_path_factory.mktemp("half")
    cell = cell_of("ngt.reward:EnvReward")
    assert not train(cell, members_of(cell, root, (0,)), None, at=240, every=160)
    return root


@pytest.fixture
def interrupted(half: Path, tmp_path: Path) -> tuple[CellConfig, Member]:
    """Return the settings of an interrupted run, and the run in a folder of the test's own."""
    shutil.copytree(half, tmp_path, dirs_exist_ok=True)
    cell = cell_of("ngt.reward:EnvReward")
    (member,) = members_of(cell, tmp_path, (0,))
    assert usable(cell, member) == [240, 160]
    return cell, member


def test_a_damaged_one_is_passed_over_for_the_older(interrupted: tuple[CellConfig, Member]) -> None:
    cell, member = interrupted
    folder = checkpoint.folder_of(member.folder)
    for name, damage in {
        "state-240.safetensors": lambda b: b[:100] + bytes([b[100] ^ 1]) + b[101:],
        "collector.rows-160-240.f32": lambda b: b[:-4],
        "step-240.json": lambda b: b[: len(b) // 2],
    }.items():
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(damage(whole))
        said: list[str] = []
        assert usable(cell, member, said.append) == [160]
        assert len(said) == 1 and "step 240 is skipped" in said[0]
        (folder / name).unlink()
        assert usable(cell, member, said.append) == [160]
        (folder / name).write_bytes(whole)
    (folder / "collector.rows-0-160.f32").write_bytes(b"")  # both checkpoints need these rows
    said = []
    assert usable(cell, member, said.append) == []
    assert ["step 240" in said[0], "step 160" in said[1]] == [True, True]


def test_what_the_disk_does_not_give_now_is_not_given_up(
    interrupted: tuple[CellConfig, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a read error stops the job; resuming an older checkpoint would drop the newest."""
    cell, member = interrupted

    def failing(path: Path, mode: str) -> Any:
        if path.name == "state-240.safetensors":
            raise OSError(errno.EIO, "Input/output error", str(path))
        return open(path, mode)

    monkeypatch.setattr(files, "open", failing, raising=False)
    with pytest.raises(UserError, match=r"state-240.safetensors can't be read: Input/output error"):
        usable(cell, member)
    assert checkpoint.steps(member.folder) == [240, 160]
    (checkpoint.folder_of(member.folder) / "state-240.safetensors").unlink()
    said: list[str] = []
    assert usable(cell, member, said.append) == [160] and len(said) == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"buffer": 301}, "config.train.buffer was 300 and is now 301"),
        ({"batch": 17}, "config.train.batch was 16 and is now 17"),
    ],
)
def test_other_settings_are_refused_by_name(
    interrupted: tuple[CellConfig, Member], change: dict, text: str
) -> None:
    _, member = interrupted
    with pytest.raises(UserError, match=text) as caught:
        usable(cell_of("ngt.reward:EnvReward", **change), member)
    assert "--restart" in str(caught.value) and "\n" not in str(caught.value)


def test_the_cause_is_named_before_what_follows_from_it(
    interrupted: tuple[CellConfig, Member],
) -> None:
    """Check that the changed setting is named, not the demonstrations' source.

    A changed training setting applies to the expert too, so the source changes with it.
    """
    _, member = interrupted
    cell = dataclasses.replace(cell_of("ngt.reward:EnvReward", steps=800), demos_source="other")
    with pytest.raises(UserError, match=r"config\.train\.steps was 400 and is now 800"):
        usable(cell, member)


def test_other_code_is_refused(
    interrupted: tuple[CellConfig, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, member = interrupted
    monkeypatch.setattr("ngt.training.trainer.source_hash", lambda *_: "other")
    with pytest.raises(UserError, match=r"source was .* and is now other"):
        usable(cell, member)


def test_other_code_of_a_users_method_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "method_of_a_test.py"
    file.write_text(OWN_METHOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(METHODS, "method_of_a_test:Mine", {})
    cell = cell_of("method_of_a_test:Mine")
    (member,) = members_of(cell, tmp_path, (0,))
    assert not train(cell, [member], None, at=240, every=160)
    assert usable(cell, member) == [240, 160]
    file.write_text(OWN_METHOD.replace("1.0", "2.0"))
    source_hash.cache_clear()  # a new process reads the code anew
    with pytest.raises(UserError, match=r"source was .* and is now"):
        usable(cell, member)


def test_size_is_bounded(tmp_path: Path) -> None:
    """Check the size of a checkpoint folder after many saves.

    It holds two states, and at most the rows of a full buffer and of three intervals. The actions
    are random, since updates change no size.
    """
    cell = cell_of("ngt.reward:EnvReward", steps=2000, eval_every=2000, learning_starts=2000)
    (member,) = members_of(cell, tmp_path, (0,))
    assert not train(cell, [member], None, at=1800, every=80)
    folder = checkpoint.folder_of(member.folder)
    width = 11 + 3 + 3
    rows = sum(p.stat().st_size for p in folder.glob("collector.rows-*")) / (4 * width)
    assert 300 <= rows <= 300 + 3 * 80
    assert len(list(folder.glob("step-*"))) == len(list(folder.glob("state-*"))) == 2


def test_what_is_read_is_data(interrupted: tuple[CellConfig, Member]) -> None:
    """Check that checkpoints are JSON, safetensors or raw floats, which cannot contain code."""
    _, member = interrupted
    folder = checkpoint.folder_of(member.folder)
    assert {p.suffix for p in folder.iterdir()} == {".json", ".safetensors", ".f32"}
    manifest = json.loads((folder / "step-240.json").read_text())
    (folder / "step-240.json").write_text(
        json.dumps({**manifest, "files": {"../../evil.f32": {"bytes": 0, "blake2b": ""}}})
    )
    said: list[str] = []
    assert checkpoint.usable(member.folder, manifest["made_with"], said.append) == [160]


def test_an_env_that_no_seed_determines_is_told(interrupted: tuple[CellConfig, Member]) -> None:
    cell, member = interrupted
    saved = checkpoint.load(member.folder, 240)
    assert saved.keys() == {"learner", "records", "collector"}
    collector = saved["collector"]
    rows, finals = collector.rings["rows"], collector.rings["finals"]
    assert rows.total == 240 and rows.items().shape == (240, 11 + 3 + 3)
    assert finals.total == (rows.items()[:, -1] > 0).sum()
    assert finals.items().shape == (finals.total, 11)
    trainer = Trainer(cell, [member])
    moved = State({"obs": collector.tensors["obs"] + 1.0})
    with pytest.warns(UserWarning, match="the same seed and actions led elsewhere"):
        trainer_restore(trainer, [{**saved, "collector": collector | moved}])


def test_lack_of_memory_is_no_fault_of_the_checkpoint(
    interrupted: tuple[CellConfig, Member],
) -> None:
    cell, member = interrupted
    trainer = Trainer(cell, [member])
    with pytest.MonkeyPatch.context() as patch:
        error = RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        patch.setattr(trainer.learner, "restore", lambda states: (_ for _ in ()).throw(error))
        with pytest.raises(RuntimeError, match="out of memory"):
            trainer._restore([checkpoint.load(member.folder, 240)])


def trainer_restore(trainer: Trainer, saved: list[dict[str, State]]) -> None:
    """Restore saved states as `run` does before its first step."""
    trainer._log_evaluate_save = lambda stride: (_ for _ in ()).throw(Interrupted(0))  # type: ignore[assignment,method-assign]
    original = checkpoint.load
    try:
        checkpoint.load = lambda run, step: saved[0]  # type: ignore[assignment]
        with pytest.raises(Interrupted):
            trainer.run("test", 240)
    finally:
        checkpoint.load = original


def test_differences_are_named_by_leaf() -> None:
    a = {"x": {"y": 1, "z": [1, 2]}, "w": None}
    b = {"x": {"y": 2, "z": [1, 2]}, "v": 3}
    assert list(checkpoint.differences(a, b)) == [("v", None, 3), ("x.y", 1, 2)]


def test_a_ring_is_saved_once_and_read_back_whole(tmp_path: Path) -> None:
    """Save two growing ring buffers several times, and check that old items are dropped."""
    came = {"rows": 0, "finals": 0}
    for step in range(1, 9):
        rings = {}
        for name, pace, keep, width in (("rows", 4, 10, 3), ("finals", step % 3, 5, 2)):
            came[name] += pace
            order = torch.arange(max(came[name] - keep, 0), came[name])
            table = torch.arange(came[name], dtype=torch.float32)[:, None].expand(-1, width)
            rings[name] = Ring(table, order, came[name])
        state = State({"x": torch.ones(1)}, {"n": step}, rings)
        checkpoint.save(tmp_path, {"a": 1}, step, {"part": state, "empty": State()})
        assert checkpoint.usable(tmp_path, {"a": 1}, quiet)[0] == step
        loaded = checkpoint.load(tmp_path, step)
        assert loaded["empty"] == State() and loaded["part"].data == {"n": step}
        for name, kept in loaded["part"].rings.items():
            assert kept.total == came[name]
            assert kept.items()[:, -1].tolist() == rings[name].order.tolist()
    folder = checkpoint.folder_of(tmp_path)
    assert sorted(p.name for p in folder.glob("part.rows-*")) == [
        f"part.rows-{first}-{first + 4}.f32" for first in (16, 20, 24, 28)
    ]


def test_an_older_format_is_refused_in_one_line(
    interrupted: tuple[CellConfig, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, member = interrupted
    monkeypatch.setattr(checkpoint, "VERSION", checkpoint.VERSION + 1)
    with pytest.raises(
        UserError, match=r"240 has format 4, but this code reads format 5; .*--restart$"
    ):
        usable(cell, member)
    file = checkpoint.folder_of(member.folder) / "step-240.json"
    file.write_text(file.read_text().replace('"version": 4', '"version": 3'))  # looks like damage
    said: list[str] = []
    with pytest.raises(UserError, match="step 160 has format 4"):
        checkpoint.usable(member.folder, {}, said.append)
    assert "step 240 is skipped: its manifest is damaged" in said[0]


def test_a_ring_of_any_name_is_a_name(tmp_path: Path) -> None:
    """Check ring names with special characters, since a regular expression contains the name."""
    checkpoint.save(tmp_path, {}, 4, {"part": State({"x": torch.zeros(1)})})
    file = checkpoint.folder_of(tmp_path) / "step-4.json"
    for name in ("(", "(([a-z]+)+)+x"):
        manifest = json.loads(file.read_text())
        manifest["rings"] = {name: {"first": 0, "total": 0, "width": 1}}
        del manifest["blake2b"]
        file.write_text(json.dumps({**manifest, "blake2b": checkpoint._digest(manifest)}))
        assert checkpoint.usable(tmp_path, {}, print) == [4]


def test_a_folder_among_checkpoints_is_left_alone(tmp_path: Path) -> None:
    (checkpoint.folder_of(tmp_path) / "mine").mkdir(parents=True)
    for step in (2, 4, 6):
        checkpoint.save(tmp_path, {}, step, {"part": State({"x": torch.zeros(1)})})
    assert (
        checkpoint.steps(tmp_path) == [6, 4] and (checkpoint.folder_of(tmp_path) / "mine").is_dir()
    )
    checkpoint.remove(tmp_path)
    assert [p.name for p in checkpoint.folder_of(tmp_path).iterdir()] == ["mine"]
