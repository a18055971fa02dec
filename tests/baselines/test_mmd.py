"""Tests of MMD-DAC: kernels and witness (against known numbers), loss, reward and packs.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from baselines.mmd import MmdConfig, MmdDac, mmd_squared, rbf_mixture, witness
from ngt.agent.streams import Streams
from ngt.errors import UserError
from ngt.experience.demos import DemoSet
from ngt.experience.replay import Batch
from ngt.penalty import gradient_penalty
from ngt.reward import Spec
from ngt.training.trainer import Learner

OBS, ACT, BATCH = 3, 2, 16
SIGMAS = (0.1, 1.0, 10.0)
MODES = ["state-action", "state-state", "state-only"]
PENALTIES: list[dict[str, Any]] = [
    {},
    {"one_sided": True},
    {"penalise": "witness"},
    {"penalise": "witness", "one_sided": True, "m": 4},
]


def build(
    seeds: Sequence[int] = (1,),
    mode: Any = "state-action",
    obs: int = OBS,
    act: int = ACT,
    batch: int = BATCH,
    **options: Any,
) -> MmdDac:
    """Return a model that holds the random draws of its first iteration."""
    config = MmdConfig(**{"hidden": (32, 32), "lr": 3e-3, **options})
    model = MmdDac(config, Spec(obs, act, mode, batch, seeds, 200, 4, 0.99))
    model.noise = Streams(seeds, model.draws()).next()
    return model


def states(x: Tensor) -> Batch:
    """Return transitions with observations x (R, B, obs) and zero actions."""
    flat = torch.zeros(x.shape[:2])
    return Batch(x, torch.zeros(*x.shape[:2], 1), x, flat, flat)


def transitions(g: torch.Generator, size: int, middle: float = 0.0) -> Batch:
    """Return one run's transitions, with normally distributed observations and actions.

    middle: the mean of the distribution.
    """
    x = middle + torch.randn(1, size, OBS + ACT, generator=g)
    return states(x[..., :OBS])._replace(action=x[..., OBS:])


def clusters(runs: int = 1, seed: int = 0, gap: float = 2.0) -> tuple[Batch, Batch]:
    """Return an agent batch and an expert batch whose observations are shifted by `gap`."""
    g = torch.Generator().manual_seed(seed)
    batches = []
    for middle in (0.0, gap):
        obs, next_obs = (
            middle + 0.3 * torch.randn(runs, BATCH, OBS, generator=g) for _ in range(2)
        )
        action = 2 * torch.rand(runs, BATCH, ACT, generator=g) - 1
        flat = torch.zeros(runs, BATCH)
        batches.append(Batch(obs, action, next_obs, flat, flat))
    return batches[0], batches[1]


# --- kernel, MMD^2 and witness


@pytest.fixture(params=["mmd_1d", "mmd_8d", "mmd_32d"])
def known(request: Any, vectors: Callable[[str], dict[str, Tensor]]) -> dict[str, Tensor]:
    return vectors(request.param)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_known_numbers(known: dict[str, Tensor], dtype: torch.dtype, atol: float) -> None:
    e, a, query = (known[k][None].to(dtype) for k in ("x_expert", "y_agent", "query"))
    assert tuple(known["sigmas"].tolist()) == SIGMAS == MmdConfig().sigmas

    def close(got: Tensor, name: str) -> None:
        torch.testing.assert_close(got.double(), known[name], rtol=0, atol=atol)

    close(mmd_squared(e, a, SIGMAS)[0], "mmd2_biased_sum")
    close(mmd_squared(e, a, SIGMAS)[0] / len(SIGMAS), "mmd2_biased_mean")
    close(torch.cat([mmd_squared(e, a, [s]) for s in SIGMAS]), "mmd2_biased_per_sigma")
    for at, points in (("query", query), ("expert", e), ("agent", a)):
        close(witness(points, e, a, SIGMAS)[0], f"witness_{at}_sum")
    gap = witness(e, e, a, SIGMAS).mean() - witness(a, e, a, SIGMAS).mean()
    close(gap, "mmd2_biased_sum")


def test_known_gradients(known: dict[str, Tensor]) -> None:
    e, a = (known[k][None].requires_grad_() for k in ("x_expert", "y_agent"))
    got = torch.autograd.grad(mmd_squared(e, a, SIGMAS).sum(), (e, a))
    for grad, name in zip(got, ("grad_expert", "grad_agent"), strict=True):
        torch.testing.assert_close(grad[0], known[name], rtol=0, atol=1e-12)


def kernel(u: np.ndarray, v: np.ndarray) -> float:
    square = sum((float(p) - float(q)) ** 2 for p, q in zip(u, v, strict=True))
    return sum(math.exp(-square / (2 * s**2)) for s in (0.1, 1.0, 10.0))


@pytest.mark.parametrize("m", [1, 3])
def test_explicit_double_sums_with_sizes_of_their_own(m: int) -> None:
    rng = np.random.default_rng(m)
    e, a, x = (rng.normal(size=(2, n, m)) for n in (4, 7, 5))
    te, ta, tx = (torch.from_numpy(v) for v in (e, a, x))
    k, got, w = (
        rbf_mixture(te, ta, SIGMAS),
        mmd_squared(te, ta, SIGMAS),
        witness(tx, te, ta, SIGMAS),
    )
    assert k.shape == (2, 4, 7) and got.shape == (2,) and w.shape == (2, 5)
    for run in range(2):
        ee = sum(kernel(p, q) for p in e[run] for q in e[run]) / 16
        aa = sum(kernel(p, q) for p in a[run] for q in a[run]) / 49
        ea = sum(kernel(p, q) for p in e[run] for q in a[run]) / 28
        assert got[run].item() == pytest.approx(ee + aa - 2 * ea, rel=1e-12)
        assert k[run, 1, 2].item() == pytest.approx(kernel(e[run, 1], a[run, 2]), rel=1e-12)
        for i in range(5):
            by_hand = sum(kernel(x[run, i], q) for q in e[run]) / 4
            by_hand -= sum(kernel(x[run, i], q) for q in a[run]) / 7
            assert w[run, i].item() == pytest.approx(by_hand, rel=1e-11)


def test_a_witness_by_hand() -> None:
    """Check the witness function for a single expert point, 0, and a single agent point, 1.

    The function's value is 3 - (e^-50 + e^-0.5 + e^-0.005) at the expert's point, and 0 halfway
    between the two points.
    """
    e, a = torch.zeros(1, 1, 1).double(), torch.ones(1, 1, 1).double()
    x = torch.tensor([0.0, 0.5, 1.0, 1e6]).double().view(1, 4, 1)
    top = 3 - (math.exp(-50) + math.exp(-0.5) + math.exp(-0.005))
    got = witness(x, e, a, SIGMAS)[0].tolist()
    assert got == pytest.approx([top, 0.0, -top, 0.0], abs=1e-15)
    assert mmd_squared(e, a, SIGMAS).item() == pytest.approx(2 * top)


def test_second_derivatives(float64: None) -> None:
    """Check the second derivatives that a witness penalty needs, even at coincident points."""
    g = torch.Generator().manual_seed(0)
    e, a = (torch.randn(1, 3, 2, generator=g).requires_grad_() for _ in range(2))
    x = torch.cat([e[:, :1], torch.zeros(1, 1, 2)], dim=1).detach().requires_grad_()

    def f(*v: Tensor) -> Tensor:
        return witness(*v, sigmas=(0.5, 1.0, 10.0))

    assert torch.autograd.gradcheck(f, (x, e, a))
    assert torch.autograd.gradgradcheck(f, (x, e, a))


def test_identical_samples_have_no_discrepancy_and_distant_ones_all_of_it() -> None:
    u = torch.randn(1, 9, 2, generator=torch.Generator().manual_seed(0))
    assert mmd_squared(u, u, SIGMAS).item() == pytest.approx(0.0, abs=1e-6)
    one = torch.zeros(1, 4, 2)
    assert mmd_squared(one, one + 1e4, SIGMAS).item() == 6.0, "MMD^2 must be maximal, 2 per sigma"
    assert torch.equal(witness(one, one, one + 1e4, SIGMAS), torch.full((1, 4), 3.0))


def test_an_offset_costs_no_digits_in_float32() -> None:
    """Check that an offset added to the net's outputs does not change the kernel.

    The loss does not constrain this offset. The outputs here are multiples of 1/1024. They stay
    exact in float32 when the tested offset of 4096 is added.
    """
    g = torch.Generator().manual_seed(0)
    u, v = (torch.randint(-512, 512, (1, 32, 2), generator=g) / 1024 for _ in range(2))
    near = rbf_mixture(u, v, SIGMAS)
    assert near.std() > 0.1
    assert torch.equal(rbf_mixture(u + 4096.0, v + 4096.0, SIGMAS), near)


@pytest.mark.parametrize("distance", [1e10, 1e25])
def test_kernels_of_huge_outputs_are_zero(distance: float) -> None:
    u = torch.tensor([0.0, distance]).view(1, 2, 1).requires_grad_()
    k = rbf_mixture(u, u, SIGMAS)
    k.sum().backward()
    assert k.detach()[0].tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert u.grad is not None and u.grad.eq(0).all()


# --- the loss


def plain_net(model: MmdDac, run: int, x: Tensor) -> np.ndarray:
    y = x.numpy()
    for depth, layer in enumerate(model.net.layers):
        y = y @ layer.weight.detach()[run].numpy() + layer.bias.detach()[run, 0].numpy()
        if depth < len(model.net.layers) - 1:
            y = np.where(y > 0, y, 0.05 * y)
    return y


@pytest.mark.parametrize("mode", MODES)
def test_loss_is_the_penalty_minus_mmd_squared(
    float64: None, make_batch: Callable[..., Batch], mode: str
) -> None:
    model = build((1, 2), mode)
    agent, expert = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    loss = model.loss(agent, expert)
    x_agent, x_expert = model.inputs(agent), model.inputs(expert)
    slope = gradient_penalty(model.net, x_expert, x_agent, model.noise["epsilon"])
    assert slope.gt(0.01).all()
    for run in range(2):
        e, a = plain_net(model, run, x_expert[run]), plain_net(model, run, x_agent[run])
        pairs = [(e, e, 1), (a, a, 1), (e, a, -2)]
        mmd2 = sum(c * kernel(p, q) for u, v, c in pairs for p in u for q in v) / BATCH**2
        assert model.metrics["mmd2"][run].item() == pytest.approx(mmd2, rel=1e-9)
        expected = 10 * slope[run].item() - mmd2
        assert loss[run].item() == pytest.approx(expected, rel=1e-9)
    assert torch.equal(model.metrics["gradient_penalty"], slope.detach())
    assert not any(v.requires_grad for v in model.metrics.values())


@pytest.mark.parametrize("options", [*PENALTIES[:3], {"penalise": "witness", "m": 4}], ids=str)
def test_gradient_against_differences(
    float64: None, make_batch: Callable[..., Batch], options: dict[str, Any]
) -> None:
    """Compare the loss's gradient with finite differences.

    The gradient passes through the kernels, the slopes and the witness's reference samples.
    """
    model = build(**{"sigmas": (0.5, 1.0, 10.0), **options})
    for i, p in enumerate(model.net.parameters()):  # the one-sided penalty needs slopes above 1
        p.data += 0.6 * torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
    agent, expert = make_batch(1, BATCH, OBS, ACT), make_batch(1, BATCH, OBS, ACT, seed=1)
    model.loss(agent, expert).sum().backward()
    assert model.metrics["gradient_penalty"].item() > 1e-3
    *trained, offset = model.net.parameters()
    assert offset.grad is None and not offset.requires_grad, (
        "the loss does not depend on the offset"
    )
    for i, p in enumerate(trained):
        assert p.grad is not None
        way = torch.randn(p.shape, generator=torch.Generator().manual_seed(50 + i))
        ends, step = [], 1e-6
        for sign in (1, -1):
            p.data += sign * step * way
            ends.append(model.loss(agent, expert).item())
            p.data -= sign * step * way
        slope = (ends[0] - ends[1]) / (2 * step)
        assert float((p.grad * way).sum()) == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("one_sided", [False, True])
def test_whose_slope_is_penalised(float64: None, one_sided: bool) -> None:
    g = torch.Generator().manual_seed(0)
    agent, expert = (
        Batch(*(middle + 0.1 * t for t in transitions(g, BATCH))) for middle in (0.0, 0.1)
    )
    model = build(penalise="witness", one_sided=one_sided)
    model.net.layers[-1].weight.data *= 5.0  # steep witness, since agent and expert are near
    loss = model.loss(agent, expert).item()
    x_agent, x_expert = model.inputs(agent), model.inputs(expert)
    x = x_agent + model.noise["epsilon"][..., None] * (x_expert - x_agent)
    refs = [torch.from_numpy(plain_net(model, 0, v[0]))[None] for v in (x_expert, x_agent)]

    def w(points: Tensor) -> Tensor:
        return witness(torch.from_numpy(plain_net(model, 0, points))[None], *refs, SIGMAS)[0]

    total, steps = 0.0, 1e-6 * torch.eye(OBS + ACT)
    for point in x[0]:
        excess = ((w(point + steps) - w(point - steps)) / 2e-6).norm().item() - 1.0
        total += (max(excess, 0.0) if one_sided else excess) ** 2
    got, mmd2 = (model.metrics[name].item() for name in ("gradient_penalty", "mmd2"))
    assert got == pytest.approx(total / BATCH, rel=1e-5) and got > 1e-3
    assert loss == pytest.approx(10 * got - mmd2)


def test_several_outputs_have_no_one_slope() -> None:
    assert build(m=3, penalise="witness").net(torch.zeros(1, 4, OBS + ACT)).shape == (1, 4, 3)
    with pytest.raises(UserError, match=r"params\.m: 3 outputs"):
        build(m=3)


@pytest.mark.parametrize("change", ["mirror", "shift"])
def test_loss_and_reward_know_nothing_of_ds_sign_and_offset(
    float64: None, make_batch: Callable[..., Batch], change: str
) -> None:
    """Check that -D and D + c have the same loss and reward as the net D.

    The reward therefore cannot be D(x).
    """
    agent, expert = make_batch(1, BATCH, OBS, ACT), make_batch(1, BATCH, OBS, ACT, seed=1)
    model, other = build(), build()
    head = other.net.layers[-1]
    if change == "mirror":
        head.weight.data.neg_()
        head.bias.data.neg_()
    else:
        head.bias.data += 3.0
    losses = [m.loss(agent, expert).detach() for m in (model, other)]
    torch.testing.assert_close(*losses, rtol=0, atol=1e-11)
    for m in (model, other):
        m.agent.copy_(m.inputs(agent))
        m.expert.copy_(m.inputs(expert))
    x = model.inputs(expert)
    assert not torch.isclose(model.net(x), other.net(x)).any()
    torch.testing.assert_close(model.reward(expert), other.reward(expert), rtol=0, atol=1e-11)


# --- learning


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", PENALTIES, ids=str)
def test_updates_raise_mmd_and_part_two_clusters(mode: str, options: dict[str, Any]) -> None:
    model = build((1, 2), mode, **options)
    agent, expert = clusters(2)
    model.loss(agent, expert)
    first = model.metrics["mmd2"]
    for _ in range(150):
        model.update(agent, expert)
    assert (model.metrics["mmd2"] > first + 0.1).all() and (model.metrics["mmd2"] > 1.5).all()
    assert (model.metrics["gradient_penalty"] < 0.5).all()
    unseen_agent, unseen_expert = clusters(2, seed=1)
    for e, a in ((expert, agent), (unseen_expert, unseen_agent)):
        assert (model.reward(e).mean(dim=1) > 0.5).all(), "the expert must have the higher reward"
        assert (model.reward(a).mean(dim=1) < -0.5).all()
        assert (model.reward(e).abs() < 3).all()


def test_the_penalty_keeps_ds_slope_at_one() -> None:
    slopes = []
    for penalty in (0.0, 10.0):
        model, batches = build(penalty=penalty, hidden=(64, 64)), clusters(gap=0.3)
        for _ in range(300):
            model.update(*batches)
        x = model.inputs(batches[0]).requires_grad_()
        (grad,) = torch.autograd.grad(model.net(x).sum(), x)
        slopes.append(grad.norm(dim=-1).mean().item())
    assert slopes[0] > 2.0 and 0.5 < slopes[1] < 1.5


def test_sides_of_one_distribution_get_a_reward_near_zero_and_an_auc_near_one_half() -> None:
    """Draw the agent's and the expert's batch from one distribution.

    The kernel of an agent's row with itself is 3, which changes the row's reward by 3/B. This
    change must not make the agent's rewards clearly differ from the expert's.
    """
    model, g = build(batch=128), torch.Generator().manual_seed(0)
    for _ in range(60):
        agent, expert = transitions(g, 128), transitions(g, 128)
        model.update(agent, expert)
    assert model.metrics["mmd2"].item() < 0.15
    assert model.reward(transitions(g, 128)).abs().mean() < 0.3
    learner: Any = SimpleNamespace(model=model)
    auc = Learner.diagnostics(learner, expert, agent)["auc"].item()
    assert 0.4 < auc < 0.65 and auc == pytest.approx(
        Learner.diagnostics(learner, expert, transitions(g, 128))["auc"].item(), abs=0.1
    )


# --- the reward


def test_before_the_first_update_the_reward_is_zero(make_batch: Callable[..., Batch]) -> None:
    model, batch = build((1, 2)), make_batch(2, 9, OBS, ACT)
    assert torch.equal(model.reward(batch), torch.zeros(2, 9))


@pytest.mark.parametrize("mode", MODES)
def test_the_reward_is_of_the_last_batches_and_the_present_net(
    float64: None, make_batch: Callable[..., Batch], mode: str
) -> None:
    model, batch = build((1, 2), mode), make_batch(2, 9, OBS, ACT, seed=9)
    held = dict(model.named_buffers())
    for seed in (0, 5):
        agent, expert = (make_batch(2, BATCH, OBS, ACT, seed=seed + i) for i in (0, 1))
        model.update(agent, expert)
        reward = model.reward(batch)
        assert reward.shape == (2, 9) and not reward.requires_grad
        for run in range(2):
            x, e, a = (plain_net(model, run, model.inputs(b)[run]) for b in (batch, expert, agent))
            for i in range(9):
                by_hand = sum(kernel(x[i], q) for q in e) - sum(kernel(x[i], q) for q in a)
                assert reward[run, i].item() == pytest.approx(by_hand / BATCH, rel=1e-8, abs=1e-12)
        torch.testing.assert_close(model.reward(Batch(*(t[:, 2:5] for t in batch))), reward[:, 2:5])
    assert held.keys() == {"expert", "agent"}
    assert all(held[name] is buffer for name, buffer in model.named_buffers()), (
        "buffers must stay the same tensors"
    )
    seen = {"obs", *{"state-action": ["action"], "state-state": ["next_obs"]}.get(mode, [])}
    for name in Batch._fields:
        shuffled = batch._replace(**{name: getattr(batch, name).roll(1, dims=1)})
        assert torch.equal(model.reward(shuffled), reward) == (name not in seen), name


def test_reading_changes_no_state_and_a_saved_model_gives_the_same_reward(
    make_batch: Callable[..., Batch],
) -> None:
    model, batch = build((1, 2)), make_batch(2, BATCH, OBS, ACT)
    model.update(batch, make_batch(2, BATCH, OBS, ACT, seed=1))
    before = {name: t.clone() for name, t in model.state_dict().items()}
    reward = model.reward(batch)
    assert torch.equal(model.reward(batch), reward)
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    again = build((7, 8))
    again.load_state_dict(before)
    assert torch.equal(again.reward(batch), reward)


# --- absorbing states


@pytest.mark.parametrize("mode", MODES)
def test_absorbing_states(make_batch: Callable[..., Batch], mode: str) -> None:
    """Check that the stored batches, which define the witness, contain absorbing states.

    The reward of a terminated transition must also include the value of the absorbing state.
    """
    model = build((1, 2), mode, absorbing=True)
    agent, expert = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    model.update(agent, expert)
    swapped = (agent.terminated > 0) & (model.noise["coin_a"] < 0.5)
    flag = model.agent[..., OBS]
    assert swapped.any() and torch.equal(flag, swapped.float())
    row = model.absorbing(model.inputs(agent))
    with torch.no_grad():
        plain = model.value(model.inputs(agent))
        after = 0.99 / (1 - 0.99) * model.value(row)
    expected = plain + agent.terminated * after
    torch.testing.assert_close(model.reward(agent), expected, rtol=1e-4, atol=1e-4)
    assert (after != 0).all()
    torch.testing.assert_close(model.score(agent), plain)


# --- numerics and packs


@pytest.mark.parametrize("options", PENALTIES, ids=str)
@pytest.mark.parametrize("copies", [False, True])
def test_raw_inputs_to_5000(
    make_batch: Callable[..., Batch], options: dict[str, Any], copies: bool
) -> None:
    """Train on raw inputs of Humanoid's magnitude.

    copies: use an expert batch in which all rows are copies of one transition.
    """
    model = build(**options)
    agent, expert = make_batch(1, BATCH, OBS, ACT, scale=1500.0), make_batch(1, BATCH, OBS, ACT)
    agent.obs[0, 0, 0] = 5000.0
    if copies:
        expert = Batch(*(field[:, :1].expand_as(field) for field in expert))
    for _ in range(20):
        model.update(agent, expert)
    for batch in (agent, expert):
        assert model.reward(batch).isfinite().all()
    assert all(p.isfinite().all() for p in model.parameters())
    assert all(v.isfinite().all() for v in model.metrics.values())


def test_a_side_without_spread_has_a_finite_gradient() -> None:
    """Train on batches whose rows are all identical, so that every distance is zero."""
    for options in PENALTIES:
        model = build(**options)
        same = transitions(torch.Generator().manual_seed(0), 1)
        same = Batch(*(t.expand(1, BATCH, *t.shape[2:]) for t in same))
        for _ in range(3):
            model.update(same, same)
        assert all(p.isfinite().all() for p in model.parameters())
        assert torch.equal(model.reward(same), torch.zeros(1, BATCH))


def trained(
    seeds: Sequence[int], sizes: Sequence[int], updates: int, **options: Any
) -> list[Tensor]:
    """Train each run on its own data; return the weights and the rewards of the last agent batch.

    seeds, sizes: the seed and the number of expert transitions of each run.
    """
    sets, model = [], build(seeds, **options)
    for seed, size in zip(seeds, sizes, strict=True):
        sets.append(transitions(torch.Generator().manual_seed(seed), size))
    demos, streams = DemoSet(sets), Streams(seeds, model.draws())
    for step in range(updates):
        rngs = [torch.Generator().manual_seed(1000 * seed + step) for seed in seeds]
        index = torch.stack([torch.randint(1 << 48, (BATCH,), generator=g) for g in rngs])
        parts = [transitions(g, BATCH, middle=0.5) for g in rngs]
        agent = Batch(*(torch.cat(fields) for fields in zip(*parts, strict=True)))
        model.noise = streams.next()
        model.update(agent, demos.sample(index))
    return [*(p.detach() for p in model.parameters()), model.reward(agent)]


def largest_difference(updates: int, **options: Any) -> float:
    """Train runs in a pack and alone; return the largest difference in their weights or rewards.

    The runs have 1, 10 and 40 expert transitions.
    """
    seeds, sizes, worst = (3, 1, 2), (1, 10, 40), 0.0
    pack = trained(seeds, sizes, updates, **options)
    for run, pair in enumerate(zip(seeds, sizes, strict=True)):
        alone = trained([pair[0]], [pair[1]], updates, **options)
        for p, q in zip(pack, alone, strict=True):
            worst = max(worst, float((p[run] - q[0]).abs().max()))
    return worst


@pytest.mark.parametrize("options", [*PENALTIES, {"absorbing": True}], ids=str)
def test_a_pack_is_its_runs_side_by_side(float64: None, options: dict[str, Any]) -> None:
    assert largest_difference(1, **options) < 1e-8
    assert largest_difference(30, **options) < 1e-6


def test_a_pack_is_its_runs_side_by_side_in_float32() -> None:
    """Compare loosely: Adam turns rounding errors in the gradients into full-size first steps."""
    assert max(largest_difference(1), largest_difference(30)) < 2e-2


@pytest.mark.parametrize("poison", [1e30, math.nan])
def test_a_broken_run_does_not_reach_the_others(
    make_batch: Callable[..., Batch], poison: float
) -> None:
    results = []
    for broken in (False, True):
        model = build((1, 2, 3))
        for step in range(3):
            agent, expert = (make_batch(3, BATCH, OBS, ACT, seed=s) for s in (step, step + 50))
            for field in (*agent, *expert) if broken else ():
                field[1] = poison
            model.update(agent, expert)
        results.append([*model.state_dict().values(), model.reward(agent)])
    for good, bad in zip(*results, strict=True):
        assert torch.equal(good[[0, 2]], bad[[0, 2]])
