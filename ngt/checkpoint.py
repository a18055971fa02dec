"""Checkpoints of one run: complete or absent, and data only.

In `<run>/checkpoint/` lie

    step-N.json            written last: settings, counters, records so far, checksums of the rest
    state-N.safetensors    every tensor of the run's own
    rows-A-B.f32           transitions A to B - 1 of the buffer, raw, each written once

The checkpoint before the newest stays, with the rows that it needs. Nothing here is executed when
it is read: JSON, safetensors and raw floats.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ngt.errors import UserError
from ngt.files import atomic, read_json, write_json

FORMAT, VERSION, KEEP = "ngt-checkpoint", 2, 2
Rows = NDArray[np.float32]


class Saved(NamedTuple):
    """What a checkpoint holds of a run."""

    step: int
    tensors: dict[str, Tensor]
    meta: dict[str, Any]  # counters, generators, records: plain data
    rows: Rows  # the buffer's last transitions, oldest first
    total: int  # transitions ever added to the buffer


def folder_of(run: Path) -> Path:
    """Where a run's checkpoints lie."""
    return run / "checkpoint"


def save(
    run: Path, made_with: Mapping[str, Any], step: int, tensors: dict[str, Tensor],
    meta: Mapping[str, Any], rows: Callable[[int, int], Rows], total: int, capacity: int,
) -> None:  # fmt: skip
    """Write the checkpoint of a step, atomically, and drop those before the one before it.

    made_with: what must be equal for a resume, plain data. rows(a, b): the buffer's transitions a
    to b - 1, counted since the start; total: how many there ever were; capacity: how many it keeps.
    """
    from safetensors.torch import save as to_bytes

    folder = folder_of(run)
    older = [m for s in steps(run) if s != step and (m := _manifest(folder, s))]
    have = {name: entry for m in older for name, entry in m["files"].items()}
    first = max(total - capacity, 0)
    ends = [_range(name)[1] for name in have if name.startswith("rows-")]
    start = max([first, *(end for end in ends if end <= total)])
    files = {}
    if start < total:
        name = f"rows-{start}-{total}.f32"
        files[name] = _write(folder / name, np.ascontiguousarray(rows(start, total)).tobytes())
    for name, entry in have.items():
        if name.startswith("rows-") and first < _range(name)[1] <= start:
            files[name] = entry
    name = f"state-{step}.safetensors"
    files[name] = _write(folder / name, to_bytes(tensors))
    manifest = {
        "format": FORMAT, "version": VERSION, "step": step, "total": total, "first": first,
        "made_with": dict(made_with), "files": files, "meta": dict(meta),
    }  # fmt: skip
    write_json(folder / f"step-{step}.json", {**manifest, "blake2b": _digest(manifest)})
    kept = steps(run)[:KEEP]
    for old in steps(run)[KEEP:]:
        (folder / f"step-{old}.json").unlink()
    needed = {f"step-{s}.json" for s in kept}
    needed |= {n for s in kept if (m := _manifest(folder, s)) for n in m["files"]}
    for file in folder.iterdir():
        if file.name not in needed:
            file.unlink()


def steps(run: Path) -> list[int]:
    """Steps that a run has checkpoints of, newest first; nothing of them is checked."""
    names = (re.fullmatch(r"step-(\d+)\.json", p.name) for p in folder_of(run).glob("step-*.json"))
    return sorted((int(m[1]) for m in names if m), reverse=True)


def usable(run: Path, made_with: Mapping[str, Any], say: Callable[[str], None]) -> list[int]:
    """Steps whose checkpoints are whole, newest first.

    A damaged one is passed over with a message. UserError names the first difference where a whole
    one was made with other settings, code or demonstrations.
    """
    found = []
    for step in steps(run):
        manifest = _manifest(folder_of(run), step)
        damage = _damage(folder_of(run), manifest) if manifest else "its manifest is damaged"
        if damage or manifest is None:
            say(f"checkpoint {folder_of(run)}: step {step} is left out: {damage}")
            continue
        _check_same(run, manifest["made_with"], json.loads(json.dumps(dict(made_with))))
        found.append(step)
    return found


