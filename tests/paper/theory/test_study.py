"""The numbers in the theory's table and figure, compared with other ways to compute them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from ngt.experience import demos
from ngt.seeding import rng
from paper.theory import bounds, study
from paper.theory.study import COINS, PAIRINGS, SAMPLES, SIGMAS, SIZES, build, slopes


def test_samples_are_demonstrations_and_disturbed_ones() -> None:
    expert, agent = study.samples()
    assert expert.shape == agent.shape == (SAMPLES, 23)
    whole = demos.load(study.DEMOS)
    recorded = {row.tobytes() for row in whole.obs}
    assert all(row.tobytes() in recorded for row in expert[:, :17].float().numpy())
    shift = (agent - expert)[:, :17] / expert[:, :17].std(0)
    assert abs(shift.std().item() - 1.0) < 0.05, "the noise must have the spread of the states"
    actions = agent[:, 17:].flatten()
    assert actions.abs().max() <= 1.0 and abs(actions.var().item() - 1 / 3) < 0.05
    for side, again in zip((expert, agent), study.samples(), strict=True):
        assert torch.equal(side, again)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_gradient_of_h_is_that_of_differences(pairing: str) -> None:
    """Compare the potential's whole gradient, also through the prior, with central differences."""
    model, step = build(5, pairing=pairing, leak=0.5), 1e-6
    x = torch.randn(1, 1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = study.potential(model, x.requires_grad_())
    assert torch.equal(h, model.potential(x, model.config.reward_sigma))
    (got,) = torch.autograd.grad(h.sum(), x)
    for i in range(5):
        shift = torch.zeros_like(x)
        shift[..., i] = step
        high, low = (study.potential(model, x.detach() + s * shift) for s in (1, -1))
        assert got[0, 0, i].item() == pytest.approx((high - low).item() / (2 * step), abs=1e-7)


def test_slopes_by_hand() -> None:
    assert slopes(build(3, m=16)) == (1.25, 1.25), "the slope is that of 5 tanh, over sqrt(16)"
    assert slopes(build(3, delta=0.5, m=4, rescale=2.0)) == (0.5, 0.5)
    softmax = slopes(build(3, pairing="mse_softmax", rescale=2.0))
    assert softmax.prediction == softmax.target == pytest.approx(32 * math.sqrt(2) / 27)
    hlg = slopes(build(3, pairing="hl_gauss", m=4, sigma_expert=0.5))
    assert hlg.prediction == pytest.approx(5 * bounds.hlg_slope(21, 2.0, 0.5) / 2)
    assert hlg.target == pytest.approx(5 * math.sqrt(2 / math.pi) / 0.5 / 2)
    narrow = slopes(build(3, pairing="hl_gauss", m=4, reward_sigma="agent"))
    assert narrow.target == pytest.approx(5 * math.sqrt(2 / math.pi) / 0.05 / 2)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("init", ["orthogonal", "kaiming"])
def test_the_chain_bounds_every_gradient(pairing: str, init: str) -> None:
    """Check the gradient bound for steep nets without spectral norm, at inputs near their kinks."""
    options = {"init": init, "head_init": init, "m": 4, "hidden": (8,), "leak": 1.0}
    model = build(3, pairing=pairing, spectral_norm=False, **options)
    points = torch.randn(4000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    _, gradient = study._gradient(model, points)
    nets = model.predictor.lipschitz().item(), model.prior.lipschitz().item()
    chain = slopes(model).potential(*nets)
    assert gradient <= chain <= max(slopes(model)) * sum(nets) * (1 + 1e-12)
    assert gradient > chain / 60, "the bound must not be so loose that it hides a mistake"


def test_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "STEPS", (0, 30))
    expert, agent = study.samples()
    t = study.train("huber", expert, agent)
    model = build(23)
    points = torch.cat([expert, agent])
    with torch.no_grad():
        h = model.potential(points[None], "expert")[0]
    gap = (h[SAMPLES:].mean() - h[:SAMPLES].mean()).item()
    assert t.objective[0] == pytest.approx(gap, rel=1e-9), "the first value must be -L"
    slope = bounds.slope_on(points.numpy(), h.numpy())
    assert t.dual[0] == pytest.approx(gap / slope, rel=1e-9)
    assert t.objective[1] > 3 * t.objective[0] and t.dual[1] > 1.5 * t.dual[0]
    assert (t.dual <= bounds.emd(expert.numpy(), agent.numpy())).all()
    assert (t.gradient <= t.chain).all() and (t.pairs <= t.chain).all()
    np.testing.assert_allclose(t.chain, t.product, err_msg="Huber's two slopes are equal")
    assert t.product[0] == pytest.approx(10 / math.sqrt(32), rel=1e-4)
    assert t.layer[0] == pytest.approx(1.0, abs=1e-5) and t.layer[1] > 1.02
    again = study.train("huber", expert, agent)
    for field in dataclasses.fields(t):
        np.testing.assert_array_equal(getattr(t, field.name), getattr(again, field.name))


def test_the_product_has_the_larger_slope_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "STEPS", (0,))
    t = study.train("hl_gauss", *study.samples())
    pair = slopes(build(23, pairing="hl_gauss"))
    assert pair.target > pair.prediction
    assert t.product[0] == pytest.approx(2 * pair.target, rel=1e-5)
    assert t.chain[0] == pytest.approx(pair.target + pair.prediction, rel=1e-5)


