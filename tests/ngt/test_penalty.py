"""Gradient penalty and spectral norm, compared with formulas written out here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from baselines.dac import Dac, DacConfig
from baselines.red import Red
from baselines.wdac import Wdac
from ngt.agent.nets import PackedMLP
from ngt.agent.streams import Streams
from ngt.errors import UserError
from ngt.experience.replay import Batch
from ngt.potential import Potential, PotentialConfig
from ngt.reward import Spec

OBS, ACT, BATCH = 3, 2, 6
Array = NDArray[np.float64]
Make = Callable[..., Any]
SPEC = Spec(OBS, ACT, "state-action", BATCH, (1, 2), 100, 4, 0.99)


def build(cls: type, config: Any, spec: Spec = SPEC) -> Any:
    """Return a model of two runs with non-zero biases and one iteration's random draws."""
    model = cls(config, spec)
    for place, parameter in enumerate(p for p in model.parameters() if p.requires_grad):
        g = torch.Generator().manual_seed(place)
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=g)
    model.noise = Streams(spec.seeds, model.draws()).next()
    return model


def sides(make_batch: Make) -> tuple[Batch, Batch]:
    return make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)


def outputs(net: PackedMLP, run: int, x: Array, leak: float) -> Array:
    """Return one run's outputs by NumPy. Spectral norm divides W by l' W r (singular vectors)."""
    layers: Sequence[Any] = net.layers
    for depth, layer in enumerate(layers):
        weight = layer.weight.detach()[run].numpy()
        if hasattr(layer, "left"):
            left, right = layer.left[run].numpy(), layer.right[run].numpy()
            weight = weight / (left.T @ weight @ right).item()
        x = x @ weight + layer.bias.detach()[run].numpy()
        if depth < len(layers) - 1:
            x = np.where(x > 0, x, leak * x)
    return x


def between(model: Any, agent: Batch, expert: Batch, run: int) -> Array:
    """Return the points between agent and expert inputs at which the penalty is computed."""
    e, a = (model.inputs(side)[run].numpy() for side in (expert, agent))
    share = model.noise["epsilon"][run].numpy()[:, None]
    return np.asarray(share * e + (1.0 - share) * a)


def penalty(f: Callable[[Array], Array], x: Array, step: float = 1e-6) -> float:
    """Return the mean of (|grad f| - 1)^2 over the rows of x, by central differences."""
    moves = step * np.eye(x.shape[1])
    grads = np.stack([(f(x + m) - f(x - m)) / (2 * step) for m in moves], axis=-1)
    return float(np.mean((np.linalg.norm(grads, axis=-1) - 1.0) ** 2))


# --- the adversarial methods, with gradient penalty or spectral norm


@pytest.mark.parametrize("spectral_norm", [False, True])
@pytest.mark.parametrize("weight", [0.0, 4.0])
@pytest.mark.parametrize("cls", [Dac, Wdac])
def test_adversarial_loss_with_either_switch(
    float64: None, make_batch: Make, cls: type, weight: float, spectral_norm: bool
) -> None:
    config = DacConfig(hidden=(6, 5), penalty=weight, spectral_norm=spectral_norm)
    model, (agent, expert) = build(cls, config), sides(make_batch)
    got = model.loss(agent, expert)
    for run in range(2):

        def value(x: Array, run: int = run) -> Array:
            return outputs(model.net, run, x, config.leak)[:, 0]

        e, a = (value(model.inputs(side)[run].numpy()) for side in (expert, agent))
        if cls is Dac:
            plain = np.log1p(np.exp(-e)).mean() + np.log1p(np.exp(a)).mean()
        else:
            plain = a.mean() - e.mean()
        if weight:
            plain += weight * penalty(value, between(model, agent, expert, run))
        assert got[run].item() == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("cls", [Dac, Wdac])
def test_spectral_norm_bounds_the_slope_in_training(make_batch: Make, cls: type) -> None:
    """Check that spectral norm keeps a critic without penalty from becoming steep."""
    found = {}
    for on in (False, True):
        model = build(cls, DacConfig(hidden=(16, 16), penalty=0.0, spectral_norm=on, lr=3e-3))
        for step in range(200):
            agent, expert = (make_batch(2, BATCH, OBS, ACT, seed=step + k) for k in (0, 1000))
            model.update(agent, expert)
        found[on] = float(model.net.lipschitz().max())
    assert found[True] < 1.3 < 2.0 < found[False]


