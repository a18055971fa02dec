"""Proximal point imitation learning, P2IL (Viano et al., 2022).

In this primal-dual method, a reward net r and a critic Q descend the same loss. The logistic
Bellman error replaces the squared Bellman error. The gradient of the logistic error weights the
Bellman errors of a batch by their softmax:

    V(s)  = min Q(s, a) - alpha log pi(a|s),   a ~ pi(.|s)
    y     = gamma (1 - terminated) V(s')
    w     = softmax(tau (r + y - Q)) over the expert's batch, without gradient
    loss  = -E_expert[r] + sum w (r + y - Q) + E_expert[V(s) - y] + 1/(4 chi2) E_both[r^2 + Q^2]

E_both is the mean over the batches of expert and agent. With `online`, w and the sum are over the
agent's batch instead of the expert's. The setting `objective` selects the third term of the loss,
as in IQ-Learn. V(s') comes from the critic itself, with gradient, unless `target` is set; then it
comes from the target critic. The actor learns as in SAC, at the states of expert and agent.

Reward: the net r(s, a), which is high for transitions like the expert's. The agent never uses this
reward, since the critic learns from the loss above. With `online` off and a small tau, the weights
w are nearly equal. The terms in r then cancel, so r has almost no gradient, and only the critic
distinguishes expert from agent. The logged reward is the one that the critic implies, Q - y.
Range: any real number. The regulariser pulls r and Q to 0.
Deviations: the reward net and the critic take one step per update. The original takes 20 steps on
each batch, each step with new actions. Here a higher `train.updates_per_step` gives more steps, but
each of these steps includes a step of the actor. Half of the batch of 512 comes from the agent,
half from the expert. The agent updates once every four env steps, not at every env step. There is
one reward net; the original has two and takes the smaller of their outputs.
Traps: the public commands for MuJoCo turn `online` off, so the agent's transitions affect only the
regulariser and the actor. The commands use 10 whole demonstrations. They set tau to 0.08 on
HalfCheetah and 1 elsewhere, use no target critics, and choose the objective `value_expert`. With
these settings and equal weights w, V(s') cancels as well, and E_expert[V(s) - Q(s, a)] and the
regulariser remain. The critic then learns nothing about what an action leads to; it only prefers
the expert's actions, as behavioural cloning does.
Sources: Viano et al., "Proximal Point Imitation Learning", NeurIPS 2022; lviano/P2IL (deep_PPIL);
lionelblonde/ngt. The public code has no installable package, so the tests compare the loss with the
formula in float64.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.inverse import Inverse, InverseConfig, Objective
from ngt.agent.nets import PackedMLP
from ngt.agent.sac import Sac
from ngt.agent.streams import torch_generator
from ngt.reward import Batch, Spec, opt


@dataclass(frozen=True)
class P2ilConfig(InverseConfig):
    """Settings of P2IL. Defaults are from the public code."""

    objective: Objective = opt("value_expert", "form of the policy's term, as in IQ-Learn")
    target: bool = opt(
        False, "take V(s') from the target critics; if false, from the critics, with gradient"
    )
    hidden: tuple[int, ...] = opt((256, 256), "widths of the reward net", 1)
    lr: float = opt(3e-4, "Adam's learning rate for the reward net", 0)
    tau: float = opt(1.0, "inverse temperature of the weights", 0)
    online: bool = opt(False, "weight the agent's errors instead of the expert's")


class P2il(Inverse):
    """The reward nets of R runs."""

    Config = P2ilConfig
    config: P2ilConfig

    def __init__(self, config: P2ilConfig, spec: Spec) -> None:
        super().__init__(config, spec)
        generators = [torch_generator(seed, "init", "net") for seed in spec.seeds]
        self.net = PackedMLP([spec.obs + spec.act, *config.hidden, 1], generators)
        self.learn_with(config.lr)

    def critic_loss(self, agent: Sac, batch: Batch, noise: Tensor) -> Tensor:
        """Return the joint loss of the critic and the reward net, shape (R,)."""
        c = self.config
        values = self.values(agent, batch, noise, c.target)
        q = values.q.min(dim=1).values
        reward: Tensor = self.net(torch.cat([batch.obs, batch.action], dim=-1)).squeeze(-1)
        self.log(values, q - self.spec.gamma * values.after)
        error = values.sides(reward + self.spec.gamma * values.after - q)[0 if c.online else 1]
        weight = torch.softmax(c.tau * error.detach(), dim=1)
        policy = self.policy_term(values, c.objective)
        regulariser = (reward.square() + q.square()).mean(dim=1) / (4.0 * c.chi2)
        of_expert = values.sides(reward)[1].mean(dim=1)
        return (weight * error).sum(dim=1) - of_expert + policy + regulariser
