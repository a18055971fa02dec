"""PWIL: its coupling compared with the official code, a plain loop and optimal transport.

An atom is an expert transition with a mass. Each of the agent's steps uses up mass near it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from baselines.pwil import Pwil, PwilConfig, couple
from ngt.errors import UserError
from ngt.experience.demos import DemoSet
from ngt.experience.replay import Batch
from ngt.reward import RewardModel, Spec
from ngt.settings.config import Mode

OBS, ACT = 4, 2
Array = NDArray[np.float64]
Load = Callable[[str], dict[str, Tensor]]


def transitions(obs: Tensor, action: Tensor, next_obs: Tensor | None = None) -> Batch:
    """Return a batch with obs (R, B, ·) and action; fields that PWIL must not read are NaN."""
    nan = torch.full(obs.shape[:2], math.nan)
    return Batch(obs, action, torch.zeros_like(obs) if next_obs is None else next_obs, nan, nan)


def make(size: int, seed: int = 0, spread: float = 1.0) -> Batch:
    """Return one run's transitions (1, size, ·), whose features differ in mean and spread."""
    g = np.random.default_rng(seed)
    mean, scale = np.array([0.0, 3.0, -50.0, 0.2]), np.array([1.0, 0.01, 20.0, 5.0])
    obs, after = (mean + spread * scale * g.normal(size=(1, size, OBS)) for _ in range(2))
    kind = torch.get_default_dtype()
    arrays = (obs, g.uniform(-1, 1, (1, size, ACT)), after)
    return transitions(*(torch.from_numpy(x.astype(np.float32)).to(kind) for x in arrays))


def build(
    sets: Sequence[Batch],
    limit: int = 1000,
    mode: Mode = "state-action",
    envs: int = 1,
    beta: float = 5.0,
) -> Pwil:
    """Return a model with one run for each set of demonstrations."""
    obs, act = sets[0].obs.shape[-1], sets[0].action.shape[-1]
    seeds = range(len(sets))
    spec = Spec(obs, act, mode, 8, seeds, limit, envs, 0.99, DemoSet(sets))
    return Pwil(PwilConfig(beta=beta), spec)


def play(model: Pwil, path: Batch, ends: Sequence[int] = ()) -> Tensor:
    """Play a path (R * n, steps, ·) in n envs per run and return the rewards (R, n, steps).

    All envs are done at the steps in `ends`.
    """
    runs, envs = len(model.spec.seeds), model.spec.num_envs
    steps = Batch(*(x.reshape(runs, envs, *x.shape[1:]) for x in path))
    out = []
    for t in range(path.obs.shape[1]):
        done = torch.full((runs, envs), t in ends)
        out.append(model.observe(Batch(*(x[:, :, t] for x in steps)), done))
    return torch.stack(out, dim=-1)


def points(batch: Batch, mode: Mode) -> Array:
    """Return the model inputs of a batch's first run in the given mode, shape (B, d)."""
    second = {"state-action": [batch.action], "state-state": [batch.next_obs], "state-only": []}
    return torch.cat([batch.obs, *second[mode]], dim=-1)[0].double().numpy()


def plain(expert: Array, agent: Array, limit: int) -> Array:
    """Return an episode's costs, computed step by step and atom by atom."""
    mean, std = expert.mean(axis=0), expert.std(axis=0)
    atoms, path = (expert - mean) / std, (agent - mean) / std
    mass = [1.0 / len(atoms)] * len(atoms)
    costs = []
    for x in path:
        distance = np.sqrt(((x - atoms) ** 2).sum(axis=1))
        spend, cost = 1.0 / limit - 1e-6, 0.0
        for j in np.argsort(distance, kind="stable"):
            if mass[j] > spend:
                mass[j] -= spend
                cost += spend * distance[j]
                break
            cost += mass[j] * distance[j]
            spend -= mass[j]
            mass[j] = 0.0
        costs.append(cost)
    return np.array(costs)


def reward_of(cost: Array, limit: int, width: int) -> Array:
    return 5.0 * np.exp(-5.0 * limit / math.sqrt(width) * cost)


# --- comparison with the official code's numbers

VECTORS = [(file, kind) for file in ("plain", "constant", "manyatoms") for kind in ("sa", "obs")]


