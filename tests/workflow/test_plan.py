"""The plan: missing runs and their packs, receipts, and outdated files.

A pack is a group of runs trained together.
A receipt is a file `done.HASH` beside a result, which certifies that the result is complete.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.errors import UserError
from ngt.experience import demos, shipped
from ngt.experience.envs import TASKS
from ngt.files import write_json
from ngt.runs.folder import expert_key
from ngt.runs.former import set_aside
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.receipt import certify
from ngt.settings.config import SacConfig
from ngt.settings.load import load
from ngt.settings.resolve import expert_config, resolve
from paper.document import latex
from paper.drawing.stamps import stamp
from paper.register import FIGURES, REPORT
from workflow.plan import Plan, read
from workflow.resources import Site, host_mb

ROOT = Path(__file__).resolve().parents[2]
SMALL: dict[str, Any] = {
    "scale": "test",
    "figures": {
        "main_figure": {
            "methods": ["ngt", "bc", "red"],
            "envs": ["Pendulum-v1"],
            "demos": [1, 2],
            "seeds": [0, 1],
        },
        "grid_figure": None,
        "seeds_figure": {"methods": ["ngt"], "demos": [1], "seeds": [0, 1, 2]},
        "dmc_figure": None,
        "speed_table": None,
        "ablation_mse_softmax": None,
        "ablation_hlg_elsewhere": None,
        "ablation_init": None,
        "ablation_spectral_norm": None,
        "ablation_embedding": None,
        "ablation_sigma": None,
        "pairing_figure": None,
        "penalty_figure": None,
        "controls_figure": None,
        "readings_figure": None,
        "beyond_figure": None,
    },
}


def plan(root: Path, differences: Any = None, site: Site | None = None, **options: Any) -> Plan:
    """Return the plan of the small grid, with some differences, for the results under `root`."""
    config = load({**SMALL, **(differences or {})})
    return Plan(config, Layout(config.scale, root / "results"), site or Site(), **options)


def complete(made: Plan, keys: Iterable[RunKey]) -> None:
    """Write the folders of complete runs, and their receipts."""
    for key in keys:
        folder = made.layout.run(key)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "eval.csv").touch()
        record = {
            "key": key.record,
            "config_hash": made.folders.hashes(key)[0],
            "status": "finished",
            "reference": made.folders.reference(key.env),
        }
        write_json(folder / "run.json", record)
        Path(made.run_receipt(key)).touch()


@pytest.fixture
def made(tmp_path: Path) -> Plan:
    """Return the plan of the small grid after every run is complete."""
    empty = plan(tmp_path)
    complete(empty, empty.runs)
    found = plan(tmp_path)
    assert found.missing == [] and found.run_hashes() == [] and found.packs == []
    return found


def methods(keys: Iterable[RunKey]) -> set[str]:
    return {key.method for key in keys}


# ---------------------------------------------------------------- runs and packs


def test_from_nothing_each_run_has_one_pack(tmp_path: Path) -> None:
    empty = plan(tmp_path)
    assert empty.missing == run_table(empty.config) and len(empty.missing) == 13
    assert sorted(key for pack in empty.packs for key in pack) == empty.missing
    assert len(empty.run_hashes()) == 13
    # seeds_figure also uses two of NGT's runs. These get their own pack, as does its third seed.
    assert sorted(map(len, empty.packs)) == [1, 2, 2, 4, 4]
    found = empty.run("Pendulum-v1/bc/state-action-demos2-rate20/seed1")
    pack = f"{empty.work}/packs/Pendulum-v1/bc/state-action-rate20/1.0-1_2.0-1"
    assert found.files == [f"{pack}.done"]
    key = RunKey("Pendulum-v1", "bc", "state-action", 20, 2, 1)
    assert found.outdated == [empty.run_receipt(key), f"{pack}.done", f"{pack}.outcome"]
    assert empty.members("Pendulum-v1", "bc", "state-action", "20", "1.0-1_2.0-1") == [
        str(k) for k in empty.missing if k.method == "bc"
    ]


@pytest.mark.parametrize("pack", [1, 3])
def test_the_pack_size_retrains_nothing(made: Plan, tmp_path: Path, pack: int) -> None:
    assert plan(tmp_path, {"pack": pack}).run_hashes() == []
    key = made.folders.layout.run(run_table(made.config)[0])
    shutil.rmtree(key)
    assert list(map(len, plan(tmp_path, {"pack": pack}).packs)) == [1]


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ({"methods": {"ngt": {"params": {"lr": 0.002}}}}, {"ngt", "red"}),
        ({"methods": {"bc": {"train": {"batch": 8}}}}, {"bc"}),
        ({"sac": {"gamma": 0.98}}, {"ngt", "bc", "red"}),
        ({"window": 3}, set()),
    ],
)
def test_a_changed_setting_retrains_what_uses_it(
    made: Plan, tmp_path: Path, differences: dict[str, Any], expected: set[str]
) -> None:
    found = plan(tmp_path, differences)
    assert methods(found.missing) == expected
    assert (
        len(found.missing)
        == len(found.run_hashes())
        == sum(key.method in expected for key in made.runs)
    )


def test_former_runs_come_back_without_a_pack(made: Plan, tmp_path: Path) -> None:
    other = {"methods": {"bc": {"train": {"batch": 8}}}}
    runs = [key for key in made.runs if key.method == "bc"]
    changed = plan(tmp_path, other)
    assert changed.moves() == [
        f"runs with other settings, or damaged: {len(runs)}; training them again moves their "
        f"results to {tmp_path}/results/test/former"
    ]
    for key in runs:
        set_aside(made.layout.run(key))
    complete(changed, runs)
    back = plan(tmp_path)
    assert back.missing == [] and back.packs == [] and len(back.run_hashes()) == len(runs)
    assert back.run(str(runs[0])) == ([], [back.run_receipt(runs[0])])
    (said,) = back.moves()
    assert "without training: 4" in said
    for key in runs:
        certify(Path(back.run_receipt(key)))
    assert plan(tmp_path).run_hashes() == []
    assert plan(tmp_path, other).missing == []


def test_a_former_expert_comes_back_without_a_job(tmp_path: Path) -> None:
    own = {"envs": {"Pendulum-v1": {"demos": ""}}}
    made, env = plan(tmp_path, own), "Pendulum-v1"
    folder = made.layout.expert(env)
    folder.mkdir(parents=True)
    (folder / "eval.csv").touch()
    record = {"key": expert_key(env, 1000), "config_hash": made.expert_hash[env]}
    write_json(folder / "run.json", {**record, "status": "finished"})
    set_aside(folder)
    back = plan(tmp_path, own)
    receipt = back.expert_receipt(env)
    assert back.expert(env) == ([], [receipt]) and back.expert_hash[env] in back.expert_hashes()
    certify(Path(receipt))
    found = plan(tmp_path, own)
    assert found.expert(env) == ([], []) and found.expert_hash[env] not in found.expert_hashes()


RECORDED = {"envs": {"Pendulum-v1": {"demos": ""}}}  # use recorded demos, not those of scale `test`


def record(root: Path, differences: dict[str, Any]) -> None:
    """Write the folder of a complete expert with an untrained policy, record it, add receipts."""
    made, env = plan(root, differences), "Pendulum-v1"
    folder, expert = made.layout.expert(env), expert_config(made.config, env)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "eval.csv").touch()
    result = {"key": expert_key(env, expert.seed), "config_hash": made.expert_hash[env]}
    write_json(folder / "run.json", {**result, "status": "finished"})
    sac = SacConfig(hidden=(4,))
    tensors = Policy(Actor(3, 1, sac, [expert.seed]), None).snapshot(0)
    policy.save(folder / shipped.POLICY, tensors, env, sac)
    data = demos.record(
        env,
        policy.load(folder / shipped.POLICY)[0],
        expert.episodes,
        expert.seed,
        source=made.expert_hash[env],
        terminate_when_unhealthy=True,
    )
    demos.save(made.layout.demos(env), data)
    for receipt in (made.expert_receipt(env), made.recording_receipt(env)):
        certify(Path(receipt))


@pytest.mark.parametrize("expert", [{"seed": 5}, {"episodes": 4}, {"episodes": 2}])
def test_another_recording_is_made_and_imitated(tmp_path: Path, expert: dict[str, int]) -> None:
    """Change the expert's seed or episodes, which the hash of the expert's settings leaves out."""
    env, other = "Pendulum-v1", {**RECORDED, "expert": expert}
    record(tmp_path, RECORDED)
    first = plan(tmp_path, RECORDED)
    complete(first, first.runs)
    same = plan(tmp_path, RECORDED)
    assert same.missing == [] and same.run_hashes() == [] and same.moves() == []
    assert same.expert(env) == same.recording(env) == ([], [])

    changed = plan(tmp_path, other)
    assert changed.expert_hash == same.expert_hash
    assert changed.missing == changed.runs, "every run imitated the former recording"
    receipt = changed.recording_receipt(env)
    assert receipt in changed.recording(env).outdated and changed.recording(env).files
    assert changed.expert_hash[env] in changed.recording_hashes()
    assert changed.expert_in_place(env) == ("seed" not in expert)
    assert bool(changed.expert(env).files) == ("seed" in expert)

    if "seed" in expert:
        set_aside(changed.layout.expert(env))
    record(tmp_path, other)
    recorded = plan(tmp_path, other)
    assert recorded.recording(env) == recorded.expert(env) == ([], [])
    assert recorded.missing == recorded.runs
    complete(recorded, recorded.runs)
    done = plan(tmp_path, other)
    assert done.missing == [] and done.run_hashes() == [] and done.moves() == []

    back = plan(tmp_path, RECORDED)
    assert back.missing == back.runs and back.recording(env).files
    # The expert with the former seed is in former/. A receipt does not show the seed, so the job
    # `ngt expert` restores this expert.
    assert bool(back.expert(env).files) == ("seed" in expert)


def test_a_former_expert_comes_back_by_its_receipt_only_if_it_is_the_newest(tmp_path: Path) -> None:
    env, other = "Pendulum-v1", {**RECORDED, "expert": {"seed": 5}}
    for settings in (RECORDED, other):
        record(tmp_path, settings)
        set_aside(plan(tmp_path, settings).layout.expert(env))
    older, newer = plan(tmp_path, RECORDED), plan(tmp_path, other)
    assert older.expert(env).files and older.expert_hash == newer.expert_hash
    assert newer.expert(env) == ([], [newer.expert_receipt(env)])
    certify(Path(newer.expert_receipt(env)))
    assert plan(tmp_path, other).expert_in_place(env)


def test_an_artefact_outside_the_studys_folder_is_refused() -> None:
    config = load({**SMALL, "study": "mine"})
    made = Plan(config, Layout.of(config), Site(), main=False)
    made.check_targets(["results/mine/main_figure.pdf", "--config", "mine.yaml"])
    with pytest.raises(UserError, match=r"request results/mine/main_figure\.pdf$"):
        made.check_targets(["-n", "results/main_figure.pdf"])
    assert made.everything()[0].startswith("results/mine/")
    plan(Path(".")).check_targets(["results/main_figure.pdf"])


def test_an_added_seed_leaves_finished_runs_alone(made: Plan, tmp_path: Path) -> None:
    figure = {**SMALL["figures"]["main_figure"], "seeds": [0, 1, 2]}
    found = plan(tmp_path, {"figures": {**SMALL["figures"], "main_figure": figure}})
    # seeds_figure already has NGT's third seed with one demonstration.
    assert {(k.method, k.demos, k.seed) for k in found.missing} == {
        ("ngt", 2, 2),
        ("bc", 1, 2),
        ("bc", 2, 2),
        ("red", 1, 2),
        ("red", 2, 2),
    }


def test_a_lost_receipt_costs_no_training(made: Plan, tmp_path: Path) -> None:
    key = run_table(made.config)[0]
    Path(made.run_receipt(key)).unlink()
    found = plan(tmp_path)
    assert found.missing == [] and found.run_hashes() == [found.run_hash(key)]
    assert found.run(str(key)) == ([], [made.run_receipt(key)])


@pytest.mark.parametrize("file", ["run.json", "eval.csv"])
def test_a_damaged_run_is_trained_again_whatever_its_receipt(
    made: Plan, tmp_path: Path, file: str
) -> None:
    key = run_table(made.config)[0]
    (made.layout.run(key) / file).unlink()
    assert Path(made.run_receipt(key)).exists()
    found = plan(tmp_path)
    assert found.missing == [key] and found.run_hashes() == [found.run_hash(key)]


def test_the_process_of_a_job_looks_at_no_run(tmp_path: Path) -> None:
    job = plan(tmp_path, main=False)
    assert job.missing == job.packs == job.run_hashes() == [] and job.retries() == 0
    assert job.expert("walker-walk") == job.recording("walker-walk") == ([], [])


def test_packs_are_cut_to_fit_the_site(tmp_path: Path) -> None:
    empty = plan(tmp_path)
    cell = resolve(empty.config, "Pendulum-v1", "bc", "state-action", 20)
    site = Site(memory_gb=host_mb(cell, 3, Site()) / 1000)
    sizes = [
        sorted(len(pack) for pack in found.packs if pack[0].method == "bc")
        for found in (empty, plan(tmp_path, site=site))
    ]
    assert sizes == [[4], [1, 3]]


# ---------------------------------------------------------------- scale paper


@pytest.fixture(scope="module")
def paper() -> Plan:
    """Return the plan of the paper's grid before any run."""
    return Plan(load({"scale": "paper"}), Layout("paper", Path("/nowhere")), Site())


