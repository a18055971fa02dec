"""Wasserstein DAC: a critic D of slope 1, as in WGAN-GP (Gulrajani et al., 2017).

    loss = E_agent[D] - E_expert[D] + 10 E[(|grad D| - 1)^2]        reward = D(x)

High is expert-like; any sign, no bound. D is known up to a constant alone, so that with early
termination the reward's sign, and with it what staying alive is worth, is not determined. One
critic step per iteration, as for every method here (WGAN papers take five).
"""

from __future__ import annotations

from torch import Tensor

from baselines.adversarial import Adversarial
from ngt.replay import Batch


class Wdac(Adversarial):
    """The critic of R runs."""

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Minus the dual objective, plus the penalty, (R,)."""
        x_agent, x_expert = self.pair(agent, expert)
        gap = self.net(x_expert).mean(dim=(1, 2)) - self.net(x_agent).mean(dim=(1, 2))
        self.metrics["wasserstein"] = gap.detach()
        return self.penalty(x_agent, x_expert) - gap

    def value(self, x: Tensor) -> Tensor:
        """D(x) for x (R, B, input), (R, B)."""
        value: Tensor = self.net(x).squeeze(-1)
        return value