def horizons(data: Mapping[str, Tensor], kind: str) -> list[int]:
    """Return the time limits for which a vector file has rewards."""
    start = f"sigma_{kind}_T"
    found = [int(name.removeprefix(start)) for name in data if name.startswith(start)]
    assert found
    return found


def official(data: Mapping[str, Tensor], kind: str, limit: int) -> tuple[Pwil, Batch, Array, Array]:
    """Return a model, an episode, and the file's float64 rewards and costs of that episode."""
    to = torch.get_default_dtype()
    x, a, agent_x, agent_a = (
        data[name][None].to(to) for name in ("expert_obs", "expert_act", "agent_obs", "agent_act")
    )
    obs, act = x.shape[-1], a.shape[-1]
    assert data["alpha_beta"].tolist() == [5.0, 5.0]
    # The official code divides by the joint width of observation and action in both modes.
    beta = 5.0 if kind == "sa" else 5.0 * math.sqrt(obs / (obs + act))
    mode: Mode = "state-action" if kind == "sa" else "state-only"
    model = build([transitions(x, a)], limit, mode, beta=beta)
    key = f"{kind}_T{limit}"
    assert model.sigma == pytest.approx(float(data[f"sigma_{key}"]), rel=1e-12)
    reward = data[f"reward64_{key}"].numpy()
    episode = transitions(agent_x[:, : len(reward)], agent_a[:, : len(reward)])
    np.testing.assert_allclose(data[f"reward_{key}"].numpy(), reward, rtol=1e-6)
    return model, episode, reward, data[f"cost64_{key}"].numpy()


@pytest.mark.parametrize(("file", "kind"), VECTORS)
@pytest.mark.usefixtures("float64")
def test_official_rewards_in_float64(vectors: Load, file: str, kind: str) -> None:
    data = vectors(f"pwil_{file}")
    for limit in horizons(data, kind):
        model, episode, reward, cost = official(data, kind, limit)
        got = play(model, episode)[0, 0].numpy()
        np.testing.assert_allclose(got, reward, rtol=1e-6)
        np.testing.assert_allclose(-np.log(got / 5.0) / model.sigma, cost, rtol=1e-9)


@pytest.mark.parametrize(("file", "kind"), VECTORS)
def test_official_rewards_in_float32(vectors: Load, file: str, kind: str) -> None:
    data = vectors(f"pwil_{file}")
    for limit in horizons(data, kind):
        model, episode, reward, _ = official(data, kind, limit)
        got = play(model, episode)[0, 0]
        assert got.dtype == torch.float32
        np.testing.assert_allclose(got.numpy(), reward, rtol=1e-4)


def test_a_model_made_in_float32_goes_on_in_float64(vectors: Load) -> None:
    data = vectors("pwil_constant")
    model, episode, reward, _ = official(data, "sa", max(horizons(data, "sa")))
    got = play(model.double(), Batch(*(x.double() for x in episode)))[0, 0]
    assert got.dtype == torch.float64
    np.testing.assert_allclose(got.numpy(), reward, rtol=3e-6)


# --- the coupling


