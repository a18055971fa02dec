"""The gradients of SAC's losses, derived by hand, without an autograd graph.

`critic_gradients` and `actor_gradients` return the values of `critic_loss` and `actor_loss` in
ngt/agent/sac.py and leave those losses' gradients in the parameters. The losses stay the
definition: the tests compare the two in float64. Working without a graph saves the time that
autograd and its copies take. Each run goes through the whole loss before the next run does. Its
activations therefore stay in the cache, and its numbers are the same alone and in a pack.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ngt.agent.kernels import ONEDNN, Rectifier, backward, forward
from ngt.agent.nets import PackedMLP
from ngt.experience.replay import Batch

if TYPE_CHECKING:
    from ngt.agent.sac import Actor, Critic


def served(net: PackedMLP, x: Tensor) -> bool:
    """Return True if gradients by hand exist for this net and are the faster ones for this input.

    Elsewhere autograd takes the gradients of the losses.
    """
    layers = isinstance(net.activation, Rectifier) and not net.norms
    return layers and ONEDNN and x.device.type == "cpu" and x.dtype == torch.float32


class Run(NamedTuple):
    """One run's part of a net, or one twin's: views of its parameters and of their gradients."""

    weights: list[Tensor]  # (in, out)
    biases: list[Tensor]  # (out,)
    grads: list[Tensor]  # of weights and biases in turn; empty if they are constants
    rectifier: Rectifier

    def forward(self, x: Tensor, kept: list[Tensor] | None = None) -> Tensor:
        """Return the outputs (B, out); append the inputs of every layer to `kept`."""
        return forward(x, self.weights, self.biases, self.rectifier, kept)

    def backward(self, g: Tensor, kept: list[Tensor]) -> None:
        """Write the gradients of the parameters, given that of the outputs."""
        needed = [False, *[True] * len(self.grads)]
        for i, part in backward(g, kept, self.weights, self.rectifier, needed):
            self.grads[i - 1].copy_(part)

    def of_input(self, g: Tensor, kept: list[Tensor], start: int) -> Tensor:
        """Return the gradient of the input's columns from `start` on, given the outputs'."""
        weights = [self.weights[0][start:], *self.weights[1:]]
        needed = [True, *[False] * (2 * len(weights))]
        ((_, part),) = backward(g, kept, weights, self.rectifier, needed)
        return part


def runs_of(net: PackedMLP, trained: bool = False) -> list[Run]:
    """Return the runs of a net, those of a twin net as run 0 twin 0, run 0 twin 1, and so on.

    trained: give the parameters gradients to be written.
    """
    assert isinstance(net.activation, Rectifier)
    weights = [layer.weight for layer in net.layers]
    biases = [layer.bias for layer in net.layers]
    grads: list[Tensor] = []
    if trained:
        for parameter in (p for pair in zip(weights, biases, strict=True) for p in pair):
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            grads.append(parameter.grad)
    parts = [_split(weights), _split(biases), _split(grads)]
    runs = len(parts[0][0])
    return [
        Run(
            [weight[run] for weight in parts[0]],
            [bias[run].squeeze(0) for bias in parts[1]],
            [grad[run] for grad in parts[2]],
            net.activation,
        )
        for run in range(runs)
    ]


def _split(tensors: Iterable[Tensor]) -> list[tuple[Tensor, ...]]:
    """Return each tensor's parts, one per run and twin."""
    return [tensor.flatten(0, -3).unbind() for tensor in tensors]


