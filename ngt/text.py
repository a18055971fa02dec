"""Text output, and checks of the names and labels that a user chooses."""

import io
import itertools
import re
import sys
from collections.abc import Iterable

from ngt.errors import UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
LONGEST = 100  # maximum number of characters in a label

# Characters outside ASCII that the figures' font and the paper's LaTeX can both typeset.
LETTERS = frozenset(map(chr, range(0xC0, 0x17F))) - set("ĦħĸĿŀŉŦŧ")
GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
SIGNS = "−±×≤≥≈→∞√·∈ℓ∇∂≪“”‘’†–—…°²³⁷"
ASCII = frozenset(map(chr, range(0x20, 0x7F))) - {"~"}  # "~" is a no-break space in figures' notes
SETTABLE = ASCII | LETTERS | set(GREEK) | set(SIGNS)


def show_any_text() -> None:
    """Print a character's code, instead of failing, if the terminal lacks the character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a line and flush it, so that it appears immediately, even in a pipe."""
    print(text, flush=True)


def announce(text: str) -> None:
    """Print what a command begins to do, on stderr, since stdout is for results."""
    print(text, file=sys.stderr, flush=True)


def amount(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 run" or "2 runs"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last numbers of each block of consecutive numbers in a sorted list."""
    blocks = itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    members = ([int(number) for _, number in block] for _, block in blocks)
    return [(block[0], block[-1]) for block in members]


def check_name(name: str, where: str) -> None:
    """Check that a name can be used as a folder name, in commands and in file patterns."""
    if not NAME.fullmatch(name):
        raise UserError(
            f"{where}: {name!r} cannot name a folder; use at most 100 characters out of a-z, A-Z, "
            f"0-9, '.', '_', '+' and '-', and begin with a letter or a digit"
        )


def check_label(label: str, where: str) -> None:
    """Check that figures, tables and pages can all show a label."""
    if fault := label_fault(label):
        raise UserError(f"{where}: {label!r} {fault}")


def label_fault(label: str) -> str:
    """Return why a label cannot be shown and how to fix it, or an empty string if it is fine."""
    if len(label) > LONGEST:
        return f"has {len(label)} characters; use at most {LONGEST}"
    if odd := "".join(dict.fromkeys(c for c in label if c not in SETTABLE)):
        return f"contains {odd!r}, which figures or LaTeX cannot typeset; use other characters"
    if label != label.strip():
        return "begins or ends with a space; remove it"
    if r"\$" in label or label.count("$") % 2:
        return "has an unpaired dollar sign; enclose mathematics in two of them, as in $x_1$"
    return ""
