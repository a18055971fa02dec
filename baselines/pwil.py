"""Primal Wasserstein Imitation Learning, PWIL (Dadashi et al., 2021).

The N expert transitions are atoms, each with an initial mass of 1/N. An episode has T steps, and
each step takes a mass of 1/T from the atoms. The step takes the mass left on the nearest atom, then
the mass left on the next nearest atom, and so on, until it has taken 1/T. Let x_t be the input at
step t, e_j the j-th atom, take_j the mass that step t takes from e_j, and d the number of
dimensions of an input:

    c_t = sum_j take_j |x_t - e_j|        reward r_t = alpha exp(-beta T / sqrt(d) c_t)

x_t and e_j are standardised by the atoms' mean and std. sum_t c_t is the cost of a transport plan
between the episode and the demonstrations, so it is an upper bound on the Wasserstein-1 distance
between the two. Since the masses that a step takes sum to 1/T, T cancels in the
exponent: the exponent is -beta / sqrt(d) times the mean distance to the mass that the step takes.
Nothing is learned, and the masses are reset to 1/N when an episode ends.

Reward: alpha exp(-sigma c_t) with sigma = beta T / sqrt(d). The reward is computed and stored when
the step is taken, and it depends on the episode's earlier steps. It is high for transitions like
the expert's.
Range: [0, 5]. The reward is alpha = 5 if the input equals an atom that still has a mass of at least
1/T. Since the reward is never negative, it rewards staying alive if episodes can end early.
Deviations: in every input mode, d in sigma is the number of dimensions of an atom. In the original,
d counts the dimensions of observation and action, even if only observations are compared. T is the
env's time limit. The original always uses T = 1000, so an episode of 100 steps would take only a
tenth of the mass. Features that are constant up to float32's precision are not scaled; the original
leaves only exactly constant features unscaled. If too little mass is left for a step, the step's
reward is 0, as in Acme; the original fails in this case. The agent is the suite's SAC, not D4PG.
The original first fills the replay buffer with 50 000 expert transitions of reward alpha. This code
fills the buffer with expert transitions only if `prefill` is set, because all methods in the NGT
paper share the same agent and buffer. The NGT authors' public code does not fill the buffer either.
As in the original, these expert transitions lead from each atom to the next, which is `rate` steps
later in the demonstration, and from the last atom to the first.
Traps: with few demonstrations, a buffer that is filled in this way repeats each transition hundreds
of times. The critic also learns from jumps between states that the env never makes.
Sources: Dadashi, Hussenot, Geist & Pietquin, "Primal Wasserstein Imitation Learning", ICLR 2021;
google-research/google-research (pwil), google-deepmind/acme, lionelblonde/ngt.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ngt.reward import Batch, RewardModel, Spec, opt

SLACK = 1e-6  # subtracted from 1/T, so that rounding does not use up the atoms too early

# A feature counts as constant if its std is below this fraction of its largest magnitude, or of 1
# if this is larger. The relative spacing of float32 numbers is up to 1.2e-7, so rounding alone
# gives a fraction of up to 1e-6. Acme, in contrast, compares the std itself with 1e-6. If a feature
# were divided by a std that is only rounding error, any deviation of the agent would amount to a
# million stds, so the reward would be 0.
CONSTANT = 1e-6


@dataclass(frozen=True)
class PwilConfig:
    """Settings of PWIL. Names and defaults are from the PWIL paper."""

    alpha: float = opt(5.0, "largest reward", 0)
    beta: float = opt(5.0, "rate at which the reward falls with the cost", 0)
    prefill: int = opt(0, "expert transitions in the initial buffer; 50000 in the original", 0)


def couple(distance: Tensor, mass: Tensor, spend: float) -> tuple[Tensor, Tensor, Tensor]:
    """Take mass from the nearest atoms. Return the cost, the mass taken and the mass left.

    The cost and the mass taken have shape (...,). The mass left has the shape of `mass`.

    distance: distance from the input to each atom, shape (..., N).
    mass: mass on each atom before the step, shape (..., N).
    spend: the mass that the step should take.

    This is PWIL's loop over atoms in closed form. In order of distance, each atom gives the mass
    that the step still needs, but at most its own mass. If atoms are equidistant, the atom with the
    lowest index gives first. All atoms are sorted, since a step may use any number of them. A good
    imitator leaves a little mass on each atom that it passes. If the imitator returns to these
    atoms, one step may use 80 of 200 atoms.

    Sums are computed one term after another. When several runs train together, the smaller sets of
    atoms are padded with atoms of mass 0. Such atoms do not change how a sequential sum is rounded.
    """
    near, order = distance.sort(dim=-1, stable=True)
    held = mass.gather(-1, order)
    before = F.pad(held.cumsum(dim=-1)[..., :-1], (1, 0))
    take = (spend - before).clamp(min=0.0).minimum(held)  # exactly `held` if an atom is used up
    left = torch.empty_like(mass).scatter_(-1, order, held - take)
    cost, spent = (part.cumsum(dim=-1)[..., -1] for part in (take * near, take))
    return cost, spent, left


class Pwil(RewardModel):
    """The atoms of R runs, and the mass left on each atom in each env.

    `mass` has shape (R, n, N) for n envs and is part of a run's state. If a run has fewer atoms
    than another run, its set of atoms is padded with atoms of mass 0, which come last. Rewards are
    computed in `observe`.
    """

    Config = PwilConfig
    config: PwilConfig
    learns = False
    padded = ("mass",)
    atoms: Tensor  # (R, N, d), standardised
    full: Tensor  # (R, 1, N), the masses at the start of an episode
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
        """Return (x - mean) / std, shape (R, B, d).

        If x is an expert transition, the result is exactly the transition's atom.
        """
        return (x - self.mean) / self.scale

    @torch.no_grad()
    def observe(self, transition: Batch, done: Tensor) -> Tensor:
        """Return the rewards, shape (R, n), and update the masses.

        The masses of envs whose episode has ended are reset.
        """
        x = self.standardise(self.inputs(transition))
        # |x|^2 - 2 x e + |e|^2 would be cheaper to compute. In float32, however, the reward of an
        # input that equals an atom would then differ from alpha by up to 0.4 %.
        distance = torch.linalg.vector_norm(x[:, :, None] - self.atoms[:, None], dim=-1)
        cost, spent, left = couple(distance, self.mass, self.spend)
        self.mass.copy_(torch.where(done[..., None], self.full, left))
        reward = self.config.alpha * torch.exp(-self.sigma * cost)
        return torch.where(spent > 0.999 * self.spend, reward, 0.0)

    @classmethod
    def prefilled(cls, config: PwilConfig) -> int:
        return config.prefill

    def prefill(self) -> Batch | None:
        """Return expert transitions for the initial buffer, or None if `prefill` is 0.

        The transitions repeat the atoms in order.
        """
        if not self.config.prefill:
            return None
        assert self.spec.demos is not None
        data, size, envs = self.spec.demos.data, self.spec.demos.size, self.spec.num_envs
        steps = torch.arange(-(-self.config.prefill // envs), device=size.device)
        atom = steps.repeat_interleave(envs) % size
        run = torch.arange(len(size), device=size.device)[:, None]
        obs, none = data.obs[run, atom], torch.zeros_like(data.terminated[run, atom])
        following = data.obs[run, (atom + 1) % size]
        return Batch(obs, data.action[run, atom], following, none + self.config.alpha, none)

    def reward(self, batch: Batch) -> Tensor:
        """Return the stored rewards that `observe` computed."""
        return batch.reward
