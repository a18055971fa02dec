"""The paper's statements, compared with vectors, grids and hand-computed counter-examples."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ngt.potential import hl_gauss, hl_gauss_edges, hl_gauss_target, huber, mse_softmax
from paper.theory import bounds
from paper.theory.bounds import Slopes, judge
from tests.draws import rows

SIGMAS = [0.01, 0.05, 0.25, 0.5, 1.0, 3.0, 30.0]

# --- verdicts


@pytest.mark.parametrize(
    ("claimed", "found", "relation", "verdict"),
    [
        ([1.0, 2.0], [0.5, 2.0], "<=", "holds"),
        ([1.0, 2.0], [0.49, 2.0], "<=", "loose"),
        ([1.0, 2.0], [1.0, 2.1], "<=", "false"),
        ([1.0, 9.0], [1.1, 1.0], "<=", "false"),
        (1.0, [1.5, 2.0], ">=", "holds"),
        (1.0, [1.5, 2.5], ">=", "loose"),
        (1.0, [0.9, 2.5], ">=", "false"),
        (1.0, 1.0 + 1e-12, "==", "holds"),
        (1.0, 1.0 + 1e-6, "==", "false"),
        (1.0, 1.0 - 1e-6, "==", "false"),
        (0.0, 0.0, "==", "holds"),
        (1.0, 0.0, "<=", "loose"),
    ],
)
def test_verdicts_by_hand(claimed, found, relation, verdict) -> None:
    assert judge(claimed, found, relation) == verdict


def test_a_verdict_on_nothing_is_refused() -> None:
    for claimed in ([], [1.0, math.nan], math.inf):
        with pytest.raises(ValueError, match="finite"):
            judge(claimed, 1.0 if claimed != [] else [], "<=")


def test_slack_is_the_worst_factor() -> None:
    assert bounds.slack([2.0, 6.0], [1.0, 2.0], "<=") == 3.0
    assert bounds.slack([2.0, 6.0], [4.0, 6.0], ">=") == 2.0
    assert bounds.slack(1.0, 0.0, "<=") == math.inf


# --- HL-Gauss


def test_hlg_against_vectors(vectors) -> None:
    v = {k: a.numpy() for k, a in vectors("theory_hlg").items()}
    below = 0
    for i in range(len(v["N"])):
        setting = int(v["N"][i]), float(v["b"][i] - v["a"][i]), float(v["sigma"][i])
        p = bounds.p_max(*setting)
        for name, got in {
            "p_max": p,
            "p_max_estimate": bounds.p_max_estimate(*setting),
            "grad_sup": bounds.hlg_slope(*setting),
            "bound_p_max": bounds.bound_p_max(setting[0], p),
            "bound_sigma": bounds.bound_sigma(*setting),
        }.items():
            assert got == pytest.approx(float(v[name][i]), rel=1e-10), (name, setting)
        below += bounds.bound_sigma(*setting) < bounds.hlg_slope(*setting)
    assert below == (v["bound_sigma"] < v["grad_sup"]).sum()


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("bins", [2, 3, 21])
def test_the_edge_is_the_worst_place(bins: int, sigma: float) -> None:
    """Compare the closed forms for a target t at the edge with a search over t and all vertices."""
    t = np.linspace(0.0, 2.0, 4001)
    p = bounds.hlg_probs(t, bins, 2.0, sigma)
    np.testing.assert_allclose(p.sum(-1), 1.0, rtol=1e-12)
    assert p.max() == pytest.approx(bounds.p_max(bins, 2.0, sigma), rel=1e-12)
    worst = max(np.linalg.norm(np.eye(bins)[j] - p, axis=-1).max() for j in range(bins))
    assert worst == pytest.approx(bounds.hlg_slope(bins, 2.0, sigma), rel=1e-12)


def test_probabilities_are_those_of_the_code(float64) -> None:
    t = torch.linspace(-1.0, 1.0, 9)
    edges = hl_gauss_edges(-1.0, 1.0, 21)
    code = hl_gauss_target(t, edges, 0.25).mT.numpy()
    np.testing.assert_allclose(
        bounds.hlg_probs(t.numpy() + 1.0, 21, 2.0, 0.25), code, rtol=2e-6, atol=1e-12
    )


def test_theorem_sigma_fails_with_two_bins_by_hand(float64) -> None:
    """Check N = 2 bins on [-1, 1] with sigma = 1/2 and the target t = -1.

    The target has the probabilities p = (0.9546, 0.0454), and q = (0, 1) is sqrt(2) 0.9546 away.
    A normal table gives 0.9546 as (Phi(2) - 1/2) / (Phi(4) - 1/2) = 0.47725 / 0.49997.
    """
    slope, bound = bounds.hlg_slope(2, 2.0, 0.5), bounds.bound_sigma(2, 2.0, 0.5)
    assert slope == pytest.approx(math.sqrt(2.0) * 0.47725 / 0.49997, abs=1e-4)
    assert bound == pytest.approx(math.sqrt(1.0 + 4.0 / (2.0 * math.pi)), rel=1e-12)
    assert slope > 1.05 * bound
    logits = torch.tensor([-30.0, 30.0], requires_grad=True)
    hlg(0.5, 2)(logits, torch.tensor([-1.0])).backward()
    assert logits.grad is not None
    assert logits.grad.norm().item() == pytest.approx(slope, rel=3e-6), (
        "the code's own gradient must agree"
    )


def test_theorem_sigma_fails_at_the_papers_bins_but_not_at_its_widths() -> None:
    assert bounds.hlg_slope(21, 2.0, 0.75) > 1.006 * bounds.bound_sigma(21, 2.0, 0.75)
    for sigma in (0.05, 0.25):
        assert bounds.hlg_slope(21, 2.0, sigma) < bounds.bound_sigma(21, 2.0, sigma)


@given(st.integers(2, 60), st.floats(0.1, 20.0), st.floats(1e-3, 1e3))
def test_what_bounds_the_slope_everywhere(bins: int, width: float, sigma: float) -> None:
    slope, mass = bounds.hlg_slope(bins, width, sigma), bounds.p_max(bins, width, sigma)
    assert slope <= bounds.bound_mass(mass) * (1 + 1e-12)
    assert slope <= bounds.bound_p_max(bins, mass) * (1 + 1e-12)
    assert slope <= math.sqrt(2.0) * (1 + 1e-12)


def test_limits_in_sigma() -> None:
    assert bounds.hlg_slope(21, 2.0, 1e-3) == pytest.approx(math.sqrt(2.0), rel=1e-12)
    assert bounds.bound_sigma(21, 2.0, 1e-3) > 100.0, "the slope itself stays below sqrt(2)"
    assert bounds.hlg_slope(21, 2.0, 1e5) == pytest.approx(math.sqrt(20 / 21), rel=1e-8)
    assert bounds.bound_sigma(21, 2.0, 1e5) == pytest.approx(1.0, rel=1e-8)


def test_the_estimate_of_p_max_tends_to_half_of_it() -> None:
    """Check the lemma's limit, where bins are much narrower than sigma and the interval much wider.

    At the interval's edge, half of the Gaussian lies inside the interval.
    """
    assert bounds.p_max(10**6, 1000.0, 1.0) == pytest.approx(
        2.0 * bounds.p_max_estimate(10**6, 1000.0, 1.0), rel=1e-6
    )
    middle = bounds.hlg_probs(500.0, 10**6, 1000.0, 1.0).max()
    assert middle == pytest.approx(bounds.p_max_estimate(10**6, 1000.0, 1.0), rel=1e-6)


# --- pairing losses, compared with gradients of the code


def gradients(loss, prediction, target) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the norms of the gradients in prediction and target, shape (B,) each."""
    p, t = prediction.detach().requires_grad_(), target.detach().requires_grad_()
    parts = torch.autograd.grad(loss(p, t).sum(), (p, t))
    return parts[0].norm(dim=-1), parts[1].norm(dim=-1)


