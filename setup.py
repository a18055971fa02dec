"""Put the baselines, the configs and the experts that ship into a wheel, inside the package.

They go into ngt/checkout, laid out as in a checkout, so that no other package is installed. An
editable install is a checkout and needs none of this. Everything else stands in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHIPPED = (
    "baselines/*.py",
    "data/*/*",
    "tests/data/Pendulum-v1.npz",  # what scale `test` imitates
    "workflow/config/*",
)


class BuildWithShipped(build_py):
    """Build the package, then add what ships."""

    def run(self) -> None:
        """Build; copy the files into the package unless the install is editable."""
        super().run()
        if self.editable_mode:
            return
        for pattern in SHIPPED:
            for file in sorted(ROOT.glob(pattern)):
                if file.is_file():
                    target = Path(self.build_lib, "ngt", "checkout", file.relative_to(ROOT))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, target)


setup(cmdclass={"build_py": BuildWithShipped})
