"""The experts that ship: files load, agree with each other and with what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ngt import demos, policy
from ngt.envs import VectorEnv
from ngt.evaluation import rollout

DATA = Path(__file__).resolve().parents[1] / "data"
ENVS = sorted(p.name for p in DATA.iterdir() if p.is_dir())


@pytest.mark.parametrize("env", ENVS)
def test_expert(env: str) -> None:
    folder = DATA / env
    recorded = demos.load(folder / "demos.npz", env)
    expert = json.loads((folder / "expert.json").read_text())
    assert expert["status"] == "finished" and expert["config_hash"] == recorded.source
    assert f"| {env} | {recorded.expert:.0f} (" in (DATA / "README.md").read_text()
    actor, trained_on = policy.load(folder / "policy.safetensors")
    assert trained_on == env
    vec = VectorEnv(env, 1)
    again = rollout(vec, actor, [int(recorded.seeds[0])], runs=1)
    vec.close()
    # other processors round otherwise, and an episode enlarges that
    assert again.returns[0, 0] == pytest.approx(recorded.returns[0], rel=0.1)
