"""Tests of published records: writing them, reading them, and refusing wrong ones."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from ngt import cli
from ngt.errors import UserError
from ngt.experience import shipped
from ngt.files import read_json, sha256, write_json
from ngt.runs.folder import Folders
from ngt.runs.keys import Layout, RunKey, resolve_key, run_table
from ngt.runs.published import COLUMNS, Published, settings_hash
from ngt.runs.shipping.gather import publish, summary, to_parquet
from ngt.runs.status import described
from ngt.runs.table import read_runs
from ngt.runs.writer import RunWriter
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.resolve import resolve_expert

SETTINGS: dict[str, Any] = {
    "scale": "test",
    "expert": {"episodes": 4},
    "envs": {"Pendulum-v1": {"demos": ""}},  # use recorded demos, not those of scale `test`
    "figures": {
        **dict.fromkeys(
            [name for name in load({"scale": "test"}).figures]  # so that only figure `f` remains
        ),
        "f": {"methods": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1, 4], "seeds": [0, 1]},
    },
}
FIRST = "Pendulum-v1/ngt/state-action-demos1-rate20/seed0"


@pytest.fixture
def config() -> Config:
    return load(SETTINGS)


@pytest.fixture
def write(complete: Any) -> Callable[..., None]:
    """Return a function that writes a finished run."""

    def finished(
        folder: Path,
        key: dict[str, Any],
        cell: Any,
        returns: dict[int, list[float]],
        demos: str = "a" * 64,
    ) -> None:
        record = {
            "status": "finished",
            "step": max(returns),
            "reference": {"random": -1000.0, "expert": -200.0, "demos": demos},
            "timing": [[200, 1.25], [400, 2.5]],
        }
        complete(RunWriter(folder, key, cell), cell, returns, record)

    return finished


@pytest.fixture
def trained(layout: Layout, config: Config, write: Any) -> Layout:
    """Write the folders of the study's runs and expert, and return their layout."""
    for i, key in enumerate(run_table(config)):
        shown = {"run": str(key), **dataclasses.asdict(key)}
        returns = {200: [-900.0 - i, -700.0], 400: [-500.0, -400.1 + i]}
        write(layout.run(key), shown, resolve_key(config, key), returns)
    expert = {"env": "Pendulum-v1", "method": "expert", "seed": 1000}
    cell = resolve_expert(config, "Pendulum-v1")
    write(layout.expert("Pendulum-v1"), expert, cell, {200: [-300.0, -100.0]})
    return layout


def test_an_expert_that_ships_is_gathered_too(trained: Layout, config: Config, write: Any) -> None:
    manifest = publish(trained, config)
    assert "Pendulum-v1/expert" in manifest["runs"]
    figure = {"methods": ["ngt"], "envs": ["HalfCheetah-v4"], "demos": [1], "seeds": [0]}
    study = {**SETTINGS, "demos": "shipped", "figures": {**SETTINGS["figures"], "f": figure}}
    ships = load(study)
    (key,) = run_table(ships)
    shown = {"run": str(key), **dataclasses.asdict(key)}
    demos = described(shipped.DATA / "HalfCheetah-v4" / shipped.DEMOS)["checksum"]
    write(trained.run(key), shown, resolve_key(ships, key), {200: [1.0]}, demos)
    manifest = publish(trained, ships)
    assert manifest["runs"]["HalfCheetah-v4/expert"]["status"] == "finished"
    published = Published(trained.published, as_published(ships))
    assert published.read_expert("HalfCheetah-v4").evaluations["step"].iloc[-1] == 700_000


def test_runs_that_imitate_a_shipped_expert_fit_a_config_that_trains_it(
    layout: Layout, write: Any
) -> None:
    """The settings are the same if the config would train the expert that ships."""
    env = "HalfCheetah-v4"
    figure = {"methods": ["ngt"], "envs": [env], "demos": [1], "seeds": [0]}
    figures = {name: None for name in load({"scale": "lite"}).figures} | {"f": figure}
    ships = load({"scale": "lite", "demos": "shipped", "figures": figures})
    (key,) = run_table(ships)
    demos = described(shipped.DATA / env / shipped.DEMOS)["checksum"]
    layout = Layout("lite", layout.root)
    shown = {"run": str(key), **dataclasses.asdict(key)}
    write(layout.run(key), shown, resolve_key(ships, key), {200: [1.0]}, demos)
    publish(layout, ships)
    trains = load({"scale": "lite", "figures": figures})
    assert Published(layout.published, trains).difference(key) == ""
    other = load({"scale": "lite", "figures": figures, "expert": {"sac": {"gamma": 0.9}}})
    assert "expert" in Published(layout.published, other).difference(key)