def test_a_timed_run_is_alone(paper: Plan) -> None:
    timed = [pack for pack in paper.packs if pack[0].method.startswith("speed-")]
    assert len(timed) == 42 and {len(pack) for pack in timed} == {1}
    assert max(map(len, paper.packs)) > 1


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("main_figure", 720),
        ("grid_figure", 72),
        ("seeds_figure", 20),
        ("dmc_figure", 252),
        ("speed_figure", 42),
        ("claims_table", 1526),
        ("pairing_figure", 120),
        ("penalty_figure", 128),
        ("controls_figure", 136),
        ("readings_figure", 88),
        ("beyond_figure", 36),
    ],
)
def test_runs_of_the_papers_artefacts(paper: Plan, name: str, runs: int) -> None:
    """Count the runs that each artefact (figure or table) shows.

    The paper's total is 720 + 60 + 12 + 12 + 20 + 24 + 24 + 12 + 252 + 14 = 1150. The split into
    these numbers is ours. Our grids add 28 repeats for the speed table, 12 runs for ablation_sigma,
    92 + 80 + 80 + 56 runs for the four figures of pairings, penalties, controls and readings, and
    28 runs of methods beyond the paper.
    An artefact's number includes the runs that it draws for comparison.
    """
    receipts = [file for file in paper.artefact(name).files if "/done." in file]
    assert len(receipts) == len(set(receipts)) == runs


