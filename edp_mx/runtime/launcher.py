"""Start the workers of a job, on this machine or on several: `horovodrun` with its doors closed.

By itself `horovodrun` listens on all interfaces, accepts any host key, sends all environment
variables along and ends with 1 whatever happened. See docs/several-machines.md.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import sys
import threading
import time
from shlex import quote
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import psutil
from horovod.runner import gloo_run
from horovod.runner.common.util import safe_shell_exec
from horovod.runner.common.util.hosts import parse_hosts
from horovod.runner.common.util.settings import Settings
from horovod.runner.http import http_server

from edp_mx.errors import UserError
from edp_mx.runtime.processes import EXIT_ASKED, EXIT_HUNG_UP, EXIT_NO_SSH, asked_to_end, on_ending

# How long workers wait for each other, in seconds. By itself Gloo gives up after 30, when a worker
# that was suspended for a while may still go on; the watchdog ends a job long before this.
PATIENCE = "3600"
# A host that does not answer for half a minute counts as lost; no question can be answered.
SSH = (
    "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 "
    "-o LogLevel=ERROR"
)
# What workers on other machines get of the environment, as part of a command that `ps` shows.
SENT = re.compile(
    r"EDP_MX|HOROVOD|NCCL|CUDA|MXNET|OMP|PYTHON|((LD_LIBRARY_)?PATH|LANG|HOSTS|NIC)$|LC_"
)


class Death(NamedTuple):
    """The first worker that failed."""

    rank: int
    host: str
    code: int
    is_remote: bool
    was_asked: bool

    @property
    def exit_code(self) -> int:
        return asked_to_end() if self.was_asked else self.code

    def describe(self) -> str:
        """Return its end, for a sentence."""
        where = f" on {self.host}" if self.is_remote else ""
        if self.is_remote and self.code == EXIT_NO_SSH:
            return f"ssh could not reach {self.host}, or lost it"
        if self.code > 128:
            return f"worker {self.rank}{where} was killed by signal {self.code - 128}"
        return f"worker {self.rank}{where} ended with code {self.code}"


def launch(
    command: Sequence[str], *, workers: int, hosts: Optional[str] = None, nic: Optional[str] = None
) -> Optional[Death]:
    """Run a command once per worker, all of them at the same time, until the last has ended.

    Args:
        hosts: `host1:slots,host2:slots`; by default this machine alone.
        nic: the network interface over which the hosts speak, with the same name on all of them;
            by default the one with the route to the first other host.

    Returns:
        None when all ended well.

    Raises:
        UserError: there is no such interface, or not as many slots as workers.

    Guarantee: the rendezvous listens on one address only, 127.0.0.1 if there are no other hosts.
    """
    os.environ.setdefault("HOROVOD_LOG_LEVEL", "fatal")  # the watchdog reports the failure
    os.environ.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", PATIENCE)
    hosts = hosts or f"localhost:{workers}"
    others = _others(hosts, workers)
    name, address = _interface(others, nic)
    http_server.find_port = lambda build: _bound(build((address, 0)))
    stop = threading.Event()
    deaths: List[Death] = []

    def start(command: str, slot: Any, events: List[threading.Event]) -> Tuple[int, float]:
        is_remote = slot.hostname in others
        if is_remote:
            # By itself ssh has one code for a command that was killed and for a host that is gone.
            there = f"cd {quote(os.getcwd())} && {command}; exit $?"
            command = f"{SSH} {slot.hostname} {quote(f'exec sh -c {quote(there)}')}"
        code = safe_shell_exec.execute(
            command,
            index=slot.rank or None,  # the lines of all but the first say whose they are
            events=[*events, stop],
        )
        if code:
            asked = events[0].is_set()
            deaths.append(Death(slot.rank, slot.hostname, code, is_remote, asked))
            stop.set()
        return 0, time.time()

    settings = Settings(hosts=hosts, num_proc=workers)
    gloo_run.launch_gloo(list(command), start, settings, {name}, sent_environment(), address)
    return deaths[0] if deaths else None


def sent_environment() -> Dict[str, str]:
    """Return the variables that workers on other machines get."""
    return {name: value for name, value in os.environ.items() if SENT.match(name)}


def _others(hosts: str, workers: int) -> Set[str]:
    """Return the hosts that are not this machine."""
    try:
        slots = {host.hostname: host.slots for host in parse_hosts(hosts)}
    except ValueError as error:
        raise UserError(f"HOSTS={hosts}: write it as host1:slots,host2:slots") from error
    if sum(slots.values()) != workers:
        raise UserError(f"HOSTS={hosts} has {sum(slots.values())} slots for {workers} workers")
    mine = {address for _, address in _addresses()}
    return {host for host in slots if _resolved(host) not in mine}


def _interface(others: Set[str], nic: Optional[str]) -> Tuple[str, str]:
    """Return the interface over which the workers speak, and this machine's address on it."""
    found = _addresses()
    if not others:
        return next((name, address) for name, address in found if address == "127.0.0.1")
    if nic is None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # which sends nothing
            host = sorted(others)[0]
            try:
                probe.connect((_resolved(host), 9))
            except OSError as error:
                raise UserError(f"HOSTS: no network leads to {host} ({error.strerror})") from error
            route = probe.getsockname()[0]
        return next((name, address) for name, address in found if address == route)
    for name, address in found:
        if name == nic:
            return name, address
    known = ", ".join(f"{name} ({address})" for name, address in found)
    raise UserError(f"NIC={nic}: no such interface with an IPv4 address here; there are {known}")


def _addresses() -> List[Tuple[str, str]]:
    """Return all interfaces of this machine with each IPv4 address."""
    return [
        (name, each.address)
        for name, addresses in psutil.net_if_addrs().items()
        for each in addresses
        if each.family == socket.AF_INET
    ]


def _resolved(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError as error:
        raise UserError(f"HOSTS: the host {host} is unknown here ({error.strerror})") from error


def _bound(server: Any) -> Tuple[Any, int]:
    return server, server.server_address[1]


def _end(number: int, _: object) -> None:
    """Take a closed terminal for SIGTERM, which Horovod handles from when the workers start."""
    if number != signal.SIGHUP:
        sys.exit(asked_to_end())
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run `python -m edp_mx.runtime.launcher`; return the code of the first worker to fail."""
    parser = argparse.ArgumentParser(prog="launcher", description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--hosts", help="host1:slots,host2:slots")
    parser.add_argument("--nic", help="network interface between the hosts")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = vars(parser.parse_args())
    on_ending(_end)
    try:
        death = launch(given.pop("command"), **given)
    except UserError as error:
        print(f"edp-mx: {error}", file=sys.stderr)
        return 2
    if death is None:
        return 0
    if death.exit_code not in (2, EXIT_ASKED, EXIT_HUNG_UP):  # a worker has said what to mend
        print(f"edp-mx: {death.describe()}; the job has ended", file=sys.stderr)
    return death.exit_code


if __name__ == "__mp_main__":  # the process of Horovod's between this one and a worker
    threading.excepthook = lambda _: None  # it stumbles over a worker that has just ended
if __name__ == "__main__":
    sys.exit(main())
