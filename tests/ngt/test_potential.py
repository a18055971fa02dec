"""NGT's potential, compared with plain loops for each option, and its numerical properties.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ngt.agent.sac import Sac
from ngt.agent.streams import Draw, Streams
from ngt.experience.replay import Batch, Replay
from ngt.potential import Potential, PotentialConfig, hl_gauss_edges, scale_by_percentiles
from ngt.reward import Spec
from ngt.settings.config import SacConfig
from tests.draws import rows

OBS, ACT = 5, 2
PAIRINGS = ["huber", "mse_softmax", "hl_gauss", "l1"]
MODES = ["state-action", "state-state", "state-only"]


def build(seeds=(1,), mode="state-action", obs=OBS, act=ACT, **options) -> Potential:
    config = PotentialConfig(**{"hidden": (32, 32), "m": 8, **options})
    return Potential(config, Spec(obs, act, mode, 16, seeds, 1000, 4, 0.99))


def batch_of(x: torch.Tensor, obs: int) -> Batch:
    """Return transitions whose observations and actions are the columns of x (R, B, obs + act)."""
    return Batch(x[..., :obs], x[..., obs:], x[..., :obs], x[..., 0], x[..., 0])


def snapshot(model: Potential) -> list[torch.Tensor]:
    """Return copies of the weights, singular vectors and optimiser moments."""
    moments = [t for s in model.optimiser.state.values() for t in s.values()]
    return [t.detach().clone() for t in [*model.state_dict().values(), *moments]]


def equal(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(map(torch.equal, a, b))


# --- plain loops


def plain_outputs(model, run, x):
    """Return the outputs of predictor and prior for one input, squashed if `squash` is on."""
    outs = []
    for net in (model.predictor, model.prior):
        y = x
        for depth, layer in enumerate(net.layers):
            y = y @ layer.matrix().detach()[run].numpy() + layer.bias.detach()[run, 0].numpy()
            if depth < len(net.layers) - 1:
                y = np.where(y > 0, y, model.config.leak * y)
        outs.append(y)
    c = model.config
    if not c.squash:
        return [list(side) for side in outs]
    own_scale = c.pairing == "hl_gauss" and c.hlg_target == "tanh"
    f = [c.rescale * math.tanh(v) for v in outs[0]]
    t = [(1.0 if own_scale else c.rescale) * math.tanh(v) for v in outs[1]]
    return f, t


def plain_h(model: Potential, run: int, x: np.ndarray, sigma: float) -> float:
    c = model.config
    f, t = plain_outputs(model, run, x)
    if c.pairing == "huber":
        errors = [abs(a - b) for a, b in zip(f, t, strict=True)]
        terms = [e * e / 2 if e <= c.delta else c.delta * (e - c.delta / 2) for e in errors]
        return sum(terms) / c.m
    if c.pairing == "l1":
        return sum(abs(a - b) for a, b in zip(f, t, strict=True)) / c.m
    if c.pairing == "mse_softmax":
        p, q = ([math.exp(v) for v in side] for side in (f, t))
        return sum((a / sum(p) - b / sum(q)) ** 2 for a, b in zip(p, q, strict=True))
    edges = [-c.support + 2 * c.support * i / c.bins for i in range(c.bins + 1)]
    total = 0.0
    for unit in range(c.m):
        logits = [f[i * c.m + unit] for i in range(c.bins)]  # the layout is bin-major
        log_sum = math.log(sum(math.exp(v) for v in logits))
        z = [math.erf((e - t[unit]) / (math.sqrt(2.0) * sigma)) for e in edges]
        for i in range(c.bins):
            mass = (z[i + 1] - z[i]) / (z[-1] - z[0] + 1e-6)
            total -= mass * (logits[i] - log_sum)
    return total / c.m


@pytest.mark.parametrize(
    "options",
    [
        {"pairing": "huber"},
        {"pairing": "huber", "delta": 0.2, "rescale": 2.0, "leak": 0.3, "spectral_norm": False},
        {"pairing": "huber", "squash": False, "hidden": (6, 5, 4), "init": "uniform", "leak": 0.2},
        {"pairing": "l1"},
        {"pairing": "mse_softmax"},
        {"pairing": "mse_softmax", "squash": False},
        {"pairing": "mse_softmax", "rescale": 1.0, "init": "kaiming"},
        {"pairing": "hl_gauss"},
        {"pairing": "hl_gauss", "sigma_agent": 0.1},
        {"pairing": "hl_gauss", "reward_sigma": "agent", "bins": 7},
        {"pairing": "hl_gauss", "hlg_target": "rescaled", "sigma_expert": 0.4, "sigma_agent": 0.6},
        {"pairing": "hl_gauss", "hlg_target": "rescaled", "support": 5.0, "rescale": 3.0},
    ],
    ids=lambda o: "-".join(map(str, o.values())),
)
def test_loss_and_reward_equal_plain_loops(float64, make_batch, options):
    """Check that the loss is the mean h of the expert's batch minus that of the agent's batch."""
    options = {"m": 3, "hidden": (6, 5), "scaling": "none", **options}
    model = build(seeds=(1, 2), **options)
    for i, p in enumerate(model.predictor.parameters()):
        p.data += 0.2 * rows(*p.shape, seed=i)
    model.predictor.power_iteration(100)
    agent, expert = make_batch(2, 5, OBS, ACT, scale=3.0), make_batch(2, 3, OBS, ACT, seed=1)
    got = model.loss(agent, expert)
    c = model.config
    reward_sigma = c.sigma_agent if c.reward_sigma == "agent" else c.sigma_expert
    reward = model.reward(agent)
    for run in range(2):
        x_agent, x_expert = (model.inputs(b)[run].numpy() for b in (agent, expert))
        h_expert = sum(plain_h(model, run, x, c.sigma_expert) for x in x_expert) / 3
        h_agent = sum(plain_h(model, run, x, c.sigma_agent) for x in x_agent) / 5
        assert got[run].item() == pytest.approx(h_expert - h_agent, rel=1e-9)
        assert model.metrics["h_expert"][run].item() == pytest.approx(h_expert, rel=1e-9)
        assert model.metrics["h_agent"][run].item() == pytest.approx(h_agent, rel=1e-9)
        expected = [math.exp(-plain_h(model, run, x, reward_sigma)) for x in x_agent]
        assert reward[run].tolist() == pytest.approx(expected, rel=1e-9)
        if c.pairing == "hl_gauss":
            targets = [plain_outputs(model, run, x)[1] for x in (*x_expert, *x_agent)]
            outside = np.mean(np.abs(targets) > c.support)
            assert model.metrics["hlg_outside"][run].item() == pytest.approx(outside)


# --- input modes


@pytest.mark.parametrize("mode", MODES)
def test_inputs_by_mode(make_batch, mode):
    model, batch = build(mode=mode), make_batch(1, 6, OBS, ACT)
    second = {"state-action": [batch.action], "state-state": [batch.next_obs], "state-only": []}
    expected = torch.cat([batch.obs, *second[mode]], dim=-1)
    assert torch.equal(model.inputs(batch), expected)
    assert model.spec.input == expected.shape[-1]
    assert model.predictor.layers[0].weight.shape[1] == expected.shape[-1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_reward_looks_at_what_its_mode_says(make_batch, mode, pairing):
    model, batch = build(mode=mode, pairing=pairing, scaling="none"), make_batch(1, 6, OBS, ACT)
    reward = model.reward(batch)
    seen = {"obs", *{"state-action": ["action"], "state-state": ["next_obs"]}.get(mode, [])}
    for name in Batch._fields:
        shuffled = batch._replace(**{name: getattr(batch, name).roll(1, dims=1)})
        same = torch.equal(model.reward(shuffled), reward)
        assert same == (name not in seen), name


# --- prior, spectral norm and initialisation


@pytest.mark.parametrize("spectral_norm", [True, False])
@pytest.mark.parametrize("init", ["orthogonal", "kaiming"])
def test_prior_is_frozen_with_unit_norms(make_batch, spectral_norm: bool, init):
    model = build(seeds=(1, 2), spectral_norm=spectral_norm, init=init, head_init=init)
    norms = [torch.linalg.svdvals(layer.weight)[:, 0] for layer in model.prior.layers]
    unit = spectral_norm or init == "orthogonal"
    for norm in norms:
        assert ((norm - 1.0).abs() < 1e-5).all() == unit
    before = [t.clone() for t in model.prior.state_dict().values()]
    for step in range(20):
        model.update(make_batch(2, 8, OBS, ACT, seed=step), make_batch(2, 8, OBS, ACT, seed=-step))
    assert equal(before, list(model.prior.state_dict().values()))
    own = {id(p) for p in model.predictor.parameters()}
    trained = {id(p) for group in model.optimiser.param_groups for p in group["params"]}
    assert trained == own
    assert all(p.grad is None for p in model.prior.parameters())


def test_prior_predictor_and_runs_start_differently():
    model = build(seeds=(1, 2))
    own, frozen = (net.layers[0].weight.detach() for net in (model.predictor, model.prior))
    assert not torch.isclose(own, frozen).any()
    for weight in (own, frozen):
        assert not torch.isclose(weight[0], weight[1]).any()


@pytest.mark.parametrize("spectral_norm", [True, False])
def test_spectral_norm_is_a_switch(spectral_norm: bool):
    model = build(spectral_norm=spectral_norm)
    for net, divided in ((model.predictor, spectral_norm), (model.prior, False)):
        for layer in net.layers:
            layer.weight.data *= 3.0
        net.power_iteration(20)
        assert net.lipschitz().item() == pytest.approx(1.0 if divided else 27.0, rel=1e-3)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_spectral_norm_keeps_the_orthogonal_init(pairing):
    model = build(seeds=(1, 2), pairing=pairing, hidden=(64, 48))
    plain = build(seeds=(1, 2), pairing=pairing, hidden=(64, 48), spectral_norm=False)
    for layer, same in zip(model.predictor.layers, plain.predictor.layers, strict=True):
        torch.testing.assert_close(layer.matrix(), same.weight, rtol=0, atol=1e-6)
        for w in layer.matrix().detach():
            gram = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
            assert (gram - torch.eye(len(gram))).abs().max() < 1e-3
    assert (model.predictor.lipschitz() - 1.0).abs().max() < 1e-3


def test_spectral_norm_of_a_kaiming_net_starts_near_one():
    norms = build(seeds=range(8), init="kaiming", head_init="kaiming").predictor.lipschitz()
    assert (norms >= 1.0 - 1e-4).all() and (norms < 1.2).all()


@pytest.mark.parametrize("head_init", ["orthogonal", "kaiming"])
@pytest.mark.parametrize("net", ["predictor", "prior"])
def test_head_init_changes_the_head_of_both_nets_alone(head_init, net):
    other = {"orthogonal": "kaiming", "kaiming": "orthogonal"}[head_init]
    a, b = (
        build(seeds=(1, 2), init=other, head_init=h, spectral_norm=False)
        for h in (head_init, other)
    )
    layers = list(zip(getattr(a, net).layers, getattr(b, net).layers, strict=True))
    assert all(torch.equal(x.weight, y.weight) for x, y in layers[:-1])
    assert not torch.isclose(layers[-1][0].weight, layers[-1][1].weight).any()


@pytest.mark.parametrize(
    ("pairing", "settings", "holds"),
    [
        ("huber", {}, True),
        ("hl_gauss", {}, True),
        ("huber", {"power_iterations": 1}, True),
        ("huber", {"spectral_norm": False}, False),
    ],
)
def test_spectral_norm_bounds_the_net_through_training(pairing, settings, holds: bool):
    """Check that spectral norm bounds the net under Adam at rate 1e-3; a plain net grows."""
    model, g = build(pairing=pairing, **settings), torch.Generator().manual_seed(0)
    expert = 0.3 * torch.randn(1, 20, OBS + ACT, generator=g) + 1.0
    for _ in range(300):
        agent = torch.randn(1, 32, OBS + ACT, generator=g)
        some = expert[:, torch.randint(20, (32,), generator=g)]
        model.update(batch_of(agent, OBS), batch_of(some, OBS))
    assert (model.predictor.lipschitz().item() <= 1.2) == holds


@pytest.mark.parametrize(("settings", "count"), [({}, 3), ({"power_iterations": 1}, 1)])
def test_power_iterations_of_an_update(float64, make_batch, settings, count: int):
    """Compare each power iteration with l <- W r / |W r|, r <- W' l / |W' l|.

    Check also that computing a reward does no iteration.
    """
    model, batch = build(**settings), make_batch(1, 8, OBS, ACT)
    layer = model.predictor.layers[1]
    weight, right = layer.weight.detach()[0].numpy().copy(), layer.right[0].numpy().copy()
    model.reward(batch)
    np.testing.assert_array_equal(layer.right[0], right)
    for _ in range(count):
        left = weight @ right
        left /= np.linalg.norm(left)
        right = weight.T @ left
        right /= np.linalg.norm(right)
    model.update(batch, batch)
    np.testing.assert_allclose(layer.left[0], left, rtol=1e-12)
    np.testing.assert_allclose(layer.right[0], right, rtol=1e-12)


# --- reading and updating


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("spectral_norm", [True, False])
def test_reading_changes_no_state(make_batch, pairing, spectral_norm: bool):
    model, batch = (
        build((1, 2), pairing=pairing, spectral_norm=spectral_norm),
        make_batch(2, 8, OBS, ACT),
    )
    model.update(batch, make_batch(2, 8, OBS, ACT, seed=1))
    before = snapshot(model)
    first = model.reward(batch)
    model.potential(model.inputs(batch), "agent")
    assert not first.requires_grad
    assert torch.equal(first, model.reward(batch))
    assert equal(before, snapshot(model))


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("mode", MODES)
def test_update_lowers_the_loss_on_a_fixed_batch(make_batch, pairing, mode):
    model = build(seeds=(1, 2), mode=mode, pairing=pairing)
    agent, expert = make_batch(2, 32, OBS, ACT), make_batch(2, 32, OBS, ACT, seed=1)
    expert = expert._replace(obs=expert.obs + 1.0)
    first = model.loss(agent, expert).detach()
    for _ in range(60):
        model.update(agent, expert)
    last = model.loss(agent, expert).detach()
    assert (last < first - 0.1 * (1 if pairing != "mse_softmax" else 0.1)).all()
    h = {side: model.metrics[f"h_{side}"] for side in ("expert", "agent")}
    assert (h["expert"] < h["agent"]).all()
    # the reward is higher for inputs whose potential falls in training
    plain = Potential(replace(model.config, scaling="none"), model.spec)
    plain.load_state_dict(model.state_dict())
    assert (plain.reward(expert).mean(dim=1) > plain.reward(agent).mean(dim=1)).all()


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_gradient_reaches_the_predictor_alone(make_batch, pairing):
    model, batch = build(pairing=pairing), make_batch(1, 8, OBS, ACT)
    batch = batch._replace(obs=batch.obs.requires_grad_())
    model.loss(batch, make_batch(1, 8, OBS, ACT, seed=1)).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.predictor.parameters())
    assert all(p.grad is None and not p.requires_grad for p in model.prior.parameters())
    assert not model.target(model.inputs(batch)).requires_grad


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("m", [1, 8, 64])
def test_any_number_of_outputs(make_batch, pairing, m: int):
    model, batch = build(m=m, pairing=pairing), make_batch(1, 6, OBS, ACT)
    x = model.inputs(batch)
    assert model.target(x).shape == (1, 6, m)
    assert model.prediction(x).shape == (1, 6, m * (21 if pairing == "hl_gauss" else 1))
    assert model.potential(x, "expert").shape == model.reward(batch).shape == (1, 6)
    model.update(batch, make_batch(1, 6, OBS, ACT, seed=1))
    assert all(v.shape == (1,) and v.isfinite().all() for v in model.metrics.values())
    expected = {"h_expert", "h_agent", "reward_loss", "reward_raw", "reward_raw_std", "reward_max"}
    assert model.metrics.keys() == expected | ({"hlg_outside"} if pairing == "hl_gauss" else set())


@pytest.mark.parametrize("rescale", [0.5, 5.0])
@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("hlg_target", ["tanh", "rescaled"])
def test_squashing(rescale: float, pairing, hlg_target):
    model = build(rescale=rescale, pairing=pairing, hlg_target=hlg_target)
    x = 1e3 * rows(1, 50, OBS + ACT)
    own = 1.0 if (pairing, hlg_target) == ("hl_gauss", "tanh") else rescale
    assert model.prediction(x).abs().max().item() == pytest.approx(rescale)
    assert model.target(x).abs().max().item() == pytest.approx(own)


def test_settings_of_hl_gauss():
    model = build(pairing="hl_gauss", bins=7, support=3.0)
    np.testing.assert_allclose(model.edges, np.linspace(-3, 3, 8), atol=1e-6)
    assert "edges" not in model.state_dict()
    x = rows(1, 9, OBS + ACT)
    assert not torch.isclose(model.potential(x, "expert"), model.potential(x, "agent")).all()
    even = build(pairing="hl_gauss", sigma_expert=0.1, sigma_agent=0.1)
    assert torch.equal(even.potential(x, "expert"), even.potential(x, "agent"))
    huber = build()
    assert torch.equal(huber.potential(x, "expert"), huber.potential(x, "agent"))


# --- numerics


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("hlg_target", ["tanh", "rescaled"])
def test_large_observations(pairing, hlg_target):
    """Check inputs of norm 549 that contain a value of 5000, as on Humanoid."""
    x = rows(1, 64, 393)
    x *= 549.0 / x.norm(dim=-1).square().mean().sqrt()
    x[0, 0, 0] = 5000.0
    model = build(pairing=pairing, hlg_target=hlg_target, obs=376, act=17)
    batch = batch_of(x, 376)
    h = model.potential(x, "agent")
    assert h.isfinite().all() and (h >= 0).all()
    for _ in range(5):
        model.update(batch, batch_of(x.flip(1), 376))
    assert model.reward(batch).isfinite().all()
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("trained", [False, True])
def test_raw_reward_lies_in_zero_to_one_and_varies(make_batch, pairing, trained: bool):
    model, batch = build(pairing=pairing, scaling="none"), make_batch(1, 64, OBS, ACT)
    for _ in range(50 * trained):
        model.update(batch, make_batch(1, 64, OBS, ACT, seed=1))
    raw = model.reward(batch)
    assert (raw > 0).all() and (raw <= 1).all()
    assert raw.std() > 0
    assert model.metrics["reward_raw"].item() == pytest.approx(raw.mean().item())
    assert model.metrics["reward_raw_std"].item() == pytest.approx(raw.std(correction=0).item())
    assert model.metrics["reward_max"].item() == raw.max().item()


def test_hl_gauss_targets_stay_inside_the_support_by_default(make_batch):
    agent, expert = (make_batch(1, 64, OBS, ACT, seed=s, scale=1e3) for s in (0, 1))
    outside = {}
    for reading in ("tanh", "rescaled"):
        model = build(pairing="hl_gauss", hlg_target=reading)
        model.update(agent, expert)
        outside[reading] = model.metrics["hlg_outside"].item()
    assert outside["tanh"] == 0.0
    assert outside["rescaled"] > 0.9


def halfcheetah_like(n: int, seed: int, expert: bool) -> torch.Tensor:
    """Return rows (n, 23) of norm about 27: a noisy gait for the expert, else random motion."""
    g = torch.Generator().manual_seed(seed)
    if not expert:
        return 0.6 * 27 / 23**0.5 * torch.randn(n, 23, generator=g)
    phase = 2 * math.pi * torch.rand(n, 1, generator=g)
    joints = torch.Generator().manual_seed(99)
    size, shift = torch.randn(23, generator=joints), 2 * math.pi * torch.rand(23, generator=joints)
    gait = size * torch.sin(phase * (1 + torch.arange(23) % 3) + shift)
    return 27 / 23**0.5 * (gait + 0.2 * torch.randn(n, 23, generator=g))


def test_the_literal_hl_gauss_target_masks_most_units():
    """Check targets 5 tanh on support [-1, 1]: beyond 1.25, mass, loss and gradient are zero."""
    x = torch.cat([halfcheetah_like(200, 0, True), halfcheetah_like(200, 1, False)])[None]
    options = {"pairing": "hl_gauss", "hidden": (256, 256), "m": 32, "obs": 17, "act": 6}
    model = build(hlg_target="rescaled", **options)
    masked = (model.target(x).abs() > 1.25).float().mean()
    assert 0.4 < masked < 0.9
    edges = hl_gauss_edges(-1.0, 1.0, 21)
    z = torch.erf((edges[[0, -1], None] - model.target(x).unsqueeze(-2)) / (0.05 * 2**0.5))
    assert ((z[..., 1, :] - z[..., 0, :]).double() < 1e-6).float().mean() > 0.4
    assert (build(hlg_target="tanh", **options).target(x).abs() > 1.0).sum() == 0


def test_the_printed_hl_gauss_widths_invert_the_reward_when_agent_and_expert_overlap():
    """Check that HL-Gauss widths 0.25 (expert) and 0.05 (agent) rank the expert last in the end.

    Late in training, four in five agent transitions are expert-like. Where the densities of agent
    and expert are equal, the agent's narrower target has the stronger gradient.
    """
    expert, agent = (
        halfcheetah_like(200, 0, True),
        torch.cat([halfcheetah_like(4000, 1, True), halfcheetah_like(1000, 2, False)]),
    )
    held_out, random = halfcheetah_like(500, 3, True), halfcheetah_like(500, 4, False)

    def auc(sigma_expert: float, sigma_agent: float, side) -> torch.Tensor:
        """Return P(h of a held-out expert transition < h of a random transition) per seed."""
        model = build(
            (1, 2),
            obs=17,
            act=6,
            pairing="hl_gauss",
            hidden=(64, 64),
            sigma_expert=sigma_expert,
            sigma_agent=sigma_agent,
        )
        g = torch.Generator().manual_seed(0)
        for _ in range(250):
            pick = [
                data[torch.randint(len(data), (2, 96), generator=g)] for data in (agent, expert)
            ]
            model.update(*(batch_of(x, 17) for x in pick))
        with torch.no_grad():
            a, b = (model.potential(x.expand(2, -1, -1), side) for x in (held_out, random))
        return (a[:, :, None] < b[:, None, :]).float().mean(dim=(1, 2))

    assert (auc(0.25, 0.05, "agent") < 0.5).all()
    assert (auc(0.1, 0.1, "agent") > 0.8).all()


# --- scaling by percentiles


@pytest.mark.parametrize("size", [1, 2, 7, 64, 256])
def test_scalings_against_numpy(float64, size: int):
    raw = rows(3, size).exp().neg().exp() * torch.tensor([[1.0], [0.5], [1e-3]])
    low, high = np.percentile(raw, [5, 95], axis=1)[..., None]
    gap = np.maximum(high - low, 1e-8)
    expected = {
        "percentile": (raw.numpy() - low) / gap,
        "percentile_offset": raw.numpy() / gap - low,
        "none": raw.numpy(),
    }
    for scaling, values in expected.items():
        got = scale_by_percentiles(raw, scaling, 1e-8)
        np.testing.assert_allclose(got, values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scaling", ["percentile", "percentile_offset", "none"])
@pytest.mark.parametrize("value", [0.0, 1e-30, 0.37, 1.0])
def test_constant_rewards_stay_finite(scaling: str, value: float):
    got = scale_by_percentiles(torch.full((2, 256), value), scaling, 1e-8)
    assert got.isfinite().all() and got.std(dim=1).eq(0).all()
    if scaling == "percentile":
        assert got.eq(0).all()


def test_scaling_is_not_clipped_and_uses_the_floor():
    raw = torch.zeros(1, 256)
    raw[0, 0] = 1e-3
    assert scale_by_percentiles(raw, "percentile", 1e-8).max().item() == pytest.approx(1e5)
    assert scale_by_percentiles(raw, "percentile", 1e-2).max().item() == pytest.approx(0.1)


batches = arrays(np.float64, (2, 40), elements=st.floats(0.0, 1.0, width=32))


@given(raw=batches, factor=st.floats(0.1, 10), offset=st.floats(-1, 1))
def test_percentile_scaling_ignores_scale_and_offset(raw, factor, offset):
    raw = torch.from_numpy(raw)
    fractions = torch.tensor([0.05, 0.95], dtype=torch.float64)
    low, high = torch.quantile(raw, fractions, dim=1)
    assume(bool((high - low > 1e-3).all()))
    scaled = scale_by_percentiles(raw, "percentile", 1e-8)
    moved = scale_by_percentiles(factor * raw + offset, "percentile", 1e-8)
    torch.testing.assert_close(moved, scaled, rtol=1e-8, atol=1e-8)
    ends = torch.quantile(scaled, fractions, dim=1)
    torch.testing.assert_close(ends, torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64))
    both = scaled[:, :, None] - scaled[:, None], raw[:, :, None] - raw[:, None]
    assert (both[0].sign() * both[1].sign() >= 0).all(), "scaling must keep the order"


@given(raw=batches, scaling=st.sampled_from(["percentile", "percentile_offset", "none"]))
def test_scaling_does_not_depend_on_order_or_on_other_runs(raw, scaling):
    raw = torch.from_numpy(raw)
    scaled = scale_by_percentiles(raw, scaling, 1e-8)
    assert torch.equal(scale_by_percentiles(raw.flip(1), scaling, 1e-8), scaled.flip(1))
    assert torch.equal(scale_by_percentiles(raw[1:], scaling, 1e-8), scaled[1:])


@pytest.mark.parametrize("scaling", ["percentile", "percentile_offset", "none"])
def test_reward_is_scaled_as_asked(make_batch, scaling):
    batch = make_batch(2, 16, OBS, ACT)
    raw = build((1, 2), scaling="none").reward(batch)
    model = build((1, 2), scaling=scaling, gap_floor=0.5)
    got = model.reward(batch)
    torch.testing.assert_close(got, scale_by_percentiles(raw, scaling, 0.5))
    assert torch.equal(model.metrics["reward_max"], got.amax(dim=1))
    torch.testing.assert_close(model.metrics["reward_raw"], raw.mean(dim=1))


# --- scaling by running percentiles


RANKS = (5, 50, 95)


def plain_signed(h, ema, floor=1e-10, clip=5.0, linear=False):
    """Return the signed rewards of one run's potentials h, computed one at a time."""
    low, middle, high = ema
    rewards = []
    for value in h:
        u = (value - middle) / max(high - low, floor)
        r = -u if linear else -math.copysign(1.0, u) * (math.exp(min(abs(u), 700)) - 1.0)
        rewards.append(max(-clip, min(clip, r)))
    return rewards