def test_the_docs_count_the_runs(paper: Plan) -> None:
    """Check each row of the table in docs/artefacts.md, and the total at each scale."""
    text = (ROOT / "docs" / "artefacts.md").read_text()
    rows = re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\| (\d+) \|", text, re.MULTILINE)
    figures = paper.config.figures
    assert dict(rows) == {name: str(len(run_table(paper.config, [name]))) for name in figures}
    lite, quick, small = (len(run_table(load({"scale": s}))) for s in ("lite", "quick", "test"))
    told = f"{len(paper.runs)} runs ({lite} at `lite`, {quick} at `quick`, {small} at `test`)"
    assert told in " ".join(text.split())


def test_the_papers_packs_are_cells(paper: Plan) -> None:
    """Check that a method's runs on an env are one pack, except for NGT on HalfCheetah-v4.

    These have two packs, because seeds_figure also uses some of the runs.
    """
    keys = run_table(paper.config, ["main_figure"])
    assert len({paper.pack_of[key] for key in keys}) == 10 * 6 + 1


@pytest.mark.parametrize(
    ("figure", "own", "shared"),
    [
        ("ablation_mse_softmax", 12, 12),
        ("ablation_hlg_elsewhere", 20, 20),
        ("ablation_init", 24, 24),
        ("ablation_spectral_norm", 24, 24),
        ("ablation_embedding", 12, 4),
    ],
)
def test_ablations_add_their_own_runs_to_the_main_figures(
    paper: Plan, figure: str, own: int, shared: int
) -> None:
    main = {paper.run_receipt(key) for key in run_table(paper.config, ["main_figure"])}
    receipts = set(paper.artefact(figure).files)
    assert (len(receipts - main), len(receipts & main)) == (own, shared)


