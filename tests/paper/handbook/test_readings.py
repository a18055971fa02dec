"""Ambiguous parts of the paper: our reading, taken from the config, and the alternative."""

from __future__ import annotations

import shlex

import pytest
import yaml

from ngt.runs.keys import run_table
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.options import Parser, add_settings, load_config
from paper.claims.envs import SIXTH
from paper.claims.stated import DIFFERS
from paper.handbook import readings

PAPER = load({"scale": "paper"})
ROWS = {row[0]: row for row in readings.rows(PAPER)}


def with_setting(setting: str) -> Config:
    """Return the config of scale `paper` with one `--set` option given."""
    parser = Parser()
    add_settings(parser)
    return load_config(parser.parse_args(["--scale", "paper", "--set", setting]))


def unquoted(cell: str) -> str:
    """Return the single argument that a shell reads from a cell of the table."""
    (argument,) = shlex.split(cell.strip("`"))
    return argument


def otherwise(setting: str) -> dict[str, tuple[str, ...]]:
    """Return the table's rows by name, with one `--set` option given."""
    return {row[0]: row for row in readings.rows(with_setting(setting))}


def test_every_decision_has_a_row() -> None:
    """Check that each listed decision on an ambiguous part of the paper has a row."""
    for words in (
        "loss of the temperature",
        "learning rate of the temperature",
        "target entropy",
        "power iterations",
        "reward in the buffer",
        "DiffAIL",
        "sixth env",
        "Ant",
        "HL-Gauss on envs other than Humanoid",
        "einops",
        "termination",
    ):
        assert any(words in name for name in ROWS), words
    assert all(len(row) == len(readings.HEAD) and all(row) for row in ROWS.values())


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if n != "einops"])
def test_the_other_reading_is_one_setting(name: str) -> None:
    other = unquoted(ROWS[name][-1])
    changed = otherwise(other)
    assert changed[name][3] != ROWS[name][3], "our column must follow the config"
    same = [n for n in ROWS if changed[n] == ROWS[n]]
    assert len(same) >= len(ROWS) - 2, (
        "other rows must stay, except that the row of envs also changes Ant's"
    )


def test_a_value_that_is_not_printed_differs() -> None:
    assert ROWS["loss of the temperature"][4] == "agree"
    assert otherwise("sac.alpha_loss=log_alpha")["loss of the temperature"][4] == DIFFERS
    assert otherwise("sac.lr_alpha=0.0003")["learning rate of the temperature"][4] == "silent"


def test_the_target_entropy_is_computed_in_both_units() -> None:
    row = ROWS["units of the target entropy"][3]
    assert "-1.42 on Humanoid-v4 (`tanh`: -17)" in row
    assert "-11.85 on Pusher-v5 (`tanh`: -7)" in row
    assert otherwise("sac.entropy_units=tanh")["units of the target entropy"][3] == "`tanh`"


def test_the_sixth_env_makes_up_the_number_of_runs() -> None:
    """Count methods x envs x demonstrations x seeds, with the sixth env and without it."""
    *_, shown, _, other = ROWS["the sixth env of 720 runs"]
    assert shown == SIXTH
    without = with_setting(unquoted(other))
    for config, envs in ((PAPER, 6), (without, 5)):
        assert len(run_table(config, ["main_figure"])) == 10 * envs * 3 * 4
    assert len(run_table(PAPER, ["main_figure"])) == 720


def test_methods_that_see_the_envs_reward_are_named() -> None:
    changed = otherwise("methods.constant.model=ngt.reward:EnvReward")
    assert "`constant`" in changed["the env's reward in the buffer"][3]


def test_the_section_is_a_table() -> None:
    lines = readings.section(PAPER).splitlines()
    assert [line.count(" | ") for line in lines[: len(ROWS) + 2]] == [5] * (len(ROWS) + 2)
    assert yaml.safe_load(unquoted(ROWS["the sixth env of 720 runs"][-1]).partition("=")[2])
