"""Tests of policy files: they load exactly, are reproducible and are refused if unusable."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from ngt.agent import policy
from ngt.agent.nets import ObsNormaliser
from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.settings.config import SacConfig

SAC = SacConfig(hidden=(16, 8), log_std_min=-4.0)
ENV = "Reacher-v5"


def make(seeds: tuple[int, ...] = (0, 1, 2), normalised: bool = False) -> Policy:
    task = get_task(ENV)
    normaliser = None
    if normalised:
        normaliser = ObsNormaliser(len(seeds), task.obs)
        g = torch.Generator().manual_seed(0)
        normaliser.update(3.0 * torch.randn(len(seeds), 50, task.obs, generator=g) + 1.0)
    return Policy(Actor(task.obs, task.act, SAC, seeds), normaliser)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "policy.safetensors"
    policy.save(path, make().snapshot(1), ENV, SAC)
    return path


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("run", [0, 2])
def test_a_run_comes_back_exactly(tmp_path: Path, normalised: bool, run: int) -> None:
    pack = make(normalised=normalised)
    policy.save(tmp_path / "p", pack.snapshot(run), ENV, SAC)
    loaded, env = policy.load(tmp_path / "p")
    assert env == ENV
    for name, tensor in pack.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor[run : run + 1]), name
    assert loaded.actor.log_std_min == -4.0
    obs = 2.0 * torch.randn(3, 5, 10, generator=torch.Generator().manual_seed(1))
    action = loaded(obs[run : run + 1])
    assert torch.allclose(action[0], pack(obs)[run], atol=1e-6)
    assert action.shape == (1, 5, 2) and action.abs().max() <= 1 and not action.requires_grad
    mean, _ = pack.actor(pack.normalise(obs))
    assert torch.equal(pack(obs), torch.tanh(mean).detach()), "a policy must act without noise"
    assert torch.equal(pack.normalise(obs), obs) != normalised


@pytest.mark.parametrize(
    "options", [{"activation": "silu"}, {"layer_norm": True, "activation": "silu"}]
)
def test_another_form_of_actor_comes_back(tmp_path: Path, options: dict[str, Any]) -> None:
    sac = replace(SAC, **options)
    task = get_task(ENV)
    pack = Policy(Actor(task.obs, task.act, sac, (0, 1)), None)
    for i, p in enumerate(pack.parameters()):
        p.data += 0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
    policy.save(tmp_path / "p", pack.snapshot(1), ENV, sac)
    loaded, _ = policy.load(tmp_path / "p")
    obs = torch.randn(2, 5, task.obs, generator=torch.Generator().manual_seed(9))
    torch.testing.assert_close(loaded(obs[1:])[0], pack(obs)[1])


def test_what_a_file_says_of_its_actor(file: Path, tmp_path: Path) -> None:
    """Check that a file holds newer settings only if they differ from the default.

    A policy that uses the default of each newer setting therefore keeps the same bytes.
    """
    plain = {"hidden": [16, 8], "log_std_min": -4.0, "log_std_max": 2.0}
    other = tmp_path / "other"
    policy.save(other, make().snapshot(1), ENV, replace(SAC, layer_norm=True, gamma=0.5))
    for path, expected in ((file, plain), (other, {**plain, "layer_norm": True})):
        with safe_open(path, framework="pt") as opened:
            assert json.loads(opened.metadata()["ngt"])["sac"] == expected


def test_a_snapshot_is_a_copy() -> None:
    pack = make()
    before = pack.snapshot(0)
    kept = {name: tensor.clone() for name, tensor in before.items()}
    with torch.no_grad():
        for parameter in pack.parameters():
            parameter += 1.0
    assert all(torch.equal(before[name], kept[name]) for name in kept)
    assert not any(tensor.requires_grad for tensor in before.values())


@pytest.mark.parametrize("normalised", [False, True])
def test_saved_twice_byte_for_byte_the_same(tmp_path: Path, normalised: bool) -> None:
    for name in ("a", "b"):
        policy.save(tmp_path / name, make(normalised=normalised).snapshot(1), ENV, SAC)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    policy.save(tmp_path / "c", make(normalised=normalised).snapshot(2), ENV, SAC)
    assert (tmp_path / "c").read_bytes() != (tmp_path / "a").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"], (
        "no temporary file must remain"
    )


def message(path: Path) -> str:
    """Return the one-line error of `load` without the file's name at its start."""
    with pytest.raises(UserError) as caught:
        policy.load(path)
    text = str(caught.value)
    assert "\n" not in text and text.startswith(f"policy {path}: ")
    return text.removeprefix(f"policy {path}: ")


def rewrite(path: Path, meta: Any = None, **tensors: Any) -> None:
    """Rewrite a file with changed tensors or metadata; if `meta` is None, keep the metadata."""
    facts = {"format": 1, "env": ENV, "sac": {"hidden": [16, 8], "log_std_min": -4.0}}
    data = {**load_file(path), **tensors}
    text = json.dumps({**facts, **meta} if isinstance(meta, dict) else facts)
    save_file(data, path, {"ngt": meta if isinstance(meta, str) else text})


def test_a_rewritten_file_of_the_same_facts_is_fine(file: Path) -> None:
    rewrite(file)
    assert policy.load(file)[1] == ENV


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert (
        message(tmp_path / "none") == "no such file; `ngt train RUN` or `ngt expert ENV` writes it"
    )


@pytest.mark.parametrize("part", [0.0, 0.001, 0.05, 0.5, 0.999])
def test_a_truncated_file(file: Path, part: float) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: int(part * len(data))])
    assert message(file).startswith("truncated, or not a safetensors file (")


def test_a_file_of_something_else(file: Path) -> None:
    file.write_text("step,return\n")
    assert message(file).startswith("truncated, or not a safetensors file (")
    save_file({"weight": torch.zeros(3)}, file)
    assert message(file) == "field 'format': expected 1; not a policy of this suite"
    save_file({"weight": torch.zeros(3)}, file, {"format": "pt"})
    assert message(file) == "field 'format': expected 1; not a policy of this suite"


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"format": 2}, "field 'format': expected 1; not a policy of this suite"),
        ("[1]", "field 'format': expected 1; not a policy of this suite"),
        ("{", "truncated, or not a safetensors file ("),
        ({"env": "Reacher-v9"}, "field 'env': env 'Reacher-v9' is unknown: use one of Reacher-v5"),
        ({"env": None}, "field 'env': env 'None' is unknown"),
        ({"sac": None}, "sac: expected a mapping, found nothing"),
        ({"sac": {"hiden": [16, 8]}}, "sac.hiden: unknown key; did you mean hidden?"),
        ({"env": "Pendulum-v1"}, "tensors do not fit Pendulum-v1: "),
        ({"sac": {"hidden": [16, 16]}}, "tensors do not fit Reacher-v5: "),
        ({"sac": {"hidden": [16]}}, "tensors do not fit Reacher-v5: "),
    ],
)
def test_facts_that_do_not_fit(file: Path, meta: Any, expected: str) -> None:
    rewrite(file, meta)
    assert message(file).startswith(expected)


def test_the_policy_of_a_run_that_diverged(file: Path) -> None:
    name = "actor.net.layers.1.bias"
    rewrite(file, **{name: torch.full((1, 1, 8), torch.nan)})
    assert message(file) == f"tensor {name!r} is not finite; the run diverged"
