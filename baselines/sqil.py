"""Soft Q imitation learning, SQIL (Reddy et al., 2020).

SQIL is SAC with one constant reward for expert transitions and another for agent transitions. Each
batch that the agent learns from consists of expert transitions and agent transitions in equal
parts:

    reward = 1 on expert transitions, 0 on agent transitions

The loss of each critic is thus 1/4 E_expert[(Q - 1 - y)^2] + 1/4 E_agent[(Q - y)^2], with y the
discounted soft value of the next state. The agent is drawn back to the demonstrated states, since
all other states have no reward. Only the agent learns.

Reward: 1 for a transition of the expert, 0 for a transition of the agent, whatever its state and
action.
Range: {0, 1}. Since the reward is never negative, it rewards staying alive if episodes can end
early.
Deviations: batches are drawn with replacement. The temperature is learned, as for every method
here. The weight of the agent's transitions in the loss, lambda in SQIL's paper, is 1. Training is
not stopped early.
Traps: once the agent behaves like the expert, its transitions fill the buffer with reward 0 for the
same behaviour, and the reward fades. The authors stop training once the squared Bellman error has
converged. A public implementation with SAC reports a return of 1400 on HalfCheetah after 300 000
steps, where the expert's return is 3400.
Sources: Reddy, Dragan & Levine, "SQIL: Imitation Learning via Reinforcement Learning with Sparse
Rewards", ICLR 2020; HumanCompatibleAI/imitation, pull request 778; google-deepmind/acme (sqil);
robfiras/ls-iq. The tests do not run the SQIL of `imitation` 1.0.1, since it needs gymnasium 0.29;
they compare the loss with the formula in float64.
"""

import torch
from torch import Tensor

from ngt.reward import Batch, NoParams, RewardModel, half_each


class Sqil(RewardModel):
    """SQIL for R runs, which only chooses the agent's batches and their rewards."""

    Config = NoParams
    learns = False

    def feed(self, agent: Batch, expert: Batch) -> Batch:
        return half_each(
            agent._replace(reward=torch.zeros_like(agent.terminated)),
            expert._replace(reward=torch.ones_like(expert.terminated)),
        )

    def reward(self, batch: Batch) -> Tensor:
        """Return the rewards that `feed` set."""
        return batch.reward
