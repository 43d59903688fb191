"""Processes that take turns: one side works when it is told to, all others stand still.

For sides that cannot live in one process: several Horovod workers, or another commit's code. A side
that is not at work is stopped by a signal, so that no thread of it spins and no worker of it looks
for messages while another side is timed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

PATIENCE = 240.0  # seconds for a side to start, or to take one turn


class Connection:
    """One JSON value a line, over a socket."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lines = channel.makefile("r", encoding="utf-8")

    def send(self, value: Any) -> None:
        """Sends a value; where nobody listens any more, the next `receive` says so."""
        with suppress(OSError):
            self._channel.sendall(f"{json.dumps(value)}\n".encode())

    def receive(self) -> Any:
        """The other's next value.

        Raises:
            EOFError: there is none.
        """
        line = self._lines.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    def orders(self) -> Iterator[Any]:
        """What it is told to do, until the other side closes."""
        with suppress(EOFError):
            while True:
                yield self.receive()

    def close(self) -> None:
        """The other side finds the end."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._lines.close()
        self._channel.close()


def connected(address: str, about: Any = None) -> Connection:
    """Called by each process of a side when it is ready for orders, with what it says of itself."""
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(address)
    connection = Connection(channel)
    connection.send([os.getpid(), about])
    return connection


def end_sides_on_sigterm() -> None:
    """Lets whoever is told to end do so as by an interrupt: no side is left standing still."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class Side:
    """A command whose processes (one, or all workers of a job) call `connected`.

    Args:
        command: is given the address as its last argument.
        size: how many of its processes will call.
        environment: what is set for them beside what is set already.

    Attributes:
        about: what each of its processes said of itself, in the order in which they called.

    Raises:
        SystemExit: it ended, or did not call in time; with the end of what it printed.
    """

    def __init__(
        self, command: Sequence[str], *, size: int = 1, environment: Dict[str, str]
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._printed = Path(self._folder.name, "printed")
        self._connections: List[Connection] = []
        self._pids: List[int] = []
        self.about: List[Any] = []
        address = str(Path(self._folder.name, "address"))
        with socket.socket(socket.AF_UNIX) as server, self._printed.open("wb") as printed:
            server.bind(address)
            server.listen(size)
            server.settimeout(1.0)
            self._process = subprocess.Popen(
                [*command, address],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
            self._welcome(server, size)
        self._signal(signal.SIGSTOP)

    def turn(self, order: Any) -> List[Any]:
        """What its processes answer to an order, when all have.

        Raises:
            SystemExit: one of them ended, or took too long.
        """
        self._signal(signal.SIGCONT)
        for connection in self._connections:
            connection.send(order)
        answers = [self._answer(connection) for connection in self._connections]
        self._signal(signal.SIGSTOP)
        return answers

    def close(self) -> None:
        """Ends its processes: they find nothing more to do."""
        self._signal(signal.SIGCONT)
        for connection in self._connections:
            connection.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.terminate()
            self._process.wait()
        self._folder.cleanup()

    def _welcome(self, server: socket.socket, size: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(self._connections) < size:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise self._failure()
            with suppress(socket.timeout):
                channel, _ = server.accept()
                channel.settimeout(PATIENCE)
                self._connections.append(Connection(channel))
                pid, about = self._answer(self._connections[-1])
                self._pids.append(pid)
                self.about.append(about)

    def _answer(self, connection: Connection) -> Any:
        try:
            return connection.receive()
        except (EOFError, OSError):
            raise self._failure() from None

    def _failure(self) -> SystemExit:
        """Ends what is left, and says what it printed last."""
        printed = self._printed.read_text(errors="replace").strip()
        self.close()
        return SystemExit(f"a side of the benchmark did not answer; it printed:\n{printed[-2000:]}")

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
