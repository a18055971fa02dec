"""Wasserstein DAC: DAC with the critic of WGAN-GP (Gulrajani et al., 2017) for a discriminator.

A critic D of slope 1 is high on expert transitions and low on the agent's:

    loss   = E_agent[D] - E_expert[D] + 10 E[(|grad D| - 1)^2]
    reward = D(x)

The penalty is taken at random points between expert and agent rows. The loss does not change when D
is shifted by a constant, so that the reward's sign is not determined. Where episodes can end early,
what staying alive is worth is then chance, unless `absorbing` is set: with absorbing states no
episode ends, and a shift adds the same to every return.

Reward: D(x), the critic's raw value; high is expert-like, its zero means nothing.
Range: any real; the scale is that of the inputs, since D has slope 1.
Deviations: one critic step per iteration, as for every method here; WGAN papers take five. No
percentile scaling, clamp or centring of the reward. Otherwise as DAC.
Sources: Arjovsky et al., Wasserstein GAN, ICML 2017; Gulrajani et al., Improved Training of
Wasserstein GANs, NeurIPS 2017; Kostrikov et al., Discriminator-Actor-Critic, ICLR 2019;
lionelblonde/ngt.
"""

from __future__ import annotations

import torch
from torch import Tensor

from baselines.adversarial import Adversarial
from ngt.experience.replay import Batch


class Wdac(Adversarial):
    """The critic of R runs."""

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Minus the dual objective, plus the penalty, (R,)."""
        x_agent, x_expert = self.pair(agent, expert)
        d_agent, d_expert = self.net(torch.cat([x_agent, x_expert], dim=1)).squeeze(-1).chunk(2, 1)
        gap = d_expert.mean(dim=1) - d_agent.mean(dim=1)
        self.metrics["wasserstein"] = gap.detach()
        return self.penalty(x_agent, x_expert) - gap

    def value(self, x: Tensor) -> Tensor:
        """D(x) for x (R, B, input), (R, B)."""
        value: Tensor = self.net(x).squeeze(-1)
        return value
