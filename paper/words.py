"""Values as readers see them."""

import math
import re
from collections.abc import Iterable


def show(value: str | float | None, number: str = "{:.2f}") -> str:
    """Return a value for readers: an en dash if there is none, and a real minus sign."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return value
    text = number.format(value) if isinstance(value, float) else str(value)
    return re.sub(r"^-", "−", text)


def listed(values: Iterable[object]) -> str:
    """Return the values as `a, b and c`, each once."""
    *most, last = list(dict.fromkeys(map(str, values))) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def yes_or_no(value: bool) -> str:
    """Return a truth value in words."""
    return "yes" if value else "no"
