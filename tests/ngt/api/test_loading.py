"""Policies, demonstrations and tables of runs, loaded from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import ngt
from ngt.agent import policy
from ngt.errors import UserError
from ngt.experience import envs, shipped

ROOT = Path(__file__).resolve().parents[3]


def test_a_shipped_expert_acts_in_the_envs_units() -> None:
    demos = ngt.load_demos("Pusher-v5")  # this env's action bound is 2
    expert = ngt.load_policy("Pusher-v5")
    obs = demos.obs[:5]
    actions = expert.predict(obs)
    assert actions.shape == (5, 7) and actions.dtype == np.float32
    assert np.allclose(actions, 2.0 * demos.action[:5], atol=1e-4)
    assert np.allclose(expert.predict(obs[2]), actions[2], atol=1e-5)
    assert expert.predict(obs[2].astype(np.float64)).shape == (7,)
    actor, _ = policy.load(shipped.DATA / "Pusher-v5" / shipped.POLICY)
    unit = actor(torch.from_numpy(obs)[None])[0].numpy()
    assert np.allclose(actions, 2.0 * unit, atol=1e-6)
    for wrong in (np.zeros(3), np.zeros((2, 2, envs.get_task("Pusher-v5").obs)), 1.0):
        with pytest.raises(UserError, match=r"obs: found shape .*expected \(23,\) or \(n, 23\)"):
            expert.predict(wrong)
    for odd, said in (
        ({"pos": np.zeros(3)}, r"found a mapping \{'pos': .*gymnasium\.spaces\.flatten\(env\.obs"),
        ((np.zeros(3), np.zeros(2)), "found tuple .*expected an array of numbers; flatten a Dict"),
        ("text", "found text 'text', expected an array of numbers"),
        (np.full(23, np.nan), "found nan, expected finite numbers"),
        (np.full((2, 23), 1e300), "found inf, expected finite numbers"),
    ):
        with pytest.raises(UserError, match=f"obs: {said}"):
            expert.predict(odd)  # type: ignore[arg-type]


def test_a_path_comes_before_an_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = ROOT / "tests/data/Pendulum-v1.npz"
    assert ngt.load_demos(file).env == "Pendulum-v1"
    with pytest.raises(UserError, match="expected Hopper-v4"):
        ngt.load_demos(str(file), "Hopper-v4")
    with pytest.raises(UserError, match="ngt import imitation"):
        ngt.load_demos(ROOT / "tests/data/imitation-hopper")
    Path("Pusher-v5").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="demonstrations Pusher-v5: truncated"):
        ngt.load_demos("Pusher-v5")
    with pytest.raises(UserError, match="policy nowhere: no such file"):
        ngt.load_policy("nowhere")


def test_runs_are_a_table(tmp_path: Path) -> None:
    none = ngt.load_runs("test", results=tmp_path)
    assert none.empty and none[none["demos"] == 4].groupby("method")["score"].mean().empty
    published = {"settings": {"records": "published"}, "results": ROOT / "results"}
    rows = ngt.load_runs("quick", other_settings=True, **published)
    assert {"env", "method", "demos", "seed", "step", "return"} <= set(rows.columns)
    assert set(rows["env"]) == {"Pendulum-v1"} and len(rows) > 1000
    assert list(rows) == list(none), "a table without runs must have the same columns"
