"""Checks: the single conditions whose results together decide on a claim."""

import math
from typing import NamedTuple


class Check(NamedTuple):
    """One condition of a claim: its name, the value that was found, and by how much it holds.

    margin: the distance of the value from the threshold: positive if the check holds, negative if
    the check fails, NaN if the result is unknown. If the value has an interval, the distance is
    that of the interval's end that is closest to failing.
    lean: the distance of the value without its interval, or None if the value has no interval.
    """

    name: str
    text: str
    margin: float
    strict: bool = False  # True if the check fails at a margin of exactly 0
    lean: float | None = None

    @property
    def holds(self) -> bool | None:
        """Return True if the check holds, False if it fails, or None if this is unknown."""
        return self._passes(self.margin)

    @property
    def leans(self) -> bool | None:
        """Return True, False or None as `holds` does, but for the value without its interval."""
        return self._passes(self.margin if self.lean is None else self.lean)

    def _passes(self, margin: float) -> bool | None:
        if math.isnan(margin):
            return None
        return margin > 0 if self.strict else margin >= 0
