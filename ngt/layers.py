"""The layers of packed nets; on a CPU by oneDNN, which uses what the processor has.

torch multiplies float32 matrices by MKL, which keeps to old instructions on processors of another
maker. oneDNN comes with torch too, is float32 as well, and was twice as fast on an AMD one with
AVX-512 (docs/performance.md). A run goes through all layers before the next one does, so that its
activations stay in the cache, and its numbers are the same alone and in a pack.
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


@dataclass(frozen=True)
class Rectifier:
    """x above 0, slope x below, with a slope of 0 or more: ReLU or, above 0, LeakyReLU."""

    slope: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        """In place."""
        return F.leaky_relu_(x, self.slope) if self.slope else torch.relu_(x)


def rectified(x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier) -> Tensor:
    """x (N, B, in) through layers x W + b with a rectifier between them: (N, B, out).

    parameters: W (N, in, out) and b (N, 1, out) of each layer in turn.
    """
    if not (ONEDNN and x.device.type == "cpu" and x.dtype == torch.float32):
        return plain(x, parameters, rectifier)
    if not torch.is_grad_enabled():
        return _forward(x, parameters, rectifier)[0]
    out: Tensor = _Rectified.apply(x, rectifier, *parameters)
    return out


def plain(x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier) -> Tensor:
    """The same by torch's own products."""
    for depth in range(0, len(parameters), 2):
        weight, bias = parameters[depth : depth + 2]
        x = torch.baddbmm(bias, rectifier(x) if depth else x, weight)
    return x


def _linear(x: Tensor, columns: Tensor, bias: Tensor | None = None) -> Tensor:
    """x columns' + bias for x (B, in), columns (out, in), bias (out,): (B, out)."""
    if 1 in columns.shape:  # with a vector MKL is faster
        return x @ columns.mT if bias is None else torch.addmm(bias, x, columns.mT)
    out: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, columns, bias, "none", [], "")
    return out


def _forward(
    x: Tensor, parameters: Sequence[Tensor], rectifier: Rectifier
) -> tuple[Tensor, list[list[Tensor]]]:
    """The output, and what each layer of each run has seen."""
    layers = [  # of each layer, each run's: (out, in), as the operator takes it, and (out,)
        list(zip(w.mT.unbind(), b.squeeze(1).unbind(), strict=True))
        for w, b in zip(parameters[::2], parameters[1::2], strict=True)
    ]
    hidden, heads = [], []
    for run, inputs in enumerate(x.unbind()):
        seen = [inputs]
        for layer in layers[:-1]:
            # oneDNN can rectify too, but makes 0 of NaN
            seen.append(rectifier(_linear(seen[-1], *layer[run])))
        heads.append(_linear(seen[-1], *layers[-1][run]))
        hidden.append(seen)
    return _pack(heads), hidden


class _Rectified(Function):
    """One node of the graph for a whole net. Differentiated twice, it is `plain`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rectifier: Rectifier, *parameters: Tensor) -> Tensor:
        out, ctx.hidden = _forward(x, parameters, rectifier)
        ctx.rectifier = rectifier
        ctx.save_for_backward(x, *parameters)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[2:]]
        if torch.is_grad_enabled():  # these gradients will be differentiated themselves
            inputs = ctx.saved_tensors
            out = plain(inputs[0], inputs[1:], ctx.rectifier)
            wanted = [t for t, need in zip(inputs, needed, strict=True) if need]
            found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
            of_x, *rest = [next(found) if need else None for need in needed]
            return of_x, None, *rest
        runs = [_descend(g, ctx, run, needed) for run, g in enumerate(grad.unbind())]
        of_x, *rest = [
            _pack(parts) if need else None
            for parts, need in zip(zip(*runs, strict=True), needed, strict=True)
        ]
        return of_x, None, *rest


def _pack(parts: Sequence[Tensor]) -> Tensor:
    """One tensor of all runs' parts; of one run without a copy."""
    return parts[0].unsqueeze(0) if len(parts) == 1 else torch.stack(list(parts))


def _descend(g: Tensor, ctx: Any, run: int, needed: Sequence[bool]) -> list[Any]:
    """One run's gradients, of its input and of each parameter that needs one, from its output's."""
    _, *parameters = ctx.saved_tensors
    out: list[Any] = [None] * len(needed)
    for depth in reversed(range(len(parameters) // 2)):
        seen = ctx.hidden[run][depth]
        if needed[1 + 2 * depth]:
            out[1 + 2 * depth] = _linear(seen.mT, g.mT)
        if needed[2 + 2 * depth]:
            out[2 + 2 * depth] = g.sum(dim=0, keepdim=True)
        if depth or needed[0]:
            g = _linear(g, parameters[2 * depth][run])
        if depth:
            g = torch.ops.aten.leaky_relu_backward(g, seen, ctx.rectifier.slope, True)
    out[0] = g if needed[0] else None
    return out
