"""Random numbers that tests of nets and losses share."""

import torch


def rows(*shape: int, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    """Return normal random numbers of a shape; the same seed gives the same numbers."""
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
