"""Save and load the checkpoints of a run. A checkpoint is written completely or not at all.

A section is the state of one part of the training, such as the learner. A ring holds the newest
items of a growing sequence, such as the buffer's transitions. The `<run>/checkpoint/` folder
contains these files:

    step-N.json                   plain data and checksums of the other files; written last
    state-N.safetensors           every tensor, named section.tensor
    section.ring-A-B.f32          items A to B - 1 of a ring, as raw floats

Here, A and B count all items that were ever added to the ring. The two newest checkpoints are kept,
with the ring items that they need. The files contain JSON, safetensors or raw floats, so reading
the files executes no code.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ngt.errors import UserError
from ngt.files import atomic, checksum, read_json, write_json
from ngt.state import Ring, State

FORMAT, VERSION, KEEP = "ngt-checkpoint", 4, 2


def folder_of(run: Path) -> Path:
    """Return the folder for a run's checkpoints."""
    return run / "checkpoint"


def save(run: Path, made_with: Mapping[str, Any], step: int, sections: Mapping[str, State]) -> None:
    """Write the checkpoint of a step atomically. Keep the previous checkpoint; remove older ones.

    Ring items that were written for an earlier checkpoint are not written again.

    made_with: plain data, such as settings, which must be the same when the run resumes.
    """
    from safetensors.torch import save as to_bytes

    folder = folder_of(run)
    older = [m for s in steps(run) if s != step and (m := _manifest(folder, s))]
    have = {name: entry for m in older for name, entry in m["files"].items()}
    rings = {f"{s}.{n}": r for s, state in sections.items() for n, r in state.rings.items()}
    files, sizes = {}, {}
    for key, ring in rings.items():
        first, total = ring.total - len(ring.order), ring.total
        parts = {name: _range(name) for name in have if _of(name) == key}
        start = max([first, *(end for _, end in parts.values() if end <= total)])
        if start < total:
            name, items = f"{key}-{start}-{total}.f32", ring.items(start - first).contiguous()
            files[name] = _write(folder / name, items.numpy().tobytes())
        files |= {name: have[name] for name, (_, end) in parts.items() if first < end <= start}
        sizes[key] = {"first": first, "total": total, "width": ring.table.shape[1]}
    tensors = {f"{s}.{n}": t for s, state in sections.items() for n, t in state.tensors.items()}
    name = f"state-{step}.safetensors"
    files[name] = _write(folder / name, to_bytes(tensors))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "step": step,
        "made_with": dict(made_with),
        "files": files,
        "rings": sizes,
        "sections": {name: dict(state.data) for name, state in sections.items()},
    }
    write_json(folder / f"step-{step}.json", {**manifest, "blake2b": _digest(manifest)})
    kept = steps(run)[:KEEP]
    for old in steps(run)[KEEP:]:
        (folder / f"step-{old}.json").unlink()
    needed = {f"step-{s}.json" for s in kept}
    needed |= {n for s in kept if (m := _manifest(folder, s)) for n in m["files"]}
    for file in folder.iterdir():
        if file.name not in needed and not file.is_dir():  # subfolders belong to the user
            file.unlink()


def steps(run: Path) -> list[int]:
    """Return the steps of a run's checkpoints, newest first, without checking the checkpoints."""
    names = (re.fullmatch(r"step-(\d+)\.json", p.name) for p in folder_of(run).glob("step-*.json"))
    return sorted((int(m[1]) for m in names if m), reverse=True)


def left_over(run: Path) -> bool:
    """Return True if a crash left checkpoint files of a run that was already complete.

    Such files are older than run.json. Newer files belong to a new training of the run. Files
    without a manifest count, too: a crash may leave them while checkpoints are removed.
    """
    record = run / "run.json"
    files = [path for path in folder_of(run).glob("*") if not path.is_dir()]
    if not files or not record.exists():
        return False
    return max(path.stat().st_mtime_ns for path in files) < record.stat().st_mtime_ns


def usable(run: Path, made_with: Mapping[str, Any], say: Callable[[str], None]) -> list[int]:
    """Return the steps of intact checkpoints, newest first. Report and skip damaged checkpoints.

    Raise UserError if an intact checkpoint has a different format, or was made with different
    settings, code or demonstrations. The message names the first difference. Also raise UserError
    if a file can't be read, since this problem may be temporary.
    """
    found = []
    for step in steps(run):
        _check_version(folder_of(run), step)
        manifest = _manifest(folder_of(run), step)
        try:
            damage = _damage(folder_of(run), manifest) if manifest else "its manifest is damaged"
        except OSError as error:
            raise UserError(
                f"checkpoint {folder_of(run)}: {error.filename} can't be read: {error.strerror}; "
                f"try again later, or remove it to use the previous checkpoint"
            ) from None
        if damage or manifest is None:
            say(f"checkpoint {folder_of(run)}: step {step} is skipped: {damage}")
            continue
        _check_same(run, manifest["made_with"], json.loads(json.dumps(dict(made_with))))
        found.append(step)
    return found


