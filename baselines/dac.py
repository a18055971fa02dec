"""Discriminator-Actor-Critic (Kostrikov et al., 2019), also SAM (Blonde & Kalousis, 2019).

A discriminator D = sigmoid(z) tells expert (label 1) from agent (label 0):

    loss = E_expert[softplus(-z)] + E_agent[softplus(z)] + 10 E[(|grad z| - 1)^2]

    dac-rplus   reward = -log(1 - D)         = softplus(z) >= 0: pays for staying alive
    dac-r       reward = log D - log(1 - D)  = z, of either sign

High is expert-like. Both are written in the logit z, where nothing saturates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from baselines.adversarial import Adversarial, AdversarialConfig
from ngt.replay import Batch
from ngt.schema import opt


@dataclass(frozen=True)
class DacConfig(AdversarialConfig):
    """DAC."""

    form: Literal["logit", "softplus"] = opt("logit", "reward z (R) or softplus(z) (R+)")
    expert_label: float = opt(1.0, "under 1: label smoothing, on the expert's side", 0, 1)


class Dac(Adversarial):
    """The discriminator of R runs; D's output is the logit z."""

    Config = DacConfig
    config: DacConfig

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Cross-entropy, summed over both sides, plus the penalty, (R,)."""
        x_agent, x_expert = self.pair(agent, expert)
        z_agent, z_expert = self.net(x_agent).squeeze(-1), self.net(x_expert).squeeze(-1)
        label = self.config.expert_label
        on_expert = label * F.softplus(-z_expert) + (1.0 - label) * F.softplus(z_expert)
        entropy = on_expert.mean(dim=1) + F.softplus(z_agent).mean(dim=1)
        self.metrics["cross_entropy"] = entropy.detach()
        return entropy + self.penalty(x_agent, x_expert)

    def value(self, x: Tensor) -> Tensor:
        """R or R+ of inputs x (R, B, input), (R, B)."""
        z: Tensor = self.net(x).squeeze(-1)
        return F.softplus(z) if self.config.form == "softplus" else z
