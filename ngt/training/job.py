"""Training jobs. A job locks its runs' folders, resumes from checkpoints, and stops on a signal."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ngt.errors import Interrupted
from ngt.runs.lock import locked
from ngt.runs.status import COMPLETE, Status, status_of
from ngt.settings.config import CellConfig
from ngt.settings.resolve import config_hash
from ngt.training import checkpoint
from ngt.training.learner import Member
from ngt.training.trainer import Trainer, made_with

Say = Callable[[str], None]


def train(
    cell: CellConfig,
    members: Sequence[Member],
    name: str,
    say: Say,
    *,
    device: str,
    env_workers: int,
    checkpoint_every: int,
    fresh: bool,
    restart: bool,
) -> bool:
    """Train runs with the same settings together, or in groups if they resume from different steps.

    If a stop signal arrives before the last step, raise Interrupted. If later, return True.

    fresh: also train runs that are already finished.
    restart: remove the runs' checkpoints and start training from the beginning.
    """
    with contextlib.ExitStack() as locks:
        for member in members:
            locks.enter_context(owned(member))
        if not fresh:  # checked now: another process may have finished a run in the meantime
            members = [m for m in members if member_state(cell, m).status not in COMPLETE]
            if not members:
                return False
        if restart:
            for member in members:
                checkpoint.remove(member.folder)
        packs = list(groups(cell, members, say).items())
        for i, (step, group) in enumerate(packs, 1):
            part = "" if len(packs) == 1 else f" ({len(group)} of {len(members)} runs)"
            if step is not None:
                say(f"{name}{part}: resumes from its checkpoint at step {step}")
            for member in group:
                checkpoint.drop_after(member.folder, step)
            trainer = Trainer(
                cell,
                group,
                device=device,
                env_workers=env_workers,
                checkpoint_every=checkpoint_every,
            )
            with stops(trainer):
                trainer.run(name + part, step)
            if trainer.stop:  # the signal arrived during or after the last step
                if i < len(packs):
                    raise Interrupted(trainer.step)
                return True
        return False


def member_state(cell: CellConfig, member: Member) -> Status:
    """Return the status of a run's folder, given the run's key, settings and reference."""
    settings = config_hash(cell)
    return status_of(member.folder, member.key, settings, member.reference, wanted=cell)


@contextlib.contextmanager
def owned(member: Member) -> Iterator[None]:
    """Hold the lock on a run's folder, and remove checkpoints that a crash left there."""
    with locked(member.folder):
        if checkpoint.left_over(member.folder):
            checkpoint.remove(member.folder)
        yield


def groups(cell: CellConfig, members: Sequence[Member], say: Say) -> dict[int | None, list[Member]]:
    """Group runs by the step from which they resume. The step is None for runs that start over.

    All runs resume from the newest step at which every run has an intact checkpoint. If there is no
    such step, each run resumes from its own newest intact checkpoint.
    """
    steps = [checkpoint.usable(m.folder, made_with(cell, m), say) for m in members]
    for member, found in zip(members, steps, strict=True):
        if not found and checkpoint.steps(member.folder):
            say(f"{member.folder}: no checkpoint is intact; starting over")
    if common := set(steps[0]).intersection(*steps[1:]):
        return {max(common): list(members)}
    out: dict[int | None, list[Member]] = {}
    for member, found in zip(members, steps, strict=True):
        out.setdefault(max(found, default=None), []).append(member)
    return out


@contextlib.contextmanager
def stops(trainer: Trainer) -> Iterator[None]:
    """Within this context, let SIGTERM, SIGUSR1 or Ctrl-C stop the trainer after a checkpoint.

    A second Ctrl-C stops the trainer immediately. Outside the main thread, do nothing, since Python
    delivers signals only to the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        if number == signal.SIGINT and trainer.stop:
            raise KeyboardInterrupt
        trainer.stop = True

    former = {
        number: signal.signal(number, stop)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
