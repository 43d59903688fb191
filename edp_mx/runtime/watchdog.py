"""A watchdog that ends a job in which nothing moves, and names the worker at fault.

Horovod's own stall inspector is silent under Gloo: a worker that hangs makes all others wait
forever, and one that is killed is not always the one that `horovodrun` names.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterable, List, Optional

from edp_mx.errors import UserError
from edp_mx.runtime.json_text import parse_json
from edp_mx.runtime.processes import on_ending

if TYPE_CHECKING:
    from edp_mx.runtime.distributed import Workers

EXIT_HANGS = 4  # no progress for too long
EXIT_PEER_DIED = 5  # another worker is gone
INTERVAL = 0.2  # seconds between two looks
ASLEEP = 5.0  # seconds without a look after which this process was not running at all
GRACE = 4.0  # seconds until the end of this process, if it is asked and does not end by itself
TOLD = 5.0  # seconds in which the launcher ends a job of which a worker has failed
SHUT_DOWN = "Horovod has been shut down"  # the error of its operations when another worker is gone
# The last lines of a job that is ended, for the console, made one after the other; tuple: none.
Parting = Callable[[], Iterable[str]]


@dataclass(frozen=True)
class Peer:
    """Another worker of this job, watched for a sign of life."""

    rank: int
    pid: int
    host: str

    def is_dead(self) -> bool:
        """Whether the process is gone or a zombie; a worker on another machine counts as alive."""
        return self.host == socket.gethostname() and _state(self.pid) in ("", "Z", "X")

    def is_stopped(self) -> bool:
        """Whether the process exists but is stopped (SIGSTOP, a debugger)."""
        return self.host == socket.gethostname() and _state(self.pid) in ("T", "t")


class Watchdog:
    """A thread that ends this process when a peer dies or nothing moves for `seconds`.

    Each worker keeps its last progress in `folder/worker_<rank>.json`, and removes it when it ends
    by itself, so that only a worker that was killed leaves one behind. Time in which this process
    itself was stopped does not count. `with watchdog:` arms and disarms it, in the main thread.
    horovodrun answers a death with SIGTERM to all others at once; whoever of them has the lowest
    rank still tells who died.
    """

    def __init__(
        self,
        *,
        peers: List[Peer],
        rank: int,
        seconds: float,
        folder: Path,
        parting: Parting = tuple,
    ) -> None:
        self._peers, self._parting = {peer.rank: peer for peer in peers}, parting
        self._rank, self._seconds, self._folder = rank, seconds, folder
        self._what = "starting"
        self._last = time.monotonic()
        self._written: Optional[str] = None
        self._lost: Optional[float] = None  # when the other workers were
        self._asked: Optional[float] = None  # when this one was to end
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._listen, self._wake = os.pipe()  # bytes: numbers of signals, or 0 for "stop watching"

    @classmethod
    def over(
        cls, workers: Workers, *, folder: Path, seconds: float, parting: Parting = tuple
    ) -> Watchdog:
        """Build a watchdog over all workers of this job; each of them calls this.

        Args:
            parting: the words of the living worker of lowest rank when it ends the job.
        """
        mine = workers.rank, os.getpid(), socket.gethostname()
        peers = [Peer(*facts) for facts in workers.gather(mine)]
        return cls(peers=peers, rank=workers.rank, seconds=seconds, folder=folder, parting=parting)

    def heartbeat(self, what: str) -> None:
        """Report that this worker moves, e.g. `heartbeat("epoch 3, step 12")`."""
        self._what, self._last = what, time.monotonic()

    def is_asked(self) -> bool:
        """Whether this process was asked to end, by SIGTERM or SIGHUP."""
        return self._asked is not None

    def __enter__(self) -> Watchdog:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write()
        os.set_blocking(self._wake, False)
        # A handler in Python would wait for the main thread, which may be stuck in an all-reduce;
        # the wake-up descriptor is written to by the C handler itself.
        self._put_back = on_ending(lambda *_: None)
        self._old_wake = signal.set_wakeup_fd(self._wake)
        self._thread.start()
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], _: object) -> None:
        if SHUT_DOWN in str(error):
            self._lost = time.monotonic()
            self._thread.join()  # which ends this process
        if kind is not None and not issubclass(kind, (UserError, KeyboardInterrupt)):
            time.sleep(3 * INTERVAL)  # an all-reduce that failed: the thread may know why
        signal.set_wakeup_fd(self._old_wake)
        self._put_back()
        os.write(self._wake, bytes([0]))
        self._thread.join()
        for descriptor in (self._listen, self._wake):
            os.close(descriptor)
        with suppress(OSError):  # not empty: others are still at work
            self._file(self._rank).unlink()
            self._folder.rmdir()

    def _watch(self) -> None:
        looked, exit_asked = time.monotonic(), 0
        while True:
            heard = b""
            if select.select([self._listen], [], [], INTERVAL)[0]:
                heard = os.read(self._listen, 64)
            if 0 in heard:
                return
            slept = time.monotonic() - looked
            looked += slept
            if slept > ASLEEP:
                self._last += slept
            self._write()
            others = [peer for rank, peer in self._peers.items() if rank != self._rank]
            # A peer that has ended by itself has removed its file before.
            dead = [peer for peer in others if peer.is_dead() and self._file(peer.rank).exists()]
            if dead:
                self._end(EXIT_PEER_DIED, self._describe_dead(dead))
            asked = [number for number in (signal.SIGTERM, signal.SIGHUP) if number in heard]
            if asked and self._asked is None:
                self._asked, exit_asked = time.monotonic(), 128 + asked[0]
            is_alone = self._lost is not None
            if self._asked is not None and (is_alone or time.monotonic() - self._asked > GRACE):
                self._end(exit_asked, "")
            if self._lost is not None and time.monotonic() - self._lost > TOLD:
                gone = f"the other workers are gone since {self._what}"
                self._end(EXIT_PEER_DIED, f"{self._blame()}{gone}")
            if time.monotonic() - self._last > self._seconds:
                self._end(EXIT_HANGS, self._describe_hanging())

    def _describe_dead(self, dead: List[Peer]) -> str:
        """One sentence, by the lowest rank that lives."""
        ranks = [peer.rank for peer in dead]
        if self._rank != min(rank for rank in self._peers if rank not in ranks):
            return ""
        peer = dead[0]
        return (
            f"worker {peer.rank} (process {peer.pid} on {peer.host}) died without a word, last "
            f"seen at {self._last_word(peer.rank)}; the job ends. If it was killed for lack of "
            "memory, use fewer workers per machine or a smaller training.batch_size"
        )

    def _describe_hanging(self) -> str:
        words = "; ".join(f"worker {rank}: {self._last_word(rank)}" for rank in sorted(self._peers))
        return (
            f"nothing has moved for {self._seconds:.0f} s at {self._what}; {self._blame()}the job "
            f"ends (training.watchdog_seconds sets the limit). Last progress: {words}"
        )

    def _blame(self) -> str:
        """Name a worker that is stopped, at the beginning of a sentence."""
        stopped = [peer.rank for peer in self._peers.values() if peer.is_stopped()]
        return f"worker {stopped[0]} is stopped; " if stopped else ""

    def _end(self, code: int, sentence: str) -> None:
        """Ends the process at once: its main thread may be stuck inside an all-reduce."""
        if code == EXIT_HANGS:
            faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
        if sentence:
            sys.stderr.write(f"edp-mx, worker {self._rank}: {sentence}\n")
            sys.stderr.flush()
        with suppress(OSError):  # not empty: others are still at work
            self._file(self._rank).unlink()
            self._folder.rmdir()
        living = [rank for rank, peer in self._peers.items() if not peer.is_dead()]
        with suppress(Exception):  # whatever it is, the job ends now
            for line in self._parting() if self._rank == min(living) else ():
                sys.stderr.write(f"edp-mx: {line}\n")
                sys.stderr.flush()
        os._exit(code)

    def _file(self, rank: int) -> Path:
        return self._folder / f"worker_{rank}.json"

    def _write(self) -> None:
        """Leaves a sign of life where the other workers of this machine look."""
        if self._written != self._what:
            self._written = self._what
            temporary = self._file(self._rank).with_suffix(".new")
            with suppress(OSError):  # a full disk must not end the watch
                temporary.write_text(json.dumps({"progress": self._what, "pid": os.getpid()}))
                temporary.replace(self._file(self._rank))

    def _last_word(self, rank: int) -> str:
        try:
            return str(parse_json(self._file(rank).read_bytes())["progress"])
        except (OSError, ValueError, KeyError, TypeError):
            return "unknown"


def _state(pid: int) -> str:
    """The state letter of a process on this machine, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
