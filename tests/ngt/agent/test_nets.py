"""Nets of a pack: outputs, gradients, layer norm, initialisation, spectral norm, observations.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ngt.agent.kernels import Rectifier
from ngt.agent.nets import ObsNormaliser, PackedMLP, SpectralLinear
from tests.draws import rows

SIZES = [5, 7, 6, 3]
GP = {
    "gp_leaky005": Rectifier(0.05),
    "gp_leaky02": Rectifier(0.2),
    "gp_tanh": torch.tanh_,
}


def generators(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def weights(net):
    return [layer.weight.detach() for layer in net.layers]


def gram_error(weight: torch.Tensor) -> float:
    """Return how far the vectors along a matrix's shorter side are from orthonormal."""
    gram = weight.T @ weight if weight.shape[0] >= weight.shape[1] else weight @ weight.T
    return float((gram - torch.eye(len(gram))).abs().max())


# --- forward and gradient


def test_pack_equals_loops_over_runs_and_twins(float64):
    net = PackedMLP(SIZES, generators(1, 2), twins=2)
    for layer in net.layers:  # biases are zero initially
        layer.bias.data.normal_(generator=generators(3)[0])
    x = rows(4, 8, 5)
    y = net(x)
    assert y.shape == (4, 8, 3)
    for lead in range(4):
        out = x[lead].numpy()
        for depth, layer in enumerate(net.layers):
            w = layer.weight.detach()[lead // 2, lead % 2].numpy()
            out = out @ w + layer.bias.detach()[lead // 2, lead % 2].numpy()
            out = np.maximum(out, 0.0) if depth < 2 else out
        np.testing.assert_allclose(y[lead].detach(), out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spectral_norm", [False, True])
def test_frozen_forward_gives_gradients_to_the_input_alone(spectral_norm: bool):
    net = PackedMLP(SIZES, generators(1, 2), spectral_norm=spectral_norm)
    x = rows(2, 8, 5).requires_grad_()
    live, frozen = net(x), net(x, frozen=True)
    assert torch.equal(live, frozen)
    (expected,) = torch.autograd.grad(live.square().sum(), x)
    frozen.square().sum().backward()
    torch.testing.assert_close(x.grad, expected, rtol=1e-6, atol=1e-7)
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize(
    ("in_place", "plain"),
    [
        (Rectifier(), torch.relu),
        (Rectifier(0.05), partial(F.leaky_relu, negative_slope=0.05)),
        (torch.tanh_, torch.tanh),
    ],
)
@pytest.mark.parametrize("spectral_norm", [False, True])
def test_in_place_activations_change_no_gradient(float64, in_place, plain, spectral_norm: bool):
    grads = []
    for activation in (in_place, plain):
        net = PackedMLP(SIZES, generators(1), activation=activation, spectral_norm=spectral_norm)
        x = rows(1, 9, 5).requires_grad_()
        kept = x.detach().clone()
        grads.append(torch.autograd.grad(net(x).square().sum(), [x, *net.parameters()]))
        assert torch.equal(x, kept), "the input must not change"
    for a, b in zip(*grads, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", GP)
def test_gradient_penalty(vectors, load_layers, float64, name):
    """Compare outputs, gradients and second derivatives with vectors; activations are in place."""
    v = vectors(name)
    depth = sum(key[0] == "w" for key in v)
    sizes = [v["w1"].shape[1], *(v[f"w{i}"].shape[0] for i in range(1, depth + 1))]
    net = PackedMLP(sizes, generators(0), activation=GP[name])
    load_layers(net, [(v[f"w{i}"], v[f"b{i}"]) for i in range(1, depth + 1)])
    x = v["eps"] * v["x_expert"] + (1.0 - v["eps"]) * v["x_agent"]
    torch.testing.assert_close(x, v["interpolates"], rtol=0, atol=1e-12)
    x = x[None].requires_grad_()
    out = net(x)
    (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    norm = grad[0].norm(dim=-1)
    close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-10)
    close(out.flatten(), v["output"])
    close(grad[0], v["grad"])
    close(norm, v["grad_norm"])
    two, one = (norm - 1.0).square().mean(), (norm - 1.0).clamp(min=0).square().mean()
    for sides, penalty in (("two", two), ("one", one)):
        close(penalty, v[f"gp_{sides}_sided"])
        matrices = [layer.weight for layer in net.layers]
        derivatives = torch.autograd.grad(penalty, matrices, retain_graph=True)
        short = {"two": "dgp2", "one": "dgp1"}[sides]
        for i, derivative in enumerate(derivatives, start=1):
            close(derivative[0].T, v[f"{short}_w{i}"])


# --- layer norm


@pytest.mark.parametrize("twins", [1, 2])
def test_layer_norm_stands_before_the_activation(float64, twins: int):
    """Check layer norm, (x - mean) / sqrt(var + 1e-5), with a scale and shift per run and twin."""
    net = PackedMLP(SIZES, generators(1, 2), twins=twins, layer_norm=True, activation=F.silu)
    for i, p in enumerate(net.parameters()):
        p.data += 0.3 * rows(*p.shape, seed=i)
    x = 0.01 * rows(2 * twins, 8, 5)  # small, so that the variance is near eps
    y = net(x).detach()
    for lead in range(2 * twins):
        at = (lead,) if twins == 1 else (lead // 2, lead % 2)
        out = x[lead].numpy()
        for depth, layer in enumerate(net.layers):
            w, b = (t.detach()[at].numpy() for t in (layer.weight, layer.bias))
            out = out @ w + b
            if depth < 2:
                scale, shift = (t.detach()[at].numpy() for t in net.norms[depth].parameters())
                mean, var = out.mean(axis=1, keepdims=True), out.var(axis=1, keepdims=True)
                out = (out - mean) / np.sqrt(var + 1e-5) * scale + shift
                out = out / (1.0 + np.exp(-out))
        np.testing.assert_allclose(y[lead], out, rtol=0, atol=1e-12)


def test_layer_norm_starts_plain_and_draws_nothing():
    plain = PackedMLP(SIZES, generators(1, 2), twins=2)
    normed = PackedMLP(SIZES, generators(1, 2), twins=2, layer_norm=True)
    assert all(torch.equal(a, b) for a, b in zip(weights(plain), weights(normed), strict=True))
    assert [norm.weight.shape for norm in normed.norms] == [(2, 2, 1, 7), (2, 2, 1, 6)]
    for norm in normed.norms:
        assert norm.weight.eq(1.0).all() and norm.bias.eq(0.0).all()
    assert not any("norm" in name for name in plain.state_dict())


def test_frozen_layer_norm_gets_no_gradient(float64):
    net = PackedMLP(SIZES, generators(1, 2), layer_norm=True)
    x = rows(2, 8, 5).requires_grad_()
    (expected,) = torch.autograd.grad(net(x).square().sum(), x)
    net(x, frozen=True).square().sum().backward()
    torch.testing.assert_close(x.grad, expected)
    assert all(p.grad is None for p in net.parameters())
    net(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


# --- initialisation


@pytest.mark.parametrize("twins", [1, 2])
def test_head_gain_scales_the_last_weight_alone(twins: int):
    plain = weights(PackedMLP(SIZES, generators(1, 2), twins=twins))
    small = weights(PackedMLP(SIZES, generators(1, 2), twins=twins, head_gain=1e-3))
    assert all(torch.equal(a, b) for a, b in zip(plain[:-1], small[:-1], strict=True))
    assert torch.equal(small[-1], 1e-3 * plain[-1])


def test_uniform_init():
    """Check the weights' bound of 1/sqrt(fan in) and variance of 1 / (3 fan in)."""
    for weight in weights(PackedMLP([400, 300, 200, 50], generators(1), init="uniform")):
        fan_in = weight.shape[1]
        assert weight.abs().max().item() == pytest.approx(fan_in**-0.5, rel=1e-3)
        assert weight.std().item() == pytest.approx((3 * fan_in) ** -0.5, rel=0.03)
        assert abs(weight.mean().item()) < 1e-2


@pytest.mark.parametrize("sizes", [SIZES, [3, 16, 16, 1], [376, 64, 64, 8]])
def test_orthogonal_init_with_zero_bias(sizes):
    net = PackedMLP(sizes, generators(1, 2, 3), twins=2)
    for layer in net.layers:
        assert not layer.bias.any()
        for weight in layer.weight.detach().flatten(0, 1):
            assert gram_error(weight) < 1e-5


def test_kaiming_init():
    (first, second, head) = weights(PackedMLP([400, 300, 200, 50], generators(1), init="kaiming"))
    for weight in (first, second, head):
        assert weight.std().item() == pytest.approx(math.sqrt(2.0 / weight.shape[1]), rel=0.03)
        assert abs(weight.mean().item()) < 1e-2
        assert gram_error(weight[0]) > 0.1


@pytest.mark.parametrize("twins", [1, 2])
def test_uniform_init_is_torchs_default_for_weights_and_biases(twins: int):
    net = PackedMLP([400, 300, 50], generators(1, 2), twins=twins, init="uniform")
    for layer, fan_in in zip(net.layers, (400, 300), strict=True):
        peer = torch.nn.Linear(fan_in, 300)
        bound = fan_in**-0.5
        for ours, theirs in ((layer.weight, peer.weight), (layer.bias, peer.bias)):
            for tensor in (ours, theirs):
                assert tensor.abs().max() <= bound * (1 + 1e-6)
                assert tensor.abs().max() > 0.9 * bound
                assert tensor.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.1)
    for run, seed in enumerate((1, 2)):
        alone = PackedMLP([400, 300, 50], generators(seed), twins=twins, init="uniform")
        for p, q in zip(net.parameters(), alone.parameters(), strict=True):
            assert torch.equal(p[run], q[0])
    head = PackedMLP([400, 300, 50], generators(1), head_init="uniform")
    assert head.layers[0].bias.eq(0).all() and head.layers[1].bias.ne(0).any()


@pytest.mark.parametrize(("init", "head"), [("orthogonal", "kaiming"), ("kaiming", "orthogonal")])
@pytest.mark.parametrize("twins", [1, 2])
def test_head_init_changes_the_head_alone(init, head, twins: int):
    plain = weights(PackedMLP(SIZES, generators(1, 2), twins=twins, init=init))
    other = weights(PackedMLP(SIZES, generators(1, 2), twins=twins, init=init, head_init=head))
    assert all(torch.equal(a, b) for a, b in zip(plain[:-1], other[:-1], strict=True))
    assert not torch.isclose(plain[-1], other[-1]).any()


def test_unknown_init_is_refused():
    with pytest.raises(ValueError, match="'xavier' is not known"):
        PackedMLP(SIZES, generators(1), init="xavier")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"twins": 2, "layer_norm": True},
        {"init": "kaiming", "spectral_norm": True},
        {"init": "uniform"},
    ],
)
def test_weights_of_a_run_depend_on_its_own_generator(options):
    packed = PackedMLP(SIZES, generators(1, 2, 3), **options).state_dict()
    for run, seed in enumerate((1, 2, 3)):
        alone = PackedMLP(SIZES, generators(seed), **options).state_dict()
        for name, tensor in alone.items():
            if name.endswith("weight"):
                assert torch.equal(packed[name][run], tensor[0]), name
            torch.testing.assert_close(packed[name][run], tensor[0], rtol=0, atol=1e-6)


def test_runs_and_twins_differ():
    for weight in weights(PackedMLP(SIZES, generators(1, 2), twins=2)):
        assert len({tuple(w.flatten().tolist()) for w in weight.flatten(0, 1)}) == 4


# --- spectral norm


@pytest.mark.parametrize("twins", [1, 2])
def test_power_iteration_finds_the_spectral_norm(float64, twins: int):
    net = PackedMLP(
        [9, 12, 4, 1], generators(1, 2), twins=twins, init="kaiming", spectral_norm=True
    )
    net.power_iteration(500)
    for layer in net.layers:
        assert isinstance(layer, SpectralLinear)
        norms = torch.linalg.svdvals(layer.weight.detach())[..., :1, None]
        torch.testing.assert_close(layer.matrix(), layer.weight / norms, rtol=1e-6, atol=1e-9)
        for vector in (layer.left, layer.right):
            torch.testing.assert_close(vector.norm(dim=-2), torch.ones((*vector.shape[:-2], 1)))
    lead = (2,) if twins == 1 else (2, 2)
    torch.testing.assert_close(net.lipschitz(), torch.ones(lead), rtol=1e-6, atol=0)


def test_one_power_iteration(float64):
    layer = SpectralLinear((2,), 6, 4)
    layer.weight.data = rows(2, 6, 4)
    layer.right.data = rows(2, 4, 1, seed=1)
    start = layer.right.clone()
    layer.step()
    for run in range(2):
        w = layer.weight[run].detach().numpy()
        left = w @ start[run].numpy()
        left /= np.linalg.norm(left)
        right = w.T @ left
        right /= np.linalg.norm(right)
        np.testing.assert_allclose(layer.left[run], left, atol=1e-12)
        np.testing.assert_allclose(layer.right[run], right, atol=1e-12)
        np.testing.assert_allclose(layer.matrix()[run].detach(), w / (left.T @ w @ right))


@pytest.mark.parametrize("lead", [(1,), (3,), (12,), (3, 2)], ids=str)
@pytest.mark.parametrize("sizes", [(23, 256), (256, 32), (7, 5), (3, 1), (1, 4)], ids=str)
@pytest.mark.parametrize("iterations", [1, 3])
def test_power_iterations_have_the_bits_of_plain_calls(lead, sizes, iterations):
    layer = SpectralLinear(lead, *sizes)
    layer.weight.data = rows(*lead, *sizes)
    layer.right.data = rows(*lead, sizes[1], 1, seed=1)
    left, right, weight = layer.left.clone(), layer.right.clone(), layer.weight.detach()
    for _ in range(iterations):
        left = F.normalize((right.mT @ weight.mT).mT, dim=-2).contiguous()
        right = F.normalize(weight.mT @ left, dim=-2)
    layer.step(iterations)
    assert torch.equal(layer.left, left) and torch.equal(layer.right, right)


def test_gradient_of_a_spectral_layer_is_that_of_torch(float64):
    """Compare with torch's spectral norm, which treats the singular vectors as constants too."""
    layer = SpectralLinear((1,), 6, 4)
    torch.nn.init.orthogonal_(layer.weight[0].detach(), generator=generators(1)[0])
    layer.weight.data += 0.3 * rows(1, 6, 4)
    layer.step(200)
    reference = torch.nn.Linear(6, 4, bias=False)
    reference.weight.data.copy_(layer.weight[0].T.detach())
    reference = torch.nn.utils.parametrizations.spectral_norm(reference, n_power_iterations=200)
    reference(rows(1, 6))  # a training-mode forward runs the power iteration
    reference.eval()
    x, direction = rows(1, 5, 6), rows(5, 4, seed=1)
    (layer(x)[0] * direction).sum().backward()
    (reference(x[0]) * direction).sum().backward()
    original = reference.parametrizations.weight.original
    torch.testing.assert_close(layer.weight.grad[0].T, original.grad, rtol=1e-6, atol=1e-8)


def test_reading_a_spectral_net_changes_nothing():
    net = PackedMLP(SIZES, generators(1, 2), spectral_norm=True)
    before = {name: t.clone() for name, t in net.state_dict().items()}
    net(rows(2, 3, 5)).sum().backward()
    net.lipschitz()
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
    net.layers[0].weight.data.mul_(torch.linspace(1, 2, 5)[:, None])
    net.power_iteration()
    assert not torch.equal(net.layers[0].left, before["layers.0.left"])


def test_lipschitz_is_a_bound_and_the_product_of_the_norms(float64):
    net = PackedMLP(SIZES, generators(1, 2), init="kaiming")
    norms = [torch.linalg.svdvals(w)[:, 0] for w in weights(net)]
    torch.testing.assert_close(net.lipschitz(), norms[0] * norms[1] * norms[2])
    a, b = rows(2, 500, 5), rows(2, 500, 5, seed=1)
    slope = (net(a) - net(b)).norm(dim=-1) / (a - b).norm(dim=-1)
    assert (slope.amax(dim=1) <= net.lipschitz()).all()


@pytest.mark.parametrize("normalise", [False, True])
def test_freeze(normalise: bool):
    net = PackedMLP(SIZES, generators(1, 2), init="kaiming")
    before = [w.clone() for w in weights(net)]
    net.freeze(normalise)
    assert not any(p.requires_grad for p in net.parameters())
    for old, new in zip(before, weights(net), strict=True):
        norm = torch.linalg.svdvals(old)[:, :1, None] if normalise else 1.0
        torch.testing.assert_close(new, old / norm)


# --- observations


def test_normaliser_is_the_mean_and_std_of_all_it_saw(float64):
    normaliser = ObsNormaliser(2, 3)
    batches = [5.0 + 3.0 * rows(2, n, 3, seed=n) for n in (1, 4, 4, 7, 100)]
    for batch in batches:
        normaliser.update(batch)
    seen = torch.cat(batches, dim=1).numpy()
    mean, std = seen.mean(axis=1, keepdims=True), seen.std(axis=1, keepdims=True)
    np.testing.assert_allclose(normaliser.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(normaliser.var, std**2, rtol=1e-12)
    assert normaliser.count.flatten().tolist() == [116.0, 116.0]
    x = 40.0 * rows(2, 50, 3)
    expected = np.clip((x.numpy() - mean) / std, -10.0, 10.0)
    np.testing.assert_allclose(normaliser(x), expected, rtol=1e-7)
    assert normaliser(1e9 * x).abs().eq(10.0).all()


def test_normaliser_in_float32_over_many_small_steps():
    normaliser, batches = ObsNormaliser(1, 2), 30.0 + rows(3000, 1, 4, 2)
    for batch in batches:
        normaliser.update(batch)
    seen = batches.flatten(0, 2).double().numpy()
    np.testing.assert_allclose(normaliser.mean.flatten(), seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(normaliser.var.flatten(), seen.var(axis=0), rtol=1e-3)


def test_normaliser_over_a_million_rows():
    """Check a feature whose mean far exceeds its std, as on Humanoid-v4.

    With running statistics in float32, the mean would drift.
    """
    normaliser, obs = ObsNormaliser(1, 1), 0.990 + 0.023 * rows(1, 1_000_000, 1)
    for batch in obs.split(100, dim=1):
        normaliser.update(batch)
    mean, std = obs.double().mean(), obs.double().std()
    assert normaliser.mean.dtype == torch.float64
    torch.testing.assert_close(normaliser.mean.mean(), mean, rtol=1e-12, atol=0)
    torch.testing.assert_close(normaliser.var.mean().sqrt(), std, rtol=1e-6, atol=0)
    assert normaliser(obs[:, :4]).dtype == torch.float32


def test_normaliser_starts_as_the_identity_and_survives_a_constant():
    normaliser = ObsNormaliser(1, 2)
    x = rows(1, 4, 2)
    torch.testing.assert_close(normaliser(x), x)
    normaliser.update(torch.full((1, 6, 2), 3.0))
    assert normaliser(torch.full((1, 2, 2), 3.0)).eq(0.0).all()
    assert normaliser(x).isfinite().all()


def test_normaliser_fits_each_run_to_its_own_set(float64):
    normaliser = ObsNormaliser(2, 3)
    sets = [2.0 + rows(1, 9, 3), 7.0 * rows(1, 30, 3, seed=1)]
    normaliser.fit(sets)
    for run, obs in enumerate(sets):
        np.testing.assert_allclose(normaliser.mean[run, 0], obs[0].numpy().mean(axis=0))
        np.testing.assert_allclose(normaliser.var[run, 0], obs[0].numpy().var(axis=0))
    normaliser.update(rows(2, 5, 3))  # more updates are possible afterwards
    assert normaliser.count.flatten().tolist() == [14.0, 35.0]


def test_normaliser_keeps_runs_apart():
    normaliser = ObsNormaliser(3, 2)
    obs = rows(3, 8, 2)
    obs[1] = torch.nan
    normaliser.update(obs)
    assert normaliser.mean[[0, 2]].isfinite().all()
    assert normaliser.var[[0, 2]].isfinite().all()
