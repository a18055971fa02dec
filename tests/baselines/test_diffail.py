"""DiffAIL: values compared with vectors and plain loops, finite numbers, packs and learning.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from baselines.diffail import DiffAil, DiffAilConfig, signal_power, waves
from ngt.agent.sac import Sac
from ngt.agent.streams import Draw, Streams
from ngt.experience.demos import DemoSet
from ngt.experience.replay import Batch
from ngt.penalty import gradient_penalty
from ngt.reward import Spec
from ngt.settings.load import load
from ngt.settings.resolve import resolve
from tests.draws import rows

OBS, ACT, BATCH, STEPS = 4, 2, 12, 10
MODES = ["state-action", "state-state", "state-only"]
TRUNK = ["mid_w1", "mid_w2", "mid_w3", "out_w"]


def build(
    seeds: Sequence[int] = (1,), mode="state-action", obs=OBS, act=ACT, batch=BATCH, **options
) -> DiffAil:
    config = DiffAilConfig(**{"hidden": (16, 12, 16), **options})
    model = DiffAil(config, Spec(obs, act, mode, batch, seeds, 1000, 4, 0.99))
    model.noise = draw(model)
    return model


def draw(model: DiffAil, iterations: int = 1) -> dict[str, torch.Tensor]:
    """Return the random draws of iteration number `iterations`, in the nets' precision."""
    streams = Streams(model.spec.seeds, model.draws())
    for _ in range(iterations):
        drawn = streams.next()
    return {k: v.to(model.signal.dtype) if v.is_floating_point() else v for k, v in drawn.items()}


def transitions(x: torch.Tensor) -> Batch:
    """Return transitions whose observations and actions are split from x (R, B, OBS + ACT)."""
    flat = x[..., 0]
    return Batch(x[..., :OBS], x[..., OBS:], x[..., :OBS], flat, torch.zeros_like(flat))


def gradient_norm(model: DiffAil) -> float:
    return sum(float(p.grad.square().sum()) for p in model.parameters()) ** 0.5


# --- vectors from the original code


def test_schedule(vectors):
    file = vectors("diffail_schedules")
    lengths = [int(name.rpartition("_")[2]) for name in file if name.startswith("betas_linear_")]
    assert len(lengths) >= 3
    for steps in lengths:
        power = signal_power(DiffAilConfig(steps=steps))
        torch.testing.assert_close(power, file[f"alphas_bar64_linear_{steps}"], rtol=0, atol=1e-12)
        beta = 1.0 - power / torch.cat([power.new_ones(1), power[:-1]])
        torch.testing.assert_close(beta.float(), file[f"betas_linear_{steps}"], rtol=1e-6, atol=0)


def test_times_are_sines_then_cosines_of_eight_frequencies():
    expected = [
        [f(t * math.exp(-k * math.log(10_000) / 7)) for f in (math.sin, math.cos) for k in range(8)]
        for t in range(STEPS)
    ]
    np.testing.assert_allclose(waves(STEPS, 8), expected, rtol=0, atol=1e-12)


@pytest.fixture(params=["leaky", "mish"])
def official(request, vectors, load_layers, float64) -> tuple[DiffAil, dict[str, torch.Tensor]]:
    """Return a float64 model with the weights of a vector file, and the file's arrays."""
    file = vectors(f"diffail_{request.param}")
    activation = "leaky_relu" if request.param == "leaky" else "mish"
    steps, batch, width = file["noise_reward"].shape
    model = build(
        obs=width - 1,
        act=1,
        batch=batch,
        hidden=[len(file[w]) for w in TRUNK[:-1]],
        frequencies=file["time_w1"].shape[1] // 2,
        steps=steps,
        activation=activation,
        leak=0.2,
    )
    load_layers(model.time_net, [(file[f"time_w{i}"], file[f"time_b{i}"]) for i in (1, 2)])
    load_layers(model.net, [(file[w], file[w.replace("_w", "_b")]) for w in TRUNK])
    doubles = {k: v.long() if k.startswith("t_") else v.double() for k, v in file.items()}
    return model, doubles


