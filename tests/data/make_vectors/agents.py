"""Vectors for SAC as in stable-baselines3 and for the ngt release's actor, made by formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from common import RNG, Arrays, Net, make_net, named, normal, run, uniform, write
from torch import Tensor


def log_prob_of(log_std: Tensor, noise: Tensor, pre_tanh: Tensor, guard: float) -> Tensor:
    gauss = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    if guard:
        return (gauss - torch.log(1 - pre_tanh.tanh().square() + guard)).sum(-1)
    return (gauss - 2 * (math.log(2.0) - pre_tanh - F.softplus(-2 * pre_tanh))).sum(-1)


def sample(mean: Tensor, log_std: Tensor, noise: Tensor, guard: float) -> tuple[Tensor, Tensor]:
    pre_tanh = mean + log_std.exp() * noise
    return pre_tanh.tanh(), log_prob_of(log_std, noise, pre_tanh, guard)


def actor(name: str, normed: bool, obs: int, act: int, batch: int) -> None:
    net, sizes = make_net(obs, 10, 7, 2 * act), (10, 7)
    norms = [(0.5 + uniform(n), normal(n, scale=0.2)) for n in sizes] if normed else []
    norms = [(w.float().double(), b) for w, b in norms]
    low, high = -(uniform(act) + 0.5).float().double(), (uniform(act) + 0.25).float().double()
    x, noise = normal(batch, obs, scale=1.5), normal(batch, act)
    mean, raw = run(net, x, F.silu if normed else F.relu, norms).chunk(2, -1)
    log_std = -5 + 3.5 * (raw.tanh().clamp(-1 + 1e-6, 1 - 1e-6) + 1)
    pre_tanh, half = mean + log_std.exp() * noise, 0.5 * (high - low)
    action, log_prob = sample(mean, log_std, noise, 0.0)
    given = (low + (high - low) * (0.02 + 0.96 * uniform(batch, act))).float().double()
    given[0], given[1] = high, low
    back = ((given - low) / half - 1).clamp(-1 + 1e-6, 1 - 1e-6).atanh()
    scored = log_prob_of(log_std, (back - mean) / log_std.exp(), back, 0.0) - half.log().sum()
    out = named(net[:-1], "w", "b") | {"head_w": net[-1][0], "head_b": net[-1][1]}
    for i, (w, b) in enumerate(norms, 1):
        out |= {f"ln{i}_w": w, f"ln{i}_b": b}
    out |= {
        "action_low": low,
        "action_high": high,
        "obs": x,
        "noise": noise,
        "mean": mean,
        "log_std": log_std,
        "sample": low + (action + 1) * half,
        "pre_tanh64": pre_tanh,
        "mode": low + (mean.tanh() + 1) * half,
        "log_prob": (log_prob - half.log().sum())[:, None],
        "log_prob_tanh_units64": log_prob[:, None],
        "sample64": low + (action + 1) * half,
        "given_action": given,
        "given_log_prob64": scored[:, None],
    }
    write(name, out, list(out))


class Sac:
    """An agent like that of stable-baselines3, one batch, and the agent's losses on this batch."""

    gamma, tau, lr, guard = 0.97, 0.02, 1e-3, 1e-6

    def __init__(self, obs: int, act: int, batch: int, hidden: Sequence[int]) -> None:
        self.act, self.entropy = act, -float(act)
        self.pi = make_net(obs, *hidden, 2 * act, scale=0.7)
        self.pi[-1][1][act:] -= 1.0  # keep log-stds moderate
        self.q = [make_net(obs + act, *hidden, 1) for _ in (0, 1)]
        self.target = [[(w.clone(), 0.5 * b) for w, b in net] for net in self.q]
        self.log_alpha = torch.tensor([math.log(0.3)], dtype=torch.float64, requires_grad=True)
        self.leaves = {
            "pi": [p for pair in self.pi for p in pair],
            "alpha": [self.log_alpha],
            "q": [p for net in self.q for pair in net for p in pair],
        }
        for p in self.leaves["pi"] + self.leaves["q"]:
            p.requires_grad_()
        self.x, self.x2, self.a = (
            normal(batch, obs),
            normal(batch, obs),
            2 * uniform(batch, act) - 1,
        )
        self.reward, self.done = normal(batch, 1), (uniform(batch, 1) < 0.3).double()
        self.noise, self.noise2 = (normal(batch, act, scale=0.7) for _ in (0, 1))

    def policy(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = run(self.pi, obs, F.relu).chunk(2, -1)
        return mean, raw.clamp(-20, 2)

    def values(self, nets: Sequence[Net], obs: Tensor, action: Tensor) -> Tensor:
        """Return both critics' values, shape (2, batch)."""
        x = torch.cat([obs, action], -1)
        return torch.stack([run(net, x, F.relu)[:, 0] for net in nets])

    @torch.no_grad()
    def bellman(self, alpha: float) -> Tensor:
        action, log_prob = sample(*self.policy(self.x2), self.noise2, self.guard)
        value = self.values(self.target, self.x2, action).amin(0) - alpha * log_prob
        return self.reward[:, 0] + (1 - self.done[:, 0]) * self.gamma * value

    def critic_loss(self, alpha: float) -> Tensor:
        error = self.values(self.q, self.x, self.a) - self.bellman(alpha)
        return 0.5 * error.square().mean(1).sum()

    def actor_loss(self, alpha: float) -> Tensor:
        action, log_prob = sample(*self.policy(self.x), self.noise, self.guard)
        return (alpha * log_prob - self.values(self.q, self.x, action).amin(0)).mean()

    def alpha_loss(self) -> Tensor:
        log_prob = sample(*self.policy(self.x), self.noise, self.guard)[1].detach()
        return -(self.log_alpha * (log_prob + self.entropy)).mean()

    def named(
        self, prefix: str = "", of: Callable[[Tensor], Tensor | None] = torch.clone
    ) -> Arrays:
        """Return {name in the file: of(weight)}; leave out weights for which `of` returns None."""
        nets = {"pi": self.pi[:-1]} | {f"q{k}": net for k, net in enumerate(self.q)}
        nets |= {f"qt{k}": net for k, net in enumerate(self.target)}
        out: Arrays = {}
        for name, net in nets.items():
            out |= named(net, f"{prefix}{name}_w", f"{prefix}{name}_b")
        for letter, parameter in zip("wb", self.pi[-1], strict=True):
            out[f"{prefix}pi_head_{letter}"] = parameter
        out = {k: of(v) for k, v in out.items()}
        for letter in "wb":
            head = out.pop(f"{prefix}pi_head_{letter}")
            out[f"{prefix}pi_mean_{letter}"] = head[: self.act]
            out[f"{prefix}pi_logstd_{letter}"] = head[self.act :]
        return {k: v for k, v in out.items() if v is not None}

    def descend(self, name: str, loss: Tensor) -> None:
        """Take Adam's first step on one group of parameters."""
        optimiser = torch.optim.Adam(self.leaves[name], lr=self.lr)
        for p, grad in zip(
            self.leaves[name], torch.autograd.grad(loss, self.leaves[name]), strict=True
        ):
            p.grad = grad
        optimiser.step()


def sac() -> None:
    agent = Sac(obs=5, act=2, batch=20, hidden=(12, 9))
    alpha = agent.log_alpha.exp().item()
    mean, log_std = agent.policy(agent.x)
    next_action, next_log_prob = sample(*agent.policy(agent.x2), agent.noise2, agent.guard)
    losses = {
        "q": agent.critic_loss(alpha),
        "pi": agent.actor_loss(alpha),
        "alpha": agent.alpha_loss(),
    }
    grads: dict[int, Tensor] = {}
    for name, loss in losses.items():
        got = torch.autograd.grad(loss, agent.leaves[name], retain_graph=True)
        grads |= {id(p): g for p, g in zip(agent.leaves[name], got, strict=True)}
    q = agent.values(agent.q, agent.x, agent.a)
    out = agent.named() | agent.named("grad_", lambda p: grads.get(id(p)))
    out |= {
        "obs": agent.x,
        "act": agent.a,
        "reward": agent.reward,
        "next_obs": agent.x2,
        "done": agent.done,
        "noise": agent.noise,
        "noise_next": agent.noise2,
        "mean": mean,
        "log_std": log_std,
        "next_action": next_action,
        "next_log_prob": next_log_prob,
        "q0": q[0, :, None],
        "q1": q[1, :, None],
        "target_q64": agent.bellman(alpha)[:, None],
        "log_prob64_exact": sample(mean, log_std, agent.noise, 0.0)[1],
        "grad_log_alpha": grads[id(agent.log_alpha)],
    }
    rounded = list(out)
    out["alpha_gamma_tau_target_entropy"] = [alpha, agent.gamma, agent.tau, agent.entropy]
    out |= dict(zip(("critic_loss", "actor_loss", "alpha_loss"), losses.values(), strict=True))
    write("sac_sb3", out, rounded)
    after: Arrays = {"lr": agent.lr}
    agent.descend("alpha", losses["alpha"])
    agent.descend("q", agent.critic_loss(alpha))
    after["actor_loss_at_step"] = agent.actor_loss(alpha)
    agent.descend("pi", agent.actor_loss(alpha))
    with torch.no_grad():
        for online, target in zip(agent.q, agent.target, strict=True):
            for pair, lagging in zip(online, target, strict=True):
                for p, t in zip(pair, lagging, strict=True):
                    t.lerp_(p, agent.tau)
    after |= agent.named("after_") | {"after_log_alpha": agent.log_alpha}
    write("sac_sb3_step", after, ["after_"])


def sac_distribution(batch: int, act: int) -> None:
    mean, raw, noise = (RNG.normal(size=(batch, act)) for _ in range(3))
    raw[: batch // 4, 0] = 2.5  # above the upper clamp
    raw[batch // 4 : batch // 2, 1] = -19.5  # near the lower clamp
    m, s, e = (torch.from_numpy(v) for v in (mean, raw.clip(-20, 2), noise))
    action, exact = sample(m, s, e, 0.0)
    out = {"mean": m, "log_std_raw": raw, "noise": e, "action": action, "log_prob64_exact": exact}
    write("sac_sb3_dist", out)
