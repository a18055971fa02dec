"""The reference returns of normalised scores: a random policy has score 0, the expert score 1.

`run.json` stores the reference as `reference`, with these fields:

- random, expert: mean return of each policy
- random_error, expert_error: standard error of each mean, if the mean is over several episodes
- demos: checksum of the demonstrations from which both means come
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ngt.experience.demos import Demos

ERRORS = 2.0  # number of standard errors by which the expert must exceed the random policy


def reference_of(demos: Demos) -> dict[str, Any]:
    """Return the reference to store in run.json for a run with these demonstrations."""
    return {**references(demos.random_returns, demos.returns), "demos": demos.checksum}


def references(random: NDArray[np.float64], expert: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean of the random policy's returns and the mean of the expert's returns.

    Also return the standard error of each mean over several episodes.
    """
    out = {"random": float(random.mean()), "expert": float(expert.mean())}
    for name, returns in (("random", random), ("expert", expert)):
        if len(returns) > 1:
            out[f"{name}_error"] = float(returns.std(ddof=1) / math.sqrt(len(returns)))
    return out


def unscored(reference: Mapping[str, float]) -> str:
    """Return why this reference cannot normalise returns, or an empty string if it can.

    A missing standard error counts as 0.
    """
    random, expert = reference["random"], reference["expert"]
    error = math.hypot(reference.get("random_error", 0.0), reference.get("expert_error", 0.0))
    if expert > random and expert - random >= ERRORS * error:
        return ""
    near = f"less than {ERRORS:g} standard errors of the difference ({error:.4g}) above"
    far = near if expert > random else "not above"
    return f"the expert's mean return, {expert:.6g}, is {far} the random policy's, {random:.6g}"
