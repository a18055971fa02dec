"""Tests of the benchmark against SBX, with small scripts in place of SBX's process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ngt import cli
from ngt.bench import cpu, sbx, text
from ngt.bench.measure import measure
from ngt.errors import UserError

SERVER = """
import importlib.util, json, os, sys
assert importlib.util.find_spec("sbx") is None, "the suite's own sbx module hides the package"
assert os.environ["OMP_NUM_THREADS"] == "1"
print(json.dumps({"sbx-rl": "1.2.3", "sizes": " ".join(sys.argv[1:])}), flush=True)
for line in sys.stdin:
    open("asked.txt", "a").write(line)
    print("done", flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that writes a script to run in place of the one that serves SBX."""

    def write(script: str) -> None:
        (tmp_path / "serve_sbx.py").write_text(script, encoding="utf-8")
        # As in the suite, a module of the same name as the package is in the script's folder.
        (tmp_path / "sbx.py").write_text("", encoding="utf-8")

    monkeypatch.setattr(sbx, "HERE", tmp_path)
    monkeypatch.chdir(tmp_path)
    return write


def test_each_round_is_one_request(stand_in, tmp_path: Path) -> None:
    stand_in(SERVER)
    with sbx.sbx("HalfCheetah-v4", Path(sys.executable)) as peers:
        assert peers.versions == {"sbx-rl": "1.2.3", "sizes": "17 6"}
        rates = measure(peers.contenders, 2, 40)
    assert list(rates) == ["SBX SAC", "SBX SAC, 4 steps a call"]
    assert all(rate > 0 for rate in rates["SBX SAC"])
    asked = (tmp_path / "asked.txt").read_text(encoding="utf-8").splitlines()
    assert asked == ["1 20", "4 5", *["1 40", "4 10"] * 2], (
        "the requests must be a burn-in, then two rounds of each peer"
    )


def test_without_a_python_there_is_no_peer() -> None:
    with sbx.sbx("Pendulum-v1", None) as peers:
        assert not peers.contenders and not peers.versions


def test_a_python_without_sbx_is_told_what_to_install(stand_in) -> None:
    stand_in("import no_such_library")
    with pytest.raises(UserError, match=r"no_such_library.*peers\.txt"):
        sbx.sbx("Pendulum-v1", Path(sys.executable)).__enter__()


def test_a_peer_that_stops_is_told(stand_in) -> None:
    stand_in('print("{}", flush=True); input(); raise SystemExit("out of memory")')
    with (
        pytest.raises(UserError, match="out of memory"),
        sbx.sbx("Pendulum-v1", Path(sys.executable)) as peers,
    ):
        peers.contenders["SBX SAC"].call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--peers-python", "/no/such/python"], "/no/such/python can't be run"),
        (["--peers-python", sys.executable, "--methods", "all"], "cannot be used with --methods"),
    ],
)
def test_mistakes(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["bench", "--env", "Pendulum-v1", *options])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_the_table_has_the_ratios_to_sbx_and_its_versions(
    stand_in, small_nets: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement = cpu.agreement
    monkeypatch.setattr(cpu, "agreement", lambda sides: agreement(sides, (1, 2)))
    stand_in(SERVER)
    with sbx.sbx("Pendulum-v1", Path(sys.executable)) as peers:
        result = cpu.bench("Pendulum-v1", pack=1, repeats=1, updates=2, theirs=peers)
    rows = {row["what"]: row for row in result["rows"]}
    assert rows["SBX SAC"]["over_sbx"] == 1.0 and rows["SAC"]["over_sbx"] > 0
    told = text.table(result)
    assert "/ SBX" in told and "sbx-rl 1.2.3" in told