def as_published(config: Config) -> Config:
    return dataclasses.replace(config, records="published")


def test_a_stale_expert_is_not_gathered(trained: Layout, config: Config) -> None:
    """Check that an expert with other settings is refused unless the user gives demonstrations."""
    file = trained.expert("Pendulum-v1") / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "config_hash": "0" * 16}))
    with pytest.raises(UserError, match=r"expert Pendulum-v1 in .*: trained with other settings"):
        publish(trained, config)
    (trained.root / "mine.npz").write_bytes(b"mine")
    mine = {**SETTINGS, "envs": {"Pendulum-v1": {"demos": str(trained.root / "mine.npz")}}}
    assert not Folders(trained, load(mine)).has_expert("Pendulum-v1")


def test_runs_without_any_evaluation(trained: Layout, config: Config) -> None:
    """Check that runs can be published if all diverged before their first evaluation."""
    for key in run_table(config):
        folder = trained.run(key)
        run = read_json(folder / "run.json")
        (folder / "eval.csv").write_text("step,episode,return,length\n")
        write_json(folder / "run.json", {**run, "status": "diverged", "step": 8, "files": {}})
    (trained.expert("Pendulum-v1") / "run.json").unlink()
    publish(trained, config)
    table, absent = read_runs(trained, as_published(config), "f")
    assert table.empty and absent == []


def test_published_records_give_the_same_table(trained: Layout, config: Config) -> None:
    manifest = publish(trained, config)
    assert summary(manifest) == "runs and experts: 5 finished" and manifest["missing"] == []
    from_folders, _ = read_runs(trained, config, "f")
    elsewhere = Layout("test", trained.root / "clone")
    elsewhere.published.parent.mkdir(parents=True)
    for end in (".parquet", ".json"):
        source = trained.published.with_suffix(end)
        elsewhere.published.with_suffix(end).write_bytes(source.read_bytes())
    again, absent = read_runs(elsewhere, as_published(config), "f")
    assert absent == []
    types = {"episodes": "int64"}  # the file stores a smaller type
    pd.testing.assert_frame_equal(again.astype(types), from_folders.astype(types))
    assert from_folders["seconds"].tolist()[:2] == [1.25, 2.5]
    expert = Published(elsewhere.published, config).read_expert("Pendulum-v1")
    assert expert.evaluations["low"].tolist() == [-300.0]


def test_records_of_before_a_column_lack_its_values(trained: Layout, config: Config) -> None:
    publish(trained, config)
    table = trained.published
    pd.read_parquet(table).drop(columns="rank_correlation").to_parquet(table)
    manifest = read_json(table.with_suffix(".json")) or {}
    write_json(table.with_suffix(".json"), {**manifest, "sha256": sha256(table.read_bytes())})
    rows, absent = read_runs(trained, as_published(config), "f")
    assert absent == [] and rows["rank_correlation"].isna().all()
    assert rows["return"].notna().all()


def test_the_same_runs_give_the_same_bytes(trained: Layout, config: Config) -> None:
    publish(trained, config)
    first = {end: trained.published.with_suffix(end).read_bytes() for end in (".parquet", ".json")}
    publish(trained, config)
    for end, content in first.items():
        assert trained.published.with_suffix(end).read_bytes() == content


def test_manifest_says_what_made_the_runs_once(trained: Layout, config: Config) -> None:
    manifest = publish(trained, config)
    assert manifest == read_json(trained.published.with_suffix(".json"))
    content = trained.published.read_bytes()
    assert manifest["sha256"] == sha256(content)
    assert len(manifest["made"]) == len({made["source_hash"] for made in manifest["made"]}) == 2
    made = manifest["made"][manifest["runs"][FIRST]["made"]]
    assert made["versions"]["torch"] == torch.__version__ and len(made["source_hash"]) == 16
    own = manifest["runs"][FIRST]
    assert own["reference"]["expert"] == -200.0 and own["steps_per_second"] == 50.0
    assert own["made"] == 0 and "timing" not in own


