"""Packed networks: each holds the nets of R runs and computes the nets of all runs in one call.

The first dimension of every parameter is the run. A layer computes y = x W + b for each run, with
weights W (R, in, out), biases b (R, 1, out), inputs x (R, B, in) and outputs y (R, B, out). A twin
critic has two nets per run, so its parameters have the leading dimensions (R, 2) instead of (R,). A
single run has R = 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ngt.agent.kernels import Rectifier, rectified

Init = Literal["orthogonal", "kaiming", "uniform"]
Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {"relu": Rectifier(), "silu": F.silu}


def init_(weight: Tensor, init: Init, generator: torch.Generator) -> None:
    """Initialise one weight (in, out) in place.

    orthogonal: orthogonal with gain 1.
    kaiming: normal with variance 2 / in.
    uniform: uniform on [-b, b] with b = 1 / sqrt(in), which is torch's default.
    """
    with torch.no_grad():
        if init == "orthogonal":
            nn.init.orthogonal_(weight, generator=generator)
        elif init == "kaiming":
            weight.normal_(0.0, math.sqrt(2.0 / weight.shape[0]), generator=generator)
        elif init == "uniform":
            bound = weight.shape[0] ** -0.5
            weight.uniform_(-bound, bound, generator=generator)
        else:
            raise ValueError(f"init: {init!r} is not known")


class PackedLinear(nn.Module):
    """A linear layer y = x W + b per net: x (N, B, in) -> y (N, B, out).

    lead: leading dimensions of the parameters, (R,) or (R, twins); N is their product.
    """

    def __init__(self, lead: tuple[int, ...], in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(*lead, in_dim, out_dim))
        self.bias = nn.Parameter(torch.zeros(*lead, 1, out_dim))

    def forward(self, x: Tensor, frozen: bool = False) -> Tensor:
        return rectified(x, self.parts(frozen), Rectifier())

    def parts(self, frozen: bool = False) -> tuple[Tensor, Tensor]:
        """Return the weight (N, in, out) and bias (N, 1, out), without gradients if frozen."""
        weight, bias = self.matrix().flatten(0, -3), self.bias.flatten(0, -3)
        return (weight.detach(), bias.detach()) if frozen else (weight, bias)

    def matrix(self) -> Tensor:
        """Return the weight by which x is multiplied, shape (*lead, in, out)."""
        return self.weight


def unit_(columns: Tensor) -> Tensor:
    """Divide column vectors (N, dim, 1) in place by the larger of their length and 1e-12."""
    return columns.div_(torch.linalg.vector_norm(columns, dim=-2, keepdim=True).clamp_min_(1e-12))


class SpectralLinear(PackedLinear):
    """A packed layer whose weight W is divided by its largest singular value, sigma = l' W r.

    l' is l transposed, and l and r are the singular vectors for sigma. `step()` improves l and r by
    power iteration; a forward pass never changes them. The weight is initialised first, and then
    divided by sigma in each forward pass. In the opposite order, the initialisation would have no
    effect.
    """

    def __init__(self, lead: tuple[int, ...], in_dim: int, out_dim: int) -> None:
        super().__init__(lead, in_dim, out_dim)
        self.left: Tensor  # (*lead, in, 1), unit norm
        self.right: Tensor  # (*lead, out, 1), unit norm
        self.register_buffer("left", torch.full((*lead, in_dim, 1), in_dim**-0.5))
        self.register_buffer("right", torch.full((*lead, out_dim, 1), out_dim**-0.5))

    @torch.no_grad()
    def step(self, iterations: int = 1) -> None:
        """Iterate l <- W r / |W r| and r <- W' l / |W' l| in place."""
        weight, right = self.weight.flatten(0, -3), self.right.flatten(0, -3)
        for _ in range(iterations):
            # W r is computed as r' W', since torch multiplies by a column vector with different
            # kernels for one run and for several.
            left = unit_(torch.bmm(right.view_as(right.mT), weight.mT).view(*weight.shape[:2], 1))
            right = unit_(torch.bmm(weight.mT, left))
        self.left.copy_(left.view_as(self.left))
        self.right.copy_(right.view_as(self.right))

    def matrix(self) -> Tensor:
        # sigma = l' W r, with constant l and r. The last product is not a dot product, since torch
        # computes dot products with different kernels for one run and for several.
        sigma = ((self.left.mT @ self.weight).mT * self.right).sum(dim=-2, keepdim=True)
        return self.weight / sigma


class PackedNorm(nn.Module):
    """Layer norm with a scale and shift per run; x (N, B, dim) keeps its shape."""

    EPS = 1e-5

    def __init__(self, lead: tuple[int, ...], dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(*lead, 1, dim))
        self.bias = nn.Parameter(torch.zeros(*lead, 1, dim))

    def forward(self, x: Tensor, frozen: bool = False) -> Tensor:
        weight, bias = self.weight.flatten(0, -3), self.bias.flatten(0, -3)
        if frozen:
            weight, bias = weight.detach(), bias.detach()
        return torch.addcmul(bias, F.layer_norm(x, x.shape[-1:], eps=self.EPS), weight)


class PackedMLP(nn.Module):
    """`twins` MLPs per run: x (N, B, in) -> (N, B, out), with N = R * twins.

    The last layer is linear.

    generators: one per run, in order. A run's initial weights depend only on the run's generator.
    Biases start at zero, but a layer with `uniform` initialisation draws biases like weights.
    layer_norm: apply layer norm to each hidden layer before the activation.
    head_init: initialisation of the last layer, or None for `init`.
    head_gain: factor on the initial weight of the last layer.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        generators: Sequence[torch.Generator],
        *,
        twins: int = 1,
        activation: Activation = Rectifier(),  # noqa: B008 - frozen
        init: Init = "orthogonal",
        head_init: Init | None = None,
        head_gain: float = 1.0,
        layer_norm: bool = False,
        spectral_norm: bool = False,
    ) -> None:
        super().__init__()
        lead = (len(generators),) if twins == 1 else (len(generators), twins)
        layer = SpectralLinear if spectral_norm else PackedLinear
        layers = [layer(lead, a, b) for a, b in itertools.pairwise(sizes)]
        self.layers: Sequence[PackedLinear] = nn.ModuleList(layers)  # type: ignore[assignment]
        norms = [PackedNorm(lead, size) for size in sizes[1:-1]] if layer_norm else []
        self.norms: Sequence[PackedNorm] = nn.ModuleList(norms)  # type: ignore[assignment]
        self.activation = activation
        for run, generator in enumerate(generators):
            for depth, linear in enumerate(self.layers):
                last = depth == len(self.layers) - 1
                kind = (head_init or init) if last else init
                for weight in linear.weight[run].reshape(twins, *linear.weight.shape[-2:]):
                    init_(weight, kind, generator)
                if kind == "uniform":
                    bound = sizes[depth] ** -0.5
                    linear.bias.data[run].uniform_(-bound, bound, generator=generator)
        with torch.no_grad():
            self.layers[-1].weight.mul_(head_gain)
        if spectral_norm:
            self.power_iteration(15)  # suffices: the layers' norms then multiply to 1.0 to 1.2

    def forward(self, x: Tensor, frozen: bool = False) -> Tensor:
        """Return the outputs. If frozen, only x receives gradients, not the parameters."""
        if isinstance(self.activation, Rectifier) and not self.norms:
            parts = [part for linear in self.layers for part in linear.parts(frozen)]
            return rectified(x, parts, self.activation)
        for depth, linear in enumerate(self.layers[:-1]):
            x = linear(x, frozen)
            if self.norms:
                x = self.norms[depth](x, frozen)
            x = self.activation(x)
        return self.layers[-1](x, frozen)

    def power_iteration(self, iterations: int = 1) -> None:
        """Improve the estimated singular vectors of every spectrally normalised layer."""
        for linear in self.layers:
            if isinstance(linear, SpectralLinear):
                linear.step(iterations)

    @torch.no_grad()
    def freeze(self, normalise: bool) -> None:
        """Freeze the net. With `normalise`, first divide each weight by its exact spectral norm."""
        for linear in self.layers:
            if normalise:
                linear.weight.div_(torch.linalg.matrix_norm(linear.weight, ord=2, keepdim=True))
        self.requires_grad_(False)

    @torch.no_grad()
    def lipschitz(self) -> Tensor:
        """Return the product of the layers' exact spectral norms for each run and twin.

        This product bounds the slope of a net without layer norm.
        """
        norms = [torch.linalg.matrix_norm(layer.matrix(), ord=2) for layer in self.layers]
        return torch.stack(norms).prod(0)


