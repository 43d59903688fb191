"""Utterances of different lengths without their padding, ordered by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional, Tuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Packing:
    """The order in which a recurrence reads the tokens of a padded batch (T, N, …).

    Step s reads one token of each utterance that has more than s tokens. Utterances are sorted from
    the longest to the shortest, so that each step continues the first rows of the previous one. A
    packed array has one row per token.

    Attributes:
        steps: the rows of each step in packed arrays.
        places: the place t·N + n of each row in the batch; None if the rows lie there in order from
            the first token on, in which case packing makes no copy.
        num_rows: P.
    """

    steps: Tuple[slice, ...]
    places: Optional[np.ndarray]
    num_rows: int

    @classmethod
    def whole(cls, num_steps: int, num_examples: int, *, reverse: bool = False) -> Packing:
        """Pack all steps of all examples, padding included."""
        starts = range(0, num_steps * num_examples, num_examples) if num_examples else ()
        steps = tuple(slice(start, start + num_examples) for start in starts)
        return cls(steps[::-1] if reverse else steps, None, num_steps * num_examples)

    @classmethod
    def of(cls, lengths: np.ndarray, *, reverse: bool = False) -> Packing:
        """Pack only the true tokens, from the last to the first if `reverse`. Shapes: lengths (N,).

        Examples:
            >>> packing = Packing.of(np.array([1, 3]))
            >>> [str(step) for step in packing.steps]
            ['slice(0, 2, None)', 'slice(2, 3, None)', 'slice(3, 4, None)']
            >>> packing.places  # second utterance, first, then the rest of the second
            array([1, 0, 3, 5])
        """
        lengths = lengths.astype(np.int64)
        longest = int(lengths.max(initial=0))
        if (lengths == longest).all():
            return cls.whole(longest, len(lengths), reverse=reverse)
        order = np.argsort(-lengths, kind="stable")  # (N,)
        sorted_lengths, step = lengths[order], np.arange(longest)[:, None]
        is_read = step < sorted_lengths  # (T, N)
        time = sorted_lengths - 1 - step if reverse else step
        places = (time * len(lengths) + order)[is_read]  # (P,)
        ends = is_read.sum(axis=1).cumsum().tolist()
        return cls(tuple(map(slice, [0, *ends], ends)), places, len(places))

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Return the rows of a batch, as a view if possible. Shapes: (T, N, d) → (P, d)."""
        flat = values.reshape(-1, values.shape[-1])
        return flat[: self.num_rows] if self.places is None else flat[self.places]

    def owners(self, num_examples: int) -> np.ndarray:
        """Return the example that each row is of, (P,)."""
        rows = np.arange(self.num_rows) if self.places is None else self.places
        return rows % num_examples

    def fill(self, out: np.ndarray, make: Callable[[np.ndarray], object]) -> None:
        """Let `make` fill the rows of a batch; padding becomes exactly zero.

        Shapes: out (T, N, d); `make` is given (P, d), a view of `out` if possible.
        """
        flat = out.reshape(-1, out.shape[-1])
        if self.places is None:
            make(flat[: self.num_rows])
            flat[self.num_rows :] = 0
            return
        rows = np.empty((self.num_rows, out.shape[-1]), np.float32)
        make(rows)
        flat.fill(0)
        flat[self.places] = rows

    def add(self, out: np.ndarray, rows: np.ndarray) -> None:
        """Add rows to those of a batch. Shapes: out (T, N, d), rows (P, d)."""
        flat = out.reshape(-1, out.shape[-1])
        flat[slice(self.num_rows) if self.places is None else self.places] += rows

    def spread(self, rows: np.ndarray, shape: Tuple[int, ...]) -> np.ndarray:
        """Return a batch with these rows and exact zeros at padding, as a view if possible.

        Shapes: rows (P, d) → shape (T, N, d).
        """
        if rows.size == np.prod(shape) and self.places is None:
            return rows.reshape(shape)
        out = np.empty(shape, np.float32)
        self.fill(out, lambda place: np.copyto(place, rows))
        return out

    def pairs(self, rows: np.ndarray, states: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Return the rows of all steps but the first, and the states one step before each of them.

        Shapes: rows (P, d), states (P, e) → (Q, d), (Q, e).
        """
        first = self.steps[0] if self.steps else slice(0, 0)
        if self.places is None:
            size = first.stop - first.start
            later, earlier = slice(size, None), slice(0, self.num_rows - size)
            if first.start > 0:
                later, earlier = earlier, later
            return rows[later], states[earlier]
        sizes = np.array([step.stop - step.start for step in self.steps])
        before = np.arange(first.stop, self.num_rows) - np.repeat(sizes[:-1], sizes[1:])
        return rows[first.stop :], states[before]