# ---------------------------------------------------------------- experts and demonstrations


def test_every_expert_that_should_ship_does() -> None:
    found = read({"scale": "lite"})
    assert found.unshipped() == [] and found.shipping() == ([], [])


def test_an_expert_that_does_not_ship_is_to_be_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    env = next(env for env in TASKS if TASKS[env].aim is not None)
    ships = shipped.ships
    monkeypatch.setattr(shipped, "ships", lambda name: name != env and ships(name))
    found = read({"scale": "lite"})
    assert found.unshipped() == [env]
    receipt = f"results/lite/shipped/{env}.done.{found.expert_hash[env]}"
    page = "results/lite/shipped/page.done"
    assert found.shipping() == ([receipt], [receipt, page]), "the files may be from before its loss"


def test_a_missing_expert_is_trained_and_recorded(tmp_path: Path) -> None:
    env = "Pendulum-v1"
    found = plan(tmp_path, {"envs": {env: {"demos": ""}}})
    outcome = f"{found.work}/packs/{env}/{{}}/{found.expert_hash[env]}.outcome"
    for inputs, job, receipt in (
        (found.expert(env), "expert", found.expert_receipt(env)),
        (found.recording(env), "record", found.recording_receipt(env)),
    ):
        assert inputs == ([outcome.format(job)], [receipt, outcome.format(job)])
    assert found.demos(env) == found.recording_receipt(env)
    assert found.expert_hash[env] in found.expert_hashes()
    assert found.expert_hash[env] in found.recording_hashes()


