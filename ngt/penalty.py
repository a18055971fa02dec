"""The gradient penalty of WGAN-GP (Gulrajani et al., 2017), which several methods can use."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def gradient_penalty(
    net: Callable[[Tensor], Tensor],
    expert: Tensor,
    agent: Tensor,
    epsilon: Tensor,
    one_sided: bool = False,
) -> Tensor:
    """Return each run's mean of (|grad net(x)| - 1)^2 over points x between expert and agent rows.

    The result has shape (R,) for R runs. It is differentiable with respect to the net's parameters,
    even at points where the gradient is zero.

    net: maps rows (R, B, dims) to one value each. If it returns several values per row, their sum
    is penalised.
    expert: a batch of expert rows, shape (R, B, dims).
    agent: a batch of agent rows, shape (R, B, dims).
    epsilon: the share of the expert's row in each point x, in [0, 1], shape (R, B).
    one_sided: do not penalise slopes below 1.
    """
    x = (agent + epsilon[..., None] * (expert - agent)).detach().requires_grad_()
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    # In torch, the gradient of this norm at 0 is 0, not NaN.
    excess = torch.linalg.vector_norm(slope, dim=-1) - 1.0
    if one_sided:
        excess = F.relu(excess)
    return excess.square().mean(dim=1)
