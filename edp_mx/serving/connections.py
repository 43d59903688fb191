"""The connections of a server, all in one thread, which reads whole requests.

Slow clients are cut off. No server that we know limits both the time of a whole request, header and
body, and the memory that is held for all clients together.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from contextlib import suppress
from typing import AsyncIterator, Awaitable, Callable, Dict, List, Optional, Tuple

import h11

from edp_mx.errors import UserError
from edp_mx.serving import wire
from edp_mx.serving.client import Client
from edp_mx.serving.messages import Answer, Refused, Request, busy

MOST_CONNECTIONS, MOST_OF_ADDRESS = 500, 250  # a process may mostly have 1,024 files
MOST_HELD = 1 << 26  # bytes of all bodies that are being read or answered, and of unread answers
KERNEL_BYTES = 1 << 17  # that the operating system holds of a connection, each way
WEIGHT = 16  # a body takes so many times its bytes once it is made words
REQUEST_SECONDS = 20  # for a whole request, from the connection or the answer before it
ANSWER_SECONDS = 20  # for a client to read an answer
LINGER_SECONDS = 2  # for a refused client to read why
END_SECONDS = 5  # for requests in the queue when the server is asked to end


class Server:
    """A server that listens; `run` answers until SIGTERM, Ctrl-C or `close`.

    Where there is no place for another connection, the one that has kept its place longest is cut
    off; where too much is held, the one for which most is held. One whose answer is being made
    stays.

    Args:
        answer: returns the answer to a whole request, be it a refusal.
        at_end: called when the server has ended.

    Raises:
        UserError: the port is taken, or there is no such host.
    """

    def __init__(
        self,
        answer: Callable[[Request], Awaitable[Answer]],
        *,
        host: str,
        port: int,
        at_end: Callable[[], None],
    ) -> None:
        self._answer, self._at_end = answer, at_end
        try:
            self._listeners = _listeners(host, port)
        except OSError as error:
            raise UserError(
                f"cannot listen at {host}, port {port}: {error.strerror}; choose others with "
                "--host and --port"
            ) from error
        self.port: int = self._listeners[0].getsockname()[1]
        self.clients: Dict[Client, None] = {}  # in the order in which they came
        self.held = 0
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._is_ending = self._is_closed = False

    def run(self) -> None:
        """Answer until asked to end; then answer the requests in the queue, and close the rest."""
        try:
            asyncio.run(self._run())
        finally:
            self._at_end()

    def close(self) -> None:
        """Ask the server to end, from any thread, also before it runs."""
        self._is_closed = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._asked.set)

    async def _run(self) -> None:
        self._asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._is_closed:  # before there was a loop to tell
            self._asked.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, RuntimeError):  # not the main thread
                self._loop.add_signal_handler(number, self._asked.set)
        listening = [asyncio.ensure_future(self._accept(each)) for each in self._listeners]
        await self._asked.wait()
        self._is_ending = True
        for task in listening:
            task.cancel()
        for listener in self._listeners:
            listener.close()
        for client in self.clients:
            if not client.is_answered:
                client.cut_off()
        left = [client.task for client in self.clients if client.task is not None]
        if left:
            await asyncio.wait(left, timeout=END_SECONDS)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listener)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client = Client(connection, address[0])
            except OSError:  # the client is gone, or there are no more files
                await asyncio.sleep(0.05)
                continue
            if self._make_place(client.address):
                self.clients[client] = None
                client.task = asyncio.ensure_future(self._serve(client))
            else:
                with suppress(OSError):
                    connection.send(
                        wire.written(wire.new_protocol(), busy().answer(), is_last=True)
                    )
                connection.close()
            await asyncio.sleep(0)

    def _make_place(self, address: str) -> bool:
        """Cut off a client where there are too many, of this address or in all."""
        found = [client for client in self.clients if client.address == address]
        if len(found) < MOST_OF_ADDRESS:
            found = [*self.clients]
            if len(found) < MOST_CONNECTIONS:
                return True
        waiting = [client for client in found if not client.is_answered]
        if waiting:
            self._end(min(waiting, key=lambda client: client.since))
        return bool(waiting)

    def _hold(self, client: Client, count: int) -> None:
        """Count the data held for a client; where all is too much, cut off the largest holder."""
        self.held += count - client.held
        client.held = count
        while self.held > MOST_HELD:
            others = [each for each in self.clients if each.held and not each.is_answered]
            most = max(others, key=lambda each: each.held, default=client)
            if most is client:
                raise busy()
            self._end(most)

    def _end(self, client: Client) -> None:
        """Cut a client off; its place is free at once."""
        self._forget(client)
        client.cut_off()

    def _forget(self, client: Client) -> None:
        self.clients.pop(client, None)
        self.held -= client.held
        client.held = 0

    async def _serve(self, client: Client) -> None:
        try:
            await self._converse(client)
        except OSError:  # the client is gone
            pass
        finally:
            client.stop_timer()
            self._forget(client)
            client.socket.close()

    async def _converse(self, client: Client) -> None:
        """Read requests and answer them, one after the other."""
        protocol = wire.new_protocol()
        while True:
            answer, is_last = await self._answered(client, protocol)
            if answer is None:
                return
            client.begin(ANSWER_SECONDS)
            await client.send(
                wire.written(protocol, answer, is_head=client.is_head, is_last=is_last)
            )
            if answer.parts is not None:
                await self._send_parts(client, protocol, answer.parts)
            self._hold(client, 0)
            if not protocol.our_state is protocol.their_state is h11.DONE:
                await client.linger(LINGER_SECONDS)
                return
            protocol.start_next_cycle()

    async def _send_parts(
        self, client: Client, protocol: h11.Connection, parts: AsyncIterator[bytes]
    ) -> None:
        """Send the body of an answer as it is made."""
        client.begin(None)
        async for data in parts:
            client.begin(ANSWER_SECONDS)
            await client.send(wire.part_of(protocol, data))
            client.begin(None)
        client.begin(ANSWER_SECONDS)
        await client.send(wire.part_of(protocol, None))

    async def _answered(
        self, client: Client, protocol: h11.Connection
    ) -> Tuple[Optional[Answer], bool]:
        """Return the answer to the next request, if there is one, and whether it is the last."""
        client.begin(REQUEST_SECONDS)
        client.is_head = False
        try:
            request = await self._read(client, protocol)
            if request is None:
                return None, True
            self._hold(client, len(request.body) * WEIGHT)
            client.begin(None)
            answer = await self._answer(request)
            client.begin(ANSWER_SECONDS)
            self._hold(client, len(answer.body))
            return answer, self._is_ending
        except h11.RemoteProtocolError as error:
            return wire.not_http(error).answer(), True
        except Refused as refused:
            return refused.answer(), True

    async def _read(self, client: Client, protocol: h11.Connection) -> Optional[Request]:
        """Return the next request with its whole body, None where there is none."""
        head, body = None, bytearray()
        while True:
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                if protocol.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    await client.send(protocol.send(go_on) or b"")
                data = await client.receive()
                if not data:
                    return None
                protocol.receive_data(data)
            elif isinstance(event, h11.Request):
                client.is_head = event.method == b"HEAD"
                head = wire.head_of(event)
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > wire.MOST_BYTES:
                    raise wire.too_large()
                self._hold(client, len(body))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return head._replace(body=bytes(body), here=client.here)
            else:
                return None


def _listeners(host: str, port: int) -> List[socket.socket]:
    """Listen at all addresses of a host, with the same port."""
    found: List[socket.socket] = []
    absent: Optional[OSError] = None
    known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, address in dict.fromkeys((each[0], each[4]) for each in known):
        at = (address[0], found[0].getsockname()[1] if found else port, *address[2:])
        try:
            found.append(socket.create_server(at, family=family, backlog=1024))
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
            absent = error
            continue
        found[-1].setblocking(False)
        for side in (socket.SO_SNDBUF, socket.SO_RCVBUF):  # of all connections; else they grow
            found[-1].setsockopt(socket.SOL_SOCKET, side, KERNEL_BYTES)
    if absent is not None and not found:
        raise absent
    return found
