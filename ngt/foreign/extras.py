"""Functions that import the libraries of an extra, i.e. an optional part of the installation."""

import importlib
from typing import Any

from ngt.errors import UserError

# Each extra, such as `video` in `pip install ngt-suite[video]`, and the packages that it installs.
EXTRAS = {
    "formats": "h5py 'minari[hdf5]'",
    "tensorboard": "tensorboard",
    "video": "av 'gymnasium[classic-control]'",
}


def library(name: str, where: str, extra: str) -> Any:
    """Import a module that an extra installs.

    If the module is missing, raise a UserError that names the command to install it.

    name: the module's dotted name.
    where: the part of the suite that needs the module, with which the message begins.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            f"{where}: needs the package {name.split('.')[0]} ({error}); {install(extra)}"
        ) from None


def install(extra: str) -> str:
    """Return a text that names the command to install an extra."""
    return f"pip install {EXTRAS[extra]} (the extra `{extra}`)"
