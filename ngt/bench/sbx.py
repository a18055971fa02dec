"""SBX, the JAX version of stable-baselines3, run in a process of another Python environment.

To make that environment, run `python -m venv PATH` and `PATH/bin/pip install -r
ngt/bench/peers.txt`.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from ngt.bench.cases import Contender
from ngt.errors import UserError
from ngt.experience.envs import get_task

HERE = Path(__file__).parent
ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}
STEPS = {"SBX SAC": 1, "SBX SAC, 4 steps a call": 4}  # name -> number of gradient steps per call


class Peers(NamedTuple):
    """Functions to time that run in another Python environment, and its library versions."""

    contenders: Mapping[str, Contender]
    versions: Mapping[str, str]


NONE = Peers({}, {})


@contextmanager
def sbx(env: str, python: Path | None) -> Iterator[Peers]:
    """Run a process of `python` that trains SBX's SAC; yield functions to time that call it.

    The process ends with the context. If `python` is None, there is no process and no function.
    """
    if python is None:
        yield NONE
        return
    task = get_task(env)
    with tempfile.TemporaryFile("w+") as log:
        try:
            process = subprocess.Popen(
                [str(python), "-I", str(HERE / "serve_sbx.py"), str(task.obs), str(task.act)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **ONE_THREAD},
            )
        except OSError as error:
            raise UserError(f"--peers-python: {python} can't be run: {error.strerror}") from None
        server = Server(process, python, log)
        try:
            versions = json.loads(server.answer())
            contenders = {
                name: Contender(
                    partial(server.train, steps, 1), steps, partial(server.train, steps)
                )
                for name, steps in STEPS.items()
            }
            yield Peers(contenders, versions)
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Server:
    """The process that runs `serve_sbx.py`."""

    process: subprocess.Popen[str]
    python: Path
    log: IO[str]  # the standard error of the process

    def train(self, steps: int, calls: int) -> None:
        """Let the process make `calls` calls of `steps` gradient steps each; wait for its reply."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps} {calls}\n")
        self.process.stdin.flush()
        self.answer()

    def answer(self) -> str:
        """Return the next line that the process prints. Raise UserError if the process ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            reason = (self.log.read().strip().splitlines() or ["the process ended"])[-1]
            raise UserError(
                f"--peers-python: SBX failed under {self.python}: {reason}; "
                f"install {HERE / 'peers.txt'} there"
            )
        return line
