"""Files of any content: a loader must return or raise a one-line error.

Seeded generators mutate the bytes and the structure of valid files, 150 times for each file.
`NGT_FUZZ=10000 pytest tests/test_fuzz.py` makes 10000 mutants of each file.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from ngt import files
from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.errors import Interrupted, UserError
from ngt.experience import demos, shipped
from ngt.experience.demos import Episode, assemble
from ngt.experience.envs import TASKS
from ngt.files import sha256, write_json
from ngt.foreign import flat, imitation
from ngt.runs.folder import Folders, expert_key, read_shipped
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.published import Published
from ngt.runs.shipping.gather import publish
from ngt.runs.table import as_rows
from ngt.runs.writer import RunWriter
from ngt.settings.config import Config, SacConfig
from ngt.settings.load import CONFIG_DIR, load, read_yaml
from ngt.settings.resolve import (
    config_hash,
    demos_source,
    expert_config,
    expert_ships,
    resolve_expert,
)
from ngt.training import checkpoint
from ngt.training.learner import Member
from ngt.training.records import Records
from ngt.training.trainer import Trainer, made_with
from paper.handbook import experts

COUNT = int(os.environ.get("NGT_FUZZ", "150"))
STUDY = {
    "scale": "test",
    "envs": {"Pendulum-v1": {"demos": ""}},  # use recorded demos, not those of scale `test`
    "figures": {
        **dict.fromkeys(load({"scale": "test"}).figures),
        "f": {"methods": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1], "seeds": [0, 1]},
    },
}
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1e308,
    float("nan"),
    float("inf"),
    10**400,
    "",
    "x",
    "../../x",
    "\u0000",
    [],
    {},
    [[]],
    {"a": 1},
    "10" * 50,
    -0.0,
    "!!python/object/apply:os.system [touch x]",
]


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return data with bytes flipped, cut, repeated, inserted or replaced, one to three times."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(6):
            case 0 if out:
                out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
            case 1:
                del out[at:]
            case 2:
                out[at:at] = rng.randbytes(rng.randint(1, 20))
            case 3:
                out[at : at + 8] = rng.randbytes(8)
            case 4:
                del out[at : at + rng.randint(1, 50)]
            case _:
                out[at:at] = out[at : at + rng.randint(1, 200)]
    return bytes(out)


def mutate_tree(data: Any, rng: random.Random) -> Any:
    """Return the structure with one to three nodes replaced, dropped, renamed or repeated."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        at = data
        while isinstance(at, dict | list) and at:
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            inner = at[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
                at = inner
                continue
            match rng.randrange(4):
                case 0 if isinstance(at, dict):
                    at[str(key) + "x"] = at.pop(key)
                case 1:
                    del at[key]
                case 2 if isinstance(at, list):
                    at.append(inner)
                case _:
                    at[key] = copy.deepcopy(rng.choice(ODD))
            break
    return data


def attempt(rng: random.Random, path: Path, original: bytes, tree: Any = None) -> None:
    """Write a mutant of `original` to `path` or, in half of the cases, one of `tree` as JSON."""
    if tree is not None and rng.random() < 0.5:
        path.write_text(json.dumps(mutate_tree(tree, rng)))
    else:
        path.write_bytes(mutate_bytes(original, rng))


def survive(read: Callable[[], Any]) -> bool:
    """Return True if `read` returns, or False if it raises a one-line UserError."""
    try:
        read()
    except UserError as error:
        assert "\n" not in str(error) and len(str(error)) < 2000
        return False
    return True


def listing(root: Path) -> set[Path]:
    return {p.relative_to(root) for p in root.rglob("*")}


# ---------------------------------------------------------------- loaders


def test_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (CONFIG_DIR / "quick.yaml").read_text()
    tree, rng, file = yaml.safe_load(text), random.Random(0), tmp_path / "mine.yaml"
    for _ in range(COUNT):
        attempt(rng, file, text.encode(), tree)
        survive(lambda: load(read_yaml(file)))
    assert listing(tmp_path) == {Path("mine.yaml")}


def test_config_code_is_not_run(tmp_path: Path) -> None:
    file, touched = tmp_path / "mine.yaml", tmp_path / "touched"
    file.write_text(f"scale: !!python/object/apply:os.system ['touch {touched}']\n")
    assert not survive(lambda: load(read_yaml(file)))
    assert not touched.exists()


def test_run_keys() -> None:
    rng, text = random.Random(0), "HalfCheetah-v4/ngt/state-action-demos4-rate20/seed0"
    for _ in range(COUNT):
        survive(lambda: RunKey.parse(mutate_bytes(text.encode(), rng).decode(errors="replace")))


def test_demonstrations(tmp_path: Path) -> None:
    rng, file = random.Random(0), tmp_path / "demos.npz"
    g = np.random.default_rng(0)
    episodes = [
        Episode(g.normal(size=(n + 1, 3)), np.tanh(g.normal(size=(n, 1))), g.normal(size=n), False)
        for n in (200, 200)
    ]
    given = assemble("Pendulum-v1", episodes, np.array([-1000.0, -1100.0]), "here")
    demos.save(file, given)
    original = file.read_bytes()
    with np.load(file) as archive:
        arrays = dict(archive)
    for _ in range(COUNT):
        if rng.random() < 0.5:
            file.write_bytes(mutate_bytes(original, rng))
        else:
            np.savez(file, **mutate_arrays(arrays, rng))
        survive(lambda: demos.load(file, "Pendulum-v1"))
    assert listing(tmp_path) == {Path("demos.npz")}


def test_demonstrations_of_other_projects(tmp_path: Path) -> None:
    rng, file = random.Random(0), tmp_path / "flat.npz"
    flags = np.arange(12) % 4 == 3
    arrays = {"observations": np.zeros((12, 3)), "actions": np.zeros((12, 1))}
    arrays |= {"rewards": np.zeros(12), "terminals": flags, "timeouts": flags}
    np.savez(file, **arrays)
    shutil.copytree(Path(__file__).parent / "data" / "imitation-hopper", tmp_path / "set")
    arrow = next((tmp_path / "set").glob("*.arrow"))
    originals = file.read_bytes(), arrow.read_bytes()
    for _ in range(COUNT):
        file.write_bytes(mutate_bytes(originals[0], rng))
        survive(lambda: flat.read_npz(file, "Pendulum-v1"))
        np.savez(file, **mutate_arrays(arrays, rng))
        survive(lambda: flat.read_npz(file, "Pendulum-v1"))
        arrow.write_bytes(mutate_bytes(originals[1], rng))
        survive(lambda: imitation.read(tmp_path / "set", "Hopper-v4"))


def mutate_arrays(arrays: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return the arrays with one dropped, renamed or changed in type, shape or values."""
    out = dict(arrays)
    name = rng.choice(sorted(out))
    value = np.asarray(out[name])
    match rng.randrange(6):
        case 0:
            del out[name]
        case 1:
            out[name] = (
                value.astype(rng.choice(["f8", "f4", "i8", "U8", "S4", "?"]), copy=True)
                if value.dtype.kind in "fi?"
                else np.array(rng.choice(["", "{}", "[1]", "null"]))
            )
        case 2:
            out[name] = value[None]
        case 3 if value.ndim and value.shape[0]:
            out[name] = value[: rng.randrange(value.shape[0])]
        case 4 if value.size and value.dtype.kind in "fi":
            flat = value.copy().reshape(-1)
            flat[rng.randrange(flat.size)] = rng.choice(
                [0, -1, 1e30 if value.dtype.kind == "f" else 9]
            )
            out[name] = flat.reshape(value.shape)
        case _:
            out[f"../{name}"] = value
    return out


def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST", 10_000)
    np.savez_compressed(tmp_path / "bomb.npz", obs=np.zeros(10_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 1_000
    for read in (demos.load, lambda file: flat.read_npz(file, "Pendulum-v1")):
        with pytest.raises(UserError, match=r"bomb.npz: unpacks to 80,\d+ bytes, limit 10,000;"):
            read(tmp_path / "bomb.npz")


def test_policies(tmp_path: Path) -> None:
    rng, file = random.Random(0), tmp_path / "policy.safetensors"
    torch.manual_seed(0)
    sac = SacConfig(hidden=(4, 4))
    policy.save(file, Policy(Actor(3, 1, sac, [0]), None).snapshot(0), "Pendulum-v1", sac)
    original = file.read_bytes()
    length = int.from_bytes(original[:8], "little")
    header, rest = json.loads(original[8 : 8 + length]), original[8 + length :]
    for _ in range(COUNT):
        if rng.random() < 0.5:
            file.write_bytes(mutate_bytes(original, rng))
        else:
            changed = mutate_header(header, rng)
            file.write_bytes(len(changed).to_bytes(8, "little") + changed + rest)
        survive(lambda: policy.load(file))
    assert listing(tmp_path) == {Path("policy.safetensors")}


def mutate_header(header: dict[str, Any], rng: random.Random) -> bytes:
    """Return a safetensors header with changed tensors or metadata."""
    changed = copy.deepcopy(header)
    if rng.random() < 0.5:
        facts = json.loads(header["__metadata__"]["ngt"])
        changed["__metadata__"]["ngt"] = json.dumps(mutate_tree(facts, rng))
    else:
        changed = mutate_tree(changed, rng)
    return json.dumps(changed).encode()


def test_a_policy_that_claims_a_huge_net_takes_no_memory(tmp_path: Path) -> None:
    file, sac = tmp_path / "p.safetensors", SacConfig(hidden=(4, 4))
    tensors = Policy(Actor(3, 1, sac, [0]), None).snapshot(0)
    policy.save(file, tensors, "Pendulum-v1", dataclasses.replace(sac, hidden=(10**9, 10**9)))
    with pytest.raises(UserError, match="no layers of"):
        policy.load(file)


@pytest.fixture
def study(tmp_path: Path) -> tuple[Config, Layout]:
    """Return a config and the folder of two finished runs, their expert and published records."""
    settings, layout = load(STUDY), Layout("test", tmp_path / "results")
    reference = {"random": -1000.0, "expert": -200.0, "demos": "a" * 64}
    end = {
        "status": "finished",
        "step": 400,
        "steps_per_second": 50.0,
        "reference": reference,
        "timing": [[200, 1.0], [400, 2.0]],
    }
    cells = [
        (layout.run(key), {"run": str(key), **dataclasses.asdict(key)}, resolve_key(settings, key))
        for key in run_table(settings)
    ]
    env = "Pendulum-v1"
    key = expert_key(env, expert_config(settings, env).seed)
    cells.append((layout.expert(env), key, resolve_expert(settings, env)))
    for folder, key, cell in cells:
        writer = RunWriter(folder, key, cell)
        writer.evaluation(200, [-900.0, -800.0], [200, 200])
        writer.training({"step": 200, "auc": 0.5})
        writer.finish(Policy(Actor(3, 1, cell.sac, [0]), None).snapshot(0), end)
    publish(layout, settings)
    return settings, layout


@pytest.mark.parametrize("name", ["run.json", "eval.csv", "train.csv"])
def test_records(study: tuple[Config, Layout], name: str) -> None:
    settings, layout = study
    key, rng = run_table(settings)[0], random.Random(0)
    record = json.loads((layout.run(key) / "run.json").read_text())
    del record["files"]  # otherwise the checksums would reveal every change
    write_json(layout.run(key) / "run.json", record)
    file = layout.run(key) / name
    original = file.read_bytes()
    tree = record if name == "run.json" else None
    folders = Folders(layout, settings)
    for _ in range(max(COUNT // 3, 1)):
        attempt(rng, file, original, tree)
        survive(lambda: folders.status(key))
        survive(lambda: as_rows(folders.read(key), key))


@pytest.mark.parametrize("end", [".parquet", ".json"])
def test_published_records(study: tuple[Config, Layout], end: str) -> None:
    settings, layout = study
    file = layout.published.with_suffix(end)
    original, rng, key = file.read_bytes(), random.Random(0), run_table(settings)[0]
    tree = json.loads(original) if end == ".json" else None

    def read() -> None:
        records = Published(layout.published, settings)
        if records.status(key).status == "finished":
            as_rows(records.read(key), key)

    for _ in range(max(COUNT // 2, 1)):
        attempt(rng, file, original, tree)
        survive(read)


@pytest.mark.parametrize("name", [shipped.EXPERT, shipped.CURVE])
def test_shipped_experts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Mutate a shipped file; update the curve's checksum, which would reveal every change."""
    env, rng = "HalfCheetah-v4", random.Random(0)
    shutil.copytree(shipped.DATA / env, tmp_path / env)
    monkeypatch.setattr(shipped, "DATA", tmp_path)
    settings, record = load({"scale": "lite", "demos": "shipped"}), tmp_path / env / shipped.EXPERT
    expert, original = json.loads(record.read_text()), (tmp_path / env / name).read_bytes()
    for _ in range(COUNT):
        attempt(rng, tmp_path / env / name, original, expert if name == shipped.EXPERT else None)
        if name == shipped.CURVE:
            content = (tmp_path / env / name).read_bytes()
            files = {**expert["files"], name: sha256(content)}
            record.write_text(json.dumps({**expert, "files": files}))
        survive(lambda: read_shipped(env))
        survive(lambda: demos_source(settings, env))
        survive(lambda: expert_ships(settings, env))
        survive(lambda: experts.row(TASKS[env], False))


def test_checkpoints(tmp_path: Path) -> None:
    """Mutate a checkpoint: either its manifest, with a matching checksum, or any file's bytes."""
    settings = load(STUDY)
    cell = resolve_expert(settings, "Pendulum-v1")
    cell = dataclasses.replace(
        cell,
        train=dataclasses.replace(cell.train, steps=80, buffer=80, batch=4, eval_episodes=1),
        sac=dataclasses.replace(cell.sac, hidden=(4, 4)),
    )
    member = Member(tmp_path / "run", {"env": "Pendulum-v1"}, 0, demos=0)
    trainer = Trainer(cell, [member])
    marks = trainer._log_evaluate_save

    def stop(stride: int) -> None:
        trainer.stop = trainer.step >= 40
        marks(stride)

    trainer._log_evaluate_save = stop  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        trainer.run("test")
    folder = checkpoint.folder_of(member.folder)
    originals = {p: p.read_bytes() for p in sorted(folder.iterdir())}
    manifest = folder / "step-40.json"
    tree = json.loads(originals[manifest])
    rng, went_on = random.Random(0), 0
    for _ in range(COUNT):
        for path in folder.iterdir():
            path.unlink()
        for path, content in originals.items():
            path.write_bytes(content)
        if rng.random() < 0.5:
            changed = mutate_tree(tree, rng)
            changed.pop("blake2b", None)
            manifest.write_text(json.dumps({**changed, "blake2b": checkpoint._digest(changed)}))
        else:
            path = rng.choice(list(originals))
            path.write_bytes(mutate_bytes(originals[path], rng))

        def go_on() -> None:
            found = checkpoint.usable(member.folder, made_with(cell, member), lambda _: None)
            if found:
                saved = checkpoint.load(member.folder, found[0])
                again = Trainer(cell, [member])
                again.parts["records"] = Records(cell, [member], again.learner)
                again._restore([saved])

        went_on += survive(go_on)
    assert went_on > 0
    assert listing(tmp_path) >= {Path("run"), Path("run/checkpoint")}
    assert config_hash(cell)