def load(run: Path, step: int) -> dict[str, State]:
    """Load the sections of an intact checkpoint (see `usable`)."""
    from safetensors.torch import load as from_bytes

    folder = folder_of(run)
    manifest = _manifest(folder, step)
    if manifest is None:
        raise UserError(f"checkpoint {folder}: step {step} is damaged; use --restart")
    rings = {}
    for key, size in manifest["rings"].items():
        names = sorted((n for n in manifest["files"] if _of(n) == key), key=_range)
        parts = [np.fromfile(folder / n, np.float32).reshape(-1, size["width"]) for n in names]
        items = torch.from_numpy(np.concatenate([np.zeros((0, size["width"]), np.float32), *parts]))
        order = torch.arange(len(items) - size["total"] + size["first"], len(items))
        rings[key] = Ring(items, order, size["total"])
    tensors = from_bytes((folder / f"state-{step}.safetensors").read_bytes())
    return {
        name: State(_within(name, tensors), data, _within(name, rings))
        for name, data in manifest["sections"].items()
    }


def _within(section: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items whose names begin with `section.`, under their names without this prefix."""
    parts = ((key.partition("."), value) for key, value in named.items())
    return {name: value for (own, _, name), value in parts if own == section}


def drop_after(run: Path, step: int | None) -> None:
    """Remove a run's checkpoints after a step, or all checkpoints if `step` is None.

    Otherwise, a run that resumes from `step` would treat later checkpoints as its newest ones. It
    would also reuse their ring items instead of writing its own.
    """
    if step is None:
        remove(run)
    for later in (found for found in steps(run) if found > (step or 0)):
        (folder_of(run) / f"step-{later}.json").unlink()


def remove(run: Path) -> None:
    """Remove all checkpoints of a run."""
    folder = folder_of(run)
    for file in sorted(folder.glob("*"), reverse=True):  # manifests first
        if not file.is_dir():
            file.unlink()
    with contextlib.suppress(OSError):  # the folder is missing or contains a subfolder
        folder.rmdir()


def _of(name: str) -> str:
    return name.split("-")[0]


def _range(name: str) -> tuple[int, int]:
    _, first, last = name.removesuffix(".f32").split("-")
    return int(first), int(last)


def _write(path: Path, data: bytes) -> dict[str, Any]:
    with atomic(path) as temporary:
        temporary.write_bytes(data)
    return {"bytes": len(data), "blake2b": checksum(data)}


def _digest(manifest: Mapping[str, Any]) -> str:
    return checksum(json.dumps(manifest, sort_keys=True).encode())


def _manifest(folder: Path, step: int) -> dict[str, Any] | None:
    """Return a checkpoint's manifest, or None if the manifest is damaged or has wrong types."""
    data = read_json(folder / f"step-{step}.json")
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        return None
    if data.pop("blake2b", None) != _digest(data) or data.get("step") != step:
        return None
    parts = [data.get(name) for name in ("sections", "files", "rings", "made_with")]
    if not all(isinstance(part, dict) for part in parts):
        return None
    files, rings = data["files"], data["rings"]
    pattern = rf"({'|'.join(map(re.escape, rings))})-\d+-\d+\.f32|state-{step}\.safetensors"
    if not all(re.fullmatch(pattern, n) and isinstance(e, dict) for n, e in files.items()):
        return None
    covered = all(_covers(ring, size, files) for ring, size in rings.items())
    return data if covered and f"state-{step}.safetensors" in files else None


def _covers(ring: str, size: Any, files: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return True if a ring's files leave no gaps and have the expected sizes."""
    if not isinstance(size, dict):
        return False
    numbers: list[Any] = [size.get(name) for name in ("first", "total", "width")]
    if not all(type(n) is int and 0 <= n < 2**31 for n in numbers):
        return False
    last, total, width = numbers
    mine = sorted((*_range(n), e.get("bytes")) for n, e in files.items() if _of(n) == ring)
    for start, end, length in mine:
        if start > last or end <= last or length != (end - start) * 4 * width or not width:
            return False
        last = end
    return last == total


def _damage(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """Return the first fault in a checkpoint's files, or None. Raise OSError if reading fails."""
    for name, entry in manifest["files"].items():
        if not (folder / name).is_file():
            return f"{name} is missing"
        size = (folder / name).stat().st_size
        if size != entry.get("bytes"):
            return f"{name} has {size} bytes, expected {entry.get('bytes')}"
        if checksum(folder / name) != entry.get("blake2b"):
            return f"{name} was changed or damaged (checksum)"
    return None


def _check_version(folder: Path, step: int) -> None:
    data = read_json(folder / f"step-{step}.json")
    if not isinstance(data, dict) or data.pop("blake2b", None) != _digest(data):
        return  # damaged, so even `version` may be wrong
    if data.get("format") == FORMAT and data.get("version") != VERSION:
        raise UserError(
            f"checkpoint {folder}: step {step} has format {data.get('version')}, but this code "
            f"reads format {VERSION}; resume with the code that wrote it, or start over with "
            f"--restart"
        )


def _check_same(run: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    # A difference in `demos_source` is reported last. This hash also changes if there is a change
    # in a setting that the expert and the agent share.
    found = sorted(differences(then, now), key=lambda d: d[0] == "config.demos_source")
    for name, before, after in found:
        raise UserError(
            f"checkpoint {folder_of(run)}: {name} was {_said(before)} and is now {_said(after)}; "
            f"change it back, or start over with --restart"
        )


def _said(value: Any) -> str:
    """Format a value as one printable line of at most about 200 characters."""
    text = str(value)
    return text if text.isprintable() and len(text) < 200 else f"{text[:200]!r}"


def differences(a: Any, b: Any, at: str = "") -> Iterable[tuple[str, Any, Any]]:
    """Yield the dotted name and both values of every leaf in which two structures differ."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}):
            yield from differences(a.get(key), b.get(key), f"{at}.{key}" if at else str(key))
    elif a != b:
        yield at, a, b
