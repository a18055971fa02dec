"""Checkpoints of one run: complete or absent, and data only.

In `<run>/checkpoint/` lie

    step-N.json            written last: settings, counters, records so far, checksums of the rest
    state-N.safetensors    every tensor of the run's own
    rows-A-B.f32           transitions A to B - 1 of the buffer, raw, each written once
    finals-A-B.f32         final observations of episodes A to B - 1, likewise

The checkpoint before the newest stays, with the rows that it needs. Nothing here is executed when
it is read: JSON, safetensors and raw floats.
"""

from __future__ import annotations

import contextlib
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

FORMAT, VERSION, KEEP = "ngt-checkpoint", 3, 2
Rows = NDArray[np.float32]


class Ring(NamedTuple):
    """A part of the buffer: of all items that ever came, each `width` floats, the last are kept."""

    first: int  # number of the oldest that is kept, counted since the start
    total: int  # how many there ever were
    width: int
    read: Callable[[int, int], Tensor]  # items a to b - 1, on the CPU


class Kept(NamedTuple):
    """A ring as it was saved."""

    items: Rows  # the last ones, oldest first
    total: int  # how many there ever were


class Saved(NamedTuple):
    """What a checkpoint holds of a run."""

    step: int
    tensors: dict[str, Tensor]
    meta: dict[str, Any]  # counters, generators, records: plain data
    rings: dict[str, Kept]  # the buffer's parts


def folder_of(run: Path) -> Path:
    """Where a run's checkpoints lie."""
    return run / "checkpoint"


def save(
    run: Path, made_with: Mapping[str, Any], step: int, tensors: dict[str, Tensor],
    meta: Mapping[str, Any], rings: Mapping[str, Ring],
) -> None:  # fmt: skip
    """Write the checkpoint of a step, atomically, and drop those before the one before it.

    made_with: what must be equal for a resume, plain data. rings: the buffer's parts; what an
    earlier checkpoint has written of them is not written again.
    """
    from safetensors.torch import save as to_bytes

    folder = folder_of(run)
    older = [m for s in steps(run) if s != step and (m := _manifest(folder, s))]
    have = {name: entry for m in older for name, entry in m["files"].items()}
    files = {}
    for ring, (first, total, _, read) in rings.items():
        parts = {name: _range(name) for name in have if _of(name) == ring}
        start = max([first, *(end for _, end in parts.values() if end <= total)])
        if start < total:
            name, items = f"{ring}-{start}-{total}.f32", read(start, total).contiguous()
            files[name] = _write(folder / name, items.numpy().tobytes())
        files |= {name: have[name] for name, (_, end) in parts.items() if first < end <= start}
    name = f"state-{step}.safetensors"
    files[name] = _write(folder / name, to_bytes(tensors))
    manifest = {
        "format": FORMAT, "version": VERSION, "step": step, "made_with": dict(made_with),
        "rings": {n: {"first": r.first, "total": r.total, "width": r.width}
                  for n, r in rings.items()},
        "files": files, "meta": dict(meta),
    }  # fmt: skip
    write_json(folder / f"step-{step}.json", {**manifest, "blake2b": _digest(manifest)})
    kept = steps(run)[:KEEP]
    for old in steps(run)[KEEP:]:
        (folder / f"step-{old}.json").unlink()
    needed = {f"step-{s}.json" for s in kept}
    needed |= {n for s in kept if (m := _manifest(folder, s)) for n in m["files"]}
    for file in folder.iterdir():
        if file.name not in needed and not file.is_dir():  # a folder is nothing of ours
            file.unlink()


def steps(run: Path) -> list[int]:
    """Steps that a run has checkpoints of, newest first; nothing of them is checked."""
    names = (re.fullmatch(r"step-(\d+)\.json", p.name) for p in folder_of(run).glob("step-*.json"))
    return sorted((int(m[1]) for m in names if m), reverse=True)


