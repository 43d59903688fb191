"""The TCP sockets of a job's processes, as the kernel tells of them."""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

LISTENS, IS_CONNECTED = "0A", "01"


class Socket(NamedTuple):
    state: str
    here: str
    port: int
    there: str


def sockets_of(pid):
    """Those of a process and of all that it started, in the network of the first."""
    found = {}
    with suppress(psutil.NoSuchProcess):
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        held = {inode for process in family for inode in _inodes(process.pid)}
        found = read_sockets(pid)
    return {each for inode, each in found.items() if inode in held}


def read_sockets(pid):
    """All those of the network that a process is in, by their inodes."""
    found = {}
    for kind in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
                words = line.split()
                (here, port), (there, _) = (_read(word) for word in words[1:3])
                found[words[9]] = Socket(words[3], here, port, there)
    return found


def _inodes(pid):
    with suppress(OSError):
        for link in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                target = os.readlink(link.path)
                if target.startswith("socket:["):
                    yield target[len("socket:[") : -1]


def _read(word):
    """`0100007F:1F90` as an address and a port; each four bytes are in the machine's order."""
    address, _, port = word.partition(":")
    words = [bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, b"".join(words)), int(port, 16)
