"""The sizes of the envs in the paper and in its authors' code."""

from __future__ import annotations

import re
from pathlib import Path

from paper.claims.envs import CODE_SIZES, PAPER_SIZES

ROOT = Path(__file__).resolve().parents[3]


def test_sizes() -> None:
    assert len(PAPER_SIZES) == 5 and "Hopper-v4" not in PAPER_SIZES
    assert {e for e in PAPER_SIZES if CODE_SIZES[e] != PAPER_SIZES[e]} == {"Ant-v4"}


def test_the_split_of_the_papers_runs_is_called_ours_wherever_it_stands() -> None:
    """Check each file that gives the paper's 720 runs, and that the known ones are among them."""
    files = [ROOT / "README.md"]
    for folder, kind in (("docs", "md"), ("workflow/config", "yaml"), ("paper", "py")):
        files += sorted((ROOT / folder).rglob(f"*.{kind}"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    found = {file.name for file, text in texts.items() if re.search(r"\b720\b(?![ .,]?\d)", text)}
    assert {"artefacts.md", "methods.md", "base.yaml", "envs.py"} <= found
    for file, text in texts.items():
        words = " ".join(text.replace("#", " ").split())
        if file.name in found:
            assert re.search(r"our (accounting|way to account)", words), file
