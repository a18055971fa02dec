"""Measurements for the benchmarks: update rates, time of matrix products, agreement, profiles."""

import itertools
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile
from torch.utils._python_dispatch import TorchDispatchMode

from ngt.bench.cases import Contender, Pack

# Kind of work -> pattern for the names of torch's operators. The first pattern that matches an
# operator decides its kind.
KINDS = {
    "matrix products": r"aten::(mm|bmm|addmm|baddbmm)$|mkldnn::_linear_pointwise$",
    "optimisers": r"Optimizer|aten::.*(_fused_adam_|lerp|_foreach)",
    "activations": r"aten::.*(relu|tanh|softplus|threshold_backward|exp|log|huber|erf|softmax)",
    "reductions": r"aten::.*(sum|mean|min|max|sort|quantile|std|var|linalg)",
    "elementwise": r"aten::.*(mul|add|sub|div|pow|neg|clamp|where|remainder|gt|eq|lt|square|sqrt)",
    "copies and draws": r"aten::.*(copy|cat|index|clone|fill|zero|stack|contiguous)",
    "other": "",
}


# ---------------------------------------------------------------- rates


def measure(
    contenders: Mapping[str, Contender], repeats: int, updates: int
) -> dict[str, list[float]]:
    """Return each contender's updates per second in each of `repeats` rounds, after a burn-in.

    Contenders are the functions whose calls are timed. They take turns within a round, so that a
    slow phase of the machine affects all of them. If a contender updates several runs in a call,
    the updates of all runs are counted.
    """
    counts = {name: max(updates // c.runs, 3) for name, c in contenders.items()}
    for name, contender in contenders.items():
        took(contender, max(counts[name] // 2, 3))
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            rates[name].append(counts[name] * contender.runs / took(contender, counts[name]))
    return rates


def took(contender: Contender, count: int) -> float:
    """Return the seconds that `count` calls of a contender take."""
    if contender.many is None:
        return seconds(contender.call, count)
    return seconds(partial(contender.many, count), 1)


def seconds(call: Callable[[], None], count: int) -> float:
    """Return the seconds that `count` calls take, including the work that they start on a GPU."""
    wait = torch.cuda.synchronize if torch.cuda.is_initialized() else int
    wait()
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return time.perf_counter() - start


def rate(rates: Sequence[float], unit: str) -> dict[str, float]:
    """Return the median of the rates of all rounds, as `<unit>_per_second`, and their range."""
    return {
        f"{unit}_per_second": round(statistics.median(rates), 2),
        "slowest": round(min(rates), 2),
        "fastest": round(max(rates), 2),
    }


def ratio(
    ours: Sequence[float],
    theirs: Sequence[float],
    of: Callable[[list[float]], float] = statistics.median,
) -> float:
    """Return the median over rounds of the ratio of two rates, `ours` / `theirs`.

    If the machine is slow during a round, both rates of the round are lower, and their ratio hardly
    changes.

    of: the function that reduces the rounds' ratios to one number; by default the median.
    """
    return round(of([a / b for a, b in zip(ours, theirs, strict=True)]), 3)


# ---------------------------------------------------------------- matrix products alone


class Products(TorchDispatchMode):
    """A context that times matrix products. Given a device, it also records them for repetition."""

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        self.device = device
        self.calls: list[tuple[Callable[..., Any], list[Any]]] = []
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        product = re.match(KINDS["matrix products"], func.name().removesuffix(".default"))
        if product and self.device is not None:
            plain = func.namespace == "aten"  # True if the last two arguments are the factors
            copies = [_like(x, self.device) for x in (args[-2:] if plain else args)]
            self.calls.append((torch.matmul if plain else func, copies))
        start = time.perf_counter()
        out = func(*args, **(kwargs or {}))
        if product:
            self.seconds += time.perf_counter() - start
        return out


def _like(x: Any, device: str) -> Any:
    """Return a random tensor on a device with x's strides, or x itself if it is not a tensor."""
    if not isinstance(x, Tensor):
        return x
    size = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
    return torch.randn(size, dtype=x.dtype, device=device).as_strided(x.shape, x.stride())


def floor(update: Callable[[], None], device: str = "cpu") -> Callable[[], None]:
    """Return a function that repeats only the matrix products of one update, on `device`.

    An update cannot be faster than its matrix products, so their time is the floor of its time.
    """
    with Products(device) as noted:
        update()

    def products() -> None:
        for operator, args in noted.calls:
            operator(*args)

    return products


def in_place(contender: Contender, updates: int) -> float:
    """Return the milliseconds that matrix products take during the update of one run.

    During an update, the factors of a product are already in the cache.
    """
    count = max(updates // contender.runs, 3)
    with Products() as timed:
        seconds(contender.call, count)
    return 1000 * timed.seconds / (count * contender.runs)


# ---------------------------------------------------------------- agreement and profile


def parameters(learner: Any) -> Tensor:
    """Return a CPU copy of all parameters of each run, shape (runs, parameters)."""
    every = itertools.chain(learner.agent.parameters(), learner.model.parameters())
    return torch.cat([p.detach().reshape(len(p), -1).cpu().double() for p in every], dim=1)


def agreement(
    sides: Mapping[str, Sequence[Pack]], updates: Sequence[int] = (1, 10, 100)
) -> list[dict[str, Any]]:
    """Update all packs; return how much parameters differ between the sides, i.e. lists of packs.

    A pack is a set of runs that are updated together. All sides hold the same runs, but two sides
    may divide the runs into packs differently or be on different devices. After each number of
    updates in `updates`, compare each side with the next. In the result, the field `a_b` is the
    largest difference of any parameter between sides a and b.
    """
    rows = []
    for count in range(1, max(updates) + 1):
        for pack in itertools.chain(*sides.values()):
            pack.update()
        if count in updates:
            values = {
                name: torch.cat([parameters(pack.learner) for pack in packs])
                for name, packs in sides.items()
            }
            rows.append(
                {"updates": count}
                | {
                    f"{a}_{b}": float((values[a] - values[b]).abs().max())
                    for a, b in itertools.pairwise(sides)
                }
            )
    return rows


def kind(operator: str) -> str:
    """Return the kind of work that a torch operator does."""
    return next(kind for kind, pattern in KINDS.items() if re.match(pattern, operator))


def profile(update: Callable[[], None], updates: int) -> list[dict[str, Any]]:
    """Return the milliseconds of each kind of work in an update, and its share of the update."""
    with torch_profile(activities=[ProfilerActivity.CPU]) as result:
        seconds(update, updates)
    totals = dict.fromkeys(KINDS, 0.0)
    for event in result.key_averages():
        totals[kind(event.key)] += event.self_cpu_time_total / 1000 / updates
    whole = sum(totals.values())
    return [
        {"kind": kind, "ms": round(ms, 3), "share": round(ms / whole, 3)}
        for kind, ms in sorted(totals.items(), key=lambda item: -item[1])
    ]