class ObsNormaliser(nn.Module):
    """A normaliser of observations, (obs - mean) / std, by running statistics of each run.

    The mean and variance are updated by Welford's method, one batch at a time. Normalised values
    are clipped to [-10, 10], as in the later public code of the NGT paper's authors. The state is
    float64. In float32, sums over a million steps would lose terms that are small compared with the
    sum.
    """

    def __init__(self, runs: int, obs: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.var: Tensor
        self.count: Tensor
        self.register_buffer("mean", torch.zeros(runs, 1, obs, dtype=torch.float64))
        self.register_buffer("var", torch.ones(runs, 1, obs, dtype=torch.float64))
        self.register_buffer("count", torch.zeros(runs, 1, 1, dtype=torch.float64))

    @torch.no_grad()
    def update(self, obs: Tensor) -> None:
        """Update the mean and variance with observations (R, n, obs)."""
        n, obs = obs.shape[1], obs.double()
        mean, var = obs.mean(1, keepdim=True), obs.var(1, correction=0, keepdim=True)
        total = self.count + n
        delta = mean - self.mean
        spread = self.var * self.count + var * n + delta.square() * self.count * n / total
        self.mean.add_(delta * n / total)
        self.var.copy_(spread / total)
        self.count.copy_(total)

    def fit(self, sets: Sequence[Tensor]) -> None:
        """Set each run's mean and variance to those of its data set (1, n, obs)."""
        for run, obs in enumerate(sets):
            self.mean[run] = obs[0].double().mean(0)
            self.var[run] = obs[0].double().var(0, correction=0)
            self.count[run] = obs.shape[1]

    def forward(self, obs: Tensor) -> Tensor:
        scaled = (obs - self.mean) / (self.var + 1e-8).sqrt()
        return scaled.clamp(-10.0, 10.0).to(obs.dtype)