def hlg(sigma: float, bins: int):
    edges = hl_gauss_edges(-1.0, 1.0, bins)
    return lambda p, t: hl_gauss(p, hl_gauss_target(t, edges, sigma))


@pytest.mark.parametrize("m", [1, 8])
def test_huber_slopes(float64, m: int) -> None:
    slopes = bounds.huber_slopes(m, delta=0.5)
    got = gradients(lambda p, t: huber(p, t, 0.5), rows(500, m, scale=2.0), rows(500, m))
    for norms, slope in zip(got, slopes, strict=True):
        assert norms.max() <= slope * (1 + 1e-12)
    apart = gradients(lambda p, t: huber(p, t, 0.5), torch.ones(1, m), torch.zeros(1, m))
    assert [n.item() for n in apart] == pytest.approx(list(slopes)), (
        "the bound must be reached if all components differ"
    )


@pytest.mark.parametrize("m", [2, 8])
def test_mse_softmax_slopes(float64, m: int) -> None:
    slopes = bounds.mse_softmax_slopes()
    for scale in (0.5, 2.0, 8.0):
        got = gradients(mse_softmax, rows(2000, m, scale=scale), rows(2000, m, seed=1) * 9)
        for norms, slope in zip(got, slopes, strict=True):
            assert norms.max() <= slope * (1 + 1e-12)
    p, t = torch.full((1, m), -60.0), torch.full((1, m), -60.0)
    p[0, :2] = torch.tensor([1.0, 2.0]).log()
    t[0, 0] = 60.0
    reached, _ = gradients(mse_softmax, p, t)
    assert reached.item() == pytest.approx(slopes.prediction, rel=1e-9), (
        "p = (1/3, 2/3, 0, ...) must reach the bound"
    )


