"""Whether a recording, i.e. an env's recorded demonstrations, is the one that the settings name.

A recording states its source: the hash of its expert's settings. This hash covers neither the
expert's seed nor the number of recorded episodes. Both determine the env seeds of the episodes,
which the recording also states.
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ngt.seeding import record_seeds
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash, expert_config, resolve_expert
from ngt.text import amount


def difference(config: Config, env: str, source: str | None, seeds: Iterable[int]) -> str:
    """Return how a recording differs from the one that `ngt record` would make, and how to mend it.

    Return "" if the recordings have the same expert and the same episodes.

    source, seeds: the recording's fields with these names.
    """
    return other_expert(config, env, source) or other_episodes(config, env, seeds)


def other_expert(config: Config, env: str, source: str | None) -> str:
    """Return a message if a recording's expert has other settings than the config's, or ""."""
    planned = config_hash(resolve_expert(config, env))
    if source == planned:
        return ""
    return (
        f"field 'source': found {source}, expected {planned}: these settings need another expert; "
        f"run `ngt expert {env}` and `ngt record {env}` with these settings"
    )


def other_episodes(config: Config, env: str, seeds: Iterable[int]) -> str:
    """Return a message if a recording's episodes are not those that the config asks for, or ""."""
    expert, found = expert_config(config, env), [int(seed) for seed in seeds]
    planned = record_seeds(env, expert.episodes, expert.seed)
    for ours, theirs in zip(planned, found, strict=False):
        if ours != theirs:
            return (
                f"field 'seeds': found {theirs}, but expert.seed {expert.seed} gives {ours}; run "
                f"`ngt expert {env}` and `ngt record {env}` with these settings"
            )
    if len(found) != len(planned):
        return (
            f"field 'seeds': found {amount(len(found), 'episode')}, but expert.episodes is "
            f"{expert.episodes}; run `ngt record {env}` with these settings"
        )
    return ""


def seeds_in(file: Path) -> list[int]:
    """Return the seeds of a demonstration file's episodes, or [] if the file is unreadable."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open("seeds.npy") as member:
            return [int(seed) for seed in np.lib.format.read_array(member, allow_pickle=False)]
    except Exception:  # on a damaged file, zipfile, zlib and NumPy may raise any exception
        return []
