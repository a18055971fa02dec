"""The table of what a variant changes, and the page that holds one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ngt.settings.load import load
from ngt.settings.resolve import resolve
from paper import pages
from paper.numbers import variants
from paper.numbers.variants import ENVS, Difference, differences, table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "ngt-release.md"


def changed(**methods: Any) -> list[tuple[str, tuple[str, ...], tuple[str, str]]]:
    """The rows for a method `b` against NGT, without the meanings."""
    config = load({"scale": "paper", "methods": methods})
    return [row[:3] for row in differences(config, "ngt", "b")]


def test_the_page_shows_what_the_config_holds() -> None:
    _, part, _ = pages.between(PAGE.read_text(), str(PAGE), variants.NAME)
    remedy = "run: python -m paper.numbers.variants ngt ngt-release --into docs/ngt-release.md"
    assert part == table(load({"scale": "paper"}), "ngt", "ngt-release"), remedy


def test_every_difference_is_a_row() -> None:
    """Against the resolved settings themselves."""
    config = load({"scale": "paper"})
    rows = differences(config, "ngt", "ngt-release")
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
    assert rows["params.lr"] == ("0.001", "3e-05"), "of the same name"
    assert rows["params.m"] == ("32", "-")
    back = differences(load({"scale": "paper"}), "bc", "ngt")
    (row,) = (row for row in back if row.name == "params.m")
    assert row == Difference("params.m", ENVS, ("-", "32"), "outputs of the embedding")


def test_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        Difference("sac.gamma", ENVS, ("0.99", "0.9"), "discount"),
        Difference("params.m", ENVS[1:], ("32", "4"), "size |m|"),
    ]
    monkeypatch.setattr(variants, "differences", lambda *_: rows)
    assert table(load({"scale": "paper"}), "ngt", "b") == (
        "| setting | `ngt` | `b` | meaning |\n"
        "| --- | --- | --- | --- |\n"
        "| `sac.gamma` | 0.99 | 0.9 | discount |\n"
        "| `params.m` (Humanoid-v4) | 32 | 4 | size \\|m\\| |\n"
    )


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variants.main(["ngt", "bc", "--env", "Hopper-v4", "--scale", "quick"])
    printed = capsys.readouterr().out
    assert printed == table(load({"scale": "quick"}), "ngt", "bc", ["Hopper-v4"])
    assert "Hopper" not in printed, "a row names an env only where it holds on some"
    page = tmp_path / "page.md"
    begin, end = pages.markers(variants.NAME)
    page.write_text(f"head\n{begin}old\n{end}tail\n")
    for _ in range(2):
        variants.main(["ngt", "bc", "--into", str(page)])
        new = table(load({"scale": "paper"}), "ngt", "bc")
        assert page.read_text() == f"head\n{begin}{new}{end}tail\n"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["ngt"], "the following arguments are required: METHOD"),
        (["ngt", "nqt"], "'nqt' is not known; did you mean"),
        (["ngt", "bc", "--env", "Ant"], "'Ant' is unknown"),
        (["ngt", "bc", "--scale", "huge"], "'huge' is not known"),
        (["ngt", "bc", "--into", "absent.md"], "absent.md: No such file"),
        (["ngt", "bc", "--into", "empty.md"], "lacks the lines <!-- begin"),
    ],
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], part: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.md").write_text(pages.markers(variants.NAME)[0])
    with pytest.raises(SystemExit) as stop:
        variants.main(arguments)
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.startswith("variants: error: ") and err.count("\n") == 1
    assert part in err
