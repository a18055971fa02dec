"""`ngt bench`: updates per second, measured beside a peer or beside other methods in one run."""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ngt.agent.sac import Sac
from ngt.experience.envs import VectorEnv, get_task, make
from ngt.experience.replay import Batch, Replay
from ngt.potential import PotentialConfig
from ngt.runs.writer import provenance
from ngt.seeding import Streams
from ngt.settings.config import CellConfig, Config, TrainConfig, method_label, method_rate, resolve
from ngt.training.collector import Collector
from ngt.training.learner import Learner, Member

FILLED = 10_000  # transitions in every buffer: random, since their values change no cost

# What an operator's time is spent on; anything else is "other".
GROUPS = {
    "matrix products": ("mm", "bmm", "addmm", "baddbmm", "_linear_pointwise"),
    "optimisers": ("_fused_adam_", "Optimizer", "lerp", "_foreach"),
    "activations": ("relu", "tanh", "softplus", "threshold_backward", "exp", "log", "huber", "erf",
                    "softmax"),
    "reductions": ("sum", "mean", "min", "max", "sort", "quantile", "std", "var", "linalg"),
    "elementwise": ("mul", "add", "sub", "div", "pow", "neg", "clamp", "where", "remainder", "gt",
                    "eq", "lt", "rsub", "square", "sqrt"),
    "copies and draws": ("copy", "cat", "index", "clone", "fill", "zero", "stack", "contiguous"),
}  # fmt: skip


def random_batch(runs: int, rows: int, obs: int, act: int) -> Batch:
    """Transitions of random numbers."""
    g = torch.Generator().manual_seed(0)
    return Batch(
        torch.randn(runs, rows, obs, generator=g),
        torch.rand(runs, rows, act, generator=g) * 2 - 1,
        torch.randn(runs, rows, obs, generator=g),
        torch.randn(runs, rows, generator=g),
        torch.zeros(runs, rows),
    )


def pack_of(
    cell: CellConfig, seeds: Sequence[int], device: str = "cpu", *, graphs: bool = True,
    filled: int = FILLED,
) -> tuple[Learner, Replay]:  # fmt: skip
    """A learner for runs with these seeds and four demonstrations each, and a filled buffer.

    The same numbers on every device.
    """
    task = get_task(cell.env)
    kept = 4 * -(-task.time_limit // cell.rate)
    data = random_batch(1, kept, task.obs, task.act)
    members = [Member(Path(), {}, seed, 4, data) for seed in seeds]
    pack = Learner(cell, members, device, graphs)
    replay = Replay(len(seeds), filled, task.obs, task.act, device, envs=cell.train.num_envs)
    rows = random_batch(1, filled, task.obs, task.act)
    replay.add(Batch(*(x.to(device).expand(len(seeds), *x.shape[1:]) for x in rows)))
    return pack, replay


def ngt_params(env: str) -> dict[str, Any]:
    """The paper's pairing on an env; base.yaml can't be read where PyYAML is not installed."""
    return {"pairing": "hl_gauss" if env == "Humanoid-v4" else PotentialConfig().pairing}


def learner(
    env: str, model: str, params: dict[str, Any], seeds: Sequence[int]
) -> tuple[Learner, Callable[[], None]]:
    """Our learner for a pack with these seeds, and one whole update of it on a filled buffer."""
    cell = CellConfig(env=env, method="bench", model=model, params=params, train=TrainConfig())
    pack, replay = pack_of(cell, seeds)
    return pack, lambda: pack.update(replay)


def agreement(env: str, params: dict[str, Any], updates: Sequence[int]) -> list[dict[str, Any]]:
    """Largest difference of any parameter between a pack of three and each of its runs alone."""
    model = "ngt.potential:Potential"
    together, update = learner(env, model, params, range(3))
    alone = [learner(env, model, params, [seed]) for seed in range(3)]
    rows = []
    for count in range(1, max(updates) + 1):
        update()
        for _, step in alone:
            step()
        if count in updates:
            worst = max(
                float((packed[seed] - single[0]).detach().abs().max())
                for seed, (one, _) in enumerate(alone)
                for ours, theirs in ((together.agent, one.agent), (together.model, one.model))
                for packed, single in zip(ours.parameters(), theirs.parameters(), strict=True)
            )
            rows.append({"updates": count, "difference": worst})
    return rows


def sb3_update(env: str) -> Callable[[], None]:
    """One gradient step of stable-baselines3's SAC: same nets, batch and buffer."""
    from stable_baselines3 import SAC

    task = get_task(env)
    agent = SAC(
        "MlpPolicy", make(env), batch_size=256, buffer_size=FILLED, device="cpu",
        policy_kwargs={"net_arch": [256, 256]}, learning_rate=3e-4, seed=0,
    )  # fmt: skip
    assert agent.replay_buffer is not None
    batch = random_batch(1, FILLED, task.obs, task.act)
    going_on = np.zeros(1, bool)
    for obs, action, next_obs, reward in zip(*(x[0].numpy() for x in batch[:4]), strict=True):
        agent.replay_buffer.add(obs, next_obs, action, reward, going_on, [{}])
    agent._setup_learn(total_timesteps=1)
    return lambda: agent.train(gradient_steps=1, batch_size=256)


class Products(TorchDispatchMode):
    """Notes every matrix product that runs under it, or times them where they are made."""

    NAMES = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "mkldnn::_linear_pointwise")

    def __init__(self, note: bool = True) -> None:
        super().__init__()
        self.note = note
        self.calls: list[tuple[Any, list[Any]]] = []  # operator, and arguments of the same layout
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        product = func.name().removesuffix(".default") in self.NAMES
        if product and self.note:
            self.calls.append((func, [_like(x) for x in args]))
        start = time.perf_counter()
        out = func(*args, **(kwargs or {}))
        if product:
            self.seconds += time.perf_counter() - start
        return out


