"""Tests of training jobs: locks, signals, and the checkpoint from which each run resumes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ngt import cli
from ngt.bench.cases import random_batch
from ngt.errors import Interrupted, UserError
from ngt.files import read_json
from ngt.runs import lock
from ngt.runs.lock import locked
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.training import checkpoint, job
from ngt.training.learner import Member
from ngt.training.records import Records
from ngt.training.trainer import Trainer

CELL = CellConfig(
    env="Pendulum-v1",
    method="m",
    model="ngt.reward:EnvReward",
    sac=SacConfig(hidden=(8, 8)),
    train=TrainConfig(
        steps=280, batch=8, buffer=400, eval_every=280, eval_episodes=1, log_every=200
    ),
)


def members_of(root: Path, count: int = 2) -> list[Member]:
    return [
        Member(root / str(s), {"seed": s}, s, 1, random_batch(1, 9, 3, 1)) for s in range(count)
    ]


def stop_at(member: Member, *steps: int) -> None:
    """Train to each of these steps in turn, leaving a checkpoint at each."""
    for i, step in enumerate(steps):
        trainer = Trainer(CELL, [member], checkpoint_every=step)
        marks = trainer._log_evaluate_save

        def until(stride: int, trainer=trainer, step=step, marks=marks) -> None:
            trainer.stop = trainer.step >= step
            marks(stride)

        trainer._log_evaluate_save = until  # type: ignore[method-assign]
        with pytest.raises(Interrupted):
            trainer.run("test", steps[i - 1] if i else None)


def train(
    members: list[Member],
    fresh: bool = False,
    restart: bool = False,
    stop: int | None = None,
    done: list[str] | None = None,
) -> list[str]:
    """Run a training job and return its messages.

    stop: step at which the job gets a SIGTERM
    done: list that gets an item if the signal came in the last step
    """
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        if stop is not None:
            marks = Trainer._log_evaluate_save

            def signalled(trainer: Trainer, stride: int) -> None:
                if trainer.step == stop:
                    os.kill(os.getpid(), signal.SIGTERM)
                marks(trainer, stride)

            patch.setattr(Trainer, "_log_evaluate_save", signalled)
        stopped = job.train(
            CELL,
            members,
            "name",
            said.append,
            device="cpu",
            env_workers=0,
            checkpoint_every=0,
            fresh=fresh,
            restart=restart,
        )
    if stopped and done is not None:
        done.append("stopped")
    return said


def test_runs_go_on_together_from_the_newest_step_that_all_have(tmp_path: Path) -> None:
    a, b = members_of(tmp_path)
    stop_at(a, 100, 200)
    stop_at(b, 100)
    assert job.groups(CELL, [a, b], print) == {100: [a, b]}
    assert train([a, b]) == ["name: resumes from its checkpoint at step 100"]
    assert not checkpoint.folder_of(a.folder).exists()


def test_runs_without_a_common_step_go_on_apart(tmp_path: Path) -> None:
    a, b = members_of(tmp_path)
    stop_at(a, 200)
    assert job.groups(CELL, [a, b], print) == {200: [a], None: [b]}
    assert train([a, b]) == ["name (1 of 2 runs): resumes from its checkpoint at step 200"]
    assert all((m.folder / "run.json").exists() for m in (a, b))
    assert not any((m.folder / ".lock").exists() for m in (a, b))


def test_nothing_whole_is_said(tmp_path: Path) -> None:
    (a,) = members_of(tmp_path, 1)
    stop_at(a, 100)
    (checkpoint.folder_of(a.folder) / "state-100.safetensors").write_bytes(b"")
    said = train([a])
    assert "step 100 is skipped" in said[0]
    assert said[1:] == [f"{a.folder}: no checkpoint is intact; starting over"]


def test_damaged_ones_of_later_steps_do_not_hide_new_ones(tmp_path: Path) -> None:
    """Damage all checkpoints, start over, stop before their steps, and resume from the new one."""
    (a,) = members_of(tmp_path, 1)
    stop_at(a, 200, 240)
    for state in checkpoint.folder_of(a.folder).glob("state-*"):
        state.write_bytes(b"")
    with pytest.raises(Interrupted, match="100"):
        train([a], stop=100)
    assert checkpoint.steps(a.folder) == [100]
    assert train([a]) == ["name: resumes from its checkpoint at step 100"]


def test_told_to_stop_in_the_last_step(tmp_path: Path) -> None:
    """Check that a job stopped in its last step ends normally and begins no further run."""
    a, b = members_of(tmp_path)
    said: list[str] = []
    assert train([a], stop=280, done=said) == [] and said == ["stopped"]
    (a.folder / "run.json").unlink()
    stop_at(a, 200)
    with pytest.raises(Interrupted, match="280"):
        train([a, b], stop=280)
    assert (a.folder / "run.json").exists() and not checkpoint.steps(b.folder)
    assert not (b.folder / "run.json").exists()


def test_restart_starts_over(tmp_path: Path) -> None:
    (a,) = members_of(tmp_path, 1)
    stop_at(a, 200)
    assert train([a], restart=True) == []


def test_what_another_process_has_just_finished_is_left(tmp_path: Path) -> None:
    a, b = members_of(tmp_path)
    train([a])
    made = (a.folder / "run.json").read_bytes()
    train([a, b])
    assert (a.folder / "run.json").read_bytes() == made and (b.folder / "run.json").exists()
    train([a, b])
    assert (a.folder / "run.json").read_bytes() == made
    train([a], fresh=True)
    assert (a.folder / "run.json").read_bytes() != made, "a fresh run must record new times"


def leave_checkpoint(member: Member) -> None:
    """Train a run, as a process does that is killed before it removes the run's checkpoint."""
    stop_at(member, 200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "remove", lambda folder: None)
        train([member])
    assert checkpoint.steps(member.folder) == [200]


