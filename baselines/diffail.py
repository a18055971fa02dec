"""DiffAIL: a discriminator built from a diffusion model (Wang et al., AAAI 2024).

A net predicts the noise eps that was mixed into a transition x at a random diffusion step t, one of
T = 10. The error of this prediction tells expert transitions (label 1) from agent transitions
(label 0). The loss and the reward are different functions of the error (mean_d is the mean over x's
dimensions):

    x_t = sqrt(abar_t) x + sqrt(1 - abar_t) eps,    e_t = eps_hat(x_t, t) - eps
    loss    D  = exp(-err), err = mean_d e_t^2, one t and one eps per row
            E_expert[-log D] + E_agent[-log(1 - D)] + 0.1 E[(|grad D| - 1)^2]
    reward  D' = mean over d and all t of exp(-e_t^2), elementwise: D' >= mean_t D

Reward: -log(1 - D') = R+ (form softplus), or log D' - log(1 - D') = R (form logit). Both are
high for transitions like the expert's.

Range: R+ lies in [0, 23.03] and R in [-23.03, 23.03], where 23.03 is -log 1e-10.

Deviations: LeakyReLU replaces Mish in the net and in the time embedding. The penalty needs a second
derivative, which is NaN for Mish on inputs near 100. LeakyReLU's slope is 0.05, the NGT paper's
value for all reward nets. On Hopper and Walker2d, the original standardises observations by the
demonstrations' statistics. On Hopper, its nets have width 256. The `diffail-official` method has
the original's widths and a slope of 0.2. On Hopper and Walker2d, it normalises observations by
running statistics of the agent's observations. Cross-entropies are exact: -log D = err and 1 - D =
-expm1(-err) >= 1e-10. The original clips log D at -100, so its gradient vanishes once err exceeds
about 100. At such errors, this code's penalty has no gradient either, since D is 0 in float32. An
input dimension with e^2 above 100 adds nothing to D'. If this holds for all dimensions, R+ is 0 and
R is -23.03. Inputs are not clamped. On raw Humanoid rows, with values up to 4500, err initially has
a median of 1.3 and a maximum of 39. These values are small because torch's default initialisation,
which the original also uses, starts near eps_hat = 0. With orthogonal initialisation, the median
would be 8 and the maximum 1200. In the loss, the expert, agent and interpolated rows with the same
index share their noise. For the reward, all steps t share one block of noise, whose rows are
shifted by t at step t. Each row thus gets different noise at each t, as in the original, but with a
tenth of the draws. The penalty's weight is 0.1 on every env (original: 0.5 on Hopper, 0.001 on
Walker2d). The state comes before the action in x; the original's opposite order is equivalent. The
original's agent uses a reward scale of 2 and an Adam beta1 of 0.25, and ignores terminals. This
code adopts none of these three choices.

Sources: Wang et al., "DiffAIL: Diffusion Adversarial Imitation Learning", AAAI 2024
(ML-Group-SDU/DiffAIL); lionelblonde/ngt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import Tensor

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import PackedMLP
from ngt.agent.streams import torch_generator
from ngt.penalty import gradient_penalty
from ngt.reward import Batch, Draw, RewardModel, Spec, opt


@dataclass(frozen=True)
class DiffAilConfig:
    """Settings of DiffAIL. Defaults are from the original code unless noted."""

    form: Literal["softplus", "logit"] = opt(
        "softplus", "form of the reward: softplus is R+, logit is R"
    )
    hidden: tuple[int, ...] = opt((128, 128, 128), "widths of the noise predictor", 1)
    frequencies: int = opt(8, "frequencies in the time embedding, a sine and a cosine for each", 1)
    activation: Literal["leaky_relu", "mish"] = opt(
        "leaky_relu", "activation; mish is the original's, but gives NaN on raw inputs"
    )
    leak: float = opt(0.05, "negative slope of LeakyReLU; the NGT paper's value for reward nets", 0)
    steps: int = opt(10, "number of diffusion steps T", 1)
    beta_first: float = opt(1e-4, "variance added by step 1; rises linearly to beta_last", 0, 1)
    beta_last: float = opt(2e-2, "variance added by the last step", 0, 1)
    lr: float = opt(3e-5, "Adam's learning rate; beta1 is 0.9", 0)
    penalty: float = opt(0.1, "weight of the two-sided gradient penalty; the DiffAIL paper's", 0)
    floor: float = opt(1e-10, "lower bound on D and 1 - D inside a logarithm", 1e-30, 1)


def signal_power(config: DiffAilConfig) -> Tensor:
    """Return abar, the share of x's variance left after each step, shape (T,), in float64."""
    beta = torch.linspace(config.beta_first, config.beta_last, config.steps, dtype=torch.float64)
    return (1.0 - beta).cumprod(0)


