"""Common parts of the inverse soft-Q methods: a critic that holds the reward.

A soft critic says which reward it is optimal for: r = Q(s, a) - gamma V(s'). These methods
therefore learn no reward and bootstrap none. Their `critic_loss` raises the implied reward on
expert transitions and holds it down elsewhere. The agent's batch is half the agent's transitions
and half the expert's, as in the public code of each, and the actor learns at both sides' states.
The critic sees (s, a), whatever the input mode.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from torch import Tensor

from ngt.agent.sac import Sac
from ngt.errors import UserError
from ngt.reward import Batch, Draw, RewardModel, Spec, half_each, opt

Objective = Literal["value", "value_expert", "v0"]


@dataclass(frozen=True)
class InverseConfig:
    """Settings of a method whose critic holds the reward."""

    objective: Objective = opt(
        "value",
        "policy's term: V(s) - gamma V(s') at both sides or the expert's; or (1 - gamma) V(s)",
    )
    chi2: float = opt(0.5, "weight of the regulariser is 1 over 4 times this", 1e-8)
    target: bool = opt(True, "V(s') by the target critics; otherwise by the critics, with gradient")


class Values(NamedTuple):
    """What a critic says of a batch: agent's rows first, then the expert's."""

    q: Tensor  # Q(s, a) by each critic, (R, Q, B)
    v: Tensor  # V(s), (R, B)
    after: Tensor  # V(s'), (R, B), unless the transition terminated, then 0

    def sides(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the agent's and the expert's rows of x (R, ..., B)."""
        own = self.v.shape[1] // 2
        return x[..., :own], x[..., own:]


class Inverse(RewardModel):
    """A method whose critic holds the reward; subclasses define `critic_loss`."""

    learns = False  # but for the critic

    def __init__(self, config: Any, spec: Spec) -> None:
        super().__init__(config, spec)
        if spec.batch < 2:
            raise UserError(f"train.batch: found {spec.batch}, half of it is the expert's; use 2")

    def draws(self) -> dict[str, Draw]:
        return {"value_noise": Draw("normal", (self.spec.batch, self.spec.act))}

    def feed(self, agent: Batch, expert: Batch) -> Batch:
        return half_each(agent, expert)

    def values(self, agent: Sac, batch: Batch, noise: Tensor, target: bool = True) -> Values:
        """Return the critic's values of a batch; noise: for actions at s', (R, B, act)."""
        after = agent.soft_value(batch.next_obs, noise, target)
        return Values(
            agent.critic(batch.obs, batch.action),
            agent.soft_value(batch.obs, self.noise["value_noise"]),
            (1.0 - batch.terminated) * after,
        )

    def policy_term(self, values: Values, objective: Objective) -> Tensor:
        """Return what the policy earns by the implied reward, (R,)."""
        if objective == "v0":
            return (1.0 - self.spec.gamma) * values.sides(values.v)[1].mean(dim=1)
        gain = values.v - self.spec.gamma * values.after
        return (gain if objective == "value" else values.sides(gain)[1]).mean(dim=1)

    def log(self, values: Values, reward: Tensor) -> None:
        """Log the implied reward (R, B) of each side."""
        agent, expert = values.sides(reward.detach())
        both = {"reward": reward.detach(), "reward_agent": agent, "reward_expert": expert}
        self.metrics |= {name: x.mean(dim=1) for name, x in both.items()}


def averaged(losses: Tensor) -> Tensor:
    """Return the mean over critics and rows, (R,), of losses (R, Q, B)."""
    return losses.mean(dim=(1, 2))
