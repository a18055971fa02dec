"""The reward of each method of the suite as a formula in LaTeX, for the PDF."""

from collections.abc import Mapping
from typing import Any

SCALED = r"$r'(x)$ of Equation~\eqref{reward}"

# The formula of each class. If the setting `form` chooses among several, they are in its order.
FORMULAS: dict[str, str | Mapping[str, str]] = {
    "ngt.potential:Potential": SCALED,
    "ngt.reward:Constant": "a constant",
    "baselines.bc:Bc": "none, since the policy is fitted itself",
    "baselines.dac:Dac": {
        "logit": r"$z(x)$, the logit of the discriminator $D = 1/(1 + e^{-z})$; any real number",
        "softplus": r"$-\log(1 - D(x)) = \log(1 + e^{z(x)})$; never negative",
        "forward_kl": r"$-z(x)\, e^{z(x)}$",
    },
    "baselines.diffail:DiffAil": {
        "logit": r"$\log D'(x) - \log(1 - D'(x))$, where $D'$ is the mean of $e^{-e_t^2}$ over"
        r" the diffusion steps $t$ and the dimensions of the error $e_t$",
        "softplus": r"$-\log(1 - D'(x))$, where $D'$ is the mean of $e^{-e_t^2}$ over the"
        r" diffusion steps $t$ and the dimensions of the error $e_t$",
    },
    "baselines.iq:IqLearn": r"none; the critic implies $Q(s, a) - \gamma V(s')$",
    "baselines.lsiq:LsIq": r"none; the critic implies $Q(s, a) - \gamma V(s')$",
    "baselines.p2il:P2il": "none; the critic implies one",
    "baselines.mmd:MmdDac": r"$\mathbb{E}_{e}[k(D(x), D(e))] - \mathbb{E}_{a}[k(D(x), D(a))]$ over"
    " expert transitions $e$ and agent transitions $a$",
    "baselines.pwil:Pwil": r"$\alpha \exp(-\beta T c_t / \sqrt{d})$, where $c_t$ is the cost of"
    " transporting step $t$ to the atoms of the demonstrations",
    "baselines.red:Red": SCALED,
    "baselines.red_original:RedOriginal": r"$\exp(-\tau \|f(x) - f^{\dagger}(x)\|^2 / k)$ with"
    r" temperature $\tau$ and $k$ outputs",
    "baselines.sqil:Sqil": "one if the expert took the transition, and zero if the agent did",
    "baselines.wdac:Wdac": r"$D(x)$, the critic's value; any real number",
}


def formula(path: str, params: Mapping[str, Any]) -> str:
    """Return the reward of a method as LaTeX, or "" for a class that is not one of the suite's.

    path: the method's class, as `module:name`.
    params: the settings of this class.
    """
    found = FORMULAS.get(path, "")
    return found if isinstance(found, str) else found[params["form"]]
