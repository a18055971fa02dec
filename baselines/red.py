"""RED*: Random Expert Distillation (Wang et al., 2019) with NGT's nets and reward numerics.

RED* is NGT, except that the loss has no term for agent transitions. h(x) is the pairing loss
between a predictor and a frozen random prior. The predictor is trained on expert transitions alone:

    loss   = E_expert[h]
    reward = exp(-h), then scaled by batch percentiles

Reward: (r - P5) / (P95 - P5) with r = exp(-h), where P5 and P95 are the 5th and 95th percentiles of
r in the batch. It is high for transitions like the expert's.
Range: r lies in (0, 1]. The scaled reward lies mostly in [0, 1] and is not clipped.
Deviations: as in the NGT paper, the predictor takes one step per iteration for as long as the agent
learns, instead of being fitted for 200 epochs beforehand. Both nets have NGT's architecture and
spectral norm; in RED, the predictor is shallower than the prior. The pairing loss is NGT's, so on
Humanoid it is HL-Gauss, whose minimum is above zero. Scaling by percentiles only partly replaces
RED's temperature, which is tuned per env from 250 to 250 000. For small h, exp(-h) is close to the
straight line 1 - h. Scaling by percentiles keeps the shape of the rewards' distribution, so nearly
all rewards of a batch end up near 1. The `rescale` setting multiplies the nets' outputs and thus
acts as a temperature.
Sources: Wang et al., Random Expert Distillation, ICML 2019; RuohanW/RED; lionelblonde/ngt.
"""

from torch import Tensor

from ngt.errors import UserError
from ngt.potential import Potential, PotentialConfig
from ngt.reward import Batch, Spec


class Red(Potential):
    """The predictors and the priors of R runs. The predictors are trained on the expert alone."""

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
