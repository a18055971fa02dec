"""The measurements of `ngt bench`: updates per second on one thread, by library or method.

In a pack, several runs are trained together. The rows that `bench` returns have some of these
fields:

- `updates_per_second`: number of updates per second, summed over the runs of a pack
- `over_floor`: the time of an update, divided by the time of its matrix products alone
- `update_ms`: milliseconds per update of one run
- `products_ms`: the part of `update_ms` that matrix products take
- `env_steps_per_second`: env steps per second of one run over a whole training, without evaluations
"""

import multiprocessing
import statistics
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import torch

from ngt.bench.cases import SB3, Contender, cell_of, iteration, pack_of, peers, stepping, whole
from ngt.bench.measure import agreement, floor, in_place, measure, profile, rate, ratio
from ngt.bench.sbx import NONE, STEPS, Peers
from ngt.runs.provenance import provenance
from ngt.settings.config import CellConfig, Config, TrainConfig
from ngt.settings.resolve import method_label, method_rate, resolve

# Field of a result row -> a library. The field's value is the row's rate divided by the library's
# rate.
PEERS = {"over_peer": SB3, "over_sbx": next(iter(STEPS))}


def bench(
    env: str, *, pack: int, repeats: int, updates: int, theirs: Peers = NONE
) -> dict[str, Any]:
    """Measure the rates of SAC, NGT, a pack of NGT runs, and other libraries (peers).

    All of these take turns on one thread.

    pack: number of NGT runs that are trained together.
    theirs: peers that run in a different Python environment.
    """
    torch.set_num_threads(1)
    models = {"SAC": ("SAC", 1), "NGT": ("NGT", 1), f"NGT, pack of {pack}": ("NGT", pack)}
    updating, timed = {}, {}
    for what, (model, runs) in list(models.items())[: 3 if pack > 1 else 2]:
        cell, seeds = cell_of(model, env), range(runs)
        updating[what] = timed[what] = Contender(pack_of(cell, seeds).update, runs)
        updating[what].call()  # creates the optimisers' moments
        timed[f"{what}: floor"] = Contender(floor(updating[what].call), runs)
        timed[f"{what}: whole"] = Contender(whole(cell, seeds), runs)
    others, envs = peers(env) | dict(theirs.contenders), TrainConfig().num_envs
    timed["envs"] = Contender(stepping(env, envs))
    rates = measure(timed | others, repeats, updates)
    rows = []
    for what in [*updating, *others]:
        ratios = {n: ratio(rates[what], rates[p]) for n, p in PEERS.items() if p in others}
        row: dict[str, Any] = {"what": what, "runs": 1, **rate(rates[what], "updates"), **ratios}
        if what in updating:
            steps = statistics.median(rates[f"{what}: whole"]) * envs
            row |= {
                "runs": updating[what].runs,
                "over_floor": ratio(rates[f"{what}: floor"], rates[what]),
                "env_steps_per_second": round(steps / updating[what].runs, 1),
                "update_ms": round(1000 / row["updates_per_second"], 2),
                "products_ms": round(in_place(updating[what], updates), 2),
            }
        rows.append(row)
    return {
        "env": env,
        "threads": 1,
        "batch": TrainConfig().batch,
        "repeats": repeats,
        "updates": updates,
        "rows": rows,
        "envs_alone_steps_per_second": round(statistics.median(rates["envs"]) * envs, 1),
        "profile": profile(updating["NGT"].call, updates),
        "agreement": pack_agreement(env),
        "peer_versions": dict(theirs.versions),
        **provenance(),
    }


def pack_agreement(env: str) -> list[dict[str, Any]]:
    """Return how much the parameters of three runs differ if the runs train in a pack or alone."""
    cell = cell_of("NGT", env)
    return agreement(
        {
            "pack": [pack_of(cell, range(3))],
            "alone": [pack_of(cell, [seed]) for seed in range(3)],
        }
    )


def together(env: str, *, processes: int, repeats: int, updates: int) -> dict[str, Any]:
    """Measure NGT's updates per second in one process, and in several processes at once.

    Each process uses one thread.
    """
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        job = partial(_rate_here, env, updates)
        pool.map(job, range(processes), chunksize=1)  # burn-in
        rows = [
            (pool.map(job, range(1))[0], sum(pool.map(job, range(processes), chunksize=1)))
            for _ in range(repeats)
        ]
    alone, at_once = zip(*rows, strict=True)
    return {
        "processes": processes,
        "one": round(statistics.median(alone), 2),
        "all": round(statistics.median(at_once), 2),
        "gain": ratio(at_once, alone),
    }


@cache
def _ngt_here(env: str) -> Contender:
    torch.set_num_threads(1)
    return Contender(pack_of(cell_of("NGT", env), [0]).update)


def _rate_here(env: str, updates: int, _: int) -> float:
    """Measure NGT's updates per second in this process."""
    return measure({"": _ngt_here(env)}, 1, updates)[""][0]


def bench_methods(
    config: Config, env: str, names: Sequence[str], relative_to: str, *, repeats: int, updates: int
) -> dict[str, Any]:
    """Measure iterations per second of the named methods, and their relative cost.

    A method's cost is its time per iteration, divided by the time per iteration of the method
    `relative_to`. The result contains the median cost over rounds. Each method is measured as a
    single run on one thread.
    """
    torch.set_num_threads(1)
    every = {name: method_rate(config, name) or CellConfig.rate for name in (*names, relative_to)}
    cells = {name: resolve(config, env, name, "state-action", n) for name, n in every.items()}
    contenders = {name: Contender(iteration(cell)) for name, cell in cells.items()}
    rates = measure(contenders, repeats, updates)
    reference = rates[relative_to]
    rows = [
        {
            "what": method_label(config, name),
            "method": name,
            **rate(own, "iterations"),
            "cost": ratio(reference, own),
            "least": ratio(reference, own, min),
            "most": ratio(reference, own, max),
        }
        for name, own in rates.items()
    ]
    return {
        "env": env,
        "scale": config.scale,
        "threads": 1,
        "repeats": repeats,
        "updates": updates,
        "relative_to": relative_to,
        "rows": rows,
        **provenance(),
    }
