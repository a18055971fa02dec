"""Add the baselines, the configs and the experts in data/ to a wheel, inside the package `ngt`.

These files are copied to ngt/checkout, with the folders of the repository, so that only the package
`ngt` is installed. An editable install uses the repository's own files, so nothing is copied. All
other build settings are in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHIPPED = (
    "baselines/*.py",
    "data/*/*",
    "tests/data/Pendulum-v1.npz",  # demonstrations for scale `test`
    "workflow/config/*",
)


class BuildWithShipped(build_py):
    """A build that also copies the files in SHIPPED into the package."""

    def run(self) -> None:
        """Build the package; copy the files into it unless the install is editable."""
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
