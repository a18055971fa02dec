"""The command that writes the numbers of the paper's labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paper.handbook import labels


def test_the_numbers_of_a_source_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, source = tmp_path / "labels.json", tmp_path / "source.tex"
    monkeypatch.setattr(labels, "FILE", made)
    source.write_text(r"\section{A}\label{a}\section{B}\label{b}")
    labels.main([str(source)])
    assert json.loads(made.read_text()) == {"a": "1", "b": "2"}
    with pytest.raises(SystemExit) as stop:
        labels.main([str(tmp_path / "none.tex")])
    assert stop.value.code == 2
