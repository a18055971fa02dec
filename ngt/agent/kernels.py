"""Kernels of packed nets, i.e. the nets of N runs, with layers x W + b and a rectifier in between.

The function `plain` defines what the kernels compute. On a CPU, the kernels use the oneDNN library.
By default, torch multiplies float32 matrices with the MKL library. On processors not made by Intel,
MKL uses only old instructions. oneDNN is also included in torch and also computes in float32. On an
AMD processor with AVX-512, oneDNN was twice as fast as MKL (docs/performance.md). Vectors and wide
layers with few inputs are left to MKL, whose calls cost less. All layers of one run are computed
before the layers of the next run. A run's activations therefore stay in the cache, and a run's
numbers are the same whether the run trains alone or together with other runs. In formulas, x' is x
transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
NARROW = 32  # MKL is faster for wide layers with at most this many inputs


@dataclass(frozen=True)
class Rectifier:
    """The activation max(x, 0) + slope min(x, 0), which is ReLU, or LeakyReLU if slope > 0."""

    slope: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the activation to x in place."""
        return F.leaky_relu_(x, self.slope) if self.slope else torch.relu_(x)


def keep_freed_memory() -> None:
    """Let glibc keep up to 64 MB of freed memory, so that an update reuses an earlier one's.

    glibc gives the unused end of its heap back to the system if it is larger than twice the largest
    block that was ever freed. If an update's tensors happen to lie there, each update asks the
    system for the same memory again (docs/performance.md). glibc counts blocks of up to 32 MB, so
    freeing one such block, which is never written, is enough.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)


def by_onednn(x: Tensor) -> bool:
    """Return True if the kernels use oneDNN for this input."""
    return ONEDNN and x.device.type == "cpu" and x.dtype == torch.float32


def rectified(x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier) -> Tensor:
    """Apply layers x W + b with a rectifier in between: x (N, B, in) -> (N, B, out).

    parameters: the first layer's W (N, in, out) and b (N, 1, out), then the next layer's, and so
    on.
    """
    if not by_onednn(x):
        return plain(x, parameters, rectifier)
    if not torch.is_grad_enabled():
        return _forward(x, parameters, rectifier, None)
    out: Tensor = _Rectified.apply(x, rectifier, *parameters)
    return out


def plain(x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier) -> Tensor:
    """Compute the same as `rectified`, but with torch's default matrix products."""
    for depth in range(0, len(parameters), 2):
        weight, bias = parameters[depth : depth + 2]
        x = torch.baddbmm(bias, rectifier(x) if depth else x, weight)
    return x


def _linear(x: Tensor, columns: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x columns' + bias.

    Shapes: x (B, in), columns (out, in), bias (out,), result (B, out).
    """
    outs, ins = columns.shape
    if ins == 1 and bias is None:
        return x * columns.mT
    if x.dtype != torch.float32 or outs == 1 or ins <= NARROW <= outs:
        return F.linear(x, columns, bias)  # MKL, whose calls cost less than oneDNN's
    out: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, columns, bias, "none", [], "")
    return out


def _outer(x: Tensor, g: Tensor) -> Tensor:
    """Compute x' g. Shapes: x (B, in), g (B, out), result (in, out)."""
    # oneDNN copies the first factor if it is transposed, so the narrower matrix should be first.
    if 1 < g.shape[1] <= x.shape[1] // 4:
        return _linear(g.mT, x.mT).mT
    return _linear(x.mT, g.mT)


def forward(
    x: Tensor,
    columns: Sequence[Tensor],
    biases: Sequence[Tensor],
    rectifier: Rectifier,
    kept: list[Tensor] | None,
) -> Tensor:
    """Return one run's output, (B, out), and append the input of every layer to `kept`.

    Shapes: x (B, in) without gaps between rows, each transposed weight in `columns` (out, in), each
    bias (out,). If `kept` is None, the layers' inputs are not stored. Their memory can then be
    reused while it is in the cache.
    """
    for depth, (column, bias) in enumerate(zip(columns, biases, strict=True)):
        if depth:
            x = rectifier(x)  # by torch, since oneDNN's rectifier would turn NaN into 0
        if kept is not None:
            kept.append(x)
        x = _linear(x, column, bias)
    return x


def backward(
    g: Tensor,
    kept: Sequence[Tensor],
    weights: Sequence[Tensor],
    rectifier: Rectifier,
    into: Sequence[Tensor | None],
    of_input: bool = False,
) -> Tensor | None:
    """Store the gradients of one run's parameters, given the gradient g of the run's output.

    Return the gradient of the input if `of_input`, otherwise None.

    kept: the layers' inputs that `forward` stored.
    into: where to store the gradient of the first layer's weight (in, out) and bias (1, out), of
    the next layer's, and so on; None for a gradient that is not needed.
    """
    for depth in reversed(range(len(weights))):
        seen, of_weight, of_bias = kept[depth], into[2 * depth], into[2 * depth + 1]
        if of_weight is not None:
            of_weight.copy_(_outer(seen, g))
        if of_bias is not None:
            torch.sum(g, dim=0, keepdim=True, out=of_bias)
        if depth or of_input:
            g = _linear(g, weights[depth])
        if depth:
            torch.ops.aten.leaky_relu_backward.grad_input(
                g, seen, rectifier.slope, True, grad_input=g
            )
    return g if of_input else None


def _forward(
    x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier, hidden: list[list[Tensor]] | None
) -> Tensor:
    """Return the output of all runs, and append each run's layer inputs to `hidden`."""
    columns = list(zip(*(w.mT.unbind() for w in parameters[::2]), strict=True))
    biases = list(zip(*(b.squeeze(1).unbind() for b in parameters[1::2]), strict=True))
    heads = []
    # oneDNN is a thousand times slower if a product's second factor is a slice of wider rows.
    for run, own in enumerate(x.contiguous().unbind()):
        kept: list[Tensor] | None = None if hidden is None else []
        heads.append(forward(own, columns[run], biases[run], rectifier, kept))
        if hidden is not None and kept is not None:
            hidden.append(kept)
    return heads[0].unsqueeze(0) if len(heads) == 1 else torch.stack(heads)


class _Rectified(Function):
    """A whole net as one node of the autograd graph. Second derivatives come from `plain`."""

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
            into = [part[run] if need else None for part, need in zip(parts, needed, strict=True)]
            of_x = backward(g, ctx.hidden[run], own, ctx.rectifier, into[1:], needed[0])
            if of_x is not None:
                parts[0][run].copy_(of_x)  # while it is in the cache
        of_x, *rest = [t if need else None for t, need in zip(packed, needed, strict=True)]
        return of_x, None, *rest
