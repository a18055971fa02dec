"""Adam for a pack and gradient clipping per run, compared with torch's versions.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from ngt.agent.optim import adam, clip_grad_norm_per_run_, descend, step_
from tests.draws import rows


@pytest.mark.parametrize("limit", [1e-3, 1.0, 20.0, 1e6])
def test_clip_per_run_is_torch_run_by_run(float64, limit):
    shapes = [(3, 4, 5), (3, 1, 5), (3, 2, 5, 2)]
    packed = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    unused = torch.nn.Parameter(torch.zeros(3, 1))
    for i, p in enumerate(packed):
        p.grad = rows(*p.shape, seed=i) * torch.tensor([1.0, 10.0, 0.1]).view(
            3, *[1] * (p.dim() - 1)
        )
    singles = [[torch.nn.Parameter(torch.zeros(s[1:])) for s in shapes] for _ in range(3)]
    expected = []
    for run, own in enumerate(singles):
        for p, q in zip(own, packed, strict=True):
            p.grad = q.grad[run].clone()
        expected.append(torch.nn.utils.clip_grad_norm_(own, limit))
    norms = clip_grad_norm_per_run_([*packed, unused], limit)
    torch.testing.assert_close(norms, torch.stack(expected), rtol=1e-12, atol=0)
    for run, own in enumerate(singles):
        for p, q in zip(own, packed, strict=True):
            torch.testing.assert_close(q.grad[run], p.grad, rtol=1e-12, atol=0)
    assert unused.grad is None


def test_clip_of_a_broken_run_leaves_the_others():
    p = torch.nn.Parameter(torch.zeros(3, 4))
    p.grad = torch.ones(3, 4)
    p.grad[1] = torch.nan
    clip_grad_norm_per_run_([p], 1.0)
    assert torch.allclose(p.grad[[0, 2]], torch.tensor(0.5))
    assert p.grad[1].isnan().all()


def adam_after(start: list[torch.Tensor], step: Callable[[torch.optim.Optimizer], object]) -> Any:
    """Return the parameters after 20 steps of Adam on the same gradients, and Adam's state."""
    parameters = [torch.nn.Parameter(p.clone()) for p in start]
    optimiser = adam(parameters, 1e-2)
    for i in range(20):
        for p, first in zip(parameters, start, strict=True):
            p.grad = torch.sin((i + 1.0) * (first + 0.1))
        step(optimiser)
    return parameters, [optimiser.state[p] for p in parameters]


def test_a_step_is_adams_and_no_run_of_it_depends_on_the_others() -> None:
    g = torch.Generator().manual_seed(0)
    start = [torch.randn(3, *shape, generator=g) for shape in [(5, 16), (1, 12), (2, 1, 1), ()]]
    ours, states = adam_after(start, step_)
    theirs, known = adam_after(start, lambda optimiser: optimiser.step())
    for a, b in zip(
        [*ours, *map(dict.values, states)], [*theirs, *map(dict.values, known)], strict=True
    ):
        torch.testing.assert_close([*a], [*b], rtol=1e-6, atol=1e-7)
    for run in range(3):
        alone, _ = adam_after([p[run : run + 1] for p in start], step_)
        for a, b in zip(alone, ours, strict=True):
            assert torch.equal(a[0], b[run])


def test_a_loss_of_two_sets_of_parameters_moves_both() -> None:
    """Check that each set of parameters moves by its own optimiser and by this loss alone."""
    one, two = (nn.Parameter(torch.full((2, 3), value)) for value in (1.0, 2.0))
    optimisers = adam([one], 0.1), adam([two], 0.01)
    two.grad = torch.full((2, 3), -1e9)  # left by another loss; must be discarded
    descend(optimisers[0], (one * two).sum(dim=1), further=optimisers[1:])
    assert torch.allclose(one, torch.full((2, 3), 0.9))
    assert one.grad is not None and torch.equal(one.grad, torch.full((2, 3), 2.0))
    assert torch.allclose(two, torch.full((2, 3), 1.99))


@pytest.mark.slow
def test_an_optimiser_does_not_import_torchs_compiler():
    """Importing the compiler would take seconds at the start of each training job."""
    code = (
        "import sys, torch; from ngt.agent.optim import adam, step_; "
        "p = torch.nn.Parameter(torch.ones(2, 3)); optimiser = adam([p], 0.1); "
        "p.sum().backward(); step_(optimiser); assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
