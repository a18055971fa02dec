"""Make a second set of test vectors, by the formulas of vectors/README.md.

    python tests/data/make_vectors

The second set has other sizes and seeds than the first, which is from official code. The script
imports nothing from the suite, computes in float64 and makes only the arrays that tests read.
Arrays that the README gives as float32 are rounded at the end. In this set, each of them therefore
equals, up to this rounding, the array whose name also has `64`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from agents import actor, sac, sac_distribution
from common import (
    FOLDER,
    RNG,
    Activation,
    Arrays,
    make_net,
    named,
    normal,
    run,
    uniform,
    write,
)
from rliable import library, metrics
from scipy.optimize import linprog
from scipy.special import erf
from torch import Tensor

# ---------------------------------------------------------------- PWIL, HL-Gauss


def pwil(name: str, atoms: int, obs: int, act: int, limits: Sequence[int], still: bool) -> None:
    longest = max(limits)
    expert = {"obs": normal(atoms, obs).numpy(), "act": normal(atoms, act, scale=0.5).numpy()}
    agent = {"obs": normal(longest, obs).numpy(), "act": normal(longest, act, scale=0.5).numpy()}
    if still:
        expert["obs"][:, 1] = np.float32(0.3)
    out: Arrays = {f"expert_{k}": v for k, v in expert.items()}
    out |= {f"agent_{k}": v for k, v in agent.items()} | {"alpha_beta": [5.0, 5.0]}
    for kind, limit in itertools.product(("sa", "obs"), limits):
        parts = ("obs", "act") if kind == "sa" else ("obs",)
        x, y = (np.concatenate([side[p] for p in parts], axis=1) for side in (expert, agent))
        std = np.where(np.ptp(x, axis=0) == 0, 1.0, x.std(axis=0))
        distances = np.linalg.norm(((y[:, None] - x[None]) / std), axis=-1)
        left, costs = np.full(atoms, 1.0 / atoms), []
        for row in distances[:limit]:
            spend, cost = 1.0 / limit - 1e-6, 0.0
            for j in np.argsort(row):
                taken = min(left[j], spend)
                left[j], spend, cost = left[j] - taken, spend - taken, cost + taken * row[j]
            costs.append(cost)
        sigma, key = 5.0 * limit / math.sqrt(obs + act), f"{kind}_T{limit}"
        reward = 5.0 * np.exp(-sigma * np.array(costs))
        out |= {f"reward_{key}": reward, f"reward64_{key}": reward}
        out |= {f"cost64_{key}": costs, f"sigma_{key}": sigma}
    write(f"pwil_{name}", out, ["reward_"])


def hlg(name: str, batch: int, bins: int, units: int, bound: float, sigma: float) -> None:
    targets = (bound * 0.9 * (2 * uniform(batch, units) - 1)).float().double()
    outside = [bound, -bound, bound + sigma, -bound - sigma, bound + 8 * sigma]
    targets.view(-1)[:5] = torch.tensor(outside, dtype=torch.float64).float().double()
    logits = normal(batch, bins * units, scale=2.0).requires_grad_()
    edges = np.linspace(-bound, bound, bins + 1)
    z = erf((edges - targets.numpy()[..., None]) / (math.sqrt(2.0) * sigma))
    probs = torch.from_numpy(np.diff(z) / (z[..., -1:] - z[..., :1] + 1e-6))
    log_q = logits.view(batch, bins, units).mT.log_softmax(-1)
    loss = -(probs * log_q).sum(-1)
    (grad,) = torch.autograd.grad(loss.sum(), logits)
    write(
        name,
        {
            "logits": logits,
            "targets": targets,
            "support": [-bound, bound],
            "num_bins": bins,
            "sigma": sigma,
            "probs": probs,
            "probs64": probs,
            "loss": loss,
            "loss64": loss,
            "grad_logits": grad,
            "grad_logits64": grad,
            "loss64_mean_units": loss.mean(-1),
            "mass64": probs.sum(-1),
        },
        ["logits", "targets", "probs", "loss", "grad"],
    )


# ---------------------------------------------------------------- DiffAIL


def alphas_bar(steps: int) -> Tensor:
    return (1 - torch.linspace(1e-4, 2e-2, steps, dtype=torch.float64)).cumprod(0)


def schedules(*steps: int) -> None:
    out: Arrays = {}
    for n in steps:
        out[f"betas_linear_{n}"] = np.linspace(1e-4, 2e-2, n)
        out[f"alphas_bar64_linear_{n}"] = alphas_bar(n)
    write("diffail_schedules", out, ["betas"])


def diffail(name: str, activation: Activation, width: int, batch: int, steps: int) -> None:
    frequencies, hidden = 5, (12, 9, 11)
    embed = 2 * frequencies
    time, mid = make_net(embed, 2 * embed, embed), make_net(width + embed, *hidden, width)
    power = alphas_bar(steps)
    ladder = 10_000.0 ** (-torch.arange(frequencies, dtype=torch.float64) / (frequencies - 1))

    def error(x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        angle = t[:, None] * ladder
        at = run(time, torch.cat([angle.sin(), angle.cos()], -1), activation)
        share = power[t.long()][:, None]
        noisy = share.sqrt() * x + (1 - share).sqrt() * noise
        return (run(mid, torch.cat([noisy, at], -1), activation) - noise).square()

    out: Arrays = named(time, "time_w", "time_b") | named(mid[:-1], "mid_w", "mid_b")
    out |= {"out_w": mid[-1][0], "out_b": mid[-1][1]}
    for side in ("expert", "agent", "interp"):
        out[f"t_{side}"] = torch.from_numpy(RNG.integers(steps, size=batch)).double()
        out[f"noise_{side}"] = normal(batch, width)
    out |= {"x_expert": normal(batch, width), "x_agent": normal(batch, width, scale=1.5)}
    out |= {"eps_interp": uniform(batch, 1), "noise_reward": normal(steps, batch, width)}
    leaves = [time[0][0], mid[0][0], *mid[-1]]
    for leaf in leaves:
        leaf.requires_grad_()
    d = {}
    for side in ("expert", "agent"):
        d[side] = torch.exp(-error(*(out[f"{k}_{side}"] for k in ("x", "t", "noise"))).mean(-1))
        out |= {f"d_train_{side}": d[side], f"d_train_{side}64": d[side]}
        all_t = [
            torch.exp(-error(out[f"x_{side}"], torch.full((batch,), t), out["noise_reward"][t]))
            for t in range(steps)
        ]
        value = torch.stack(all_t).mean(dim=(0, 2))
        out |= {f"d_reward_{side}": value, f"d_reward_{side}64": value}
    out["reward_agent"] = -torch.log(1 - value)
    losses = -d["expert"].log().mean(), -(1 - d["agent"]).log().mean()
    out |= {"bce_expert": losses[0], "bce_agent": losses[1]}
    grads = torch.autograd.grad(losses[0] + losses[1], leaves)
    names = ("time_w1", "mid_w1", "out_w", "out_b")
    out |= {f"grad_{n}": g for n, g in zip(names, grads, strict=True)}
    e = out["eps_interp"]
    x = (e * out["x_expert"] + (1 - e) * out["x_agent"]).requires_grad_()
    value = torch.exp(-error(x, out["t_interp"], out["noise_interp"]).mean(-1))
    norm = torch.autograd.grad(value.sum(), x)[0].norm(dim=-1)
    out |= {"gp_norm64": norm, "gp_two_sided": (norm - 1).square().mean()}
    rounded = ("time", "mid", "out", "x_", "noise", "eps", "d_", "bce", "gp_two", "reward", "grad")
    write(f"diffail_{name}", out, rounded)


# ---------------------------------------------------------------- penalty, MMD


def penalty(name: str, activation: Activation, sizes: Sequence[int], batch: int) -> None:
    net = make_net(*sizes, scale=1.6)
    expert, agent, e = (
        normal(batch, sizes[0]),
        normal(batch, sizes[0], scale=2.0),
        uniform(batch, 1),
    )
    x = (e * expert + (1 - e) * agent).requires_grad_()
    for w, _ in net:
        w.requires_grad_()
    output = run(net, x, activation)[:, 0]
    (grad,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    norm = grad.norm(dim=-1)
    two, one = (norm - 1).square().mean(), (norm - 1).clamp(min=0).square().mean()
    out = named(net, "w", "b") | {"x_expert": expert, "x_agent": agent, "eps": e}
    out |= {"interpolates": x, "output": output, "grad": grad, "grad_norm": norm}
    out |= {"gp_two_sided": two, "gp_one_sided": one}
    for side, value in ((2, two), (1, one)):
        grads = torch.autograd.grad(value, [w for w, _ in net], retain_graph=True)
        out |= {f"dgp{side}_w{i}": g for i, g in enumerate(grads, 1)}
    write(name, out)


def mmd(width: int, experts: int, agents: int, queries: int) -> None:
    sigmas = [0.1, 1.0, 10.0]
    x, y = normal(experts, width).requires_grad_(), (0.5 + normal(agents, width)).requires_grad_()
    query = normal(queries, width)

    def kernel(a: Tensor, b: Tensor, s: float) -> Tensor:
        return torch.exp(-(a[:, None] - b[None]).square().sum(-1) / (2 * s * s))

    def squared(s: float) -> Tensor:
        return kernel(x, x, s).mean() + kernel(y, y, s).mean() - 2 * kernel(x, y, s).mean()

    def witness(at: Tensor) -> Tensor:
        return sum(kernel(at, x, s).mean(1) - kernel(at, y, s).mean(1) for s in sigmas)

    each = torch.stack([squared(s) for s in sigmas])
    grads = torch.autograd.grad(each.sum(), (x, y), retain_graph=True)
    out = {"x_expert": x, "y_agent": y, "query": query, "sigmas": sigmas}
    out |= {"mmd2_biased_per_sigma": each, "mmd2_biased_sum": each.sum()}
    out |= {"mmd2_biased_mean": each.mean(), "grad_expert": grads[0], "grad_agent": grads[1]}
    out |= {
        f"witness_{k}_sum": witness(v) for k, v in (("query", query), ("expert", x), ("agent", y))
    }
    write(f"mmd_{width}d", out)


# ---------------------------------------------------------------- statistics, theory


def statistics(tasks: int, *seeds: int) -> None:
    scores = [RNG.normal(0.3 * i, 0.4, size=(n, tasks)).round(2) for i, n in enumerate(seeds)]
    taus = np.unique(np.r_[np.linspace(-0.5, 1.5, 9), scores[0][0]])
    better = [[metrics.probability_of_improvement(x, y) for y in scores] for x in scores]
    out: Arrays = {f"scores_{i}": x for i, x in enumerate(scores)}
    out |= {
        "iqm": [metrics.aggregate_iqm(x) for x in scores],
        "mean": [metrics.aggregate_mean(x) for x in scores],
        "optimality_gap": [metrics.aggregate_optimality_gap(x) for x in scores],
        "prob_improvement": better,
        "taus": taus,
        "profile": [library.score_distributions(x, taus) for x in scores],
    }
    write("rliable", out)


def emd(*sizes: tuple[int, int]) -> None:
    out, found = {}, []
    for i, (n, m) in enumerate(sizes):
        x, y = RNG.normal(size=(n, 2)), RNG.normal(0.7, 1.5, size=(m, 2))
        a, b = (RNG.dirichlet(np.ones(k)) if i % 2 else np.full(k, 1 / k) for k in (n, m))
        cost = np.linalg.norm(x[:, None] - y[None], axis=-1)
        sums = np.r_[np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))]
        found.append(linprog(cost.ravel(), A_eq=sums, b_eq=np.r_[a, b], method="highs").fun)
        out |= {f"x_{i}": x, f"y_{i}": y, f"a_{i}": a, f"b_{i}": b}
    write("emd", out | {"emd": found})


def theory(bins: Sequence[int], bounds: Sequence[float], sigmas: Sequence[float]) -> None:
    rows = []
    for n, bound, sigma in itertools.product(bins, bounds, sigmas):
        edges = np.linspace(-bound, bound, n + 1)
        t = np.r_[np.linspace(-bound, bound, 4001), edges, (edges[1:] + edges[:-1]) / 2]
        z = erf((edges - t[:, None]) / (math.sqrt(2.0) * sigma))
        p = np.diff(z) / (z[:, -1:] - z[:, :1])
        most, width = p.max(), 2 * bound / n
        slope = np.sqrt((1 - 2 * p + np.square(p).sum(1, keepdims=True)).max())
        c = width * math.sqrt((n - 1) / (2 * math.pi))
        bound_p, bound_sigma = math.sqrt(1 + (n - 1) * most**2), math.hypot(1, c / sigma)
        estimate = width / (sigma * math.sqrt(2 * math.pi))
        rows.append((n, -bound, bound, sigma, most, estimate, slope, bound_p, bound_sigma))
    names = ("N", "a", "b", "sigma", "p_max", "p_max_estimate", "grad_sup", "bound_p_max")
    write("theory_hlg", dict(zip((*names, "bound_sigma"), zip(*rows, strict=True), strict=True)))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, atoms, still in (
        ("plain", 12, False),
        ("constant", 9, True),
        ("manyatoms", 60, False),
    ):
        pwil(name, atoms, obs=4, act=2, limits=(40, 15), still=still)
    for i, sizes in enumerate(((7, 9, 5), (6, 15, 3), (5, 4, 6), (9, 2, 2))):
        hlg(f"hlg_{i}", *sizes, bound=(1.0, 2.0, 0.5, 1.0)[i], sigma=(0.1, 0.3, 0.05, 0.7)[i])
    schedules(4, 9, 13)
    for name, activation in (("leaky", lambda x: F.leaky_relu(x, 0.2)), ("mish", F.mish)):
        diffail(name, activation, width=9, batch=15, steps=7)
    actor("actor_ngt_relu", False, obs=5, act=3, batch=33)
    actor("actor_ngt_silu_ln", True, obs=6, act=2, batch=27)
    sac()
    sac_distribution(24, 2)
    penalty("gp_leaky005", lambda x: F.leaky_relu(x, 0.05), (7, 11, 9, 1), 17)
    penalty("gp_leaky02", lambda x: F.leaky_relu(x, 0.2), (6, 8, 1), 13)
    penalty("gp_tanh", torch.tanh, (5, 9, 7, 8, 1), 11)
    for width, *counts in ((1, 13, 21, 6), (8, 11, 17, 5), (32, 7, 9, 4)):
        mmd(width, *counts)
    statistics(5, 8, 6)
    emd((5, 5), (6, 9), (11, 4))
    theory((4, 9, 33), (1.0, 3.0), (0.02, 0.2, 0.8, 2.0))


if __name__ == "__main__":
    main()
