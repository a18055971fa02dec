"""Common parts of the adversarial methods: the net D, its gradient penalty and absorbing states.

Each run trains its own net D to tell expert transitions from agent transitions. A method's `loss`
defines the training objective, and its `value` defines the reward. D is the NGT paper's reward net
without spectral norm. Spectral norm would cap the slope of D at 1, which conflicts with the
two-sided penalty, since this penalty pulls the slope up to 1. The `spectral_norm` setting turns
spectral norm on. With `penalty: 0`, neither the penalty nor its random points are computed. The
penalised slope is per unit of input, so an input coordinate with large values dominates D unless
observations are normalised.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import PackedMLP
from ngt.agent.streams import torch_generator
from ngt.errors import UserError
from ngt.penalty import gradient_penalty
from ngt.reward import Batch, Draw, RewardModel, Spec, opt

POWER_ITERATIONS = 3  # power iterations of spectral norm per update


@dataclass(frozen=True)
class AdversarialConfig:
    """Settings of a method with a net D. Defaults are from the NGT paper unless noted."""

    hidden: tuple[int, ...] = opt((256, 256), "widths of the net", 1)
    leak: float = opt(0.05, "slope of LeakyReLU below zero", 0)
    lr: float = opt(1e-3, "Adam's learning rate", 0)
    penalty: float = opt(10.0, "weight of the gradient penalty; 0 skips its computation", 0)
    one_sided: bool = opt(False, "penalise only slopes above 1; WGAN-GP also penalises those below")
    spectral_norm: bool = opt(
        False, "apply spectral norm to every layer of the net, as in NGT's predictor"
    )
    absorbing: bool = opt(
        False, "learn a reward for the state after the end, as DAC does; not in the paper"
    )


class Adversarial(RewardModel):
    """The nets D of R runs. Subclasses define `loss` and `value`.

    With absorbing states (Kostrikov et al., 2019), each observation has an additional coordinate,
    the flag. The absorbing state follows the end of an episode. In this state, the flag is 1 and
    all other coordinates are 0.

    In D's batches, a fair coin decides whether a terminated transition is kept or is replaced by
    the absorbing state's transition to itself. Each of these two transitions thus has half the
    weight of any other row, both for the expert and for the agent. These weights change the ratio
    between the expert's and the agent's density only by a constant factor. The reward of a
    terminated transition includes the absorbing state's value, which is gamma / (1 - gamma) times
    the absorbing state's reward. Bootstrapping through the absorbing state forever would give the
    same value. Subsampling keeps one in `rate` transitions of the demonstrations, so D sees on
    average only one in `rate` of the demonstrations' terminations.
    """

    Config = AdversarialConfig
    config: AdversarialConfig

    def __init__(self, config: AdversarialConfig, spec: Spec, outputs: int = 1) -> None:
        super().__init__(config, spec)
        if config.absorbing and spec.gamma >= 1.0:
            raise UserError(
                "params.absorbing: the absorbing state has no finite value at sac.gamma 1; "
                "lower sac.gamma or set params.absorbing to false"
            )
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
        """Return D's inputs, shape (R, B, input), with the flags if `absorbing` is set."""
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
        """Return each run's transition from the absorbing state to itself, shape (R, 1, input)."""
        row = torch.zeros_like(like[:, :1])
        row[..., self.spec.obs] = 1.0
        if self.spec.mode == "state-state":
            row[..., -1] = 1.0
        return row

    def pair(self, agent: Batch, expert: Batch) -> tuple[Tensor, Tensor]:
        """Return D's training inputs from the agent and from the expert, each (R, B, input)."""
        return self._learned(agent, "coin_a"), self._learned(expert, "coin_e")

    def _learned(self, batch: Batch, coin: str) -> Tensor:
        x = self.inputs(batch)
        if not self.config.absorbing:
            return x
        swap = (batch.terminated > 0) & (self.noise[coin] < 0.5)
        return torch.where(swap[..., None], self.absorbing(x), x)

    def update(self, agent: Batch, expert: Batch) -> None:
        """Run the power iterations of spectral norm, if enabled, then take a gradient step."""
        self.net.power_iteration(POWER_ITERATIONS)
        super().update(agent, expert)

    def penalty(self, x_agent: Tensor, x_expert: Tensor) -> Tensor | float:
        """Return the gradient penalty times its weight, shape (R,), or 0.0 if the weight is 0."""
        if not self.config.penalty:
            return 0.0
        slope = self.slope(x_agent, x_expert)
        self.metrics["gradient_penalty"] = slope.detach()
        return self.config.penalty * slope

    def slope(self, x_agent: Tensor, x_expert: Tensor) -> Tensor:
        """Return D's gradient penalty without the penalty's weight, shape (R,)."""
        epsilon = self.noise["epsilon"]
        return gradient_penalty(self.net, x_expert, x_agent, epsilon, self.config.one_sided)

    def value(self, x: Tensor) -> Tensor:
        """Return the rewards, shape (R, B), for inputs x, shape (R, B, input)."""
        raise NotImplementedError

    @torch.no_grad()
    def score(self, batch: Batch) -> Tensor:
        return self.value(self.inputs(batch))

    @torch.no_grad()
    def reward(self, batch: Batch) -> Tensor:
        x = self.inputs(batch)
        reward = self.value(x)
        if self.config.absorbing:
            steps = self.spec.gamma / (1.0 - self.spec.gamma)  # sum of gamma^k over k >= 1
            reward = reward + batch.terminated * (steps * self.value(self.absorbing(x)))
        self.metrics["reward_std"] = reward.std(dim=1, correction=0)
        return reward