def potentials(model: Potential, *batches: torch.Tensor):
    """Return the rewards for a sequence of batches of potentials, each of shape (R, B)."""
    queue = list(batches)
    model.potential = lambda x, side: queue.pop(0)  # type: ignore[method-assign]
    runs, size = batches[0].shape
    blank = batch_of(torch.zeros(runs, size, OBS + ACT), OBS)
    return [model.reward(blank) for _ in batches]


@pytest.mark.parametrize("scaling", ["ema_signed", "ema_linear"])
@pytest.mark.parametrize("size", [1, 2, 41, 256])
def test_running_percentiles_by_hand(float64, scaling, size: int):
    """Check that running averages of the earlier batches' percentiles scale each batch.

    The first batch is scaled by its own percentiles.
    """
    rate = 0.1
    batches = [(1.0 + step) * rows(2, size, seed=step).abs() for step in range(4)]
    model = build((1, 2), scaling=scaling, ema_rate=rate, gap_floor=1e-10)
    assert model.ema.isnan().all()
    got = potentials(model, *batches)
    for run in range(2):
        ema = None
        for h, reward in zip(batches, got, strict=True):
            now = np.percentile(h[run], RANKS)
            ema = now if ema is None else ema
            expected = plain_signed(h[run].tolist(), ema, linear=scaling == "ema_linear")
            np.testing.assert_allclose(reward[run], expected, rtol=1e-9, atol=1e-9)
            ema = (1 - rate) * ema + rate * now
        np.testing.assert_allclose(model.ema[run], ema, rtol=1e-12)
    assert size < 41 or all((r > 0).any() and (r < 0).any() for r in got)


