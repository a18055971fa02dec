"""Tests of text that users choose, which is refused before training or can be shown anywhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ngt.errors import UserError
from ngt.experience.envs import Task, register
from ngt.settings.load import CONFIG_DIR, load
from ngt.settings.resolve import method_label
from ngt.text import SETTABLE


@pytest.mark.parametrize(
    "label",
    [
        r"$\sigma_{e}$",
        "NGT {ours}",
        "a % b & c_d # 'e' \"f\"",
        "Größe, σ ≥ 2 °",
        "<b>x</b>",
        "{input}",
        "--set",
        "|x|",
        "\\foo",
        "",
    ],
)
def test_a_label_may_be_any_text_that_can_be_shown(label: str) -> None:
    config = load({"scale": "test", "methods": {"ngt": {"label": label}}})
    assert method_label(config, "ngt") == (label or "ngt")


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("5 $", "unpaired dollar sign"),
        (r"5 \$ or 6 \$", "unpaired dollar sign"),
        ("日本", "contains '日本'"),
        ("a\nb", r"contains '\n'"),
        ("a~b", "contains '~'"),
        (" a", "begins or ends with a space"),
        ("x" * 101, "has 101 characters"),
    ],
)
def test_a_label_that_a_later_stage_cannot_show_is_one_line(label: str, words: str) -> None:
    with pytest.raises(UserError, match=r"^methods\.ngt\.label: .*" + re.escape(words)) as raised:
        load({"scale": "test", "methods": {"ngt": {"label": label}}})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["my/env", "my {env}", "my env", "", "é", "x" * 101])
def test_an_env_is_named_as_a_folder_can_be(name: str) -> None:
    with pytest.raises(UserError, match="task id"):
        register(Task(name, "Pendulum-v1", 3, 1, -2.0, 2.0, 200))


def test_a_scale_is_named_as_a_folder_can_be(tmp_path: object) -> None:
    folder = shutil.copytree(CONFIG_DIR, f"{tmp_path}/config")
    shutil.copy(f"{folder}/test.yaml", f"{folder}/my {{scale}}.yaml")
    with pytest.raises(UserError, match=r"scale: 'my \{scale\}' cannot name a folder"):
        load({"scale": "my {scale}"}, Path(folder))


def test_the_characters_of_a_label_are_printed_ones() -> None:
    assert all(len(c) == 1 and c.isprintable() for c in SETTABLE)
