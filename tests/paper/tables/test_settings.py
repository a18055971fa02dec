"""The table of settings: complete, taken from the code, and compared with the paper."""

from __future__ import annotations

import dataclasses
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.potential import Potential, PotentialConfig
from ngt.settings.config import CellConfig, SacConfig, TrainConfig
from ngt.settings.load import load
from paper import command
from paper.claims.stated import STATED
from paper.drawing.table import Table
from paper.numbers.variants import as_text
from paper.tables.settings import TARGET, table, where


@cache
def whole(scale: str = "paper") -> Table:
    """Return the table at a scale."""
    return table(load({"scale": scale}))


def rows(scale: str = "paper") -> list[dict[str, Any]]:
    """Return all rows at a scale."""
    return [dict(row) for row in whole(scale).rows]


def changed(scale: str = "paper", **differences: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the rows that differ from scale `paper` after these changes, and the notes."""
    made = table(load({"scale": scale, **differences}))
    return [dict(row) for row in made.rows if row not in whole().rows], " ".join(made.notes)


def of(method: str, scale: str = "paper") -> dict[str, str]:
    """Return a method's values by setting."""
    return {r["setting"]: r["value"] for r in rows(scale) if r["method"] == method and r["setting"]}


def documented(cls: type, prefix: str = "") -> set[str]:
    return {prefix + f.name for f in dataclasses.fields(cls) if f.metadata.get("doc")}


def test_every_setting_of_the_backbone_and_of_ngt_with_its_default() -> None:
    backbone, ngt = of("backbone"), of("ngt")
    cell = documented(CellConfig) - {"model", "demos_source"}
    sac, train = documented(SacConfig, "sac."), documented(TrainConfig, "train.")
    assert set(backbone) == cell | sac | train | {"window", "graphs"}
    assert set(ngt) == documented(PotentialConfig, "params.") | {"model"}
    for values, cls, prefix in (
        (backbone, SacConfig, "sac."),
        (backbone, TrainConfig, "train."),
        (ngt, PotentialConfig, "params."),
    ):
        for f in dataclasses.fields(cls):
            if f.name != "pairing":
                assert values[prefix + f.name] == as_text(f.default), f.name
    assert all(r["meaning"] for r in rows())


def test_a_pairing_by_env() -> None:
    found = {
        r["envs"]: r["value"]
        for r in rows()
        if (r["method"], r["setting"]) == ("ngt", "params.pairing")
    }
    assert found == {"all but Humanoid-v4": "huber", "Humanoid-v4": "hl_gauss"}


def test_methods_show_what_is_their_own() -> None:
    assert of("ngt-m8") == {"params.m": "8"} and of("bc-full") == {"rate": "1"}
    assert of("red") == {"model": "baselines.red:Red"}
    assert of("pwil") == {
        "model": "baselines.pwil:Pwil",
        "params.alpha": "5.0",
        "params.beta": "5.0",
        "params.prefill": "0",
    }
    assert of("expert") == {
        "model": "ngt.reward:EnvReward",
        "train.keep": "best",
        "seed": "1000",
        "episodes": "16",
    }
    # The variant has one row for all envs, although NGT's own value differs on Humanoid.
    (row,) = (r for r in rows() if r["method"] == "ngt-mse-softmax")
    assert (row["like"], row["envs"], row["value"]) == ("ngt", "all", "mse_softmax")
    timed = [name for name in load({"scale": "paper"}).methods if name.startswith("speed-")]
    assert timed and not any(of(name) for name in timed)
    assert ", ".join(timed) in " ".join(whole().notes)


def found(scale: str = "paper") -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows by method and setting."""
    return {(r["method"], r["setting"]): r for r in rows(scale)}


def test_what_is_printed_and_whether_ours_agrees() -> None:
    shown = found()
    expected = {
        ("backbone", "sac.gamma"): ("0.99", "0.99", "0.99", "agree"),
        ("backbone", "sac.lr_alpha"): (
            "silent",
            "0.001 (backbone), 0.0003 (release)",
            "0.001",
            "silent",
        ),
        ("backbone", "train.log_every"): ("silent", None, "10000", "silent"),
        ("ngt", "params.penalty"): ("false", "none (release)", "0.0", "agree"),
        ("diffail", "params.leak"): (
            "0.05, as for all reward networks",
            "0.2 (release)",
            "0.05",
            "agree",
        ),
        ("ngt-m8", "params.m"): (None, None, "8", None),
        ("ngt", "model"): (None, None, "ngt.potential:Potential", None),
    }
    for key, cells in expected.items():
        assert tuple(shown[key][k] for k in ("printed", "code", "value", "agrees")) == cells, key
    assert shown["ngt", "params.hlg_target"]["agrees"].startswith("differs: ")
    assert (shown["bc", "train.steps"]["value"], shown["bc", "train.steps"]["agrees"]) == (
        "10000000",
        "agree",
    )


def test_every_statement_of_the_paper_has_a_row() -> None:
    shown = found()
    assert all((s.method, s.key) in shown for s in STATED if s.key)
    without = [r["printed"] for r in rows() if r["printed"] and not r["setting"]]
    assert len(without) == sum(s.key == "" for s in STATED) == 4


def test_the_target_entropy_names_its_units() -> None:
    row = found()["backbone", "sac.target_entropy_scale"]
    assert "in units not given" in row["printed"] and "env's units" in row["code"]
    assert "-1.42 on Humanoid-v4, -11.85 on Pusher-v5" in row["meaning"]
    tanh, _ = changed(sac={"entropy_units": "tanh"})
    (row,) = (r for r in tanh if (r["method"], r["setting"]) == ("backbone", TARGET))
    assert "-1.42" not in row["meaning"]
    small = found("test")["backbone", TARGET]["meaning"]
    assert f"{-1 - math.log(2):.2f} on Pendulum-v1" in small


def test_a_changed_value_shows_and_no_longer_agrees() -> None:
    odd, notes = changed(sac={"gamma": 0.9}, methods={"ngt": {"params": {"m": 8}}})
    cells = [
        tuple(r[k] for k in ("method", "setting", "value", "at_paper", "agrees"))
        for r in odd
        if r["at_paper"]
    ]
    assert ("backbone", "sac.gamma", "0.9", "0.99", "differs") in cells
    assert ("ngt", "params.m", "8", "32", "differs") in cells and len(cells) == 2
    (empty,) = (r for r in odd if r["method"] == "ngt-m8")
    assert empty["setting"] is None
    assert empty["meaning"] == "no setting differs from that of ngt on these envs"
    before = re.search(r"(\d+) agree with ours, (\d+) differ and 4", " ".join(whole().notes))
    after = re.search(r"(\d+) agree with ours, (\d+) differ and 4", notes)
    assert before and after
    pairs = zip(before.groups(), after.groups(), strict=True)
    assert [int(b) - int(a) for a, b in pairs] == [-2, 2]


def test_a_changed_default_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the table takes values from the dataclasses' defaults."""

    @dataclasses.dataclass(frozen=True)
    class Other(PotentialConfig):
        rescale: float = dataclasses.field(default=4.0, metadata={"doc": "x"})

    monkeypatch.setattr(Potential, "Config", Other)
    made = table(load({"scale": "test"})).rows
    (row,) = (r for r in made if (r["method"], r["setting"]) == ("ngt", "params.rescale"))
    assert (row["value"], row["agrees"]) == ("4.0", "differs")


def test_another_scale_is_marked_where_it_differs() -> None:
    quick = found("quick")
    assert quick["backbone", "train.batch"]["at_paper"] == "256"
    assert quick["backbone", "sac.gamma"]["at_paper"] is None
    assert quick["dac-r", "normalise_obs"]["at_paper"] == "false"
    assert quick["ngt", "params.pairing"]["at_paper"] == "huber"
    assert "at_paper" not in rows()[0]
    mine = changed("quick", methods={"mine": {"like": "ngt", "params": {"m": 5}}})[0]
    assert [r["at_paper"] for r in mine if r["method"] == "mine"] == [None]


def test_envs_are_named_the_short_way() -> None:
    assert where(["a", "b"], ["a", "b"]) == "all"
    assert where(["a"], ["a", "b"]) == "a" and where(["a", "b"], ["a", "b", "c"]) == "all but c"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["hyperparameter_table", "--scale", "test", "--out", str(tmp_path / "t.csv")])
    row = "| ngt | backbone | params.m | all | 32 | 64 (release) | 4 | 32 | differs |"
    assert row in capsys.readouterr().out
    text = (tmp_path / "t.tex").read_text()
    assert text.isascii() and r"\begin{longtable}" in text and not re.search("(?<!`)`(?!`)", text)


def test_a_config_without_envs_is_refused() -> None:
    with pytest.raises(UserError, match="figures: none names an env"):
        table(dataclasses.replace(load({"scale": "test"}), figures={}))
