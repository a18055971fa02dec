"""Functions that several `ngt` commands use to train or run policies."""

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path

import torch

from ngt.errors import UserError
from ngt.experience.demos import Demos, load
from ngt.experience.reference import reference_of, unscored
from ngt.files import read_json
from ngt.foreign.recognise import refuse_foreign
from ngt.runs.former import bring_back, find, former_of, returned
from ngt.runs.lock import locked
from ngt.runs.status import COMPLETE, status_of
from ngt.settings.config import CellConfig, Config
from ngt.settings.options import user_settings
from ngt.settings.resolve import config_hash, resolve_expert
from ngt.text import amount, announce, say
from ngt.training import checkpoint, job
from ngt.training.learner import Member
from ngt.training.progress import Progress


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options that `ngt train` and `ngt expert` have in common."""
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument(
        "--env-workers",
        type=int,
        default=0,
        help="number of processes that step the envs; 0 (default) steps them in this process",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="train again even if the run is finished"
    )
    parser.add_argument(
        "--restart", action="store_true", help="ignore checkpoints and start from the beginning"
    )
    add_outcome(parser)


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Add the --strict option, which refuses demonstrations that the env cannot have produced."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse demonstrations that the env cannot have produced, instead of warning",
    )


def check_new(out: Path) -> None:
    """Raise UserError if the file that --out names exists, since it would be replaced."""
    if out.exists():
        raise UserError(f"--out: {out} exists; remove it or give another name")


def add_outcome(parser: argparse.ArgumentParser) -> None:
    """Add the --outcome option, with which a workflow job reports why it refuses to run."""
    parser.add_argument(
        "--outcome",
        type=Path,
        metavar="FILE",
        help="for the workflow: if the command refuses to run, write the reason to this file and "
        "exit with 0; otherwise, leave the file empty",
    )


def one_thread(device: str = "cpu") -> None:
    """Make torch use a single thread, since other jobs use the other cores, and check the device.

    Raise UserError if the device does not exist.
    """
    torch.set_num_threads(1)
    try:
        torch.device(device)
    except RuntimeError:
        raise UserError(f"--device: {device!r} is not a device; use cpu or cuda") from None
    if device != "cpu" and not torch.cuda.is_available():
        raise UserError(f"--device: {device!r} needs CUDA, but torch sees no device; use cpu")


def policy_file(path: Path) -> Path:
    """Return the policy file for a path, which is either a policy file or a run's folder."""
    return path if path.suffix == ".safetensors" or path.is_file() else path / "policy.safetensors"


def terminates(file: Path, env: str, config: Config, args: argparse.Namespace) -> bool:
    """Return the value of `terminate_when_unhealthy` with which to play a policy.

    The value is the user's if --config or --set contains the setting. Otherwise, it is the value
    with which the policy was trained, if the policy is in a run's folder, or else the config's.

    file: the policy's file.
    env: the env that the policy was trained on.
    """
    value = resolve_expert(config, env).terminate_when_unhealthy
    own = read_json(file.parent / "config.json")
    if "terminate_when_unhealthy" in user_settings(args) or not isinstance(own, dict):
        return value
    return bool(own.get("terminate_when_unhealthy", value))


def say_demos(file: Path, data: Demos) -> None:
    """Print a file's number of episodes and the returns of the expert and the random policy."""
    say(
        f"{file}: {amount(len(data.length), 'episode')}, return {data.expert:.1f} "
        f"(from {data.returns.min():.1f} to {data.returns.max():.1f}), random {data.random:.1f}"
    )


def read_demos(file: Path, env: str, **options: bool) -> Demos:
    """Load demonstrations from a file in the suite's own format.

    If the file has another project's format, raise a UserError that names the command to import the
    file.

    options: options of `ngt.experience.demos.load`.
    """
    refuse_foreign(file, env)
    return load(file, env, **options)


def warn_of_scale(data: Demos) -> None:
    """Print a warning if the returns of these demonstrations cannot serve to normalise returns."""
    if reason := unscored(reference_of(data)):
        say(f"warning: {data.env}: no return can be normalised: {reason}")


def needs_training(cell: CellConfig, member: Member, name: str, args: argparse.Namespace) -> bool:
    """Return True if a run must be trained.

    A former result is an earlier result that a newer one replaced. If the run has a former result
    with these settings, restore this result and return False, unless --fresh is set. Print a
    message if the run need not be trained, or if its folder holds a damaged result or a result with
    different settings.
    """
    status, note, _ = job.member_state(cell, member)
    if status in COMPLETE and not args.fresh:
        if checkpoint.left_over(member.folder):
            with contextlib.suppress(UserError), job.owned(member):
                pass  # removed; or another process trains the run
        say(
            f"{name}: finished already in {member.folder}; to train it again, pass --fresh (in "
            f"Python, move this folder away)"
        )
        return False
    if not args.fresh and came_back(cell, member):
        return False
    if status in ("stale", "damaged"):
        say(
            f"{name}: {status}: {note}; when the new run is complete, the old one moves to "
            f"{former_of(member.folder)}"
        )
    return True


def came_back(cell: CellConfig, member: Member) -> bool:
    """Restore a former (replaced) result that has these settings to the run's folder.

    Return False if there is no such result.
    """

    def fits(folder: Path) -> bool:
        state = status_of(folder, member.key, config_hash(cell), member.reference)
        return state.status in COMPLETE

    if not former_of(member.folder).exists():
        return False
    with locked(member.folder):
        if place := find(member.folder, fits):
            say(returned(member.folder, place, bring_back(member.folder, place)))
    return place is not None


def train_members(
    cell: CellConfig, members: Sequence[Member], name: str, config: Config, args: argparse.Namespace
) -> bool:
    """Train runs together as a pack, and resume from their checkpoints if there are any.

    Return True if a stop signal came after the last step, when the runs were already complete.
    """
    announce(
        f"{name}: trains to env step {cell.train.steps}; progress, with the time left, is shown at "
        f"least every {Progress.EVERY:.0f} s"
    )
    return job.train(
        cell,
        members,
        name,
        say,
        device=args.device,
        env_workers=args.env_workers,
        checkpoint_every=config.checkpoint_every,
        fresh=args.fresh,
        restart=args.restart,
    )


def report(folder: Path, name: str) -> None:
    """Print whether a run finished or diverged."""
    record = read_json(folder / "run.json") or {}
    if record.get("status") == "diverged":
        say(f"{name}: diverged at step {record['step']}: {record['tensor']} is not finite")
    else:
        say(f"{name}: finished in {record['wall_seconds']:.0f} s -> {folder}")
