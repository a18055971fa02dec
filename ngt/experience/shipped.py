"""Read and check the shipped experts, i.e. the experts in the repository's data/ folder.

data/<env>/
  policy.safetensors  the expert
  demos.npz           its recorded episodes
  curve.csv           its evaluations during training: step, episode, return, length
  expert.json         returns, settings, provenance, and the SHA-256 of every other file
"""

import functools
from pathlib import Path
from typing import Any

from ngt import files
from ngt.errors import UserError
from ngt.files import CHECKOUT, read_json

DATA = CHECKOUT / "data"
FORMAT = 1
POLICY, DEMOS, CURVE, EXPERT = "policy.safetensors", "demos.npz", "curve.csv", "expert.json"


def ships(env: str) -> bool:
    """Return True if the env has a shipped expert."""
    return (DATA / env / EXPERT).exists()


def envs() -> list[str]:
    """Return the envs whose expert ships."""
    return sorted(file.parent.name for file in DATA.glob(f"*/{EXPERT}"))


def read(env: str) -> dict[str, Any]:
    """Return the contents of an env's expert.json after checking its fields and the other files.

    Raise UserError if the env has no shipped expert, if a field is wrong, or if a file was changed.
    """
    folder = DATA / env
    expert = read_json(folder / EXPERT)
    if expert is None and not ships(env):
        raise UserError(
            f"demos: shipped, but no expert of {env} ships in data/ (only {', '.join(envs())}); "
            f"write `demos: trained` to train one, or name your own file in envs.{env}.demos"
        )
    if not isinstance(expert, dict) or expert.get("format") != FORMAT:
        raise _damaged(folder / EXPERT, f"not an expert's record of format {FORMAT}")
    if wrong := [name for name, valid in _fields(env, expert).items() if not valid]:
        raise _damaged(folder / EXPERT, f"field {wrong[0]!r}: found {expert.get(wrong[0])!r:.40}")
    for name, known in expert["files"].items():
        if (found := sha256(folder / name)) != known:
            raise _damaged(folder / name, f"checksum {found[:12]}, expected {known[:12]}")
    return expert


def _fields(env: str, expert: dict[str, Any]) -> dict[str, bool]:
    """Return whether each field of expert.json that other code reads has a valid value."""
    files, returns, kept = (expert.get(name) for name in ("files", "returns", "kept"))
    count = len(returns) if isinstance(returns, list) else 0
    return {
        "env": expert.get("env") == env,
        "files": isinstance(files, dict)
        and files.keys() == {POLICY, DEMOS, CURVE}
        and all(isinstance(value, str) for value in files.values()),
        "returns": count > 0 and all(map(_number, returns or ())),
        "episodes": expert.get("episodes") in range(1, count + 1),
        "kept": isinstance(kept, dict) and all(_number(kept.get(k)) for k in ("step", "return")),
        "config": isinstance(expert.get("config"), dict),
        **{name: _number(expert.get(name)) for name in ("random", "wall_seconds")},
        **{name: type(expert.get(name)) is int for name in ("step", "updates")},
    }


def _number(value: Any) -> bool:
    """Return True if a value is a number that tables and figures can show."""
    return type(value) in (int, float) and abs(value) < 1e300


def _damaged(file: Path, what: str) -> UserError:
    return UserError(
        f"{file}: {what}; it was changed or damaged; restore it with `git checkout {file.parent}`, "
        f"or write `demos: trained` to do without it"
    )


def sha256(path: Path) -> str:
    """Return a file's SHA-256. Reread the file only if its size or modification time changed."""
    try:
        stat = path.stat()
    except OSError as error:
        raise _damaged(path, f"can't be read ({error.strerror})") from None
    return _sha256(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=256)
def _sha256(path: Path, time: int, size: int) -> str:
    return files.sha256(path)
