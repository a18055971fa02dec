"""Functions that format values as text for readers."""

import math
import re
from collections.abc import Iterable

# The word for runs without results, for each value of the `records` setting.
ABSENT = {"trained": "missing", "published": "not published"}


def show(value: str | float | None, number: str = "{:.2f}") -> str:
    """Format a value with a true minus sign, or as an en dash if the value is missing.

    A negative value that is rounded to zero has no sign.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    text = number.format(value) if isinstance(value, float) else str(value)
    return re.sub(r"^-", "−" if re.search("[1-9]|inf", text) else "", text)


def listed(values: Iterable[object]) -> str:
    """List the distinct values in a text such as `a, b and c`."""
    *most, last = list(dict.fromkeys(map(str, values))) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def yes_or_no(value: bool) -> str:
    """Return "yes" or "no"."""
    return "yes" if value else "no"
