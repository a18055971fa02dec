"""The adversarial methods' gradient penalty, and how absorbing states affect survival.

A pack is a group of runs trained together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from baselines.adversarial import Adversarial, AdversarialConfig
from baselines.dac import Dac, DacConfig
from baselines.wdac import Wdac
from ngt.agent.kernels import Rectifier
from ngt.agent.nets import PackedMLP
from ngt.agent.streams import Streams, torch_generator
from ngt.errors import UserError
from ngt.experience.replay import Batch
from ngt.penalty import gradient_penalty
from ngt.reward import Spec
from tests.draws import rows

OBS, ACT, BATCH = 3, 2, 8
MODES = ["state-action", "state-state", "state-only"]


class Sum(Adversarial):
    """A model whose only loss is the penalty and whose reward is the sum of the net's outputs."""

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        return self.penalty(*self.pair(agent, expert))

    def value(self, x: Tensor) -> Tensor:
        value: Tensor = self.net(x).sum(-1)
        return value


def build(
    seeds: Sequence[int] = (1,),
    mode: Any = "state-action",
    outputs: int = 1,
    gamma=0.9,
    **options: Any,
) -> Sum:
    config = AdversarialConfig(**{"hidden": (16, 16), **options})
    model = Sum(config, Spec(OBS, ACT, mode, BATCH, seeds, 100, 4, gamma), outputs)
    model.noise = Streams(seeds, model.draws()).next()
    return model


# --- the penalty compared with stored vectors, formulas and central differences


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("side", [1, 2])
@pytest.mark.parametrize(
    ("name", "activation"),
    [
        ("gp_leaky005", Rectifier(0.05)),
        ("gp_leaky02", Rectifier(0.2)),
        ("gp_tanh", torch.tanh),
    ],
)
def test_penalty_equals_the_vectors(vectors, load_layers, name, activation, side, dtype):
    v = vectors(name)
    depth = sum(key.startswith("w") for key in v)
    pairs = [(v[f"w{i + 1}"], v[f"b{i + 1}"]) for i in range(depth)]
    sizes = [pairs[0][0].shape[1], *(w.shape[0] for w, _ in pairs)]
    net = PackedMLP(sizes, [torch_generator(0)], activation=activation).to(dtype)
    load_layers(net, pairs)
    expert, agent, epsilon = (v[k].to(dtype)[None] for k in ("x_expert", "x_agent", "eps"))
    got = gradient_penalty(net, expert, agent, epsilon[..., 0], one_sided=side == 1)
    near = {"rtol": 0.0, "atol": 1e-10 if dtype == torch.float64 else 1e-5}
    expected = v["gp_one_sided" if side == 1 else "gp_two_sided"].to(dtype)
    torch.testing.assert_close(got[0], expected, **near)
    got.sum().backward()
    for i, layer in enumerate(net.layers):
        derivative = v[f"dgp{side}_w{i + 1}"].to(dtype)
        torch.testing.assert_close(layer.weight.grad[0].t(), derivative, **near)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("length", [0.25, 3.0])
def test_penalty_of_a_linear_net(float64, one_sided: bool, length: float):
    """Check the penalty of a linear net with weights w.

    The penalty is (|w| - 1)^2, with gradient 2 (|w| - 1) w / |w|.
    The one-sided penalty is zero if |w| is below 1.
    """
    weight = F.normalize(rows(2, OBS), dim=-1).mul_(length).requires_grad_()
    got = gradient_penalty(
        lambda x: (x * weight[:, None]).sum(-1),
        rows(2, 5, OBS),
        rows(2, 5, OBS, seed=1),
        torch.rand(2, 5, generator=torch.Generator().manual_seed(2)),
        one_sided,
    )
    free = one_sided and length < 1.0
    expected = torch.full((2,), 0.0 if free else (length - 1.0) ** 2)
    torch.testing.assert_close(got, expected)
    (gradient,) = torch.autograd.grad(got.sum(), weight)
    unit = (weight / length).detach()
    torch.testing.assert_close(gradient, 0.0 * unit if free else 2.0 * (length - 1.0) * unit)


