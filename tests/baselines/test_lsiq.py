"""LS-IQ: its loss compared with plain loops, and the bounds of its values."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from baselines.lsiq import LsIq
from ngt.errors import UserError
from ngt.reward import Spec

GAMMA, C = 0.9, 0.5
MOST = 1.0 / (C * (1.0 - GAMMA))


def plain(agent, expert, critic: int, options: dict) -> tuple[float, float]:
    """Return one critic's mean squared errors: on the expert's rows, then on the agent's."""

    def size(row) -> float:
        return (1.0 / C) / (1.0 - GAMMA) if row.end and options["absorbing"] else 1.0 / C

    def y(row) -> float:
        bound = GAMMA * MOST
        return min(max(row.after, -bound), bound) if options["clip"] else row.after

    of_expert = [
        (row.q[critic] - (MOST if options["expert"] == "fix" else size(row) + y(row))) ** 2
        for row in expert
    ]
    if options["agent"] == "value":
        of_agent = [(row.v + size(row) - y(row)) ** 2 for row in agent + expert]
    else:
        of_agent = [(row.q[critic] + size(row) - y(row)) ** 2 for row in agent]
    return float(np.mean(of_expert)), float(np.mean(of_agent))


@pytest.mark.parametrize(
    "options",
    [
        {"expert": "fix", "agent": "value", "clip": True, "absorbing": True},
        {"expert": "bootstrap", "agent": "buffer", "clip": False, "absorbing": False},
        {"expert": "bootstrap", "agent": "value", "clip": True, "absorbing": False},
    ],
)
@pytest.mark.parametrize("critics", [1, 2])
def test_the_loss_equals_plain_loops(case, options: dict, critics: int) -> None:
    made = case(LsIq, critics, weight=C, **options)
    loss = made.loss
    assert loss.shape == (2,)
    for run in (0, 1):
        errors = [plain(*made.sides(run), k, options) for k in range(critics)]
        assert float(loss[run].detach()) == pytest.approx(np.sum(errors) / critics, rel=1e-10)


@pytest.mark.parametrize(("agent", "used"), [("value", False), ("buffer", True)])
def test_only_the_second_form_learns_from_the_actions_that_the_agent_took(
    case, agent: str, used: bool
) -> None:
    made = case(LsIq, weight=C, agent=agent)
    action = made.batch.action.clone()
    action[:, : action.shape[1] // 2] *= -1.0
    other = made._replace(batch=made.batch._replace(action=action))
    assert torch.equal(made.loss, other.loss) != used


def test_values_after_a_step_are_clipped_to_what_the_rewards_can_reach(case) -> None:
    """Check the clipping with a weight of 40, which limits every value to 0.25."""
    loose, tight = (case(LsIq, weight=40.0, clip=clip) for clip in (False, True))
    for made, clipped in ((loose, False), (tight, True)):
        for p in made.agent.target.parameters():
            p.data *= 30.0
        largest = max(abs(row.after) for side in made.sides(0) for row in side)
        assert largest > 0.25
        assert (made.loss < 10.0).all() == clipped


def test_a_discount_of_one_is_refused() -> None:
    with pytest.raises(UserError, match=r"sac\.gamma: found 1"):
        LsIq(LsIq.Config(), Spec(3, 1, "state-action", 8, [0], 9, 4, 1.0))
