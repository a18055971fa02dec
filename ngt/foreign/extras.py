"""Imports of libraries that are installed only with an extra, such as ngt-suite[video]."""

import importlib
from typing import Any

from ngt.errors import UserError

# Extra -> the packages that it installs.
EXTRAS = {
    "formats": "h5py 'minari[hdf5]'",
    "tensorboard": "tensorboard",
    "video": "av 'gymnasium[classic-control]'",
}


def library(name: str, where: str, extra: str) -> Any:
    """Import a module of an extra, or raise UserError with the command that installs it.

    where: the part of the suite that needs the module, for the message.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            f"{where}: needs the package {name.split('.')[0]} ({error}); {install(extra)}"
        ) from None


def install(extra: str) -> str:
    """Return text that names the command to install an extra."""
    return f"pip install {EXTRAS[extra]} (the extra `{extra}`)"
