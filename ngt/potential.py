"""Noise-Guided Transport: a potential learned against a frozen random prior.

A predictor f is trained to match a frozen, randomly initialised prior f'. The potential h(x) is the
pairing loss between the outputs of f and f' at a transition x. Training lowers h on expert data and
raises h on agent data (the paper's equation of L):

    loss = E_expert[h] - E_agent[h]        reward r = exp(-h), scaled to (r - P5) / (P95 - P5)

P5 and P95 are the 5th and 95th percentiles of r in the agent's minibatch. The authors' later public
code scales h by running percentiles instead (`scaling: ema_signed`). There, P5, P50 and P95 are
moving averages of the percentiles of h in earlier batches:

    u = (h - P50) / (P95 - P5)          reward = -sign(u) (exp|u| - 1), clamped to [-5, 5]

Reward: exp(-h), scaled by the percentiles of exp(-h) in the batch. A high reward means that the
transition is expert-like.
Range: exp(-h) lies in (0, 1]. The scaled reward is 0 at P5 and 1 at P95, unless P95 - P5 is below
the `gap_floor` setting, which then replaces P95 - P5. The scaled reward is not clipped, so it can
be any real number. With running percentiles, the reward lies in [-5, 5].
Deviations: HL-Gauss targets are squashed into the support by a plain tanh. Read literally, the
paper applies 5 tanh. Most targets would then lie outside the support, where a target has neither
mass nor gradient. The paper leaves five more choices open; this code decides them as follows. All
outputs except HL-Gauss targets are squashed by 5 tanh. h is the mean over outputs, or the sum for
MSE-softmax. With HL-Gauss, the reward uses the expert's sigma. Spectral norm is applied after the
orthogonal initialisation; in the opposite order, the initialisation would have no effect. Spectral
norm is applied to the prior only once.
Sources: Blondé, Candido Ramos and Kalousis, "Noise-Guided Transport: Imitation Learning from Random
Priors", ICML 2026; lionelblonde/ngt, the authors' code, which was published later and has different
settings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import Init, PackedMLP
from ngt.agent.streams import torch_generator
from ngt.penalty import gradient_penalty
from ngt.reward import Batch, Draw, RewardModel, Spec, opt

Side = Literal["expert", "agent"]
Scaling = Literal["percentile", "percentile_offset", "none", "ema_signed", "ema_linear"]

HLG_EPS = 1e-6  # added to the mass that normalises HL-Gauss targets, as in the paper's code


@dataclass(frozen=True)
class PotentialConfig:
    """The settings of NGT. Unless noted, defaults are those of the paper's table of defaults."""

    pairing: Literal["huber", "mse_softmax", "hl_gauss", "l1"] = opt(
        "huber", "loss between predictor and prior; the paper uses hl_gauss on Humanoid"
    )
    hidden: tuple[int, ...] = opt((256, 256), "widths of predictor and prior", 1)
    leak: float = opt(0.05, "slope of LeakyReLU below zero", 0)
    m: int = opt(32, "number of outputs of the embedding", 1)
    lr: float = opt(1e-3, "Adam's learning rate for the predictor", 0)
    spectral_norm: bool = opt(True, "apply spectral norm to every layer of both nets")
    power_iterations: int = opt(3, "power iterations of spectral norm per update", 1)
    init: Init = opt("orthogonal", "initialisation of the hidden layers")
    head_init: Init = opt("orthogonal", "initialisation of the output layers")
    penalty: float = opt(
        0.0, "weight of a two-sided gradient penalty on h; 0 skips its computation", 0
    )
    squash: bool = opt(True, "pass outputs through rescale * tanh")
    rescale: float = opt(5.0, "largest magnitude of a squashed output", 1e-8)
    hlg_target: Literal["tanh", "rescaled"] = opt(
        "tanh", "HL-Gauss targets: tanh lies inside the support, rescaled is rescale * tanh"
    )
    delta: float = opt(1.0, "threshold delta of the Huber loss", 1e-8)
    bins: int = opt(21, "number of HL-Gauss bins", 2)
    support: float = opt(1.0, "HL-Gauss support is [-support, support]", 1e-8)
    sigma_expert: float = opt(0.25, "HL-Gauss width on the expert side", 1e-8)
    sigma_agent: float = opt(0.05, "HL-Gauss width on the agent side", 1e-8)
    reward_sigma: Literal["expert", "agent"] = opt(
        "expert", "side whose HL-Gauss width the reward uses"
    )
    scaling: Scaling = opt(
        "percentile",
        "percentile: (r - P5)/gap; percentile_offset: r/gap - P5, which adds a survival bonus; "
        "none: r; with u from running percentiles, ema_signed: -sign(u)(exp|u| - 1), "
        "ema_linear: -u",
    )
    gap_floor: float = opt(1e-8, "lower bound on P95 - P5", 0)
    ema_rate: float = opt(1e-3, "weight of a new batch in the running percentiles", 0, 1)
    reward_clip: float = opt(5.0, "largest magnitude of a reward from running percentiles", 0)