def test_signed_rewards_by_hand(float64):
    """Check rewards if the percentiles P5, P50 and P95 are 0, 1 and 2, so u = (h - 1) / 2.

    The percentiles of a later batch enter their running averages with weight 1/1000.
    """
    first = torch.tensor([[0.0] * 10 + [1.0] * 10 + [2.0] * 10])
    model = build(scaling="ema_signed", gap_floor=1e-10)
    (reward,) = potentials(model, first)
    e = math.exp(0.5) - 1.0
    torch.testing.assert_close(reward, torch.tensor([[e] * 10 + [0.0] * 10 + [-e] * 10]))
    assert model.ema.tolist() == [[0.0, 1.0, 2.0]]
    (reward,) = potentials(model, torch.full((1, 30), 3.0))
    torch.testing.assert_close(reward, torch.full((1, 30), 1.0 - math.e))
    torch.testing.assert_close(model.ema, torch.tensor([[0.003, 1.002, 2.001]]))
    (reward,) = potentials(model, torch.tensor([[1e30, -1e30] * 15]))
    assert reward.tolist() == [[-5.0, 5.0] * 15], "huge rewards must be clamped"


def test_floor_and_clamp_of_running_percentiles():
    """Check that equal potentials give 0, and that a small difference is bounded by the clamp."""
    model = build((1, 2), scaling="ema_signed", gap_floor=1e-10)
    same = torch.full((2, 16), 0.25)
    other = same.clone()
    other[1, 3] = 0.25 - 1e-6
    flat, next_ = potentials(model, same, other)
    assert flat.eq(0.0).all() and next_[0].eq(0.0).all()
    assert next_[1, 3] == 5.0 and next_[1].sum() == 5.0
    model = build(scaling="ema_linear", gap_floor=0.5, reward_clip=1.0)
    (reward,) = potentials(model, torch.tensor([[0.0, 0.1, 0.2, 2.0]]))
    low, middle, high = np.percentile([0.0, 0.1, 0.2, 2.0], RANKS)
    assert reward[0, 0].item() == pytest.approx(middle / (high - low), rel=1e-5)
    assert reward[0, 3] == -1.0


