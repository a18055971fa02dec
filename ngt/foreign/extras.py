"""The import of libraries that only an extra of the package installs."""

import importlib
from typing import Any

from ngt.errors import UserError

# Each extra, with the packages that it installs.
EXTRAS = {
    "formats": "h5py 'minari[hdf5]'",
    "tensorboard": "tensorboard",
    "video": "av 'gymnasium[classic-control]'",
}


def library(name: str, where: str, extra: str) -> Any:
    """Import a module of an extra, or raise UserError with the command that installs it.

    where: what needs the module, for the message.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            f"{where}: needs the package {name.split('.')[0]} ({error}); {install(extra)}"
        ) from None


def install(extra: str) -> str:
    """Return the command that installs an extra, in words."""
    return f"pip install {EXTRAS[extra]} (the extra `{extra}`)"
