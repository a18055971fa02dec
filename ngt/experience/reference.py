"""The reference of normalised scores: a random policy's mean return is 0, the expert's is 1.

`run.json` records it as `reference`: random, expert, and demos, the checksum of the demonstrations
that both come from. A policy with several episodes also has the standard error of its mean,
random_error or expert_error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ngt.experience.demos import Demos

ERRORS = 2.0  # the expert must be this many standard errors above random


def reference_of(demos: Demos) -> dict[str, Any]:
    """Return the reference that a run on these demonstrations records."""
    return {**references(demos.random_returns, demos.returns), "demos": demos.checksum}


def references(random: NDArray[np.float64], expert: NDArray[np.float64]) -> dict[str, float]:
    """Return both policies' mean returns, with standard errors if there are several episodes."""
    out = {"random": float(random.mean()), "expert": float(expert.mean())}
    for name, returns in (("random", random), ("expert", expert)):
        if len(returns) > 1:
            out[f"{name}_error"] = float(returns.std(ddof=1) / math.sqrt(len(returns)))
    return out


def unscored(reference: Mapping[str, float]) -> str:
    """Return why no return can be normalised by this reference; empty if returns can be.

    A standard error that is not recorded counts as 0.
    """
    random, expert = reference["random"], reference["expert"]
    error = math.hypot(reference.get("random_error", 0.0), reference.get("expert_error", 0.0))
    if expert > random and expert - random >= ERRORS * error:
        return ""
    near = f"less than {ERRORS:g} standard errors of the difference ({error:.4g}) above"
    far = near if expert > random else "not above"
    return f"the expert's mean return, {expert:.6g}, is {far} the random policy's, {random:.6g}"
