"""Behavioural cloning (Pomerleau, 1989), in the form of the NGT authors' public code.

The policy is fitted to expert pairs (s, a) alone, without stepping an env:

    loss = E_expert[|a_theta(s) - a|^2] / |A|

|A| is the number of action dimensions. a_theta(s) is a reparameterised sample of the tanh-Gaussian
policy, so training shrinks the policy's std to its lower bound. Each training step is one gradient
step of the actor's optimiser.

Reward: none.
Range: none.
Deviations: the learning rate is that of the SAC actor and observations are raw, as for every method
here. The NGT authors' code uses a learning rate of 1e-4 and normalises observations by running
statistics. A likelihood loss would be fragile: a deterministic SAC expert saturates the tanh, and
atanh(+-1) is infinite.
Sources: Pomerleau, "ALVINN: An Autonomous Land Vehicle in a Neural Network", NeurIPS 1988;
lionelblonde/ngt.
"""

from torch import Tensor

from ngt.agent.optim import descend
from ngt.agent.sac import Actor, Sac, squashed_gaussian
from ngt.reward import Batch, Draw, NoParams, RewardModel


class Bc(RewardModel):
    """Behavioural cloning, which overrides `fit` and has no reward."""

    Config = NoParams
    offline = True

    def draws(self) -> dict[str, Draw]:
        return {"bc_noise": Draw("normal", (self.spec.batch, self.spec.act))}

    def imitation_loss(self, actor: Actor, expert: Batch) -> Tensor:
        """Return the mean squared error between sampled and expert actions, shape (R,)."""
        mean, log_std = actor(expert.obs)
        action, _ = squashed_gaussian(mean, log_std, self.noise["bc_noise"])
        return (action - expert.action).square().mean(dim=(1, 2))

    def fit(self, agent: Sac, expert: Batch) -> None:
        loss = self.imitation_loss(agent.actor, expert)
        descend(agent.optimisers["actor"], loss)
        self.metrics["bc_loss"] = loss.detach()