def test_running_percentiles_are_kept_per_run_and_with_the_state(float64):
    batches = [rows(3, 20, seed=step).abs() for step in range(3)]
    packed = potentials(build((1, 2, 3), scaling="ema_signed"), *batches)
    for run in range(3):
        alone = potentials(build((run + 1,), scaling="ema_signed"), *(b[[run]] for b in batches))
        for a, b in zip(packed, alone, strict=True):
            assert torch.equal(a[[run]], b)
    model, copy = build((1, 2, 3), scaling="ema_signed"), build((1, 2, 3), scaling="ema_signed")
    potentials(model, *batches[:2])
    assert copy.state_dict()["ema"].shape == (3, 3)
    copy.load_state_dict(model.state_dict())
    assert torch.equal(potentials(copy, batches[2])[0], packed[2])
    assert "ema" not in build().state_dict()


def test_a_broken_batch_is_forgotten_by_the_running_percentiles():
    model = build((1, 2), scaling="ema_signed")
    bad = rows(2, 16).abs()
    bad[1, 4] = torch.nan
    good = rows(2, 16, seed=1).abs()
    _, after = potentials(model, bad, good)
    assert after.isfinite().all() and model.ema.isfinite().all()


def test_the_score_leaves_the_running_percentiles_alone(make_batch):
    batch = make_batch(2, 16, OBS, ACT)
    model, plain = build((1, 2), scaling="ema_signed"), build((1, 2), scaling="none")
    assert torch.equal(model.score(batch), plain.score(batch))
    model.update(batch, batch)
    assert model.ema.isnan().all()
    reward, score = model.reward(batch), model.score(batch)
    assert model.ema.isfinite().all()
    order = score.argsort(dim=1)
    assert (reward.gather(1, order).diff(dim=1) >= 0).all(), (
        "reward and score must have the same order"
    )
    torch.testing.assert_close(model.metrics["reward_raw"], score.mean(dim=1))


