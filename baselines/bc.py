"""Behavioural cloning (Pomerleau, 1989), as the authors' public code has it.

The policy is fitted to expert pairs (s, a) alone, no env is stepped:

    loss = E_expert[|a_theta(s) - a|^2] / |A|

a_theta(s) is a reparameterised sample of the tanh-Gaussian policy, whose std so shrinks to its
floor. Steps count gradient steps.

Reward: none.
Range: none.
Deviations: none from that code. (The likelihood would be fragile: a deterministic SAC expert
saturates the tanh, and atanh(+-1) is infinite.)
Sources: Pomerleau, "ALVINN: An Autonomous Land Vehicle in a Neural Network", NeurIPS 1988;
lionelblonde/ngt.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer

from ngt.replay import Batch
from ngt.reward import RewardModel, Spec
from ngt.sac import Actor, adam, descend, squashed_gaussian
from ngt.schema import opt
from ngt.seeding import Draw


@dataclass(frozen=True)
class BcConfig:
    """Behavioural cloning."""

    lr: float = opt(3e-4, "Adam; the paper's policy learning rate", 0)


class Bc(RewardModel):
    """The `fit` seam."""

    Config = BcConfig
    config: BcConfig
    offline = True

    def __init__(self, config: BcConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        self.descent: Optimizer | None = None  # made when the actor is known

    def draws(self) -> dict[str, Draw]:
        return {"bc_noise": Draw("normal", (self.spec.batch, self.spec.act))}

    def imitation_loss(self, actor: Actor, expert: Batch) -> Tensor:
        """Mean squared error of a sampled action, (R,)."""
        mean, log_std = actor(expert.obs)
        action, _ = squashed_gaussian(mean, log_std, self.noise["bc_noise"])
        return (action - expert.action).square().mean(dim=(1, 2))

    def fit(self, actor: Actor, expert: Batch) -> None:
        if self.descent is None:
            self.descent = adam(actor.parameters(), self.config.lr)
        loss = self.imitation_loss(actor, expert)
        descend(self.descent, loss)
        self.metrics["bc_loss"] = loss.detach()