def test_a_receipt_hides_no_missing_expert_of_a_missing_run(tmp_path: Path) -> None:
    env, differences = "Pendulum-v1", {"envs": {"Pendulum-v1": {"demos": ""}}}
    found = plan(tmp_path, differences)
    for receipt in (found.expert_receipt(env), found.recording_receipt(env)):
        Path(receipt).parent.mkdir(parents=True, exist_ok=True)
        Path(receipt).touch()
    again = plan(tmp_path, differences)
    assert again.expert_hash[env] in again.expert_hashes()
    assert again.expert_hash[env] in again.recording_hashes()
    job = plan(tmp_path, differences, main=False)
    assert job.expert_hash[env] not in job.expert_hashes()


def test_ones_own_demonstrations_need_no_expert(tmp_path: Path) -> None:
    own = {"Hopper-v4": {"demos": "data/Hopper-v4/demos.npz"}}
    figures = {**SMALL["figures"], "seeds_figure": None}
    figure = {"methods": ["bc"], "envs": ["Hopper-v4", "Walker2d-v4"], "demos": [1], "seeds": [0]}
    found = plan(tmp_path, {"envs": own, "figures": {**figures, "main_figure": figure}})
    assert found.demos("Hopper-v4") == "data/Hopper-v4/demos.npz"
    assert found.demos("Walker2d-v4") == found.recording_receipt("Walker2d-v4")
    assert found.artefact("expert_figure").files == [found.expert_receipt("Walker2d-v4")]


@pytest.mark.parametrize(
    ("file", "demos", "message"),
    [
        ("tests/data/Pendulum-v1.npz", [1, 99], "requested 99, found 4 episodes; request 1 to 4"),
        ("README.md", [1], r"README\.md"),
        ("data/Hopper-v4/demos.npz", [1], r"Hopper-v4"),
    ],
)
def test_ones_own_demonstrations_are_read_before_any_job(
    tmp_path: Path, file: str, demos: list[int], message: str
) -> None:
    figure = {**SMALL["figures"]["main_figure"], "demos": demos}
    settings = {
        "envs": {"Pendulum-v1": {"demos": file}},
        "figures": {**SMALL["figures"], "seeds_figure": None, "main_figure": figure},
    }
    run = f"Pendulum-v1/bc/state-action-demos{demos[-1]}-rate20/seed0"
    with pytest.raises(UserError, match=message) as error:
        plan(tmp_path, settings).demos("Pendulum-v1", [run])
    assert "\n" not in str(error.value)
    plan(tmp_path, settings, main=False).demos("Pendulum-v1", [run])


