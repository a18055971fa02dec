"""Functions that write values as text for readers."""

import math
import re
from collections.abc import Iterable

# What to call runs without results, for each value of the config's `records`.
ABSENT = {"trained": "missing", "published": "not published"}


def show(value: str | float | None, number: str = "{:.2f}") -> str:
    """Return a value as text with a true minus sign, or an en dash for a missing value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    text = number.format(value) if isinstance(value, float) else str(value)
    return re.sub(r"^-", "−", text)


def listed(values: Iterable[object]) -> str:
    """Return the distinct values as text such as `a, b and c`."""
    *most, last = list(dict.fromkeys(map(str, values))) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def yes_or_no(value: bool) -> str:
    """Return "yes" or "no"."""
    return "yes" if value else "no"
