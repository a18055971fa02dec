"""The settings in which two methods differ."""

from __future__ import annotations

import dataclasses
from typing import Any

from ngt.settings.load import load
from ngt.settings.resolve import resolve
from paper.numbers.variants import Difference, differences

ENVS = ("HalfCheetah-v4", "Humanoid-v4")


def changed(**methods: Any) -> list[tuple[str, tuple[str, ...], tuple[str, str]]]:
    """Return the settings in which method `b` differs from NGT, without their meanings."""
    config = load({"scale": "paper", "methods": methods})
    return [row[:3] for row in differences(config, "ngt", "b", ENVS)]


def test_every_difference_is_a_row() -> None:
    """Check that the rows are exactly the differences between the resolved settings."""
    config = load({"scale": "paper"})
    rows = differences(config, "ngt", "ngt-release", ENVS)
    for env in ENVS:
        one, other = (
            dataclasses.asdict(resolve(config, env, m, "state-action", 20))
            for m in ("ngt", "ngt-release")
        )
        expected = set()
        for name in one.keys() - {"method"}:
            inside = one[name] if isinstance(one[name], dict) else None
            if inside is not None:
                expected |= {f"{name}.{k}" for k in inside if inside[k] != other[name][k]}
            elif one[name] != other[name]:
                expected.add(name)
        assert {row.name for row in rows if env in row.envs} == expected
    assert len({(row.name, row.envs) for row in rows}) == len(rows)


def test_rows_by_hand() -> None:
    both = ("HalfCheetah-v4", "Humanoid-v4")
    assert changed(b={"like": "ngt"}) == []
    assert changed(b={"like": "ngt", "sac": {"hidden": [8]}, "train": {"steps": 5}}) == [
        ("sac.hidden", both, ("[256, 256]", "[8]")),
        ("train.steps", both, ("10000000", "5")),
    ]
    assert changed(b={"like": "ngt", "rate": 5, "normalise_obs": True}) == [
        ("rate", both, ("20", "5")),
        ("normalise_obs", both, ("false", "true")),
    ]


def test_a_value_that_depends_on_the_env() -> None:
    assert changed(b={"like": "ngt", "params": {"pairing": "mse_softmax"}}) == [
        ("params.pairing", ("HalfCheetah-v4",), ("huber", "mse_softmax")),
        ("params.pairing", ("Humanoid-v4",), ("hl_gauss", "mse_softmax")),
    ]
    assert changed(b={"like": "ngt", "envs": {"Humanoid-v4": {"params": {"m": 4}}}}) == [
        ("params.m", ("Humanoid-v4",), ("32", "4")),
    ]


def test_another_model_has_settings_of_its_own() -> None:
    rows = {name: values for name, _, values in changed(b={"model": "baselines.diffail:DiffAil"})}
    assert rows["model"] == ("ngt.potential:Potential", "baselines.diffail:DiffAil")
    assert rows["params.lr"] == ("0.001", "3e-05"), "both methods have a setting of this name"
    assert rows["params.m"] == ("32", "-")
    back = differences(load({"scale": "paper"}), "bc", "ngt", ENVS)
    (row,) = (row for row in back if row.name == "params.m")
    assert row == Difference("params.m", ENVS, ("-", "32"), "number of outputs of the embedding")
