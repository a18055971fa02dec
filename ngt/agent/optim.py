"""Adam, gradient clipping per run, and steps down a loss, for tensors that pack R runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

# When an optimiser is made, torch imports its compiler, which takes seconds, to get a version of
# this method that is never compiled. The suite compiles nothing, so the method itself serves as
# that version.
_add_param_group = torch.optim.Optimizer.add_param_group.__wrapped__  # type: ignore[attr-defined]
_add_param_group.__dynamo_disable = _add_param_group

VECTOR = 16  # number of floats in a vector register of AVX-512, the widest register


def adam(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Adam:
    """Return a fused Adam. It works elementwise, so runs in the same tensor do not mix."""
    return torch.optim.Adam(parameters, lr=lr, fused=True, capturable=True)


@torch.no_grad()
def step_(optimiser: torch.optim.Optimizer) -> None:
    """Take a step of Adam. On a CPU, rounding in one run does not depend on the other runs.

    The fused kernel works in vector registers. It rounds the last elements of a tensor differently
    if they do not fill a register. If the size of one run's part of a tensor is not a multiple of a
    register's size, each run's part is therefore passed as a separate tensor. Calling the kernel
    directly is also faster than torch's own `step`.
    """
    (group,) = optimiser.param_groups
    if group["params"][0].device.type != "cpu":
        optimiser.step()
        return
    used = [p for p in group["params"] if p.grad is not None]
    for p in used:
        if not optimiser.state[p]:
            moments = {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
            optimiser.state[p] = {"step": torch.zeros(()), **moments}
    states = [optimiser.state[p] for p in used]
    torch._foreach_add_([state["step"] for state in states], 1.0)
    tensors: list[tuple[Tensor, ...]] = []
    for p, state in zip(used, states, strict=True):
        assert p.grad is not None
        own = (p, p.grad, state["exp_avg"], state["exp_avg_sq"])
        ends = len(p) > 1 and p[0].numel() % VECTOR  # a single run needs no splitting
        split = zip(*own, strict=True) if ends else [own]
        tensors += [(*part, state["step"]) for part in split]
    values, grads, first, second, steps = map(list, zip(*tensors, strict=True))
    beta1, beta2 = group["betas"]
    options = {name: group[name] for name in ("lr", "eps", "weight_decay", "amsgrad", "maximize")}
    torch._fused_adam_(values, grads, first, second, [], steps, beta1=beta1, beta2=beta2, **options)


def descend(
    optimiser: torch.optim.Optimizer,
    loss: Tensor,
    limit: float | None = None,
    further: Sequence[torch.optim.Optimizer] = (),
) -> None:
    """Take one step down the sum of `loss`, which holds one loss per run, shape (R,).

    Each run has its own parameters, so the sum's gradient with respect to a run's parameters is the
    gradient of that run's loss.

    limit: the largest gradient norm of a run, or None for no clipping.
    further: optimisers of other parameters of the loss, which take a step without clipping.
    """
    for each in (optimiser, *further):
        for parameter in each.param_groups[0]["params"]:
            parameter.grad = None
    loss.sum().backward()
    clipped_step_(optimiser, limit)
    for each in further:
        step_(each)


def clipped_step_(optimiser: torch.optim.Optimizer, limit: float | None) -> None:
    """Scale each run's stored gradient to a norm of at most `limit`, then take one step."""
    if limit is not None:
        clip_grad_norm_per_run_(optimiser.param_groups[0]["params"], limit)
    step_(optimiser)


def clip_grad_norm_per_run_(parameters: Sequence[nn.Parameter], limit: float) -> Tensor:
    """Scale each run's gradient in place to norm <= `limit`; return the norms before scaling."""
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([g.flatten(1).square().sum(1) for g in grads]).sum(0).sqrt()
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(scale.view(-1, *[1] * (grad.dim() - 1)))
    return norm
