"""The gradients of SAC's losses, computed with hand-derived formulas, without an autograd graph.

`critic_gradients` and `actor_gradients` return the values of `critic_loss` and `actor_loss` in
ngt/agent/sac.py and store the gradients of these losses in the parameters. The losses in
ngt/agent/sac.py remain the definition: tests compare their autograd gradients, in float64, with the
gradients of this module. Without a graph, no time is spent on autograd and on the copies that
autograd makes. The matrix products of a net are computed for one run after another. Activations
therefore stay in the cache, and a run's numbers are the same whether the run trains alone or in a
pack, i.e. together with other runs. An elementwise operation computes all runs in one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from ngt.agent.kernels import Rectifier, backward, by_onednn, forward
from ngt.agent.nets import PackedMLP
from ngt.experience.replay import Batch

if TYPE_CHECKING:
    from ngt.agent.sac import Actor, Critic


def served(net: PackedMLP, x: Tensor) -> bool:
    """Return True if this module can compute the gradients of this net for this input."""
    return isinstance(net.activation, Rectifier) and not net.norms and by_onednn(x)


class Run(NamedTuple):
    """One run's net in a packed net or, in a packed critic, one of the run's two critics.

    The two critics of a run are called its twins. The tensors, one per layer, are views of the
    packed net's tensors.
    """

    weights: list[Tensor]  # (in, out)
    columns: list[Tensor]  # (out, in), the transposed weights
    biases: list[Tensor]  # (out,)
    grads: list[Tensor]  # gradients of layer 0's weight and bias, layer 1's, and so on; or empty
    rectifier: Rectifier

    def forward(self, x: Tensor, kept: list[Tensor] | None = None) -> Tensor:
        """Return the outputs (B, out). If `kept` is given, append each layer's input to it."""
        return forward(x, self.columns, self.biases, self.rectifier, kept)

    def backward(self, g: Tensor, kept: list[Tensor]) -> None:
        """Store the gradients of the parameters, given the gradient g of the outputs."""
        backward(g, kept, self.weights, self.rectifier, self.grads)

    def of_input(self, g: Tensor, kept: list[Tensor], start: int) -> Tensor:
        """Return the gradient of the input's columns from `start` on.

        g: the gradient of the outputs.
        """
        weights = [self.weights[0][start:], *self.weights[1:]]
        part = backward(g, kept, weights, self.rectifier, [None] * (2 * len(weights)), True)
        assert part is not None
        return part


# For each net, the addresses of its parameters and gradients, and its parts.
PARTS: WeakKeyDictionary[PackedMLP, tuple[list[int], list[Run]]] = WeakKeyDictionary()


def runs_of(net: PackedMLP, trained: bool = False) -> list[Run]:
    """Return a net's parts: one for each run or, for twin nets, for each twin of each run.

    Parts are kept from one call to the next, and made anew if a parameter or a gradient has moved.

    trained: also allocate the gradients of the parameters, which `Run.backward` needs.
    """
    parameters = [p for layer in net.layers for p in (layer.weight, layer.bias)]
    if trained:
        for p in parameters:
            if p.grad is None:
                p.grad = torch.empty_like(p)
    grads = [p.grad for p in parameters if p.grad is not None]
    addresses = [tensor.data_ptr() for tensor in (*parameters, *grads)]
    known = PARTS.get(net)
    if known is None or known[0] != addresses:
        known = PARTS[net] = (addresses, _split(net, parameters, grads))
    return known[1]


def _split(net: PackedMLP, parameters: Sequence[Tensor], grads: Sequence[Tensor]) -> list[Run]:
    """Return the parts of a net, given its parameters and their gradients, if there are any."""
    assert isinstance(net.activation, Rectifier)
    weights, biases, slopes = (
        [tensor.detach().flatten(0, -3).unbind() for tensor in tensors]
        for tensors in (parameters[::2], parameters[1::2], grads)
    )
    return [
        Run(
            [weight[run] for weight in weights],
            [weight[run].mT for weight in weights],
            [bias[run].squeeze(0) for bias in biases],
            [slope[run] for slope in slopes],
            net.activation,
        )
        for run in range(len(weights[0]))
    ]