@pytest.mark.parametrize("one_sided", [False, True])
def test_penalty_of_a_bowl_says_where_it_is_taken(float64, one_sided: bool):
    """Check that the penalty takes each row's slope at x = epsilon expert + (1 - epsilon) agent.

    The net here is the bowl c |x|^2 / 2, whose slope at x is c |x|.
    """
    c = torch.tensor([0.5, 2.0], requires_grad=True)
    expert, agent, curvature = rows(2, 6, OBS), rows(2, 6, OBS, seed=1), c.tolist()
    epsilon = torch.rand(2, 6, generator=torch.Generator().manual_seed(2))
    got = gradient_penalty(
        lambda x: 0.5 * c[:, None] * x.square().sum(-1), expert, agent, epsilon, one_sided
    )
    (gradient,) = torch.autograd.grad(got.sum(), c)
    for run in range(2):
        total, slope_of_it = 0.0, 0.0
        for i in range(6):
            e = float(epsilon[run, i])
            x = e * expert[run, i].numpy() + (1.0 - e) * agent[run, i].numpy()
            norm = float((x**2).sum() ** 0.5)
            excess = curvature[run] * norm - 1.0
            if excess > 0 or not one_sided:
                total += excess**2 / 6
                slope_of_it += 2.0 * excess * norm / 6
        assert got[run].item() == pytest.approx(total, rel=1e-12)
        assert gradient[run].item() == pytest.approx(slope_of_it, rel=1e-12)


