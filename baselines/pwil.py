"""Primal Wasserstein Imitation Learning, PWIL (Dadashi et al., 2021).

A step of an episode of T steps spends a mass of 1/T on the expert's N atoms, which hold 1/N each:
all that is left of the nearest one, then of the next nearest, until it is spent. With take_j the
mass that step t takes of atom j, and d its inputs' width:

    c_t = sum_j take_j |x_t - e_j|        reward r_t = alpha exp(-beta T / sqrt(d) c_t)

x_t and e_j are standardised by the atoms' own mean and std. sum_t c_t is the cost of a transport
plan between episode and demonstrations, so that it bounds their Wasserstein-1 distance from above.
T cancels: the exponent is beta times the matched distance over sqrt(d). Nothing is learned; the
masses are back at 1/N when the episode ends.

Reward: alpha exp(-sigma c_t), sigma = beta T / sqrt(d), formed when the step is taken and stored;
it depends on the episode so far. High is expert-like.
Range: [0, 5]; 5, alpha, on an atom with mass left. It pays for staying alive where episodes can end
early.
Deviations: sigma has the width of the atoms in every input mode; the original has that of
observation and action even where it compares observations alone. T is the env's time limit; the
original has 1000 throughout, and in episodes of 100 steps would match a tenth of the mass. Features
that are constant up to float32's precision are divided by one, not only those that are so exactly.
A step for which too little mass is left earns 0, as in Acme; the original fails there. The agent is
the suite's SAC, not D4PG. The replay is not filled with expert transitions first: the original does
so, but the paper gives all methods one backbone, and its authors' own code does not either.
Sources: Dadashi, Hussenot, Geist & Pietquin, "Primal Wasserstein Imitation Learning", ICLR 2021;
google-research/google-research (pwil), google-deepmind/acme, lionelblonde/ngt.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ngt.reward import Batch, RewardModel, Spec, opt

SLACK = 1e-6  # a step spends this much less than 1/T: rounding must not use up the atoms early

# A std under this, of the largest magnitude or of 1, is no spread. float32 numbers lie up to 1.2e-7
# of their size apart, so that 1e-6 is what rounding alone gives; 1e-6 of 1 is Acme's threshold. A
# feature so divided would make any deviation of the agent's a million stds, and the reward 0.
CONSTANT = 1e-6


@dataclass(frozen=True)
class PwilConfig:
    """PWIL. Values: the original's, in its paper's notation."""

    alpha: float = opt(5.0, "largest reward", 0)
    beta: float = opt(5.0, "how fast the reward falls with the cost", 0)


def couple(distance: Tensor, mass: Tensor, spend: float) -> tuple[Tensor, Tensor, Tensor]:
    """Spend mass on atoms, nearest first: cost (...,), mass that was spent (...,), mass left.

    distance, mass (..., N). The loop over atoms in closed form: in order of distance, an atom gives
    what its forerunners left to be spent, at most its own mass. Of equidistant ones the first goes
    first. A full sort, since a step may reach any number of atoms: a good imitator leaves a speck
    of mass on each one that it passes, and where it goes back, a step reaches 80 of 200.

    Sums run from the first atom to the last, so that what pads a run's atoms in a pack, without
    mass, does not move their rounding.
    """
    near, order = distance.sort(dim=-1, stable=True)
    held = mass.gather(-1, order)
    before = F.pad(held.cumsum(dim=-1)[..., :-1], (1, 0))
    take = (spend - before).clamp(min=0.0).minimum(held)  # a used-up atom's is exactly its mass
    left = torch.empty_like(mass).scatter_(-1, order, held - take)
    cost, spent = (part.cumsum(dim=-1)[..., -1] for part in (take * near, take))
    return cost, spent, left


class Pwil(RewardModel):
    """The atoms of R runs and what is left of them in every env: the `observe` seam.

    mass (R, n, N) is state. Atoms that pad a run's set to the largest of the pack have none.
    """

    Config = PwilConfig
    config: PwilConfig
    learns = False
    atoms: Tensor  # (R, N, d), standardised
    full: Tensor  # (R, 1, N), an episode's first masses
    mean: Tensor  # (R, 1, d)
    scale: Tensor  # (R, 1, d)
    mass: Tensor

    def __init__(self, config: PwilConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        assert spec.demos is not None
        raw, size = self.inputs(spec.demos.data), spec.demos.size
        row = torch.arange(raw.shape[1], device=raw.device)
        full = ((row < size) / size.double())[:, None]
        x = raw.double()
        mean = full @ x
        std = (full @ (x - mean).square()).sqrt()
        magnitude = x.abs().amax(dim=1, keepdim=True).clamp(min=1.0)
        scale = torch.where(std > CONSTANT * magnitude, std, 1.0)
        for name, value in {"mean": mean, "scale": scale, "full": full}.items():
            self.register_buffer(name, value.to(raw.dtype), persistent=False)
        self.register_buffer("atoms", self.standardise(raw), persistent=False)
        self.register_buffer("mass", self.full.repeat(1, spec.num_envs, 1))
        self.spend = 1.0 / spec.time_limit - SLACK
        self.sigma = config.beta * spec.time_limit / spec.input**0.5

    def standardise(self, x: Tensor) -> Tensor:
        """x (R, B, d) in the atoms' stds; a step equal to an atom stays equal to the last bit."""
        return (x - self.mean) / self.scale

    @torch.no_grad()
    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        """Reward of each env's step, (R, n); its masses move on, or back to the start if done."""
        x = self.standardise(self.inputs(transition))
        # |x|^2 - 2 x e + |e|^2 is cheaper, but in float32 a match would miss alpha by up to 0.4 %.
        distance = torch.linalg.vector_norm(x[:, :, None] - self.atoms[:, None], dim=-1)
        cost, spent, left = couple(distance, self.mass, self.spend)
        self.mass.copy_(torch.where(done[..., None], self.full, left))
        reward = self.config.alpha * torch.exp(-self.sigma * cost)
        return torch.where(spent > 0.999 * self.spend, reward, 0.0)

    def reward(self, batch: Batch) -> Tensor:
        """What was stored."""
        return batch.reward
