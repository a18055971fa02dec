"""Random expert distillation as its authors' code has it, RED (Wang et al., 2019).

A predictor f is fitted to a frozen random prior f' on the expert's transitions, before the agent
takes its first step, and is then frozen. With k outputs:

    loss   = E_expert[|f(x) - f'(x)|^2 / k]
    reward = exp(-temperature |f(x) - f'(x)|^2 / k)

The prior is deeper than the predictor. The fit takes 200 passes through the demonstrations in
batches of 32. A reward thus depends on the transition alone: it is computed when the step is taken.

Reward: exp(-temperature * squared error); high is expert-like.
Range: (0, 1]; in practice 1 on what the demonstrations cover and 0 a little away from it. It
rewards staying alive if episodes can end early.
Deviations: SAC replaces TRPO, with gamma 0.99 instead of 0.97. The policy is not pretrained by
behavioural cloning, which the original does on HalfCheetah and Ant. Weights start orthogonal with
gain 1, instead of Glorot's; both keep the scale of the layers' outputs. Inputs are raw, as in the
original, even with `normalise_obs`. Demonstrations are subsampled, so the fit has fewer steps: 200
transitions give 1400.
Traps: the temperature is tuned by env, over three orders of magnitude: 250 000 for Hopper, Walker2d
and Ant, 25 000 for HalfCheetah, with nets 20 wide, and 2500 for Humanoid. It holds for the
original's initial weights and inputs. If it is too large every reward is 0, if too small every
reward is 1.
Sources: Wang et al., "Random Expert Distillation: Imitation Learning via Expert Policy Support
Estimation", ICML 2019; RuohanW/RED.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import PackedMLP
from ngt.agent.optim import adam, descend
from ngt.reward import Batch, RewardModel, Spec, opt
from ngt.seeding import torch_generator


@dataclass(frozen=True)
class RedOriginalConfig:
    """Settings of RED. Values are the public code's."""

    hidden: tuple[int, ...] = opt((128,), "widths of the predictor", 1)
    prior: tuple[int, ...] = opt((128, 128, 128, 128), "widths of the prior", 1)
    outputs: int = opt(128, "k, outputs of both nets", 1)
    leak: float = opt(0.2, "slope of LeakyReLU below zero", 0)
    temperature: float = opt(250_000.0, "factor of the squared error, tuned by env", 0)
    lr: float = opt(1e-3, "Adam", 0)
    epochs: int = opt(200, "passes through the demonstrations", 1)
    batch: int = opt(32, "transitions per step of the fit", 1)


class RedOriginal(RewardModel):
    """Predictor and prior of R runs; overrides `observe`."""

    Config = RedOriginalConfig
    config: RedOriginalConfig
    learns = False

    def __init__(self, config: RedOriginalConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        self.predictor = self._net("predictor", config.hidden, spec.seeds)
        self.prior = self._net("prior", config.prior, spec.seeds)
        assert spec.demos is not None
        x, sizes = self.inputs(spec.demos.data).cpu(), spec.demos.size.flatten().tolist()
        for run, seed in enumerate(spec.seeds):
            self._fit(run, seed, x[run : run + 1, : sizes[run]])
        self.requires_grad_(False)

    def _net(self, name: str, hidden: Sequence[int], seeds: Sequence[int]) -> PackedMLP:
        return PackedMLP(
            [self.spec.input, *hidden, self.config.outputs],
            [torch_generator(seed, "init", name) for seed in seeds],
            activation=Rectifier(self.config.leak),
        )

    def _fit(self, run: int, seed: int, x: Tensor) -> None:
        """Fit one run's predictor to its demonstrations x (1, N, input), apart from the others'."""
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

    def error(self, x: Tensor) -> Tensor:
        """Return the mean squared error between the nets at x (R, B, input), (R, B)."""
        error: Tensor = self.predictor(x) - self.prior(x)
        return error.square().mean(dim=-1)

    @torch.no_grad()
    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        return torch.exp(-self.config.temperature * self.error(self.inputs(transition)))

    def reward(self, batch: Batch) -> Tensor:
        """Return the rewards that `observe` gave, as stored."""
        return batch.reward
