"""The envs that the paper lists and those of its authors' code, and which one is our reading."""

from __future__ import annotations

# Observation and action dimensions: in the paper's "Main Environments", and of the envs that the
# authors' code makes. Hopper is among theirs, and in no table of the paper.
PAPER_SIZES = {
    "Ant-v4": (111, 8),
    "HalfCheetah-v4": (17, 6),
    "Pusher-v4": (23, 7),
    "Walker2d-v4": (17, 6),
    "Humanoid-v4": (376, 17),
}
CODE_SIZES = PAPER_SIZES | {"Ant-v4": (27, 8), "Hopper-v4": (11, 3)}

# The grid of the main figure. The paper gives the number of its runs, 720, without its make-up.
SIXTH = "Hopper-v4"  # shown beside the five envs that the paper lists, and not judged
SIXTH_SAID = (
    f"The sixth env, {SIXTH}, is our accounting of the paper's 720 runs (10 methods × 6 envs × 3 "
    f"numbers of demonstrations × 4 seeds): the paper lists five envs, and {SIXTH} is among those "
    f"of its authors' code. 12 × 5 × 3 × 4 would fit too."
)
