"""MMD-DAC: DAC with a critic D that maximises the maximum mean discrepancy (Li et al., 2017).

The kernel k compares outputs of D: k(u, v) = sum over sigma in {0.1, 1, 10} of
exp(-|u - v|^2 / (2 sigma^2)). With expert transitions e, e' and agent transitions a, a':

    MMD^2  = E[k(D(e), D(e'))] + E[k(D(a), D(a'))] - 2 E[k(D(e), D(a))]
    loss   = -MMD^2 + 10 E[(|grad D| - 1)^2]
    reward = w(x) = E_e[k(D(x), D(e))] - E_a[k(D(x), D(a))]

The NGT paper gives the kernel and states that MMD replaces the objective of Wasserstein DAC
(W-DAC). D(x) cannot be the reward here, since D, -D and D + c (for any constant c) have the same
loss. The reward is the witness function w instead, for which MMD^2 = E_e[w] - E_a[w].

Reward: w(x), computed with the last expert and agent batches, which the current D embeds. It
is high for transitions like the expert's.
Range: (-3, 3), since the kernel of each sigma contributes between -1 and 1.
Deviations: D has one output and the penalty is on D, as for W-DAC's critic. Li et al. use more
outputs, clip the weights, and add the loss of an autoencoder and a rank constraint. With
`penalise: witness`, the penalty is on the slope of w instead (Bińkowski et al., 2018). This is not
the default, because w is bounded and therefore cannot have slope 1 everywhere between raw
observations that lie far apart. The kernels of the three sigmas are summed, as in Li et al.'s code.
Averaging them instead would be equivalent to three times the penalty and a third of the reward. The
estimate of MMD^2 includes each row's kernel with itself. Leaving these kernels out would only
multiply the gradients of the first two terms by B / (B - 1). The mean over e in w is taken over a
batch, not over all expert transitions. The mean over e is thus as noisy as the mean over a, and its
cost does not depend on the number of demonstrations. The logged AUC compares the two batches that
define w, so each row's kernel with itself raises it: it is about 0.6, not 0.5, where expert and
agent have the same distribution. Each net takes one step per iteration, and
absorbing states are off by default, as for every method here.
Sources: Li et al., MMD GAN, NeurIPS 2017; Bińkowski et al., Demystifying MMD GANs, ICLR 2018; Xiao
et al., Wasserstein Adversarial Imitation Learning, 2019; OctoberChang/MMD-GAN.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from baselines.adversarial import Adversarial, AdversarialConfig
from ngt.errors import UserError
from ngt.penalty import gradient_penalty
from ngt.reward import Batch, Spec, opt


@dataclass(frozen=True)
class MmdConfig(AdversarialConfig):
    """Settings of MMD-DAC."""

    sigmas: tuple[float, ...] = opt(
        (0.1, 1.0, 10.0), "widths of the kernels, in units of D's output", 1e-8
    )
    m: int = opt(1, "number of D's outputs; more than one needs `penalise: witness`", 1)
    penalise: Literal["net", "witness"] = opt(
        "net", "function whose slope the penalty pulls to 1: D (net) or w (witness)"
    )


def rbf_mixture(u: Tensor, v: Tensor, sigmas: Sequence[float]) -> Tensor:
    """Return the sum of Gaussian kernels between each row of u and each row of v.

    u has shape (R, B, m), v has shape (R, C, m), and the result has shape (R, B, C). Each sigma
    contributes 1 if u = v. Differences are computed explicitly, instead of by expanding the square,
    for two reasons. First, the loss does not constrain D's offset. At an offset of 100, the
    expanded square has an error of 0.1 in float32, which matters for a sigma of 0.1. Second,
    torch.cdist has no second derivative.
    """
    square = (u.unsqueeze(-2) - v.unsqueeze(-3)).square().sum(dim=-1)
    return torch.stack([torch.exp(square / (-2.0 * s * s)) for s in sigmas]).sum(dim=0)


def mmd_squared(u_expert: Tensor, u_agent: Tensor, sigmas: Sequence[float]) -> Tensor:
    """Return the biased estimate of MMD^2 between two batches of D's outputs, shape (R,).

    The batches have shapes (R, B, m) and (R, C, m). The estimate is biased because it includes each
    row's kernel with itself.
    """
    sides = (u_expert, u_expert), (u_agent, u_agent), (u_expert, u_agent)
    expert, agent, between = (rbf_mixture(u, v, sigmas).mean(dim=(1, 2)) for u, v in sides)
    return expert + agent - 2.0 * between


def witness(u: Tensor, u_expert: Tensor, u_agent: Tensor, sigmas: Sequence[float]) -> Tensor:
    """Return u's mean kernel with `u_expert` minus u's mean kernel with `u_agent`, shape (R, B)."""
    to_expert = rbf_mixture(u, u_expert, sigmas).mean(dim=-1)
    return to_expert - rbf_mixture(u, u_agent, sigmas).mean(dim=-1)


class MmdDac(Adversarial):
    """The critics of R runs, and the two batches that define the witness."""

    Config = MmdConfig
    config: MmdConfig

    def __init__(self, config: MmdConfig, spec: Spec) -> None:
        if config.m > 1 and config.penalise == "net":
            raise UserError(
                f"params.m: {config.m} outputs have no single slope; use 1 or `penalise: witness`"
            )
        super().__init__(config, spec, outputs=config.m)
        # The loss does not depend on D's offset, so the offset's gradient is only rounding error,
        # which Adam would amplify.
        self.net.layers[-1].bias.requires_grad_(False)
        # The witness is computed with the last expert and agent batches, not with all
        # demonstrations, since D was trained on these batches and their size is constant.
        shape = len(spec.seeds), spec.batch, self.net.layers[0].weight.shape[-2]
        self.expert: Tensor
        self.agent: Tensor
        # Both batches are zero before the first update, so the first rewards are 0.
        self.register_buffer("expert", torch.zeros(shape))
        self.register_buffer("agent", torch.zeros(shape))

    def update(self, agent: Batch, expert: Batch) -> None:
        """Store the batches for the witness, then take one gradient step on the loss."""
        x_agent, x_expert = self.pair(agent, expert)
        self.agent.copy_(x_agent)
        self.expert.copy_(x_expert)
        super().update(agent, expert)

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return minus MMD^2, plus the penalty, shape (R,)."""
        x_agent, x_expert = self.pair(agent, expert)
        mmd2 = mmd_squared(self.net(x_expert), self.net(x_agent), self.config.sigmas)
        self.metrics["mmd2"] = mmd2.detach()
        return self.penalty(x_agent, x_expert) - mmd2

    def slope(self, x_agent: Tensor, x_expert: Tensor) -> Tensor:
        """Return the gradient penalty on D or on the witness, without the weight, shape (R,)."""
        if self.config.penalise == "net":
            return super().slope(x_agent, x_expert)
        u_expert, u_agent = self.net(x_expert), self.net(x_agent)
        return gradient_penalty(
            lambda x: witness(self.net(x), u_expert, u_agent, self.config.sigmas),
            x_expert,
            x_agent,
            self.noise["epsilon"],
            self.config.one_sided,
        )

    def value(self, x: Tensor) -> Tensor:
        """Return the witness, shape (R, B), at inputs x, shape (R, B, input)."""
        return witness(self.net(x), self.net(self.expert), self.net(self.agent), self.config.sigmas)