def test_manifest_names_the_gpu_of_runs_on_a_gpu_only(trained: Layout, config: Config) -> None:
    before = publish(trained, config)
    assert all("gpu" not in made for made in before["made"])
    file = trained.run(RunKey.parse(FIRST)) / "run.json"
    write_json(file, {**json.loads(file.read_text()), "gpu": "RTX"})
    manifest = publish(trained, config)
    (made,) = (made for made in manifest["made"] if "gpu" in made)
    assert made == {**before["made"][before["runs"][FIRST]["made"]], "gpu": "RTX"}
    assert Published(trained.published, config).record(FIRST).run["gpu"] == "RTX"


def test_a_missing_run_is_named_and_kept_out_only_when_asked(
    trained: Layout, config: Config
) -> None:
    (trained.runs / FIRST / "run.json").unlink()
    with pytest.raises(UserError, match=rf"run {FIRST}: part in .*; train it first"):
        publish(trained, config)
    assert not trained.published.exists()
    manifest = publish(trained, config, allow_partial=True)
    assert manifest["missing"] == [FIRST]
    assert summary(manifest) == "runs and experts: 4 finished, 1 missing"
    table, absent = read_runs(trained, as_published(config), "f")
    assert [str(key) for key in absent] == [FIRST] and len(table) == 6


def test_a_model_of_two_versions_is_named(trained: Layout, config: Config) -> None:
    file = trained.runs / FIRST / "run.json"
    write_json(file, {**json.loads(file.read_text()), "source_hash": "f" * 16})
    manifest = publish(trained, config)
    assert summary(manifest).endswith("more than one version of the code: ngt.potential:Potential")
    assert len(manifest["made"]) == 3


# ---------------------------------------------------------------- wrong records


def drop(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["run"] != FIRST]


def double(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table, table[table["run"] == FIRST]])


def foreign(table: pd.DataFrame) -> pd.DataFrame:
    other = table[table["run"] == FIRST].assign(run=FIRST.replace("seed0", "seed7"))
    return pd.concat([table, other])


