"""Write the numbers of the labels in the paper's LaTeX source to labels.json.

python -m paper.handbook.labels FILE.tex
"""

import json
from collections.abc import Sequence
from pathlib import Path

from ngt.settings.options import Parser
from paper.command import one_line_errors
from paper.source import FILE, numbers


def main(argv: Sequence[str] | None = None) -> None:
    """Write the label numbers of the LaTeX file that the arguments name."""
    about = "Write the numbers of the labels in the paper's LaTeX source to labels.json."
    parser = Parser(prog="python -m paper.handbook.labels", description=about)
    parser.add_argument("file", type=Path, metavar="FILE.tex", help="the paper's LaTeX source")

    def run() -> None:
        source = parser.parse_args(argv).file.read_text(encoding="utf-8")
        FILE.write_text(json.dumps(numbers(source), indent=1) + "\n", encoding="utf-8")

    one_line_errors("labels", run)


if __name__ == "__main__":
    main()
