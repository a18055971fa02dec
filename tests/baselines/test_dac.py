"""DAC: its loss and rewards compared with plain loops, its optimum, packs and bad input.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from baselines.adversarial import Adversarial
from baselines.dac import Dac, DacConfig
from ngt.agent.streams import Streams
from ngt.experience.demos import DemoSet
from ngt.experience.replay import Batch
from ngt.reward import Spec
from tests.draws import rows

OBS, ACT, BATCH = 3, 2, 8
MODES = ["state-action", "state-state", "state-only"]


def build(
    seeds: Sequence[int] = (1,),
    mode: Any = "state-action",
    obs=OBS,
    act=ACT,
    batch=BATCH,
    **options: Any,
) -> Dac:
    config = DacConfig(**{"hidden": (16, 16), **options})
    model = Dac(config, Spec(obs, act, mode, batch, seeds, 100, 4, 0.9))
    model.noise = Streams(seeds, model.draws()).next()
    return model


def batch_of(x: Tensor, obs: int = OBS) -> Batch:
    """Split x (R, B, obs + act) into non-terminal transitions whose next_obs equals obs."""
    return Batch(x[..., :obs], x[..., obs:], x[..., :obs], 0.0 * x[..., 0], 0.0 * x[..., 0])


def plain(model: Dac, run: int, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the net's output for one input of a run, and its gradient, computed by hand."""
    pre, chain = [], []
    for layer in model.net.layers:
        x = x @ layer.weight[run].detach().numpy() + layer.bias[run, 0].detach().numpy()
        pre.append(x)
        x = np.where(x > 0.0, x, model.config.leak * x)
    for layer, y in zip(model.net.layers[:-1], pre[:-1], strict=True):
        slope = np.where(y > 0.0, 1.0, model.config.leak)
        chain.append(layer.weight[run].detach().numpy() * slope)
    gradient = model.net.layers[-1].weight[run, :, 0].detach().numpy()
    for matrix in reversed(chain):
        gradient = matrix @ gradient
    return float(pre[-1][0]), gradient


@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("label", [1.0, 0.8])
@pytest.mark.parametrize("mode", MODES)
def test_loss_equals_plain_loops(float64, make_batch, mode, label, one_sided, absorbing):
    model = build(
        (1, 2),
        mode,
        expert_label=label,
        one_sided=one_sided,
        absorbing=absorbing,
        penalty=4.0,
        hidden=(6, 5),
        leak=0.2,
    )
    for i, p in enumerate(model.net.parameters()):
        p.data += 0.3 * rows(*p.shape, seed=i)
    agent, expert = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    got = model.loss(agent, expert)
    x_agent, x_expert = (x.numpy() for x in model.pair(agent, expert))
    for run in range(2):
        entropy = penalty = 0.0
        for i in range(BATCH):
            a, e = x_agent[run, i], x_expert[run, i]
            d_expert = 1.0 / (1.0 + math.exp(-plain(model, run, e)[0]))
            d_agent = 1.0 / (1.0 + math.exp(-plain(model, run, a)[0]))
            entropy -= label * math.log(d_expert) + (1.0 - label) * math.log(1.0 - d_expert)
            entropy -= math.log(1.0 - d_agent)
            epsilon = float(model.noise["epsilon"][run, i])
            norm = np.linalg.norm(plain(model, run, epsilon * e + (1.0 - epsilon) * a)[1])
            penalty += (max(norm - 1.0, 0.0) if one_sided else norm - 1.0) ** 2
        loss = (entropy + 4.0 * penalty) / BATCH
        assert got[run].item() == pytest.approx(loss, rel=1e-10)
        assert model.metrics["cross_entropy"][run].item() == pytest.approx(entropy / BATCH)
        assert model.metrics["gradient_penalty"][run].item() == pytest.approx(penalty / BATCH)
    assert not model.metrics["cross_entropy"].requires_grad


@pytest.mark.parametrize("mode", MODES)
def test_rewards_are_r_and_r_plus(float64, make_batch, mode):
    batch = make_batch(2, BATCH, OBS, ACT)
    r, plus = (build((1, 2), mode, form=form) for form in ("logit", "softplus"))
    for run in range(2):
        for i in range(BATCH):
            d = 1.0 / (1.0 + math.exp(-plain(r, run, r.inputs(batch)[run, i].numpy())[0]))
            at = (run, i)
            assert r.reward(batch)[at].item() == pytest.approx(math.log(d) - math.log(1.0 - d))
            assert plus.reward(batch)[at].item() == pytest.approx(-math.log(1.0 - d))
    assert torch.equal(r.score(batch), r.reward(batch))
    assert not r.reward(batch).requires_grad