@pytest.mark.parametrize("m", [2, 3, 6])
def test_no_other_split_has_a_larger_softmax_slope(m: int) -> None:
    def negative(z: np.ndarray) -> float:
        p = np.exp(z - z.max())
        p /= p.sum()
        gap = p - np.eye(m)[0]
        return -2.0 * float(np.linalg.norm(p * (gap - p @ gap)))

    starts = np.random.default_rng(0).normal(size=(15, m)) * 2.0
    best = -min(minimize(negative, z).fun for z in starts)
    assert best == pytest.approx(bounds.mse_softmax_slopes().prediction, rel=1e-5)


@pytest.mark.parametrize("sigma", [0.05, 0.25, 2.0])
def test_hl_gauss_slopes(float64, sigma: float) -> None:
    m, bins, logit = 4, 21, 5.0
    slopes = bounds.hl_gauss_slopes(m, bins, 2.0, sigma, logit)
    p, t = rows(400, bins * m).tanh() * logit, rows(400, m, seed=1).tanh()
    for sign in (p, logit * p.sign()):
        for norms, slope in zip(gradients(hlg(sigma, bins), sign, t), slopes, strict=True):
            assert norms.max() <= slope * (1 + 1e-9)


def test_hl_gauss_slopes_are_reached(float64) -> None:
    m, bins, sigma, logit = 4, 20, 0.05, 5.0
    slopes = bounds.hl_gauss_slopes(m, bins, 2.0, sigma, logit)
    sides = torch.where(torch.arange(bins) < bins // 2, -logit, logit)
    p = sides[:, None].expand(bins, m).reshape(1, -1)
    _, target = gradients(hlg(sigma, bins), p, torch.zeros(1, m))  # 0 is the middle edge
    assert target.item() == pytest.approx(slopes.target, rel=1e-5)
    far = torch.zeros(bins, m)
    far[-1] = 60.0
    prediction, _ = gradients(hlg(sigma, bins), far.reshape(1, -1), -torch.ones(1, m))
    assert prediction.item() == pytest.approx(slopes.prediction, rel=1e-5)


def test_slopes_of_the_potential_by_hand() -> None:
    slopes = Slopes(0.5, 0.25).squashed(4.0, 2.0)
    assert slopes == (2.0, 0.5)
    assert slopes.potential(3.0, 10.0) == 11.0
    assert bounds.huber_slopes(16, 2.0) == (0.5, 0.5)


def test_largest_huber(float64) -> None:
    far = torch.full((1, 3), 5.0)
    assert bounds.largest_huber(5.0) == huber(far, -far).item() == 9.5
    assert bounds.largest_huber(0.25) == huber(far / 20, -far / 20).item()


# --- concentration


def test_the_two_sided_bound_fails_for_one_coin_a_side() -> None:
    """Check one fair coin for the expert and one for the agent.

    L^ is -1, 0 or 1 with probabilities 1/4, 1/2 and 1/4, so |L^ - L| >= 1 has probability 1/2.
    """
    assert bounds.coin_deviation(1, 1) == pytest.approx(0.5, rel=1e-12)
    assert bounds.concentration_bound(1.0, 1) == pytest.approx(math.exp(-1.0))
    assert bounds.coin_deviation(1, 1) > bounds.concentration_bound(1.0, 1)
    assert bounds.coin_deviation(1, 1) < bounds.two_sided_bound(1.0, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_coins_by_enumeration(n: int) -> None:
    heads = [bin(i).count("1") for i in range(2**n)]
    gaps = np.abs(np.subtract.outer(heads, heads)).ravel()
    for k in range(n + 2):
        assert bounds.coin_deviation(n, k) == pytest.approx((gaps >= k).mean(), abs=1e-12)


def test_the_corrected_bound_holds_for_coins() -> None:
    for n in range(1, 60):
        for k in range(1, n + 1):
            exact = bounds.coin_deviation(n, k)
            assert exact <= bounds.two_sided_bound(k / n, n)
            assert exact / 2.0 <= bounds.concentration_bound(k / n, n), (
                "by symmetry, each of the two tails has half the probability"
            )


def test_bounds_scale_with_slope_and_diameter() -> None:
    assert bounds.concentration_bound(6.0, 5, 2.0, 3.0) == bounds.concentration_bound(1.0, 5)
    assert bounds.two_sided_bound(0.01, 1) == 1.0


# --- duality


def test_emd_against_vectors(vectors) -> None:
    v = {k: a.numpy() for k, a in vectors("emd").items()}
    for i, exact in enumerate(v["emd"]):
        got = bounds.emd(*(v[f"{name}_{i}"] for name in "xyab"))
        assert got == pytest.approx(float(exact), abs=1e-9)


def test_emd_on_a_line_by_hand() -> None:
    x, y = np.array([[0.0], [1.0]]), np.array([[5.0], [3.0], [3.0], [3.0]])
    assert bounds.emd(x, y) == pytest.approx(3.0)
    weights = np.array([0.75, 0.25]), np.array([1.0, 0.0, 0.0, 0.0])
    assert bounds.emd(x, y, *weights) == pytest.approx(4.75)


@given(st.integers(0, 10**6))
def test_no_potential_is_worth_more_than_the_emd(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(6, 2)) + 1.0
    h = rng.normal(size=10)
    assert bounds.dual_value(x, y, h[:4], h[4:]) <= bounds.emd(x, y) + 1e-9


def test_dual_value_by_hand() -> None:
    x, y = np.array([[0.0]]), np.array([[3.0]])
    assert bounds.dual_value(x, y, np.array([1.0]), np.array([7.0])) == pytest.approx(3.0)
    assert bounds.dual_value(x, y, np.array([1.0]), np.array([1.0])) == 0.0
    points, values = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]), np.array([0.0, 5.0, 3.0])
    assert bounds.slope_on(points, values) == pytest.approx(3.0)


# --- imports


def test_imports_no_drawing_and_no_tables() -> None:
    loaded = "[m for m in ('matplotlib', 'pandas') if m in sys.modules]"
    code = f"import sys, paper.theory.bounds; print({loaded})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
