"""The files around the code: versions, pins, set-up, citation and test files must agree."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]

LARGEST_FILE = 4_000_000  # bytes; size limit for a shipped expert
LARGEST_CHECKOUT = 60_000_000

# Test files that do not cover a single module, with their subjects.
NOT_MIRRORED: dict[str, str] = {
    "tests/test_data.py": "the shipped files in data/",
    "tests/test_fuzz.py": "every loader, with files of any content",
    "tests/test_methods.py": "the contract of every method in the config",
    "tests/test_python.py": "the names of `import ngt`, and docs/python.ipynb",
    "tests/test_tuning.py": "docs/tuning.md, followed step by step",
    "tests/test_wheel.py": "the wheel, installed and used outside a checkout",
    "tests/test_new_env.py": "docs/new-env.md, followed step by step",
    "tests/test_new_method.py": "docs/new-method.md, followed step by step",
    "tests/test_demonstrations.py": "docs/demonstrations.md, followed step by step",
    "tests/ngt/test_bad_inputs.py": "every user error at the command line",
    "tests/paper/test_page.py": "paper/document/page/: the report in a browser",
    "tests/paper/test_access.py": "paper/document/page/: can everybody use the report",
    "tests/paper/test_text.py": "any text of a config through figures, tables and pages",
    "tests/paper/drawing/test_legends.py": "the legends of all curve figures",
    "tests/paper/figures/test_main_figure.py": "the main figure of paper/figures/curves.py",
    "tests/paper/figures/test_controls.py": "our own figures of paper/figures/curves.py",
    "tests/ngt/test_losses.py": "the pairing losses of ngt/potential.py",
    "tests/ngt/test_faults.py": "training under faults: kills, disks, envs, clocks",
    "tests/slurm/test_slurm.py": "the workflow through workflow/profiles/slurm",
    "tests/workflow/test_workflow.py": "Snakefile and all rules together",
    "tests/workflow/test_build.py": "every artefact of scale `test` by one command",
    "tests/workflow/test_triggers.py": "what the workflow makes again, and what it keeps",
    "tests/workflow/test_signals.py": "the workflow when it is stopped or killed",
}


def lock_lines() -> list[str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pins() -> dict[str, Version]:
    """Return the pinned versions by canonical package name."""
    pairs = (line.split("==") for line in lock_lines())
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def requirements() -> list[Requirement]:
    groups = PROJECT["optional-dependencies"].values()
    texts = [*PROJECT["dependencies"], *BUILD["requires"], *(t for group in groups for t in group)]
    return [Requirement(text) for text in texts]


def conda(file: str = "environment.yml") -> dict:
    return yaml.safe_load((ROOT / file).read_text())


def conda_pip(file: str = "environment.yml") -> list[str]:
    (pip,) = (d["pip"] for d in conda(file)["dependencies"] if isinstance(d, dict))
    return pip


def make(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run make in `folder`, without the variables of a make that may be running these tests."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    inherited.pop("PYTHON", None)
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def fake_python(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with only the files that set-up reads, without .venv."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder of programs that the Makefile needs, without Python, for use as PATH."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sh", "cat", "cut", "awk"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    make_command = shutil.which("make")
    assert make_command is not None
    (folder / "make").symlink_to(make_command)
    return folder


# --- versions and pins


def test_python_range_is_the_same_everywhere() -> None:
    python = Requirement(next(d for d in conda()["dependencies"] if str(d).startswith("python")))
    assert python.specifier == SpecifierSet(PROJECT["requires-python"])
    tried = re.search(r"^PYTHONS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert tried is not None
    allowed = {f"3.{n}" for n in range(30) if python.specifier.contains(f"3.{n}.5")}
    assert set(tried[1].split()) == allowed


@pytest.mark.parametrize("requirement", requirements(), ids=lambda r: r.name)
def test_dependency_is_pinned_within_its_bounds(requirement: Requirement) -> None:
    pin = pins()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin)


def test_lock_holds_names_and_exact_versions_only() -> None:
    pin = re.compile(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*")
    assert [line for line in lock_lines() if not pin.fullmatch(line)] == []
    assert "/" not in (ROOT / "requirements.lock").read_text(), (
        "the lock must name no host and no path"
    )


def test_lock_is_sorted_without_duplicates() -> None:
    names = [line.split("==")[0].lower() for line in lock_lines()]
    assert names == sorted(set(names))


def test_installed_packages_have_the_pinned_versions() -> None:
    installed = {
        canonicalize_name(d.metadata["Name"]): Version(d.version)
        for d in importlib.metadata.distributions()
        if d.metadata["Name"]
    }
    # A local part (+cpu, +cu130) names a build of the same version.
    different = {
        name: (str(installed[name]), str(pin))
        for name, pin in pins().items()
        if name in installed and installed[name].public != pin.public
    }
    assert different == {}


def test_every_pinned_package_runs_on_the_python_of_debian_12() -> None:
    """Check the Python that each installed, pinned package requires. Debian 12 has 3.11.2."""
    pinned = pins()
    required = {
        name: d.metadata["Requires-Python"]
        for d in importlib.metadata.distributions()
        if (name := canonicalize_name(d.metadata["Name"])) in pinned
    }
    assert len(required) > 100
    assert {n: r for n, r in required.items() if r and not SpecifierSet(r).contains("3.11.2")} == {}


def test_lock_is_closed() -> None:
    """Check that every dependency of an installed, pinned package is also pinned."""
    pinned = pins()
    wanted = {r: PROJECT["name"] for r in requirements()}
    seen: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        requirement, asker = wanted.popitem()
        name = canonicalize_name(requirement.name)
        if name.startswith("nvidia-") or name in {"triton", "cuda-bindings", "cuda-toolkit"}:
            continue  # torch pins its own CUDA parts
        assert name in pinned, f"{asker} needs {name}, which has no pin"
        assert requirement.specifier.contains(pinned[name], prereleases=True), (
            f"{asker} refuses {name}"
        )
        key = (name, frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            texts = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        extras = ["", *requirement.extras]
        for text in texts:
            further = Requirement(text)
            if further.marker is None or any(further.marker.evaluate({"extra": e}) for e in extras):
                wanted[further] = name
    assert {name for name, _ in seen} == set(pinned), "some pins are not needed"


def test_conda_takes_its_pins_from_the_lock() -> None:
    assert conda()["name"] == "ngt"
    assert "-r requirements.lock" in conda_pip()
    assert all(line.startswith("-") for line in conda_pip()), "environment.yml must have no pins"


def test_the_conda_file_of_the_rules_stands_alone_and_has_the_pins_of_the_lock() -> None:
    file = "workflow/envs/suite.yaml"
    assert conda_pip(file) == lock_lines(), f"the comment in {file} says how to update it"
    for part in ("channels", "dependencies"):
        assert [x for x in conda(file)[part] if isinstance(x, str)] == [
            x for x in conda()[part] if isinstance(x, str)
        ]


def test_both_container_recipes_install_the_lock_in_the_same_way() -> None:
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    apptainer = (ROOT / "apptainer.def").read_text(encoding="utf-8")

    def steps(recipe: str) -> list[str]:
        parts = re.split(r"\n|&&", recipe.replace("\\\n", "").replace("RUN ", ""))
        starts = ("apt-get", "grep", "PIP_CONSTRAINT", "printf", "chmod")
        return [part.strip() for part in parts if part.strip().startswith(starts)]

    assert steps(docker) == steps(apptainer) and len(steps(docker)) == 6
    assert any(step.endswith("--requirement /opt/ngt/requirements.lock") for step in steps(docker))
    for recipe in (docker, apptainer):
        image = re.search(r"^(?:FROM|From:) python:(3\.\d+)-slim$", recipe, re.M)
        assert image is not None
        assert SpecifierSet(PROJECT["requires-python"]).contains(f"{image[1]}.1")
        pins = [w for w in recipe.split() if "==" in w and "setuptools==" not in w]
        assert pins == [], "a version that the lock should have"
    assert "!requirements.lock" in (ROOT / ".dockerignore").read_text(encoding="utf-8")


# --- set-up


def test_make_lists_its_targets(checkout: Path) -> None:
    result = make(checkout)
    assert result.returncode == 0
    listed = re.findall(r"^make (\w+) +\S", result.stdout, re.MULTILINE)
    assert listed == [
        "help",
        "figure",
        "report",
        "paper",
        "experts",
        "docs",
        "smoke",
        "test",
        "long",
        "check",
        "setup",
        "unlock",
        "clean",
    ]


@pytest.mark.parametrize("goal", ["setup", "figure", "test"])
def test_make_refuses_a_wrong_python_in_one_line(checkout: Path, goal: str) -> None:
    old = fake_python(checkout.parent / "old python", "echo 3.9.18")
    result = make(checkout, goal, f"PYTHON={old}")
    assert result.returncode != 0
    (line,) = (result.stdout + result.stderr).splitlines()
    for part in ("3.11", "3.12", f"{old} 3.9.18", f"make {goal} PYTHON=/"):
        assert part in line
    assert not (checkout / ".venv").exists()


def test_make_says_when_the_given_python_does_not_run(checkout: Path) -> None:
    result = make(checkout, "setup", "PYTHON=/nowhere/python3")
    assert result.returncode != 0
    assert "/nowhere/python3 (does not run)" in result.stderr


def test_make_says_when_there_is_no_python(checkout: Path, tools: Path) -> None:
    result = make(checkout, "setup", PATH=str(tools))
    assert result.returncode != 0
    assert "found: no Python." in result.stderr


def test_make_passes_over_a_shim_that_fails_and_a_python_without_venv(
    checkout: Path, tools: Path
) -> None:
    fake_python(tools / "python3.12", "exit 127")
    fake_python(tools / "python3.11", 'case "$2" in (*ensurepip*) exit 1;; esac; echo 3.11.2')
    result = make(checkout, "-n", "setup", PATH=str(tools))
    assert result.returncode != 0
    assert "found: python3.11 3.11.2 (lacks its venv package)." in result.stderr
    fake_python(tools / "python3", "echo 3.12.4")
    result = make(checkout, "-n", "setup", PATH=str(tools))
    assert result.returncode == 0, result.stderr
    assert '"python3" -m venv' in result.stdout


def test_make_passes_the_scale_on(checkout: Path) -> None:
    python = fake_python(checkout.parent / "python", "echo 3.11.5")
    scaled = make(checkout, "-n", "figure", f"PYTHON={python}", "SCALE=lite").stdout
    assert "--config scale=lite --workflow-profile workflow/profiles/default results" in scaled
    plain = make(checkout, "-n", "figure", f"PYTHON={python}").stdout
    assert "--config" not in plain
    both = make(checkout, "-n", "figure", f"PYTHON={python}", "SCALE=lite", "RECORDS=published")
    own = "--workflow-profile workflow/profiles/default"
    assert f"--config scale=lite records=published {own} results" in both.stdout
    ready = make(checkout, "-n", "figure", f"PYTHON={python}", "SCALE=lite", "DEMOS=shipped")
    assert f"--config scale=lite demos=shipped {own} results" in ready.stdout
    for scale in ("lite", "quick"):
        given = [] if scale == "lite" else [f"SCALE={scale}"]
        experts = make(checkout, "-n", "experts", f"PYTHON={python}", *given).stdout
        assert f"--config scale={scale} {own} experts" in experts


def scripted_setup(checkout: Path) -> tuple[Path, Path]:
    """Return a fake Python whose venv and pip only log that they ran, and the log.

    For a call of pip, the log names the last package. pip fails if that package is the one named in
    the file `record.fail`. The Python of the venv runs other code with the real Python.
    """
    record = checkout.parent / "record"
    inner = f"""case "$*" in (*"pip install"*)
