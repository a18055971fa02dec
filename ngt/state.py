"""The saved states from which a run resumes, one for each part of training, such as the buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor


class Ring(NamedTuple):
    """The newest items of a growing sequence, stored as rows of a table in any order."""

    table: Tensor
    order: Tensor  # row of each item in the table, from the oldest item to the newest; on the CPU
    total: int  # number of items ever stored, including overwritten ones

    def items(self, first: int = 0) -> Tensor:
        """Return a CPU copy of the items in the table, without the `first` oldest ones."""
        return self.table.index_select(0, self.order[first:].to(self.table.device)).cpu()


@dataclass(frozen=True)
class State:
    """The state of one run in one part of training. `a | b` has the entries of states a and b."""

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
    """Return one run's part, (1, ...), of a tensor (R, ...) of R runs, as a CPU copy."""
    return tensor[run : run + 1].detach().to("cpu", copy=True).contiguous()