def usable(run: Path, made_with: Mapping[str, Any], say: Callable[[str], None]) -> list[int]:
    """Steps whose checkpoints are whole, newest first.

    A damaged one is passed over with a message. UserError names the first difference where a whole
    one was made with other settings, code or demonstrations, or is of another format; and a file
    that the disk does not give, since that may pass.
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
                f"try again when it can, or remove it: what was before it is used then"
            ) from None
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
    tensors = from_bytes((folder / f"state-{step}.safetensors").read_bytes())
    rings = {}
    for ring, told in manifest["rings"].items():
        names = sorted((n for n in manifest["files"] if _of(n) == ring), key=_range)
        parts = [np.fromfile(folder / n, np.float32).reshape(-1, told["width"]) for n in names]
        items = np.concatenate([np.zeros((0, told["width"]), np.float32), *parts])
        keep = told["total"] - told["first"]
        rings[ring] = Kept(items[len(items) - keep :], told["total"])
    return Saved(step, tensors, manifest["meta"], rings)


def drop_after(run: Path, step: int | None) -> None:
    """Drop a run's checkpoints of later steps, all where it starts over (None).

    They would be taken for the newest, and their rows for some of what comes now.
    """
    if step is None:
        remove(run)
        return
    for later in steps(run):
        if later > step:
            (folder_of(run) / f"step-{later}.json").unlink()


def remove(run: Path) -> None:
    """Drop all checkpoints of a run."""
    folder = folder_of(run)
    if folder.is_dir():
        for file in sorted(folder.iterdir(), reverse=True):  # the manifests first
            if not file.is_dir():
                file.unlink()
        with contextlib.suppress(OSError):  # a folder in it is nothing of ours
            folder.rmdir()


def _of(name: str) -> str:
    return name.split("-")[0]


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
    if data.pop("blake2b", None) != _digest(data) or data.get("step") != step:
        return None
    parts = [data.get(name) for name in ("meta", "files", "rings", "made_with")]
    if not all(isinstance(part, dict) for part in parts):
        return None
    files, rings = data["files"], data["rings"]
    pattern = rf"({'|'.join(map(re.escape, rings))})-\d+-\d+\.f32|state-{step}\.safetensors"
    if not all(re.fullmatch(pattern, n) and isinstance(e, dict) for n, e in files.items()):
        return None
    covered = all(_covers(ring, told, files) for ring, told in rings.items())
    return data if covered and f"state-{step}.safetensors" in files else None


def _covers(ring: str, told: Any, files: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a ring's files leave no gap, and hold as many numbers as they must."""
    if not isinstance(told, dict):
        return False
    numbers: list[Any] = [told.get(name) for name in ("first", "total", "width")]
    if not all(type(n) is int and 0 <= n < 2**31 for n in numbers):
        return False
    last, total, width = numbers
    mine = sorted((*_range(n), e.get("bytes")) for n, e in files.items() if _of(n) == ring)
    for start, end, size in mine:
        if start > last or end <= last or size != (end - start) * 4 * width or not width:
            return False
        last = end
    return last == total


def _damage(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """What is wrong with a checkpoint's files; OSError where one can't be read."""
    for name, entry in manifest["files"].items():
        digest, size = hashlib.blake2b(digest_size=16), 0
        if not (folder / name).is_file():
            return f"{name} is not a file that is there"
        with open(folder / name, "rb") as file:
            while chunk := file.read(1 << 22):
                digest.update(chunk)
                size += len(chunk)
        if size != entry.get("bytes"):
            return f"{name} has {size} bytes, expected {entry.get('bytes')}"
        if digest.hexdigest() != entry.get("blake2b"):
            return f"{name} was changed or damaged (checksum)"
    return None


def _check_version(folder: Path, step: int) -> None:
    data = read_json(folder / f"step-{step}.json")
    if not isinstance(data, dict) or data.pop("blake2b", None) != _digest(data):
        return  # damaged, so that its version may be too
    if data.get("format") == FORMAT and data.get("version") != VERSION:
        raise UserError(
            f"checkpoint {folder}: step {step} is of format {data.get('version')}, this code reads "
            f"{VERSION}: go on with the code that wrote it, or start over with --restart"
        )


def _check_same(run: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    # the demonstrations' source last: other settings of training change the expert's too
    found = sorted(differences(then, now), key=lambda d: d[0] == "config.demos_source")
    for name, before, after in found:
        raise UserError(
            f"checkpoint {folder_of(run)}: {name} was {_said(before)}, is {_said(after)} now: "
            f"go on with what it was, or start over with --restart"
        )


def _said(value: Any) -> str:
    """A value in one line, whoever wrote it."""
    text = str(value)
    return text if text.isprintable() and len(text) < 200 else f"{text[:200]!r}"


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
