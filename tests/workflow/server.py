"""A process that has imported Snakemake and torch, and forks a child for each call of Snakemake.

The imports take longer than most calls. A child has none of the suite's modules, so it imports them
from the checkout in which it runs, just as a new process does.
"""

import importlib
import json
import os
import runpy
import signal
import sys

LIBRARIES = ("torch", "gymnasium", "yaml", "snakemake.cli", "snakemake.api")
TIMEOUT = 1800  # seconds after which a call is killed


def call(folder: str, args: list[str], env: dict[str, str], output: str) -> None:
    """Do what `python -m snakemake` does in a folder, with stdout and stderr in one file."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[0] = folder
    sys.argv = ["", *args]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    told = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(told, 1)
    os.dup2(told, 2)
    signal.alarm(TIMEOUT)
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)


def main() -> None:
    """Answer each call, which is a line of JSON on stdin, by its exit code."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            call(**json.loads(line))
            return
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
