"""Record, save, load and subsample demonstrations.

A demonstration file is a NumPy archive, without pickle, that contains whole episodes, one after
another. The file also contains the returns of a random policy, which are needed to normalise
scores. An episode of T steps has T + 1 observations, so that the last transition also has a next
observation.
"""

import contextlib
import copy
import json
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.experience.examine import (
    ARRAYS,
    OPTIONAL,
    arrays_of,
    check,
    facts_of,
    measure_spread,
    numbers,
    tell,
    to_float32,
)
from ngt.experience.replay import Batch, hide
from ngt.experience.rollout import Act, play_random, random_seeds, rollout
from ngt.experience.units import ambiguity, to_unit
from ngt.experience.vector import VectorEnv
from ngt.files import atomic, check_unpacked, sha256
from ngt.seeding import record_seeds, rng

FORMAT, VERSION = "ngt-demos", 1


@dataclass(frozen=True)
class Demos:
    """Recorded episodes of one env. `ngt.experience.examine` describes the arrays."""

    env: str
    obs: NDArray[np.float32]
    action: NDArray[np.float32]
    reward: NDArray[np.float32]
    length: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    returns: NDArray[np.float64]
    seeds: NDArray[np.int64]
    random_returns: NDArray[np.float64]
    source: str  # hash of the expert's config, or a description by the user
    spread: NDArray[np.float32] | None = None  # from `measure_spread`; None if unknown

    @property
    def expert(self) -> float:
        """Return the demonstrations' mean return, whose normalised score is 1."""
        return float(self.returns.mean())

    @property
    def random(self) -> float:
        """Return the uniform-random policy's mean return, whose normalised score is 0."""
        return float(self.random_returns.mean())

    @property
    def checksum(self) -> str:
        """Return the SHA-256 digest of the env's id and of all arrays in ARRAYS."""
        parts = [self.env.encode()]
        for name in ARRAYS:
            array: NDArray[Any] = getattr(self, name)
            parts += [f"{name}{array.dtype}{array.shape}".encode(), array.tobytes()]
        return sha256(b"".join(parts))


class Episode(NamedTuple):
    """An episode of T steps: obs (T + 1, obs), action (T, act), reward (T,), and how it ended."""

    obs: NDArray[Any]
    action: NDArray[Any]
    reward: NDArray[Any]
    terminated: bool
    seed: int = -1  # the env's seed, or -1 if it is unknown


def from_episodes(
    env: str,
    episodes: Iterable[Episode],
    random_returns: NDArray[np.float64],
    source: str,
    *,
    actions: str,
) -> Demos:
    """Make demonstrations from a user's own episodes, with the same checks as in `load`.

    Warn if the actions could be in either of the two units. Also measure each observation column's
    spread under a random policy.

    actions: the unit of the episodes' actions: "env" for the env's own units, "unit" for [-1, 1].
    """
    task, episodes = get_task(env), list(episodes)
    kinds = [type(episode) for episode in episodes]
    for i, kind in enumerate(kinds):
        if not issubclass(kind, Episode):
            raise UserError(f"episodes: episode {i}: found a {kind.__name__}, expected an Episode")
    _, given, _ = arrays_of(episodes, task)  # shapes come first: a wrong unit may be a wrong env
    fractions = to_unit(given, actions, task, "episodes")
    demos = assemble(
        env,
        [e._replace(action=a) for e, a in zip(episodes, fractions, strict=True)],
        random_returns,
        source,
    )
    if note := ambiguity(given, actions, task):
        warnings.warn(f"episodes: {note}", stacklevel=2)
    return demos


def assemble(
    env: str, episodes: Sequence[Episode], random_returns: NDArray[np.float64], source: str
) -> Demos:
    """Make demonstrations from episodes whose actions lie in [-1, 1]."""
    if not episodes:
        raise UserError("episodes: found none, expected at least 1")
    obs, action, reward = arrays_of(episodes, get_task(env))
    terminated, seeds = facts_of(episodes)
    demos = Demos(
        env=env,
        obs=_end_to_end(obs, "obs"),
        action=_end_to_end(action, "action"),
        reward=_end_to_end(reward, "reward"),
        length=np.array([len(a) for a in action], np.int64),
        terminated=terminated,
        returns=np.array([np.sum(r, dtype=np.float64) for r in reward]),
        seeds=seeds,
        random_returns=np.atleast_1d(numbers(random_returns, "random_returns")).astype(np.float64),
        source=source,
    )
    check(demos, "episodes")
    return replace(demos, spread=measure_spread(env))


