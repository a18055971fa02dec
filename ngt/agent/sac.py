"""Soft actor-critic (SAC): its losses, and the agents of R runs with packed nets.

Let alpha be the temperature, Q the twin critics and Q' their slowly moving targets:

    y        = r + gamma (1 - terminated) (min Q'(s', a') - alpha log pi(a'|s')),   a' ~ pi(.|s')
    critic   = 1/2 E[(Q1(s, a) - y)^2] + 1/2 E[(Q2(s, a) - y)^2]
    actor    = E[alpha log pi(a|s) - min Q(s, a)],   a ~ pi(.|s)
    alpha    = -E[alpha (log pi(a|s) + target entropy)]
    target   : Q' <- (1 - tau) Q' + tau Q

All losses are minimised. Each loss has one value per run, shape (R,). With `alpha_loss: log_alpha`,
the first alpha in the loss of alpha is replaced by log alpha, as in most public code.

Actions lie in [-1, 1], and log pi is the log density of this squashed action, before the action is
scaled to the env's bounds. Let |A| be the number of action dimensions, and let b be half the width
of the bounds. The target entropy -|A| applies to the action in the env's own units. Scaling by b
adds |A| log b to the entropy. The target for the squashed action is therefore -|A| - |A| log b.
With `entropy_units: tanh`, the target for the squashed action is -|A|. In y, log pi always refers
to the squashed action. If log pi referred to the action in the env's units, y would differ by a
constant, alpha |A| log b per step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import Tensor, nn
from torch.optim import Optimizer

from ngt.agent.gradients import Squashed, actor_gradients, critic_gradients, policies, served
from ngt.agent.nets import ACTIVATIONS, PackedMLP
from ngt.agent.optim import adam, clipped_step_, descend, step_
from ngt.agent.streams import Draw, torch_generator
from ngt.experience.replay import Batch

if TYPE_CHECKING:
    from ngt.settings.config import SacConfig

ROWS = 32  # a tensor with a multiple of 32 rows fills whole vector registers, for any width


def mlp(
    sizes: Sequence[int], config: SacConfig, name: str, seeds: Sequence[int], twins: int = 1
) -> PackedMLP:
    """Return one of the agent's nets with the configured activation, head gain and layer norm."""
    return PackedMLP(
        sizes,
        [torch_generator(seed, "init", name) for seed in seeds],
        twins=twins,
        activation=ACTIVATIONS[config.activation],
        head_gain=config.head_gain,
        layer_norm=config.layer_norm,
    )


class Actor(nn.Module):
    """A tanh-Gaussian policy: obs (R, B, obs) -> mean and log-std, each (R, B, act).

    A tanh squashes the log-std into [log_std_min, log_std_max].
    """

    def __init__(self, obs: int, act: int, config: SacConfig, seeds: Sequence[int]) -> None:
        super().__init__()
        self.net = mlp([obs, *config.hidden, 2 * act], config, "actor", seeds)
        self.log_std_min, self.log_std_max = config.log_std_min, config.log_std_max

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = self.net(obs).chunk(2, dim=-1)
        half = 0.5 * (self.log_std_max - self.log_std_min)
        return mean, self.log_std_min + half * (torch.tanh(raw) + 1.0)


