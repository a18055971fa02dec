"""RED*: Random Expert Distillation (Wang et al., 2019) with NGT's nets and reward numerics.

RED* is NGT without the term of NGT's loss for agent transitions. h(x) is the pairing loss between a
predictor and a frozen random prior, and the predictor is trained on expert transitions alone:

    loss   = E_expert[h]
    reward = exp(-h), then scaled by batch percentiles

Reward: (r - P5) / (P95 - P5), r = exp(-h), with the 5th and 95th percentiles P5 and P95 of r in the
batch; high is expert-like.
Range: r lies in (0, 1]. The scaled reward lies mostly in [0, 1] and is not clipped.
Deviations: As in the NGT paper, the predictor takes one step per iteration for as long as the agent
learns, instead of being fitted for 200 epochs beforehand. Both nets have NGT's architecture and
spectral norm; in RED, the predictor is shallower than the prior. The pairing loss is that of NGT.
On Humanoid, the pairing loss is HL-Gauss, whose minimum is above zero. Scaling by percentiles only
partly replaces RED's temperature, which is tuned per env from 250 to 250 000. For small h, exp(-h)
is close to the straight line 1 - h. Scaling by percentiles keeps the shape of the rewards'
distribution, so nearly all rewards of a batch end up near 1. The setting `rescale` multiplies the
nets' outputs and thus acts as a temperature.
Sources: Wang et al., Random Expert Distillation, ICML 2019; RuohanW/RED; lionelblonde/ngt.
"""

from torch import Tensor

from ngt.errors import UserError
from ngt.potential import Potential, PotentialConfig
from ngt.reward import Batch, Spec


class Red(Potential):
    """The predictor and prior of R runs, fitted to the expert alone."""

    def __init__(self, config: PotentialConfig, spec: Spec) -> None:
        if config.penalty:
            raise UserError(
                f"params.penalty: found {config.penalty}, but RED has no agent side for a "
                f"gradient penalty; use 0"
            )
        super().__init__(config, spec)

    def loss(self, agent: Batch, expert: Batch) -> Tensor:
        """Return E_expert[h], shape (R,)."""
        h_expert = self.potential(self.inputs(expert), "expert").mean(dim=1)
        self.metrics["h_expert"] = h_expert.detach()
        return h_expert
