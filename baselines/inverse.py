"""Common parts of the inverse soft-Q methods, whose critic implies the reward.

Any soft critic Q is the optimal one for some reward, the implied reward r = Q(s, a) - gamma V(s').
These methods therefore neither learn nor bootstrap a separate reward. Their `critic_loss` raises
the implied reward on expert transitions and limits this reward on all transitions. The batch from
which the critic and the actor learn is half agent transitions and half expert transitions, as in
each method's public code. The critic's input is (s, a) in every input mode.
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
    """Settings of a method whose critic implies the reward."""

    objective: Objective = opt(
        "value",
        "the policy's term in the loss: with value, V(s) - gamma V(s') over agent and expert rows; "
        "with value_expert, the same over expert rows; with v0, (1 - gamma) V(s) over expert rows",
    )
    chi2: float = opt(0.5, "chi2 in the regulariser's weight 1 / (4 chi2)", 1e-8)
    target: bool = opt(
        True, "take V(s') from the target critics; if false, from the critics, with gradients"
    )


class Values(NamedTuple):
    """A critic's values of a batch that holds the agent's rows first, then the expert's rows."""

    q: Tensor  # Q(s, a) of each critic, (R, Q, B)
    v: Tensor  # V(s), (R, B)
    after: Tensor  # V(s'), (R, B); 0 if the transition terminated

    def sides(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Split x (R, ..., B) into the agent's rows and the expert's rows."""
        own = self.v.shape[1] // 2
        return x[..., :own], x[..., own:]


class Inverse(RewardModel):
    """A method whose critic implies the reward; subclasses define `critic_loss`."""

    learns = False  # only the critic learns

    def __init__(self, config: Any, spec: Spec) -> None:
        super().__init__(config, spec)
        if spec.batch < 2:
            raise UserError(
                f"train.batch: found {spec.batch}, but half of the batch is the expert's; use at "
                f"least 2"
            )

    def draws(self) -> dict[str, Draw]:
        return {"value_noise": Draw("normal", (self.spec.batch, self.spec.act))}

    def feed(self, agent: Batch, expert: Batch) -> Batch:
        return half_each(agent, expert)

    def values(self, agent: Sac, batch: Batch, noise: Tensor, target: bool = True) -> Values:
        """Return the critic's values of a batch; noise (R, B, act) samples the actions at s'."""
        after = agent.soft_value(batch.next_obs, noise, target)
        return Values(
            agent.critic(batch.obs, batch.action),
            agent.soft_value(batch.obs, self.noise["value_noise"]),
            (1.0 - batch.terminated) * after,
        )

    def policy_term(self, values: Values, objective: Objective) -> Tensor:
        """Return the policy's return under the implied reward, in the form `objective`, (R,)."""
        if objective == "v0":
            return (1.0 - self.spec.gamma) * values.sides(values.v)[1].mean(dim=1)
        gain = values.v - self.spec.gamma * values.after
        return (gain if objective == "value" else values.sides(gain)[1]).mean(dim=1)

    def log(self, values: Values, reward: Tensor) -> None:
        """Log the mean implied reward, (R, B), of all rows, of agent rows and of expert rows."""
        agent, expert = values.sides(reward.detach())
        both = {"reward": reward.detach(), "reward_agent": agent, "reward_expert": expert}
        self.metrics |= {name: x.mean(dim=1) for name, x in both.items()}


def averaged(losses: Tensor) -> Tensor:
    """Return the mean of losses (R, Q, B) over critics and rows, shape (R,)."""
    return losses.mean(dim=(1, 2))
