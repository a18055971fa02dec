"""Wasserstein DAC: DAC with the critic of WGAN-GP (Gulrajani et al., 2017).

A critic D with a slope of 1 learns to be high on expert transitions and low on agent transitions:

    loss   = E_agent[D] - E_expert[D] + 10 E[(|grad D| - 1)^2]
    reward = D(x)

The penalty is computed at random points between expert and agent transitions. Adding a constant to
D does not change the loss, so the reward's sign is arbitrary. If episodes can end early, the value
of staying alive is therefore arbitrary too, unless `absorbing` is set. With absorbing states, every
episode continues forever, so a constant in the reward adds the same amount to every return.

Reward: D(x), the critic's raw value. It is high for transitions like the expert's, and zero has no
meaning.
Range: any real number. The reward has the scale of the inputs, since D has slope 1.
Deviations: the critic takes one step per iteration, as for every method here; the WGAN papers use
five steps. The reward is not clamped, centred or scaled by percentiles. All other deviations are
the same as DAC's (baselines/dac.py).
Sources: Arjovsky et al., Wasserstein GAN, ICML 2017; Gulrajani et al., Improved Training of
Wasserstein GANs, NeurIPS 2017; Kostrikov et al., Discriminator-Actor-Critic, ICLR 2019;
lionelblonde/ngt.
"""

import torch
from torch import Tensor

from baselines.adversarial import Adversarial
from ngt.reward import Batch


class Wdac(Adversarial):
    """The critics of R runs."""

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return E_agent[D] - E_expert[D] plus the penalty, shape (R,)."""
        x_agent, x_expert = self.pair(agent, expert)
        d_agent, d_expert = self.net(torch.cat([x_agent, x_expert], dim=1)).squeeze(-1).chunk(2, 1)
        gap = d_expert.mean(dim=1) - d_agent.mean(dim=1)
        self.metrics["wasserstein"] = gap.detach()
        return self.penalty(x_agent, x_expert) - gap

    def value(self, x: Tensor) -> Tensor:
        """Return D(x), shape (R, B), for inputs x, shape (R, B, input)."""
        return self.net(x).squeeze(-1)
