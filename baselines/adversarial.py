"""Common parts of the adversarial methods: a net, its gradient penalty, absorbing states.

Each run trains its own net D to tell expert from agent transitions. A method's `loss` says how, and
its `value` gives the reward. The nets are the paper's reward nets without spectral norm, which
would conflict with the two-sided penalty: spectral norm caps the slope at 1, and the penalty pulls
it up to 1. The slope is per unit of input. A coordinate of large scale therefore dominates D unless
observations are normalised.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import PackedMLP
from ngt.errors import UserError
from ngt.reward import Batch, Draw, RewardModel, Spec, opt
from ngt.seeding import torch_generator


@dataclass(frozen=True)
class AdversarialConfig:
    """Settings of a method with a discriminator or critic. Values: the paper's, unless noted."""

    hidden: tuple[int, ...] = opt((256, 256), "widths of the net", 1)
    leak: float = opt(0.05, "slope of LeakyReLU below zero", 0)
    lr: float = opt(1e-3, "Adam", 0)
    penalty: float = opt(10.0, "weight of the gradient penalty", 0)
    one_sided: bool = opt(False, "penalise slopes above 1 only; WGAN-GP penalises both")
    absorbing: bool = opt(
        False, "learn a reward for having ended, as DAC does; the paper is silent"
    )


def gradient_penalty(
    net: Callable[[Tensor], Tensor],
    expert: Tensor,
    agent: Tensor,
    epsilon: Tensor,
    one_sided: bool = False,
) -> Tensor:
    """Return the mean of (|grad net(x)| - 1)^2 over points x between expert and agent rows, (R,).

    net: maps (R, B, dims) to one value per row; several values per row are summed.
    expert, agent: rows (R, B, dims). epsilon: the expert's share in x, in [0, 1], (R, B).
    one_sided: do not penalise slopes below 1.
    The result can be differentiated in the net's parameters, even at a zero gradient.
    """
    x = (agent + epsilon[..., None] * (expert - agent)).detach().requires_grad_()
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    excess = torch.linalg.vector_norm(slope, dim=-1) - 1.0  # its subgradient at 0 is 0, not NaN
    if one_sided:
        excess = F.relu(excess)
    return excess.square().mean(dim=1)


class Adversarial(RewardModel):
    """The net D of R runs; subclasses define `loss` and `value`.

    With absorbing states (Kostrikov et al., 2019), observations carry a flag. It is 1 in the state
    after the end, whose other coordinates are 0.

    In D's batches a fair coin decides whether a terminated transition stands for itself or for the
    absorbing state's own transition. Each of the two has half the weight of a separate row, on both
    sides. This leaves the ratio of the sides unchanged, up to one factor. The reward of a
    terminated transition adds the absorbing state's value: gamma / (1 - gamma) times its reward,
    which is what bootstrapping through it forever amounts to. D sees an expert's end only if the
    subsampled transitions contain it. This happens for one in `rate` demonstrations that the env
    ended, on average.
    """

    Config = AdversarialConfig
    config: AdversarialConfig

    def __init__(self, config: AdversarialConfig, spec: Spec, outputs: int = 1) -> None:
        super().__init__(config, spec)
        if config.absorbing and spec.gamma >= 1.0:
            raise UserError("params.absorbing: an endless reward has no value at sac.gamma 1")
        flags = 2 if spec.mode == "state-state" else 1
        width = spec.input + (flags if config.absorbing else 0)
        self.net = PackedMLP(
            [width, *config.hidden, outputs],
            [torch_generator(seed, "init", "net") for seed in spec.seeds],
            activation=Rectifier(config.leak),
        )
        self.learn_with(config.lr)

    def draws(self) -> dict[str, Draw]:
        names = ("epsilon", "coin_e", "coin_a") if self.config.absorbing else ("epsilon",)
        return {name: Draw("uniform", (self.spec.batch,)) for name in names}

    def inputs(self, batch: Batch) -> Tensor:
        """Return the inputs of D, (R, B, input), with flags if states are absorbing."""
        if not self.config.absorbing:
            return super().inputs(batch)
        ended = batch.terminated[..., None]
        alive = torch.zeros_like(ended)
        if self.spec.mode == "state-action":
            return torch.cat([batch.obs, alive, batch.action], dim=-1)
        if self.spec.mode == "state-state":
            next_obs = torch.where(ended > 0, 0.0, batch.next_obs)
            return torch.cat([batch.obs, alive, next_obs, ended], dim=-1)
        return torch.cat([batch.obs, alive], dim=-1)

    def absorbing(self, like: Tensor) -> Tensor:
        """Return the absorbing state's own transition, one row per run, (R, 1, input)."""
        row = torch.zeros_like(like[:, :1])
        row[..., self.spec.obs] = 1.0
        if self.spec.mode == "state-state":
            row[..., -1] = 1.0
        return row

    def pair(self, agent: Batch, expert: Batch) -> tuple[Tensor, Tensor]:
        """Return the inputs that D is trained on: agent's and expert's, (R, B, input) each."""
        return self._learned(agent, "coin_a"), self._learned(expert, "coin_e")

    def _learned(self, batch: Batch, coin: str) -> Tensor:
        x = self.inputs(batch)
        if not self.config.absorbing:
            return x
        swap = (batch.terminated > 0) & (self.noise[coin] < 0.5)
        return torch.where(swap[..., None], self.absorbing(x), x)

    def penalty(self, x_agent: Tensor, x_expert: Tensor) -> Tensor:
        """Return the weighted gradient penalty on D, (R,)."""
        slope = gradient_penalty(
            self.net, x_expert, x_agent, self.noise["epsilon"], self.config.one_sided
        )
        self.metrics["gradient_penalty"] = slope.detach()
        return self.config.penalty * slope

    def value(self, x: Tensor) -> Tensor:
        """Return the reward of inputs x (R, B, input), (R, B)."""
        raise NotImplementedError

    @torch.no_grad()
    def score(self, batch: Batch) -> Tensor:
        return self.value(self.inputs(batch))

    @torch.no_grad()
    def reward(self, batch: Batch) -> Tensor:
        x = self.inputs(batch)
        reward = self.value(x)
        if self.config.absorbing:
            steps = self.spec.gamma / (1.0 - self.spec.gamma)  # the sum of all discounts
            reward = reward + batch.terminated * (steps * self.value(self.absorbing(x)))
        self.metrics["reward_std"] = reward.std(dim=1, correction=0)
        return reward
