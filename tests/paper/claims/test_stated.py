"""The settings that the paper and its authors' code state, and their agreement with ours."""

from __future__ import annotations

from paper.claims.stated import AGREE, SILENT, STATED, Stated


def test_agreement() -> None:
    plain = Stated("γ", 0.99, "sac.gamma")
    assert [plain.agreement(v) for v in ("0.99", "0.9")] == ["agree", "differs"]
    assert Stated("γ", 0.99, "sac.gamma", why="x").agreement("0.9") == "differs: x"
    assert Stated("γ", SILENT, "sac.gamma", code="0.9").agreement("0.99") == SILENT
    by_env = Stated("ℓ", "huber", "params.pairing", on={"a": "hl_gauss"})
    assert [by_env.agreement(v, ["a"]) for v in ("hl_gauss", "huber")] == [AGREE, "differs"]
    assert by_env.agreement("huber", ["a", "b"]) == "differs", "our value differs on one env"


def test_each_setting_of_a_method_is_stated_once() -> None:
    keys = [(s.method, s.key) for s in STATED if s.key]
    assert len(set(keys)) == len(keys)
    assert all(s.key or s.why for s in STATED), "a setting without a key needs a reason"
    assert all(s.code for s in STATED if s.other), "an alternative needs the code's value"
