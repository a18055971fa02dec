"""LaTeX, where it is installed: whether it is, and a document built with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic

TOOLS = ("latexmk", "pdflatex")
INSTALL = "on Debian: apt-get install latexmk texlive-latex-recommended texlive-fonts-recommended"

# The same bytes each time.
HEAD = r"\pdfinfoomitdate=1\pdftrailerid{}\pdfsuppressptexinfo=-1"
EPOCH = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}


def lacking() -> str:
    """What is not installed and how to install it, in one line; empty where all is there."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"{' and '.join(absent)}: not installed; {INSTALL}" if absent else ""


def build(folder: Path, log: Path) -> Path:
    """Typeset main.tex of a folder: its PDF.

    Errors: no LaTeX, or its first complaint, are a UserError; LaTeX's own log is then kept as
    `log`.
    """
    if lack := lacking():
        raise UserError(lack)
    command = [
        "latexmk", "-norc", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "-silent",
        f"-usepretex={HEAD}", "main.tex",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, env=os.environ | EPOCH, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    if done.returncode == 0:
        return folder / "main.pdf"
    own = folder / "main.log"
    text = own.read_text(errors="replace") if own.exists() else done.stdout
    with atomic(log) as temporary:
        temporary.write_text(text)
    raise UserError(f"LaTeX: {complaint(text)}; its log: {log}")


def complaint(log: str) -> str:
    """The first error in a log, with the line of main.tex where that is said."""
    found = re.search(r"^! *(.+?)$(?:.*?^(l\.\d+))?", log, re.MULTILINE | re.DOTALL)
    if found is None:
        return "it failed and its log has no error"
    text = f"{found[1].strip().rstrip('.')}" + (f" ({found[2]})" if found[2] else "")
    return f"{text}; {INSTALL}" if re.search(r"File `.*' not found", text) else text
