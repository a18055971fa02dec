"""Pairing losses between the predictor's and the prior's outputs (paper: Method, Appendix)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

HLG_EPS = 1e-6  # of the paper's snippet, in the normalisation


def huber(prediction: Tensor, target: Tensor, delta: float = 1.0) -> Tensor:
    """Mean over the m outputs of the Huber loss: (..., m) -> (...)."""
    return F.huber_loss(prediction, target, reduction="none", delta=delta).mean(dim=-1)


def mse_softmax(prediction: Tensor, target: Tensor) -> Tensor:
    """Squared distance of the two softmaxes, summed over the m outputs: (..., m) -> (...)."""
    return (prediction.softmax(dim=-1) - target.softmax(dim=-1)).square().sum(dim=-1)


def hl_gauss_edges(low: float, high: float, bins: int) -> Tensor:
    """The N + 1 bin edges of the support."""
    return torch.linspace(low, high, bins + 1)


def hl_gauss_target(target: Tensor, edges: Tensor, sigma: float) -> Tensor:
    """Mass of a Gaussian around each target in each bin: (..., m) -> (..., N, m).

    Normalised by the mass inside the support plus 1e-6 (in erf units), so rows sum to just under
    one, and to less the further a target lies outside.
    """
    z = torch.erf((edges[:, None] - target.unsqueeze(-2)) / (math.sqrt(2.0) * sigma))
    mass = z[..., -1:, :] - z[..., :1, :] + HLG_EPS
    return (z[..., 1:, :] - z[..., :-1, :]) / mass


def hl_gauss(logits: Tensor, probs: Tensor) -> Tensor:
    """Cross-entropy over the N bins, mean over the m outputs.

    logits (..., N * m) with the bin index outermost, as in the paper's snippet; probs (..., N, m).
    """
    log_q = rearrange(logits, "... (n m) -> ... n m", n=probs.shape[-2]).log_softmax(dim=-2)
    return -(probs * log_q).sum(dim=-2).mean(dim=-1)
