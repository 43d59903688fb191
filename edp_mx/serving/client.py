"""One connection of a server."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Optional

_CHUNK = 1 << 14


class Client:
    """A connection: its pending data, and the time until which it may go on."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.socket, self.address, self.here = connection, address, connection.getsockname()[0]
        self.held = 0
        self.is_head = False  # it asks for an answer without its body
        self.is_answered = False  # its request is whole, and its answer is being made
        self.since = time.monotonic()
        self.task: Optional[asyncio.Task] = None
        self._timer: Optional[asyncio.TimerHandle] = None

    def begin(self, seconds: Optional[float]) -> None:
        """Begin a part of the conversation, which may take so many seconds; None for no limit."""
        self.stop_timer()
        self.is_answered = seconds is None
        self.since = time.monotonic()
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.cut_off)

    def stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def cut_off(self) -> None:
        assert self.task is not None
        self.task.cancel()

    async def receive(self) -> bytes:
        data = await asyncio.get_running_loop().sock_recv(self.socket, _CHUNK)
        await asyncio.sleep(0)  # a client that sends without end must not keep the others waiting
        return data

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def linger(self, seconds: float) -> None:
        """Give the client so long to read the last answer, which what it still sends would undo."""
        self.begin(seconds)
        self.socket.shutdown(socket.SHUT_WR)
        while await self.receive():
            pass
