"""The table of differences between methods, and a page that contains one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngt.experience.envs import get_task
from ngt.potential import PotentialConfig
from ngt.settings.load import load
from paper import pages
from paper.handbook import variants
from paper.handbook.variants import ENVS, MODULE, table
from paper.numbers.variants import Difference

PAGE = Path(__file__).resolve().parents[3] / "docs" / "ngt-release.md"


def test_the_page_shows_what_the_config_holds() -> None:
    _, part, _ = pages.between(PAGE.read_text(), str(PAGE), MODULE)
    remedy = "run: python -m paper.handbook.variants ngt ngt-release --into docs/ngt-release.md"
    assert part == table(load({"scale": "paper"}), "ngt", "ngt-release"), remedy


def test_the_page_names_what_the_variant_leaves_out() -> None:
    """Check the units of actions and the number of power iterations, which are the same for both.

    The table of differences therefore lacks them.
    """
    above, _, _ = pages.between(PAGE.read_text(), str(PAGE), MODULE)
    rows = {line.split(" | ")[0]: line for line in above.splitlines() if line.startswith("| ")}
    actions = next(line for name, line in rows.items() if "units of the actions" in name)
    for env in ("Humanoid-v4", "Pusher-v5"):
        task = get_task(env)
        assert f"±{task.high:g} on {env.partition('-')[0]}" in actions and task.low == -task.high
    iterations = next(line for name, line in rows.items() if "power iterations" in name)
    assert PotentialConfig().power_iterations == 3 and "three per update" in iterations


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
    assert "Hopper" not in printed, "a row that holds on all envs must name none"
    page = tmp_path / "page.md"
    begin, end = pages.markers(MODULE)
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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    part: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.md").write_text(pages.markers(MODULE)[0])
    with pytest.raises(SystemExit) as stop:
        variants.main(arguments)
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.startswith("variants: error: ") and err.count("\n") == 1
    assert part in err