class Critic(nn.Module):
    """One or two Q functions (twins) in one net: obs, action (R, B, ·) -> values (R, twins, B)."""

    def __init__(self, obs: int, act: int, config: SacConfig, seeds: Sequence[int]) -> None:
        super().__init__()
        self.twins = config.critics
        sizes = [obs + act, *config.hidden, 1]
        self.net = mlp(sizes, config, "critic", seeds, twins=self.twins)

    def forward(self, obs: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        x = torch.cat([obs, action], dim=-1)
        both = repeat(x, "runs batch dims -> (runs twins) batch dims", twins=self.twins)
        values = self.net(both, frozen)
        return rearrange(values, "(runs twins) batch 1 -> runs twins batch", twins=self.twins)


def squashed_gaussian(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return the action tanh(u), (R, B, act), for u = mean + std noise, and its log pi, (R, B).

    log pi(tanh u) = sum over dims of log N(u) - log(1 - tanh(u)^2). The second term is computed as
    2 (log 2 - u - softplus(-2u)), which is exact even if the action saturates.
    """
    pre_tanh = mean + log_std.exp() * noise
    correction = 2.0 * (math.log(2.0) - pre_tanh - F.softplus(-2.0 * pre_tanh))
    log_normal = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
    return torch.tanh(pre_tanh), (log_normal - correction).sum(-1)


def critic_loss(
    critic: Critic,
    target: Critic,
    actor: Actor,
    alpha: Tensor,
    batch: Batch,
    reward: Tensor,
    noise: Tensor,
    gamma: float,
) -> Tensor:
    """Return 1/2 E[(Q1 - y)^2] + 1/2 E[(Q2 - y)^2] over the batch, shape (R,).

    Here, y is the soft Bellman target, which has no gradient. It includes the value of the next
    state unless the episode terminated; truncation is not termination. Shapes: alpha (R,), reward
    (R, B), noise (R, B, act).
    """
    with torch.no_grad():
        mean, log_std = actor(batch.next_obs)
        next_action, next_log_prob = squashed_gaussian(mean, log_std, noise)
        next_value = target(batch.next_obs, next_action).min(dim=1).values
        soft_value = next_value - alpha[:, None] * next_log_prob
        bellman = reward + gamma * (1.0 - batch.terminated) * soft_value
    error = critic(batch.obs, batch.action) - bellman.unsqueeze(1)
    return 0.5 * error.square().mean(dim=2).sum(dim=1)


def actor_loss(
    actor: Actor, critic: Critic, alpha: Tensor, obs: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """Return E[alpha log pi - min Q] over the batch, (R,), and each row's log pi, (R, B)."""
    mean, log_std = actor(obs)
    action, log_prob = squashed_gaussian(mean, log_std, noise)
    value = critic(obs, action, frozen=True).min(dim=1).values
    return (alpha[:, None] * log_prob - value).mean(dim=1), log_prob


def temperature_loss(weight: Tensor, log_prob: Tensor, target_entropy: float) -> Tensor:
    """Return -weight E[log pi + target entropy], (R,).

    weight: alpha or log alpha, (R,).
    """
    return -weight * (log_prob.detach().mean(dim=1) + target_entropy)


@torch.no_grad()
def polyak_(target: nn.Module, online: nn.Module, tau: float) -> None:
    """Move the target: target <- (1 - tau) target + tau online, in place."""
    torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), tau)


def target_entropy(act: int, config: SacConfig, half_range: float) -> float:
    """Return the target entropy of an action in [-1, 1] with `act` dimensions.

    half_range: half the width of the env's action bounds.
    """
    target = -config.target_entropy_scale * act
    return target - act * math.log(half_range) if config.entropy_units == "env" else target


