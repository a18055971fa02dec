"""Tests of the settings, packs and peers that the benchmarks measure.

A pack is a group of runs trained together.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ngt.bench import cases


def test_cells_have_the_papers_settings() -> None:
    assert cases.cell_of("NGT", "Humanoid-v4").params == {"pairing": "hl_gauss"}
    assert cases.cell_of("NGT", "Walker2d-v4").params == {"pairing": "huber"}
    assert cases.cell_of("DAC", "Humanoid-v4").params == {}


def test_every_run_has_four_demonstrations_and_its_own_folder() -> None:
    members = cases.members_of(cases.cell_of("NGT", "Hopper-v4"), range(2), Path("here"))
    assert [m.folder for m in members] == [Path("here/0"), Path("here/1")]
    assert all(m.data is not None and m.data.obs.shape == (1, 4 * 50, 11) for m in members)


@pytest.mark.parametrize("model", cases.MODELS)
def test_a_pack_has_a_filled_buffer_and_updates(model: str) -> None:
    pack = cases.pack_of(cases.cell_of(model, "Pendulum-v1"), range(2), filled=300)
    assert pack.replay.size == 300
    before = next(pack.learner.agent.parameters()).detach().clone()
    pack.update()
    assert pack.learner.updates == 1
    assert not torch.equal(before, next(pack.learner.agent.parameters()))


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(env: str) -> None:
        raise ImportError(env)

    monkeypatch.setattr(cases, "sb3_update", missing)
    assert cases.peers("Pendulum-v1") == {}
