"""Inverse soft-Q learning, IQ-Learn (Garg et al., 2021).

The critic implies a reward r. The critic's loss raises r on expert transitions, and lowers the
policy's return under r. A chi-square regulariser keeps r small on expert and agent transitions.
E_both is the mean over both kinds of transitions:

    V(s)  = min Q(s, a) - alpha log pi(a|s),   a ~ pi(.|s)
    r     = Q(s, a) - gamma (1 - terminated) V'(s')
    loss  = -E_expert[r] + E_both[V(s) - gamma (1 - terminated) V'(s')] + 1/(4 chi2) E_both[r^2]

V' is V computed with the target critics. With `objective: v0` the loss's second term is (1 - gamma)
E_expert[V(s)], so every expert state counts as an initial state. The actor, and the temperature
unless it is fixed, learn as in SAC, at the states of expert and agent. With two critics, each
critic has this loss, and the mean of the two losses is minimised.

Reward: r, which the critic implies. It is high for transitions like the expert's. It is logged, but
never bootstrapped.
Range: any real number. At the optimum r is 4 chi2 (d_expert - d_agent) / (d_expert + d_agent),
where d_expert and d_agent are the densities of expert and agent transitions, so r lies in [-2, 2]
for chi2 = 0.5. After a termination the value is 0, so the sign of the other values decides whether
ending an episode pays.
Deviations: half of the batch comes from the agent, half from the expert. `train.batch`, the size of
both halves together, is 512, so that each half has 256 rows, as in the original. The agent updates
once every four env steps, as for every method here; the original updates at every step. The initial
weights, the clipping of the actor's gradient and the bounds of the actor's std are the same as for
the other methods of this suite. Expert transitions are drawn with replacement. The public code's
other divergences and its gradient penalty are omitted.
Traps: the issues of the public code's repository report the following. Training does not converge
if the temperature is learned, unless the target entropy is far below -|A| (that code uses -4 |A|).
This suite therefore fixes the temperature at the values in the public scripts. On Pendulum-v1,
however, runs of 30 000 steps learn with a learned temperature and higher rates (docs/learning.md).
The regulariser must cover expert and agent transitions; with expert transitions alone, the critic
diverges. In some cases, training diverges with the minimum of two critics but not with a single
critic. The public scripts use one critic, and so does this suite. One user could not reach the
published returns with one demonstration and reported a return of 3500 on Walker2d.
Sources: Garg et al., "IQ-Learn: Inverse soft-Q Learning for Imitation", NeurIPS 2021;
Div99/IQ-Learn, with its issues 2, 5, 11, 13 and 17; lionelblonde/ngt. The public code has
no installable package, so the tests compare the loss with the formula in float64.
"""

from dataclasses import dataclass

from torch import Tensor

from baselines.inverse import Inverse, InverseConfig, averaged
from ngt.agent.sac import Sac
from ngt.reward import Batch


@dataclass(frozen=True)
class IqConfig(InverseConfig):
    """Settings of IQ-Learn. Defaults are from the public code."""


class IqLearn(Inverse):
    """IQ-Learn for R runs. Only the agent has learned parameters."""

    Config = IqConfig
    config: IqConfig

    def critic_loss(self, agent: Sac, batch: Batch, noise: Tensor) -> Tensor:
        """Return the loss in the module's docstring, shape (R,)."""
        values = self.values(agent, batch, noise, self.config.target)
        reward = values.q - self.spec.gamma * values.after[:, None]
        self.log(values, reward.mean(dim=1))
        _, expert = values.sides(reward)
        policy = self.policy_term(values, self.config.objective)
        regulariser = averaged(reward.square()) / (4.0 * self.config.chi2)
        return policy - averaged(expert) + regulariser
