"""The CPU benchmark: its measurements and output."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from ngt import cli
from ngt.bench import cpu, text
from ngt.reward import Constant
from ngt.settings.load import load
from ngt.settings.resolve import distinct_methods


@pytest.mark.slow
def test_bench_measures_every_contender_and_agreement(small_nets: None) -> None:
    result = cpu.bench("Pendulum-v1", pack=2, repeats=2, updates=4)
    names = [row["what"] for row in result["rows"]]
    assert names[:3] == ["SAC", "NGT", "NGT, pack of 2"]
    assert all(0 < r["slowest"] <= r["updates_per_second"] <= r["fastest"] for r in result["rows"])
    assert sum(p["share"] for p in result["profile"]) == pytest.approx(1, abs=0.01)
    assert [a["updates"] for a in result["agreement"]] == [1, 10, 100]
    assert result["agreement"][0]["pack_alone"] < 1e-6
    assert all(r["products_ms"] > 0 for r in result["rows"][:3])
    told = text.table(result)
    assert told.count(" ms per update of one run, ") == 3
    assert "NGT, pack of 2" in told and "matrix products" in told and "after  100 updates" in told


# ---------------------------------------------------------------- comparison of methods


class SlowStep(Constant):
    """A reward model that is slow to observe a step."""

    calls = 0

    def observe(self, transition, done):
        assert transition.obs.shape == (1, 4, 3) and done.shape == (1, 4)
        type(self).calls += 1
        time.sleep(0.1)
        return super().observe(transition, done)


class SlowFit(Constant):
    offline = True

    def fit(self, actor, expert):
        time.sleep(0.02)
        self.metrics["toy_loss"] = torch.zeros(1)


def test_methods_are_measured_by_what_the_loop_asks_of_them() -> None:
    mine = {"step": {"model": f"{__name__}:SlowStep"}, "fit": {"model": f"{__name__}:SlowFit"}}
    config = load({"scale": "test", "methods": {**mine, "twin": {"like": "constant"}}})
    names = ["step", "fit", "twin"]
    result = cpu.bench_methods(config, "Pendulum-v1", names, "constant", repeats=3, updates=4)
    rows = {row["method"]: row for row in result["rows"]}
    assert list(rows) == [*names, "constant"]
    assert SlowStep.calls == 3 + 3 * 4, "the burn-in must take 3 steps, each of 3 rounds 4"
    assert rows["constant"]["cost"] == rows["constant"]["least"] == rows["constant"]["most"] == 1.0
    assert rows["fit"]["iterations_per_second"] < 50, "an update takes at least 20 ms"
    assert rows["step"]["cost"] > 1.5 and rows["step"]["most"] >= rows["step"]["cost"]
    assert 0.2 < rows["twin"]["cost"] < 5.0
    assert (result["relative_to"], result["scale"]) == ("constant", "test")
    told = text.methods_table(result)
    assert "one iteration of constant reward" in told and told.count("\n") == 1 + len(rows)


def test_methods_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--scale", "test", "--env", "Pendulum-v1", "--repeats", "1", "--updates", "2"]
    cli.main(["bench", "--methods", "all", *short, "--json", str(tmp_path / "b.json")])
    result = json.loads((tmp_path / "b.json").read_text())
    names = distinct_methods(load({"scale": "test"}))
    assert [row["method"] for row in result["rows"]] == names
    assert result["relative_to"] == names[0], "the default must be the first method"
    assert capsys.readouterr().out.count("\n") == 2 + len(names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "ngtt"], "--methods: 'ngtt' is not known; did you mean ngt"),
        (["--methods", "ngt", "--relative-to", "bcc"], "--relative-to: 'bcc' is not known"),
        (["--relative-to", "bc"], "--relative-to needs --methods"),
    ],
)
def test_mistakes(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["bench", "--scale", "test", *options])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
