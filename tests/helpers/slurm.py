"""A Slurm of one or several nodes on this machine, with accounting: start it, use it, stop it; for tests.

As a script: ``python tests/cluster/slurm.py`` starts it, prints a line, and stops it at the end of its input.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

#: The line that marks configurations written here: others are never touched.
MARK = "# made by tests/cluster/slurm.py; removed when its Slurm stops"
CONFIG = Path("/etc/slurm")
LOCK = Path(tempfile.gettempdir()) / "swflow-test-slurm.lock"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scancel")
ACCOUNTING_PROGRAMS = ("slurmdbd", "sacctmgr", "sacct", "mariadbd", "mariadb-install-db", "mariadb")

SLURM_CONF = """{mark}
ClusterName=swflowtest
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
MinJobAge=300
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
JobAcctGatherType=jobacct_gather/none
AccountingStorageType={storage}
{accounting}
{nodes}
{site}
"""

#: How jobs are scheduled, unless stated: partitions and the interval of backfilling, seconds.
SITE = """\
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2
PartitionName=main Nodes=ALL Default=YES MaxTime=240 State=UP OverSubscribe=NO
PartitionName=quick Nodes=ALL MaxTime=5 State=UP OverSubscribe=NO"""

#: Ports of the first instance: slurmctld, slurmdbd, MariaDB, and the nodes. Others are below the ephemeral ports.
PORT, NODES_FROM = 36817, 83

SLURMDBD_CONF = """{mark}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdPort={dbd}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


class Unavailable(Exception):
    """Why no Slurm can be started here."""


