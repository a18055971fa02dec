"""Adam steps and gradient clipping per run, for tensors that hold the parameters of R runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

# When an optimiser is made, torch would import its compiler, only to obtain a version of this
# method that is never compiled. The import takes seconds. The suite compiles nothing, so the method
# itself serves as that version.
_add_param_group = torch.optim.Optimizer.add_param_group.__wrapped__  # type: ignore[attr-defined]
_add_param_group.__dynamo_disable = _add_param_group

VECTOR = 16  # number of floats in the widest vector register, that of AVX-512


def adam(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Adam:
    """Return a fused Adam. Its steps are elementwise, so runs in the same tensor do not mix."""
    return torch.optim.Adam(parameters, lr=lr, fused=True, capturable=True)


@torch.no_grad()
def step_(optimiser: torch.optim.Optimizer) -> None:
    """Take an Adam step. On a CPU, the rounding in one run does not depend on the other runs.

    The fused kernel works in vector registers. If a tensor's last elements do not fill a register,
    the kernel rounds these elements differently. Each run's part of a tensor is therefore passed as
    a separate tensor, unless the part's size is a multiple of a register's size. Calling the kernel
    directly is also faster than calling torch's own `step`.
    """
    (group,) = optimiser.param_groups
    if group["params"][0].device.type != "cpu":
        optimiser.step()
        return
    counters: list[Tensor] = []
    tensors: list[tuple[Tensor, ...]] = []
    for p in group["params"]:
        if p.grad is None:
            continue
        state = optimiser.state[p]
        if not state:
            moments = {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
            state.update({"step": torch.zeros(()), **moments})
        counters.append(state["step"])
        own = (p, p.grad, state["exp_avg"], state["exp_avg_sq"])
        if len(p) > 1 and p[0].numel() % VECTOR:  # a single run needs no splitting
            tensors += [(*part, state["step"]) for part in zip(*own, strict=True)]
        else:
            tensors.append((*own, state["step"]))
    torch._foreach_add_(counters, 1.0)
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
    """Take one gradient step to lower the sum of `loss`, which holds one loss per run, (R,).

    Each run has its own parameters, so the sum's gradient with respect to a run's parameters is the
    gradient of that run's loss.

    limit: the largest allowed gradient norm of a run, or None for no clipping.
    further: optimisers of other parameters that the loss depends on. They take a step without
    clipping.
    """
    for each in (optimiser, *further):
        for parameter in each.param_groups[0]["params"]:
            parameter.grad = None
    loss.sum().backward()
    clipped_step_(optimiser, limit)
    for each in further:
        step_(each)


def clipped_step_(optimiser: torch.optim.Optimizer, limit: float | None) -> None:
    """Scale each run's stored gradient to a norm of at most `limit`, then take a step."""
    if limit is not None:
        clip_grad_norm_per_run_(optimiser.param_groups[0]["params"], limit)
    step_(optimiser)


def clip_grad_norm_per_run_(parameters: Sequence[nn.Parameter], limit: float) -> Tensor:
    """Clip each run's gradient in place to the norm `limit`; return the norms before clipping."""
    grads = [p.grad for p in parameters if p.grad is not None]
    squares = torch._foreach_mul(grads, grads)
    norm = torch.stack([square.flatten(1).sum(1) for square in squares]).sum(0).sqrt()
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(grads, [scale.view(-1, *[1] * (grad.dim() - 1)) for grad in grads])
    return norm
