r"""The numbers that the paper's LaTeX source gives to theorems, equations, figures and sections.

`python -m paper.handbook.labels FILE.tex` writes these numbers to labels.json, next to this file.
The suite's texts refer to a theorem by its label, for example "Th. hlip"; `cite` adds the number.
"""

import json
import re
import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("labels.json")

# The word before each kind of label in the suite's texts, and the prefix of such labels in LaTeX.
MARKS = {"Fig.": "fig:", "Th.": "th:", "Lemma": "lem:", "Table": "tab:", "Eq.": "", "Sec.": ""}

TOKEN = re.compile(
    r"""
    \\(?P<section>(?:sub)*section)\{ | \\(?P<appendix>appendix)\b
    | \\begin\{(?P<begin>[a-z]+\*?)\} | \\end\{(?P<end>[a-z]+\*?)\}
    | \\(?P<caption>caption)\b | \\label\{(?P<label>[^}]+)\}
    | \\(?P<silent>notag|nonumber)\b | (?P<row>\\\\)
    """,
    re.VERBOSE,
)
THEOREM = re.compile(r"\\newtheorem\{(\w+)\}(?:\[(\w+)\])?")
FLOATS = ("figure", "table", "algorithm")
EQUATIONS = ("equation", "align")
LEVELS = ("section", "subsection", "subsubsection")


class _Counters:
    """LaTeX's counters for an article."""

    def __init__(self, theorems: Mapping[str, str]) -> None:
        """Start all counters at zero.

        theorems: the name of the counter for each kind of theorem. A new section resets them.
        """
        self.theorems = theorems
        self.count: dict[str, int] = {}
        self.appendix = False

    def step(self, name: str) -> int:
        """Raise a counter by one and return it."""
        self.count[name] = self.count.get(name, 0) + 1
        return self.count[name]

    def top(self) -> str:
        """Return the number of the current section or, in the appendix, its letter."""
        number = self.count.get("section", 0)
        return string.ascii_uppercase[number - 1] if self.appendix else str(number)

    def section(self, kind: str) -> str:
        """Begin a section whose kind is in LEVELS, and return its number."""
        self.step(kind)
        level = LEVELS.index(kind)
        below = LEVELS[level + 1 :] + tuple(self.theorems.values()) * (level == 0)
        self.count |= dict.fromkeys(below, 0)
        return ".".join([self.top(), *(str(self.count[name]) for name in LEVELS[1 : level + 1])])

    def theorem(self, name: str) -> str:
        """Begin a theorem and return its number."""
        return f"{self.top()}.{self.step(self.theorems[name])}"

    def next_equation(self) -> str:
        """Return the number of the equation that follows."""
        return str(self.count.get("equation", 0) + 1)


def numbers(tex: str) -> dict[str, str]:
    """Return the number of each label in the source of an article."""
    tex = re.sub(r"(?<!\\)%.*", "", tex)
    counters = _Counters({name: shared or name for name, shared in THEOREM.findall(tex)})
    found: dict[str, str] = {}
    outer: list[tuple[str, str]] = []  # open environments, and the number in force before each
    current, silent = "", False
    for match in TOKEN.finditer(tex):
        kind, name = str(match.lastgroup), match[str(match.lastgroup)].rstrip("*")
        if kind == "section":
            current = counters.section(name)
        elif kind == "appendix":
            counters.appendix = True
            counters.count["section"] = 0
        elif kind == "begin":
            outer.append((name, current))
            if name in counters.theorems:
                current = counters.theorem(name)
            elif name in EQUATIONS:
                current, silent = counters.next_equation(), False
        elif kind == "end":
            if name in EQUATIONS and not silent:
                counters.step("equation")
            _, current = outer.pop()
        elif kind == "caption":
            floating = [one for one, _ in outer if one in FLOATS]
            current = str(counters.step(floating[-1])) if floating else current
        elif kind == "silent":
            silent = True
        elif kind == "row" and outer and outer[-1][0] == "align":
            if not silent:
                counters.step("equation")
            current, silent = counters.next_equation(), False
        elif kind == "label":
            found[match[kind]] = current
    return found


@cache
def _labels() -> Mapping[str, str]:
    labels: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))
    return labels


def cite(text: str) -> str:
    """Return a text with the paper's numbers: "Th. hlip" becomes "Th. 4.1 (hlip)"."""

    def numbered(match: re.Match[str]) -> str:
        number = _labels().get(MARKS[match[1]] + match[2])
        return f"{match[1]} {number} ({match[2]})" if number else match[0]

    words = "|".join(map(re.escape, MARKS))
    return re.sub(rf"({words}) ([\w-]+)", numbered, text)
