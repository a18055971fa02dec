"""The pairing losses, compared with plain loops and with the paper's HL-Gauss snippet."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

from ngt.potential import hl_gauss, hl_gauss_edges, hl_gauss_target, huber, mse_softmax
from tests.draws import rows

HLG = ["hlg_0", "hlg_1", "hlg_2", "hlg_3"]


def hlg_of(v, dtype):
    """Return the bin edges and target probabilities of a vector file in a given precision."""
    low, high = v["support"].tolist()
    edges = hl_gauss_edges(low, high, int(v["num_bins"])).to(dtype)
    return edges, hl_gauss_target(v["targets"].to(dtype), edges, float(v["sigma"]))


# --- Huber and MSE-softmax, against plain loops


@pytest.mark.parametrize("delta", [0.3, 1.0, 5.0])
def test_huber(float64, delta: float):
    p, t = rows(2, 3, 4, scale=2.0), rows(2, 3, 4, seed=1)
    got = huber(p, t, delta)
    for at in np.ndindex(2, 3):
        errors = (p[at] - t[at]).abs().tolist()
        terms = [e * e / 2 if e <= delta else delta * (e - delta / 2) for e in errors]
        assert got[at].item() == pytest.approx(sum(terms) / 4, rel=1e-12)


def test_huber_has_delta_one_by_default():
    p, t = rows(5, 8, scale=3.0), rows(5, 8, seed=1)
    assert torch.equal(huber(p, t), huber(p, t, 1.0))


def test_mse_softmax(float64):
    p, t = rows(2, 3, 4, scale=2.0), rows(2, 3, 4, seed=1)
    got = mse_softmax(p, t)
    for at in np.ndindex(2, 3):
        a, b = np.exp(p[at].numpy()), np.exp(t[at].numpy())
        expected = sum((a / a.sum() - b / b.sum()) ** 2)
        assert got[at].item() == pytest.approx(expected, rel=1e-12)
    assert mse_softmax(40 * p, -40 * p).max() <= 2.0  # a sum over outputs, not their mean


# --- HL-Gauss, against the paper's snippet


def unit_losses(logits, probs):
    """Return hl_gauss computed for one unit at a time, shape (B, m)."""
    units = probs.shape[-1]
    columns = [(logits[:, j::units], probs[..., j : j + 1]) for j in range(units)]
    return torch.stack([hl_gauss(*column) for column in columns], dim=1)


@pytest.mark.parametrize("name", HLG)
def test_hl_gauss_in_float64_everywhere(vectors, float64, name: str):
    v = vectors(name)
    _, probs = hlg_of(v, torch.float64)
    close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
    close(probs.mT, v["probs64"])
    close(probs.sum(-2), v["mass64"])
    logits = v["logits"].double().requires_grad_()
    h = hl_gauss(logits, probs)
    close(h, v["loss64_mean_units"])
    close(unit_losses(logits, probs), v["loss64"])
    (grad,) = torch.autograd.grad(probs.shape[-1] * h.sum(), logits)
    close(grad, v["grad_logits64"])


@pytest.mark.parametrize("name", HLG)
def test_hl_gauss_in_float32(vectors, name: str):
    v = vectors(name)
    low, high = v["support"]
    _, probs = hlg_of(v, torch.float32)
    # Outside the support, float32 cannot represent the difference of two erfs near one.
    torch.testing.assert_close(probs.mT, v["probs"], rtol=0, atol=2e-2)
    inside = (v["targets"] > low) & (v["targets"] < high)
    assert inside.any()
    close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5, check_dtype=False)
    logits = v["logits"].clone().requires_grad_()
    h = hl_gauss(logits, probs)
    (grad,) = torch.autograd.grad(probs.shape[-1] * h.sum(), logits)
    for end in ("", "64"):  # the official float32 values, then the independent float64 values
        close(probs.mT[inside], v[f"probs{end}"][inside])
        close(unit_losses(logits, probs)[inside], v[f"loss{end}"][inside])
        by_unit = [g.view(*probs.shape).mT[inside] for g in (grad, v[f"grad_logits{end}"])]
        close(*by_unit)


def test_hl_gauss_edges():
    edges = hl_gauss_edges(-1.0, 1.0, 21)
    assert edges.shape == (22,)
    np.testing.assert_allclose(edges, -1 + 2 * np.arange(22) / 21, atol=1e-7)


@pytest.mark.parametrize("sigma", [0.05, 0.25, 1.0])
def test_hl_gauss_mass_is_z_over_z_plus_eps(float64, sigma: float):
    edges = hl_gauss_edges(-1.0, 1.0, 21)
    t = torch.linspace(-2.0, 2.0, 81)
    mass = hl_gauss_target(t, edges, sigma).sum(-2)
    for value, got in zip(t.tolist(), mass.tolist(), strict=True):
        width = math.sqrt(2.0) * sigma
        z = math.erf((1 - value) / width) - math.erf((-1 - value) / width)
        assert got == pytest.approx(z / (z + 1e-6), abs=1e-12)


def test_hl_gauss_outside_the_support_fades():
    """Check that a narrow Gaussian gives little loss beyond 1.25 and almost none beyond 1.3."""
    edges = hl_gauss_edges(-1.0, 1.0, 21)
    logits = (5.0 * torch.tanh(rows(4, 21 * 8))).requires_grad_()
    inside = hl_gauss(logits, hl_gauss_target(rows(4, 8).tanh(), edges, 0.05))
    (full,) = torch.autograd.grad(inside.sum(), logits)
    for t, share in ((1.26, 0.4), (1.3, 0.01), (1.5, 1e-6), (5.0, 0.0), (-1.5, 1e-6)):
        h = hl_gauss(logits, hl_gauss_target(torch.full((4, 8), t), edges, 0.05))
        (grad,) = torch.autograd.grad(h.sum(), logits)
        assert h.max() <= share * inside.max(), t
        assert grad.abs().max() <= share * full.abs().max(), t


def test_hl_gauss_puts_the_mass_where_the_target_is(float64):
    edges = hl_gauss_edges(-1.0, 1.0, 20)
    t = torch.tensor([-0.97, -0.31, 0.02, 0.99])
    probs = hl_gauss_target(t, edges, 0.02)
    assert probs.argmax(dim=0).tolist() == [0, 6, 10, 19]
    centres = (edges[1:] + edges[:-1]) / 2
    wide = hl_gauss_target(t[1:3], edges, 0.1)
    torch.testing.assert_close(centres @ wide, t[1:3], rtol=0, atol=1e-3)


def test_hl_gauss_is_least_where_the_prediction_is_the_target(float64):
    """Check that the loss is lowest if logits are the target's log-probabilities.

    It is then the target's entropy.
    """
    probs = hl_gauss_target(rows(6, 4).tanh(), hl_gauss_edges(-1, 1, 11), 0.2)
    best = hl_gauss(probs.clamp(min=1e-30).log().flatten(-2), probs)
    entropy = -(probs * probs.clamp(min=1e-30).log()).sum(-2).mean(-1)
    torch.testing.assert_close(best, entropy, rtol=0, atol=1e-5)  # probabilities sum to 1 - 5e-7
    assert (hl_gauss(rows(6, 44), probs) > best).all()
