"""
Run `swflow` and `snakemake` in forks of a process that has imported both, which takes a fifth of the time.

The rules of the workflow find these commands first, too. A command has its own session; it is killed with its client.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

_CLIENT = """#!{python} -ISs
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"x"], [1, 2])
    server.sendall(json.dumps([{program!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
    sys.exit(int(server.recv(8) or 1))
"""


class Server:
    """The process that forks; use it as a context."""

    def __init__(self) -> None:
        # The path of a socket has at most 107 characters.
        self._temporary = tempfile.TemporaryDirectory(prefix="forked-")
        self.folder = Path(self._temporary.name)
        address = str(self.folder / "socket")
        for program in ("swflow", "snakemake"):
            file = self.folder / program
            file.write_text(_CLIENT.format(python=sys.executable, address=address, program=program))
            file.chmod(0o755)
        self._process = subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._temporary.cleanup()

    def start(self, folder: Path, *words: str) -> subprocess.Popen[str]:
        """Start a command in a folder and in a session of its own."""
        environment = os.environ | {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.Popen(
            [str(self.folder / words[0]), *words[1:]], cwd=folder, env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


def serve(address: str) -> NoReturn:
    """Accept commands, and run each in a fork."""
    import duckdb  # noqa: F401
    import scipy.stats  # noqa: F401
    import snakemake.cli  # noqa: F401
    import vl_convert  # noqa: F401

    import swflow.studies.workflow  # noqa: F401
    from swflow.files.fingerprint import fingerprint

    fingerprint("load")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _handle(connection)
        connection.close()


def _handle(connection: socket.socket) -> NoReturn:
    """Run one command in a fork; kill it if its client ends first."""
    _, outputs, _, _ = socket.recv_fds(connection, 1, 2)
    content = b""
    while not content.endswith(b"\n"):
        content += connection.recv(1 << 20)
    program, arguments, folder, environment = json.loads(content)
    pid = os.fork()
    if pid == 0:
        _run(program, arguments, folder, environment, outputs, connection)
    for output in outputs:
        os.close(output)
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())
    os._exit(0)


def _run(program: str, arguments: list[str], folder: str, environment: dict[str, str], outputs: list[int],
         connection: socket.socket) -> NoReturn:  # fmt: skip
    """Run a command in this process, and end it."""
    status = 1
    try:
        connection.close()
        os.setsid()
        for target, output in enumerate(outputs, 1):
            os.dup2(output, target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        kernels = {name: value for name, value in os.environ.items() if name == "NUMBA_CACHE_DIR"}  # set on import
        os.environ.clear()
        os.environ.update(kernels | environment)
        sys.path.insert(0, "")
        sys.argv = [program, *arguments]
        if program == "snakemake":
            from snakemake.cli import main

            main(arguments)
        else:
            from swflow.cli import main as command

            command(arguments)
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