def test_fairls_reward_is_that_of_the_forward_divergence(float64, make_batch):
    """Check that the agent's mean reward is -KL(expert | agent) if D is optimal.

    The reward falls as the expert's density rises. The score therefore uses D's logit instead.
    """
    batch = make_batch(2, BATCH, OBS, ACT)
    model = build((1, 2), form="forward_kl")
    for run in range(2):
        for i in range(BATCH):
            d = 1.0 / (1.0 + math.exp(-plain(model, run, model.inputs(batch)[run, i].numpy())[0]))
            ratio = d / (1.0 - d)
            expected = ratio * math.log(1.0 / ratio)
            assert model.reward(batch)[run, i].item() == pytest.approx(expected)
    logits = build((1, 2), form="logit").reward(batch)
    assert torch.equal(model.score(batch), logits)
    expert, agent = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    ratio = torch.from_numpy(expert / agent)
    model.net = torch.nn.Module()
    model.net.forward = lambda x: ratio.log().expand(1, 3)[..., None]
    mean = (torch.from_numpy(agent) * model.value(torch.zeros(1, 3, OBS))).sum()
    assert float(mean) == pytest.approx(-(expert * np.log(expert / agent)).sum())


@pytest.mark.parametrize("z", [-1e4, -10.0, -1.0, 0.0, 2.0, 10.0, 1e4])
def test_fairls_reward_is_bounded_by_a_clamp_of_the_logit(make_batch, z: float):
    model = build(form="forward_kl")
    model.net.layers[-1].weight.data.zero_()
    model.net.layers[-1].bias.data.fill_(z)
    clamped = min(max(z, -10.0), 10.0)
    reward = model.reward(make_batch(1, BATCH, OBS, ACT))[0].tolist()
    assert reward == pytest.approx([-clamped * math.exp(clamped)] * BATCH, rel=1e-6, abs=1e-30)


@pytest.mark.parametrize(
    ("form", "kept"), [("logit", True), ("softplus", True), ("forward_kl", False)]
)
def test_an_exact_d_keeps_a_policy_at_the_experts_unless_the_reward_is_fairls(
    float64, form, kept: bool
):
    """Follow the policy gradient of the reward in a task with one state and three actions.

    D is exact at every step: z is the log ratio of the expert's and the policy's probabilities.
    """
    model = build(form=form)
    model.net = torch.nn.Identity()  # the input is z
    expert = torch.tensor([0.5, 0.3, 0.2])
    logits = torch.tensor([0.51, 0.295, 0.195]).log()
    for _ in range(2000):
        policy = logits.softmax(dim=0)
        reward = model.value((expert / policy).log()[None, :, None])[0]
        logits += 0.05 * policy * (reward - (policy * reward).sum())
    assert torch.allclose(logits.softmax(dim=0), expert, atol=1e-3) == kept


@pytest.mark.parametrize("z", [-1e4, -80.0, -20.0, 0.0, 20.0, 80.0, 1e4])
def test_rewards_do_not_saturate(make_batch, z: float):
    """Check that the reward keeps growing with the logit z where its usual form saturates.

    The usual form, -log(1 - sigmoid(z) + 1e-8), never exceeds 18.4. In float32, it stops growing
    at z = 17.
    """
    batch = make_batch(1, BATCH, OBS, ACT)
    for form, expected in (("logit", z), ("softplus", float(np.logaddexp(0.0, z)))):
        model = build(form=form)
        model.net.layers[-1].weight.data.zero_()
        model.net.layers[-1].bias.data.fill_(z)
        reward = model.reward(batch)
        assert reward[0].tolist() == pytest.approx([expected] * BATCH, rel=1e-6, abs=1e-30)
        loss = model.loss(batch, batch)
        assert loss.item() == pytest.approx(abs(z) + 10.0 if z else 2 * math.log(2) + 10, rel=1e-4)


def test_the_logits_gradient_does_not_vanish_for_a_wrong_answer(make_batch):
    """Check that the logit's gradient has full size if a discriminator is confident but wrong."""
    batch = make_batch(1, BATCH, OBS, ACT)
    for z, push in ((-200.0, -1.0), (200.0, 1.0)):
        model = build(penalty=0.0)
        model.net.layers[-1].weight.data.zero_()
        model.net.layers[-1].bias.data.fill_(z)
        model.loss(batch, batch).sum().backward()
        assert model.net.layers[-1].bias.grad.item() == pytest.approx(push)


# --- learning


