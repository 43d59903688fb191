"""Jobs of one or more processes that take turns: one works, all others are stopped by a signal.

So no thread of a job spins, and no worker of it looks for messages, while another job is timed.
"""

import ctypes
import os
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

PATIENCE = 400.0  # seconds for a job to start, or to take one turn
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Have this process killed when its parent ends, so that none is left standing still."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(address: str, work: Callable[[Any], Any]) -> None:
    """Answer orders until there are no more; called by each process of a job."""
    with Client(address) as connection, suppress(EOFError):
        connection.send(os.getpid())
        while True:
            connection.send(work(connection.recv()))


class Job:
    """A command of which `size` processes call `serve` with the address, its last argument."""

    def __init__(
        self, command: Sequence[str], *, size: int = 1, environment: Dict[str, str]
    ) -> None:
        # An end by SIGTERM unwinds as an interrupt does: no job is left standing still.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        self._connections: List[Connection] = []
        self._pids: List[int] = []
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
            address = str(Path(folder, "address"))
            server.bind(address)
            server.listen(size)
            self._process = subprocess.Popen(
                [*command, address],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=2,  # what it prints is no result
                preexec_fn=_die_with_parent,
            )
            self._accept(server, size)
        self._signal(signal.SIGSTOP)

    def turn(self, order: Any) -> List[Any]:
        """Give an order and return the answers of all processes, or exit if one ended or hangs."""
        self._signal(signal.SIGCONT)
        for connection in self._connections:
            connection.send(order)
        answers = [self._answer(connection) for connection in self._connections]
        self._signal(signal.SIGSTOP)
        return answers

    def close(self) -> None:
        """End its processes, by the end of their orders or else by a signal."""
        self._signal(signal.SIGCONT)
        for connection in self._connections:
            connection.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.terminate()
            self._process.wait()

    def _accept(self, server: socket.socket, size: int) -> None:
        server.settimeout(1.0)
        for _ in range(int(PATIENCE)):
            with suppress(socket.timeout):
                channel, _ = server.accept()
                self._connections.append(Connection(channel.detach()))
                self._pids.append(self._answer(self._connections[-1]))
            if len(self._connections) == size:
                return
            if self._process.poll() is not None:
                break
        raise self._failure()

    def _answer(self, connection: Connection) -> Any:
        with suppress(EOFError, ConnectionError):
            if connection.poll(PATIENCE):
                return connection.recv()
        raise self._failure()

    def _failure(self) -> SystemExit:
        self.close()
        return SystemExit(f"a process of the benchmark ended or hung; see above: {self._process}")

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
