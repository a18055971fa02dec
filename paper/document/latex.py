"""Functions that check whether LaTeX is installed, and typeset a document with it."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic

TOOL, BIBLIOGRAPHY = "pdflatex", "bibtex"
INSTALL = "on Debian: apt-get install texlive-latex-recommended texlive-fonts-recommended"
ROUNDS = 6  # maximum number of LaTeX runs until references and widths settle; usually two or three

# With OPTIONS, HEAD and EPOCH, LaTeX writes the same bytes each time.
OPTIONS = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "-jobname=main")
HEAD = r"\pdfinfoomitdate=1\pdftrailerid{}\pdfsuppressptexinfo=-1\input{main.tex}"
EPOCH = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}


def lacking() -> str:
    """Return a line that says how to install LaTeX, or an empty text if it is installed."""
    absent = [tool for tool in (TOOL, BIBLIOGRAPHY) if not shutil.which(tool)]
    return f"{absent[0]} is not installed; {INSTALL}" if absent else ""


def build(folder: Path, log: Path) -> Path:
    """Typeset main.tex in a folder until its references settle, and return the PDF's path.

    If the document has a bibliography, BibTeX makes it from the works that the text cites.

    Raise UserError if LaTeX is missing or reports an error. In the latter case, write LaTeX's log
    to the file `log`.
    """
    if reason := lacking():
        raise UserError(reason)
    before = None
    for _ in range(ROUNDS):
        _run([TOOL, *OPTIONS, HEAD], folder, folder / "main.log", log)
        after = (folder / "main.aux").read_bytes()  # holds references, table of contents, widths
        if after == before:
            return folder / "main.pdf"
        if before is None and b"\\bibdata" in after:
            _run([BIBLIOGRAPHY, "main"], folder, folder / "main.blg", log)
        before = after
    moved = f"! Page numbers still move after {ROUNDS} runs.\n"
    raise _failed(moved + _read(folder / "main.log"), log)


def _run(command: Sequence[str], folder: Path, record: Path, log: Path) -> None:
    """Run a tool in a folder. If it fails, raise UserError and keep the record of its work."""
    done = subprocess.run(
        command, cwd=folder, env=os.environ | EPOCH, stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode:
        raise _failed(_read(record) or (done.stdout + done.stderr).decode(errors="replace"), log)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _failed(text: str, log: Path) -> UserError:
    """Write LaTeX's output `text` to the file `log`, and return an error that names this file."""
    with atomic(log) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return UserError(f"LaTeX: {complaint(text)}; its log: {log}")


def complaint(log: str) -> str:
    """Return the first error in a LaTeX log, with its line number if the log gives one."""
    found = re.search(r"^! *(.+?)$(?:.*?^(l\.\d+))?", log, re.MULTILINE | re.DOTALL)
    if found is None:
        return "it failed, but its log has no error"
    text = f"{found[1].strip().rstrip('.')}" + (f" ({found[2]})" if found[2] else "")
    return f"{text}; {INSTALL}" if re.search(r"File `.*' not found", text) else text
