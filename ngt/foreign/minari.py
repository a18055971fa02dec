"""Functions that read and write Minari datasets with the `minari` package."""

from __future__ import annotations

import contextlib
import copy
import shutil
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, load_env_creator
from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.experience import envs
from ngt.experience.demos import Demos, Episode
from ngt.experience.envs import get_task
from ngt.experience.units import to_env
from ngt.foreign.extras import library
from ngt.foreign.found import Found, reading


def read(path: Path, env: str) -> Found:
    """Read the episodes of a dataset.

    path: the dataset's folder, or its id in Minari's own folder of datasets.
    """
    where = f"minari {path}"
    minari = library("minari", where, "formats")
    with reading(where, "minari can't read it"):
        data = minari.MinariDataset(_data_folder(path, where))
        metas = data.storage.get_episode_metadata(data.episode_indices)
        seeds = [meta.get("seed") for meta in metas]
        episodes = [
            Episode(
                _flat(data.observation_space, episode.observations, len(episode) + 1),
                _flat(data.action_space, episode.actions, len(episode)),
                np.asarray(episode.rewards),
                bool(episode.terminations[-1]),
                -1 if seed is None or not 0 <= int(seed) < 2**63 else int(seed),
            )
            for episode, seed in zip(data, seeds, strict=True)
            if len(episode)
        ]
    return Found(episodes, gym_id=data.env_spec.id if data.env_spec is not None else None)


def _own_folder(where: str, *name: str) -> Path:
    """Return Minari's own folder of datasets or, given a name, that dataset's folder in it."""
    storage = library("minari.storage.datasets_root_dir", where, "formats")
    return Path(storage.get_dataset_path(*name))


def _data_folder(path: Path, where: str) -> Path:
    """Return the folder with a dataset's files, given the dataset's folder or id."""
    root = _own_folder(where)
    for folder in (path / "data", path, root / path / "data"):
        if (folder / "metadata.json").is_file():
            return folder
    raise UserError(
        f"{where}: no such dataset, here or in {root}; pass its folder, or download it with "
        f"`minari download {path}`"
    )


def _flat(space: spaces.Space[Any], values: Any, rows: int) -> NDArray[Any]:
    """Flatten a space's values into one row per step, just as the suite flattens observations."""
    if isinstance(space, spaces.Dict):
        parts = [_flat(part, values[name], rows) for name, part in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        parts = [_flat(part, value, rows) for part, value in zip(space, values, strict=True)]
    else:
        return np.asarray(values).reshape(rows, -1)
    return np.concatenate(parts, axis=1)


def write(demos: Demos, name: str, where: str) -> Path:
    """Write a dataset to Minari's own folder, with actions in the env's units, and return its path.

    The dataset's reference returns are the mean returns of the random policy and of the expert that
    are stored with the demonstrations. Minari therefore normalises returns in the same way as the
    suite.
    """
    minari = library("minari", where, "formats")
    folder = _own_folder(where, name)
    if folder.exists():
        raise UserError(f"--id: dataset {name} exists in {folder}; choose another id")
    try:
        minari.dataset.minari_dataset.parse_dataset_id(name)
    except (ValueError, TypeError):
        raise UserError(f"--id: found {name!r}, expected a name like lab/hopper-v0") from None
    spec, observations, actions = _facts(demos.env)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about a missing author and link
            minari.create_dataset_from_buffers(
                name,
                _buffers(demos, observations, actions, minari),
                env=spec,
                observation_space=observations,
                action_space=actions,
                algorithm_name=demos.source,
                description="Demonstrations for imitation learning",
                ref_min_score=demos.random,
                ref_max_score=demos.expert,
                num_episodes_average_score=len(demos.returns),
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _facts(env_id: str) -> tuple[EnvSpec, spaces.Space[Any], spaces.Space[Any]]:
    """Return an env's spec, its flattened observation space and its action space.

    The suite's wrappers are not part of the spec.
    """
    task = get_task(env_id)
    with contextlib.closing(envs.make(env_id)) as env:  # may also register the env
        observations = spaces.flatten_space(env.unwrapped.observation_space)
        actions = env.unwrapped.action_space
    spec = copy.deepcopy(gym.spec(task.gym_id))
    spec.kwargs.update(task.kwargs)
    spec.max_episode_steps = task.time_limit
    return _storable(spec, env_id), observations, actions


def _storable(spec: EnvSpec, env_id: str) -> EnvSpec:
    """Return a spec that can be written as JSON: its entry point is text instead of a class.

    Raise UserError if there is no such text, or if the env's keyword arguments are not JSON.
    """
    entry = spec.entry_point
    if callable(entry):
        name = f"{getattr(entry, '__module__', '')}:{getattr(entry, '__qualname__', '')}"
        with contextlib.suppress(Exception):  # importing a module may raise anything
            if load_env_creator(name) is entry:
                spec.entry_point = name
    try:
        spec.to_json()
    except (TypeError, ValueError) as error:
        raise UserError(
            f"env {env_id!r}: a dataset can't name this env ({' '.join(str(error).split()):.120}); "
            f"call gym.register with text such as entry_point='module:Class', and with keyword "
            f"arguments that JSON can hold"
        ) from None
    return spec


def _buffers(
    demos: Demos, observations: spaces.Space[Any], action_space: spaces.Space[Any], minari: Any
) -> list[Any]:
    """Convert the episodes to Minari's buffers, with the dtypes of the env's spaces."""
    task, row, step, found = get_task(demos.env), 0, 0, []
    for number, length in enumerate(map(int, demos.length)):
        actions, ends = slice(step, step + length), np.zeros(length, bool)
        ends[-1] = True
        terminated, seed = bool(demos.terminated[number]), int(demos.seeds[number])
        found.append(
            minari.data_collector.episode_buffer.EpisodeBuffer(
                id=number,
                seed=seed if seed >= 0 else None,
                observations=demos.obs[row : row + length + 1].astype(observations.dtype),
                actions=to_env(demos.action[actions], task).astype(action_space.dtype),
                rewards=demos.reward[actions],
                terminations=ends & terminated,
                truncations=ends & (not terminated),
            )
        )
        row, step = row + length + 1, step + length
    return found
