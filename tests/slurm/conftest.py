"""A real Slurm with two nodes on one machine: only loopback, no systemd, one folder for state."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "srun", "scancel", "scontrol", "sinfo", "squeue")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
NODES = ("n1", "n2")

SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SrunPortRange={ports[3]}-{last}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PropagateResourceLimits=NONE
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
GresTypes=gpu
NodeName=DEFAULT CPUs=2 RealMemory=64000
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} Gres=gpu:1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]}
PartitionName=cpu Nodes=n1,n2 Default=YES MaxTime=INFINITE
PartitionName=gpu Nodes=n1 MaxTime=INFINITE
"""


class Slurm:
    """Slurm's daemons, and the environment that a client needs to reach them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        own = {"PATH": f"{folder}/bin:{PATH}", "SLURM_CONF": f"{folder}/slurm.conf"}
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH"))}
        self.env = {**clean, **own}

    def start(self) -> None:
        """Write the configuration, start all daemons and wait until a job has run."""
        self.folder.chmod(0o755)  # munged requires that its clients can enter the folder
        for name in ("bin", "state", *NODES):
            (self.folder / name).mkdir()
        with contextlib.ExitStack() as held:
            sockets = [held.enter_context(socket.socket()) for _ in range(4)]
            for s in sockets:
                s.bind(("127.0.0.1", 0))
            ports = sorted(s.getsockname()[1] for s in sockets)
        text = SLURM_CONF.format(
            host=platform.node(),
            user=getpass.getuser(),
            folder=self.folder,
            ports=ports,
            last=min(ports[3] + 200, 65535),
        )
        (self.folder / "slurm.conf").write_text(text)
        # slurmd requires a device for each GPU.
        (self.folder / "gres.conf").write_text("NodeName=n1 Name=gpu File=/dev/null\n")
        for name in CLIENTS:  # inside a job, Snakemake's executor drops SLURM_CONF
            client = self.folder / "bin" / name
            real, conf = shutil.which(name, path=PATH), self.env["SLURM_CONF"]
            client.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {real} "$@"\n')
            client.chmod(0o755)
        key, munge = self.folder / "munge.key", self.folder / "munge.socket"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        own = [f"--{n}={self.folder}/munge.{n[:-5]}" for n in ("pid-file", "log-file", "seed-file")]
        self.launch("munged", "munged", "-F", f"--key-file={key}", f"--socket={munge}", *own)
        self.until(munge.exists, 20, "munged listens")
        self.launch("slurmctld", "slurmctld", "-D", "-i")
        for node in NODES:
            self.launch(node, "slurmd", "-D", "-N", node)
        self.until(self.idle, 60, "all nodes are idle")
        assert self.call("srun", "-n1", "echo", "ran") == "ran\n"

    def idle(self) -> bool:
        """Return True if all nodes are idle."""
        with contextlib.suppress(subprocess.SubprocessError):  # the controller may be starting
            return set(self.call("sinfo", "-ho", "%T").split()) == {"idle"}
        return False

    def launch(self, name: str, *command: str) -> None:
        """Start a daemon in its own session."""
        with open(self.folder / f"{name}.out", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                command,
                env=self.env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        """End every job, then every daemon."""
        with contextlib.suppress(subprocess.SubprocessError, AssertionError):
            self.call("scancel", "--user", getpass.getuser())
            self.until(lambda: not self.call("squeue", "-h"), 60, "no job is left")
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def until(self, done: Callable[[], object], seconds: float, what: str) -> None:
        """Wait until `done()` is true."""
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, f"still waiting after {seconds} s: {what}"
            time.sleep(0.2)

    def call(self, *command: str) -> str:
        """Run a client and return its output."""
        return subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    def jobs(self, states: str = "RUNNING") -> dict[str, tuple[str, str, str]]:
        """Return each job's (node, state, comment); the comment is the rule with its wildcards."""
        lines = self.call("squeue", "-h", f"--states={states}", "-o", "%i|%N|%T|%k").splitlines()
        return {
            job: (node, state, text) for job, node, state, text in (x.split("|") for x in lines)
        }

    def processes(self, **variables: str) -> set[int]:
        """Return the processes of jobs that have these variables in their environment."""
        wanted, found = {f"{name}={value}" for name, value in variables.items()}, set()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # the process has ended or belongs to another user
                lines = path.read_bytes().decode(errors="replace").split("\0")
                ours = any(x.startswith("PATH=") and f"{self.folder}/bin" in x for x in lines)
                if ours and wanted <= set(lines):
                    found.add(int(path.parent.name))
        return found

    def crash(self, node: str) -> None:
        """Kill a node with all its processes, and report it down to the controller."""
        tasks = self.processes(SLURMD_NODENAME=node)
        stewards = {pid for pid in map(_parent, tasks) if _name(pid).startswith("slurmstepd")}
        self.daemons[node].kill()
        for pid in (*stewards, *tasks):  # stewards first, or they report the ends of tasks
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.daemons[node].wait()
        self.call("scontrol", "update", f"nodename={node}", "state=down", "reason=died")

    def revive(self, node: str) -> None:
        """Start a node again after its crash."""
        self.launch(node, "slurmd", "-D", "-N", node)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """Yield a running Slurm; skip if programs are missing or the host name is not loopback."""
    missing = [name for name in (*DAEMONS, *CLIENTS) if not shutil.which(name, path=PATH)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: munge slurmctld slurmd)")
    try:
        address = socket.gethostbyname(platform.node())
    except OSError:
        address = "nothing"
    if address != "127.0.0.1":  # job steps connect back to srun at this address
        pytest.skip(f"{platform.node()} is {address}, not 127.0.0.1; add it to /etc/hosts")
    # The folder's path is short, because a socket's path may have at most 108 characters.
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder:
        cluster = Slurm(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
