"""What learns: its draws have names of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngt.bench import random_batch
from ngt.config import CellConfig
from ngt.errors import UserError
from ngt.learner import Learner, Member
from ngt.reward import NoParams, RewardModel
from ngt.seeding import Draw


class Named(RewardModel):
    Config = NoParams
    learns = False
    name = "mine"

    def draws(self) -> dict[str, Draw]:
        return {self.name: Draw("normal", (2,))}


@pytest.mark.parametrize("name", ["noise", "next_noise", "sac_index", "explore", "uniform"])
def test_a_draw_of_the_suites_own_name_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = CellConfig(env="Pendulum-v1", method="m", model=f"{__name__}:Named")
    members = [Member(Path(), {}, 0, 1, random_batch(1, 9, 3, 1))]
    assert "mine" in Learner(cell, members).streams.next()
    monkeypatch.setattr(Named, "name", name)
    with pytest.raises(UserError, match=rf"methods.m: draws\(\) has '{name}', .* e.g. m_{name}"):
        Learner(cell, members)
