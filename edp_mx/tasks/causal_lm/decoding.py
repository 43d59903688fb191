"""Continuing a prompt piece by piece, by GluonNLP's samplers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Callable, List, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from gluonnlp.model import BeamSearchSampler, BeamSearchScorer, SequenceSampler

from edp_mx.runtime.settings import SettingError, Settings, setting

MOST_BEAMS, MOST_NEW, MOST_SEED = 64, 1 << 16, (1 << 31) - 1
_NEVER = -1e30  # the score of a piece that is not to be drawn

Past = List[mx.nd.NDArray]
# (pieces (N, Q), what was kept of those before) → scores (N, V), what is kept
Step = Callable[[mx.nd.NDArray, Optional[Past]], Tuple[mx.nd.NDArray, Past]]


@dataclass(frozen=True)
class Decoding(Settings):
    """How a text is continued.

    Attributes:
        max_pieces: how many pieces are written at most, as far as the model has positions.
        beams: of the beam search for the likeliest text; 1 takes the likeliest piece each time.
        temperature: 0 searches; above 0 each piece is drawn, from scores divided by it.
        top_k: draw from that many likeliest pieces.
        top_p: draw from the fewest likeliest pieces that together have this probability.
        seed: of the draws; by default they differ from call to call. With it a text has the same
            continuation whichever others stand beside it; asked again in one call, it has another.

    Source: Holtzman et al. 2020, section 3.1, for top_p; Fan et al. 2018 for top_k.
    """

    max_pieces: int = setting(64, at_least=1, at_most=MOST_NEW)
    beams: int = setting(1, at_least=1, at_most=MOST_BEAMS)
    temperature: float = setting(0.0, at_least=0, at_most=100)
    top_k: Optional[int] = setting(None, at_least=1, at_most=1 << 24)
    top_p: Optional[float] = setting(None, above=0, at_most=1)
    seed: Optional[int] = setting(None, at_least=0, at_most=MOST_SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature == 0:
            for key in ("top_k", "top_p", "seed"):
                if getattr(self, key) is not None:
                    raise SettingError(key, "must be left out unless temperature is above 0")
        elif self.beams > 1:
            raise SettingError("beams", "must be 1 where temperature is above 0")


def continuations(
    step: Step,
    prompts: np.ndarray,
    decoding: Decoding,
    *,
    end: int,
    room: int,
    context: Optional[mx.Context] = None,
    asked: Optional[Counter[bytes]] = None,
) -> List[List[int]]:
    """Return the pieces behind each prompt, without the one that ends a text.

    Args:
        end: id of the piece that ends a text.
        room: how many pieces there is room for behind a prompt.
        context: the device of the model; the current one by default.
        asked: how often each prompt was asked before, to which these are added.

    Shapes: prompts (N, P) int32, all of the same length, at least 1.
    Edge cases: without room nothing is written.
    Departs: GluonNLP's `SequenceSampler` has a `top_k` that compares the places of sorted scores
        with k, and so keeps others than the k likeliest, and its draws depend on all rows. Here a
        piece is drawn before it, and it gets the score of that one alone.
    """
    most = min(decoding.max_pieces, room)
    if most < 1:
        return [[] for _ in prompts]
    if decoding.temperature > 0:
        draws = _generators(prompts, decoding.seed, Counter() if asked is None else asked)
        sampler: Any = SequenceSampler(1, _Decoder(step, decoding, draws), end, max_length=most)
    else:
        scorer = BeamSearchScorer(alpha=0, K=0, from_logits=False)
        sampler = BeamSearchSampler(
            decoding.beams, _Decoder(step, decoding), end, scorer=scorer, max_length=most
        )
    given = mx.nd.array(prompts, ctx=context, dtype="int32")
    samples, _, lengths = sampler(given[:, -1], step(given, None))
    found, counts = samples[:, 0].asnumpy(), lengths[:, 0].asnumpy().astype(int)
    rows = (row[1:count].tolist() for row, count in zip(found, counts))
    return [list(takewhile(lambda piece: piece != end, row)) for row in rows]


def _generators(
    prompts: np.ndarray, seed: Optional[int], asked: Counter[bytes]
) -> List[np.random.Generator]:
    """Return one for each prompt, (N, P): of the seed, the prompt and how often it was asked."""
    found = []
    for row in prompts:
        asked[row.tobytes()] += 1
        place = None if seed is None else [seed, asked[row.tobytes()], *row.astype(int).tolist()]
        found.append(np.random.default_rng(place))
    return found


def told(step: Step, heard: Callable[[List[int]], None]) -> Step:
    """Return the same steps, each of which tells what stands behind a single prompt so far."""
    written: List[int] = []

    def step_and_tell(pieces: mx.nd.NDArray, past: Optional[Past]) -> Tuple[mx.nd.NDArray, Past]:
        if past is not None:
            written.append(int(pieces[0, 0].asscalar()))
            heard(written)
        return step(pieces, past)

    return step_and_tell


class _Decoder:
    """What a sampler calls: the next scores, and what is kept.

    The scores behind a prompt are there already: they come in as a part of the first states.
    """

    def __init__(
        self, step: Step, decoding: Decoding, draws: Sequence[np.random.Generator] = ()
    ) -> None:
        self._step, self._decoding, self._draws = step, decoding, draws

    def __call__(self, pieces: mx.nd.NDArray, states: Any) -> Tuple[mx.nd.NDArray, Past]:
        column = pieces.reshape((-1, 1)).astype("int32")
        scores, past = states if isinstance(states, tuple) else self._step(column, states)
        return (scores if self._decoding.temperature == 0 else self._drawn(scores)), past

    def _drawn(self, scores: mx.nd.NDArray) -> mx.nd.NDArray:
        """Return scores by which a sampler takes a piece that is drawn here. Shapes: (N, V).

        Source: the Gumbel-max trick, by which the largest of log p + noise is a draw from p.
        """
        found = scores.asnumpy().astype(np.float64)  # (N, V)
        found = (found - found.max(axis=1, keepdims=True)) / self._decoding.temperature
        order = np.argsort(-found, axis=1, kind="stable")  # (N, V), the likeliest first
        ordered = np.take_along_axis(found, order, axis=1)
        if self._decoding.top_k is not None:
            ordered[:, self._decoding.top_k :] = _NEVER
        if self._decoding.top_p is not None:
            shares = np.exp(ordered - ordered[:, :1])
            before = np.cumsum(shares, axis=1) - shares  # of the likelier ones, not yet divided
            reached = before >= self._decoding.top_p * shares.sum(axis=1, keepdims=True)
            ordered[reached] = _NEVER
        noise = np.stack([draws.gumbel(size=found.shape[1]) for draws in self._draws])  # (N, V)
        places = (ordered + noise).argmax(axis=1)[:, None]  # (N, 1)
        alone = np.full(found.shape, _NEVER)
        np.put_along_axis(alone, np.take_along_axis(order, places, axis=1), 0, axis=1)
        return mx.nd.array(alone, ctx=scores.context, dtype="float32")
