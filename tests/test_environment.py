"""The user's environment variables, which must not stop a job that does not need them."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Code that makes envs, figures or tables, and must run in any environment.
ENVS = """
from ngt.experience import envs
envs.make("Hopper-v4").close()
"""
DRAWING = """
from paper.drawing import style
with style.context():
    figure = style.new_figure(2, 1)
    figure.text(0.5, 0.5, "−σ")
style.save(figure, style.Path("figure.pdf"), style.Path("figure.png"))
"""
TABLE = """
from pathlib import Path
from paper import command
from paper.drawing import table as tables
table = tables.Table("\\u2212", {"a": tables.Column("a")}, [{"a": "\\u03c3"}])
command.one_line_errors("t", lambda: print(table.markdown()) or tables.save(table, Path("t.csv")))
"""
NOWHERE = "/proc/nowhere"
# A new process takes seconds, so each of these bad values shares one with another.
THREADS = {"OMP_NUM_THREADS": "abc", "MKL_NUM_THREADS": "-1", "OPENBLAS_NUM_THREADS": "0"}
FOLDERS = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR", "MPLCONFIGDIR"), NOWHERE)
OWN_STYLE = {"MATPLOTLIBRC": "{folder}/matplotlibrc", "SOURCE_DATE_EPOCH": "abc"}


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ | {"PYTHONPATH": str(ROOT), **environment},
    )


@pytest.mark.parametrize(
    ("code", "environment"),
    [
        (ENVS, {"MUJOCO_GL": "nonsense", **THREADS}),
        (ENVS, {"MUJOCO_GL": "egl", "PYOPENGL_PLATFORM": "glx", **FOLDERS}),
        (DRAWING, {"MPLBACKEND": "module://matplotlib_inline.backend_inline", **OWN_STYLE}),
        (DRAWING, {"MPLBACKEND": "nonsense", "MUJOCO_GL": "nonsense", **FOLDERS}),
        (TABLE, {"PYTHONIOENCODING": "ascii"}),
        (TABLE, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_a_bad_value_stops_nothing_that_does_not_use_it(
    code: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nnonsense\nfont.size: 40\n")
    values = {key: value.format(folder=tmp_path) for key, value in environment.items()}
    done = python(code, tmp_path, **values)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


def test_the_users_own_style_changes_no_figure(tmp_path: Path) -> None:
    drawn = []
    for name, text in (("plain", ""), ("own", "font.size: 40\nlines.linewidth: 9\n")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "matplotlibrc").write_text(text)
        assert python(DRAWING, folder).returncode == 0
        drawn.append((folder / "figure.png").read_bytes())
    assert drawn[0] == drawn[1]


def test_a_setting_that_torch_refuses_is_one_line(tmp_path: Path) -> None:
    code = "from ngt.cli import main; main(['train', 'x'])"
    done = python(code, tmp_path, TORCH_LOGS="nonsense")
    assert done.returncode == 2 and done.stderr.startswith("ngt: error: torch can't be imported")
    assert done.stderr.count("\n") == 1


def test_a_renderer_that_is_wrong_is_one_line_where_it_is_used(tmp_path: Path) -> None:
    code = "from ngt.cli import main; main(['video', 'Hopper-v4', '--out', 'x.gif'])"
    done = python(code, tmp_path, MUJOCO_GL="nonsense")
    begun, line = done.stderr.splitlines()
    assert done.returncode == 2 and begun.startswith("video: films expert on Hopper-v4")
    assert line.startswith("ngt: error: MUJOCO_GL: nonsense")


def test_every_text_file_names_its_encoding() -> None:
    """Check that an encoding is named; otherwise the user's locale decides and may misread text."""
    lacking = []
    for folder in ("ngt", "paper", "baselines", "workflow"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and opens_text(node):
                    lacking.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert lacking == []


def opens_text(call: ast.Call) -> bool:
    """Return True if a call opens a text file or reads a command's output without an encoding."""
    named = {keyword.arg for keyword in call.keywords}
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if "encoding" in named or (isinstance(call.func, ast.Attribute) and name == "open"):
        return False
    modes = [a.value for a in call.args[1:2] if isinstance(a, ast.Constant)]
    binary = name == "open" and bool(modes) and "b" in str(modes[0])
    if name == "run":
        return "text" in named
    return name in ("read_text", "write_text") or (name == "open" and not binary)


@pytest.mark.parametrize(
    ("number", "command", "code", "line"),
    [
        (signal.SIGTERM, "train", os.EX_TEMPFAIL, "stopped by SIGTERM; the same command resumes"),
        (signal.SIGTERM, "train --fresh", os.EX_TEMPFAIL, "stopped by SIGTERM"),
        (signal.SIGTERM, "train --restart", os.EX_TEMPFAIL, "stopped by SIGTERM"),
        (signal.SIGTERM, "video", os.EX_TEMPFAIL, "stopped by SIGTERM"),
        (signal.SIGINT, "train", 130, "interrupted"),
    ],
)
def test_a_signal_while_modules_are_imported_is_one_line(
    number: signal.Signals, command: str, code: int, line: str, tmp_path: Path
) -> None:
    """Send the signal while the command's modules are imported. Only training resumes."""
    sent = f"""
import os, sys
class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == "torch" or name == "numpy":
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Sender())
from ngt.__main__ import main
sys.argv = "ngt {command}".split()
main()
"""
    done = python(sent, tmp_path)
    assert (done.returncode, done.stderr) == (code, f"ngt: {line}\n")