# --- packs


RELEASED = {
    "pairing": "huber",
    "squash": False,
    "hidden": (16, 16, 16),
    "leak": 0.2,
    "init": "uniform",
    "head_init": "uniform",
    "scaling": "ema_signed",
    "gap_floor": 1e-10,
    "lr": 5e-5,
}
PACKED = {**{p: {"pairing": p} for p in PAIRINGS}, "released": RELEASED}


def train(seeds, updates: int, name: str, dtype=torch.float32):
    """Update the reward, then the agent, with each run's own draws and data, as in training."""
    size, kept = 16, 50
    model = build(seeds, **PACKED[name])
    agent = Sac(OBS, ACT, SacConfig(hidden=(16, 16)), seeds)
    draws = {k: Draw("index", (size,)) for k in ("agent", "expert", "sac")}
    streams = Streams(seeds, {**draws, **Sac.draws(size, ACT)})
    replay, demos = Replay(len(seeds), kept, OBS, ACT), Replay(len(seeds), kept, OBS, ACT)
    for store, offset in ((replay, 0), (demos, 1)):
        own = [rows(1, kept, 2 * OBS + ACT + 2, seed=10 * s + offset) for s in seeds]
        obs, action, next_obs, rest = torch.cat(own).float().split([OBS, ACT, OBS, 2], dim=-1)
        end = (rest[..., 1] > 1).float()
        store.add(Batch(obs + offset, action.tanh(), next_obs, rest[..., 0], end))
    for _ in range(updates):
        d = streams.next()
        sample = {
            k: Batch(*(t.to(dtype) for t in (demos if k == "expert" else replay).sample(d[k])))
            for k in draws
        }
        model.update(sample["agent"], sample["expert"])
        reward = model.reward(sample["sac"])
        agent.update(sample["sac"], reward, {k: d[k].to(dtype) for k in Sac.draws(size, ACT)})
    return {**dict(model.named_parameters()), **dict(agent.named_parameters()), "reward": reward}