class Sac(nn.Module):
    """The SAC agents of R runs.

    half_range: half the width of the env's action bounds, which the target entropy depends on.
    """

    def __init__(
        self,
        obs: int,
        act: int,
        config: SacConfig,
        seeds: Sequence[int],
        half_range: float = 1.0,
    ) -> None:
        super().__init__()
        self.config = config
        self.target_entropy = target_entropy(act, config, half_range)
        self.actor = Actor(obs, act, config, seeds)
        self.critic = Critic(obs, act, config, seeds)
        self.target = Critic(obs, act, config, seeds)
        self.target.load_state_dict(self.critic.state_dict())
        self.target.requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.full((len(seeds),), math.log(config.alpha)))
        self.optimisers = {
            "actor": adam(self.actor.parameters(), config.lr_actor),
            "critic": adam(self.critic.parameters(), config.lr_critic),
            "alpha": adam([self.log_alpha], config.lr_alpha),
        }

    @staticmethod
    def draws(batch: int, act: int) -> dict[str, Draw]:
        """Return the kinds and shapes of the random tensors that one update of a run consumes."""
        return {"next_noise": Draw("normal", (batch, act)), "noise": Draw("normal", (batch, act))}

    @staticmethod
    def exploration(envs: int, act: int) -> dict[str, Draw]:
        """Return the kinds and shapes of the random tensors for one action in each env of a run."""
        shape = (envs, act)
        return {"explore": Draw("normal", shape), "uniform": Draw("uniform", shape)}

    @torch.no_grad()
    def act(self, obs: Tensor, noise: Tensor) -> Tensor:
        """Return actions (R, n, act) in [-1, 1], given obs (R, n, obs) and noise (R, n, act)."""
        mean, log_std = self.actor(fill_rows(obs))
        pre_tanh = mean + log_std.exp() * fill_rows(noise)
        return torch.tanh(pre_tanh)[:, : obs.shape[1]]

    def temperature(self) -> Tensor:
        """Return alpha (R,), i.e. the exponential or the softplus of the learned parameter."""
        softplus = self.config.alpha_form == "softplus"
        return F.softplus(self.log_alpha) if softplus else self.log_alpha.exp()

    def temperature_weight(self) -> Tensor:
        """Return the weight of the temperature's loss, (R,), which is alpha or its logarithm."""
        if self.config.alpha_loss == "alpha":
            return self.temperature()
        exact = self.config.alpha_form == "exp"
        return self.log_alpha if exact else self.temperature().log()

    def soft_value(self, obs: Tensor, noise: Tensor, target: bool = False) -> Tensor:
        """Return V(s) = min Q(s, a) - alpha log pi(a|s) with a ~ pi(.|s), shape (R, B).

        The gradient of V(s) passes through Q only.

        target: use Q' instead of Q. V(s) then has no gradient.
        """
        with torch.no_grad():
            mean, log_std = self.actor(obs)
            action, log_prob = squashed_gaussian(mean, log_std, noise)
            cost = self.temperature()[:, None] * log_prob
        critic = self.target if target else self.critic
        return critic(obs, action).min(dim=1).values - cost

    def descend_critic(self, loss: Tensor, *further: Optimizer) -> None:
        """Lower a loss (R,) by one step of the critic's optimiser and any `further` optimisers."""
        descend(self.optimisers["critic"], loss, self.config.critic_grad_clip, further)

    def _by_hand(self, obs: Tensor) -> bool:
        nets = (self.actor.net, self.critic.net)
        return self.config.critics == 2 and all(served(net, obs) for net in nets)

    def update(
        self, batch: Batch, reward: Tensor, draws: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Update the critic, actor, temperature and target once; return detached metrics (R,).

        reward: the rewards (R, B) to use instead of the batch's rewards.
        """
        alpha, gamma = self.temperature().detach(), self.config.gamma
        noises = draws["next_noise"], draws["noise"]
        if self._by_hand(batch.obs):
            after, now = policies(self.actor, (batch.next_obs, batch.obs), noises)
            loss = critic_gradients(self.critic, self.target, after, alpha, batch, reward, gamma)
            clipped_step_(self.optimisers["critic"], self.config.critic_grad_clip)
            return {"critic_loss": loss, **self._follow(batch.obs, noises[1], now)}
        nets = (self.critic, self.target, self.actor)
        loss = critic_loss(*nets, alpha, batch, reward, noises[0], gamma)
        self.descend_critic(loss)
        return {"critic_loss": loss.detach(), **self._follow(batch.obs, noises[1], None)}

    def follow(self, obs: Tensor, noise: Tensor) -> dict[str, Tensor]:
        """Update the actor, temperature and target after a step of the critic; return metrics.

        Shapes: obs (R, B, obs), noise (R, B, act).
        """
        by_hand = self._by_hand(obs)
        return self._follow(obs, noise, Squashed.of(self.actor, obs, noise) if by_hand else None)

    def _follow(self, obs: Tensor, noise: Tensor, policy: Squashed | None) -> dict[str, Tensor]:
        """Do what `follow` does. policy: the policy on `obs`, to compute gradients by hand."""
        alpha, optimiser = self.temperature().detach(), self.optimisers["actor"]
        if policy is not None:
            loss, log_prob = actor_gradients(self.actor, self.critic, policy, alpha, obs)
            clipped_step_(optimiser, self.config.actor_grad_clip)
        else:
            loss, log_prob = actor_loss(self.actor, self.critic, alpha, obs, noise)
            descend(optimiser, loss, self.config.actor_grad_clip)

        log_prob = log_prob.detach()
        if self.config.learn_alpha:
            self._update_temperature(alpha, log_prob)
        polyak_(self.target, self.critic, self.config.tau)
        return {
            "actor_loss": loss.detach(),
            "alpha": alpha,
            "entropy": -log_prob.mean(dim=1),
        }

    def _update_temperature(self, alpha: Tensor, log_prob: Tensor) -> None:
        """Lower `temperature_loss` by one step, given alpha (R,) and each row's log pi (R, B)."""
        optimiser, config, target = self.optimisers["alpha"], self.config, self.target_entropy
        if config.alpha_form == "exp":  # by hand, since d alpha / d log alpha = alpha
            slope = -(log_prob.mean(dim=1) + target)
            self.log_alpha.grad = slope * alpha if config.alpha_loss == "alpha" else slope
            step_(optimiser)
        else:
            descend(optimiser, temperature_loss(self.temperature_weight(), log_prob, target))


def fill_rows(x: Tensor) -> Tensor:
    """Pad x (R, n, d) with rows of zeros until n is a multiple of ROWS.

    The kernels of exp and tanh round a tensor's last elements differently if these elements do not
    fill a vector register. Padding prevents this, so a run's actions are the same whether the run
    trains alone or together with other runs.
    """
    return F.pad(x, (0, 0, 0, -x.shape[1] % ROWS))
