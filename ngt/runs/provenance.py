"""A run's provenance: the code that determines its results, library versions and the machine."""

import ast
import functools
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from ngt.errors import UserError
from ngt.files import CHECKOUT, INSTALLED, PACKAGE, sha256

ROOT = CHECKOUT

# A run's numbers depend on the trainer, the run's model, and all modules of the suite and of the
# user that the trainer and the model import.
TRAINER = "ngt.training.trainer"
MODELS = ("ngt.potential", "ngt.reward")  # and every module of `baselines`
INIT = "__init__.py"
LIBRARY_FOLDERS = ("site-packages", "dist-packages")  # the modules here do not belong together
LIBRARIES = ("torch", "numpy", "gymnasium", "mujoco", "dm-control", "shimmy")


@functools.cache
def source_hash(*models: str) -> str:
    """Return a short hash of the code that determines the results of runs with these models.

    The hash covers the trainer, the models, and all modules of the suite that the trainer and the
    models import. If a model is in a user's own package, the hash also covers the modules of this
    package that the model imports. If a model is in a user's own file outside a package, the hash
    also covers the modules in the file's folder that the model imports. If no models are given, the
    hash covers every model of the suite. The code is parsed before it is hashed, so comments,
    docstrings and layout do not matter.

    Raise UserError if the file of a model is not found, or if a file can't be parsed.

    models: dotted paths such as baselines.dac:Dac.
    """
    modules = sources(ROOT, models)
    text = "".join(f"{name}\n{modules[name]}\n" for name in sorted(modules))
    return sha256(text.encode())[:16]


def sources(root: Path, models: Iterable[str] = ()) -> dict[str, str]:
    """Return the canonical text of each module that `source_hash` covers, keyed by dotted name.

    Raise UserError in the same cases as `source_hash`.
    """
    every = (f"baselines.{file.stem}" for file in (root / "baselines").glob("[!_]*.py"))
    named = [model.partition(":")[0] for model in models]
    files = _Files(root, named)
    found: dict[str, str] = {}
    waiting = [TRAINER, *(named or (*MODELS, *every))]
    while waiting:
        name = waiting.pop()
        if name not in found and (file := files.of(name)):
            parent = name.rpartition(".")[0]
            package = name if file.name == INIT else parent
            try:
                found[name], imports = _parsed(file.read_bytes(), package)
            except (SyntaxError, ValueError) as error:
                reason = str(error).replace("<unknown>, ", "")
                raise UserError(f"{file}: {reason}; fix it") from None
            waiting += [parent, *imports]
    for name in named:
        if name and name not in found:
            raise UserError(
                f"model: the code of {name!r} is not found; put it into a .py file where Python "
                f"finds it, e.g. in this folder"
            )
    return found


class _Files:
    """The files of the suite's modules, of users' models, and of the modules beside these models.

    Other modules, such as those of libraries, have no file here.
    """

    def __init__(self, root: Path, models: Iterable[str]) -> None:
        # Maps the name of each package, or module outside a package, to its paths without `.py`.
        self.places = {
            "ngt": [root / "ngt" if (root / "ngt").is_dir() else PACKAGE],
            "baselines": [root / "baselines"],
        }
        self.folders: set[Path] = set()  # where models are that are in no package
        for top in {name.partition(".")[0] for name in models} - self.places.keys():
            self.places[top] = _places(top)
            alone = [p for p in self.places[top] if (file := _file(p)) and file.name != INIT]
            self.folders |= {p.parent for p in alone if p.parent.name not in LIBRARY_FOLDERS}

    def of(self, name: str) -> Path | None:
        """Return the file of a module, given the module's dotted name, or None."""
        top, *rest = name.split(".")
        if top not in self.places:
            found = _places(top) if self.folders else []
            self.places[top] = [place for place in found if place.parent in self.folders]
        files = (_file(place.joinpath(*rest)) for place in self.places[top])
        return next(filter(None, files), None)


def _places(top: str) -> list[Path]:
    """Return where Python finds a package or a module outside a package: its paths without `.py`.

    The module is not executed.
    """
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # refused, or loaded without a spec, such as a script
        file = getattr(sys.modules.get(top), "__file__", None)
        found = [file] if file else []
    else:
        file = spec.origin if spec and spec.has_location else None
        found = list((spec and spec.submodule_search_locations) or ([file] if file else []))
    paths = [Path(place) for place in found]
    return [path.parent.resolve() / path.name.removesuffix(".py") for path in paths]


def _file(path: Path) -> Path | None:
    """Return the file of the package or module at a path without `.py`, or None."""
    files = (path / INIT, path.with_name(f"{path.name}.py"))
    return next((file for file in files if file.is_file()), None)


@functools.cache
def _parsed(code: bytes, package: str) -> tuple[str, list[str]]:
    """Return a module's text from `canonical`, and the names that the module imports.

    package: the package in which the module's relative imports are looked up.
    """
    tree = ast.parse(code)
    return canonical(tree), list(imported(tree, package))


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield each name in a module's import statements that may be a module's name.

    package: the package in which relative imports are looked up.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            try:
                module = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:  # beyond the package, so Python can't import it either
                continue
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def canonical(node: object) -> str:
    """Return a syntax tree as text, without docstrings.

    The text is the same in every Python version.
    """
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
    """Return the entries of run.json about the code, the library versions and the machine.

    models: the arguments of `source_hash`.
    """
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
    """Run git and return its output.

    Return None if git fails or the suite is not run from a checkout.
    """
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
