"""A net's layers computed by oneDNN, compared with torch's products in float64.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import itertools
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ngt.agent import kernels
from ngt.agent.kernels import Rectifier, plain, rectified

SIZES = (7, 33, 64, 3)
Net = Callable[[Tensor, list[Tensor], Rectifier], Tensor]
close = partial(torch.testing.assert_close, rtol=2e-5, atol=2e-5)

needs_onednn = pytest.mark.skipif(not kernels.ONEDNN, reason="this torch has no oneDNN")


def drawn(runs: int, seed: int = 0, batch: int = 10, sizes: Sequence[int] = SIZES) -> list[Tensor]:
    """Return an input, followed by each layer's weight and bias."""
    g = torch.Generator().manual_seed(seed)
    out = [torch.randn(runs, batch, sizes[0], generator=g)]
    for a, b in itertools.pairwise(sizes):
        out.append(torch.randn(runs, a, b, generator=g) * a**-0.5)
        out.append(torch.randn(runs, 1, b, generator=g))
    return out


def result(net: Net, tensors: list[Tensor], slope: float, needed: list[int]) -> list[Tensor]:
    """Return the net's output and the gradients of its sum of squares in the `needed` tensors."""
    tensors = [t.detach().requires_grad_(i in needed) for i, t in enumerate(tensors)]
    out = net(tensors[0], tensors[1:], Rectifier(slope))
    return [out, *torch.autograd.grad(out.square().sum(), [tensors[i] for i in needed])]


def double(tensors: list[Tensor]) -> list[Tensor]:
    return [t.double() for t in tensors]


@pytest.mark.parametrize("slope", [0.0, 0.05])
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize(
    "needed", [list(range(7)), [0], [1, 2, 3, 4, 5, 6], [0, 3], [2, 6]], ids=str
)
def test_equals_float64(runs: int, slope: float, needed: list[int]) -> None:
    tensors = drawn(runs)
    found = result(rectified, tensors, slope, needed)
    for a, b in zip(found, result(plain, double(tensors), slope, needed), strict=True):
        close(a.double(), b)


@needs_onednn
def test_takes_onednn_for_float32_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    monkeypatch.setattr(kernels, "plain", lambda *args: used.append(args) or plain(*args))
    x, *parameters = drawn(2)
    rectified(x, parameters, Rectifier())
    assert not used
    rectified(x.double(), double(parameters), Rectifier())
    monkeypatch.setattr(kernels, "ONEDNN", False)
    rectified(x, parameters, Rectifier())
    assert len(used) == 2


@needs_onednn
@pytest.mark.parametrize("narrow", [0, 99], ids=["onednn", "mkl"])
def test_a_run_is_the_same_alone_and_in_a_pack(
    monkeypatch: pytest.MonkeyPatch, narrow: int
) -> None:
    """Check that a pack's outputs and gradients equal those of single runs to the bit."""
    monkeypatch.setattr(kernels, "NARROW", narrow)
    tensors, needed = drawn(3), list(range(7))
    together = result(rectified, tensors, 0.05, needed)
    for run in range(3):
        alone = result(rectified, [t[run : run + 1] for t in tensors], 0.05, needed)
        for a, b in zip(alone, together, strict=True):
            assert torch.equal(a[0], b[run])


@needs_onednn
@pytest.mark.parametrize("sizes", [(4, 64, 2), (23, 256, 1), (12, 256, 12)], ids=str)
def test_few_inputs_give_the_same_numbers_by_mkl(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    """Check that MKL and oneDNN add a product with few terms in the same order."""
    x, *parameters = drawn(1, batch=64, sizes=sizes)
    found = rectified(x, parameters, Rectifier())
    monkeypatch.setattr(kernels, "NARROW", 0)
    assert torch.equal(found, rectified(x, parameters, Rectifier()))


@pytest.mark.parametrize("slope", [0.0, 0.05])
def test_gradients_can_be_differentiated(slope: float) -> None:
    """Check the second derivatives that a gradient penalty needs."""

    def penalty(net: Net, tensors: list[Tensor]) -> list[Tensor]:
        tensors = [t.detach().requires_grad_() for t in tensors]
        out = net(tensors[0], tensors[1:], Rectifier(slope))
        (grad,) = torch.autograd.grad(out.sum(), tensors[0], create_graph=True)
        norm = (grad.norm(dim=-1) - 1.0).square().mean()
        weights = tensors[1::2]  # biases have no second derivative
        return [norm, *torch.autograd.grad(norm, weights)]

    tensors = drawn(2)
    for a, b in zip(penalty(rectified, tensors), penalty(plain, double(tensors)), strict=True):
        close(a.double(), b)


def test_takes_views_and_leaves_its_input() -> None:
    """Pass a transposed weight and, as twin critics do, one input for two runs."""
    x, first, *rest = drawn(2)
    x = x[:1].expand(2, -1, -1)
    first = first.mT.contiguous().mT
    kept = x.clone()
    close(
        rectified(x, [first, *rest], Rectifier()).double(),
        plain(x.double(), double([first, *rest]), Rectifier()),
    )
    assert torch.equal(x, kept)


@pytest.mark.parametrize("slope", [0.0, 0.05])
def test_what_is_not_finite_stays_so(slope: float) -> None:
    x, *parameters = drawn(2)
    x[1, 0, 0] = torch.nan
    out = rectified(x, parameters, Rectifier(slope))
    assert out[0].isfinite().all() and out[1, 1:].isfinite().all() and out[1, 0].isnan().all()


class Factors(TorchDispatchMode):
    """A mode that records the second factor of every product that oneDNN computes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "_linear_pointwise" in func.name():
            self.seen.append(args[1])
        return func(*args, **(kwargs or {}))


@needs_onednn
@pytest.mark.parametrize("runs", [1, 2])
def test_no_second_factor_is_part_of_wider_rows(monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    """Check that no product's second factor is a slice of an input's or a gradient's columns.

    With such a slice, oneDNN is a thousand times slower.
    """
    monkeypatch.setattr(kernels, "NARROW", 0)  # so that oneDNN computes every product
    x, *parameters = [t.requires_grad_() for t in drawn(runs, sizes=(64, 16, 4, 16))]
    with Factors() as noted:
        out = rectified(torch.cat([x, x], dim=-1)[..., :64], parameters, Rectifier())
        torch.cat([out, out.detach()], dim=-1).square().sum().backward()
    assert len(noted.seen) == 9 * runs
    for factor in noted.seen:
        assert factor.is_contiguous() or factor.mT.is_contiguous()


FAULTS = """
import resource, torch
from ngt.agent.kernels import keep_freed_memory
keep_freed_memory()
torch.set_num_threads(1)
def use():
    kept = [torch.ones(3 * 2**20) for _ in range(3)]  # 36 MB
for _ in range(30):  # until the heap no longer grows
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory")
def test_freed_memory_is_kept() -> None:
    """Check that tensors reuse the memory of earlier ones, which costs no page faults.

    Otherwise, the same tensors cost thousands of page faults in some processes, by chance.
    """
    command = [sys.executable, "-c", FAULTS]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 100