@pytest.mark.parametrize("cls", [Dac, Wdac])
def test_no_weight_means_no_draw_and_no_pass(make_batch: Make, cls: type) -> None:
    model = build(cls, DacConfig(hidden=(6, 5), penalty=0.0))
    assert model.draws() == {}
    model.update(*sides(make_batch))
    assert "gradient_penalty" not in model.metrics


# --- NGT


def squashed(model: Potential, run: int, x: Array) -> tuple[Array, Array]:
    c = model.config
    nets = (model.predictor, model.prior)
    f, t = (np.tanh(outputs(net, run, x, c.leak)) for net in nets)
    return c.rescale * f, t if c.pairing == "hl_gauss" else c.rescale * t


def potential(model: Potential, run: int, x: Array) -> Array:
    """Return the potential h of the rows of x, shape (B,)."""
    c = model.config
    f, t = squashed(model, run, x)
    if c.pairing == "l1":
        return np.asarray(np.abs(f - t).mean(axis=1))
    if c.pairing == "huber":
        e = np.abs(f - t)
        return np.asarray(np.where(e <= 1.0, e * e / 2.0, e - 0.5).mean(axis=1))
    if c.pairing == "mse_softmax":
        p, q = (np.exp(v) / np.exp(v).sum(axis=1, keepdims=True) for v in (f, t))
        return np.asarray(((p - q) ** 2).sum(axis=1))
    edges = torch.linspace(-1.0, 1.0, c.bins + 1)
    z = torch.erf((edges[:, None] - torch.from_numpy(t)[:, None]) / (2.0**0.5 * c.sigma_expert))
    mass = ((z[:, 1:] - z[:, :-1]) / (z[:, -1:] - z[:, :1] + 1e-6)).numpy()
    logits = f.reshape(len(x), c.bins, c.m)
    log_q = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return np.asarray(-(mass * log_q).sum(axis=1).mean(axis=1))


@pytest.mark.parametrize("pairing", ["huber", "mse_softmax", "hl_gauss", "l1"])
def test_ngt_adds_the_penalty_of_the_whole_potential(
    float64: None, make_batch: Make, pairing: Any
) -> None:
    """Check that the penalty differentiates the prior too, instead of taking it as constant."""
    config = PotentialConfig(hidden=(6, 5), m=3, pairing=pairing, penalty=4.0, bins=5)
    model, (agent, expert) = build(Potential, config), sides(make_batch)
    got = model.loss(agent, expert)
    plain = model.metrics["h_expert"] - model.metrics["h_agent"]
    for run in range(2):

        def h(x: Array, run: int = run) -> Array:
            return potential(model, run, x)

        ours = penalty(h, between(model, agent, expert, run))
        assert model.metrics["gradient_penalty"][run].item() == pytest.approx(ours, rel=1e-5)
        assert got[run].item() == pytest.approx(plain[run].item() + 4.0 * ours, rel=1e-5)


@pytest.mark.parametrize("pairing", ["huber", "hl_gauss"])
def test_ngts_penalty_trains_the_predictor_alone(make_batch: Make, pairing: Any) -> None:
    model = build(Potential, PotentialConfig(hidden=(6, 5), m=3, pairing=pairing, penalty=4.0))
    prior = [p.clone() for p in model.prior.parameters()]
    model.update(*sides(make_batch))
    assert all(map(torch.equal, prior, model.prior.parameters()))
    assert all(p.grad.isfinite().all() for p in model.predictor.parameters())


def test_ngt_without_a_weight_draws_nothing_and_keeps_its_loss(make_batch: Make) -> None:
    model = build(Potential, PotentialConfig(hidden=(6, 5), m=3))
    assert model.draws() == {}
    got: Tensor = model.loss(*sides(make_batch))
    assert torch.equal(got, model.metrics["h_expert"] - model.metrics["h_agent"])
    assert "gradient_penalty" not in model.metrics


def test_red_refuses_a_penalty() -> None:
    with pytest.raises(UserError, match="use 0"):
        Red(PotentialConfig(penalty=1.0), SPEC)