def changed(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{"return": table["return"] + 1e-9})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop, f"run {FIRST} has no rows"),
        (double, f"run {FIRST} has step 200 twice"),
        (foreign, f"run {FIRST.replace('seed0', 'seed7')} is not in the manifest"),
        (changed, "its checksum differs from the manifest's"),
        (lambda table: table.drop(columns="std"), "std"),
    ],
)
def test_a_damaged_table_is_refused(
    trained: Layout,
    config: Config,
    message: str,
    damage: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    publish(trained, config)
    table = pd.read_parquet(trained.published).astype({"run": str})
    out = io.BytesIO()
    damage(table).to_parquet(out, index=False)
    trained.published.write_bytes(out.getvalue())
    with pytest.raises(UserError) as caught:
        read_runs(trained, as_published(config), "f", allow_partial=True)
    assert message in str(caught.value) and str(trained.published) in str(caught.value)


def test_published_runs_that_the_config_leaves_out_are_not_read(
    trained: Layout, config: Config, write: Any
) -> None:
    """Ask for fewer seeds than the records have."""
    more = {**SETTINGS, "figures": {**SETTINGS["figures"]}}
    more["figures"]["f"] = {**SETTINGS["figures"]["f"], "seeds": [0, 1, 2]}
    wider = load(more)
    for key in set(run_table(wider)) - set(run_table(config)):
        shown = {"run": str(key), **dataclasses.asdict(key)}
        write(trained.run(key), shown, resolve_key(wider, key), {200: [-1.0], 400: [-1.0]})
    publish(trained, wider)
    assert set(read_runs(trained, as_published(wider), "f")[0]["seed"]) == {0, 1, 2}
    table, absent = read_runs(trained, as_published(config), "f")
    assert set(table["seed"]) == {0, 1} and absent == []


@pytest.mark.parametrize(
    ("end", "content", "message"),
    [
        (".parquet", b"PAR1 not so", "records .*: "),
        (".json", b"{}", "test.json is not a manifest"),
        (".json", b'{"format": 2}', "test.json is not a manifest"),
        (
            ".json",
            b'{"format": 1, "sha256": "", "made": [], "runs": {}}',
            "found format 1, expected 2; restore them, or delete them and gather the runs again "
            "with `ngt publish --scale test`",
        ),
    ],
)
def test_other_files_are_refused(
    trained: Layout, config: Config, end: str, content: bytes, message: str
) -> None:
    publish(trained, config)
    trained.published.with_suffix(end).write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_runs(trained, as_published(config), "f")


def test_no_records_say_what_to_do(layout: Layout, config: Config) -> None:
    wanted = as_published(config)
    said = r"test.parquet is missing; write `records: trained`, or .* with `ngt publish {}`"
    with pytest.raises(UserError, match=said.format("--scale test")):
        read_runs(layout, wanted, "f")
    study = dataclasses.replace(wanted, study="mine")
    with pytest.raises(UserError, match=said.format("--scale test --config YOUR.yaml")):
        read_runs(Layout.of(study, layout.root), study, "f")


def with_settings(**changes: Any) -> Config:
    return load({**SETTINGS, "records": "published", **changes})


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": {"ngt": {"params": {"m": 7}}}}, "params.m is 4 in the records and 7 in the"),
        ({"methods": {"ngt": {"sac": {"gamma": 0.5}}}}, "sac.gamma is 0.99 in the records and 0.5"),
        (
            {"expert": {"episodes": 4, "sac": {"gamma": 0.5}}},
            "its expert's sac.gamma is 0.99 in the records",
        ),
    ],
)
def test_other_settings_are_refused_with_the_first_difference(
    trained: Layout, config: Config, changes: dict[str, Any], message: str, partial: bool
) -> None:
    publish(trained, config)
    with pytest.raises(UserError) as caught:
        read_runs(trained, with_settings(**changes), "f", allow_partial=partial)
    assert f"run {FIRST}: {message}" in str(caught.value)
    assert str(trained.published) in str(caught.value) and "--other-settings" in str(caught.value)


def test_other_settings_are_read_when_asked(trained: Layout, config: Config) -> None:
    publish(trained, config)
    other = with_settings(sac={"gamma": 0.5})
    status = Published(trained.published, other).status(RunKey.parse(FIRST))
    assert status.status == "stale" and "sac.gamma is 0.99" in status.note
    assert len(read_runs(trained, other, "f", other_settings=True)[0]) == 8
    with pytest.raises(UserError, match=r"expert Pendulum-v1: sac\.gamma is 0\.99"):
        Published(trained.published, other).read_expert("Pendulum-v1")
    asked = Published(trained.published, other, other_settings=True)
    assert asked.status(RunKey.parse(FIRST)).status == "finished"
    assert asked.read_expert("Pendulum-v1").run["status"] == "finished"


def test_settings_of_another_cell_do_not_matter(trained: Layout, config: Config) -> None:
    publish(trained, config)
    for other in ({"methods": {"bc": {"train": {"batch": 7}}}}, {"window": 2}, {"pack": 3}):
        assert len(read_runs(trained, with_settings(**other), "f")[0]) == 8


def test_the_manifest_has_each_cells_settings_once(trained: Layout, config: Config) -> None:
    manifest = publish(trained, config)
    assert len(manifest["cells"]) == 2, "the runs must share one entry; the expert has another"
    of_run = manifest["cells"][manifest["runs"][FIRST]["cell"]]
    assert of_run["method"] == "ngt" and of_run["params"]["m"] == 4
    assert of_run["sac"]["gamma"] == 0.99 and of_run["train"]["steps"] == config.train.steps