def test_shipped_demonstrations_are_read_before_any_job(tmp_path: Path) -> None:
    figure = {"methods": ["bc"], "envs": ["Hopper-v4"], "demos": [2], "rates": [800], "seeds": [0]}
    figures = {**SMALL["figures"], "seeds_figure": None, "main_figure": figure}
    found = plan(tmp_path, {"demos": "shipped", "figures": figures})
    run = ["Hopper-v4/bc/state-action-demos2-rate800/seed0"]
    assert found.demos("Hopper-v4", run) == "data/Hopper-v4/demos.npz"

    def with_a_short_episode(file: Path, env: str) -> demos.Demos:
        data = demos.load(file, env)
        length = data.length.copy()
        length[1] = 700
        return dataclasses.replace(data, length=length)

    found.read_demos = with_a_short_episode
    with pytest.raises(
        UserError, match=r"demos\.npz: episode 1 has 700 steps, fewer than rate 800"
    ):
        found.demos("Hopper-v4", run)


def test_an_artefact_is_refused_if_it_cannot_show_its_runs(tmp_path: Path) -> None:
    figure = {**SMALL["figures"]["main_figure"], "rates": [10, 20]}
    found = plan(tmp_path, {"figures": {**SMALL["figures"], "main_figure": figure}})
    with pytest.raises(UserError, match=r"figures\.main_figure\.rates: found \[10, 20\]"):
        found.artefact("main_figure")


def test_an_artefact_without_runs_is_refused_before_any_job(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"figures\.dmc_figure: dmc_figure has no runs at scale"):
        plan(tmp_path).artefact("dmc_figure")


def test_an_env_without_shipped_demonstrations_stops_only_what_needs_it(tmp_path: Path) -> None:
    figures = {
        **SMALL["figures"],
        "main_figure": {"methods": ["bc"], "envs": ["Hopper-v4"], "demos": [1], "seeds": [0]},
        "seeds_figure": {"methods": ["bc"], "envs": ["Reacher-v5"], "demos": [1], "seeds": [0]},
    }
    found = plan(tmp_path, {"demos": "shipped", "figures": figures})
    assert len(found.artefact("main_figure").files) == 1
    assert found.artefact("expert_figure").files == ["data/Hopper-v4/expert.json"]
    with pytest.raises(UserError, match="no expert of Reacher-v5 ships"):
        found.artefact("seeds_figure")


def test_a_name_that_snakemake_would_fill_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "my {demos}.npz"
    shutil.copy(ROOT / "tests/data/Pendulum-v1.npz", file)
    found = plan(tmp_path, {"envs": {"Pendulum-v1": {"demos": str(file)}}})
    with pytest.raises(UserError, match="braces"):
        found.demos("Pendulum-v1")


# ---------------------------------------------------------------- artefacts and settings


def test_an_artefact_is_outdated_unless_drawn_from_what_exists(made: Plan, tmp_path: Path) -> None:
    own = [f"{tmp_path}/results/main_figure.{ending}" for ending in ("pdf", "png")]
    found = made.artefact("main_figure")
    keys = run_table(made.config, ["main_figure"])
    assert found == ([made.run_receipt(key) for key in keys], own)
    for file in own:
        Path(file).write_text(f"... {stamp(made.config, made.layout, FIGURES['main_figure'])} ...")
    assert made.artefact("main_figure").outdated == []
    assert plan(tmp_path).artefact("main_figure").outdated == []
    record = made.layout.run(keys[0]) / "run.json"
    record.write_text(record.read_text().replace("finished", "diverged"))
    assert plan(tmp_path).artefact("main_figure").outdated == own
    assert plan(tmp_path, {"window": 3}).artefact("main_figure").outdated == own


def test_a_report_is_outdated_with_a_part_of_it(made: Plan, tmp_path: Path) -> None:
    page = tmp_path / "results/report.html"
    page.write_text(stamp(made.config, made.layout, REPORT, "png"))
    assert made.artefact("report").outdated == []
    part = Path(made.parts("png")[0])
    assert part.name == "method_diagram.png"
    part.write_text("drawn anew")
    assert plan(tmp_path).artefact("report").outdated == [str(page)]


def test_settings_are_outdated_if_cut(made: Plan) -> None:
    file = Path(made.settings_file)
    assert made.settings() == ([str(file)], [])
    file.parent.mkdir(parents=True)
    file.write_text(made.settings_text)
    assert made.settings().outdated == []
    file.write_text(made.settings_text[:-9])
    assert made.settings().outdated == [str(file)]