def _end_to_end(arrays: Sequence[NDArray[Any]], name: str) -> NDArray[np.float32]:
    """Join the arrays of the episodes, as float32."""
    return np.concatenate(
        [to_float32(array, f"episodes: episode {i}: {name}") for i, array in enumerate(arrays)]
    )


def record(
    env: str, act: Act, episodes: int, seed: int, *, source: str, terminate_when_unhealthy: bool
) -> Demos:
    """Record episodes of a policy, and the returns of as many episodes of a random policy.

    act: the policy, which maps observations (1, n, obs) to actions (1, n, act) in [-1, 1].
    """
    seeds = record_seeds(env, episodes, seed)
    vec = VectorEnv(env, episodes, terminate_when_unhealthy=terminate_when_unhealthy)
    with contextlib.closing(vec):
        random_returns = play_random(vec, seed).returns[0]
        expert = rollout(vec, act, seeds, runs=1, keep=True)
    parts = [Episode(*trace, s) for trace, s in zip(expert.episodes, seeds, strict=True)]
    return assemble(env, parts, random_returns, source)


def record_random(env: str, episodes: int, seed: int, *, terminate_when_unhealthy: bool) -> Demos:
    """Record the random episodes of which `record` stores only the returns."""
    vec = VectorEnv(env, episodes, terminate_when_unhealthy=terminate_when_unhealthy)
    with contextlib.closing(vec):
        played = play_random(vec, seed, keep=True)
    seeds = random_seeds(env, episodes, seed)
    parts = [Episode(*trace, s) for trace, s in zip(played.episodes, seeds, strict=True)]
    return assemble(env, parts, played.returns[0], "uniform random")


def save(path: str | Path, demos: Demos) -> None:
    """Write a demonstration file atomically, with the same errors and warnings as `load`."""
    where = f"demonstrations {path}"
    check(demos, where)
    tell(demos, where)
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "env": demos.env,
        "source": demos.source,
        "checksum": demos.checksum,
    }
    fields = {name: getattr(demos, name) for name in ARRAYS | OPTIONAL}
    arrays = {name: array for name, array in fields.items() if array is not None}
    with atomic(Path(path)) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, meta=np.array(json.dumps(meta)), **arrays)


def load(
    path: str | Path,
    env: str | None = None,
    *,
    strict: bool = False,
    terminate_when_unhealthy: bool = True,
) -> Demos:
    """Read and check a demonstration file.

    Raise UserError if a field is wrong. The message names the file, the field, its value and the
    expected value. Warn if the env cannot have produced the data; if `strict`, raise UserError
    instead.

    terminate_when_unhealthy: the value of this env option in training.
    """
    where = f"demonstrations {path}"
    data = _read(path, where)
    meta = _meta(data, where)
    if missing := [name for name in ARRAYS if name not in data]:
        raise UserError(f"{where}: field {missing[0]!r} is missing; found {', '.join(data)}")
    arrays = {name: data.get(name) for name in ARRAYS | OPTIONAL}
    demos = Demos(env=meta["env"], source=meta["source"], **arrays)  # type: ignore[arg-type]
    if env is not None and demos.env != env:
        raise UserError(
            f"{where}: field 'env': found {demos.env}, expected {env}; use a file recorded on it"
        )
    check(demos, where)
    if demos.checksum != meta["checksum"]:
        raise UserError(
            f"{where}: field 'checksum': found {demos.checksum[:12]}, expected "
            f"{meta['checksum'][:12]}; the file was changed or damaged, so record it again"
        )
    tell(demos, where, strict=strict, terminate_when_unhealthy=terminate_when_unhealthy)
    return demos


