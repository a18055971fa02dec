"""What a resumed run needs to know: the state of each part of a training, one run at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor


class Ring(NamedTuple):
    """The newest items of a sequence that grows and forgets: rows of a table, wherever they lie."""

    table: Tensor
    order: Tensor  # where the items lie, oldest first; on the CPU
    total: int  # how many items there ever were

    def items(self, first: int = 0) -> Tensor:
        """Copy the items to the CPU, from the `first` of those in the ring on."""
        return self.table.index_select(0, self.order[first:].to(self.table.device)).cpu()


@dataclass(frozen=True)
class State:
    """One run's state in one part of a training. `a | b` holds the names of both."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)  # what JSON can hold
    rings: Mapping[str, Ring] = field(default_factory=dict)

    def __or__(self, other: State) -> State:
        return State(
            {**self.tensors, **other.tensors},
            {**self.data, **other.data},
            {**self.rings, **other.rings},
        )


def slice_of(tensor: Tensor, run: int) -> Tensor:
    """Copy one run's part of a packed tensor, contiguous, to the CPU."""
    return tensor[run : run + 1].detach().to("cpu", copy=True).contiguous()
