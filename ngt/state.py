"""The saved states from which a run resumes: one for each part of the training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor


class Ring(NamedTuple):
    """The newest items of a growing sequence. They are rows of a table, in any order."""

    table: Tensor
    order: Tensor  # each item's row in the table, from the oldest to the newest item; on the CPU
    total: int  # number of items ever stored, including overwritten ones

    def items(self, first: int = 0) -> Tensor:
        """Return a CPU copy of the items, oldest first, without the `first` oldest ones."""
        return self.table.index_select(0, self.order[first:].to(self.table.device)).cpu()


@dataclass(frozen=True)
class State:
    """One run's state in one part of training. `a | b` has the entries of the states a and b."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)  # values that JSON can hold
    rings: Mapping[str, Ring] = field(default_factory=dict)

    def __or__(self, other: State) -> State:
        return State(
            {**self.tensors, **other.tensors},
            {**self.data, **other.data},
            {**self.rings, **other.rings},
        )


def slice_of(tensor: Tensor, run: int) -> Tensor:
    """Return a CPU copy of one run's part, (1, ...), of a tensor (R, ...) for R runs."""
    return tensor[run : run + 1].detach().to("cpu", copy=True).contiguous()
