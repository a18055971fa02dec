"""Sizes of the embedding, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.errors import UserError
from paper import ablation_embedding
from paper.drawing import style

Make = Callable[..., Any]
NAME = "ablation_embedding"


def test_sizes_are_in_order_the_larger_the_darker(
    paper_study: Make, fill: Make, drawn: Make
) -> None:
    study = paper_study(NAME, seeds=[0], methods=["ngt-m64", "ngt-m8", "ngt-m16"])
    fill(study)
    seen = drawn(study, NAME)
    assert seen.legend[:4] == [f"NGT (m = {m})" for m in (8, 16, 32, 64)]
    colors = [line.get_color() for line in seen.strong(0)]
    assert colors == [look.color for look in reversed(style.ramp(4))]


def test_a_method_without_an_embedding_is_an_error(paper_study: Make) -> None:
    study = paper_study(NAME, methods=["ngt-m8", "bc"])
    with pytest.raises(UserError, match=r"figures\.ablation_embedding\.methods: bc has no"):
        ablation_embedding.sizes(study.config, NAME)