@pytest.mark.parametrize("label", [1.0, 0.8])
def test_the_logit_becomes_the_log_ratio(label: float):
    """Check the logit z of the optimal discriminator D for expert label y.

    Without a penalty, D = y p_E / (p_E + p_A), so z = log y p_E - log(p_A + (1 - y) p_E).
    """
    model = build((1,), "state-only", obs=4, penalty=0.0, expert_label=label, lr=0.01, batch=20)
    shares = {"agent": [2, 4, 6, 8], "expert": [8, 6, 4, 2]}  # rows per state, out of 20
    batches = {
        side: batch_of(torch.eye(4).repeat_interleave(torch.tensor(n), dim=0)[None], 4)
        for side, n in shares.items()
    }
    for _ in range(400):
        model.update(**batches)
    z = model.value(torch.eye(4)[None])[0].tolist()
    for got, a, e in zip(z, shares["agent"], shares["expert"], strict=True):
        assert got == pytest.approx(math.log(label * e / (a + (1.0 - label) * e)), abs=0.01)


def clusters(step: int, seeds: Sequence[int], size: int = BATCH) -> tuple[Batch, Batch]:
    """Return agent and expert batches, different in each run; their means differ by 1 per dim."""
    x = torch.cat([rows(2, size, OBS + ACT, seed=100 * s + step)[None] for s in seeds])
    return batch_of(0.5 * x[:, 0] - 0.5), batch_of(0.5 * x[:, 1] + 0.5)


def auc(model: Adversarial, agent: Batch, expert: Batch) -> Tensor:
    e, a = model.score(expert)[:, :, None], model.score(agent)[:, None, :]
    return (e > a).float().mean(dim=(1, 2))


@pytest.mark.parametrize("form", ["logit", "softplus"])
@pytest.mark.parametrize("mode", MODES)
def test_it_separates_two_clusters(mode, form):
    seeds = (1, 2)
    model = build(seeds, mode, form=form, lr=3e-3)
    streams, losses = Streams(seeds, model.draws()), []
    for step in range(150):
        model.noise = streams.next()
        model.update(*clusters(step, seeds))
        losses.append(model.metrics["reward_loss"])
    assert (auc(model, *clusters(10**6, seeds, 200)) > 0.95).all()
    assert (torch.stack(losses[-20:]).mean(0) < torch.stack(losses[:20]).mean(0) - 0.3).all()


# --- packs and difficult input


@pytest.mark.parametrize("options", [{}, {"absorbing": True, "mode": "state-state"}], ids=str)
def test_a_pack_is_its_runs_side_by_side(float64, train_on_own_data, options):
    seeds = (3, 1, 2)
    pack = train_on_own_data(build(seeds, **options), 60, torch.float64)
    for run, seed in enumerate(seeds):
        alone = train_on_own_data(build((seed,), **options), 60, torch.float64)
        for p, q in zip(pack.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(p[run], q[0], rtol=0.0, atol=1e-9)
        for name, value in pack.metrics.items():
            assert value.shape == (3,)
            torch.testing.assert_close(value[run], alone.metrics[name][0])


def test_a_pack_is_its_runs_side_by_side_in_float32(train_on_own_data):
    pack, alone = (train_on_own_data(build(s), 60, torch.float32) for s in ((3, 1, 2), (1,)))
    for p, q in zip(pack.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(p[1], q[0], rtol=0.0, atol=1e-3)


@pytest.mark.parametrize("poison", [1e30, math.nan])
def test_a_broken_run_does_not_reach_the_others(broken_run_stays_alone, poison: float):
    broken_run_stays_alone(lambda: build((1, 2, 3)), BATCH, OBS, ACT, poison)


@pytest.mark.parametrize("form", ["logit", "softplus"])
@pytest.mark.parametrize("one_sided", [False, True])
def test_raw_inputs_are_no_matter(raw_inputs_stay_finite, form, one_sided: bool):
    model = build((1, 2), obs=50, form=form, one_sided=one_sided, lr=1e-3)
    raw_inputs_stay_finite(model, BATCH, 50, ACT)


@pytest.mark.parametrize("absorbing", [False, True])
def test_a_demonstration_of_one_transition_will_do(make_batch, absorbing: bool):
    """Train on a single expert transition; from step 10 on, it also fills the agent's batch.

    From that step on, all interpolates between the two batches are equal.
    """
    model = build((1, 2), absorbing=absorbing)
    demos = DemoSet([make_batch(1, 1, OBS, ACT, seed=s) for s in (0, 1)])
    expert = demos.sample(torch.arange(BATCH).expand(2, BATCH))
    for step in range(20):
        model.update(make_batch(2, BATCH, OBS, ACT, seed=step) if step < 10 else expert, expert)
        assert model.metrics["reward_loss"].isfinite().all()
        assert model.reward(expert).isfinite().all()
    assert all(p.isfinite().all() for p in model.parameters())


def test_defaults():
    config = DacConfig()
    assert (config.form, config.expert_label, config.penalty) == ("logit", 1.0, 10.0)