for last; do :; done; echo "$last" >> "{record}"
[ ! -e "{record}.fail" ] || [ "$last" != "$(cat "{record}.fail")" ];;
(*"-m pip"*) ;;
(*) exec "{sys.executable}" "$@";; esac"""
    python = fake_python(
        checkout.parent / "python",
        f"""case "$*" in
(*print*) echo 3.11.5;;
(*venv*) echo venv >> "{record}"; mkdir -p .venv/bin
printf 'version = 3.11.5\ncommand = python -m venv %s\n' "$PWD/.venv" > .venv/pyvenv.cfg
cat > .venv/bin/python <<'END'
#!/bin/sh
{inner}
END
chmod +x .venv/bin/python;;
esac""",
    )
    return python, record


def test_setup_runs_once_and_again_only_when_needed(checkout: Path) -> None:
    python, record = scripted_setup(checkout)
    pins = [*(f"package{i:02}==1.{i}" for i in range(24)), "setuptools==1.24"]
    (checkout / "requirements.lock").write_text("\n".join(pins))
    failing = Path(f"{record}.fail")
    installed = ["package09==1.9", "package19==1.19", "setuptools==1.24", "."]

    def ran(python: Path = python, folder: Path = checkout) -> tuple[list[str], str]:
        record.write_text("")
        result = make(folder, "setup", f"PYTHON={python}")
        assert (result.returncode != 0) == failing.exists(), result.stderr
        return record.read_text().split(), result.stdout

    failing.write_text("package19==1.19")
    calls, said = ran()
    assert calls == ["venv", *installed[:2]], "nothing may follow a failure"
    assert " 1 to 10 of 25: package00==1.0 " in said and " 11 to 20 of 25: package10" in said
    packages = checkout / ".venv/lib/python3.11/site-packages"
    for name in ("whole-1.dist-info/RECORD", "partly-1.dist-info/METADATA"):
        (packages / name).parent.mkdir(parents=True)
        (packages / name).touch()
    failing.unlink()
    assert ran()[0] == installed, "a failed set-up must keep its environment"
    assert [p.name for p in packages.iterdir()] == ["whole-1.dist-info"]
    assert ran()[0] == [], "a second set-up must do nothing"
    for name in ("requirements.lock", "pyproject.toml"):
        later = (checkout / ".venv/.ready").stat().st_mtime + 5
        os.utime(checkout / name, (later, later))
        assert ran()[0] == installed, f"pip must run again after a change of {name}"
        os.utime(checkout / name, (0, 0))
    copy = checkout.parent / "copy"
    shutil.copytree(checkout, copy)
    assert ran(folder=copy)[0] == ["venv", *installed], "a copy must get its own environment"
    (checkout / ".venv/.ready").unlink()
    other = fake_python(checkout.parent / "other", python.read_text().replace("3.11.5", "3.12.1"))
    assert ran(other)[0] == ["venv", *installed], "another Python must get its own environment"


def test_setup_starts_pip_only_for_packages_that_are_not_installed(checkout: Path) -> None:
    """Set up with a portion that is installed, one with a wrong version, and one with no package.

    The first portion contains torch, whose installed version may end in +cpu.
    """
    there = sorted(filter(is_installed, lock_lines()), key=lambda pin: not pin.startswith("torch"))
    wrong = f"{there[19].split('==')[0]}==0.0.1"
    pins = [*there[:19], wrong, "absent==1.0", "setuptools==0.0.1"]
    (checkout / "requirements.lock").write_text("\n".join(pins) + "\n")
    python, record = scripted_setup(checkout)
    result = make(checkout, "setup", f"PYTHON={python}")
    assert result.returncode == 0 and "Error" not in result.stderr, result.stderr
    assert "  1 to 10 of 22: installed already\n" in result.stdout
    assert f" {wrong}\n" in result.stdout and result.stdout.count("installed already") == 1
    assert record.read_text().split() == ["venv", wrong, "setuptools==0.0.1", "."]


def is_installed(pin: str) -> bool:
    """Return True if a package is installed in the pinned version, or in a build of it."""
    name, version = pin.split("==")
    try:
        return importlib.metadata.version(name).partition("+")[0] == version
    except importlib.metadata.PackageNotFoundError:
        return False


# --- files around the code


def test_citation_names_the_suite_and_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["type"] == "software"
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    paper = citation["preferred-citation"]
    assert paper["title"] == "Noise-Guided Transport: Imitation Learning from Random Priors"
    assert [a["family-names"] for a in paper["authors"]] == ["Blondé", "Candido Ramos", "Kalousis"]


def test_changelog_has_an_open_section() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()


def test_no_large_file_is_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    sizes = {n: (ROOT / n).stat().st_size for n in names if n and (ROOT / n).is_file()}
    assert {n: s for n, s in sizes.items() if s > LARGEST_FILE} == {}
    assert sum(sizes.values()) < LARGEST_CHECKOUT


def covered(test: Path) -> list[Path]:
    """Return the files that a test file may cover: for tests/<part>/test_x.py, x in <part>."""
    part = test.relative_to(ROOT / "tests").parent
    name = test.stem.removeprefix("test_")
    folders = [part, part / "rules", part / "scripts"] if part.parts[0] == "workflow" else [part]
    return [ROOT / f / f"{name}{end}" for f in folders for end in (".py", ".smk", "/__init__.py")]


def test_tests_mirror_the_source_tree() -> None:
    tests = sorted((ROOT / "tests").glob("*/**/test_*.py"))
    unlisted = [t for t in tests if t.relative_to(ROOT).as_posix() not in NOT_MIRRORED]
    alone = [
        t.relative_to(ROOT).as_posix() for t in unlisted if not any(map(Path.exists, covered(t)))
    ]
    assert alone == [], "name the module in the file's name, or list the file in NOT_MIRRORED"
    gone = [name for name in NOT_MIRRORED if not (ROOT / name).exists()]
    assert gone == []
