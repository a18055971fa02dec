"""Least-squares inverse Q-learning, LS-IQ (Al-Hafez et al., 2023).

If IQ-Learn's regulariser is computed over expert and agent transitions together, IQ-Learn's
objective becomes a squared Bellman error with one fixed reward for expert transitions and another
for agent transitions. Let c be the regulariser's weight, and E_both the mean over the expert and
agent batches:

    r_expert = 1 / c,   r_agent = -1 / c,   Q_max = 1 / (c (1 - gamma))
    y        = gamma (1 - terminated) clip(V'(s'), -Q_max, Q_max)
    loss     = E_expert[(Q(s, a) - Q_max)^2] + E_both[(V(s) - r_agent - y)^2]

V is the soft value under the policy, and V' is the same value from the target critic. The setting
`expert: bootstrap` replaces Q_max in the first term of the loss by r_expert + y. The setting
`agent: buffer` replaces the second term by E_agent[(Q(s, a) - r_agent - y)^2], which uses only
agent transitions. With `absorbing`, the reward of a terminated transition is multiplied by 1 / (1 -
gamma), which gives the value of staying in the absorbing state forever. Without `absorbing`, ending
an episode would spare the agent all further negative rewards.

Reward: fixed, 1 / c on expert transitions and -1 / c on agent transitions. The reward that is
logged is the one that the critic implies, Q(s, a) - y.
Range: [-1 / c, 1 / c], which is [-2, 2]. With `absorbing`, the range of rewards at terminations is
wider by a factor of 1 / (1 - gamma). Targets are clipped to the values that such rewards can reach,
[-200, 200].
Deviations: the batch of 512 (half from the agent, half from the expert) and the number of updates
are the same as for IQ-Learn in this suite. The original collects 10 000 steps before the critic
learns, and 15 000 before the actor learns, so the critic makes 5000 updates with the initial
policy. In this code both learn from the start. `absorbing` is on, as in LS-IQ's paper; the public
launch scripts turn it off. In the second term, `absorbing` multiplies the reward of every
terminated transition, the agent's and the expert's. The public code multiplies only the agent's
rewards; there, the expert's terminated transitions keep the reward -1 / c. The public code's
variant with a learned entropy critic (LS-IQ with H) is omitted.
Traps: with gamma 0.99 and c 0.5, the expert's target Q_max is 200. The critic's loss therefore
starts near 40 000, and the critic's weights need thousands of updates to reach the target. For
HalfCheetah, the public launch scripts also try c = 10. The temperature is fixed, at 0.1 on Humanoid
and at 1e-3 on all other tasks. With `agent: value`, the actions that the agent took have no effect
on the loss. The value of an action that the policy would take now learns from the state that
followed an earlier action. This is right only as long as the policy changes slowly. The public
script for Humanoid with one demonstration uses `agent: buffer`.
Sources: Al-Hafez et al., "LS-IQ: Implicit Reward Regularization for Inverse Reinforcement
Learning", ICLR 2023; robfiras/ls-iq, with its issue 2. The public code is only
installed from its repository, so the tests compare the loss with the formula in float64.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from baselines.inverse import Inverse, averaged
from ngt.agent.sac import Sac
from ngt.errors import UserError
from ngt.reward import Batch, Spec, opt


@dataclass(frozen=True)
class LsIqConfig:
    """Settings of LS-IQ. Defaults are from the public code unless noted."""

    weight: float = opt(0.5, "weight c of the regulariser; rewards are 1 / c and -1 / c", 1e-8)
    expert: Literal["fix", "bootstrap"] = opt(
        "fix", "target on the expert's side: Q_max (fix) or r_expert + y (bootstrap)"
    )
    agent: Literal["value", "buffer"] = opt(
        "value", "second term: V(s) at all states (value), or Q at the agent's actions (buffer)"
    )
    clip: bool = opt(True, "clip V(s') to the values that the rewards can reach")
    absorbing: bool = opt(
        True, "multiply rewards at terminations by 1 / (1 - gamma); the paper does, its code not"
    )


class LsIq(Inverse):
    """LS-IQ for R runs. Only the agent has learned parameters."""

    Config = LsIqConfig
    config: LsIqConfig

    def __init__(self, config: LsIqConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        if spec.gamma >= 1.0:
            raise UserError("sac.gamma: found 1, but Q_max is 1 / (c (1 - gamma)); use less than 1")

    def critic_loss(self, agent: Sac, batch: Batch, noise: Tensor) -> Tensor:
        """Return the sum of the two terms of the loss, shape (R,)."""
        c, gamma = self.config, self.spec.gamma
        bound = 1.0 / c.weight
        most = bound / (1.0 - gamma)
        values = self.values(agent, batch, noise)
        after = values.after.clamp(-most, most) if c.clip else values.after
        y = gamma * after
        self.log(values, values.q.mean(dim=1) - y)
        ends = (batch.terminated > 0) & c.absorbing
        size = torch.where(ends, most, bound).to(y)
        high = torch.full_like(y, most) if c.expert == "fix" else size + y
        low = y - size
        of_expert = (values.q - high[:, None]).square()
        if c.agent == "value":
            of_agent = (values.v - low).square().mean(dim=1)
        else:
            of_agent = averaged(values.sides((values.q - low[:, None]).square())[0])
        return averaged(values.sides(of_expert)[1]) + of_agent
