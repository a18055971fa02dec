"""What the paper and its authors' code say of a setting, and whether ours agrees."""

from __future__ import annotations

from paper.claims.stated import AGREE, CODE_SIZES, PAPER_SIZES, SILENT, STATED, Stated


def test_agreement() -> None:
    plain = Stated("γ", 0.99, "sac.gamma")
    assert [plain.agreement(v) for v in ("0.99", "0.9")] == ["agree", "differs"]
    assert Stated("γ", 0.99, "sac.gamma", why="x").agreement("0.9") == "differs: x"
    assert Stated("γ", SILENT, "sac.gamma", code="0.9").agreement("0.99") == SILENT
    by_env = Stated("ℓ", "huber", "params.pairing", on={"a": "hl_gauss"})
    assert [by_env.agreement(v, ["a"]) for v in ("hl_gauss", "huber")] == [AGREE, "differs"]
    assert by_env.agreement("huber", ["a", "b"]) == "differs", "it is not the paper's on each"


def test_each_setting_of_a_method_is_stated_once() -> None:
    keys = [(s.method, s.key) for s in STATED if s.key]
    assert len(set(keys)) == len(keys)
    assert all(s.key or s.why for s in STATED), "why there is no setting"
    assert all(s.code for s in STATED if s.other), "a choice has both sides"


def test_sizes() -> None:
    assert len(PAPER_SIZES) == 5 and "Hopper-v4" not in PAPER_SIZES
    assert {e for e in PAPER_SIZES if CODE_SIZES[e] != PAPER_SIZES[e]} == {"Ant-v4"}