def waves(steps: int, frequencies: int) -> Tensor:
    """Return sines and cosines of t with periods from 2 pi to 2e4 pi, shape (T, 2 frequencies)."""
    ladder = torch.linspace(0.0, 1.0, frequencies, dtype=torch.float64)
    angle = torch.arange(steps, dtype=torch.float64)[:, None] * 10_000.0**-ladder
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class DiffAil(RewardModel):
    """The noise predictors of R runs."""

    Config = DiffAilConfig
    config: DiffAilConfig
    signal: Tensor  # (T,), sqrt(abar)
    spread: Tensor  # (T,), sqrt(1 - abar)
    waves: Tensor  # (T, 2 frequencies)
    index: Tensor  # (T,), 0 to T - 1

    def __init__(self, config: DiffAilConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        width = 2 * config.frequencies
        self.net = self._net("net", [spec.input + width, *config.hidden, spec.input])
        self.time_net = self._net("time", [width, 2 * width, width])
        power, dtype = signal_power(config), torch.get_default_dtype()
        for name, value in (
            ("signal", power.sqrt()),
            ("spread", (1.0 - power).sqrt()),
            ("waves", waves(config.steps, config.frequencies)),
        ):
            self.register_buffer(name, value.to(dtype), persistent=False)
        self.register_buffer("index", torch.arange(config.steps), persistent=False)
        self.learn_with(config.lr)

    def _net(self, name: str, sizes: Sequence[int]) -> PackedMLP:
        return PackedMLP(
            sizes,
            [torch_generator(seed, "init", name) for seed in self.spec.seeds],
            activation=F.mish if self.config.activation == "mish" else Rectifier(self.config.leak),
            init="uniform",  # as in the original: eps_hat starts near 0, D near 1 / e
        )

    def draws(self) -> dict[str, Draw]:
        batch, width = self.spec.batch, self.spec.input
        return {
            "loss_t": Draw("index", (3, batch)),  # expert, agent, interpolate
            "epsilon": Draw("uniform", (batch,)),
            "loss_noise": Draw("normal", (batch, width)),
            "reward_noise": Draw("normal", (batch, width)),
        }

    def error(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Return eps_hat - eps at steps t (R, B). x, noise and result have shape (R, B, input)."""
        embedded = self.time_net(self.waves.expand(x.shape[0], -1, -1))
        # `embedded[:, t]` is avoided, since a GPU sums the gradient of indexing in no fixed order.
        at = (t[..., None] == self.index).to(x.dtype) @ embedded
        x_t = self.signal[t][..., None] * x + self.spread[t][..., None] * noise
        return self.net(torch.cat([x_t, at], dim=-1)) - noise

    def mean_error(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Return -log D, the squared error averaged over x's dimensions, shape (R, B)."""
        return self.error(x, t, noise).square().mean(dim=-1)

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return the expert's and the agent's cross-entropy plus the penalty, shape (R,)."""
        x_agent, x_expert = self.inputs(agent), self.inputs(expert)
        noise, t = self.noise["loss_noise"], self.noise["loss_t"] % self.config.steps
        error = self.mean_error(  # one pass for both batches
            torch.cat([x_expert, x_agent], dim=1),
            rearrange(t[:, :2], "runs sides batch -> runs (sides batch)"),
            repeat(noise, "runs batch dims -> runs (sides batch) dims", sides=2),
        )
        on_expert, on_agent = error.chunk(2, dim=1)
        rest = -torch.expm1(-on_agent)  # 1 - D
        entropy = on_expert.mean(dim=1) - rest.clamp(min=self.config.floor).log().mean(dim=1)
        slope = gradient_penalty(
            lambda x: torch.exp(-self.mean_error(x, t[:, 2], noise)),
            x_expert,
            x_agent,
            self.noise["epsilon"],
        )
        self.metrics |= {
            "d_expert": torch.exp(-on_expert.detach()).mean(dim=1),
            "d_agent": 1.0 - rest.detach().mean(dim=1),
            "cross_entropy": entropy.detach(),
            "gradient_penalty": slope.detach(),
        }
        return entropy + self.config.penalty * slope

    def value(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return the rewards (R, B) of inputs x (R, B, input) with noise (R, T, B, input)."""
        runs, batch, _ = x.shape
        error = self.error(  # one pass for all steps t
            repeat(x, "runs batch dims -> runs (steps batch) dims", steps=self.config.steps),
            repeat(self.index, "steps -> runs (steps batch)", runs=runs, batch=batch),
            rearrange(noise, "runs steps batch dims -> runs (steps batch) dims"),
        )
        square = error.square().view(noise.shape)
        rest = -torch.expm1(-square).mean(dim=(1, 3))  # 1 - D', exact even if D' is near 1
        value = -rest.clamp(min=self.config.floor).log()
        if self.config.form == "logit":
            value = value + (-square).exp().mean(dim=(1, 3)).clamp(min=self.config.floor).log()
        return value

    def noise_by_step(self) -> Tensor:
        """Return the reward's noise, which differs by row and step t, shape (R, T, B, input)."""
        noise = self.noise["reward_noise"]
        return torch.stack([noise.roll(t, dims=1) for t in range(self.config.steps)], dim=1)

    @torch.no_grad()
    def score(self, batch: Batch) -> Tensor:
        return self.value(self.inputs(batch), self.noise_by_step())

    @torch.no_grad()
    def reward(self, batch: Batch) -> Tensor:
        reward = self.score(batch)
        self.metrics["reward_std"] = reward.std(dim=1, correction=0)
        return reward
