"""Noise-Guided Transport: imitation learning from random priors.

From Python:

- `ngt.imitate(env, demos, method, steps=..., seed=...)` trains and returns a `Run`
- `ngt.expert(env)` trains an expert
- `ngt.load_policy(path_or_env).predict(obs)` returns an action in the env's units
- `ngt.load_demos(path_or_env)` reads demonstrations
- `ngt.load_runs(scale)` returns a table of the evaluations of one scale's runs; a scale is a preset
  of sizes, such as `quick`

The parts of the package:

- `potential.py`: the NGT method: predictor, frozen prior, their pairing losses, and the scaling of
  the reward
- `reward.py`: the interface that NGT and every baseline implement
- `settings/`: all settings, their defaults, and how a run's settings are resolved
- `experience/`: envs, rollouts, the replay buffer and demonstrations
- `agent/`: SAC, its networks and policies on disk
- `training/`: the training loop (Algorithm 1 of the paper), checkpoints and training jobs
- `foreign/`: demonstrations in other projects' formats
- `runs/`: the keys (names) of training runs, and the files and tables of their results
- `views/`: curves in the terminal, TensorBoard files and videos
- `bench/`: speed measurements on a CPU and on a GPU
- `commands/`: one module per command of `ngt`; `cli.py` is the entry point
- `api/`: the functions and classes that `import ngt` offers
- `seeding.py`, `state.py`, `files.py`, `text.py`, `errors.py`: small tools that all parts use
"""

import importlib
from typing import Any

# Public name -> the module of ngt.api that defines the name. A module is imported when one of its
# names is first used, so that `import ngt` is fast. `__init__.pyi` declares the types.
_API = {
    "Controller": "loading",
    "Run": "training",
    "expert": "training",
    "imitate": "training",
    "load_demos": "loading",
    "load_policy": "loading",
    "load_runs": "loading",
}
__all__ = ["__version__", *_API]


def __getattr__(name: str) -> Any:
    """Return the version, or import and return the object with this name from `ngt.api`."""
    if name == "__version__":
        metadata = importlib.import_module("importlib.metadata")
        try:
            return metadata.version("ngt-suite")
        except metadata.PackageNotFoundError:  # not installed; the checkout is on Python's path
            return "unknown"
    if name in _API:
        return getattr(importlib.import_module(f"ngt.api.{_API[name]}"), name)
    raise AttributeError(f"module 'ngt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