def _like(x: Any) -> Any:
    """Another tensor of this layout, expanded where x is; what is no tensor as it is."""
    if not isinstance(x, torch.Tensor):
        return x
    span = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
    return torch.randn(span, dtype=x.dtype, device=x.device).as_strided(x.shape, x.stride())


def floor(update: Callable[[], None]) -> Callable[[], None]:
    """The matrix products of one update and nothing else: what it can't be faster than."""
    with Products() as noted:
        update()

    def products() -> None:
        for operator, args in noted.calls:
            operator(*args)

    return products


def in_place(update: Callable[[], None], runs: int, updates: int) -> float:
    """Milliseconds that the products of a run's update take within it, its data in the cache."""
    count = max(updates // runs, 3)
    with Products(note=False) as timed:
        for _ in range(count):
            update()
    return 1000 * timed.seconds / (count * runs)


def whole(env: str, model: str, params: dict[str, Any], seeds: Sequence[int]) -> Callable[[], None]:
    """A vector step of a training: act, update, step the envs, store."""
    train = TrainConfig()
    cell = CellConfig(env=env, method="bench", model=model, params=params, train=train)
    pack, replay = pack_of(cell, seeds)
    task = get_task(env)
    envs = VectorEnv(env, len(seeds) * train.num_envs)
    explore = Streams(seeds, Sac.exploration(train.num_envs, task.act), "cpu")
    collector = Collector(envs, pack, replay, explore)
    collector.reset(range(envs.num))

    def run() -> None:
        action = collector.act()
        for _ in range(train.updates_per_step):
            pack.update(replay)
        collector.step(action)

    return run


def stepping(env: str, num: int) -> Callable[[], None]:
    """One step of so many envs, with random actions."""
    envs, rng = VectorEnv(env, num), np.random.default_rng(0)
    envs.reset(range(num))

    def run() -> None:
        envs.step(rng.uniform(-1, 1, (num, envs.task.act)))

    return run


# What `bench` compares: (name, model)
CONTENDERS = (("SAC", "ngt.reward:EnvReward"), ("NGT", "ngt.potential:Potential"))
PEER = "stable-baselines3 SAC"


def bench(env: str, *, pack: int, repeats: int, updates: int) -> dict[str, Any]:
    """Rates of SAC, NGT and a pack of it beside two floors and a peer; one thread.

    All are interleaved, after a burn-in. updates_per_second counts the updates of all runs of a
    pack; over_floor is an update's time over that of its matrix products alone, products_ms what
    they take within it, of a run's update_ms;
    env_steps_per_second is each run's, of whole training but for evaluations.
    """
    torch.set_num_threads(1)
    params, envs = ngt_params(env), TrainConfig().num_envs
    timed: dict[str, tuple[Callable[[], None], int]] = {}
    sizes = {}
    for name, model in CONTENDERS:
        own = params if name == "NGT" else {}
        for runs in (1, pack) if name == "NGT" and pack > 1 else (1,):
            what = name if runs == 1 else f"{name}, pack of {runs}"
            sizes[what], seeds = runs, range(runs)
            update = learner(env, model, own, seeds)[1]
            update()  # makes the optimisers' moments
            timed[what] = (update, runs)
            timed[f"{what}: floor"] = (floor(update), runs)
            timed[f"{what}: whole"] = (whole(env, model, own, seeds), runs)
    timed["envs"] = (stepping(env, envs), 1)
    with contextlib.suppress(ImportError):  # the peer is a test-only dependency
        timed[PEER] = (sb3_update(env), 1)
    rates = measure(timed, repeats, updates)
    rows = []
    for what in [*sizes, *([PEER] if PEER in rates else [])]:
        row: dict[str, Any] = {"what": what, "runs": sizes.get(what, 1), **_rate(rates[what])}
        if PEER in rates:
            row["over_peer"] = _ratio(rates[what], rates[PEER])
        if what in sizes:
            row["over_floor"] = _ratio(rates[f"{what}: floor"], rates[what])
            steps = statistics.median(rates[f"{what}: whole"]) * envs / sizes[what]
            row["env_steps_per_second"] = round(steps, 1)
            row["update_ms"] = round(1000 / row["updates_per_second"], 2)
            row["products_ms"] = round(in_place(timed[what][0], sizes[what], updates), 2)
        rows.append(row)
    return {
        "env": env, "threads": 1, "batch": TrainConfig().batch, "repeats": repeats,
        "updates": updates, "rows": rows,
        "envs_alone_steps_per_second": round(statistics.median(rates["envs"]) * envs, 1),
        "profile": profile(timed["NGT"][0], updates),
        "agreement": agreement(env, params, (1, 10, 100)), **provenance(),
    }  # fmt: skip


def _rate(rates: Sequence[float]) -> dict[str, float]:
    return {
        "updates_per_second": round(statistics.median(rates), 2),
        "slowest": round(min(rates), 2), "fastest": round(max(rates), 2),
    }  # fmt: skip


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median over the rounds, so that a machine that slows down for a while changes none."""
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3)


def together(env: str, *, processes: int, repeats: int, updates: int) -> dict[str, Any]:
    """Updates a second of NGT in one process, and in so many at once, each of one thread."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        job = partial(_alone, env, updates)
        pool.map(job, range(processes), chunksize=1)  # burn-in
        rows = []
        for _ in range(repeats):
            (one,) = pool.map(job, range(1))
            rows.append((one, sum(pool.map(job, range(processes), chunksize=1))))
    return {
        "processes": processes, "one": round(statistics.median(one for one, _ in rows), 2),
        "all": round(statistics.median(every for _, every in rows), 2),
        "gain": _ratio([every for _, every in rows], [one for one, _ in rows]),
    }  # fmt: skip


@cache
def _update_of(env: str) -> Callable[[], None]:
    torch.set_num_threads(1)
    return learner(env, CONTENDERS[1][1], ngt_params(env), [0])[1]


def _alone(env: str, updates: int, _: int) -> float:
    """Updates a second in this process."""
    return measure({"": (_update_of(env), 1)}, 1, updates)[""][0]


def measure(
    contenders: Mapping[str, tuple[Callable[[], None], int]], repeats: int, updates: int
) -> dict[str, list[float]]:
    """Updates per second in each round, by name; contenders are (update, runs it updates)."""
    for update, runs in contenders.values():
        for _ in range(max(updates // (2 * runs), 3)):
            update()
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, (update, runs) in contenders.items():
            count = max(updates // runs, 3)
            start = time.perf_counter()
            for _ in range(count):
                update()
            rates[name].append(count * runs / (time.perf_counter() - start))
    return rates


def iteration(cell: CellConfig) -> Callable[[], None]:
    """One iteration of one run, without env and policy: what the cell's method costs.

    A vector step's transitions are rewarded and stored, then model and agent are updated; offline,
    one gradient step.
    """
    pack, replay = pack_of(cell, [0])
    if pack.model.offline:
        return pack.fit
    task = get_task(cell.env)
    taken = random_batch(1, cell.train.num_envs, task.obs, task.act)
    done = torch.zeros(taken.reward.shape, dtype=torch.bool)

    def run() -> None:
        replay.add(taken._replace(reward=pack.model.observe(taken, done)))
        for _ in range(cell.train.updates_per_step):
            pack.update(replay)

    return run


def bench_methods(
    config: Config, env: str, names: Sequence[str], relative_to: str, *, repeats: int, updates: int
) -> dict[str, Any]:
    """Iterations per second of methods of the config, and their cost over that of one of them.

    The cost is the median over rounds of the ratio of times, so that a machine that slows down
    for a while changes no ratio. One run, one thread, as `bench`.
    """
    torch.set_num_threads(1)
    contenders = {}
    for name in dict.fromkeys([*names, relative_to]):
        rate = method_rate(config, name) or CellConfig.rate
        contenders[name] = iteration(resolve(config, env, name, "state-action", rate)), 1
    rates = measure(contenders, repeats, updates)
    rows = []
    for name, own in rates.items():
        cost = [theirs / ours for ours, theirs in zip(own, rates[relative_to], strict=True)]
        rows.append(
            {"what": method_label(config, name), "method": name,
             "iterations_per_second": round(statistics.median(own), 2),
             "slowest": round(min(own), 2), "fastest": round(max(own), 2),
             "cost": round(statistics.median(cost), 3),
             "least": round(min(cost), 3), "most": round(max(cost), 3)}
        )  # fmt: skip
    return {
        "env": env, "scale": config.scale, "threads": 1, "repeats": repeats, "updates": updates,
        "relative_to": relative_to, "rows": rows, **provenance(),
    }  # fmt: skip


def profile(update: Callable[[], None], updates: int) -> list[dict[str, Any]]:
    """Where an update's time goes: milliseconds and share by kind of work."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    with torch_profile(activities=[ProfilerActivity.CPU]) as result:
        for _ in range(updates):
            update()
    totals = dict.fromkeys([*GROUPS, "other"], 0.0)
    for event in result.key_averages():
        totals[_group(event.key)] += event.self_cpu_time_total / 1000 / updates
    whole = sum(totals.values())
    return [
        {"kind": kind, "ms": round(ms, 3), "share": round(ms / whole, 3)}
        for kind, ms in sorted(totals.items(), key=lambda item: -item[1])
    ]


def _group(op: str) -> str:
    if op.startswith("Optimizer"):
        return "optimisers"
    name = op.rpartition("::")[2]
    for group, parts in GROUPS.items():
        exact = group == "matrix products"
        if op.startswith(("aten::", "mkldnn::")) and any(
            name == p if exact else p in name for p in parts
        ):
            return group
    return "other"


def table(result: dict[str, Any]) -> str:
    """The result as text: rates with their ratios to the peer and the floor, then the profile."""
    rows = result["rows"]
    lines = [
        f"{result['env']}, {result['threads']} thread, batch {result['batch']}, "
        f"median of {result['repeats']}",
        f"{'':<24}{'updates/s':>11}{'(range)':>18}{'/ SB3':>8}{'/ floor':>9}{'env steps/s':>13}",
    ]
    for r in rows:
        spread = f"({r['slowest']}-{r['fastest']})"
        ratios = [f"{r[key]:.2f}" if key in r else "" for key in ("over_peer", "over_floor")]
        lines.append(
            f"{r['what']:<24}{r['updates_per_second']:>11}{spread:>18}{ratios[0]:>8}{ratios[1]:>9}"
            f"{r.get('env_steps_per_second', ''):>13}".rstrip()
        )
    lines += [
        "updates of all runs of a pack; / floor: time over that of its matrix products alone;",
        f"env steps of each run; envs alone {result['envs_alone_steps_per_second']:.0f} steps/s",
        *(
            f"{r['what']}: {r['update_ms']} ms a run's update, {r['products_ms']} in its products"
            for r in rows
            if "products_ms" in r
        ),
    ]
    if all("over_peer" not in r for r in rows):
        lines.append("stable-baselines3 is not installed: no peer")
    if "together" in result:
        t = result["together"]
        lines.append(
            f"{t['processes']} processes at once: {t['all']} updates/s of NGT, {t['gain']:.2f} "
            f"times one process's {t['one']}"
        )
    lines.append("\none NGT update, by kind of work (profiler on, so slower than above)")
    lines += [f"{p['kind']:<24}{p['ms']:>8.2f} ms{p['share']:>8.1%}" for p in result["profile"]]
    lines.append("\na pack of 3 against its runs alone: largest difference of any parameter")
    lines += [
        f"after {a['updates']:>4} updates      {a['difference']:>8.1e}" for a in result["agreement"]
    ]
    return "\n".join(lines)


def methods_table(result: dict[str, Any]) -> str:
    """The result of `bench_methods` as text."""
    reference = next(r for r in result["rows"] if r["method"] == result["relative_to"])
    what, name = (max(len(r[key]) for r in result["rows"]) + 2 for key in ("what", "method"))
    lines = [
        f"{result['env']}, scale {result['scale']}, {result['threads']} thread, one run, median of "
        f"{result['repeats']}; time of one iteration over that of {reference['what']}",
        f"{'':<{what + name}}{'iterations/s':>12}{'(range)':>18}{'time':>8}{'(range)':>14}",
    ]
    for r in result["rows"]:
        spread, costs = f"({r['slowest']}-{r['fastest']})", f"({r['least']:.2f}-{r['most']:.2f})"
        lines.append(
            f"{r['what']:<{what}}{r['method']:<{name}}{r['iterations_per_second']:>12}{spread:>18}"
            f"{r['cost']:>8.2f}{costs:>14}"
        )
    return "\n".join(lines)
