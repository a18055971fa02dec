"""The envs in the paper's list and in its authors' code, and the sixth env, which we inferred."""

from __future__ import annotations

# Observation and action dimensions in the paper's "Main Environments" and in the authors' code.
# The authors' code has Hopper, but no table of the paper lists it.
PAPER_SIZES = {
    "Ant-v4": (111, 8),
    "HalfCheetah-v4": (17, 6),
    "Pusher-v4": (23, 7),
    "Walker2d-v4": (17, 6),
    "Humanoid-v4": (376, 17),
}
CODE_SIZES = PAPER_SIZES | {"Ant-v4": (27, 8), "Hopper-v4": (11, 3)}

# The grid of the main figure. The paper gives the number of its runs, 720, without a breakdown.
SIXTH = "Hopper-v4"  # shown next to the five envs that the paper lists, but not judged
SIXTH_SAID = (
    f"The sixth env, {SIXTH}, is our way to account for the paper's 720 runs (10 methods × 6 envs "
    f"× 3 numbers of demonstrations × 4 seeds). The paper lists five envs; its authors' code also "
    f"has {SIXTH}. 12 methods on five envs would also give 720 runs."
)
