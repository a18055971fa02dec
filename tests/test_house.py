"""The structure of the code: directions of imports, sizes, and places for methods' names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ngt", "baselines", "paper", "workflow")

# Floors are layers of the code, here from the top down. A module may import from its own floor
# or from a lower one.
NGT = (
    ("ngt.__main__",),
    ("ngt.api",),
    ("ngt.cli",),
    ("ngt.commands",),
    ("ngt.bench",),
    ("ngt.training", "ngt.potential"),
    ("ngt.runs", "ngt.reward", "ngt.penalty"),
    ("ngt.agent",),
    ("ngt.settings",),
    ("ngt.foreign",),
    ("ngt.experience",),
    ("ngt.seeding", "ngt.state", "ngt.errors", "ngt.files", "ngt.text"),
)
PAPER = (
    ("paper.__main__",),
    ("paper.document",),
    ("paper.handbook",),
    ("paper.figures",),
    ("paper.tables",),
    ("paper.command",),
    ("paper.claims", "paper.drawing"),
    ("paper.numbers",),
    ("paper.theory", "paper.register", "paper.words", "paper.pages"),
)
# The packages that each package may import.
ALLOWED = {
    "ngt": {"ngt"},
    "baselines": {"baselines", "ngt"},
    "paper": {"paper", "ngt", "baselines"},
    "workflow": {"workflow", "paper", "ngt"},
}
# Libraries that some parts of the suite do not need, so functions may import them when called.
OPTIONAL = {
    "yaml", "pandas", "safetensors", "tqdm", "stable_baselines3", "sbx", "jax", "matplotlib",
    "snakemake", "pyarrow",
}  # fmt: skip

MODULES, LINES, FUNCTION, METHOD = 10, 350, 50, 200  # limits; METHOD: lines of a baseline's file


def modules(root: Path) -> dict[str, Path]:
    """Return the file of each module in the packages, by dotted name."""
    files = (file for package in PACKAGES for file in sorted((root / package).rglob("*.py")))
    return {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
        for file in files
    }


def imports(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield each imported name with its statement, except for imports for type checking."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)
        else:
            yield from imports(node)


def floor_of(name: str, floors: tuple[tuple[str, ...], ...]) -> int | None:
    """Return the number of a module's floor, 0 at the top, or None if it has no floor."""
    for number, rooms in enumerate(floors):
        if any(name == room or name.startswith(f"{room}.") for room in rooms):
            return number
    return None


def upward(root: Path) -> list[str]:
    """Return imports from a higher floor or from a package that may not be imported."""
    found, known = [], modules(root)
    for name, file in known.items():
        floors = {"ngt": NGT, "paper": PAPER}.get(name.split(".")[0], ())
        here = floor_of(name, floors)
        if floors and here is None and name not in ("ngt", "paper"):
            found.append(f"{name} stands on no floor")
        for imported, _ in imports(ast.parse(file.read_text(encoding="utf-8"))):
            package = imported.split(".")[0]
            if package in PACKAGES and package not in ALLOWED[name.split(".")[0]]:
                found.append(f"{name} imports {imported}")
            target = imported if imported in known else imported.rpartition(".")[0]
            there = floor_of(target, floors)
            if here is not None and there is not None and there < here:
                found.append(f"{name} imports {imported}, which is above it")
    return found


def oversized(root: Path) -> list[str]:
    """Return folders, modules and functions that are too large."""
    found = []
    for folder in sorted({file.parent for file in modules(root).values()}):
        own = [file for file in folder.glob("*.py") if file.name != "__init__.py"]
        if len(own) > MODULES and folder.name != "baselines":  # baselines has one for each method
            found.append(f"{folder.relative_to(root)}: {len(own)} modules")
    for name, file in modules(root).items():
        text = file.read_text(encoding="utf-8")
        most = METHOD if name.startswith("baselines.") else LINES
        if text.count("\n") > most:
            found.append(f"{name}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION:
                    found.append(f"{name}.{node.name}: {lines} lines")
    return found


def hidden_imports(root: Path) -> list[str]:
    """Return imports inside functions, except for optional libraries."""
    found = []
    for name, file in modules(root).items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            for imported, _ in imports(node):
                if imported.split(".")[0] not in OPTIONAL:
                    found.append(f"{name}.{node.name} imports {imported}")
    return found


# Allowed places for a method's name: its own file, the config, and code about methods.
ABOUT_METHODS = (
    "baselines",
    "ngt/potential.py",
    "ngt/bench",
    "paper/register.py",
    "paper/drawing/style.py",
    "paper/claims",
    "paper/theory",
    "paper/handbook",
    "workflow/config",
)


def method_words() -> set[str]:
    """Return the names of methods that have no other meaning."""
    methods = yaml.safe_load(
        (ROOT / "workflow" / "config" / "base.yaml").read_text(encoding="utf-8")
    )["methods"]
    return set(methods) - {"ngt", "constant", "red", "bc"}  # these are also common words


def misplaced_methods(root: Path) -> list[str]:
    """Return the places outside ABOUT_METHODS that name a method."""
    words = re.compile(rf"[\"'](?:{'|'.join(map(re.escape, sorted(method_words())))})[\"']")
    return [
        f"{file.relative_to(root)}: {match[0]}"
        for file in modules(root).values()
        if not any(str(file.relative_to(root)).startswith(place) for place in ABOUT_METHODS)
        for match in words.finditer(file.read_text(encoding="utf-8"))
    ]


CHECKS = [upward, oversized, hidden_imports, misplaced_methods]


@pytest.mark.parametrize("check", CHECKS)
def test_the_house_is_in_order(check) -> None:
    assert check(ROOT) == []


PLANTED = [
    (upward, "ngt/agent/bad.py", "from ngt.training.trainer import Trainer\n"),
    (upward, "ngt/experience/bad.py", "import paper.register\n"),
    (upward, "paper/numbers/bad.py", "from paper.figures import curves\n"),
    (upward, "ngt/bad.py", "x = 1\n"),
    (oversized, "ngt/agent/bad.py", "x = 1\n" * 351),
    (oversized, "baselines/bad.py", "x = 1\n" * 201),
    (oversized, "paper/bad.py", "def f():\n" + "    x = 1\n" * 50),
    (hidden_imports, "ngt/agent/bad.py", "def f():\n    import torch\n"),
    (misplaced_methods, "ngt/training/bad.py", "x = 'dac-r'\n"),
]


@pytest.mark.parametrize(("check", "name", "text"), PLANTED)
def test_a_planted_fault_is_found(tmp_path: Path, check, name: str, text: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    for other in ("ngt/training/trainer.py", "paper/figures/curves.py", "paper/register.py"):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).write_text("", encoding="utf-8")
    assert check(tmp_path) == []
    file.write_text(text, encoding="utf-8")
    assert len(check(tmp_path)) == 1


def test_a_folder_of_too_many_modules_is_found(tmp_path: Path) -> None:
    (tmp_path / "ngt").mkdir()
    for number in range(11):
        (tmp_path / "ngt" / f"m{number}.py").write_text("", encoding="utf-8")
    assert oversized(tmp_path) == ["ngt: 11 modules"]
