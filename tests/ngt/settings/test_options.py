"""The options that select settings."""

from __future__ import annotations

from pathlib import Path

from ngt.settings.options import Parser, add_settings, given, load_config


def test_several_config_files_are_merged_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("window: 3\nsac: {gamma: 0.9}")
    (tmp_path / "b.yaml").write_text("sac: {tau: 0.5}\nwindow: 4")
    parser = Parser()
    add_settings(parser)
    args = parser.parse_args(
        ["--config", str(tmp_path / "a.yaml"), "--config", str(tmp_path / "b.yaml")]
    )
    config = load_config(args)
    assert (config.window, config.sac.gamma, config.sac.tau) == (4, 0.9, 0.5)
    assert given(args) == f"--config {tmp_path}/a.yaml --config {tmp_path}/b.yaml"
