"""Gaussian noise from each worker's own cryptographic stream."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from functools import partial
from itertools import count
from threading import Lock
from typing import Deque, Dict, Iterable, Iterator, Optional, Sequence, Tuple, Type, Union

import numpy as np

from edp_mx.dp.privacy.box_muller import PAIRS, BoxMuller
from edp_mx.dp.privacy.grid_gaussian import GridGaussian
from edp_mx.errors import UserError
from edp_mx.runtime.processes import forbid_core_dumps
from edp_mx.runtime.threads import allowed_threads, in_threads

KEY_BYTES = 32
_Maker = Union[BoxMuller, GridGaussian]
_MAKERS: Dict[str, Type[_Maker]] = {"plain": BoxMuller, "hardened": GridGaussian}
_Block = Tuple[slice, float, int]  # of an array, its stddev, its number


class NoiseStream:
    """Independent normal numbers: AES-256 in counter mode, then Box–Muller.

    MXNet's generator starts every worker from the same constant seed, so that everyone knows the
    noise drawn from it. Here the key comes from the operating system, is never written down and
    never used again: a resumed run takes a new one, since the same noise on two gradients would
    reveal both.

    The numbers come in blocks of 2 · PAIRS. A block's number, counted from the stream's first use,
    is the upper half of the cipher's counter. So no two blocks share key stream, and a block's
    numbers depend neither on the thread that makes them nor on the number of threads. Each call
    takes new blocks and discards the rest of its last one.

    Args:
        key: 32 secret bytes, different for each worker and each start.
        gaussian: plain (in float32, fast) or hardened (in float64 and on a grid: not only the
            values but also the last bits of what is released are those of normal noise).

    Attributes:
        fingerprint: a hash of the key that may be shown.
        mask_key: another secret, derived one way from the key, for dropout's masks.

    Guarantee: `box_muller.BoxMuller` and `grid_gaussian.GridGaussian` state how close the numbers
    are to normal ones.

    Edge cases: a forked process may not use its parent's stream, and a stream cannot be copied:
    the same noise would be drawn twice.
    """

    def __init__(self, *, key: bytes, gaussian: str = "plain") -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self.mask_key = hashlib.sha256(b"edp_mx dropout masks" + key).digest()
        self.fingerprint = hashlib.sha256(b"edp_mx noise key" + key).hexdigest()
        self.gaussian = gaussian
        self._key, self._maker = key, _MAKERS[gaussian]
        self._numbers = count()  # of the blocks; a shallow copy shares them
        self._idle: Deque[_Maker] = deque()  # one per thread, made when first needed
        self._process = os.getpid()
        self._lock = Lock()

    @classmethod
    def from_operating_system(cls, *, gaussian: str = "plain") -> NoiseStream:
        """Make a stream that nobody can repeat; this process leaves no core dump from then on."""
        forbid_core_dumps()
        return cls(key=os.urandom(KEY_BYTES), gaussian=gaussian)

    @classmethod
    def insecure(cls, *, seed: int, rank: int, gaussian: str = "plain") -> NoiseStream:
        """Make a repeatable stream for tests: whoever knows the seed can subtract the noise."""
        key = hashlib.sha256(f"edp_mx insecure noise {seed} {rank}".encode()).digest()
        return cls(key=key, gaussian=gaussian)

    def scale_and_add(
        self,
        array: np.ndarray,
        *,
        factor: float,
        stddev: float,
        source: Optional[np.ndarray] = None,
    ) -> None:
        """Set array ← factor · source + stddev · y in place, with fresh y ~ N(0, I).

        Hardened, the sum is then rounded to a multiple of `grid_gaussian.grid_of(stddev)`.

        The source is the array itself by default. With a float64 source the sum is made in float64
        and rounded once. Shapes: contiguous (n,), array float32, source float32 or float64.
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
        """Apply `scale_and_add` to slices that do not overlap, each with its stddev."""
        source = array if source is None else source
        _check(array, source)
        with self._lock:
            if os.getpid() != self._process:
                raise RuntimeError(
                    "this noise stream belongs to the process that was forked, and both would "
                    "draw the same noise: make a new stream"
                )
            blocks = list(self._split(array, parts))
            threads = max(1, min(allowed_threads(), len(blocks)))
            while len(self._idle) < threads:
                self._idle.append(self._maker(self._key))
            in_threads(partial(self._fill, array, source, factor), blocks, threads=threads)

    def _split(self, array: np.ndarray, parts: Iterable[Tuple[slice, float]]) -> Iterator[_Block]:
        """Yield the parts in blocks, each with a number that no other block has."""
        for part, stddev in parts:
            first, end, _ = part.indices(array.size)
            for start in range(first, end, 2 * PAIRS):
                yield slice(start, min(start + 2 * PAIRS, end)), stddev, next(self._numbers)

    def _fill(self, array: np.ndarray, source: np.ndarray, factor: float, block: _Block) -> None:
        """Scale one block and add its noise, in any thread."""
        part, stddev, number = block
        target, given = array[part], source[part]  # (≤ 2 · PAIRS,)
        if stddev == 0:
            np.multiply(given, given.dtype.type(factor), out=target, casting="same_kind")
            return
        maker = self._idle.pop()
        maker.scale_and_add(target, given, block=number, factor=factor, stddev=stddev)
        self._idle.append(maker)


def _check(array: np.ndarray, source: np.ndarray) -> None:
    """Refuse arrays that cannot be filled in place."""
    if array.dtype != np.float32 or source.dtype not in (np.float32, np.float64):
        raise ValueError("noise is added to float32 arrays, from a source in float32 or float64")
    if any(given.ndim != 1 or not given.flags.c_contiguous for given in (array, source)):
        raise ValueError("noise is added to contiguous arrays of one dimension")
    if array.shape != source.shape:
        raise ValueError(f"the source has {source.size} numbers, but the array has {array.size}")


def refuse_equal(fingerprints: Sequence[str]) -> None:
    """Refuse to train when two workers would draw the same noise."""
    for rank, fingerprint in enumerate(fingerprints):
        first = list(fingerprints).index(fingerprint)
        if first != rank:
            raise UserError(
                f"workers {first} and {rank} have the same noise key, so that their noise would "
                "be identical and could be subtracted: start the workers again"
            )
