"""Experts that ship: where they lie, and whether they are whole.

data/<env>/
  policy.safetensors  the expert
  demos.npz           its recorded episodes
  curve.csv           its evaluations while it was trained: step, episode, return, length
  expert.json         returns, settings, what made it, and the SHA-256 of each of the others
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from ngt.errors import UserError
from ngt.files import CHECKOUT, read_json

DATA = CHECKOUT / "data"
FORMAT = 1
POLICY, DEMOS, CURVE, EXPERT = "policy.safetensors", "demos.npz", "curve.csv", "expert.json"


def ships(env: str) -> bool:
    """Whether there is an expert of the env."""
    return (DATA / env / EXPERT).exists()


def read(env: str) -> dict[str, Any]:
    """An env's expert.json, once the files beside it are found as it says.

    Errors: no expert, a wrong field and a changed file are UserErrors that name them.
    """
    folder = DATA / env
    expert = read_json(folder / EXPERT)
    if expert is None and not ships(env):
        raise UserError(
            f"demos: shipped, and no expert of {env} ships in data/; write `demos: trained` to "
            f"train one, or name your own file in envs.{env}.demos"
        )
    if not isinstance(expert, dict) or expert.get("format") != FORMAT:
        raise _damaged(folder / EXPERT, f"not an expert's record of format {FORMAT}")
    wrong = [name for name, fits in _fields(env, expert).items() if not fits]
    if wrong:
        raise _damaged(folder / EXPERT, f"field {wrong[0]!r}: found {expert.get(wrong[0])!r:.40}")
    for name, known in expert["files"].items():
        found = sha256(folder / name)
        if found != known:
            raise _damaged(folder / name, f"checksum {found[:12]}, expected {known[:12]}")
    return expert


def _fields(env: str, expert: dict[str, Any]) -> dict[str, bool]:
    """Whether each field that others rely on is as it should be."""
    files, returns, kept = (expert.get(name) for name in ("files", "returns", "kept"))
    count = len(returns) if isinstance(returns, list) else 0
    numbers = {name: _number(expert.get(name)) for name in ("random", "wall_seconds")}
    counts = {name: type(expert.get(name)) is int for name in ("step", "updates")}
    return {
        "env": expert.get("env") == env,
        "files": isinstance(files, dict)
        and files.keys() == {POLICY, DEMOS, CURVE}
        and all(isinstance(value, str) for value in files.values()),
        "returns": count > 0 and all(map(_number, returns or ())),
        "episodes": expert.get("episodes") in range(1, count + 1),
        "kept": isinstance(kept, dict) and all(_number(kept.get(k)) for k in ("step", "return")),
        "config": isinstance(expert.get("config"), dict),
        **numbers,
        **counts,
    }


def _number(value: Any) -> bool:
    """A number that tables and figures can show."""
    return type(value) in (int, float) and abs(value) < 1e300


def _damaged(file: Path, what: str) -> UserError:
    return UserError(
        f"{file}: {what}; it was changed or damaged: `git checkout {file.parent}` restores it, "
        f"`demos: trained` does without"
    )


def sha256(path: Path) -> str:
    """Of a file's bytes, read again only where its size or time is another."""
    try:
        stat = path.stat()
    except OSError as error:
        raise _damaged(path, f"can't be read ({error.strerror})") from None
    return _sha256(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=256)
def _sha256(path: Path, time: int, size: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