def load(run: Path, step: int) -> Saved:
    """A whole checkpoint (see `usable`)."""
    from safetensors.torch import load as from_bytes

    folder = folder_of(run)
    manifest = _manifest(folder, step)
    if manifest is None:
        raise UserError(f"checkpoint {folder}: step {step} is damaged; use --restart")
    names = sorted((n for n in manifest["files"] if n.startswith("rows-")), key=_range)
    tensors = from_bytes((folder / f"state-{step}.safetensors").read_bytes())
    width = manifest["meta"]["row"]
    parts = [np.fromfile(folder / n, np.float32).reshape(-1, width) for n in names]
    rows = np.concatenate(parts) if parts else np.zeros((0, width), np.float32)
    keep = manifest["total"] - manifest["first"]
    return Saved(step, tensors, manifest["meta"], rows[len(rows) - keep :], manifest["total"])


def drop_after(run: Path, step: int) -> None:
    """Drop a run's checkpoints of later steps: their rows would overlap what comes now."""
    for later in steps(run):
        if later > step:
            (folder_of(run) / f"step-{later}.json").unlink()


def remove(run: Path) -> None:
    """Drop all checkpoints of a run."""
    folder = folder_of(run)
    if folder.is_dir():
        for file in sorted(folder.iterdir(), reverse=True):  # the manifests first
            file.unlink()
        folder.rmdir()


def _range(name: str) -> tuple[int, int]:
    _, first, last = name.removesuffix(".f32").split("-")
    return int(first), int(last)


def _write(path: Path, data: bytes) -> dict[str, Any]:
    with atomic(path) as temporary:
        temporary.write_bytes(data)
    return {"bytes": len(data), "blake2b": hashlib.blake2b(data, digest_size=16).hexdigest()}


def _digest(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _manifest(folder: Path, step: int) -> dict[str, Any] | None:
    """A whole manifest, if it is one: every field that is read later has its type."""
    data = read_json(folder / f"step-{step}.json")
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        return None
    if data.pop("blake2b", None) != _digest(data):
        return None
    meta, files = data.get("meta"), data.get("files")
    numbers = [data.get("step"), data.get("total"), data.get("first")]
    if not isinstance(meta, dict) or not isinstance(files, dict) or data.get("step") != step:
        return None
    if not isinstance(data.get("made_with"), dict):
        return None
    if not all(type(n) is int and n >= 0 for n in [*numbers, meta.get("row")]):
        return None
    pattern = rf"rows-\d+-\d+\.f32|state-{step}\.safetensors"
    if not all(re.fullmatch(pattern, n) and isinstance(e, dict) for n, e in files.items()):
        return None
    covered = sorted((*_range(n), e.get("bytes")) for n, e in files.items() if n[:5] == "rows-")
    last, width = data["first"], 4 * meta["row"]
    for start, end, size in covered:  # no gap, and as many numbers as there must be
        if start > last or end <= last or size != (end - start) * width or not width:
            return None
        last = end
    return data if last == data["total"] and f"state-{step}.safetensors" in files else None


def _damage(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """What is wrong with a checkpoint's files."""
    for name, entry in manifest["files"].items():
        digest, size = hashlib.blake2b(digest_size=16), 0
        try:
            with open(folder / name, "rb") as file:
                while chunk := file.read(1 << 22):
                    digest.update(chunk)
                    size += len(chunk)
        except OSError as error:
            return f"{name} can't be read: {error.strerror}"
        if size != entry.get("bytes"):
            return f"{name} has {size} bytes, expected {entry.get('bytes')}"
        if digest.hexdigest() != entry.get("blake2b"):
            return f"{name} was changed or damaged (checksum)"
    return None


def _check_same(run: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    # the demonstrations' source last: other settings of training change the expert's too
    found = sorted(differences(then, now), key=lambda d: d[0] == "config.demos_source")
    for name, before, after in found:
        raise UserError(
            f"checkpoint {folder_of(run)}: {name} was {before}, is {after} now: go on with what it "
            f"was, or start over with --restart"
        )


def differences(a: Any, b: Any, at: str = "") -> Iterable[tuple[str, Any, Any]]:
    """Dotted name and both values of every leaf in which two plain structures differ."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}):
            yield from differences(a.get(key), b.get(key), f"{at}.{key}" if at else str(key))
    elif a != b:
        yield at, a, b


def slice_of(tensor: Tensor, run: int) -> Tensor:
    """One run's part of a packed tensor, contiguous, on the CPU."""
    return tensor[run : run + 1].detach().to("cpu", copy=True).contiguous()


def pack(parts: Iterable[Tensor], like: Tensor) -> Tensor:
    """The packed tensor of some runs' parts; ValueError where shapes do not fit."""
    whole = torch.cat(list(parts))
    if whole.shape != like.shape:
        raise ValueError(f"found shape {tuple(whole.shape)}, expected {tuple(like.shape)}")
    return whole