@pytest.mark.parametrize("one_sided", [False, True])
def test_penalty_is_finite_where_the_gradient_vanishes(make_batch, one_sided: bool):
    flat, steep = build((1, 2), one_sided=one_sided), build((1, 2), one_sided=one_sided)
    flat.net.layers[-1].weight.data[0] = 0.0  # only run 0 has slope exactly 0
    loss = [
        m.loss(make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, 1)) / 10.0
        for m in (flat, steep)
    ]
    assert loss[0][0].item() == (0.0 if one_sided else 1.0)
    assert torch.equal(loss[0][1], loss[1][1])
    loss[0].sum().backward()
    for parameter in flat.net.parameters():
        if parameter.grad is not None:
            assert parameter.grad.isfinite().all()
            assert parameter.grad[0].eq(0.0).all(), "the norm must have subgradient 0 at 0"

    weight = torch.ones(1, requires_grad=True)  # in one of the two rows the slope is 0
    at = torch.tensor([[[0.0], [2.0]]])
    got = gradient_penalty(
        lambda x: weight * x.square().sum(-1), at, at, torch.zeros(1, 2), one_sided
    )
    got.sum().backward()
    assert got.item() == pytest.approx((9.0 + (0.0 if one_sided else 1.0)) / 2.0)
    assert weight.grad.item() == pytest.approx(2.0 * 3.0 * 4.0 / 2.0)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_double_backward_through_leaky_relu_in_place(float64, make_batch, one_sided, outputs):
    """Compare the penalty's derivative by every third weight with a central difference."""
    model = build((1, 2), one_sided=one_sided, outputs=outputs, hidden=(7, 5), leak=0.3)
    for i, p in enumerate(model.net.parameters()):
        p.data.mul_(1.5).add_(0.1 * rows(*p.shape, seed=i))
    batches = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    model.loss(*batches).sum().backward()
    step = 1e-6
    for p in model.net.parameters():
        for at in range(0, p.numel(), 3):
            kept, ends = p.data.view(-1)[at].item(), []
            for side in (step, -step):
                p.data.view(-1)[at] = kept + side
                ends.append(model.loss(*batches).sum().item())
            p.data.view(-1)[at] = kept
            numeric = (ends[0] - ends[1]) / (2.0 * step)
            exact = 0.0 if p.grad is None else p.grad.view(-1)[at].item()
            assert exact == pytest.approx(numeric, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("poison", [0.0, 1e30, float("nan")])
def test_the_penalty_of_a_run_is_its_own(make_batch, of_run, poison: float):
    seeds = (5, 6, 7)
    agent, expert = make_batch(3, BATCH, OBS, ACT), make_batch(3, BATCH, OBS, ACT, seed=1)
    for field in (*agent, *expert):
        field[1] += poison
    pack = build(seeds)
    loss = pack.loss(agent, expert)
    loss.sum().backward()
    for run in (0, 2):
        alone = build(seeds[run : run + 1])
        torch.testing.assert_close(pack.noise["epsilon"][run], alone.noise["epsilon"][0])
        single = alone.loss(of_run(agent, run), of_run(expert, run))
        torch.testing.assert_close(loss[run], single[0], rtol=1e-5, atol=1e-6)
        single.sum().backward()
        for p, q in zip(pack.net.parameters(), alone.net.parameters(), strict=True):
            if q.grad is not None:
                torch.testing.assert_close(p.grad[run], q.grad[0], rtol=1e-4, atol=1e-6)


def test_the_penalty_is_weighted_and_logged(make_batch):
    batches = make_batch(1, BATCH, OBS, ACT), make_batch(1, BATCH, OBS, ACT, seed=1)
    light, heavy = build(penalty=1.0), build(penalty=10.0)
    plain = light.loss(*batches).detach()
    torch.testing.assert_close(heavy.loss(*batches).detach(), 10.0 * plain)
    assert torch.equal(heavy.metrics["gradient_penalty"], plain), (
        "the logged penalty must be unweighted"
    )
    assert not heavy.metrics["gradient_penalty"].requires_grad
    at = build().pair(*batches)
    epsilon = light.noise["epsilon"]
    torch.testing.assert_close(plain, gradient_penalty(light.net, at[1], at[0], epsilon).detach())


def test_defaults_are_the_papers():
    config = AdversarialConfig()
    assert (config.hidden, config.leak, config.lr) == ((256, 256), 0.05, 1e-3)
    assert (config.penalty, config.one_sided, config.absorbing) == (10.0, False, False)


def test_nets_differ_between_runs_and_are_those_a_run_has_alone():
    pack = build((1, 2))
    assert not torch.isclose(pack.net.layers[0].weight[0], pack.net.layers[0].weight[1]).any()
    for p, q in zip(pack.net.parameters(), build((2,)).net.parameters(), strict=True):
        assert torch.equal(p[1], q[0])
    for layer in pack.net.layers:
        assert layer.bias.eq(0.0).all()
        gram = layer.weight.mT @ layer.weight
        if layer.weight.shape[1] < layer.weight.shape[2]:
            gram = layer.weight @ layer.weight.mT
        torch.testing.assert_close(gram, torch.eye(gram.shape[-1]).expand_as(gram))


@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_no_value_is_read_back(make_batch, mode, absorbing: bool):
    """Compute loss and rewards on the meta device, where code that needs tensor values fails."""
    for model in (build((1, 2), mode, absorbing=absorbing), build_toy(Dac, absorbing, mode=mode)):
        model.to("meta")
        model.noise = {k: v.to("meta") for k, v in model.noise.items()}
        made = make_batch(2, model.spec.batch, model.spec.obs, model.spec.act)
        batch = Batch(*(f.to("meta") for f in made))
        model.loss(batch, batch).sum().backward()
        assert model.reward(batch).shape == model.score(batch).shape == batch.reward.shape


# --- absorbing states


@pytest.mark.parametrize("mode", MODES)
def test_inputs_with_and_without_flags(make_batch, mode):
    batch = make_batch(2, BATCH, OBS, ACT)
    kept = Batch(*(f.clone() for f in batch))
    plain, flagged = build((1, 2), mode), build((1, 2), mode, absorbing=True)
    second = {"state-action": [batch.action], "state-state": [batch.next_obs], "state-only": []}
    assert torch.equal(plain.inputs(batch), torch.cat([batch.obs, *second[mode]], dim=-1))
    x = flagged.inputs(batch)
    assert x.shape[-1] == flagged.net.layers[0].weight.shape[1] == flagged.absorbing(x).shape[-1]
    for run in range(2):
        for i in range(BATCH):
            end = float(batch.terminated[run, i])
            expected = [*batch.obs[run, i].tolist(), 0.0]
            if mode == "state-action":
                expected += batch.action[run, i].tolist()
            if mode == "state-state":
                expected += [0.0] * OBS if end else batch.next_obs[run, i].tolist()
                expected += [end]
            assert x[run, i].tolist() == expected
    ends = {"state-action": [0.0] * ACT, "state-state": [0.0] * OBS + [1.0], "state-only": []}
    assert flagged.absorbing(x).tolist() == [[[*[0.0] * OBS, 1.0, *ends[mode]]]] * 2
    assert 0 < batch.terminated.sum() < batch.terminated.numel()
    flagged.pair(batch, batch)
    assert all(map(torch.equal, batch, kept)), "the batch must not change"


@pytest.mark.parametrize("mode", MODES)
def test_the_coin_swaps_terminated_rows_alone(make_batch, mode):
    model = build((1, 2), mode, absorbing=True)
    size = 400
    agent, expert = make_batch(2, size, OBS, ACT), make_batch(2, size, OBS, ACT, seed=1)
    coins = {
        name: torch.rand(2, size, generator=torch.Generator().manual_seed(i))
        for i, name in enumerate(("coin_a", "coin_e"))
    }
    model.noise = coins
    for x, batch, coin in zip(model.pair(agent, expert), (agent, expert), coins, strict=True):
        before, absorbed = model.inputs(batch), 0
        for run in range(2):
            for i in range(size):
                swap = bool(batch.terminated[run, i]) and float(coins[coin][run, i]) < 0.5
                row = model.absorbing(before)[run, 0] if swap else before[run, i]
                assert torch.equal(x[run, i], row)
                absorbed += swap
        assert 0.4 < absorbed / batch.terminated.sum() < 0.6


def test_coins_are_drawn_where_they_are_used():
    assert set(build().draws()) == {"epsilon"}
    draws = build(absorbing=True).draws()
    assert set(draws) == {"epsilon", "coin_a", "coin_e"}
    assert all(d.kind == "uniform" and d.shape == (BATCH,) for d in draws.values())


@pytest.mark.parametrize("mode", MODES)
def test_the_reward_of_an_end_holds_all_that_follows(float64, make_batch, mode):
    """Check that a terminated transition's reward also includes all later absorbing rewards.

    Their discounted sum is the sum of gamma^k r_absorbing over k = 1, 2, ...
    All other transitions get only their own reward r.
    """
    gamma, batch = 0.9, make_batch(2, BATCH, OBS, ACT)
    model = build((1, 2), mode, absorbing=True, gamma=gamma)
    reward, x = model.reward(batch), model.inputs(batch)
    for run in range(2):
        after = sum(
            gamma**k * model.value(model.absorbing(x))[run, 0].item() for k in range(1, 400)
        )
        for i in range(BATCH):
            r = model.value(x)[run, i].item() + float(batch.terminated[run, i]) * after
            assert reward[run, i].item() == pytest.approx(r, rel=1e-9)
    torch.testing.assert_close(model.score(batch), model.value(x))  # the score must be D alone
    torch.testing.assert_close(model.metrics["reward_std"], reward.std(dim=1, correction=0))
    plain = build((1, 2), mode, gamma=gamma)
    torch.testing.assert_close(plain.reward(batch), plain.value(plain.inputs(batch)))


def test_an_endless_reward_needs_a_discount():
    with pytest.raises(UserError, match=r"absorbing.*gamma"):
        build(absorbing=True, gamma=1.0)
    build(absorbing=False, gamma=1.0)


# --- a toy env: in "start" the agent either ends the episode or moves to "alive" for good
#
# In "start", the action END ends the episode and ACTIONS[0] enters "alive".
# The agent's policy is uniform, and episodes are truncated after 6 steps.
# The expert "ends" takes END in "start". The expert "lives" enters "alive" and then always
# takes the first of four actions.

GAMMA = 0.99
START, ALIVE, OVER = torch.eye(3)
END, ACTIONS = 1.0, (-1.0, -1 / 3, 1 / 3, 1.0)


def transitions(*table: tuple[Tensor, float, Tensor, float, int]) -> Batch:
    """Return a batch of one run from rows (obs, action, next_obs, terminated, number of copies)."""
    row = [r[:4] for r in table for _ in range(r[4])]
    obs, next_obs = (torch.stack([r[i] for r in row])[None] for i in (0, 2))
    action, terminated = (torch.tensor([[r[i] for r in row]]) for i in (1, 3))
    return Batch(obs, action[..., None], next_obs, torch.zeros_like(terminated), terminated)


LIVES, ENDS = (START, ACTIONS[0], ALIVE, 0.0), (START, END, OVER, 1.0)
GOES_ON = [(ALIVE, a, ALIVE, 0.0) for a in ACTIONS]
AGENT = transitions((*LIVES, 4), (*ENDS, 4), *((*g, 5) for g in GOES_ON))
EXPERTS = {"ends": transitions((*ENDS, 1)), "lives": transitions((*LIVES, 1), (*GOES_ON[0], 5))}


def build_toy(cls: Any, absorbing: bool, mode: Any = "state-action", **options: Any) -> Adversarial:
    config = cls.Config(hidden=(32, 32), lr=3e-3, absorbing=absorbing, **options)
    model: Adversarial = cls(config, Spec(3, 1, mode, 64, (0, 1), 6, 4, GAMMA))
    model.noise = Streams((0, 1), model.draws()).next()
    return model


def trained(cls: Any, expert: str, absorbing: bool, updates: int = 200, **options: Any):
    """Return a model of two runs, trained on the toy env's agent and one of its experts."""
    model = build_toy(cls, absorbing, **options)
    streams, g = Streams((0, 1), model.draws()), torch.Generator().manual_seed(0)
    for _ in range(updates):
        model.noise = streams.next()
        batches = []
        for side in (AGENT, EXPERTS[expert]):
            pick = torch.randint(side.obs.shape[1], (2, 64), generator=g)
            batches.append(Batch(*(f[0][pick] for f in side)))
        model.update(*batches)
    return model


def returns(model: Adversarial) -> dict[str, Tensor]:
    """Return three discounted returns, each for both runs, shape (2,).

    ends: the return if the first action ends the episode.
    lives: the return of surviving with the agent's policy.
    least: the return of surviving with the action that has the lowest reward.
    """

    def reward(row: tuple[Tensor, float, Tensor, float]) -> Tensor:
        return model.reward(Batch(*(f.expand(2, *f.shape[1:]) for f in transitions((*row, 1)))))[
            :, 0
        ]

    step = torch.stack([reward(g) for g in GOES_ON])
    first, forever = reward(LIVES), GAMMA / (1.0 - GAMMA)
    return {
        "ends": reward(ENDS),
        "lives": first + forever * step.mean(dim=0),
        "least": first + forever * step.amin(dim=0),
    }


@pytest.mark.parametrize("mode", MODES)
def test_r_plus_prefers_staying_alive_over_an_expert_that_ends(mode):
    """Check that positive rewards favour survival unless the reward covers absorbing states."""
    without = returns(trained(Dac, "ends", False, mode=mode, form="softplus"))
    assert (without["least"] > without["ends"]).all(), (
        "survival must have the higher return even with the lowest reward in every step"
    )
    learned = returns(trained(Dac, "ends", True, mode=mode, form="softplus"))
    assert (learned["ends"] > learned["lives"]).all()


def test_r_prefers_ending_over_an_expert_that_survives():
    """Check that negative rewards favour ending the episode if the agent is unlike the expert."""
    without = returns(trained(Dac, "lives", False, form="logit"))
    assert (without["ends"] > without["lives"]).all()
    learned = returns(trained(Dac, "lives", True, form="logit"))
    assert (learned["lives"] > learned["ends"]).all()


@pytest.mark.parametrize("expert", ["ends", "lives"])
def test_a_shift_of_the_critic_decides_unless_states_absorb(expert: str):
    """Check that a constant added to W-DAC's critic changes the agent's choice.

    With absorbing states, the constant adds the same number to every return, so the choice stays.
    """
    other = {"ends": "lives", "lives": "ends"}[expert]
    for absorbing in (False, True):
        model = trained(Wdac, expert, absorbing)
        agreed = []
        for shift in (-100.0, 0.0, 100.0):
            model.net.layers[-1].bias.data += shift
            both = returns(model)
            model.net.layers[-1].bias.data -= shift
            agreed.append(both[expert] > both[other])
        if absorbing:
            assert torch.stack(agreed).all()
        else:
            assert (agreed[0] != agreed[2]).all()


def test_absorbing_is_off_by_default_for_every_method():
    assert not DacConfig().absorbing and not Wdac.Config().absorbing