def of_loss(model: DiffAil, file: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    """Return -log D for the file's rows of `name`, "expert" or "agent"."""
    return model.mean_error(*(file[f"{k}_{name}"][None] for k in ("x", "t", "noise")))[0]


def test_training_and_reward_values_equal_the_originals(official):
    model, file = official
    for name in ("expert", "agent"):
        with torch.no_grad():
            d = torch.exp(-of_loss(model, file, name))
            noise = file["noise_reward"][None]
            rest = torch.exp(-model.value(file[f"x_{name}"][None], noise))[0]
        torch.testing.assert_close(d, file[f"d_train_{name}64"], rtol=0, atol=1e-9)
        torch.testing.assert_close(d, file[f"d_train_{name}"], rtol=0, atol=2e-6)
        torch.testing.assert_close(1 - rest, file[f"d_reward_{name}64"], rtol=0, atol=1e-9)
        torch.testing.assert_close(1 - rest, file[f"d_reward_{name}"], rtol=0, atol=2e-6)
    torch.testing.assert_close(-rest.log(), file["reward_agent"], rtol=0, atol=2e-6)


def test_cross_entropies_and_their_gradients_equal_the_originals(official):
    model, file = official
    expert, agent = of_loss(model, file, "expert"), of_loss(model, file, "agent")
    on_agent = -torch.log(-torch.expm1(-agent)).mean()
    assert expert.mean().item() == pytest.approx(file["bce_expert"].item(), rel=2e-6)
    assert on_agent.item() == pytest.approx(file["bce_agent"].item(), rel=2e-6)
    (expert.mean() + on_agent).backward()
    got = {
        "time_w1": model.time_net.layers[0].weight.grad,
        "mid_w1": model.net.layers[0].weight.grad,
        "out_w": model.net.layers[3].weight.grad,
        "out_b": model.net.layers[3].bias.grad,
    }
    for name, gradient in got.items():
        expected = file[f"grad_{name}"]
        expected = expected.T if expected.dim() == 2 else expected
        torch.testing.assert_close(gradient[0].view_as(expected), expected, rtol=0, atol=2e-6)


def test_penalty_equals_the_originals(official):
    model, file = official

    def d(x: torch.Tensor) -> torch.Tensor:
        return torch.exp(-model.mean_error(x, file["t_interp"][None], file["noise_interp"][None]))

    x, e = (file[f"x_{name}"] for name in ("expert", "agent")), file["eps_interp"]
    x_expert, x_agent = x
    mixed = (e * x_expert + (1 - e) * x_agent)[None].requires_grad_()
    (slope,) = torch.autograd.grad(d(mixed).sum(), mixed)
    torch.testing.assert_close(slope.norm(dim=-1)[0], file["gp_norm64"], rtol=0, atol=1e-7)
    penalty = gradient_penalty(d, x_expert[None], x_agent[None], e.T)
    assert penalty.item() == pytest.approx(file["gp_two_sided"].item(), rel=2e-6)


# --- plain loops


class Plain:
    """A NumPy version of one run's model, which recomputes the betas and sinusoids by itself."""

    def __init__(self, model: DiffAil, run: int) -> None:
        self.leak, self.steps = model.config.leak, model.config.steps
        self.nets = [
            [
                (layer.weight.detach()[run].numpy(), layer.bias.detach()[run, 0].numpy())
                for layer in net.layers
            ]
            for net in (model.time_net, model.net)
        ]
        beta = [1e-4 + (2e-2 - 1e-4) * t / (self.steps - 1) for t in range(self.steps)]
        self.power = [math.prod(1 - b for b in beta[: t + 1]) for t in range(self.steps)]

    def forward(self, net: int, y: np.ndarray) -> np.ndarray:
        for depth, (weight, bias) in enumerate(self.nets[net]):
            y = y @ weight + bias
            if depth < len(self.nets[net]) - 1:
                y = np.where(y > 0, y, self.leak * y)
        return y

    def error(self, x: np.ndarray, t: int, noise: np.ndarray) -> np.ndarray:
        angle = t * np.exp(-np.arange(8) * np.log(10_000) / 7)
        time = self.forward(0, np.concatenate([np.sin(angle), np.cos(angle)]))
        x_t = math.sqrt(self.power[t]) * x + math.sqrt(1 - self.power[t]) * noise
        return self.forward(1, np.concatenate([x_t, time])) - noise

    def d(self, x: np.ndarray, t: int, noise: np.ndarray) -> float:
        return math.exp(-np.mean(self.error(x, t, noise) ** 2))

    def slope(self, x: np.ndarray, t: int, noise: np.ndarray, h: float = 1e-6) -> float:
        """Return the norm of D's gradient, computed by central differences."""
        steps = h * np.eye(len(x))
        return math.dist(
            [self.d(x + s, t, noise) / (2 * h) for s in steps],
            [self.d(x - s, t, noise) / (2 * h) for s in steps],
        )


@pytest.mark.parametrize(
    ("mode", "leak"), [*((mode, 0.05) for mode in MODES), ("state-action", 0.2)]
)
def test_loss_equals_plain_loops(float64, make_batch, mode, leak):
    model = build((1, 2), mode, leak=leak)
    agent, expert = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    loss = model.loss(agent, expert)
    for run in (0, 1):
        plain = Plain(model, run)
        t, noise = model.noise["loss_t"][run] % STEPS, model.noise["loss_noise"][run].numpy()
        epsilon = model.noise["epsilon"][run].numpy()
        x_a, x_e = (model.inputs(b)[run].numpy() for b in (agent, expert))
        on_expert, on_agent, slopes = [], [], []
        for i in range(BATCH):
            on_expert.append(plain.d(x_e[i], int(t[0, i]), noise[i]))
            on_agent.append(plain.d(x_a[i], int(t[1, i]), noise[i]))
            x = epsilon[i] * x_e[i] + (1 - epsilon[i]) * x_a[i]
            slopes.append(plain.slope(x, int(t[2, i]), noise[i]))
        entropy = -np.mean(np.log(on_expert)) - np.mean(np.log1p(-np.array(on_agent)))
        penalty = np.mean((np.array(slopes) - 1) ** 2)
        assert loss[run].item() == pytest.approx(entropy + 0.1 * penalty, rel=1e-8)
        expected = {
            "cross_entropy": entropy,
            "gradient_penalty": penalty,
            "d_expert": np.mean(on_expert),
            "d_agent": np.mean(on_agent),
        }
        for name, value in expected.items():
            assert model.metrics[name][run].item() == pytest.approx(value, rel=1e-7), name
            assert not model.metrics[name].requires_grad


@pytest.mark.parametrize("form", ["softplus", "logit"])
@pytest.mark.parametrize("mode", MODES)
def test_reward_equals_a_loop_over_times(float64, make_batch, mode, form):
    """Check that row i at diffusion time t uses the noise of row i - t, which varies with t."""
    model, batch = build((1, 2), mode, form=form), make_batch(2, BATCH, OBS, ACT)
    reward = model.reward(batch)
    assert not reward.requires_grad and torch.equal(reward, model.score(batch))
    for run in (0, 1):
        plain, noise = Plain(model, run), model.noise["reward_noise"][run].numpy()
        x = model.inputs(batch)[run].numpy()
        for i in range(BATCH):
            errors = [plain.error(x[i], t, noise[(i - t) % BATCH]) for t in range(STEPS)]
            d = np.mean(np.exp(-np.square(errors)))
            expected = -math.log(1 - d) + (math.log(d) if form == "logit" else 0.0)
            assert reward[run, i].item() == pytest.approx(expected, rel=1e-9)
    spread = reward.std(dim=1, correction=0)
    torch.testing.assert_close(model.metrics["reward_std"], spread)


def test_a_row_meets_another_noise_at_each_time():
    noise = build((1, 2)).noise_by_step()
    for run, i in itertools.product(range(2), range(BATCH)):
        assert len(noise[run, :, i].unique(dim=0)) == STEPS


@pytest.mark.parametrize("mode", MODES)
def test_reward_looks_at_what_its_mode_says(make_batch, mode):
    model, batch = build(mode=mode), make_batch(1, BATCH, OBS, ACT)
    reward = model.reward(batch)
    assert reward.shape == (1, BATCH)
    seen = {"obs", *{"state-action": ["action"], "state-state": ["next_obs"]}.get(mode, [])}
    for name in Batch._fields:
        shuffled = batch._replace(**{name: getattr(batch, name).roll(1, dims=1)})
        assert torch.equal(model.reward(shuffled), reward) == (name not in seen), name


def test_the_rewards_value_is_at_least_the_losses_mean(float64):
    """Check that the reward's mean of exp(-e^2) exceeds the loss's exp(-mean of e^2).

    This is Jensen's inequality. Both sides use the same noise here.
    """
    model, x = build(batch=64), rows(1, 64, OBS + ACT)
    noise = model.noise_by_step()
    d = [torch.exp(-model.mean_error(x, torch.full((1, 64), t), noise[:, t])) for t in range(STEPS)]
    gap = 1 - torch.exp(-model.value(x, noise)) - torch.stack(d).mean(dim=0)
    assert (gap > 0.01).all()


def test_gradients_of_the_loss_equal_central_differences(float64, make_batch):
    model = build(penalty=3.0)
    agent, expert = make_batch(1, BATCH, OBS, ACT), make_batch(1, BATCH, OBS, ACT, seed=1)
    model.loss(agent, expert).sum().backward()
    h = 1e-5
    for number, p in enumerate(model.parameters()):
        at = tuple((number * 7 + k) % n for k, n in enumerate(p.shape))
        sides = []
        for sign in (h, -h):
            p.data[at] += sign
            sides.append(model.loss(agent, expert).item())
            p.data[at] -= sign
        difference = (sides[0] - sides[1]) / (2 * h)
        assert p.grad[at].item() == pytest.approx(difference, rel=1e-4, abs=1e-8), number


def test_cross_entropy_is_torchs_where_that_does_not_clamp(float64, make_batch):
    model = build(penalty=0.0)
    agent, expert = (make_batch(1, BATCH, OBS, ACT, seed=s, scale=20.0) for s in (0, 1))
    noise, t = model.noise["loss_noise"], model.noise["loss_t"] % STEPS
    parts = [
        F.binary_cross_entropy(
            torch.exp(-model.mean_error(model.inputs(batch), t[:, side], noise)),
            torch.full((1, BATCH), label),
        )
        for side, (batch, label) in enumerate(((expert, 1.0), (agent, 0.0)))
    ]
    expected = torch.autograd.grad(sum(parts), list(model.parameters()))
    loss = model.loss(agent, expert)
    assert loss.item() == pytest.approx(sum(parts).item(), rel=1e-10)
    for p, q in zip(torch.autograd.grad(loss, list(model.parameters())), expected, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-9)


def test_experts_far_off_have_a_gradient_where_torchs_clamp_leaves_none():
    model, x = build(), rows(1, BATCH, OBS + ACT)
    x = 2000.0 * x.sign()
    model.loss(transitions(0.001 * x), transitions(x)).sum().backward()
    assert gradient_norm(model) > 1.0
    error = model.mean_error(x, model.noise["loss_t"][:, 0] % STEPS, model.noise["loss_noise"])
    assert (error > 100).all()
    clamped = F.binary_cross_entropy(torch.exp(-error), torch.ones(1, BATCH))
    assert clamped.item() == 100.0
    assert all((g == 0).all() for g in torch.autograd.grad(clamped, list(model.parameters())))


@pytest.mark.parametrize("weight", [0.0, 0.1, 10.0])
def test_penalty_is_weighed(make_batch, weight):
    model = build(penalty=weight)
    agent, expert = make_batch(1, BATCH, OBS, ACT), make_batch(1, BATCH, OBS, ACT, seed=1)
    loss = model.loss(agent, expert)
    parts = model.metrics["cross_entropy"] + weight * model.metrics["gradient_penalty"]
    torch.testing.assert_close(loss.detach(), parts)


def test_forms_are_one_logit():
    """Check that the reward R+ is softplus(R) if neither is at its floor."""
    x = rows(1, BATCH, OBS + ACT)
    plus, real = (build(form=form).reward(transitions(x)) for form in ("softplus", "logit"))
    torch.testing.assert_close(plus, F.softplus(real))


# --- finite numbers


@pytest.mark.parametrize("form", ["softplus", "logit"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0, 5000.0, 1e6])
def test_raw_humanoid_scales_are_finite(make_batch, scale, form):
    model = build(obs=376, act=17, batch=32, hidden=(64, 64, 64), form=form)
    agent, expert = (make_batch(1, 32, 376, 17, seed=s, scale=scale) for s in (0, 1))
    loss = model.loss(agent, expert)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert gradient_norm(model) > 0
    for _ in range(3):
        model.update(agent, expert)
    reward = model.reward(agent)
    assert reward.isfinite().all() and all(m.isfinite().all() for m in model.metrics.values())
    assert all(p.isfinite().all() for p in model.parameters())


def test_mish_is_not_finite_in_the_penalty(make_batch):
    """Check why LeakyReLU replaces mish: mish's second derivative is NaN on inputs near 100."""
    model = build(activation="mish", obs=376, act=17, batch=32)
    agent, expert = (make_batch(1, 32, 376, 17, seed=s, scale=100.0) for s in (0, 1))
    loss = model.loss(agent, expert)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert not all(p.grad.isfinite().all() for p in model.parameters())


def predicts(model: DiffAil, bias: float) -> None:
    """Make the net predict the noise `bias` for every input, apart from a slope of 1e-3."""
    for p in model.net.parameters():
        p.data.zero_()
    for layer in model.net.layers:
        layer.weight.data.diagonal(dim1=1, dim2=2).fill_(0.2)
    model.net.layers[-1].bias.data.fill_(bias)


def test_penalty_is_finite_while_its_slope_fades():
    """Check that gradients stay finite while D falls from 1 through float32's denormals to 0.

    In the denormal range, sums of squares underflow.
    """
    norms = set()
    for bias in np.linspace(0.0, 12.0, 121):
        model = build()
        model.noise = {k: torch.zeros_like(v) for k, v in model.noise.items()}
        predicts(model, float(bias))
        zero = transitions(torch.zeros(1, BATCH, OBS + ACT))
        model.loss(zero, zero).sum().backward()
        assert all(p.grad.isfinite().all() for p in model.parameters()), bias
        norms.add(model.metrics["d_expert"].item())
    assert 1.0 in norms and 0.0 in norms and any(0 < n < 1.2e-38 for n in norms)


def test_a_perfect_guess_meets_the_floor():
    model = build()
    model.noise = {k: torch.zeros_like(v) for k, v in model.noise.items()}
    for p in model.net.parameters():
        p.data.zero_()
    batch = transitions(rows(1, BATCH, OBS + ACT))
    loss = model.loss(batch, batch)
    assert loss.item() == pytest.approx(-math.log(1e-10) + 0.1, rel=1e-6)
    loss.sum().backward()
    assert gradient_norm(model) == 0.0
    for form in ("softplus", "logit"):
        model.config = DiffAilConfig(form=form)
        assert model.reward(batch)[0].tolist() == pytest.approx([-math.log(1e-10)] * BATCH)


def test_a_good_guess_keeps_its_digits():
    """Check that the loss keeps the digits of 1 - D = 1e-8, which 1 - exp(-err) rounds to 0."""
    model = build()
    model.noise = {k: torch.zeros_like(v) for k, v in model.noise.items()}
    for p in model.parameters():
        p.data.zero_()
    model.net.layers[-1].bias.data.fill_(1e-4)
    batch = transitions(rows(1, BATCH, OBS + ACT))
    model.loss(batch, batch)
    assert model.metrics["cross_entropy"].item() == pytest.approx(-math.log(1e-8), rel=1e-5)
    assert model.reward(batch)[0].tolist() == pytest.approx([-math.log(1e-8)] * BATCH, rel=1e-5)


def test_the_dead_zone_of_the_reward():
    model, batch = build(), transitions(1e6 * rows(1, BATCH, OBS + ACT).sign())
    assert torch.equal(model.reward(batch), torch.zeros(1, BATCH))
    model.config = DiffAilConfig(form="logit")
    expected = torch.full((1, BATCH), math.log(1e-10))
    torch.testing.assert_close(model.reward(batch), expected)


# --- nets, draws, settings


def test_it_starts_near_a_guess_of_zero():
    """Check D in the loss and D' in the reward for a net that predicts zero noise.

    D = E exp(-mean eps^2) is about 1 / e for many dims, and D' = E exp(-eps^2) is 1 / sqrt 3.
    """
    model = build((1, 2), obs=60, act=40, batch=64, hidden=DiffAilConfig().hidden)
    batch = transitions(rows(2, 64, 100))._replace(obs=rows(2, 64, 60), action=rows(2, 64, 40))
    model.loss(batch, batch)
    assert (model.metrics["d_expert"] - math.exp(-1)).abs().max() < 0.01
    d = 1 - torch.exp(-model.reward(batch))
    assert (d - 3**-0.5).abs().max() < 0.03


@pytest.mark.parametrize("mode", MODES)
def test_sizes(mode):
    model = DiffAil(DiffAilConfig(), Spec(11, 3, mode, 256, (1, 2), 1000, 4, 0.99))
    width = {"state-action": 14, "state-state": 22, "state-only": 11}[mode]
    sizes = [tuple(layer.weight.shape) for layer in model.net.layers]
    assert sizes == [(2, width + 16, 128), (2, 128, 128), (2, 128, 128), (2, 128, width)]
    sizes = [tuple(layer.weight.shape) for layer in model.time_net.layers]
    assert sizes == [(2, 16, 32), (2, 32, 16)]
    assert model.draws()["reward_noise"] == Draw("normal", (256, width))


def test_its_draws_do_not_take_an_agents_name():
    others = {*Sac.draws(BATCH, ACT), "agent_index", "expert_index", "sac_index"}
    assert not others & set(build().draws())


def test_defaults_are_the_originals_but_for_the_slope():
    model = DiffAil(DiffAilConfig(), Spec(OBS, ACT, "state-action", 256, (1,), 1000, 4, 0.99))
    (group,) = model.optimiser.param_groups
    assert (group["lr"], group["betas"][0]) == (3e-5, 0.9)
    assert {id(p) for p in group["params"]} == {id(p) for p in model.parameters()}
    assert model.config.leak == 0.05 and model.config.form == "softplus"
    assert (model.spread - torch.tensor([0.010, 0.310])[[0] + [1] * 9]).abs()[[0, 9]].max() < 5e-4
    assert sorted(model.state_dict()) == sorted(n for n, _ in model.named_parameters())


def test_the_official_variant():
    config = load({"scale": "paper"})
    for env, width, normalised in (
        ("Hopper-v4", 256, True),
        ("Walker2d-v4", 128, True),
        ("HalfCheetah-v4", 128, False),
    ):
        cell = resolve(config, env, "diffail-official", "state-action", 20)
        assert (cell.params["leak"], cell.params["hidden"]) == (0.2, (width,) * 3)
        assert cell.normalise_obs == normalised


def test_the_config_names_it():
    cell = resolve(load({"scale": "paper"}), "Hopper-v4", "diffail", "state-action", 20)
    assert cell.model == "baselines.diffail:DiffAil"
    assert cell.params["hidden"] == (128, 128, 128) and cell.params["lr"] == 3e-5


# --- learning


def test_a_step_is_adams_and_lowers_the_loss_on_the_same_batch(make_batch):
    model = build((1, 2), lr=3e-4)
    before = [p.detach().clone() for p in model.parameters()]
    agent, expert = make_batch(2, BATCH, OBS, ACT), make_batch(2, BATCH, OBS, ACT, seed=1)
    losses = []
    for step in range(30):
        model.update(agent, expert)
        losses.append(model.metrics["reward_loss"])
        if step == 0:
            moved = [(p - q).abs() for p, q in zip(model.parameters(), before, strict=True)]
            assert torch.cat([m.flatten() for m in moved]).median().item() == pytest.approx(
                3e-4, rel=1e-2
            )
    table = torch.stack(losses)
    assert (table.diff(dim=0) < 0).all()


def clusters(seed: int, sign: float, runs: int = 1, size: int = 32) -> Batch:
    return transitions(0.3 * rows(runs, size, OBS + ACT, seed=seed) + sign)


@pytest.mark.parametrize("form", ["softplus", "logit"])
def test_it_tells_two_clusters_apart(form):
    model = build((1, 2), batch=32, lr=1e-3, form=form, hidden=(32, 32, 32))
    streams = Streams((1, 2), model.draws())
    for step in range(250):
        model.noise = streams.next()
        model.update(clusters(2 * step, -1.0, 2), clusters(2 * step + 1, 1.0, 2))
    expert, agent = (model.score(clusters(10**6, sign, 2)) for sign in (1.0, -1.0))
    auc = (expert[:, :, None] > agent[:, None]).float().mean(dim=(1, 2))
    print(f"AUC {auc.tolist()}, reward {expert.mean():.2f} and {agent.mean():.2f}")
    assert (auc > 0.95).all()
    assert (model.metrics["d_expert"] > model.metrics["d_agent"] + 0.1).all()


def test_one_transition_is_enough_to_learn_from():
    model = build(batch=32, lr=1e-3)
    one = clusters(0, 1.0, 1, 1)
    demos, streams = DemoSet([one]), Streams((1,), {**model.draws(), "i": Draw("index", (32,))})
    for step in range(200):
        model.noise = drawn = streams.next()
        model.update(clusters(step, -1.0, 1, 32), demos.sample(drawn["i"]))
    expert = model.score(demos.sample(drawn["i"]))
    assert all(m.isfinite().all() for m in model.metrics.values())
    assert expert.mean() > model.score(clusters(10**6, -1.0, 1, 32)).mean() + 0.1


# --- packs


def train(seeds: Sequence[int], updates: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Train a pack whose runs have separate draws and data; return weights and last rewards."""
    model = build(seeds, lr=1e-3)
    streams = Streams(seeds, model.draws())
    for step in range(updates):
        drawn = streams.next()
        model.noise = {k: v.to(dtype) if v.is_floating_point() else v for k, v in drawn.items()}
        agent, expert = (
            transitions(
                torch.cat([rows(1, BATCH, OBS + ACT, seed=100 * s + step) for s in seeds]) + shift
            )
            for shift in (0.0, 1.0)
        )
        model.update(agent, expert)
    return {**dict(model.named_parameters()), "reward": model.reward(agent)}


def largest_difference(updates: int, dtype: torch.dtype) -> float:
    seeds, worst = (3, 1, 2), 0.0
    packed = train(seeds, updates, dtype)
    for run, seed in enumerate(seeds):
        for name, tensor in train((seed,), updates, dtype).items():
            worst = max(worst, float((packed[name][run] - tensor[0]).detach().abs().max()))
    return worst


def test_a_pack_is_its_runs_side_by_side(float64):
    assert largest_difference(1, torch.float64) < 1e-12
    assert largest_difference(50, torch.float64) < 1e-8


def test_a_pack_is_its_runs_side_by_side_in_float32():
    assert largest_difference(1, torch.float32) < 1e-5
    assert largest_difference(50, torch.float32) < 1e-3


def test_runs_differ_from_the_start():
    model = build((1, 2))
    for p in model.parameters():
        assert not torch.isclose(p[0], p[1]).any()


@pytest.mark.parametrize("poison", [1e30, math.nan])
def test_a_broken_run_does_not_reach_the_others(
    broken_run_stays_alone: Callable[..., None], poison: float
):
    broken_run_stays_alone(lambda: build((1, 2, 3)), BATCH, OBS, ACT, poison)
