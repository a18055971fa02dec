"""Functions that ship a trained expert and its recorded episodes, i.e. write them to data/."""

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.errors import UserError
from ngt.experience import demos, shipped
from ngt.experience.demos import Demos
from ngt.experience.reference import reference_of, unscored
from ngt.files import atomic, json_text, sha256
from ngt.runs.folder import Folders, read_folder
from ngt.runs.keys import Layout
from ngt.settings.config import Config
from ngt.settings.recording import difference
from ngt.settings.resolve import plain, resolve_expert

# Size limit of an expert's recorded episodes in bytes. Sixteen episodes take 1 to 3 million bytes
# on most tasks, but 16 million on Humanoid-v4. On such a task, only as many episodes are shipped as
# fit into this limit.
LARGEST = 4_000_000

# Largest allowed difference between a recorded action and the same action computed again. The
# difference is not 0, since kernels and processors differ in how they round.
SAME_ACTION = 1e-3


class Sources(NamedTuple):
    """The files of a trained and recorded expert."""

    policy: Path
    demos: Path
    curve: Path


def ship(layout: Layout, config: Config, env: str, *, replace_better: bool = False) -> str:
    """Copy an expert from results/ to data/<env>/, and return a line that describes the expert.

    Raise UserError unless

    - the expert is finished, undamaged, and has the current settings and seed
    - the expert's policy comes from the expert's best evaluation
    - the recording comes from this policy
    - the expert is better than a random policy
    - the expert is at least as good as the expert in data/, or `replace_better` is set
    """
    folder, cell, name = layout.expert(env), resolve_expert(config, env), f"expert {env}"
    expert = Folders(layout, config).expert_status(env)
    if expert.status != "finished":
        raise UserError(
            f"{name} in {folder}: {': '.join(filter(None, expert[:2]))}; train it with "
            f"`ngt expert {env}`"
        )
    run = read_folder(folder, name).run
    if "kept" not in run:
        raise UserError(
            f"{name}: no best policy was kept (expert.train.keep is '{cell.train.keep}'); "
            f"set it to 'best' and retrain"
        )
    files = Sources(folder / shipped.POLICY, layout.demos(env), folder / "eval.csv")
    data = demos.load(files.demos, env)
    check_recorded(data, policy.load(files.policy)[0], str(run["config_hash"]), files.demos)
    if reason := unscored(reference_of(data)):
        raise UserError(f"{name}: cannot ship: {reason}; train it longer, or with other settings")
    if shipped.ships(env) and not replace_better:
        before = float(np.mean(shipped.read(env)["returns"]))
        if data.expert < before:
            raise UserError(
                f"{name}: return {data.expert:.1f} is below the shipped expert's {before:.1f}; "
                f"pass --replace to ship it anyway"
            )
    return write(env, files, run, plain(cell), data)


def check_recorded(data: Demos, actor: Policy, source: str, where: Path) -> None:
    """Check that recorded episodes come from this policy.

    data: the recorded episodes.
    source: hash of the settings with which the policy was trained.
    where: the recording's file.
    """
    far = distance(data, actor)
    if data.source != source or far > SAME_ACTION:
        raise UserError(
            f"demonstrations {where}: recorded from another policy (actions differ by {far:.2g}); "
            f"record this one with `ngt record {data.env}`"
        )


def is_of(config: Config, file: Path, env: str, policy_file: Path | None) -> bool:
    """Return True if a demonstration file is intact and is the recording that the config names.

    policy_file: file of the expert's policy, or None to accept any policy.
    """
    try:
        data = demos.load(file, env)
        actor = None if policy_file is None else policy.load(policy_file)[0]
    except UserError:
        return False
    if difference(config, env, data.source, data.seeds):
        return False
    return actor is None or distance(data, actor) <= SAME_ACTION


def distance(data: Demos, actor: Policy) -> float:
    """Return the largest difference between a recorded action and the policy's action."""
    ends = np.cumsum(data.length + 1) - 1  # rows of final observations, which have no action
    obs = torch.from_numpy(np.delete(data.obs, ends, axis=0))
    return float(np.abs(actor(obs[None])[0].numpy() - data.action).max())


def write(
    env: str, files: Sources, run: dict[str, Any], settings: dict[str, Any], data: Demos
) -> str:
    """Write an expert's files to data/<env>, and return a line that describes them.

    Files of an earlier expert are overwritten.
    """
    folder, count = shipped.DATA / env, len(data.length)
    episodes, recorded = count, files.demos.read_bytes()
    while len(recorded) > LARGEST:
        if episodes == 1:
            raise UserError(
                f"expert {env}: even one recorded episode has {len(recorded)} bytes, but at most "
                f"{LARGEST} can ship; record shorter episodes"
            )
        episodes -= 1
        recorded = to_bytes(first(data, episodes))
    content = {
        shipped.POLICY: files.policy.read_bytes(),
        shipped.DEMOS: recorded,
        shipped.CURVE: files.curve.read_bytes(),
    }
    expert = describe(run, settings, data, episodes, content)
    content[shipped.EXPERT] = json_text(expert).encode()
    size = sum(map(len, content.values()))
    with contextlib.ExitStack() as stack:
        for name, part in content.items():
            stack.enter_context(atomic(folder / name)).write_bytes(part)
    return (
        f"{folder}: return {data.expert:.1f} (from {data.returns.min():.1f} to "
        f"{data.returns.max():.1f}; episodes: {count}), {episodes} of them recorded, "
        f"{size / 1e6:.1f} MB"
    )


def describe(
    run: dict[str, Any],
    settings: dict[str, Any],
    data: Demos,
    episodes: int,
    content: dict[str, bytes],
) -> dict[str, Any]:
    """Return the content of expert.json, given the expert's run.json and settings."""
    elsewhere = ("files", "reference", "timing")
    return {
        "format": shipped.FORMAT,
        "env": data.env,
        "returns": data.returns.tolist(),  # returns of the deterministic policy in new episodes
        "lengths": data.length.tolist(),
        "random": data.random,  # mean return of a random policy, over as many episodes
        "episodes": episodes,  # number of recorded episodes in demos.npz
        "files": {name: sha256(part) for name, part in content.items()},
        **{name: value for name, value in run.items() if name not in elsewhere},
        "config": settings,
        "timing": run["timing"],
    }


def first(data: Demos, episodes: int) -> Demos:
    """Return a recording's first episodes, and all of its returns of the random policy."""
    steps = int(data.length[:episodes].sum())
    rows = {"obs": steps + episodes, "action": steps, "reward": steps}
    rows |= dict.fromkeys(("length", "terminated", "returns", "seeds"), episodes)
    return replace(data, **{name: getattr(data, name)[:count] for name, count in rows.items()})


def to_bytes(data: Demos) -> bytes:
    """Encode demonstrations as the content of a demonstration file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / shipped.DEMOS
        demos.save(path, data)
        return path.read_bytes()