def _read(path: str | Path, where: str) -> dict[str, NDArray[Any]]:
    """Return all arrays of a NumPy archive by name."""
    data, name = {}, ""
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked(archive, where)
            for member in archive.namelist():
                name = member.removesuffix(".npy")
                with archive.open(member) as file:
                    data[name] = np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError:
        raise UserError(
            f"{where}: no such file; `ngt record` writes it, or name another file"
        ) from None
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy may raise any exception for a damaged file
        text = " ".join(str(error).split())[:120]
        raise UserError(
            f"{where}: {f'field {name!r}: ' if name else ''}truncated, or not a NumPy archive "
            f"({text})"
        ) from None
    return data


def _meta(data: dict[str, NDArray[Any]], where: str) -> dict[str, str]:
    try:
        meta = json.loads(str(data["meta"][()]))
    except (KeyError, IndexError, ValueError):
        raise UserError(
            f"{where}: field 'meta' is missing or not JSON; write the file with "
            f"ngt.experience.demos.save"
        ) from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        found = meta.get("format") if isinstance(meta, dict) else meta
        raise UserError(f"{where}: field 'format': found {found!r}, expected {FORMAT!r}")
    if meta.get("version") != VERSION:
        raise UserError(
            f"{where}: field 'version': found {meta.get('version')!r}, expected {VERSION}"
        )
    for name in ("env", "source", "checksum"):
        if not isinstance(meta.get(name), str):
            raise UserError(f"{where}: field {name!r}: found {meta.get(name)!r}, expected text")
    return meta


def subsample(demos: Demos, count: int, rate: int, seed: int, where: str = "demos") -> Batch:
    """Return every rate-th transition of the first `count` episodes: (1, N, ·), on the CPU.

    In each episode, the first transition that is kept has a random index below `rate`. This index
    depends only on the seed, the env and the episode. All methods therefore get the same
    transitions. The transitions for a smaller `count` are the first transitions for a larger
    `count`.
    """
    if not 1 <= count <= len(demos.length):
        raise UserError(
            f"{where}: field 'demos': requested {count}, found {len(demos.length)} episodes; "
            f"request 1 to {len(demos.length)}, or record more"
        )
    starts = np.concatenate([[0], np.cumsum(demos.length + 1)])  # each episode's first row in obs
    rows, steps, terminal = [], [], []
    for episode in range(count):
        if (length := int(demos.length[episode])) < rate:
            raise UserError(
                f"{where}: episode {episode} has {length} steps, fewer than rate {rate}; "
                f"lower the rate or leave the episode out"
            )
        kept = np.arange(int(rng(seed, "demos", demos.env, episode).integers(rate)), length, rate)
        rows.append(starts[episode] + kept)
        steps.append(starts[episode] - episode + kept)  # each episode has one more obs than actions
        terminal.append((kept == length - 1) & demos.terminated[episode])
    row, step = np.concatenate(rows), np.concatenate(steps)
    return Batch(
        obs=torch.from_numpy(demos.obs[row])[None],
        action=torch.from_numpy(demos.action[step])[None],
        next_obs=torch.from_numpy(demos.obs[row + 1])[None],
        reward=torch.from_numpy(demos.reward[step])[None],
        terminated=torch.from_numpy(np.concatenate(terminal).astype(np.float32))[None],
    )


class DemoSet:
    """The demonstrations of R runs, padded to equal size. Batches are drawn with replacement."""

    def __init__(self, sets: Sequence[Batch], device: torch.device | str = "cpu") -> None:
        self.size = torch.tensor([s.obs.shape[1] for s in sets], device=device)[:, None]
        fields = ([part[0] for part in parts] for parts in zip(*sets, strict=True))
        self.data = Batch(*(pad_sequence(f, batch_first=True).to(device) for f in fields))
        self._run = torch.arange(len(sets), device=device)[:, None]

    def sample(self, index: torch.Tensor) -> Batch:
        """Return the rows `index % size` of each run's data; `index` has the shape (R, B)."""
        row = index % self.size
        return type(self.data)(*(field[self._run, row] for field in self.data))

    def hidden(self) -> Self:
        """Return the same demonstrations without the env's reward."""
        out = copy.copy(self)
        out.data = hide(self.data)
        return out
