"""Discriminator-Actor-Critic, DAC (Kostrikov et al., 2019), also SAM (Blondé and Kalousis, 2019).

A discriminator D = sigmoid(z) tells expert transitions (label y) from agent transitions (label 0):

    loss   = E_expert[y softplus(-z) + (1 - y) softplus(z)] + E_agent[softplus(z)]
             + 10 E[(|grad z| - 1)^2]
    reward = z              (dac-r, "R")        = log D - log(1 - D)
    reward = softplus(z)    (dac-rplus, "R+")   = -log(1 - D)
    reward = -z exp(z)      (fairl)             = D / (1 - D) log((1 - D) / D)

The penalty is computed at random points between expert and agent transitions. Rewards are computed
from the logit z, which does not saturate. If R+ were computed as -log(1 - D + 1e-8), it could not
exceed 18.4.
R is also the reward of AIRL (Fu et al., 2018). FAIRL's reward (Ghasemipour et al., 2020) turns the
objective into the forward KL divergence, from the expert's distribution to the agent's. In FAIRL's
reward, z is clamped to at most `logit_clip` in magnitude.

Reward: R is z, R+ is softplus(z). Both are high for transitions like the expert's. FAIRL's reward
is not: it is largest at z = -1, where agent transitions are more frequent than expert transitions.
As z rises, where expert transitions are more frequent, it falls without bound.
Range: R is any real number. R+ lies in [0, inf). Since R+ is never negative, it rewards staying
alive if episodes can end early. FAIRL's reward lies in [-10 exp(10), exp(-1)], which is [-220 265,
0.37].
Deviations: SAC replaces TD3 or DDPG, and each net takes one step per iteration, as for every method
here. Batches are drawn with replacement, since one demonstration has fewer transitions than a
batch. LeakyReLU replaces tanh, as in the NGT paper's reward net. Absorbing states are off by
default, since the NGT paper does not mention them. If `absorbing` is set, the value of absorbing
states is added in closed form, not bootstrapped. The last transition of an expert episode is
subsampled like any other transition; the original always keeps the last transition, with weight
1 / rate. The label y is a constant of at most 1.
SAM draws y anew for each row, but only the mean of y matters. FAIRL's code differs from this code
in three more points. It also clamps z while D learns, it tunes the scale of the reward and the
weight of the penalty per env, and it ignores terminations.
Traps: at z = 10, FAIRL's reward is 22 026 times as large as z. Without a clamp, or with a weak
penalty, the critic diverges. The mean of FAIRL's reward is minus the divergence, but the policy
gradient of the reward is not the divergence's gradient, since the reward contains the density of
the policy. The right gradient is that of the reward exp(z). At z = 0, where the policy equals the
expert's, FAIRL's reward falls with slope 1. Even with an exact D, its policy gradient therefore
leads away from the expert. FAIRL's code tries 64 pairs of scale and weight per env, for 16 million
env steps each.
Sources: Kostrikov et al., Discriminator-Actor-Critic, ICLR 2019; Blondé and Kalousis,
Sample-Efficient Imitation Learning via Generative Adversarial Nets, AISTATS 2019; Gulrajani et al.,
2017 (penalty); Fu et al., Learning Robust Rewards with Adversarial Inverse Reinforcement Learning,
ICLR 2018; Ghasemipour et al., A Divergence Minimization Perspective on Imitation Learning Methods,
CoRL 2019; google-research/google-research (dac), google-deepmind/acme (ail), KamyarGh/rl_swiss,
lionelblonde/sam-tf, lionelblonde/ngt.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from baselines.adversarial import Adversarial, AdversarialConfig
from ngt.reward import Batch, opt


@dataclass(frozen=True)
class DacConfig(AdversarialConfig):
    """Settings of DAC."""

    form: Literal["logit", "softplus", "forward_kl"] = opt(
        "logit", "form of the reward: z (R), softplus(z) (R+) or -z exp(z) (FAIRL)"
    )
    logit_clip: float = opt(10.0, "largest magnitude of z in FAIRL's reward", 0)
    expert_label: float = opt(1.0, "expert label y; values below 1 smooth the labels", 0, 1)


class Dac(Adversarial):
    """The discriminators of R runs. Each discriminator's net returns the logit z."""

    Config = DacConfig
    config: DacConfig

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return the expert's and the agent's cross-entropy plus the penalty, shape (R,)."""
        x_agent, x_expert = self.pair(agent, expert)
        z_agent, z_expert = self.net(torch.cat([x_agent, x_expert], dim=1)).squeeze(-1).chunk(2, 1)
        y = self.config.expert_label
        on_expert = y * F.softplus(-z_expert) + (1.0 - y) * F.softplus(z_expert)
        entropy = on_expert.mean(dim=1) + F.softplus(z_agent).mean(dim=1)
        self.metrics["cross_entropy"] = entropy.detach()
        return entropy + self.penalty(x_agent, x_expert)

    def value(self, x: Tensor) -> Tensor:
        """Return the rewards (R, B) for inputs x (R, B, input), in the configured form."""
        z: Tensor = self.net(x).squeeze(-1)
        if self.config.form == "softplus":
            return F.softplus(z)
        if self.config.form == "forward_kl":
            z = z.clamp(-self.config.logit_clip, self.config.logit_clip)
            return -z * z.exp()
        return z

    @torch.no_grad()
    def score(self, batch: Batch) -> Tensor:
        """Return a score (R, B) that rises with D: the reward, or z for FAIRL."""
        if self.config.form != "forward_kl":
            return super().score(batch)
        z: Tensor = self.net(self.inputs(batch)).squeeze(-1)
        return z
