"""Tests of run keys, the run table, packs and paths.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngt.errors import UserError
from ngt.runs.keys import (
    Layout,
    RunKey,
    pack_name,
    packs,
    parse_pack,
    resolve_key,
    run_table,
)
from ngt.runs.receipt import receipt_hash
from ngt.settings.config import MODES, Config
from ngt.settings.load import load
from ngt.settings.resolve import config_hash

CELL = ("Hopper-v4", "ngt", "state-action", 20)  # env, method, mode and rate, as in a pack
KEY = RunKey("Hopper-v4", "ngt", "state-action", 20, 4, 2)

keys = st.builds(
    RunKey,
    env=st.sampled_from(["Hopper-v4", "walker-walk"]),
    method=st.sampled_from(["ngt", "bc-full", "a.b_c"]),
    mode=st.sampled_from(MODES),
    rate=st.integers(1, 999),
    demos=st.integers(1, 99),
    seed=st.integers(0, 999),
)
members = st.sets(st.tuples(st.integers(1, 99), st.integers(0, 999)), min_size=1, max_size=24)


# ---------------------------------------------------------------- keys


def test_a_key_is_its_folder() -> None:
    assert str(KEY) == "Hopper-v4/ngt/state-action-demos4-rate20/seed2"
    assert RunKey.parse(str(KEY)) == KEY
    assert RunKey.parse(f"/{KEY}/") == KEY, "slashes at the ends must not matter"
    assert KEY.cell == CELL


@given(keys)
def test_key_text_round_trip(key: RunKey) -> None:
    assert RunKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hopper-v4",
        "Hopper-v4/ngt/state-action-demos4-rate20",
        "Hopper-v4/ngt/state-action-demos4-rate20/seed2/more",
        "Hopper-v4/ngt/state-action-demos4-rate20/seed-2",
        "Hopper-v4/ngt/state-action-demos4-rate20/2",
        "Hopper-v4/ngt/state-action-demos-rate20/seed2",
        "Hopper-v4/ngt/state-action-demos4.5-rate20/seed2",
        "Hopper-v4/ngt/state-action-rate20-demos4/seed2",
        "Hopper-v4/ngt/demos4-rate20/seed2",
        "Hopper-v4/ngt/action-demos4-rate20/seed2",
        f"Hopper-v4/ngt/state-action-demos4-rate20/seed{10**18}",
        f"Hopper-v4/ngt/state-action-demos4-rate20/seed{'1' * 5000}",  # int() refuses 4301 digits
    ],
)
def test_text_that_is_no_key(text: str) -> None:
    with pytest.raises(UserError) as caught:
        RunKey.parse(text)
    assert str(caught.value) == (
        f"run {text!r}: not a run key; write env/method/mode-demosK-rateN/seedS, "
        "with mode one of state-action, state-state, state-only and numbers of at most 18 digits"
    )


@pytest.mark.parametrize("part", ["demos0-rate20", "demos4-rate0"])
def test_no_demonstration_or_no_rate(part: str) -> None:
    with pytest.raises(UserError, match="demos and rate must be at least 1"):
        RunKey.parse(f"Hopper-v4/ngt/state-action-{part}/seed2")


def test_paths() -> None:
    layout = Layout("lite", Path("out"))
    assert layout.run(KEY) == Path("out/lite/runs") / str(KEY)
    assert layout.expert("Ant-v4") == Path("out/lite/experts/Ant-v4")
    assert layout.demos("Ant-v4") == Path("out/lite/demos/Ant-v4.npz")
    assert Layout("lite").runs == Path("results/lite/runs")


# ---------------------------------------------------------------- the run table


def test_the_papers_main_figure() -> None:
    table = run_table(load({"scale": "paper"}), ["main_figure"])
    ours = [key for key in table if key.method in ("ngt", "bc", "bc-full")]
    assert len(ours) == 3 * 6 * 3 * 4  # methods, envs, numbers of demonstrations, seeds
    assert len({key.env for key in ours}) == 6
    assert {key.demos for key in ours} == {1, 4, 11}
    assert {key.seed for key in ours} == {0, 1, 2, 3}
    rates = {(key.method, key.rate) for key in ours}
    assert rates == {("ngt", 20), ("bc", 20), ("bc-full", 1)}, "bc-full must keep every transition"
    assert table == sorted(set(table))


FIGURES: dict[str, Any] = {
    "scale": "test",
    "figures": {
        "one": {"methods": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1, 2], "seeds": [0]},
        "two": {
            "methods": ["ngt", "bc-full"],
            "envs": ["Pendulum-v1"],
            "demos": [2],
            "seeds": [0, 1],
            "modes": ["state-action", "state-only"],
            "rates": [20, 5],
        },
    },
}


def test_runs_that_figures_share_occur_once() -> None:
    config = load(FIGURES)
    one, two = run_table(config, ["one"]), run_table(config, ["two"])
    assert len(one) == 2
    assert len(two) == 2 * 2 * 2 + 2 * 2, "a method's fixed rate must replace the figure's rates"
    shared = RunKey("Pendulum-v1", "ngt", "state-action", 20, 2, 0)
    assert set(one) & set(two) == {shared}
    both = run_table(config, ["one", "two"])
    assert len(both) == len(set(both)) == 2 + 12 - 1
    assert run_table(config, ["two", "one", "two"]) == both
    assert set(run_table(config)) >= set(both)
    assert run_table(config, []) == []


# ---------------------------------------------------------------- packs


@given(st.lists(keys, max_size=40), st.integers(1, 9))
def test_packs_hold_every_key_once_and_mix_no_cells(listed: list[RunKey], size: int) -> None:
    made = packs(listed, size)
    assert all(1 <= len(pack) <= size for pack in made)
    assert all(len({key.cell for key in pack}) == 1 for pack in made)
    assert sorted(key for pack in made for key in pack) == sorted(set(listed))
    cells = {key.cell for key in listed}
    for cell in cells:  # each has as few packs as possible
        count = len({key for key in listed if key.cell == cell})
        assert sum(pack[0].cell == cell for pack in made) == -(-count // size)


def test_packs_do_not_depend_on_the_order_of_keys() -> None:
    table = run_table(load(FIGURES))
    assert packs(table[::-1], 3) == packs(table, 3)


def test_packs_keep_apart_what_is_told_apart() -> None:
    table = run_table(load(FIGURES))
    made = packs(table, 12, apart=lambda key: key.seed % 2)
    assert sorted(key for pack in made for key in pack) == table
    assert all(len({(key.cell, key.seed % 2) for key in pack}) == 1 for pack in made)


@given(members)
def test_pack_names_round_trip_and_are_file_names(pairs: set[tuple[int, int]]) -> None:
    pack = sorted(RunKey(*CELL, demos, seed) for demos, seed in pairs)
    name = pack_name(pack)
    assert sorted(parse_pack(CELL, name)) == pack
    assert len(parse_pack(CELL, name)) == len(pack)
    assert re.fullmatch(r"[\d.,_-]+", name), "the name must match the workflow's wildcard"
    assert not name.startswith((".", "-"))
    assert len(name) < 200
    assert pack_name(pack[::-1]) == name


def test_pack_names_by_hand() -> None:
    def name(*pairs: tuple[int, int]) -> str:
        return pack_name([RunKey(*CELL, demos, seed) for demos, seed in pairs])

    assert name((1, 0)) == "1.0"
    assert name((1, 0), (1, 1), (1, 2), (1, 3), (4, 0), (4, 2)) == "1.0-3_4.0,2"
    assert name((11, 9), (11, 10), (4, 7)) == "4.7_11.9-10"
    whole = [(demos, seed) for demos in (1, 4, 11) for seed in range(8)]
    assert name(*whole) == "1.0-7_4.0-7_11.0-7"


# ---------------------------------------------------------------- a run's receipt


def test_run_hash_is_of_key_and_settings() -> None:
    config = load({"scale": "test"})
    keys = [
        KEY,
        dataclasses.replace(KEY, seed=3),
        dataclasses.replace(KEY, demos=1),
        dataclasses.replace(KEY, mode="state-only"),
        dataclasses.replace(KEY, rate=5),
        dataclasses.replace(KEY, method="bc"),
        dataclasses.replace(KEY, env="Pendulum-v1"),
    ]

    def run_hash(config: Config, key: RunKey) -> str:
        return receipt_hash(str(key), config_hash(resolve_key(config, key)))

    hashes = [run_hash(config, key) for key in keys]
    assert len(set(hashes)) == len(keys)
    changed = load({"scale": "test", "sac": {"gamma": 0.5}})
    assert not {run_hash(changed, key) for key in keys} & set(hashes)
    unrelated = load({"scale": "test", "pack": 2, "methods": {"bc": {"sac": {"gamma": 0.5}}}})
    same = [run_hash(unrelated, key) == h for key, h in zip(keys, hashes, strict=True)]
    assert same == [key.method != "bc" for key in keys]


def test_resolve_key_is_the_cell() -> None:
    cell = resolve_key(load({"scale": "test"}), KEY)
    assert (cell.env, cell.method, cell.mode, cell.rate) == CELL
    with pytest.raises(UserError, match="method: 'ntg' is not known; did you mean ngt"):
        resolve_key(load({"scale": "test"}), dataclasses.replace(KEY, method="ntg"))


def test_a_rate_that_a_method_fixes_is_its_only_one() -> None:
    config = load({"scale": "test"})
    full = dataclasses.replace(KEY, method="bc-full", rate=1)
    assert resolve_key(config, full).rate == 1
    with pytest.raises(UserError) as caught:
        resolve_key(config, dataclasses.replace(full, rate=20))
    assert str(caught.value).endswith(": method bc-full has rate 1; write rate1")
