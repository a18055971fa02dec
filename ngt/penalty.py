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
    """Return the mean of (|grad net(x)| - 1)^2 over points x between expert and agent rows, (R,).

    The result is differentiable with respect to the net's parameters, even at a zero gradient.

    net: maps (R, B, dims) to one value per row; several values per row are summed.
    expert, agent: rows (R, B, dims).
    epsilon: the expert's share in x, in [0, 1], shape (R, B).
    one_sided: do not penalise slopes below 1.
    """
    x = (agent + epsilon[..., None] * (expert - agent)).detach().requires_grad_()
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    excess = torch.linalg.vector_norm(slope, dim=-1) - 1.0  # its subgradient at 0 is 0, not NaN
    if one_sided:
        excess = F.relu(excess)
    return excess.square().mean(dim=1)
