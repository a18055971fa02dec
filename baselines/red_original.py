"""Random Expert Distillation, RED (Wang et al., 2019), as in its authors' code.

Before the agent takes its first step, a predictor f is fitted to a frozen random prior f' on the
expert's transitions. Then the predictor is frozen as well. Each net has k outputs:

    loss   = E_expert[|f(x) - f'(x)|^2 / k]
    reward = exp(-temperature |f(x) - f'(x)|^2 / k)

The prior is deeper than the predictor. The fit takes 200 passes through the demonstrations in
batches of 32. Since both nets are then frozen, a reward depends only on the transition, and it is
computed when the env step is taken. If the config sets no `temperature`, each run uses the
temperature at which the mean error on the run's demonstrations gives a reward of 0.9. Wang et al.
choose the temperature so that most of the expert's rewards are close to 1.

Reward: exp(-temperature * squared error), which is high for transitions like the expert's.
Range: (0, 1]. Since the reward is positive, it rewards staying alive if episodes can end early.
Deviations: SAC replaces TRPO, with gamma 0.99 instead of 0.97. The policy is not pretrained; the
original pretrains it by behavioural cloning on HalfCheetah and Ant. Initial weights are orthogonal
with gain 1; the original uses Glorot initialisation. Inputs are raw, as in the original, even with
`normalise_obs`. Demonstrations are subsampled, so the fit takes fewer steps than in the original:
1400 for 200 transitions.
Traps: the temperature in the public code is 250 000 for Hopper, Walker2d and Ant, 25 000 for
HalfCheetah (with nets of width 20) and 2500 for Humanoid. These temperatures suit the public code's
initial weights and a fit on whole demonstrations. After this code's 1400 steps, the mean error on
four demonstrations is 2e-4 on Hopper and 0.015 on HalfCheetah. With the public code's temperatures,
no reward on the demonstrations would exceed 2e-4 on Hopper or 1e-30 on HalfCheetah. On the
transitions that subsampling leaves out, errors are 1.3 times as large as on the demonstrations. If
noise of std 0.3 is added to the actions, errors are 2 times as large on Hopper and 1.4 times as
large on HalfCheetah, so the reward hardly distinguishes such transitions from the demonstrations.
`epochs: 3600` gives as many steps as in the original. The errors on the demonstrations are then
1.2e-5 on Hopper and 0.0027 on HalfCheetah. On the transitions left out, the errors are 5 times as
large on Hopper and 3 times as large on HalfCheetah; with noise on the actions, they are 13 times
and 3 times as large. With the public code's temperatures, the mean reward on the demonstrations
would then be 0.12 on Hopper and 1e-7 on HalfCheetah. This mean exceeds the reward at the mean error
(0.05 on Hopper and 1e-29 on HalfCheetah), because the few transitions with the smallest errors
contribute most of the mean. Half of the rewards on HalfCheetah are below 1e-24.
`tests/baselines/test_red_original.py` repeats this fit on HalfCheetah.
Sources: Wang et al., "Random Expert Distillation: Imitation Learning via Expert Policy Support
Estimation", ICML 2019; RuohanW/RED. The public code has no installable package, so the tests
compare the reward and the fit with the formulas in float64.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import PackedMLP
from ngt.agent.optim import adam, descend
from ngt.agent.streams import torch_generator
from ngt.reward import Batch, RewardModel, Spec, opt

WORTH = 0.9  # reward at the mean error on the demonstrations, if `temperature` is null


@dataclass(frozen=True)
class RedOriginalConfig:
    """Settings of RED. Defaults are from the public code."""

    hidden: tuple[int, ...] = opt((128,), "widths of the predictor", 1)
    prior: tuple[int, ...] = opt((128, 128, 128, 128), "widths of the prior", 1)
    outputs: int = opt(128, "number k of outputs of each net", 1)
    leak: float = opt(0.2, "slope of LeakyReLU below zero", 0)
    temperature: float | None = opt(
        None, "factor of the squared error; null: the expert's mean error gives a reward of 0.9", 0
    )
    lr: float = opt(1e-3, "Adam's learning rate", 0)
    epochs: int = opt(200, "number of passes through the demonstrations", 1)
    batch: int = opt(32, "number of transitions per step of the fit", 1)


class RedOriginal(RewardModel):
    """The predictors and the priors of R runs. Rewards are computed in `observe`."""

    Config = RedOriginalConfig
    config: RedOriginalConfig
    learns = False

    def __init__(self, config: RedOriginalConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        self.predictor = self._net("predictor", config.hidden, spec.seeds)
        self.prior = self._net("prior", config.prior, spec.seeds)
        assert spec.demos is not None
        x, sizes = self.inputs(spec.demos.data).cpu(), spec.demos.size.flatten().tolist()
        temperature = torch.full((len(sizes), 1), config.temperature or 0.0)
        for run, seed in enumerate(spec.seeds):
            left = self._fit(run, seed, x[run : run + 1, : sizes[run]])
            if config.temperature is None:
                temperature[run] = -math.log(WORTH) / left.clamp(min=1e-12)
        self.temperature: Tensor
        self.register_buffer("temperature", temperature)
        self.requires_grad_(False)

    def _net(self, name: str, hidden: Sequence[int], seeds: Sequence[int]) -> PackedMLP:
        return PackedMLP(
            [self.spec.input, *hidden, self.config.outputs],
            [torch_generator(seed, "init", name) for seed in seeds],
            activation=Rectifier(self.config.leak),
        )

    def _fit(self, run: int, seed: int, x: Tensor) -> Tensor:
        """Fit one run's predictor to its demonstrations x (1, N, input); return the final error.

        Each run is fitted separately, so that its numbers are the same whether it is trained alone
        or with other runs.
        """
        c, order = self.config, torch_generator(seed, "init", "order")
        net = self._net("predictor", c.hidden, [seed])
        with torch.no_grad():
            target = self._net("prior", c.prior, [seed])(x)
        optimiser = adam(net.parameters(), c.lr)
        for _ in range(c.epochs):
            for rows in torch.randperm(x.shape[1], generator=order).split(c.batch):
                error = (net(x[:, rows]) - target[:, rows]).square()
                descend(optimiser, error.mean(dim=(1, 2)))
        with torch.no_grad():
            for ours, fitted in zip(self.predictor.parameters(), net.parameters(), strict=True):
                ours[run] = fitted[0]
            return (net(x) - target).square().mean()

    def error(self, x: Tensor) -> Tensor:
        """Return the nets' mean squared difference (R, B) at inputs x (R, B, input)."""
        error: Tensor = self.predictor(x) - self.prior(x)
        return error.square().mean(dim=-1)

    @torch.no_grad()
    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        return torch.exp(-self.temperature * self.error(self.inputs(transition)))

    def reward(self, batch: Batch) -> Tensor:
        """Return the stored rewards that `observe` computed."""
        return batch.reward