class Squashed(NamedTuple):
    """A squashed Gaussian policy, evaluated on batches of observations.

    Unless noted, fields have shape (R, B, act). The formulas are those of `Actor.forward` and
    `squashed_gaussian`.
    """

    noise: Tensor
    action: Tensor
    log_prob: Tensor  # (R, B)
    std: Tensor
    bent: Tensor  # tanh of the raw output for the log-std
    hidden: list[list[Tensor]]  # for each run, the inputs of the actor's layers

    @staticmethod
    @torch.no_grad()
    def of(actor: Actor, obs: Tensor, noise: Tensor) -> Squashed:
        """Evaluate the actor on obs (R, B, obs)."""
        hidden: list[list[Tensor]] = []
        mean, raw = outputs(runs_of(actor.net), obs.contiguous(), hidden).chunk(2, dim=-1)
        half = 0.5 * (actor.log_std_max - actor.log_std_min)
        bent = torch.tanh(raw)
        log_std = bent.mul(half).add_(actor.log_std_min + half)
        std = log_std.exp()
        pre_tanh = torch.addcmul(mean, std, noise)
        # log pi = sum of 2 u + 2 softplus(-2 u) - noise^2 / 2 - log_std, plus a constant
        terms = F.softplus(pre_tanh.mul(-2.0)).add_(pre_tanh).mul_(2.0).sub_(log_std)
        constant = -noise.shape[-1] * (2.0 * math.log(2.0) + 0.5 * math.log(2.0 * math.pi))
        log_prob = terms.addcmul_(noise, noise, value=-0.5).sum(-1).add_(constant)
        return Squashed(noise, pre_tanh.tanh_(), log_prob, std, bent, hidden)

    def halves(self) -> list[Squashed]:
        """Return the policy on the first half and on the second half of the observations."""
        halves = zip(*(tensor.chunk(2, dim=1) for tensor in self[:-1]), strict=True)
        hidden = [[x.chunk(2) for x in own] for own in self.hidden]
        return [
            Squashed._make([*tensors, [[x[at] for x in own] for own in hidden]])
            for at, tensors in enumerate(halves)
        ]

    def backward(self, of_action: Tensor, weight: Tensor, actor: Actor) -> Tensor:
        """Return the gradient of the loss with respect to the net's outputs, shape (R, B, 2 act).

        of_action: the gradient of the loss with respect to the action.
        weight: the gradient of the loss with respect to the log-probability, (R,). All rows of a
        run have the same gradient.
        """
        # d action / d u = 1 - action^2, d log pi / d u = 2 action, d log pi / d log-std = -1
        weight = weight[:, None, None]
        half = 0.5 * (actor.log_std_max - actor.log_std_min)
        of_u = of_action.addcmul(of_action * self.action, self.action, value=-1.0)
        of_u.addcmul_(self.action, 2.0 * weight)
        of_log_std = torch.mul(of_u, self.std).mul_(self.noise).sub_(weight)
        of_raw = of_log_std.addcmul_(of_log_std * self.bent, self.bent, value=-1.0).mul_(half)
        return torch.cat([of_u, of_raw], dim=-1)


@torch.no_grad()
def policies(
    actor: Actor, obs: tuple[Tensor, Tensor], noise: tuple[Tensor, Tensor]
) -> list[Squashed]:
    """Evaluate the actor on two batches of observations, (R, B, obs) each, in one pass."""
    return Squashed.of(actor, torch.cat(obs, dim=1), torch.cat(noise, dim=1)).halves()


def outputs(runs: Sequence[Run], inputs: Tensor, kept: list[list[Tensor]] | None = None) -> Tensor:
    """Return the outputs of N runs or twins, shape (N, B, out).

    inputs: the nets' inputs, (N, B, in), or (N / 2, B, in) if the two twins of each run share an
    input.
    kept: None, or a list to which one list is appended per run or twin, with the inputs of its
    layers.
    """
    twins, heads = len(runs) // len(inputs), []
    for at, run in enumerate(runs):
        hidden: list[Tensor] | None = None if kept is None else []
        heads.append(run.forward(inputs[at // twins], hidden))
        if kept is not None and hidden is not None:
            kept.append(hidden)
    return torch.stack(heads)


@torch.no_grad()
def critic_gradients(
    critic: Critic,
    target: Critic,
    policy: Squashed,
    alpha: Tensor,
    batch: Batch,
    reward: Tensor,
    gamma: float,
) -> Tensor:
    """Return the value of `critic_loss`, shape (R,), and store the critic's gradients.

    policy: the policy on the batch's next observations.
    """
    runs, size = reward.shape
    after = torch.cat([batch.next_obs, policy.action], dim=-1)
    values = outputs(runs_of(target.net), after).view(runs, 2, size)
    value = torch.minimum(*values.unbind(1)).addcmul_(alpha[:, None], policy.log_prob, value=-1.0)
    bellman = torch.addcmul(reward, (1.0 - batch.terminated).mul_(gamma), value).unsqueeze(-1)
    before = torch.cat([batch.obs, batch.action], dim=-1)
    errors = torch.empty_like(values).view(2 * runs, size, 1)
    for at, twin in enumerate(runs_of(critic.net, trained=True)):
        kept: list[Tensor] = []
        error = torch.sub(twin.forward(before[at // 2], kept), bellman[at // 2], out=errors[at])
        twin.backward(error / size, kept)  # now, while the cache still holds the activations
    return errors.view(runs, 2, size).square_().mean(dim=2).sum(dim=1).mul_(0.5)


@torch.no_grad()
def actor_gradients(
    actor: Actor, critic: Critic, policy: Squashed, alpha: Tensor, obs: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the values of `actor_loss`, (R,) and (R, B), and store the actor's gradients.

    policy: the policy on `obs`.
    """
    runs, size, width = obs.shape
    critics = runs_of(critic.net)
    kept: list[list[Tensor]] = []
    x = torch.cat([obs, policy.action], dim=-1)
    values = outputs(critics, x, kept).view(runs, 2, size)
    least, which = values.min(dim=1, keepdim=True)
    of_values = torch.zeros_like(values).scatter_(1, which, -1.0 / size)
    heads = of_values.view(2 * runs, size, 1).unbind()
    parts = [
        twin.of_input(g, own, width) for twin, g, own in zip(critics, heads, kept, strict=True)
    ]
    of_action = torch.stack(parts[::2]).add_(torch.stack(parts[1::2]))
    of_outputs = policy.backward(of_action, alpha / size, actor).unbind()
    for run, g, own in zip(
        runs_of(actor.net, trained=True), of_outputs, policy.hidden, strict=True
    ):
        run.backward(g, own)
    loss = torch.addcmul(least.squeeze(1), alpha[:, None], policy.log_prob, value=-1.0)
    return loss.mean(dim=1).neg_(), policy.log_prob
