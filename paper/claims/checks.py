"""Checks, i.e. the conditions whose results together decide on a claim."""

import math
from typing import NamedTuple


class Check(NamedTuple):
    """A condition of a claim: its name, a text with the value found, and by how much it holds.

    margin: the distance from the threshold: positive if the check holds, negative if the check
    fails, NaN if the result is unknown. The distance is measured from the value or, if the value
    has an interval, from the end of the interval that is closer to failing.
    lean: the distance measured from the value itself, or None if the value has no interval.
    """

    name: str
    text: str
    margin: float
    strict: bool = False  # True if the check fails at a margin of exactly 0
    lean: float | None = None

    @property
    def holds(self) -> bool | None:
        """Return True if the check holds, False if it fails, or None if the result is unknown."""
        return self._passes(self.margin)

    @property
    def leans(self) -> bool | None:
        """Return what `holds` would return for the value without its interval."""
        return self._passes(self.margin if self.lean is None else self.lean)

    def _passes(self, margin: float) -> bool | None:
        if math.isnan(margin):
            return None
        return margin > 0 if self.strict else margin >= 0