def test_a_finished_run_s_checkpoint_that_a_crash_left_is_removed(tmp_path: Path) -> None:
    (a,) = members_of(tmp_path, 1)
    leave_checkpoint(a)
    assert train([a]) == [] and not checkpoint.folder_of(a.folder).exists()
    (a.folder / "run.json").unlink()
    leave_checkpoint(a)
    assert train([a], fresh=True) == [], "a fresh run must not resume from it"


def test_a_fresh_training_of_a_finished_run_keeps_its_checkpoint(tmp_path: Path) -> None:
    (a,) = members_of(tmp_path, 1)
    train([a])
    with pytest.raises(Interrupted):
        train([a], fresh=True, stop=100)
    assert train([a]) == [] and checkpoint.steps(a.folder) == [100]
    assert train([a], fresh=True) == ["name: resumes from its checkpoint at step 100"]


def test_runs_that_trained_apart_keep_their_own_times(tmp_path: Path) -> None:
    a, b = members_of(tmp_path)
    for member, seconds in ((a, 1000.0), (b, 5000.0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Records, "seconds", lambda self, run, seconds=seconds: seconds)
            stop_at(member, 200)
    train([a, b])
    for member, seconds in ((a, 1000.0), (b, 5000.0)):
        run = read_json(member.folder / "run.json")
        assert run["timing"][0] == [200, seconds] and run["timing"][-1][0] == 280
        for found in (run["train_seconds"], run["timing"][-1][1]):
            assert seconds < found < seconds + 500
        assert run["steps_per_second"] == round(280 / run["train_seconds"], 1)


def test_a_job_runs_outside_the_main_thread(tmp_path: Path) -> None:
    (a,) = members_of(tmp_path, 1)
    thread = threading.Thread(target=train, args=([a],))
    thread.start()
    thread.join()
    assert (a.folder / "run.json").exists()


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", lacking)
    with (
        pytest.raises(UserError, match="this file system can't lock files; choose another --res"),
        locked(tmp_path / "run"),
    ):
        pass


def test_a_folder_has_one_trainer(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "run"),
        pytest.raises(UserError, match=rf"process {os.getpid()} on .*; wait for it"),
        locked(tmp_path / "run"),
    ):
        pass
    with locked(tmp_path / "run"):  # the folder is free again
        pass
    assert list((tmp_path / "run").iterdir()) == []


def test_a_trainer_that_is_just_finishing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a trainer that finishes does not remove the lock of the next trainer."""
    monkeypatch.setattr(lock, "PATIENCE", 60.0)
    held, free = threading.Event(), threading.Event()

    def first() -> None:
        with locked(tmp_path):
            held.set()
            free.wait(0.2)

    thread = threading.Thread(target=first)
    thread.start()
    assert held.wait(60)
    with locked(tmp_path):
        thread.join()
        assert (tmp_path / ".lock").exists()
        monkeypatch.setattr(lock, "PATIENCE", 0.0)
        with pytest.raises(UserError, match="being trained"), locked(tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_signals_stop_it_and_handlers_are_put_back(number: signal.Signals) -> None:
    class Idle:
        stop = False

    idle = Idle()
    before = signal.getsignal(number)
    with job.stops(idle):  # type: ignore[arg-type]
        os.kill(os.getpid(), number)
        assert idle.stop
        if number == signal.SIGINT:
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def command(root: Path) -> list[str]:
    settings = ("expert.train.steps=1000", "checkpoint_every=100")
    options = [word for setting in settings for word in ("--set", setting)]
    return ["expert", "Pendulum-v1", "--scale", "test", "--results", str(root), *options]


EXPERT = Path("test/experts/Pendulum-v1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed run."""
    root = tmp_path_factory.mktemp("whole")
    cli.main(command(root))
    return root / EXPERT


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_command_goes_on_to_the_same_files(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    """Kill the command's process, then run the same command in this process."""
    folder = tmp_path / EXPERT
    killed = [sys.executable, "-m", "ngt.cli", *command(tmp_path)]
    process = subprocess.Popen(killed, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not checkpoint.steps(folder):
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate()
    if number == signal.SIGTERM:
        assert process.returncode == os.EX_TEMPFAIL
        assert "stopped at step" in err and "the same command resumes from there" in err
    else:
        assert process.returncode == -signal.SIGKILL
    capsys.readouterr()
    cli.main(command(tmp_path))
    assert "resumes from its checkpoint at step" in capsys.readouterr().out
    for name in ("eval.csv", "train.csv", "policy.safetensors", "config.json"):
        assert (whole / name).read_bytes() == (folder / name).read_bytes(), name
    files = {p.name for p in folder.iterdir()}
    assert files == {"config.json", "eval.csv", "policy.safetensors", "run.json", "train.csv"}
