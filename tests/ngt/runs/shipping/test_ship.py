"""Tests of shipping a trained and recorded expert."""

from __future__ import annotations

import dataclasses
import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ngt.agent import policy
from ngt.cli import main
from ngt.errors import UserError
from ngt.experience import demos, shipped
from ngt.files import read_json, write_json
from ngt.runs.keys import Layout
from ngt.runs.published import settings_hash
from ngt.runs.shipping import ship
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.resolve import config_hash, expert_ships, plain, resolve_expert

ENV = "Pendulum-v1"
SETTINGS: dict[str, Any] = {
    "scale": "test",
    "envs": {"Pendulum-v1": {"demos": ""}},  # use recorded demos, not those of scale `test`
    "train": {"steps": 400, "eval_every": 40, "log_every": 40, "eval_episodes": 2},
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train and record an expert with the commands, and return the results folder."""
    root = tmp_path_factory.mktemp("expert")
    (root / "settings.yaml").write_text(json.dumps(SETTINGS))
    given = ["--config", str(root / "settings.yaml"), "--results", str(root)]
    main(["expert", ENV, *given])
    main(["record", ENV, *given])
    file = Layout("test", root).demos(ENV)
    data = demos.load(file)  # without this change the poor expert would not beat the random policy
    demos.save(file, dataclasses.replace(data, random_returns=data.random_returns - 5000.0))
    return root


@pytest.fixture
def layout(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Copy the expert's results, use an empty data/, and return the copy's layout."""
    for file in original.rglob("*.*"):
        if file.is_file():
            copy = tmp_path / "results" / file.relative_to(original)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    monkeypatch.setattr(shipped, "DATA", tmp_path / "data")
    return Layout("test", tmp_path / "results")


@pytest.fixture
def config() -> Config:
    return load(SETTINGS)


def refused(layout: Layout, config: Config, **more: Any) -> str:
    """Return the error of a shipment that is refused, and check that data/ is unchanged."""
    before = content()
    with pytest.raises(UserError) as caught:
        ship.ship(layout, config, ENV, **more)
    assert content() == before and "\n" not in str(caught.value)
    return str(caught.value)


def content() -> dict[str, bytes]:
    """Return the bytes of the env's shipped files by name."""
    return {p.name: p.read_bytes() for p in sorted((shipped.DATA / ENV).glob("*"))}


def raise_returns(layout: Layout, by: float) -> None:
    """Add `by` to the returns of the recorded episodes."""
    data = demos.load(layout.demos(ENV))
    demos.save(layout.demos(ENV), dataclasses.replace(data, returns=data.returns + by))


def test_what_ships_is_what_was_made(layout: Layout, config: Config) -> None:
    said = ship.ship(layout, config, ENV)
    data, cell = demos.load(layout.demos(ENV)), resolve_expert(config, ENV)
    run = read_json(layout.expert(ENV) / "run.json")
    made = content()
    assert made.keys() == {"policy.safetensors", "demos.npz", "curve.csv", "expert.json"}
    assert made["policy.safetensors"] == (layout.expert(ENV) / "policy.safetensors").read_bytes()
    assert made["curve.csv"] == (layout.expert(ENV) / "eval.csv").read_bytes()
    assert made["demos.npz"] == layout.demos(ENV).read_bytes()
    expert = shipped.read(ENV)
    assert expert["returns"] == data.returns.tolist() and expert["episodes"] == 3
    assert expert["lengths"] == [200] * 3 and expert["random"] == data.random
    assert expert["config"] == json.loads(json.dumps(plain(cell)))
    assert settings_hash(expert["config"]) == expert["config_hash"], "as in every other record"
    for name in (
        "config_hash",
        "step",
        "updates",
        "kept",
        "source_hash",
        "versions",
        "machine",
        "wall_seconds",
        "commit",
        "timing",
    ):
        assert expert[name] == run[name], name
    assert f"return {data.expert:.1f} (from " in said and "; episodes: 3), 3 of them" in said
    assert expert_ships(config, ENV)
    assert not expert_ships(dataclasses.replace(config, normalise_obs=True), ENV)


def test_the_best_evaluation_is_what_ships(layout: Layout, config: Config) -> None:
    """Check that the policy with the best of ten evaluations ships with episodes that it played."""
    ship.ship(layout, config, ENV)
    rows = np.genfromtxt(shipped.DATA / ENV / shipped.CURVE, delimiter=",", skip_header=1)
    means = {step: rows[rows[:, 0] == step, 2].mean() for step in np.unique(rows[:, 0])}
    kept = shipped.read(ENV)["kept"]
    assert len(means) == 10 and kept["step"] == max(means, key=lambda step: means[step])
    assert kept["return"] == pytest.approx(max(means.values()))
    actor, _ = policy.load(shipped.DATA / ENV / shipped.POLICY)
    data = demos.load(shipped.DATA / ENV / shipped.DEMOS)
    assert ship.distance(data, actor) < 1e-5
    moved = dataclasses.replace(data, obs=data.obs + np.float32(0.5))
    assert ship.distance(moved, actor) > ship.SAME_ACTION
    ours, own = shipped.DATA / ENV / shipped.DEMOS, shipped.DATA / ENV / shipped.POLICY
    assert ship.is_of(config, ours, ENV, own) and ship.is_of(config, ours, ENV, None)
    for other in ({"sac": {"gamma": 0.5}}, {"expert": {"seed": 5}}, {"expert": {"episodes": 4}}):
        assert not ship.is_of(load({**SETTINGS, **other}), ours, ENV, None), other
    demos.save(ours, moved)
    assert not ship.is_of(config, ours, ENV, own), "the episodes are from another policy"
    ours.write_bytes(ours.read_bytes()[:-40])
    assert not ship.is_of(config, ours, ENV, None), "the file is damaged"


def test_a_worse_one_does_not_replace(layout: Layout, config: Config) -> None:
    ship.ship(layout, config, ENV)
    ship.ship(layout, config, ENV)  # an equal expert may replace the shipped one
    raise_returns(layout, -1.0)
    assert "is below the shipped expert" in refused(layout, config)
    ship.ship(layout, config, ENV, replace_better=True)
    raise_returns(layout, +0.5)
    ship.ship(layout, config, ENV)
    assert shipped.read(ENV)["returns"] == demos.load(layout.demos(ENV)).returns.tolist()


def test_a_damaged_one_is_replaced_only_on_request(layout: Layout, config: Config) -> None:
    ship.ship(layout, config, ENV)
    (shipped.DATA / ENV / shipped.CURVE).write_text("step\n")
    assert "curve.csv: checksum" in refused(layout, config)
    ship.ship(layout, config, ENV, replace_better=True)
    shipped.read(ENV)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("config_hash", "0" * 16, "trained with other settings"),
        ("status", "diverged", "diverged: step 400"),
        ("key", {"env": ENV, "method": "expert", "seed": 3}, "trained with expert.seed 3"),
        ("kept", None, "no best policy was kept (expert.train.keep is 'best')"),
        ("files", {"policy.safetensors": "0"}, "policy.safetensors was changed or damaged"),
    ],
)
def test_what_does_not_ship(
    layout: Layout, config: Config, field: str, value: Any, said: str
) -> None:
    file = layout.expert(ENV) / "run.json"
    run = read_json(file)
    run[field] = value
    if value is None:
        del run[field]
    write_json(file, run)
    assert said in refused(layout, config)