def change_cell(layout: Layout, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the settings that the manifest has for the first run, and update their hash."""
    file = layout.published.with_suffix(".json")
    manifest = read_json(file)
    assert manifest is not None
    at = manifest["runs"][FIRST]["cell"]
    change(manifest["cells"][at])
    for run in manifest["runs"].values():
        if run["cell"] == at:
            run["config_hash"] = settings_hash(manifest["cells"][at])
    write_json(file, manifest)


def test_a_setting_newer_than_the_records_has_its_default(trained: Layout, config: Config) -> None:
    publish(trained, config)

    def older(cell: dict[str, Any]) -> None:
        del cell["normalise_obs"], cell["params"]["spectral_norm"]

    change_cell(trained, older)
    assert len(read_runs(trained, as_published(config), "f")[0]) == 8
    with pytest.raises(UserError, match=r"normalise_obs is false in the records and true"):
        read_runs(trained, with_settings(normalise_obs=True), "f")


def test_a_setting_that_is_no_more_is_named(trained: Layout, config: Config) -> None:
    publish(trained, config)
    change_cell(trained, lambda cell: cell.update(colour="red"))
    with pytest.raises(UserError, match=r"colour: unknown key"):
        read_runs(trained, as_published(config), "f")


def test_a_model_that_is_no_more_is_named(trained: Layout, config: Config) -> None:
    publish(trained, config)
    change_cell(trained, lambda cell: cell.update(model="baselines.none:None"))
    (first,) = (key for key in run_table(config) if str(key) == FIRST)
    records = Published(trained.published, as_published(config))
    with pytest.raises(UserError, match=r"^records .*'baselines.none:None' can't be loaded"):
        records.status(first)


def test_settings_are_those_of_the_hash(trained: Layout, config: Config) -> None:
    publish(trained, config)
    file = trained.published.with_suffix(".json")
    file.write_text(file.read_text().replace('"gamma": 0.99', '"gamma": 0.5'))
    with pytest.raises(UserError, match="has no valid settings"):
        Published(trained.published, config)


def test_parquet_of_no_rows() -> None:
    assert to_parquet(pd.DataFrame({c: [] for c in COLUMNS}))[:4] == b"PAR1"


def test_records_of_another_scale_are_refused(trained: Layout, config: Config) -> None:
    publish(trained, config)
    other = dataclasses.replace(config, scale="lite")
    with pytest.raises(UserError, match=r"their scale is test, but the config's is lite"):
        Published(trained.published, other)


# --- records of several results folders


@pytest.fixture
def apart(trained: Layout, config: Config) -> tuple[Layout, Layout]:
    """Move the runs with 4 demonstrations to another results folder; return both layouts."""
    other = Layout("test", trained.root / "other")
    for key in run_table(config):
        if key.demos == 4:
            other.run(key).parent.mkdir(parents=True, exist_ok=True)
            trained.run(key).rename(other.run(key))
    return trained, other


def test_runs_of_several_folders_are_gathered(
    apart: tuple[Layout, Layout], config: Config, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"run \S+: missing"):
        publish(apart[0], config)
    merged = Layout("test", tmp_path / "merged")
    manifest = publish(merged, config, sources=apart)
    assert manifest["missing"] == []
    assert manifest["runs"].keys() == {*map(str, run_table(config)), "Pendulum-v1/expert"}
    here = Folders(apart[0], config).read(RunKey.parse(FIRST)).evaluations
    rows = pd.read_parquet(merged.published)
    assert rows[rows["run"] == FIRST]["return"].tolist() == here["return"].tolist()


def test_runs_published_before_are_kept(
    apart: tuple[Layout, Layout], config: Config, write: Any
) -> None:
    """Publish one folder, lose it, and publish another: both are in the records."""
    trained, other = apart
    first = publish(trained, config, allow_partial=True)
    rows = pd.read_parquet(trained.published)
    shutil.rmtree(trained.run(RunKey.parse(FIRST)).parents[3])
    shutil.rmtree(trained.expert("Pendulum-v1"))
    second = publish(trained, config, sources=[other])
    assert second["missing"] == [] and len(second["runs"]) == 5
    for name, own in first["runs"].items():
        kept = second["runs"][name]
        assert {**kept, "made": None, "cell": None} == {**own, "made": None, "cell": None}
        assert second["cells"][kept["cell"]] == first["cells"][own["cell"]]
        assert second["made"][kept["made"]] == first["made"][own["made"]]
    after = pd.read_parquet(trained.published)
    same = after[after["run"].isin(first["runs"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(same.astype({"run": "str"}), rows.astype({"run": "str"}))
    key = RunKey.parse(FIRST)  # trained again: its new result replaces the published one
    again = {"run": FIRST, **dataclasses.asdict(key)}
    write(trained.run(key), again, resolve_key(config, key), {200: [-1.0, -2.0]})
    publish(trained, config)
    assert Published(trained.published, config).read(key).evaluations["return"].tolist() == [-1.5]


def test_runs_published_with_other_settings_are_not_kept(trained: Layout, config: Config) -> None:
    publish(trained, config)
    changed = load({**SETTINGS, "methods": {"ngt": {"sac": {"gamma": 0.9}}}})
    with pytest.raises(UserError, match=r"run \S+: stale"):
        publish(trained, changed)
    with pytest.raises(UserError, match="no run of scale test is complete"):
        publish(trained, changed, allow_partial=True)


def test_a_run_in_two_folders_must_have_one_result(
    apart: tuple[Layout, Layout], config: Config, write: Any
) -> None:
    trained, other = apart
    key = RunKey.parse(FIRST)
    again = (other.run(key), {"run": FIRST, **dataclasses.asdict(key)}, resolve_key(config, key))
    write(*again, {200: [-900.0, -700.0], 400: [-500.0, -400.1]})
    assert publish(trained, config, sources=apart)["missing"] == []
    shutil.rmtree(other.run(key))
    write(*again, {200: [-900.0, -700.0], 400: [-500.0, -400.2]})
    with pytest.raises(UserError, match=f"run {FIRST}: the results in .* differ"):
        publish(trained, config, sources=apart)
    shutil.rmtree(other.run(key))
    shutil.rmtree(trained.run(key))
    write(*again, {200: [-900.0, -700.0]}, demos="b" * 64)
    with pytest.raises(UserError, match="its demonstrations are not those of run"):
        publish(trained, config, sources=apart)


def test_the_command_names_a_folder_that_is_missing(capsys: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["publish", "--scale", "test", "--from", str(tmp_path / "lost")])
    assert stopped.value.code == 2
    assert "--from: " in (said := capsys.readouterr().err) and said.count("\n") == 1


def test_the_command_refuses_a_folder_without_results(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name the parent folder, and the scale's folder, in place of the root folder."""
    monkeypatch.chdir(tmp_path)
    for kind in ("runs", "experts"):
        (tmp_path / kind / "results/test" / kind).mkdir(parents=True)
        for wrong in (kind, f"{kind}/results/test", f"{kind}/results/test/{kind}"):
            with pytest.raises(SystemExit) as stopped:
                cli.main(["publish", "--scale", "test", "--allow-partial", "--from", wrong])
            assert stopped.value.code == 2
            assert capsys.readouterr().err == (
                f"ngt: error: --from: {wrong} has no results of scale test; name a root folder, "
                f"which contains test/runs\n"
            )
        with pytest.raises(SystemExit):
            cli.main(["publish", "--scale", "test", "--from", f"{kind}/results"])
        assert ": missing; train it first" in capsys.readouterr().err
    study = ["--set", "study=mine", "--from", "runs/results"]
    with pytest.raises(SystemExit):
        cli.main(["publish", "--scale", "test", *study])
    assert "has no results of scale test; name a root folder, which contains mine/test/runs" in (
        capsys.readouterr().err
    )


def test_a_run_that_no_folder_has_complete_is_named_with_its_fault(
    apart: tuple[Layout, Layout], config: Config
) -> None:
    trained, other = apart
    key = next(key for key in run_table(config) if key.demos == 4)
    with open(other.run(key) / "eval.csv", "a") as file:
        file.write("400,9,1,200\n")
    for sources in (apart, apart[::-1]):
        with pytest.raises(UserError) as caught:
            publish(trained, config, sources=sources)
        assert str(caught.value) == (
            f"run {key}: damaged in {other.root} ({other.run(key)}/eval.csv was changed or damaged "
            f"(checksum)); train it first, or publish the complete runs with --allow-partial"
        )
