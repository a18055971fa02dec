"""Legend names of variants."""

from __future__ import annotations

from typing import Any

import pytest

from ngt.settings import load as loading
from paper.drawing.labels import labels

HUMANOID, CHEETAH = "Humanoid-v4", "HalfCheetah-v4"


def named(names: list[str], envs: list[str], **data: Any) -> list[str]:
    return list(labels(loading.load({"scale": "paper", **data}), names, envs).values())


@pytest.mark.parametrize(
    ("variant", "env", "texts"),
    [
        ("ngt-mse-softmax", HUMANOID, ["HL-Gauss", "MSE-softmax"]),
        ("ngt-hlg", CHEETAH, ["Huber", "HL-Gauss"]),
        ("ngt-kaiming", CHEETAH, ["orthogonal head", "Kaiming head"]),
        ("ngt-no-sn", CHEETAH, ["spectral norm", "no spectral norm"]),
        ("ngt-m8", HUMANOID, ["m = 32", "m = 8"]),
        ("ngt-equal-sigma", HUMANOID, ["σ = 0.25 expert, 0.05 agent", "σ = 0.1"]),
        ("ngt-equal-sigma", CHEETAH, ["Huber", "HL-Gauss, σ = 0.1"]),
    ],
)
def test_each_variant_is_named_by_its_own_settings(
    variant: str, env: str, texts: list[str]
) -> None:
    assert named(["ngt", variant], [env]) == [f"NGT ({text})" for text in texts]


def test_settings_decide_and_not_the_name() -> None:
    methods = {"ngt": {"label": "Ours", "params": {"m": 4}}, "ngt-m8": {"params": {"m": 2}}}
    assert named(["ngt", "ngt-m8"], [HUMANOID], methods=methods) == ["Ours (m = 4)", "Ours (m = 2)"]


def test_values_of_several_envs() -> None:
    assert named(["ngt", "ngt-mse-softmax"], [HUMANOID, CHEETAH]) == [
        "NGT (HL-Gauss or Huber)",
        "NGT (MSE-softmax)",
    ]


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (["ngt", "dac-r"], ["NGT", "DAC, R"]),  # two methods, not variants of one
        (["ngt", "ngt-release"], ["NGT", "NGT (release)"]),  # many differences, not only in params
        (["ngt", "red"], ["NGT", "RED*"]),  # a different model
        (["ngt"], ["NGT"]),  # no difference
    ],
)
def test_the_configs_labels_are_used_if_words_do_not_serve(
    methods: list[str], expected: list[str]
) -> None:
    assert named(methods, [CHEETAH]) == expected


def test_the_configs_labels_are_used_if_words_are_the_same() -> None:
    own = {"a": {"label": "A", "like": "ngt", "params": {"pairing": "huber", "sigma_agent": 0.2}}}
    assert named(["ngt", "a"], [CHEETAH], methods=own) == ["NGT", "A"]


@pytest.mark.parametrize(("count", "text"), [(3, "NGT (leak = 0.3, m = 4, lr = 0.5)"), (4, "A")])
def test_a_legend_has_room_for_few_settings(count: int, text: str) -> None:
    params = dict(list({"m": 4, "lr": 0.5, "leak": 0.3, "delta": 2.0}.items())[:count])
    own = {"a": {"label": "A", "like": "ngt", "params": params}}
    assert named(["ngt", "a"], [CHEETAH], methods=own)[1] == text
