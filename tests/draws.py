"""Random numbers for tests of nets and losses."""

import torch


def rows(*shape: int, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    """Return normal random numbers in the given shape; the same seed gives the same numbers."""
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
