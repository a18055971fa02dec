"""Functions that check whether LaTeX is installed, and typeset a document with it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic

TOOL = "pdflatex"
INSTALL = "on Debian: apt-get install texlive-latex-recommended texlive-fonts-recommended"
ROUNDS = 6  # maximum number of LaTeX runs until references and widths settle; usually two or three

# With these, LaTeX writes the same bytes each time.
HEAD = r"\pdfinfoomitdate=1\pdftrailerid{}\pdfsuppressptexinfo=-1\input{main.tex}"
EPOCH = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}


def lacking() -> str:
    """Return a line that says how to install LaTeX, or an empty text if it is installed."""
    return "" if shutil.which(TOOL) else f"{TOOL} is not installed; {INSTALL}"


def build(folder: Path, log: Path) -> Path:
    """Typeset main.tex in a folder until its references settle, and return the PDF's path.

    Raise UserError if LaTeX is missing or reports an error. In the latter case, write LaTeX's log
    to the file `log`.
    """
    if reason := lacking():
        raise UserError(reason)
    before = None
    for _ in range(ROUNDS):
        _run(folder, log)
        after = (folder / "main.aux").read_bytes()  # holds references, table of contents, widths
        if after == before:
            return folder / "main.pdf"
        before = after
    raise _failed(f"! Page numbers still move after {ROUNDS} runs.\n{_log(folder)}", log)


def _run(folder: Path, log: Path) -> None:
    options = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "-jobname=main")
    done = subprocess.run(
        [TOOL, *options, HEAD],
        cwd=folder,
        env=os.environ | EPOCH,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    if done.returncode:
        raise _failed(_log(folder) or (done.stdout + done.stderr).decode(errors="replace"), log)


def _log(folder: Path) -> str:
    file = folder / "main.log"
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
