"""LaTeX, where it is installed: whether it is, and a document built with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic

TOOL = "pdflatex"
INSTALL = "on Debian: apt-get install texlive-latex-recommended texlive-fonts-recommended"
ROUNDS = 6  # the most until references and widths settle; two or three do

# The same bytes each time.
HEAD = r"\pdfinfoomitdate=1\pdftrailerid{}\pdfsuppressptexinfo=-1\input{main.tex}"
EPOCH = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}


def lacking() -> str:
    """What is not installed and how to install it, in one line; empty where it is there."""
    return "" if shutil.which(TOOL) else f"{TOOL} is not installed; {INSTALL}"


def build(folder: Path, log: Path) -> Path:
    """Typeset main.tex of a folder until nothing in it moves: its PDF.

    Errors: no LaTeX, or its first complaint, are a UserError; LaTeX's own log is then kept as
    `log`.
    """
    if lack := lacking():
        raise UserError(lack)
    # latexmk would take two versions of a file as one, if written within a second and as long.
    options = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "-jobname=main")
    before: list[bytes] = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [TOOL, *options, HEAD],
            cwd=folder,
            env=os.environ | EPOCH,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
        )
        if done.returncode:
            own = folder / "main.log"
            raise _failed(
                own.read_text(encoding="utf-8", errors="replace") if own.exists() else done.stdout,
                log,
            )
        files = (folder / f"main.{ending}" for ending in ("aux", "toc", "out"))
        after = [file.read_bytes() for file in files if file.exists()]
        if after == before:
            return folder / "main.pdf"
        before = after
    text = (folder / "main.log").read_text(encoding="utf-8", errors="replace")
    raise _failed(f"! Page numbers still move after {ROUNDS} runs.\n{text}", log)


def _failed(text: str, log: Path) -> UserError:
    """The error, once the log is kept."""
    with atomic(log) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return UserError(f"LaTeX: {complaint(text)}; its log: {log}")


def complaint(log: str) -> str:
    """The first error in a log, with its line where that is said."""
    found = re.search(r"^! *(.+?)$(?:.*?^(l\.\d+))?", log, re.MULTILINE | re.DOTALL)
    if found is None:
        return "it failed and its log has no error"
    text = f"{found[1].strip().rstrip('.')}" + (f" ({found[2]})" if found[2] else "")
    return f"{text}; {INSTALL}" if re.search(r"File `.*' not found", text) else text