def test_a_predictor_that_equals_the_prior() -> None:
    product, slope = study.twin(study.samples()[0])
    assert slope == 0.0
    assert product == pytest.approx(10 / math.sqrt(32), rel=1e-5)


def test_fresh_layers() -> None:
    found = study.layers(torch.cat(study.samples()))
    assert found.shapes == ((23, 256), (256, 256), (256, 32))
    assert [len(values) for values in found.singular] == [23, 256, 32]
    np.testing.assert_allclose(np.concatenate(found.singular), 1.0, atol=1e-5)
    np.testing.assert_allclose(found.least_gain, [1.0, 1.0, 0.0], atol=1e-5)
    assert (found.change < 1e-5).all()
    assert 0.2 < found.local < 1.0


def test_the_local_slope_is_the_jacobians() -> None:
    net = build(5).prior
    points = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    jacobians = [
        torch.autograd.functional.jacobian(lambda x: net(x[None, None])[0, 0], x) for x in points
    ]
    largest = max(torch.linalg.svdvals(j)[0].item() for j in jacobians)
    assert study.local_slope(net, points) == pytest.approx(largest, rel=1e-12)


def test_the_slope_in_the_target() -> None:
    config = study.PotentialConfig()
    for sigma in (0.02, 0.05):
        bound = bounds.hlg_target_slope(sigma, 5.0)
        assert study.target_slope(config, sigma) == pytest.approx(bound, rel=1e-4)
    assert study.target_slope(config, 3.0) < 0.5 * bounds.hlg_target_slope(3.0, 5.0)


def test_grid() -> None:
    g = study.hlg()
    row, column = study.BINS.index(21), 60
    sigma = float(SIGMAS[column])
    assert g.slope[row, column] == bounds.hlg_slope(21, 2.0, sigma)
    assert g.bound_sigma[row, column] == bounds.bound_sigma(21, 2.0, sigma)
    mass = bounds.p_max(21, 2.0, sigma)
    assert g.bound_p_max[row, column] == bounds.bound_p_max(21, mass)
    assert g.mass[row, column] / g.estimate[row, column] == pytest.approx(
        mass / bounds.p_max_estimate(21, 2.0, sigma)
    )


def test_laws() -> None:
    values = study.one_law(2)
    assert values.shape == (len(SIZES), study.DRAWS)
    first = rng(0, "theory", "one law").random((2, SIZES[0], 2)) / math.sqrt(2.0)
    assert values[0, 0] == pytest.approx(bounds.emd(*first)), "the square must have diameter 1"
    mean = values.mean(axis=1)
    assert (np.diff(mean) < 0).all() and mean[-1] < 0.5 * mean[0], (
        "the EMD must shrink fast in the plane"
    )
    epsilon = np.array([0.05, 0.1])
    spread = (
        math.sqrt(COINS / 6) / COINS
    )  # for a difference of two means with variance 1 / 12 n each
    normal = [math.erfc(e / (math.sqrt(2) * spread)) for e in epsilon]
    np.testing.assert_allclose(study.uniform(epsilon), normal, atol=0.01)
    assert study.far(study.PotentialConfig()) == (pytest.approx(100.0), 9.5)
