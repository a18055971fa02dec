"""Kernels of packed nets, i.e. the nets of N runs: layers x W + b with a rectifier between them.

The function `plain` defines what the kernels compute. On a CPU the kernels use the library oneDNN.
By default torch multiplies float32 matrices with the library MKL, which uses only old instructions
on processors not made by Intel. oneDNN also comes with torch and also computes in float32. It was
twice as fast on an AMD processor with AVX-512 (docs/performance.md). All layers of one run are
computed before those of the next run. A run's activations therefore stay in the cache, and a run's
numbers are the same whether it trains alone or together with other runs. In formulas, x' is x
transposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@dataclass(frozen=True)
class Rectifier:
    """The activation max(x, 0) + slope min(x, 0): ReLU, or LeakyReLU if slope > 0."""

    slope: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the activation to x in place."""
        return F.leaky_relu_(x, self.slope) if self.slope else torch.relu_(x)


def by_onednn(x: Tensor) -> bool:
    """Return True if the kernels use oneDNN for this input."""
    return ONEDNN and x.device.type == "cpu" and x.dtype == torch.float32


def rectified(x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier) -> Tensor:
    """Pass x (N, B, in) through layers x W + b with a rectifier between them; return (N, B, out).

    parameters: W (N, in, out) and b (N, 1, out) of each layer in turn.
    """
    if not by_onednn(x):
        return plain(x, parameters, rectifier)
    if not torch.is_grad_enabled():
        return _forward(x, parameters, rectifier, None)
    out: Tensor = _Rectified.apply(x, rectifier, *parameters)
    return out


def plain(x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier) -> Tensor:
    """Return the same as `rectified`, computed with torch's default matrix products."""
    for depth in range(0, len(parameters), 2):
        weight, bias = parameters[depth : depth + 2]
        x = torch.baddbmm(bias, rectifier(x) if depth else x, weight)
    return x


def _linear(x: Tensor, columns: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x columns' + bias for x (B, in), columns (out, in) and bias (out,), shape (B, out)."""
    if x.dtype != torch.float32 or 1 in columns.shape:  # MKL is faster if `columns` is a vector
        return x @ columns.mT if bias is None else torch.addmm(bias, x, columns.mT)
    out: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, columns, bias, "none", [], "")
    return out


def _outer(x: Tensor, g: Tensor) -> Tensor:
    """Return x' g for x (B, in) and g (B, out), shape (in, out)."""
    # oneDNN copies the first factor if it is transposed, so the narrower matrix should be first.
    if 1 < g.shape[1] <= x.shape[1] // 4:
        return _linear(g.mT, x.mT).mT
    return _linear(x.mT, g.mT)


def forward(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    rectifier: Rectifier,
    kept: list[Tensor] | None,
) -> Tensor:
    """Return the output of one run, (B, out), and append the input of every layer to `kept`.

    Shapes: x (B, in) without gaps between rows, each weight (in, out), each bias (out,). If `kept`
    is None, the layers' inputs are not stored, so that their memory is reused while it is in the
    cache.
    """
    for depth, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if depth:
            x = rectifier(x)  # torch's rectifier, since oneDNN's would turn NaN into 0
        if kept is not None:
            kept.append(x)
        x = _linear(x, weight.mT, bias)
    return x


def backward(
    g: Tensor, kept: list[Tensor], weights: list[Tensor], rectifier: Rectifier, needed: list[bool]
) -> Iterator[tuple[int, Tensor]]:
    """Yield the index and gradient of each needed input, given the gradient g of a run's output.

    The inputs are x, then the weight and bias (1, out) of each layer in turn.

    kept: the layers' inputs from `forward`.
    needed: for each input, True if its gradient is needed.
    """
    for depth in reversed(range(len(weights))):
        seen = kept[depth]
        if needed[1 + 2 * depth]:
            yield 1 + 2 * depth, _outer(seen, g)
        if needed[2 + 2 * depth]:
            yield 2 + 2 * depth, g.sum(dim=0, keepdim=True)
        if depth or needed[0]:
            g = _linear(g, weights[depth])
        if depth:
            torch.ops.aten.leaky_relu_backward.grad_input(
                g, seen, rectifier.slope, True, grad_input=g
            )
    if needed[0]:
        yield 0, g


def _forward(
    x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier, hidden: list[list[Tensor]] | None
) -> Tensor:
    """Return the output of all runs, and append each run's layer inputs to `hidden`."""
    weights = list(zip(*(w.unbind() for w in parameters[::2]), strict=True))
    biases = list(zip(*(b.squeeze(1).unbind() for b in parameters[1::2]), strict=True))
    heads = []
    # oneDNN is a thousand times slower if the second factor of a product is a slice of wider rows.
    for run, own in enumerate(x.contiguous().unbind()):
        kept: list[Tensor] | None = None if hidden is None else []
        heads.append(forward(own, weights[run], biases[run], rectifier, kept))
        if hidden is not None and kept is not None:
            hidden.append(kept)
    return heads[0].unsqueeze(0) if len(heads) == 1 else torch.stack(heads)


class _Rectified(Function):
    """A whole net as one node of the autograd graph; second derivatives are computed by `plain`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rectifier: Rectifier, *parameters: Tensor) -> Tensor:
        ctx.rectifier, ctx.hidden = rectifier, []
        ctx.save_for_backward(x, *parameters)
        return _forward(x, parameters, rectifier, ctx.hidden)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[2:]]
        if torch.is_grad_enabled():  # these gradients will be differentiated again
            inputs = ctx.saved_tensors
            out = plain(inputs[0], inputs[1:], ctx.rectifier)
            wanted = [t for t, need in zip(inputs, needed, strict=True) if need]
            found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
            of_x, *rest = [next(found) if need else None for need in needed]
            return of_x, None, *rest
        packed = [
            t.new_empty(t.shape) if need else t
            for t, need in zip(ctx.saved_tensors, needed, strict=True)
        ]
        parts = [t.unbind() for t in packed]
        weights = [w.unbind() for w in ctx.saved_tensors[1::2]]
        for run, g in enumerate(grad.contiguous().unbind()):
            own = [w[run] for w in weights]
            for i, part in backward(g, ctx.hidden[run], own, ctx.rectifier, needed):
                parts[i][run].copy_(part)  # while the part is in the cache
        of_x, *rest = [t if need else None for t, need in zip(packed, needed, strict=True)]
        return of_x, None, *rest