def test_without_latex_everything_else_is_made(made: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for reason in ("", "pdflatex is not installed"):
        monkeypatch.setattr(latex, "lacking", lambda reason=reason: reason)
        names = {Path(file).name for file in made.everything()}
        assert ("paper.pdf" in names) == (not reason) and {"report.html"} < names
    with pytest.raises(UserError, match=r"results/paper\.pdf: pdflatex is not installed"):
        made.artefact("paper")
    assert "main_figure.pdf" in names and "dmc_figure.pdf" not in names


# ---------------------------------------------------------------- published records


def test_published_records_need_no_run() -> None:
    found = read({"scale": "quick", "records": "published"})
    assert found.artefact("main_figure").files == [
        "results/published/quick.parquet",
        "results/published/quick.json",
    ]
    assert found.artefact("method_diagram").files == []


def test_what_is_not_published_is_not_requested() -> None:
    other = {"methods": ["ngt-l1"], "envs": ["Pusher-v5"], "demos": [4], "seeds": [0]}
    found = read({"records": "published", "figures": {"pairing_figure": other}})
    assert "results/pairing_figure.png" not in found.parts("png")
    assert "results/pairing_figure.pdf" not in found.everything()
    assert "results/main_figure.png" in found.parts("png")
    with pytest.raises(UserError, match=r"pairing_figure: none of its runs is published in"):
        found.artefact("pairing_figure")


@pytest.mark.parametrize(
    ("differences", "message"),
    [
        ({"sac": {"gamma": 0.5}}, r"sac\.gamma is 0\.99 in the records and 0\.5 in the config"),
        (
            {"methods": {"ngt-kaiming": {"train": {"batch": 32}}}},
            "",
        ),  # the main figure lacks this method
    ],
)
def test_published_records_with_other_settings(differences: dict[str, Any], message: str) -> None:
    found = read({"records": "published", **differences})
    if message:
        with pytest.raises(UserError, match=message):
            found.artefact("main_figure")
    else:
        assert len(found.artefact("main_figure").files) == 2


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"scale": "paper", "records": "published"}, "paper.parquet.*write `records: trained`"),
        ({"scal": "test"}, "scal: unknown key; did you mean scale"),
        ({"clustr": {"partition": "cpu"}}, "clustr: unknown key; did you mean cluster"),
        ({"train": "{steps: 8}"}, "found text"),
        ({"train": {"steps": "8"}}, "found text '8'; remove the quotes"),
        ({"cluster": {"partitions": "cpu"}}, "cluster.partitions: unknown key"),
        ({"methods": {"ngt": {"label": r"$\foo$"}}}, "figures can't set the mathematics"),
    ],
)
def test_a_mistake_is_one_line(user: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        read(user)
    assert "\n" not in str(error.value)


def test_a_key_that_stands_twice_in_the_users_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("pack: 1\npack: 2\n")
    with pytest.raises(UserError, match="'pack' appears twice"):
        read({"pack": 2}, [file])


# ---------------------------------------------------------------- jobs


def test_what_jobs_ask_and_how_often_they_are_tried(tmp_path: Path) -> None:
    empty = plan(tmp_path)
    job = empty.pack_job("Pendulum-v1", "bc", "state-action", "20", "1.0-1_2.0-1")
    assert job == empty.job(4, "Pendulum-v1", "bc", "state-action", 20)
    assert empty.expert_job("Pendulum-v1").cpus_per_task == 1
    assert empty.record_job("Pendulum-v1").parts == 1
    assert empty.retries() == 3
    hour = plan(tmp_path, {"train": {"steps": 1_000_000}}, Site(max_hours=0.5))
    assert hour.retries() > 3, "the longest training run must need more than one job"


def test_an_expert_to_be_shipped_has_as_many_attempts_as_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check the target `experts` if all runs of the scale are complete."""
    monkeypatch.setattr(shipped, "ships", lambda name: False)
    found = read({"scale": "lite", "cluster": {"max_hours": 0.5}})
    found.missing, found.packs = [], []
    most = max(found.expert_job(env).parts for env in found.unshipped())
    assert most > 1 and found.retries() == 2 + most


def test_wildcards_take_what_the_config_has(tmp_path: Path) -> None:
    names = plan(tmp_path).names()
    assert {"ngt", "bc", "red"} < set(names["method"]) and set(names["env"]) == set(TASKS)
    assert set(names["figure"]) == set(FIGURES)
