"""Soft Q imitation learning, SQIL (Reddy et al., 2020).

SAC with a constant reward for each origin. Half of the agent's batch is its own, half the expert's:

    reward = 1 on expert transitions, 0 on the agent's

The loss of each critic is thus 1/4 E_expert[(Q - 1 - y)^2] + 1/4 E_agent[(Q - y)^2], with y the
discounted soft value of what follows. The agent is drawn back to what the demonstrations show,
since all else is worth nothing. Nothing is learned but the agent.

Reward: 1 or 0 by the transition's origin, not by what it holds; high is the expert's.
Range: {0, 1}. It never punishes, so it rewards staying alive if episodes can end early.
Deviations: batches are drawn with replacement. The temperature is learned, as for every method
here. The weight of the agent's side is 1 (lambda of the paper), and training is not stopped early.
Traps: as the agent becomes like the expert, its own transitions fill the buffer with reward 0 for
the same behaviour, and the reward fades. The authors stop once the squared Bellman error has
converged. A public implementation reports 1400 on HalfCheetah, of the expert's 3400, after 300 000
steps with SAC.
Sources: Reddy, Dragan & Levine, "SQIL: Imitation Learning via Reinforcement Learning with Sparse
Rewards", ICLR 2020; HumanCompatibleAI/imitation, pull request 778; google-deepmind/acme (sqil);
robfiras/ls-iq.
"""

import torch
from torch import Tensor

from ngt.reward import Batch, NoParams, RewardModel, half_each


class Sqil(RewardModel):
    """A method that only says what the agent learns from."""

    Config = NoParams
    learns = False

    def feed(self, agent: Batch, expert: Batch) -> Batch:
        return half_each(
            agent._replace(reward=torch.zeros_like(agent.terminated)),
            expert._replace(reward=torch.ones_like(expert.terminated)),
        )

    def reward(self, batch: Batch) -> Tensor:
        """Return the rewards that `feed` gave."""
        return batch.reward