class Slurm:
    """
    A Slurm on this machine.

    Parameters
    ----------
    folder : path-like, optional
        For state and logs; by default a temporary one.
    accounting : bool
        Whether to start slurmdbd with MariaDB where they are installed, so that ``sacct`` works.
    cpus, memory : int
        What each node is said to have, whatever the machine has; megabytes.
    nodes : int
        The number of nodes; each is a slurmd of its own.
    kinds : sequence of str
        What slurm.conf says of the first nodes, of as many next ones, and so on, besides CPUs if these are ``cpus``;
        by default the memory.
    site : str
        The lines of slurm.conf that describe scheduling and partitions.
    instance : int
        0 uses /etc/slurm, where other programs find it. Others have ports and a configuration of their own, so that
        several run at the same time.

    Attributes
    ----------
    has_accounting : bool
        Whether ``sacct`` works.
    job_completions : pathlib.Path
        What the plugin jobcomp/filetxt writes.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        accounting: bool = True,
        cpus: int = 4,
        memory: int = 2000,
        nodes: int = 1,
        kinds: Sequence[str] = ("",),
        site: str = SITE,
        instance: int = 0,
    ) -> None:
        self._own = tempfile.mkdtemp(prefix="slurm-", dir="/tmp") if folder is None else None
        self.folder = Path(folder or self._own or "")
        self.cpus, self.memory, self.site = cpus, memory, site
        self.kinds = kinds
        self.nodes = ["localhost"] if nodes == 1 else [f"n{number}" for number in range(1, nodes + 1)]
        self.has_accounting = False
        self._wants_accounting = accounting
        self._port = PORT if instance == 0 else 20000 + 200 * instance
        self._config = CONFIG if instance == 0 else self.folder / "etc"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._written: list[Path] = []
        self._lock: TextIO | None = None
        self.job_completions = self.folder / "jobcomp.txt"

    def __enter__(self) -> "Slurm":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start every daemon, and wait until the node is idle; `Unavailable` with the reason if that fails."""
        missing = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
        if missing:
            raise Unavailable(f"{', '.join(missing)} not installed (Debian: slurm-wlm, munge)")
        if os.geteuid() != 0:
            raise Unavailable("slurmd runs jobs of other users and the configuration is in /etc/slurm: needs root")
        conf = self._config / "slurm.conf"
        if conf.exists() and MARK not in conf.read_text():
            raise Unavailable(f"{conf} is somebody's; it is left alone")
        if self._config == CONFIG:
            self._lock = LOCK.open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)  # one configuration: another test's Slurm has to stop first
        for name in ("state", *(f"spool-{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._start_munge()
        if self._wants_accounting and all(shutil.which(name, path=_PATH) for name in ACCOUNTING_PROGRAMS):
            self._start_accounting()
        accounting = f"AccountingStoragePass={self.folder}/munge.socket\n"  # socket for all clients
        accounting += (
            f"AccountingStorageHost=localhost\nAccountingStoragePort={self._port + 2}\nJobAcctGatherFrequency=0"
        )
        self._write(
            conf,
            SLURM_CONF.format(
                mark=MARK,
                folder=self.folder,
                nodes="\n".join(self._node_lines()),
                port=self._port,
                site=self.site,
                storage="accounting_storage/slurmdbd" if self.has_accounting else "accounting_storage/none",
                accounting=accounting if self.has_accounting else "",
            ),
        )
        gres = []
        for numbers, what in self.describe_nodes():
            for gpus in re.findall(r"Gres=gpu:(\d+)", what):
                files = [self.folder / f"gpu{number}" for number in range(int(gpus))]
                gres += [f"NodeName=n{number} Name=gpu File={file}" for number in numbers for file in files]
                for file in files:
                    file.touch()
        self._write(self._config / "gres.conf", "\n".join([MARK, *gres, ""]))
        self.job_completions.touch()
        if self.has_accounting:
            self.run("sacctmgr", "-i", "add", "cluster", "swflowtest", check=False)
            self.run("sacctmgr", "-i", "add", "account", "physics", "Description=physics", "Organization=test")
            self.run("sacctmgr", "-i", "add", "user", "root", "Account=physics", check=False)
        self._daemon("slurmctld", "-D", "-i")
        for node in self.nodes:
            self._daemon("slurmd", "-D", "-N", node)
        idle = lambda: self.run("sinfo", "-h", "-N", "-o", "%N %t", check=False)  # noqa: E731
        self.wait_for(
            "nodes that are idle",
            lambda: len({line for line in idle().splitlines() if "idle" in line}) == len(self.nodes),
            90,
        )

    def describe_nodes(self) -> list[tuple[range, str]]:
        """Return the numbers of the nodes of each kind, and what slurm.conf says of them."""
        size = len(self.nodes) // len(self.kinds)
        return [
            (
                range(1 + size * k, 1 + size * (k + 1)),
                kind if "CPUs=" in kind else f"CPUs={self.cpus} {kind or f'RealMemory={self.memory}'}",
            )
            for k, kind in enumerate(self.kinds)
        ]

    def _node_lines(self) -> Iterator[str]:
        host, first = os.uname().nodename.split(".")[0], self._port + NODES_FROM - 1
        for numbers, what in self.describe_nodes():
            names = self.nodes[0] if len(self.nodes) == 1 else f"n[{numbers[0]}-{numbers[-1]}]"
            ports = first + 1 if len(self.nodes) == 1 else f"[{first + numbers[0]}-{first + numbers[-1]}]"
            yield f"NodeName={names} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} {what} State=UNKNOWN"

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        options = [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        options.append(f"--socket={self.folder}/munge.socket")
        self._daemon("munged", "--foreground", "--force", *options)
        self.wait_for("munge", lambda: (self.folder / "munge.socket").exists(), 20)

    def _start_accounting(self) -> None:
        """Start MariaDB and slurmdbd; without them there is no sacct, and the rest works."""
        data = self.folder / "database"
        # The kernel has too few asynchronous requests for several databases.
        base = ["--no-defaults", f"--datadir={data}", "--user=root", "--innodb-use-native-aio=0"]
        self._run_quietly("mariadb-install-db", *base, "--auth-root-authentication-method=normal", "--skip-test-db")
        socket = f"--socket={self.folder}/mariadb.socket"
        self._daemon(
            "mariadbd", *base, socket, "--bind-address=127.0.0.1", f"--port={self._port + 3}",
            "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", f"--pid-file={self.folder}/mariadb.pid",
        )  # fmt: skip
        client = ["mariadb", "--no-defaults", socket, "-u", "root", "-e"]
        environment = self._environment()
        ready = lambda: subprocess.run([*client, "SELECT 1"], capture_output=True, env=environment).returncode == 0  # noqa: E731
        self.wait_for("MariaDB", ready, 60)
        grant = "CREATE USER slurm@'%' IDENTIFIED BY 'slurm'; CREATE USER slurm@localhost IDENTIFIED BY 'slurm'; "
        grant += "GRANT ALL ON *.* TO slurm@'%'; GRANT ALL ON *.* TO slurm@localhost"
        subprocess.run([*client, grant], check=True, capture_output=True, env=environment)
        conf = self._config / "slurmdbd.conf"
        if conf.exists() and MARK not in conf.read_text():
            raise Unavailable(f"{conf} is somebody's; it is left alone")
        self._write(
            conf, SLURMDBD_CONF.format(mark=MARK, folder=self.folder, dbd=self._port + 2, database=self._port + 3)
        )
        # sacctmgr needs a slurm.conf that says where slurmdbd is.
        self._write(
            self._config / "slurm.conf",
            f"{MARK}\nClusterName=swflowtest\nSlurmctldHost=localhost\nAuthInfo=socket={self.folder}/munge.socket\n"
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=localhost\n"
            f"AccountingStoragePort={self._port + 2}\nAccountingStoragePass={self.folder}/munge.socket\n"
            "SlurmUser=root\nNodeName=localhost CPUs=1\n",
        )
        self._daemon("slurmdbd", "-D")
        self.wait_for("slurmdbd", lambda: self.run("sacctmgr", "-n", "list", "cluster", check=None) is not None, 60)
        self.has_accounting = True

    def stop(self) -> None:
        """Stop every daemon that was started here, in reverse order, and remove what was written."""
        if any(process.args[0].endswith("slurmctld") for process in self._processes):  # type: ignore[index,union-attr]
            self.run("scancel", "--user=root", check=False)
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        for path in self._written:
            path.unlink(missing_ok=True)
        self._written.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)

    def run(self, *command: str, check: bool | None = True) -> str:
        """Run a command of Slurm; return what it printed. With ``check=None`` None stands for a failure."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=self._environment())
        except subprocess.TimeoutExpired:
            if check:
                raise
            return None if check is None else ""  # type: ignore[return-value]
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}{self._ends_of_logs()}")
        if check is None and done.returncode:
            return None  # type: ignore[return-value]
        return done.stdout

    def submit(self, *options: str, wrap: str) -> int:
        """Submit a job with sbatch; return its id."""
        printed = self.run("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={wrap}")
        return int(printed.strip().split(";")[0])

    def wait_until_empty(self, seconds: float = 120) -> None:
        """Wait until no job is queued or running."""
        self.wait_for("an empty queue", lambda: not self.run("squeue", "-h", "-o", "%i %t").strip(), seconds)

    def _daemon(self, program: str, *options: str) -> None:
        path = shutil.which(program, path=_PATH)
        assert path is not None
        log = (self.folder / f"{program}{'-'.join(options[-1:] if '-N' in options else ())}.out").open("wb")
        self._processes.append(
            subprocess.Popen(
                [path, *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._environment()
            )
        )
        log.close()

    def _run_quietly(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, env=self._environment())
        if done.returncode:
            raise Unavailable(f"{command[0]}: {done.stderr.strip().splitlines()[-1:]}")

    def wait_for(self, what: str, ready: object, seconds: float) -> None:
        """Wait until something is so; `Unavailable` if it takes longer, or a daemon ended."""
        end = time.monotonic() + seconds
        while not ready():  # type: ignore[operator]
            ended = [process for process in self._processes if process.poll() is not None]
            if time.monotonic() > end or ended:
                names = ", ".join(Path(process.args[0]).name for process in ended)  # type: ignore[index]
                reason = f"{names} ended" if names else f"not there after {seconds:.0f} s"
                raise Unavailable(f"{what}: {reason}{self._ends_of_logs()}")
            time.sleep(0.25)

    def _environment(self) -> dict[str, str]:
        return os.environ | {"PATH": _PATH, "TZ": "UTC", "SLURM_CONF": str(self._config / "slurm.conf")}

    def _ends_of_logs(self) -> str:
        files = [*self.folder.glob("*.log"), *self.folder.glob("*.out")]
        ends = [(file.name, file.read_text(errors="replace").strip().splitlines()[-2:]) for file in files]
        return "".join(f"; {name}: {' / '.join(lines)}" for name, lines in ends if lines)

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600 if path.name == "slurmdbd.conf" else 0o644)
        if path not in self._written:
            self._written.append(path)


_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin"


def main() -> None:
    """Start, say what there is, wait for the end of the input, stop."""
    try:
        with Slurm() as slurm:
            print(json.dumps({"folder": str(slurm.folder), "accounting": slurm.has_accounting}), flush=True)
            sys.stdin.read()
    except Unavailable as reason:
        raise SystemExit(f"no Slurm: {reason}") from None


if __name__ == "__main__":
    main()
