"""The provenance of a run: the code that determines its results, library versions and machine."""

import ast
import functools
import platform
import subprocess
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from ngt.files import CHECKOUT, INSTALLED, PACKAGE, sha256

ROOT = CHECKOUT

# A run's numbers depend on the trainer, the run's model, and all modules of the suite that the
# trainer and the model import.
TRAINER = "ngt.training.trainer"
MODELS = ("ngt.potential", "ngt.reward")  # and every module of `baselines`
LIBRARIES = ("torch", "numpy", "gymnasium", "mujoco", "dm-control", "shimmy")


@functools.cache
def source_hash(*models: str) -> str:
    """Return a short hash of the code that determines the results of runs with these models.

    The hash covers the models and all modules of the suite that they and the trainer import. If no
    models are given, the hash covers every model of the suite. The code is parsed before it is
    hashed, so comments, docstrings and layout do not matter.

    models: paths such as baselines.dac:Dac.
    """
    modules = sources(ROOT, models)
    text = "".join(f"{name}\n{modules[name]}\n" for name in sorted(modules))
    return sha256(text.encode())[:16]


def sources(root: Path, models: Iterable[str] = ()) -> dict[str, str]:
    """Return the canonical text of the modules that `source_hash` covers, by dotted name."""
    every = (f"baselines.{file.stem}" for file in (root / "baselines").glob("[!_]*.py"))
    named = [model.partition(":")[0] for model in models]
    found: dict[str, str] = {}
    waiting = [TRAINER, *(named or (*MODELS, *every))]
    while waiting:
        name = waiting.pop()
        installed = name.startswith("ngt") and not (root / "ngt").is_dir()
        file = (PACKAGE.parent if installed else root).joinpath(*name.split("."))
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        if name not in found and file.is_file():
            found[name], imports = _parsed(file.read_bytes())
            waiting += [name.rpartition(".")[0], *imports]
    return found


@functools.cache
def _parsed(code: bytes) -> tuple[str, list[str]]:
    """Return a module's canonical text, i.e. that of `canonical`, and the names that it imports."""
    tree = ast.parse(code)
    return canonical(tree), list(imported(tree))


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield every name in a module's import statements that may be the name of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def canonical(node: object) -> str:
    """Return a syntax tree without docstrings as text, the same text in every Python version."""
    if isinstance(node, ast.AST):
        fields = {n: v for n, v in ast.iter_fields(node) if v not in (None, [])}
        if isinstance(fields.get("body"), list):
            fields["body"] = _without_docstring(fields["body"])
        inner = ", ".join(f"{name}={canonical(value)}" for name, value in fields.items())
        return f"{type(node).__name__}({inner})"
    if isinstance(node, list):
        return f"[{', '.join(map(canonical, node))}]"
    return repr(node)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    value = body[0].value if isinstance(body[0], ast.Expr) else None
    documented = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return body[1:] if documented else body


@functools.cache
def provenance(*models: str) -> dict[str, Any]:
    """Return what run.json states about code, library versions and machine, for these models."""
    status = _git("status", "--porcelain", "--", "ngt", "baselines")
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "source_hash": source_hash(*models),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in LIBRARIES},
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
    }


def _git(*args: str) -> str | None:
    """Return git's output, or None if git fails or the suite is not run from a checkout."""
    if INSTALLED:  # the package may lie inside another project's repository
        return None
    try:
        return subprocess.run(
            ["git", *args], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=10, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "")
