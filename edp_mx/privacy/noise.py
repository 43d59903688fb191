"""Gaussian noise from a cryptographic stream of the worker's own."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from itertools import count
from threading import Lock
from typing import Deque, Iterable, Iterator, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from edp_mx.errors import UserError
from edp_mx.privacy.box_muller import PAIRS as PAIRS
from edp_mx.privacy.box_muller import BoxMuller
from edp_mx.runtime.threads import allowed_threads, in_threads

KEY_BYTES = 32


class NoiseStream:
    """Independent standard normal numbers: AES-256 in counter mode, then Box–Muller.

    MXNet's generator starts every worker from the same constant seed; noise drawn from it is known
    to everyone. Here the key comes from the operating system, is never written down, and is never
    used again: a resumed run takes a new one (the same noise on two gradients reveals them both).

    The numbers come in blocks of 2 · PAIRS. A block's number, counted from the stream's first use,
    is the upper half of the cipher's counter, so that no two blocks share key stream and a block's
    numbers depend neither on the thread that makes them nor on how many there are. A call takes new
    blocks and wastes what it leaves of the last one.

    Args:
        key: 32 secret bytes, another for each worker and each start.

    Attributes:
        fingerprint: of the key; it may be shown.
        mask_key: another secret, made from the key one way, for the masks of dropout.

    Guarantee: how close the numbers come to normal ones is told at `box_muller.BoxMuller`.

    Edge cases: a process that was forked may not go on with its parent's stream, nor can a stream
    be copied: the same noise would be drawn twice.
    """

    def __init__(self, *, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self.mask_key = hashlib.sha256(b"edp_mx dropout masks" + key).digest()
        self.fingerprint = hashlib.sha256(b"edp_mx noise key" + key).hexdigest()
        self._key = key
        self._numbers = count()  # of the blocks; a shallow copy goes on with the same ones
        self._idle: Deque[BoxMuller] = deque()  # one for each thread, made when it is needed
        self._process = os.getpid()
        self._lock = Lock()

    @classmethod
    def from_operating_system(cls) -> NoiseStream:
        """A stream that nobody can repeat."""
        return cls(key=os.urandom(KEY_BYTES))

    @classmethod
    def insecure(cls, *, seed: int, rank: int) -> NoiseStream:
        """A repeatable stream, for tests only: who knows the seed can take the noise off again."""
        return cls(key=hashlib.sha256(f"edp_mx insecure noise {seed} {rank}".encode()).digest())

    def scale_and_add(
        self,
        array: np.ndarray,
        *,
        factor: float,
        stddev: float,
        source: Optional[np.ndarray] = None,
    ) -> None:
        """array ← factor · source + stddev · y, in place, with y ~ N(0, I) drawn anew.

        Args:
            array: contiguous float32 (n,).
            factor: what the source is multiplied by first.
            stddev: 0 draws nothing.
            source: contiguous float32 or float64 (n,), left as it is; the array itself where there
                is none. Of float64 the sum is made in float64 and rounded once, at the end.

        Raises:
            ValueError: an array of another type or shape, or one with gaps.
        """
        whole = slice(0, array.size)
        self.scale_and_add_parts(array, parts=[(whole, stddev)], factor=factor, source=source)

    def scale_and_add_parts(
        self,
        array: np.ndarray,
        *,
        parts: Iterable[Tuple[slice, float]],
        factor: float,
        source: Optional[np.ndarray] = None,
    ) -> None:
        """`scale_and_add` for several parts of one array, as if one after the other.

        Args:
            array, factor, source: see `scale_and_add`; what lies in no part stays as it is.
            parts: slices that do not overlap, each with its stddev.
        """
        source = array if source is None else source
        _check(array, source)
        with self._lock:
            if os.getpid() != self._process:
                raise RuntimeError(
                    "this noise stream belongs to the process that was forked: both would draw "
                    "the same noise; make a new stream"
                )
            blocks = list(self._split(array, source, parts, factor))
            threads = max(1, min(allowed_threads(), len(blocks)))
            while len(self._idle) < threads:
                self._idle.append(BoxMuller(self._key))
            in_threads(self._release, blocks, threads=threads)

    def normal(self, size: int) -> np.ndarray:
        """`size` standard normal numbers, float32."""
        values = np.zeros(size, np.float32)
        self.scale_and_add(values, factor=1.0, stddev=1.0)
        return values

    def _split(
        self,
        array: np.ndarray,
        source: np.ndarray,
        parts: Iterable[Tuple[slice, float]],
        factor: float,
    ) -> Iterator[_Block]:
        """The parts in blocks, each with a number that no block had before."""
        for part, stddev in parts:
            first, end, _ = part.indices(array.size)
            for start in range(first, end, 2 * PAIRS):
                cut = slice(start, min(start + 2 * PAIRS, end))
                target = array[cut]
                given = target if source is array else source[cut]
                yield _Block(target, given, factor, stddev, next(self._numbers))

    def _release(self, block: _Block) -> None:
        """Scales one block and adds its noise; any thread may."""
        target, source, factor = block.target, block.source, block.factor  # (≤ 2 · PAIRS,)
        if block.stddev == 0:
            np.multiply(source, source.dtype.type(factor), out=target, casting="same_kind")
            return
        maker = self._idle.pop()
        maker.scale_and_add(target, source, block=block.number, factor=factor, stddev=block.stddev)
        self._idle.append(maker)


class _Block(NamedTuple):
    """A piece of work for one thread: target ← factor · source + stddev · y."""

    target: np.ndarray
    source: np.ndarray
    factor: float
    stddev: float
    number: int


def _check(array: np.ndarray, source: np.ndarray) -> None:
    """Refuse what the blocks would not cover, or only through a copy."""
    if array.dtype != np.float32 or source.dtype not in (np.float32, np.float64):
        raise ValueError("noise goes onto contiguous float32 arrays (n,), of float32 or float64")
    if any(given.ndim != 1 or not given.flags.c_contiguous for given in (array, source)):
        raise ValueError("noise goes onto contiguous float32 arrays (n,), and nothing else")
    if array.shape != source.shape:
        raise ValueError(f"a source of {source.size} numbers for an array of {array.size}")


def refuse_equal(fingerprints: Sequence[str]) -> None:
    """Refuse to train when two workers would draw the same noise.

    Raises:
        UserError: names the two ranks.
    """
    for rank, fingerprint in enumerate(fingerprints):
        first = list(fingerprints).index(fingerprint)
        if first != rank:
            raise UserError(
                f"workers {first} and {rank} have the same noise key: their noise would "
                "be identical and could be subtracted; start the workers anew"
            )
