"""Common parts of the adversarial methods: a net, its gradient penalty, absorbing states.

Each run trains its own net D to tell expert from agent transitions. A method's `loss` says how, and
its `value` gives the reward. The nets are the paper's reward nets without spectral norm, which
would conflict with the two-sided penalty: spectral norm caps the slope at 1, and the penalty pulls
it up to 1. `spectral_norm` adds it, and `penalty: 0` leaves the penalty out, together with its draw
and its pass through the net. The slope is per unit of input. A coordinate of large scale therefore
dominates D unless observations are normalised.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import PackedMLP
from ngt.errors import UserError
from ngt.penalty import gradient_penalty
from ngt.reward import Batch, Draw, RewardModel, Spec, opt
from ngt.seeding import torch_generator

POWER_ITERATIONS = 3  # of spectral norm in an update


@dataclass(frozen=True)
class AdversarialConfig:
    """Settings of a method with a discriminator or critic. Values: the paper's, unless noted."""

    hidden: tuple[int, ...] = opt((256, 256), "widths of the net", 1)
    leak: float = opt(0.05, "slope of LeakyReLU below zero", 0)
    lr: float = opt(1e-3, "Adam", 0)
    penalty: float = opt(10.0, "weight of the gradient penalty; 0: none is computed", 0)
    one_sided: bool = opt(False, "penalise slopes above 1 only; WGAN-GP penalises both")
    spectral_norm: bool = opt(False, "on every layer of the net, as in NGT's predictor")
    absorbing: bool = opt(
        False, "learn a reward for having ended, as DAC does; the paper is silent"
    )


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
            spectral_norm=config.spectral_norm,
        )
        self.learn_with(config.lr)

    def draws(self) -> dict[str, Draw]:
        draws = {"epsilon": Draw("uniform", (self.spec.batch,))} if self.config.penalty else {}
        if self.config.absorbing:
            draws |= {name: Draw("uniform", (self.spec.batch,)) for name in ("coin_e", "coin_a")}
        return draws

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

    def update(self, agent: Batch, expert: Batch) -> None:
        """Take the power iterations of spectral norm, if it is on, then one step down the loss."""
        self.net.power_iteration(POWER_ITERATIONS)
        super().update(agent, expert)

    def penalty(self, x_agent: Tensor, x_expert: Tensor) -> Tensor | float:
        """Return the weighted gradient penalty, (R,); none is computed if its weight is 0."""
        if not self.config.penalty:
            return 0.0
        slope = self.slope(x_agent, x_expert)
        self.metrics["gradient_penalty"] = slope.detach()
        return self.config.penalty * slope

    def slope(self, x_agent: Tensor, x_expert: Tensor) -> Tensor:
        """Return the gradient penalty on D, (R,)."""
        epsilon = self.noise["epsilon"]
        return gradient_penalty(self.net, x_expert, x_agent, epsilon, self.config.one_sided)

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