def test_coupling_by_hand() -> None:
    distance = torch.tensor([[3.0, 1.0, 2.0], [1.0, 1.0, 9.0], [5.0, 7.0, 6.0]])
    mass = torch.tensor([[0.5, 0.125, 0.25], [0.5, 0.5, 0.0], [0.0, 0.125, 0.0]])
    cost, spent, left = couple(distance, mass, 0.25)
    assert cost.tolist() == [0.125 * 1 + 0.125 * 2, 0.25, 0.125 * 7]
    assert spent.tolist() == [0.25, 0.25, 0.125]
    assert left.tolist() == [[0.5, 0.0, 0.125], [0.25, 0.5, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("size", [7, 50, 550])
@pytest.mark.parametrize("mode", ["state-action", "state-state", "state-only"])
@pytest.mark.usefixtures("float64")
def test_an_episode_against_a_plain_loop(size: int, mode: Mode) -> None:
    expert, agent = make(size), make(1000, seed=1, spread=0.7)
    model = build([expert], mode=mode)
    cost = plain(points(expert, mode), points(agent, mode), 1000)
    want = reward_of(cost, 1000, model.spec.input)
    np.testing.assert_allclose(play(model, agent)[0, 0].numpy(), want, rtol=1e-6)


@pytest.mark.parametrize(("size", "limit"), [(50, 1000), (550, 1000), (40, 200), (55, 100)])
def test_float32_follows_the_plain_loop(size: int, limit: int) -> None:
    expert, agent = make(size), make(limit, seed=1, spread=0.7)
    cost = plain(points(expert, "state-action"), points(agent, "state-action"), limit)
    got = play(build([expert], limit), agent)[0, 0].numpy()
    np.testing.assert_allclose(got, reward_of(cost, limit, OBS + ACT), rtol=1e-4)


@pytest.mark.usefixtures("float64")
def test_a_step_may_reach_most_of_the_atoms() -> None:
    """Check a step that uses up more than 80 atoms.

    The agent first spends five steps at each of 180 atoms. This leaves 5e-6 of an atom's mass of
    1/200. On its way back, the agent is near all these remainders.
    """
    g = np.random.default_rng(0)
    walk = torch.from_numpy(np.cumsum(g.normal(size=(1, 200, OBS)), axis=1))
    expert = transitions(walk, torch.zeros(1, 200, 1))
    back = torch.cat([torch.arange(180).repeat_interleave(5), torch.arange(100)])
    agent = transitions(walk[:, back] + 1e-3, torch.zeros(1, 1000, 1))
    model = build([expert], mode="state-only")
    parts, held = [], []
    for steps in (slice(0, 900), slice(900, 901), slice(901, 1000)):
        parts.append(play(model, Batch(*(x[:, steps] for x in agent))))
        held.append((model.mass > 0.0).sum().item())
    assert held[0] == 200 and held[1] < 120, "one step must use up more than 80 atoms"
    cost = plain(points(expert, "state-only"), points(agent, "state-only"), 1000)
    got = torch.cat(parts, dim=-1)[0, 0].numpy()
    np.testing.assert_allclose(got, reward_of(cost, 1000, OBS), rtol=1e-6)


def test_order_of_the_atoms_does_not_matter() -> None:
    expert, agent = make(50), make(200, seed=1)
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    shuffled = Batch(*(x[:, order] for x in expert))
    torch.testing.assert_close(
        play(build([expert], 200), agent), play(build([shuffled], 200), agent), rtol=1e-4, atol=0.0
    )


@pytest.mark.usefixtures("float64")
def test_an_episode_costs_no_less_than_optimal_transport() -> None:
    limit, size = 200, 40
    expert, agent = make(size), make(limit, seed=1)
    model = build([expert], limit)
    cost = -(play(model, agent) / 5.0).log().sum().item() / model.sigma
    x, e = points(agent, "state-action"), points(expert, "state-action")
    x, e = (x - e.mean(axis=0)) / e.std(axis=0), (e - e.mean(axis=0)) / e.std(axis=0)
    distance = np.linalg.norm(x[:, None] - np.repeat(e, limit // size, axis=0), axis=2)
    optimal = distance[linear_sum_assignment(distance)].sum() / limit
    unspent = 1e-6 * limit * distance.max()  # upper bound on the cost of the unmoved mass
    print(f"greedy {cost:.4f}, optimal {optimal:.4f}")
    assert optimal - unspent <= cost < 1.5 * optimal
    assert cost < 0.999 * distance.mean(), "the coupling must cost less than an arbitrary one"


@pytest.mark.usefixtures("float64")
def test_it_is_optimal_where_greed_is() -> None:
    """Check that the greedy coupling is optimal if each step lies just above its own atom."""
    expert = transitions(torch.linspace(-1, 1, 100)[None, :, None], torch.zeros(1, 100, 1))
    agent = expert._replace(obs=expert.obs + 0.001)
    model = build([expert], 100, "state-only")
    std = expert.obs.std(correction=0).item()
    cost = -(play(model, agent) / 5.0).log().sum().item() / model.sigma
    assert cost == pytest.approx(100 * (0.01 - 1e-6) * 0.001 / std, rel=1e-3)


# --- masses


@pytest.mark.parametrize(("limit", "last"), [(1000, 1001), (100, 100), (10, 10)])
def test_used_up_atoms_give_nothing(limit: int, last: int) -> None:
    """Count the steps until all atoms are used up.

    Each step leaves a mass of 1e-6. After a thousand steps, this suffices for one more step.
    """
    expert, agent = make(50, spread=0.1), make(limit + 5, seed=1, spread=0.1)
    model = build([expert], limit)
    reward = play(model, agent)[0, 0]
    assert (reward[:last] > 0.0).all()
    assert (reward[last:] == 0.0).all()
    assert (model.mass >= 0.0).all()
    assert float(model.mass.sum()) == pytest.approx(0.0, abs=1e-6)


def test_masses_come_back_in_the_env_that_is_done_alone() -> None:
    expert = make(20)
    path = make(40, seed=1)
    model = build([expert, expert], 50, envs=2)
    steps = Batch(*(x.expand(4, *x.shape[1:]) for x in path))
    first = play(model, Batch(*(x[:, :30] for x in steps)))
    assert torch.equal(first[0, 0], first[1, 1])
    last = Batch(*(x[:, 30].reshape(2, 2, -1).squeeze(-1) for x in steps))
    done = torch.tensor([[False, True], [False, False]])
    at_end = model.observe(last, done)
    assert torch.equal(at_end, at_end[:1, :1].expand(2, 2)), (
        "rewards must use the masses from before the reset"
    )
    assert torch.equal(model.mass[0, 1], model.full[0, 0])
    assert torch.equal(model.mass[0, 0], model.mass[1, 0])
    after = play(model, Batch(*(x[:, 31:] for x in steps)))
    fresh = play(build([expert], 50), Batch(*(x[:, 31:] for x in path)))
    going_on = play(build([expert], 50), path)[..., 31:]
    assert torch.equal(after[0, 1], fresh[0, 0])
    for run, env in ((0, 0), (1, 0), (1, 1)):
        assert torch.equal(after[run, env], going_on[0, 0])
    assert not torch.equal(fresh, going_on)


def test_an_episode_starts_like_the_first() -> None:
    expert, path = make(20), make(30, seed=1)
    twice = Batch(*(torch.cat([x, x], dim=1) for x in path))
    reward = play(build([expert], 30), twice, ends=[29, 59])[0, 0]
    assert torch.equal(reward[:30], reward[30:])


@pytest.mark.parametrize("mode", ["state-action", "state-state", "state-only"])
def test_packed_equals_single(mode: Mode) -> None:
    """Compare a pack of three runs, which have 50, 1 and 9 atoms, with each run alone.

    The agent also visits the origin, where the padding atoms lie.
    """
    sets = [make(50, seed=2), make(1, seed=3), make(9, seed=4)]
    pack = build(sets, 100, mode, envs=2)
    assert pack.atoms.shape[1] == 50 and pack.mass.shape == (3, 2, 50)
    torch.testing.assert_close(pack.mass.sum(dim=-1), torch.ones(3, 2))
    assert (pack.mass[1, :, 1:] == 0.0).all() and (pack.mass[2, :, 9:] == 0.0).all()
    paths = [make(100, seed=10 + i, spread=0.3) for i in range(6)]
    for path in paths:
        path.obs[:, ::7] = 0.0
        path.next_obs[:, ::7] = 0.0
        path.action[:, ::7] = 0.0
    together = play(pack, Batch(*(torch.cat(x) for x in zip(*paths, strict=True))))
    for run, demos in enumerate(sets):
        alone = build([demos], 100, mode, envs=2)
        two = Batch(*(torch.cat(x) for x in zip(*paths[2 * run : 2 * run + 2], strict=True)))
        torch.testing.assert_close(together[run], play(alone, two)[0], rtol=1e-5, atol=1e-30)


def test_atoms_that_pad_a_set_move_no_rounding() -> None:
    """Check that padding atoms change no bit of the sums, so a run is the same in a pack."""
    g = torch.Generator().manual_seed(0)
    distance, mass = torch.rand(2, 2000, 550, generator=g)
    mass[:, 50:] = 0.0  # sorting by distance puts padding between the atoms
    alone = couple(distance[:, :50], mass[:, :50], 3.0)
    padded = couple(distance, mass, 3.0)
    assert torch.equal(alone[0], padded[0]) and torch.equal(alone[1], padded[1])
    assert torch.equal(alone[2], padded[2][:, :50])


# --- standardisation


def test_features_without_spread_are_divided_by_one() -> None:
    n = 50
    up = np.where(np.arange(n) % 2, 1, 0)
    rng = np.random.default_rng(0)
    columns = [
        np.full(n, 0.1),  # float32 arithmetic gives a std near 1e-8
        np.zeros(n),
        np.float32(0.1) + up * np.spacing(np.float32(0.1)),  # differs in the last bit
        np.float32(4000.0) + up * np.spacing(np.float32(4000.0)),
        1e-9 * rng.normal(size=n),  # noise around zero
        4000.0 + 0.1 * rng.normal(size=n),  # a small but real spread
        1e-4 * rng.normal(size=n),
        1000.0 * rng.normal(size=n),
    ]
    obs = torch.from_numpy(np.stack(columns, axis=-1).astype(np.float32))[None]
    expert = transitions(obs, torch.zeros(1, n, 1))
    model = build([expert], 100, "state-only")
    assert model.scale[0, 0, :5].tolist() == [1.0] * 5
    want = obs[0].double().std(dim=0, correction=0)[5:].float()
    torch.testing.assert_close(model.scale[0, 0, 5:], want)
    # A deviation in a constant feature must enter the distance unscaled.
    for column in range(5):
        away = obs[:, :1].clone()
        away[..., column] += 0.5
        reward = build([expert], 100, "state-only").observe(
            transitions(away, torch.zeros(1, 1, 1)), torch.zeros(1, 1, dtype=torch.bool)
        )
        want_reward = reward_of(np.array((0.01 - 1e-6) * 0.5), 100, 8)
        assert reward.item() == pytest.approx(float(want_reward), rel=1e-3)


def test_standardised_atoms_have_mean_zero_and_std_one() -> None:
    sets = [make(50, seed=2), make(9, seed=4)]
    model = build(sets)
    for run, size in enumerate((50, 9)):
        atoms = model.atoms[run, :size]
        torch.testing.assert_close(atoms.mean(dim=0), torch.zeros(6), rtol=0.0, atol=1e-4)
        torch.testing.assert_close(
            atoms.std(dim=0, correction=0), torch.ones(6), rtol=1e-5, atol=0.0
        )


def test_one_transition() -> None:
    expert = make(1)
    model = build([expert], 100)
    assert (model.scale == 1.0).all()
    there = Batch(*(x.expand(1, 50, *x.shape[2:]) for x in expert))
    away = there._replace(obs=there.obs + torch.tensor([0.0, 0.3, 0.0, 0.4]))
    assert (play(model, there) == 5.0).all()
    want = torch.full((1, 1, 50), 5.0 * math.exp(-5.0 * 0.5 * (1 - 1e-4) / math.sqrt(6)))
    torch.testing.assert_close(play(model, away), want, rtol=1e-4, atol=0.0)


# --- the reward


@pytest.mark.parametrize(("size", "limit"), [(50, 1000), (10, 200), (100, 100)])
@pytest.mark.parametrize("mode", ["state-action", "state-state", "state-only"])
def test_perfect_imitation_earns_alpha_to_the_last_bit(size: int, limit: int, mode: Mode) -> None:
    expert, each = make(size), limit // size
    slow = Batch(*(x.repeat_interleave(each, dim=1) for x in expert))
    rounds = Batch(*(torch.cat([x] * each, dim=1) for x in expert))
    for path in (slow, rounds):
        assert (play(build([expert], limit, mode), path) == 5.0).all()


def test_raw_inputs_in_the_thousands() -> None:
    g = torch.Generator().manual_seed(0)
    obs = 5000.0 * (2.0 * torch.rand(1, 50, OBS, generator=g) - 1.0)
    obs[..., 0] = 0.0  # constant for the expert; 5000 for the agent
    expert = transitions(obs, torch.zeros(1, 50, ACT))
    far = transitions(torch.full((1, 100, OBS), 5000.0), torch.ones(1, 100, ACT))
    reward = play(build([expert], 200), far)
    assert reward.isfinite().all() and (reward >= 0.0).all()
    near = expert._replace(obs=obs + torch.randn(1, 50, OBS, generator=g))
    reward = play(build([expert], 50), near)
    assert reward.isfinite().all() and (reward > 0.0).any()
    assert (play(build([expert], 50), expert) == 5.0).all()


def test_range_and_sign() -> None:
    expert = make(50)
    like = [play(build([expert], 200), make(200, seed=1, spread=s)) for s in (1.0, 2.0, 4.0)]
    for reward in like:
        assert (reward > 0.0).all() and (reward <= 5.0).all() and not reward.requires_grad
    means = [reward.mean().item() for reward in like]
    assert means == sorted(means, reverse=True) and means[0] > 2 * means[1], (
        "a path more like the expert's must earn more"
    )


def test_the_horizon_cancels_but_for_the_masses() -> None:
    """Check that the time limit hardly changes an episode's first reward, which uses one atom."""
    expert, step = make(5), make(1, seed=1, spread=0.5)
    rewards = [play(build([expert], limit), step).item() for limit in (100, 200, 1000)]
    assert rewards == pytest.approx([rewards[0]] * 3, rel=1e-2)


def test_a_broken_env_breaks_no_other() -> None:
    expert = make(20)
    model, whole = (build([expert, expert], 50, envs=2) for _ in range(2))
    paths = Batch(*(torch.cat([x] * 4) for x in make(10, seed=1)))
    broken = paths._replace(obs=paths.obs.clone())
    broken.obs[1, 3:] = math.nan
    got, want = play(model, broken, ends=[9]), play(whole, paths, ends=[9])
    fine = torch.tensor([[True, False], [True, True]])
    assert torch.equal(got[fine], want[fine])
    assert torch.equal(play(model, paths), play(whole, paths)), "a reset must repair the env"


# --- interface of reward models


def test_the_seam(make_batch: Callable[..., Batch]) -> None:
    model, batch = build([make(5)]), make_batch(1, 6, OBS, ACT)
    assert issubclass(Pwil, RewardModel) and not Pwil.learns and not Pwil.offline
    assert torch.equal(model.reward(batch), batch.reward), "rewards must be the stored ones"
    assert model.draws() == {} and list(model.parameters()) == []
    with pytest.raises(UserError, match="Pwil has no method 'loss'"):
        model.loss(batch, batch)


def test_a_checkpoint_is_the_masses() -> None:
    expert, path = make(20), make(40, seed=1)
    model = build([expert], 50)
    play(model, Batch(*(x[:, :20] for x in path)))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    assert list(state) == ["mass"]
    rest = Batch(*(x[:, 20:] for x in path))
    want = play(model, rest)
    other = build([expert], 50)
    other.load_state_dict(state)
    assert torch.equal(play(other, rest), want)


def test_a_step_needs_no_value_and_keeps_its_storage() -> None:
    """Observe a step on the meta device, where code that needs the values of a tensor fails."""
    model = build([make(20), make(3)], 50, envs=2)
    place, spend = model.mass.data_ptr(), model.spend
    step = Batch(*(torch.cat([x] * 4).reshape(2, 2, *x.shape[2:]) for x in make(1, seed=1)))
    done = torch.zeros(2, 2, dtype=torch.bool)
    model.observe(step, done)
    assert model.mass.data_ptr() == place and model.spend == spend
    out = model.to("meta").observe(Batch(*(x.to("meta") for x in step)), done.to("meta"))
    assert out.shape == (2, 2)


def test_defaults_are_the_originals() -> None:
    assert PwilConfig() == PwilConfig(alpha=5.0, beta=5.0)
    model = build([make(3)], 1000)
    assert model.spend == pytest.approx(0.000999, rel=1e-12)
    assert model.sigma == pytest.approx(5000.0 / math.sqrt(6), rel=1e-12)


def test_the_filled_buffer_repeats_the_atoms_in_order() -> None:
    """Check that each env cycles through its run's atoms with reward alpha and never terminates."""
    sets = [make(size, seed=size) for size in (3, 2)]
    spec = Spec(OBS, ACT, "state-action", 8, (0, 1), 100, 2, 0.99, DemoSet(sets))
    model = Pwil(PwilConfig(alpha=4.0, prefill=9), spec)
    filled = model.prefill()
    assert filled is not None and model.prefilled(model.config) == 9
    order = [
        [0, 0, 1, 1, 2, 2, 0, 0, 1, 1],
        [0, 0, 1, 1, 0, 0, 1, 1, 0, 0],
    ]  # five steps of two envs
    for run, atoms in enumerate(order):
        following = [(i + 1) % len(sets[run].obs[0]) for i in atoms]
        assert torch.equal(filled.obs[run], sets[run].obs[0, atoms])
        assert torch.equal(filled.action[run], sets[run].action[0, atoms])
        assert torch.equal(filled.next_obs[run], sets[run].obs[0, following])
    assert (filled.reward == 4.0).all() and (filled.terminated == 0.0).all()
    assert Pwil(PwilConfig(), spec).prefill() is None