def largest_difference(name: str, updates: int, dtype=torch.float32) -> float:
    """Return the largest difference between three runs in a pack and the same runs alone.

    All weights and the last reward are compared.
    """
    seeds = (3, 1, 2)
    packed, worst = train(seeds, updates, name, dtype), 0.0
    for run, seed in enumerate(seeds):
        for key, tensor in train((seed,), updates, name, dtype).items():
            worst = max(worst, float((packed[key][run] - tensor[0]).detach().abs().max()))
    return worst


@pytest.mark.parametrize("name", PACKED)
def test_a_pack_is_its_runs_side_by_side(float64, name):
    assert largest_difference(name, 1, torch.float64) < 1e-12
    assert largest_difference(name, 25, torch.float64) < 1e-8


@pytest.mark.parametrize("name", PACKED)
def test_a_pack_is_its_runs_side_by_side_in_float32(name):
    """Allow for the different rounding of batched products, which Adam amplifies."""
    assert largest_difference(name, 1) < 1e-5
    assert largest_difference(name, 25) < 1e-2


@pytest.mark.parametrize("options", [*PACKED.values(), {"spectral_norm": False}])
def test_initial_weights_of_a_run_are_those_it_has_alone(options):
    packed = build((1, 2, 3), **options)
    for run, seed in enumerate((1, 2, 3)):
        for (name, p), q in zip(
            packed.named_parameters(), build((seed,), **options).parameters(), strict=True
        ):
            if name.startswith("predictor"):
                assert torch.equal(p[run], q[0]), name
            torch.testing.assert_close(p[run], q[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("poison", [1e30, math.nan])
def test_a_broken_run_does_not_reach_the_others(make_batch, name, poison: float):
    models = [build((1, 2, 3), **PACKED[name]) for _ in range(2)]
    rewards = []
    for model, broken in zip(models, (False, True), strict=True):
        for step in range(3):
            agent, expert = (make_batch(3, 8, OBS, ACT, seed=s) for s in (step, step + 50))
            for field in (*agent, *expert) if broken else ():
                field[1] = poison
            model.update(agent, expert)
        rewards.append(model.reward(agent))
    for (name, p), q in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        assert torch.equal(p[[0, 2]], q[[0, 2]]), name
    assert torch.equal(rewards[0][[0, 2]], rewards[1][[0, 2]])