def test_an_expert_no_better_than_random_does_not_ship(layout: Layout, config: Config) -> None:
    data = demos.load(layout.demos(ENV))
    random = dataclasses.replace(data, random_returns=data.returns + 1.0)
    demos.save(layout.demos(ENV), random)
    said = refused(layout, config)
    assert f"{data.expert:.6g}, is not above the random policy's, {random.random:.6g}" in said
    assert said == refused(layout, config, replace_better=True), "--replace must not ship it"


def test_nothing_to_ship(layout: Layout, config: Config) -> None:
    layout.demos(ENV).unlink()
    assert "no such file; `ngt record` writes it" in refused(layout, config)
    (layout.expert(ENV) / "run.json").unlink()
    assert "part: last evaluation at step 400; train it with" in refused(layout, config)


def test_episodes_of_another_policy_do_not_ship(layout: Layout, config: Config) -> None:
    data = demos.load(layout.demos(ENV))
    demos.save(layout.demos(ENV), dataclasses.replace(data, source="elsewhere"))
    assert "recorded from another policy" in refused(layout, config)

    def still(obs: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1, obs.shape[1], 1)

    source = config_hash(resolve_expert(config, ENV))
    other = demos.record(ENV, still, 3, 0, source=source, terminate_when_unhealthy=True)
    demos.save(layout.demos(ENV), other)
    assert "recorded from another policy" in refused(layout, config)


def test_the_first_episodes_that_fit(
    layout: Layout, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship.ship(layout, config, ENV)
    size = len(content()["demos.npz"])
    monkeypatch.setattr(ship, "LARGEST", size)
    ship.ship(layout, config, ENV)
    assert shipped.read(ENV)["episodes"] == 3
    monkeypatch.setattr(ship, "LARGEST", size - 1)
    assert ", 2 of them recorded, " in ship.ship(layout, config, ENV)
    assert len(content()["demos.npz"]) < size
    whole, part = demos.load(layout.demos(ENV)), demos.load(shipped.DATA / ENV / shipped.DEMOS)
    expert = shipped.read(ENV)
    assert expert["episodes"] == 2 and expert["returns"] == whole.returns.tolist()
    assert part.obs.dtype == np.float32 and len(part.obs) == 2 * 201
    for name in ("obs", "action", "reward", "length", "returns", "seeds", "terminated"):
        one, other = getattr(part, name), getattr(whole, name)
        np.testing.assert_array_equal(one, other[: len(one)])
    assert part.random == whole.random and part.source == whole.source
    monkeypatch.setattr(ship, "LARGEST", 1000)
    assert "even one recorded episode has" in refused(layout, config)


def test_a_full_disk_leaves_the_former_one_whole(
    layout: Layout, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship.ship(layout, config, ENV)
    before, writes = content(), 0
    raise_returns(layout, 1.0)
    write_bytes = Path.write_bytes

    def full(path: Path, part: bytes) -> int:
        nonlocal writes
        writes += 1
        if writes == 4:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write_bytes(path, part)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            ship.ship(layout, config, ENV)
    assert content() == before


def test_command(layout: Layout, original: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--config", str(original / "settings.yaml"), "--results", str(layout.root)]
    main(["ship", ENV, *given])
    assert capsys.readouterr().out.startswith(f"{shipped.DATA / ENV}: return -")
    raise_returns(layout, -1.0)
    with pytest.raises(SystemExit) as stop:
        main(["ship", ENV, *given])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("\n") == 1
    assert err.startswith(f"ngt: error: expert {ENV}: return -")
    main(["ship", ENV, *given, "--replace"])