class Potential(RewardModel):
    """The predictors f and frozen priors f' of R runs, and the potential h between f and f'."""

    Config = PotentialConfig
    config: PotentialConfig

    def __init__(self, config: PotentialConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        bins = config.bins if config.pairing == "hl_gauss" else 1
        self.predictor = self._net("predictor", config.m * bins, config.spectral_norm)
        self.prior = self._net("prior", config.m, spectral_norm=False)
        self.prior.freeze(normalise=config.spectral_norm)  # only once, since f' never changes
        edges = hl_gauss_edges(-config.support, config.support, config.bins)
        self.edges: Tensor
        self.register_buffer("edges", edges, persistent=False)
        if config.scaling.startswith("ema_"):
            self.ema: Tensor  # P5, P50, P95 of h, (R, 3); nan before the first batch
            self.register_buffer("ema", torch.full((len(spec.seeds), 3), torch.nan))
        self.learn_with(config.lr)

    def _net(self, name: str, out: int, spectral_norm: bool) -> PackedMLP:
        net = PackedMLP(
            [self.spec.input, *self.config.hidden, out],
            [torch_generator(seed, "init", name) for seed in self.spec.seeds],
            activation=Rectifier(self.config.leak),
            init=self.config.init,
            head_init=self.config.head_init,
            spectral_norm=spectral_norm,
        )
        with torch.no_grad():
            for layer in net.layers:  # biases start at zero, even if `uniform` has drawn them
                layer.bias.zero_()
        return net

    def potential(self, x: Tensor, side: Side) -> Tensor:
        """Return h(x) >= 0 for inputs x (R, B, input), shape (R, B).

        side: whether x is "expert" or "agent" data. HL-Gauss uses a different sigma for each side.
        The other pairing losses ignore `side`.
        """
        return self._pair(self.prediction(x), self.target(x), side)

    def prediction(self, x: Tensor) -> Tensor:
        """Return the squashed outputs of f, (R, B, m), or HL-Gauss logits, (R, B, bins * m)."""
        return self._squash(self.predictor(x), self.config.rescale)

    def target(self, x: Tensor) -> Tensor:
        """Return the squashed outputs of f', (R, B, m), without gradient."""
        with torch.no_grad():
            return self._target(x)

    def _target(self, x: Tensor) -> Tensor:
        """Return `target(x)` with its gradient in x, which the gradient penalty needs."""
        plain = self.config.pairing == "hl_gauss" and self.config.hlg_target == "tanh"
        return self._squash(self.prior(x), 1.0 if plain else self.config.rescale)

    def _squash(self, outputs: Tensor, scale: float) -> Tensor:
        return scale * torch.tanh(outputs) if self.config.squash else outputs

    def _pair(self, prediction: Tensor, target: Tensor, side: Side) -> Tensor:
        c = self.config
        if c.pairing == "huber":
            return huber(prediction, target, c.delta)
        if c.pairing == "mse_softmax":
            return mse_softmax(prediction, target)
        if c.pairing == "l1":
            return l1(prediction, target)
        sigma = c.sigma_expert if side == "expert" else c.sigma_agent
        return hl_gauss(prediction, hl_gauss_target(target, self.edges, sigma))

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return L = E_expert[h] - E_agent[h], plus the gradient penalty if it is on, shape (R,).

        Minimising this loss lowers h on expert data and raises h on agent data.
        """
        x_expert, x_agent = self.inputs(expert), self.inputs(agent)
        x = torch.cat([x_expert, x_agent], dim=1)  # one pass through the nets for both batches
        split = [x_expert.shape[1], x_agent.shape[1]]
        t_expert, t_agent = self.target(x).split(split, dim=1)
        p_expert, p_agent = self.prediction(x).split(split, dim=1)
        h_expert = self._pair(p_expert, t_expert, "expert").mean(dim=1)
        h_agent = self._pair(p_agent, t_agent, "agent").mean(dim=1)
        self.metrics["h_expert"] = h_expert.detach()
        self.metrics["h_agent"] = h_agent.detach()
        if self.config.pairing == "hl_gauss":  # targets outside the support have no gradient
            outside = torch.cat([t_expert, t_agent], dim=1).abs() > self.config.support
            self.metrics["hlg_outside"] = outside.float().mean(dim=(1, 2))
        loss = h_expert - h_agent
        return loss + self._penalty(x_agent, x_expert) if self.config.penalty else loss

    def draws(self) -> dict[str, Draw]:
        return {"epsilon": Draw("uniform", (self.spec.batch,))} if self.config.penalty else {}

    def _penalty(self, x_agent: Tensor, x_expert: Tensor) -> Tensor:
        """Return the weighted gradient penalty on h, (R,), computed with the reward's sigma."""
        side = self.config.reward_sigma
        slope = gradient_penalty(
            lambda x: self._pair(self.prediction(x), self._target(x), side),
            x_expert,
            x_agent,
            self.noise["epsilon"],
        )
        self.metrics["gradient_penalty"] = slope.detach()
        return self.config.penalty * slope

    def update(self, agent: Batch, expert: Batch) -> None:
        """Run the power iterations of spectral norm, then take one step to lower the loss L."""
        if self.config.spectral_norm:
            self.predictor.power_iteration(self.config.power_iterations)
        super().update(agent, expert)

    @torch.no_grad()
    def score(self, batch: Batch) -> Tensor:
        """Return the unscaled reward r = exp(-h) in (0, 1], shape (R, B)."""
        return torch.exp(-self.potential(self.inputs(batch), self.config.reward_sigma))

    @torch.no_grad()
    def reward(self, batch: Batch) -> Tensor:
        """Return the scaled reward, (R, B), and update the running percentiles, if any."""
        h = self.potential(self.inputs(batch), self.config.reward_sigma)
        raw = torch.exp(-h)
        if self.config.scaling.startswith("ema_"):
            scaled = self._scale_by_running_percentiles(h)
        else:
            scaled = scale_by_percentiles(raw, self.config.scaling, self.config.gap_floor)
        self.metrics["reward_raw"] = raw.mean(dim=1)
        self.metrics["reward_raw_std"] = raw.std(dim=1, correction=0)
        self.metrics["reward_max"] = scaled.amax(dim=1)
        return scaled

    def _scale_by_running_percentiles(self, h: Tensor) -> Tensor:
        """Return the clamped reward -sign(u) (exp|u| - 1) or -u for potentials h, shape (R, B).

        Here, u = (h - P50) / (P95 - P5), with running percentiles over the earlier batches. The
        running percentiles are then updated with the percentiles of h.
        """
        ordered = h.sort(dim=1).values
        now = torch.cat([quantile(ordered, rank) for rank in (0.05, 0.5, 0.95)], dim=1)
        ema = torch.where(self.ema.isnan(), now, self.ema)
        low, middle, high = ema.split(1, dim=1)
        u = (h - middle) / (high - low).clamp(min=self.config.gap_floor)
        self.ema.copy_(ema.lerp(now, self.config.ema_rate))
        if self.config.scaling == "ema_signed":
            u = u.sign() * torch.expm1(u.abs())
        return (-u).clamp(-self.config.reward_clip, self.config.reward_clip)


# ---------------------------------------------------------------- pairing losses


def huber(prediction: Tensor, target: Tensor, delta: float = 1.0) -> Tensor:
    """Return the Huber loss, averaged over the m outputs: (..., m) -> (...)."""
    return F.huber_loss(prediction, target, reduction="none", delta=delta).mean(dim=-1)


def l1(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the absolute difference, averaged over the m outputs: (..., m) -> (...)."""
    return (prediction - target).abs().mean(dim=-1)


def mse_softmax(prediction: Tensor, target: Tensor) -> Tensor:
    """Return |softmax(prediction) - softmax(target)|^2, summed over outputs: (..., m) -> (...)."""
    return (prediction.softmax(dim=-1) - target.softmax(dim=-1)).square().sum(dim=-1)


def hl_gauss_edges(low: float, high: float, bins: int) -> Tensor:
    """Return the N + 1 edges of N equally wide bins of [low, high], where N = `bins`."""
    return torch.linspace(low, high, bins + 1)


def hl_gauss_target(target: Tensor, edges: Tensor, sigma: float) -> Tensor:
    """Return the mass of a Gaussian around each target in each bin: (..., m) -> (..., N, m).

    Each mass is divided by the mass inside the support plus 1e-6 (in units of erf). A target's
    masses therefore sum to just under 1. The further a target lies outside the support, the smaller
    is the sum of its masses.
    """
    z = torch.erf((edges[:, None] - target.unsqueeze(-2)) / (math.sqrt(2.0) * sigma))
    mass = z[..., -1:, :] - z[..., :1, :] + HLG_EPS
    return (z[..., 1:, :] - z[..., :-1, :]) / mass


def hl_gauss(logits: Tensor, probs: Tensor) -> Tensor:
    """Return the cross-entropy over the N bins, averaged over the m outputs, shape (...).

    logits: shape (..., N * m), with the bin index outermost, as in the code in the paper.
    probs: the result of `hl_gauss_target`, shape (..., N, m).
    """
    log_q = rearrange(logits, "... (n m) -> ... n m", n=probs.shape[-2]).log_softmax(dim=-2)
    return -(probs * log_q).sum(dim=-2).mean(dim=-1)


# ---------------------------------------------------------------- percentiles


def quantile(values: Tensor, rank: float) -> Tensor:
    """Return the interpolated quantile of each sorted row: (R, B) -> (R, 1).

    rank: the quantile's rank in [0, 1], such as 0.05 for the 5th percentile.
    """
    at = rank * (values.shape[1] - 1)
    below, above = math.floor(at), math.ceil(at)
    return torch.lerp(values[:, below : below + 1], values[:, above : above + 1], at - below)


def scale_by_percentiles(raw: Tensor, scaling: str, floor: float) -> Tensor:
    """Scale each run's B rewards by their 5th and 95th percentiles, without clipping."""
    if scaling == "none":
        return raw
    ordered = raw.sort(dim=1).values  # torch.quantile would copy its ranks from the CPU to the GPU
    low, high = quantile(ordered, 0.05), quantile(ordered, 0.95)
    gap = (high - low).clamp(min=floor)
    return (raw - low) / gap if scaling == "percentile" else raw / gap - low
