"""Inverse soft-Q learning, IQ-Learn (Garg et al., 2021).

The critic holds the reward. Its loss raises the implied reward r on expert transitions, and lowers
what the policy earns by it. A chi-square regulariser keeps it small on both sides:

    V(s)  = min Q(s, a) - alpha log pi(a|s),   a ~ pi(.|s)
    r     = Q(s, a) - gamma (1 - terminated) V'(s')
    loss  = -E_expert[r] + E_both[V(s) - gamma (1 - terminated) V'(s')] + 1/(4 chi2) E_both[r^2]

V' takes the target critics. With `objective: v0` the second term is (1 - gamma) E_expert[V(s)]:
every state of the expert counts as a start. The actor and the temperature learn as in SAC, at the
states of both sides. With two critics, the loss is the mean of theirs.

Reward: implied by the critic: r; high is expert-like. It is logged, and never bootstrapped.
Range: any real number. At the optimum r is 4 chi2 (d_expert - d_agent) / (d_expert + d_agent), with
d the densities of the two sides, so it lies in [-2, 2]. A transition that terminates has V'(s') =
0, so the sign of the values decides whether ending pays.
Deviations: the batch is one half the agent's, one half the expert's, and `train.batch` is both
halves together, 512, so that each side has the original's 256. One update is made every four env
steps, as for every method here, where the original makes one every step. The weights' start, the
actor's clipping and the bounds of its std are the suite's. Expert transitions are drawn with
replacement. The public code's further divergences and its gradient penalty are left out.
Traps: from the threads of the public code. Learning the temperature keeps it from converging,
unless the target entropy is far below -|A| (four times, in its code): here the temperature is
fixed, at the scripts' values. The regulariser must cover both sides: on the expert's alone the
critic diverges. Two critics with their minimum diverge in cases where one does not, and the scripts
use one: so does this entry. A user who could not reach the printed returns from one demonstration
reported 3500 on Walker2d.
Sources: Garg et al., "IQ-Learn: Inverse soft-Q Learning for Imitation", NeurIPS 2021;
Div99/IQ-Learn, with its issues 2, 5, 11, 13 and 17; lionelblonde/ngt.
"""

from dataclasses import dataclass

from torch import Tensor

from baselines.inverse import Inverse, InverseConfig, averaged
from ngt.agent.sac import Sac
from ngt.reward import Batch


@dataclass(frozen=True)
class IqConfig(InverseConfig):
    """Settings of IQ-Learn. Values are the public code's."""


class IqLearn(Inverse):
    """The method of R runs; it has no parameters of its own."""

    Config = IqConfig
    config: IqConfig

    def critic_loss(self, agent: Sac, batch: Batch, noise: Tensor) -> Tensor:
        """Return minus the regularised dual objective, (R,)."""
        values = self.values(agent, batch, noise, self.config.target)
        reward = values.q - self.spec.gamma * values.after[:, None]
        self.log(values, reward.mean(dim=1))
        _, expert = values.sides(reward)
        policy = self.policy_term(values, self.config.objective)
        regulariser = averaged(reward.square()) / (4.0 * self.config.chi2)
        return policy - averaged(expert) + regulariser