class Squashed(NamedTuple):
    """One run's squashed Gaussian policy at a batch of observations, (B, act) each but `log_prob`.

    The formulas are those of `Actor.forward` and `squashed_gaussian`.
    """

    action: Tensor
    log_prob: Tensor  # (B,)
    std: Tensor
    bent: Tensor  # tanh of the raw output for the log-std

    @staticmethod
    def of(out: Tensor, noise: Tensor, actor: Actor) -> Squashed:
        """Return the policy, given the net's outputs (B, 2 act)."""
        mean, raw = out.chunk(2, dim=-1)
        half = 0.5 * (actor.log_std_max - actor.log_std_min)
        bent = torch.tanh(raw)
        log_std = torch.add(actor.log_std_min + half, bent, alpha=half)
        std = log_std.exp()
        pre_tanh = torch.addcmul(mean, std, noise)
        # log pi = sum of 2 u + 2 softplus(-2 u) - noise^2 / 2 - log_std, plus a constant
        bits = torch.add(pre_tanh, F.softplus(-2.0 * pre_tanh)).mul_(2.0).sub_(log_std)
        constant = -noise.shape[-1] * (2.0 * math.log(2.0) + 0.5 * math.log(2.0 * math.pi))
        log_prob = torch.addcmul(bits, noise, noise, value=-0.5).sum(-1).add_(constant)
        return Squashed(torch.tanh(pre_tanh), log_prob, std, bent)

    def backward(self, of_action: Tensor, weight: Tensor, noise: Tensor, half: float) -> Tensor:
        """Return the gradient of the net's outputs, (B, 2 act).

        of_action: the gradient of the action. weight: that of each log-probability, a scalar.
        """
        # d action / d u = 1 - action^2, d log pi / d u = 2 action, d log pi / d log-std = -1 there
        of_u = of_action.addcmul(of_action * self.action, self.action, value=-1.0)
        of_u.addcmul_(self.action, 2.0 * weight)
        of_log_std = torch.mul(of_u, self.std).mul_(noise).sub_(weight)
        of_raw = of_log_std.addcmul_(of_log_std * self.bent, self.bent, value=-1.0).mul_(half)
        return torch.cat([of_u, of_raw], dim=-1)


@torch.no_grad()
def critic_gradients(
    critic: Critic,
    target: Critic,
    actor: Actor,
    alpha: Tensor,
    batch: Batch,
    reward: Tensor,
    noise: Tensor,
    gamma: float,
) -> Tensor:
    """Return `critic_loss` of the same arguments, (R,); write the gradients of the critic."""
    policies, critics = runs_of(actor.net), runs_of(critic.net, trained=True)
    targets, losses = runs_of(target.net), []
    scale = 1.0 / reward.shape[1]
    discount = gamma * (1.0 - batch.terminated)
    before = torch.cat([batch.obs, batch.action], dim=-1)
    for run, policy in enumerate(policies):
        twins = slice(2 * run, 2 * run + 2)
        obs = batch.next_obs[run].contiguous()
        next_ = Squashed.of(policy.forward(obs), noise[run], actor)
        x = torch.cat([obs, next_.action], dim=-1)
        first, second = (twin.forward(x) for twin in targets[twins])
        value = torch.minimum(first, second).squeeze(-1) - alpha[run] * next_.log_prob
        bellman = torch.addcmul(reward[run], discount[run], value).unsqueeze(-1)
        loss = torch.zeros_like(alpha[run])
        for twin in critics[twins]:
            kept: list[Tensor] = []
            error = twin.forward(before[run], kept).sub_(bellman)
            loss += error.square().sum()
            twin.backward(error.mul_(scale), kept)
        losses.append(loss.mul_(0.5 * scale))
    return torch.stack(losses)


@torch.no_grad()
def actor_gradients(
    actor: Actor, critic: Critic, alpha: Tensor, obs: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """Return `actor_loss` of the same arguments, (R,) and (R, B); write the actor's gradients."""
    policies, critics = runs_of(actor.net, trained=True), runs_of(critic.net)
    scale, half = 1.0 / obs.shape[1], 0.5 * (actor.log_std_max - actor.log_std_min)
    losses, log_probs = [], []
    for run, policy in enumerate(policies):
        seen, own = obs[run].contiguous(), noise[run]
        kept: list[Tensor] = []
        squashed = Squashed.of(policy.forward(seen, kept), own, actor)
        x = torch.cat([seen, squashed.action], dim=-1)
        passes: list[tuple[Run, list[Tensor], Tensor]] = []
        for twin in critics[2 * run : 2 * run + 2]:
            hidden: list[Tensor] = []
            passes.append((twin, hidden, twin.forward(x, hidden)))
        values = torch.cat([value for *_, value in passes], dim=-1)
        least, which = values.min(dim=-1, keepdim=True)
        of_values = torch.zeros_like(values).scatter_(-1, which, -scale)
        of_action = torch.zeros_like(squashed.action)
        for (twin, hidden, _), g in zip(passes, of_values.split(1, dim=-1), strict=True):
            of_action += twin.of_input(g.contiguous(), hidden, seen.shape[-1])
        of_log_prob = alpha[run] * scale
        policy.backward(squashed.backward(of_action, of_log_prob, own, half), kept)
        losses.append((alpha[run] * squashed.log_prob - least.squeeze(-1)).mean())
        log_probs.append(squashed.log_prob)
    return torch.stack(losses), torch.stack(log_probs)
